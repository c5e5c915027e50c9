"""Two processes that identify visitors of one busy address: their pipelines over one engine, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from svc.features.checks.invariants import violations
from svc.features.identification.pipeline.messages import (
    Admission,
    Admitted,
    Assessed,
    IdentificationCounters,
    PipelineResult,
)
from svc.features.identification.pipeline.pipeline import Pipeline
from svc.features.identification.pipeline.visitor_index import VisitorIndex
from svc.identify.identification import Identified, assess
from svc.identify.tables import EVENTS
from svc.kernel.store.contention import DECIDED_BY, EndTurn, TurnQueue
from svc.kernel.store.directory import Opened
from svc.kernel.store.local import LocalStore
from svc.kernel.work.mailbox import Mailbox, Reply
from tests.actors.test_pipeline import Fragile, offer, open_store, pipeline_over, submission
from tests.support.worlds import HeldThreads, inline

QUIET = 2
"""An organization that no other process writes for."""


class Process:
    """A pipeline whose commits can be held between their phases."""

    def __init__(self, found: Opened) -> None:
        self.threads = HeldThreads()
        self.store = LocalStore(found.store.engine, self.threads, lambda: 0, trio.current_time)
        limits = {"admission_capacity": 256, "stage_capacity": 64, "batch_limit": 32}
        self.pipeline: Pipeline = pipeline_over(found._replace(store=self.store), **limits)

    def busy(self, *devices: int) -> list[Reply[PipelineResult]]:
        """Identifications of organization 1, all from one address."""
        return [offer(self.pipeline, submission(device)) for device in devices]

    def quiet(self, device: int) -> Reply[PipelineResult]:
        return offer(self.pipeline, msgspec.structs.replace(submission(device), organization=QUIET))

    @property
    def counts(self) -> tuple[int, int]:
        """(commits, jobs that ran again)"""
        done = self.store.statistics()
        return done.commits, done.repeated


@asynccontextmanager
async def two_processes(directory: Path) -> AsyncGenerator[tuple[Process, Process]]:
    """They have met at one address, so that both take turns."""
    found = open_store(directory, inline)
    both = Process(found), Process(found)
    async with trio.open_nursery() as nursery:
        for process in both:
            nursery.start_soon(process.pipeline.run)
        for one, other in (both, reversed(both)):
            one.threads.hold()
            first = one.busy(*range(DECIDED_BY))
            await wait_all_tasks_blocked()
            await answered(other.busy(*range(DECIDED_BY)))
            one.threads.release()
            await answered(first)
            assert one.counts[1] == DECIDED_BY, "all read what the others wrote"
        yield both
        for process in both:
            process.pipeline.admission.close()
    with found.store.read() as snapshot:
        assert list(violations(snapshot)) == []
    found.store.close()


async def answered(replies: list[Reply[PipelineResult]]) -> None:
    for reply in replies:
        assert isinstance((await reply.wait()).outcome, Identified)


async def test_whoever_is_elsewhere_waits_for_no_turn_and_who_comes_meanwhile_shares_it(
    tmp_path: Path, autojump_clock: MockClock
):
    async with two_processes(tmp_path) as (one, other):
        before = one.counts, other.counts
        one.threads.hold()
        first = one.busy(*range(8))
        await wait_all_tasks_blocked()
        assert one.threads.waiting == 1, "it has its turn"
        second = other.busy(*range(8))
        await answered([other.quiet(90)])
        await answered([other.quiet(91)])
        second += other.busy(*range(8, 12))
        await wait_all_tasks_blocked()
        assert other.threads.waiting == 0
        assert not any(reply.is_set for reply in second)
        one.threads.release()
        await answered(first + second)
        assert one.counts == (before[0][0] + 1, before[0][1])
        assert other.counts == (before[1][0] + 3, before[1][1]), "one for each of the quiet ones, one for all others"
        with one.store.read() as snapshot:
            assert snapshot.count(EVENTS) == 4 * DECIDED_BY + 22


async def test_a_turn_that_is_free_is_taken_for_all_of_a_batch(tmp_path: Path, autojump_clock: MockClock):
    async with two_processes(tmp_path) as (one, _):
        before = one.counts
        began = trio.current_time()
        await answered([*one.busy(1, 2, 3), one.quiet(90)])
        assert one.counts == (before[0] + 1, before[1])
        assert trio.current_time() == began


async def test_a_process_that_ends_as_its_turn_comes_or_while_it_writes_gives_the_turn_back(
    tmp_path: Path, autojump_clock: MockClock
):
    async with two_processes(tmp_path) as (one, other):
        with trio.CancelScope() as ending:
            one.threads.hold()
            replies = one.busy(1)
            await wait_all_tasks_blocked()
            other.store.turns = EndingQueue(other.store, ending)
            async with trio.open_nursery() as nursery:
                unanswered = await started(other, nursery)
                one.threads.release()
        await answered(replies)
        await answered(one.busy(2))
        other.store.turns = TurnQueue(other.store.engine.take_turn, trio.current_time)
        other.threads.hold()
        with trio.CancelScope() as ending:
            async with trio.open_nursery() as nursery:
                unanswered += await started(other, nursery)
                assert other.threads.waiting == 1
                ending.cancel()
        other.threads.release()
        began = trio.current_time()
        await answered(one.busy(3))
        assert trio.current_time() == began
        assert not any(reply.is_set for reply in unanswered)


async def started(process: Process, nursery: trio.Nursery) -> list[Reply[PipelineResult]]:
    """A visitor index of its own, with an identification."""
    index, inbox = VisitorIndex(process.store, lambda _: None, IdentificationCounters()), Mailbox[Assessed](8)
    sent, reply = submission(2), Reply[PipelineResult]()
    await inbox.put(Assessed(assess(sent, Fragile()), Admitted(sent, Admission(0, 0), reply)))
    nursery.start_soon(index.run, inbox, 8)
    await wait_all_tasks_blocked()
    return [reply]


class EndingQueue(TurnQueue):
    """Its process ends at the moment at which it gets a turn."""

    def __init__(self, store: LocalStore, ending: trio.CancelScope) -> None:
        super().__init__(store.engine.take_turn, trio.current_time)
        self._ending = ending

    def take(self) -> EndTurn | None:
        end = super().take()
        if end is not None:
            self._ending.cancel()
        return end
