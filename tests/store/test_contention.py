"""Who takes turns to write, because other processes write the same rows, and that results are the same either way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from svc.kernel.store.contention import (
    DECIDED_BY,
    STUCK_S,
    TURNS_AT_FIRST,
    TURNS_AT_MOST,
    UNHEARD_S,
    WAIT_S,
    Bell,
    Contention,
    EndTurn,
    TurnQueue,
)
from svc.kernel.store.group import Write
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.local import LocalStore
from svc.kernel.store.schema.table import installed
from svc.kernel.store.snapshot import Snapshot, Transaction
from tests.store.test_group import TABLES, Model, Program, add, ask, count, fail_if, get, put, same, scan
from tests.support.effort import effort
from tests.support.worlds import HeldThreads

BOOKS, SUMS = TABLES

# Who takes turns


def ahead(contention: Contention, jobs: int, repeated: int, organization: int = 1) -> None:
    contention.note([organization] * jobs, range(repeated), in_turn=False)


def turns_of(contention: Contention, organization: int = 1) -> int:
    """How many groups of 8 take turns from now on, if nothing is in vain."""
    turns = 0
    while contention.among([organization]):
        contention.note([organization] * 8, (), in_turn=True)
        turns += 1
    return turns


def test_an_organization_takes_turns_once_more_than_a_quarter_of_its_jobs_run_again():
    contention = Contention()
    ahead(contention, DECIDED_BY, DECIDED_BY // 4)
    assert not contention.among([1])
    ahead(contention, DECIDED_BY, DECIDED_BY // 4 + 1)
    assert contention.among([2, 1]) == {1}
    assert turns_of(contention) == TURNS_AT_FIRST


def test_small_groups_are_judged_together():
    contention = Contention()
    for _ in range(DECIDED_BY - 1):
        ahead(contention, 1, 1)
        assert not contention.among([1])
    ahead(contention, 1, 1)
    assert contention.among([1])


def test_an_organization_of_a_shared_group_answers_for_its_own_jobs_alone():
    contention = Contention()
    contention.note([1, 2] * DECIDED_BY, range(0, 2 * DECIDED_BY, 2), in_turn=False)
    assert contention.among([1])
    assert not contention.among([2])


def test_trials_become_rare_while_they_fail_and_one_that_succeeds_ends_the_turns():
    contention, turns = Contention(), [0]
    while turns[-1] < TURNS_AT_MOST:
        ahead(contention, DECIDED_BY, DECIDED_BY)
        turns.append(turns_of(contention))
    assert turns == [0, 64, 128, 256, 512, 1024]
    ahead(contention, DECIDED_BY, DECIDED_BY)
    assert turns_of(contention) == TURNS_AT_MOST
    ahead(contention, DECIDED_BY, 0)
    ahead(contention, DECIDED_BY, DECIDED_BY)
    assert turns_of(contention) == TURNS_AT_FIRST


def test_a_trial_of_which_one_group_met_nobody_is_judged_by_the_others_too():
    """Groups of a trial run beside those that others write in their turns: half of them meet nobody."""
    contention = Contention()
    ahead(contention, DECIDED_BY, DECIDED_BY)
    assert turns_of(contention) == TURNS_AT_FIRST
    for jobs, repeated in ((10, 0), (11, 11), (11, 0)):
        assert not contention.among([1])
        ahead(contention, jobs, repeated)
    assert turns_of(contention) == 2 * TURNS_AT_FIRST


def test_a_process_that_does_not_take_turns_extends_those_of_the_others():
    contention = Contention()
    ahead(contention, DECIDED_BY, DECIDED_BY)
    contention.note([1] * DECIDED_BY, range(DECIDED_BY), in_turn=True)
    assert turns_of(contention) == 2 * TURNS_AT_FIRST


def test_a_group_that_took_no_turn_meanwhile_says_nothing():
    contention = Contention()
    ahead(contention, DECIDED_BY, DECIDED_BY)
    for jobs, repeated in ((16, 16), (1, 0), (16, 0)):
        ahead(contention, jobs, repeated)
    assert turns_of(contention) == TURNS_AT_FIRST


def test_organizations_that_are_remembered_are_bounded():
    contention = Contention(most=3)
    for organization in range(4):
        ahead(contention, DECIDED_BY, DECIDED_BY, organization)
    assert contention.among(range(4)) == {3}
    contention.note([3] * 16, (), in_turn=True)
    assert contention.among([3])


# How a turn is waited for


class OneTurn:
    """A turn without a file."""

    def __init__(self) -> None:
        self.holder: object | None = None

    def take(self) -> Callable[[], None] | None:
        if self.holder is not None:
            return None
        holder = self.holder = object()

        def end() -> None:
            if self.holder is holder:
                self.holder = None

        return end


async def test_a_turn_that_ends_is_the_next_ones_and_waiting_can_be_cancelled(autojump_clock: MockClock):
    one = OneTurn()
    queues = [TurnQueue(one.take, trio.current_time) for _ in range(2)]
    end = await queues[0].wait(trio.current_time())
    assert end is not None
    with trio.move_on_after(WAIT_S / 2) as gave_up:
        await queues[1].wait(trio.current_time())
    assert gave_up.cancelled_caught
    end()
    other = await queues[1].wait(trio.current_time())
    assert other is not None
    end()
    assert queues[0].take() is None, "ending a turn twice does not end that of another"
    other()
    assert queues[0].take() is not None


async def test_a_holder_that_was_stopped_is_waited_for_once_a_second(autojump_clock: MockClock):
    one = OneTurn()
    one.take()
    queue = TurnQueue(one.take, trio.current_time)
    waits: list[float] = []
    for _ in range(8):
        began = trio.current_time()
        assert await queue.wait(began) is None
        waits.append(round(trio.current_time() - began, 2))
        await trio.sleep(STUCK_S / 4)
    assert waits == [WAIT_S, 0, 0, 0, WAIT_S, 0, 0, 0]


class CountedBell(Bell):
    rings = 0

    def ring(self) -> None:
        self.rings += 1
        super().ring()


async def test_who_waits_hears_that_a_turn_has_ended():
    one, bell = OneTurn(), CountedBell()
    queues = [TurnQueue(one.take, trio.current_time) for _ in range(2)]
    for queue in queues:
        queue.bell = bell
    end = queues[0].take()
    assert end is not None
    got: list[EndTurn | None] = []

    async def wait() -> None:
        got.append(await queues[1].wait(trio.current_time()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        await trio.to_thread.run_sync(end)
        end()
    assert got != [None]
    assert bell.rings == 1


async def test_a_turn_whose_holder_died_is_taken_without_a_ring(autojump_clock: MockClock):
    one, bell = OneTurn(), Bell()
    queue = TurnQueue(one.take, trio.current_time)
    queue.bell = bell
    one.take()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.wait, trio.current_time())
        await wait_all_tasks_blocked()
        one.holder = None
    assert one.holder is not None
    assert trio.current_time() <= UNHEARD_S


def test_a_turn_is_had_by_one_engine_at_a_time_and_leaves_writing_to_all(tmp_path: Path):
    with closing(LmdbEngine.open(tmp_path, map_bytes=1 << 20, durable=False)) as engine:
        end = engine.take_turn()
        assert end is not None
        assert engine.take_turn() is None
        engine.write(lambda _: None)
        end()
        other = engine.take_turn()
        assert other is not None
        end()
        assert engine.take_turn() is None
        other()
        (tmp_path / "data.mdb").unlink()
        assert engine.take_turn() is None


HOLDER = """
import sys, time
from pathlib import Path
from svc.kernel.store.lmdb.engine import LmdbEngine
end = LmdbEngine.open(Path(sys.argv[1]), map_bytes=1 << 20).take_turn()
print(end is not None, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_the_turn_of_a_process_ends_with_it(tmp_path: Path):
    with closing(LmdbEngine.open(tmp_path, map_bytes=1 << 20)) as engine:
        command = [sys.executable, "-c", HOLDER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "True\n"
            assert engine.take_turn() is None
            holder.kill()
        end = engine.take_turn()
        assert end is not None
        end()


# Groups of two stores


@asynccontextmanager
async def opened(directory: Path) -> AsyncGenerator[LmdbEngine]:
    with closing(LmdbEngine.open(directory, map_bytes=16 << 20, durable=False)) as engine:
        engine.open_tables([*installed().names, *(table.name for table in TABLES)], create=True)
        yield engine


class Process:
    """A store of its own over the engine of all, whose commits can be held between their phases."""

    def __init__(self, engine: LmdbEngine) -> None:
        self.threads = HeldThreads()
        self.store = LocalStore(engine, self.threads, lambda: 0, trio.current_time)
        self.committed: list[int] = []
        """What the jobs of organization 1 have returned."""

    @property
    def repeated(self) -> int:
        return self.store.statistics().repeated

    async def write(self) -> None:
        self.committed += await written(self.store, [Write(count_one, 1)] * DECIDED_BY)


async def written(store: LocalStore, writes: list[Write[Any]]) -> list[Any]:
    """As the visitor index has a group written."""
    takes_turn = store.contention.among(write.organization or 0 for write in writes)
    end_turn = await store.turns.wait(trio.current_time()) if takes_turn else None
    try:
        return await store.write(writes, urgent=True, end_turn=end_turn)
    finally:
        if end_turn is not None:
            end_turn()


def count_one(transaction: Transaction) -> int:
    """As identifications of one busy address do: read a row, and write what follows from it."""
    number = (transaction.get(BOOKS, 0, 0) or 0) + 1
    transaction.put(BOOKS, (0, 0), number)
    return number


@asynccontextmanager
async def two_processes(directory: Path) -> AsyncGenerator[tuple[Process, Process]]:
    """Two processes that have met in one row, so that both take turns."""
    async with opened(directory) as engine:
        both = Process(engine), Process(engine)
        for one, other in (both, reversed(both)):
            async with between_phases(one):
                await other.write()
            assert one.repeated == DECIDED_BY
        yield both


@asynccontextmanager
async def between_phases(process: Process) -> AsyncGenerator[None]:
    """A block in which a group of the process has run its jobs, and does not commit them."""
    process.threads.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.write)
        await wait_all_tasks_blocked()
        assert process.threads.waiting == 1
        yield
        process.threads.release()


async def test_jobs_of_processes_that_met_run_once(tmp_path: Path, autojump_clock: MockClock):
    async with two_processes(tmp_path) as (one, other):
        begun = max(one.committed + other.committed)
        for _ in range(4):
            async with trio.open_nursery() as nursery, between_phases(one):
                nursery.start_soon(other.write)
                await trio.sleep(WAIT_S / 2)
                assert other.threads.waiting == 0, "it waits for its turn, with no job run yet"
        assert (one.repeated, other.repeated) == (DECIDED_BY, DECIDED_BY)
        assert sorted(one.committed + other.committed) == list(range(1, begun + 8 * DECIDED_BY + 1))


async def test_other_organizations_and_other_changes_do_not_wait_for_a_turn(tmp_path: Path, autojump_clock: MockClock):
    async with two_processes(tmp_path) as (one, other), trio.open_nursery() as nursery:
        async with between_phases(one):
            nursery.start_soon(other.write)
            began = trio.current_time()
            assert await written(other.store, [Write(lambda _: "of another", 2)]) == ["of another"]
            assert await other.store.write([Write(lambda _: "a label", 1)]) == ["a label"]
            assert trio.current_time() == began
        nursery.cancel_scope.cancel()


async def test_a_process_that_stands_still_with_its_turn_stops_nobody(tmp_path: Path, autojump_clock: MockClock):
    async with two_processes(tmp_path) as (one, other):
        before = other.repeated
        async with between_phases(one):
            began = trio.current_time()
            await other.write()
            assert WAIT_S <= trio.current_time() - began < 2 * WAIT_S
            await other.write()
            assert trio.current_time() - began < 2 * WAIT_S
        assert other.repeated == before
        assert one.repeated == 2 * DECIDED_BY, "as what it had read was changed meanwhile"
        assert sorted(one.committed + other.committed) == list(range(1, 7 * DECIDED_BY + 1))


async def test_a_group_that_was_cancelled_or_failed_gives_its_turn_back(tmp_path: Path, autojump_clock: MockClock):
    async with two_processes(tmp_path) as (one, other):
        one.threads.hold()
        with trio.move_on_after(WAIT_S / 4) as gave_up:
            await one.write()
        assert gave_up.cancelled_caught
        one.threads.release()
        began = trio.current_time()
        await other.write()
        assert trio.current_time() == began


async def test_a_turn_ends_on_the_thread_of_its_commit(tmp_path: Path):
    """The loop may have other things to do before it goes on with the group."""
    async with opened(tmp_path) as engine:
        is_free: list[bool] = []

        async def thread(function: Callable[[], Any], /, **_: Any) -> Any:
            result = function()
            is_free.append(engine.take_turn() is not None)
            return result

        store = LocalStore(engine, thread, lambda: 0, trio.current_time)
        await store.write([Write(count_one, 1)], urgent=True, end_turn=store.turns.take())
        assert is_free == [True]


# The same results as one after the other


class Writer:
    """A process that commits groups of jobs, with the order of all commits."""

    def __init__(self, engine: LmdbEngine, chance: Random, commits: list[Committed]) -> None:
        self._chance = chance
        self._commits = commits
        self._programs: list[Program] = []
        self.store = LocalStore(engine, self._thread, lambda: 0, trio.current_time)

    async def _thread(self, function: Callable[[], Any], /, **_: Any) -> Any:
        await trio.sleep(self._chance.uniform(0.0003, 0.02))
        settled = function()
        self._commits.append((self._programs, settled.outcomes))
        return settled

    async def run(self, groups: int) -> None:
        for _ in range(groups):
            self._programs = [drawn(self._chance) for _ in range(self._chance.randint(1, 12))]
            writes = [Write(program.job, self._chance.choice((1, 1, 2))) for program in self._programs]
            outcomes = await written(self.store, writes)
            assert outcomes == self._commits_of(self._programs)
            await trio.sleep(self._chance.uniform(0, 0.02))

    def _commits_of(self, programs: Sequence[Program]) -> list[Any]:
        return next(outcomes for committed, outcomes in self._commits if committed is programs)


Committed = tuple[list[Program], list[Any]]


def drawn(chance: Random) -> Program:
    """A job that nearly always reads and writes a row that all others write."""
    place, busy = (chance.randrange(2), chance.randrange(3)), (0, 0)
    rest = (put(0, place), get(1, place), add(1, busy), ask(1, busy, 500_000), scan(0, 1, 2), count(0))
    steps = [get(0, busy), put(0, busy), *chance.sample(rest, 2), fail_if(7)]
    return Program(chance.randrange(10), steps, chance.choice((None, busy)))


def results_in_turn(seed: int, directory: Path) -> float:
    """Two to four processes that write at once. Returns the share of the jobs that ran again."""
    chance, commits = Random(seed), list[Committed]()

    async def run() -> float:
        async with opened(directory) as engine:
            writers = [Writer(engine, chance, commits) for _ in range(chance.randint(2, 4))]
            async with trio.open_nursery() as nursery:
                for writer in writers:
                    nursery.start_soon(writer.run, 30)
            model: Model = ({}, {})
            for programs, outcomes in commits:
                assert same(outcomes, [program.on(model) for program in programs])
            with closing(engine.read()) as reader:
                for table, rows in zip(TABLES, model, strict=True):
                    assert {tuple(key): number for key, number in Snapshot(reader).scan(table)} == rows
            done = [writer.store.statistics() for writer in writers]
            return sum(one.repeated for one in done) / sum(one.jobs for one in done)

    return trio.run(run, clock=MockClock(autojump_threshold=0))


@pytest.mark.slow
def test_groups_in_turn_have_the_result_of_their_commit_order(tmp_path: Path):
    shares = [results_in_turn(seed, tmp_path / str(seed)) for seed in range(effort(6, 40))]
    assert mean(shares) < 0.3, shares
