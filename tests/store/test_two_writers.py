"""Two writers of one store: identifications of one organization whose phases interleave."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from bench.reports import submitted
from svc.features.checks.invariants import violations
from svc.features.identification.transaction import Recorded, identify
from svc.features.organizations.jobs import create_organization
from svc.features.tables import TABLES
from svc.identify.identification import Duplicate, Identified, Refused, Submission, assess
from svc.identify.matching import Statistics
from svc.identify.model import RequestFacts
from svc.identify.recording.visitors import ANY_NUMBER, NextNumber, VisitorNumbers
from svc.identify.tables import EVENTS, VISITOR_COUNTS, VISITORS
from svc.kernel.limits.quotas import Quotas
from svc.kernel.store import operations
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.engine import CheckDepth
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.local import LocalStore
from svc.kernel.store.schema.operation_log import Following, unpack_batch
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.tables import FOLLOWING, META, OPERATIONS
from svc.kernel.tenants.jobs import add_credit
from svc.kernel.tenants.tables import BALANCES
from svc.world import World
from tests.support.every_engine import Place, every_place
from tests.support.live import report
from tests.support.worlds import Everywhere, HeldThreads, inline
from tests.support.writer_process import DEVICES, GROUP
from tests.support.writes import writes

PRICE = 3_000
WORLD = World.real()


def visit(device: int, *, key: bytes | None = None, environment: str = "production") -> Submission:
    signals = {**report(device), "client_token": f"{device:032x}"}
    facts = RequestFacts(ip=f"81.2.{device}.160")
    return submitted(WORLD, signals, facts, at_ms=1_767_225_600_000, environment=environment, idempotency=key)


def job(
    given: Submission,
    quotas: Quotas = Quotas(),  # noqa: B008  immutable
    next_number: NextNumber = ANY_NUMBER,
) -> Callable[[Transaction], Any]:
    assessment = assess(given, Everywhere())
    return partial(identify, assessment=assessment, statistics=Statistics(), quotas=quotas, next_number=next_number)


class Writers:
    """Two stores over one engine. The first one's commits are held between their phases."""

    def __init__(self, found: Opened) -> None:
        self.threads = HeldThreads()
        self.first = LocalStore(found.store.engine, self.threads, WORLD.now_ms)
        self.second = LocalStore(found.store.engine, inline, WORLD.now_ms)

    async def interleaved(self, first: list[Any], second: list[Any]) -> tuple[list[Any], list[Any]]:
        """The outcomes of both, the second of which is committed between the phases of the first."""
        outcomes: list[Any] = []

        async def begin() -> None:
            outcomes.extend(await self.first.write(writes(first)))

        self.threads.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(begin)
            await trio.testing.wait_all_tasks_blocked()
            assert self.threads.waiting == 1
            between = await self.second.write(writes(second))
            self.threads.release()
        return outcomes, between


@asynccontextmanager
async def writers(place: Place, credit: int = 10**9) -> AsyncIterator[Writers]:
    found = open_directory(
        place.directory, inline, WORLD.entropy, durable=False, map_bytes=64 << 20, database=place.database
    )

    def prepare(transaction: Transaction) -> None:
        create_organization(transaction, organization_id="org_x", name="x", now_ms=0, rate_limit_per_s=0)
        add_credit(transaction, 1, entry_id=WORLD.request_id(0), micros=credit, now_ms=0, note="")

    assert found.store.write_now([prepare]) == [None]
    yield Writers(found)
    with found.store.read() as snapshot:
        assert list(violations(snapshot)) == []
    found.store.close()


def balances(outcomes: list[Any]) -> list[int]:
    assert all(isinstance(outcome, Recorded) for outcome in outcomes), outcomes
    return [outcome.outcome.balance_micros for outcome in outcomes]


@every_place
async def test_sums_are_corrected_and_each_response_shows_its_resulting_balance(place: Place):
    async with writers(place) as two:
        two.second.write_now([job(visit(device)) for device in range(4)])  # known from now on
        first, second = await two.interleaved([job(visit(0)), job(visit(1))], [job(visit(2)), job(visit(3))])
        assert balances(second) == [10**9 - count * PRICE for count in (5, 6)]
        assert balances(first) == [10**9 - count * PRICE for count in (7, 8)]
        assert two.first.statistics().repeated == 0


@every_place
async def test_a_balance_used_up_by_another_writer_refuses_the_visit(place: Place):
    async with writers(place, credit=6 * PRICE) as two:
        two.second.write_now([job(visit(device)) for device in range(3)])
        first, second = await two.interleaved([job(visit(0)), job(visit(1))], [job(visit(2)), job(visit(2))])
        assert balances(second) == [2 * PRICE, PRICE]
        assert balances(first) == [0, 0]
        assert isinstance(first[0].outcome, Identified)
        assert isinstance(first[1].outcome, Refused)
        assert first[1].outcome.refusal.code == "no_credit"
        assert two.first.statistics().repeated == 1
        with two.second.read() as snapshot:
            assert snapshot.get(BALANCES, 1) == 0
            assert snapshot.count(EVENTS) == 6


@every_place
async def test_a_quota_used_up_by_another_writer_refuses_the_visit(place: Place):
    quotas = Quotas(nonproduction_per_day=3)
    async with writers(place) as two:
        two.second.write_now([job(visit(device, environment="development"), quotas) for device in (0, 1)])
        first, _ = await two.interleaved(
            [job(visit(0, environment="development"), quotas)], [job(visit(1, environment="development"), quotas)]
        )
        assert (first[0].quota, two.first.statistics().repeated) == ("nonproduction_day", 1)


@every_place
async def test_an_idempotency_key_gets_a_response_from_one_of_two_writers(place: Place):
    async with writers(place) as two:
        first, second = await two.interleaved([job(visit(0, key=bytes(16)))], [job(visit(0, key=bytes(16)))])
        assert isinstance(second[0].outcome, Identified)
        assert isinstance(first[0].outcome, Duplicate)
        assert balances(first) == balances(second) == [10**9 - PRICE]


@every_place
async def test_two_writers_give_a_new_device_one_visitor_and_new_devices_one_each(place: Place):
    async with writers(place) as two:
        first, second = await two.interleaved([job(visit(0)), job(visit(1))], [job(visit(0)), job(visit(2))])
        ids = [outcome.outcome.verdict.visitor_id for outcome in first + second]
        assert ids[0] == ids[2]
        assert len(set(ids)) == 3
        with two.second.read() as snapshot:
            assert [key for key, _ in snapshot.scan(VISITORS)] == [(1, 1), (1, 2), (1, 3)]


@every_place
async def test_first_visits_of_two_writers_with_reserved_numbers_do_not_run_again(place: Place):
    hands = VisitorNumbers(at_once=4), VisitorNumbers(at_once=4)

    def first_visits(of: int, devices: range) -> tuple[list[NextNumber], list[Any]]:
        handed_out = hands[of].hand_out([1] * len(devices))
        given = zip(devices, handed_out, strict=True)
        return handed_out, [job(visit(device), next_number=next_number) for device, next_number in given]

    async with writers(place) as two:
        for again, devices in ((1, (range(1), range(1, 2))), (0, (range(10, 13), range(20, 23)))):
            before = two.first.statistics().repeated
            made = [first_visits(of, devices[of]) for of in (0, 1)]
            outcomes = await two.interleaved(made[0][1], made[1][1])
            assert two.first.statistics().repeated == before + again, "only who takes numbers has to agree"
            for hand, (handed_out, _), recorded in zip(hands, made, outcomes, strict=True):
                for next_number, one in zip(handed_out, recorded, strict=True):
                    hand.give_back(1, next_number, one.new_number)
        with two.second.read() as snapshot:
            assert sorted(key[1] for key, _ in snapshot.scan(VISITORS, 1)) == list(range(1, 9))
            assert snapshot.get(VISITOR_COUNTS, 1) == 8


@every_place
async def test_the_operation_log_of_two_writers_reproduces_the_store(place: Place):
    async with writers(place) as two:
        with two.second.read() as snapshot:
            copy = raw_rows(snapshot)
        two.second.change_log(partial(operations.begin, following=Following(bytes(16), 0, "folder", 64 << 20)))
        for device in range(3):
            await two.interleaved(
                [job(visit(device)), job(visit(device + 1)), fail], [job(visit(device)), job(visit(9))]
            )
        await two.second.write(writes([lambda transaction: transaction.delete(META, "none")]))
        with two.second.read() as snapshot:
            for _, packed in operations.batches(snapshot, 1):
                for table, rows in unpack_batch(packed).changes.items():
                    for key, raw in rows.items():
                        if raw is None:
                            copy.pop((table, key), None)
                        else:
                            copy[table, key] = raw
            assert copy == raw_rows(snapshot)


def fail(transaction: Transaction) -> None:
    transaction.put(BALANCES, (7,), 1)
    raise LookupError("a job that changed its mind")


def raw_rows(snapshot: Snapshot) -> dict[tuple[str, bytes], bytes]:
    tables = [table for table in TABLES if table not in (FOLLOWING, OPERATIONS)]
    return {(table.name, key): raw for table in tables for key, raw in snapshot.unchecked(table, b"")}


@pytest.mark.slow
def test_two_processes_under_load_keep_every_sum_exact(tmp_path: Path):
    """Each with its own loop and threads, on one file, for one organization; the sums are among the invariants."""
    groups, credit = 6, 10**9
    found = open_directory(tmp_path, inline, WORLD.entropy)

    def prepare(transaction: Transaction) -> None:
        create_organization(transaction, organization_id="org_x", name="x", now_ms=0, rate_limit_per_s=0)
        add_credit(transaction, 1, entry_id=WORLD.request_id(0), micros=credit, now_ms=0, note="")

    assert found.store.write_now([prepare]) == [None]
    found.store.close()
    command = [sys.executable, "-m", "tests.support.writer_process", str(tmp_path)]
    processes = [start_text([*command, str(number), str(groups)]) for number in range(2)]
    assert [process.stdout.readline() for process in processes if process.stdout] == ["ready\n"] * 2
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=60)[0] for process in processes] == [f"{groups * GROUP}\n"] * 2
    found = open_directory(tmp_path, inline, WORLD.entropy)
    with found.store.read() as snapshot:
        assert list(violations(snapshot)) == []
        events = snapshot.count(EVENTS)
        assert snapshot.get(BALANCES, 1) == credit - PRICE * events
    found.store.close()
    assert events == 2 * groups * GROUP + DEVICES


def start_text(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


PAGE_BYTES, COMMIT_AT = 4096, 144
"""Where LMDB has the number of a commit on a meta page."""


def test_an_unfinished_commit_is_not_corruption_and_the_next_replaces_it(tmp_path: Path):
    """A process that is killed in the last moment of a commit leaves its meta page; others see the one before."""
    with opened_engine(tmp_path) as engine:
        for number in range(20):
            engine.write(lambda writer, number=number: writer.put("rows", b"key", b"%d" % number))
        take_back_the_last_commit(tmp_path)
        with closing(engine.read()) as reader:
            assert reader.get("rows", b"key") == b"18"
        engine.check(CheckDepth.EVERYTHING)
        engine.write(lambda writer: writer.put("rows", b"other", b"20"))
        with closing(engine.read()) as reader:
            assert (reader.get("rows", b"key"), reader.get("rows", b"other")) == (b"18", b"20")
        engine.check(CheckDepth.EVERYTHING)


@contextmanager
def opened_engine(directory: Path) -> Generator[LmdbEngine]:
    engine = LmdbEngine.open(directory, map_bytes=64 << 20)
    engine.open_tables(["rows"], create=True)
    yield engine
    engine.close()


def take_back_the_last_commit(directory: Path) -> None:
    """As if its process had been killed before others were shown its number, which is in the lock file."""
    with (directory / "data.mdb").open("rb") as file:
        metas = [file.read(PAGE_BYTES)[COMMIT_AT : COMMIT_AT + 8] for _ in range(2)]
    newest = max(metas, key=partial(int.from_bytes, byteorder="little"))
    with (directory / "lock.mdb").open("r+b") as file:
        file.seek(file.read(256).index(newest))
        file.write((int.from_bytes(newest, "little") - 1).to_bytes(8, "little"))
