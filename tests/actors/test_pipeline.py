"""What the pipeline does when a part of it fails, and how it ends."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from svc.features.identification.pipeline.messages import Admitted, Failed, Identify, PipelineResult
from svc.features.identification.pipeline.pipeline import Pipeline, run_admission
from svc.features.organizations.jobs import create_organization
from svc.identify.identification import Identified, Submission
from svc.identify.model import RequestFacts
from svc.identify.network.facts import Range
from svc.identify.tables import EVENTS, VISITOR_COUNTS, VISITORS
from svc.kernel.limits.ratelimit import LimitShares
from svc.kernel.net.addresses import Address
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.engine import EngineError, StoreFullError
from svc.kernel.work.mailbox import SLICE_S, Mailbox, OverloadedError, Reply
from svc.world import World
from tests.support.live import PUBLIC_ADDRESS, report
from tests.support.worlds import HeldThreads, failing

HOSTILE = "9.9.9.9"


class Fragile:
    """Ranges that break on one address in a way nobody foresaw."""

    def find(self, address: Address, /) -> Range | None:
        if str(address) == HOSTILE:
            raise RuntimeError("nobody foresaw this")
        return None

    def publishes(self, _: str, /) -> bool:
        return True


def open_store(directory: Path, run_sync: Any) -> Opened:
    found = open_directory(directory, run_sync, World.real().entropy, durable=False, map_bytes=16 << 20)
    made = [
        partial(create_organization, organization_id=f"org_{number}", name="", now_ms=0, rate_limit_per_s=0)
        for number in range(5)
    ]
    found.store.write_now(made)
    return found


def pipeline_over(found: Opened, **capacities: int) -> Pipeline:
    given = {"admission_capacity": 256, "stage_capacity": 8, "batch_limit": 8, **capacities}
    return Pipeline(found.store, Fragile, now_ms=World.real().now_ms, **given)


def submission(device: int, ip: str = PUBLIC_ADDRESS) -> Submission:
    world = World.real()
    return Submission(
        request_id=world.request_id(world.now_ms()),
        new_visitor_id=f"{device:020}",
        at_ms=world.now_ms(),
        organization=1,
        key_id="key_test",
        touched_key=None,
        environment="development",
        sdk_platform="web",
        sdk_version=None,
        origin=None,
        tag=None,
        idempotency=None,
        facts=RequestFacts(ip=ip),
        signals=report(device),
        signals_json=b"{}",
    )


def offer(pipeline: Pipeline, sent: Submission) -> Reply[PipelineResult]:
    reply: Reply[PipelineResult] = Reply()
    pipeline.admission.offer(Identify(sent, 0, None, reply))
    return reply


async def test_a_report_that_breaks_an_adapter_fails_alone(found: Opened):
    pipeline = pipeline_over(found)
    replies = [offer(pipeline, submission(n, HOSTILE if n == 3 else PUBLIC_ADDRESS)) for n in range(6)]
    pipeline.admission.close()
    await pipeline.run()
    outcomes = [(await reply.wait()).outcome for reply in replies]
    assert outcomes[3] == Failed("internal_error")
    assert all(isinstance(outcome, Identified) for outcome in outcomes[:3] + outcomes[4:])
    with found.store.read() as snapshot:
        assert snapshot.count(EVENTS) == 5


@pytest.mark.slow
@pytest.mark.parametrize("ip", [PUBLIC_ADDRESS, HOSTILE])
async def test_other_tasks_run_between_two_slow_reports(ip: str, found: Opened, mock_clock):
    turns = 0
    turns_at_report: list[int] = []

    def ranges() -> Fragile:
        turns_at_report.append(turns)
        mock_clock.jump(SLICE_S)
        return Fragile()

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    now_ms = World.real().now_ms
    pipeline = Pipeline(found.store, ranges, now_ms=now_ms, admission_capacity=64, stage_capacity=8, batch_limit=8)
    for number in range(8):
        offer(pipeline, submission(number, ip))
    pipeline.admission.close()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_turns)
        await pipeline.run()
        nursery.cancel_scope.cancel()
    assert turns_at_report[-1] - turns_at_report[0] >= len(turns_at_report) - 2 == 6


async def test_requests_admitted_before_shutdown_get_a_response(found: Opened, threads: HeldThreads):
    pipeline = pipeline_over(found, stage_capacity=1, batch_limit=2)
    replies = [offer(pipeline, submission(n)) for n in range(20)]
    threads.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipeline.run)
        await wait_all_tasks_blocked()
        pipeline.admission.close()
        threads.release()
    for reply in replies:
        assert isinstance((await reply.wait()).outcome, Identified)


async def test_requests_that_arrive_during_a_commit_share_the_next_commit(found: Opened, threads: HeldThreads):
    pipeline = pipeline_over(found, batch_limit=64, stage_capacity=64)
    before = found.store.statistics().commits
    threads.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipeline.run)
        first = offer(pipeline, submission(0))
        await wait_all_tasks_blocked()
        rest = [offer(pipeline, submission(n)) for n in range(1, 31)]
        await wait_all_tasks_blocked()
        pipeline.admission.close()
        threads.release()
    for reply in (first, *rest):
        await reply.wait()
    at_the_end = 1  # for what the statistics have learned
    assert found.store.statistics().commits == before + 2 + at_the_end


async def test_numbers_reserved_with_a_first_visit_go_to_the_next_visitors(found: Opened):
    pipeline = pipeline_over(found, numbers_at_once=4)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipeline.run)
        for device in (1, 2, 1, 3, 2, 4, 5):  # one after the other
            await offer(pipeline, submission(device)).wait()
        pipeline.admission.close()
    with found.store.read() as snapshot:
        assert [key for key, _ in snapshot.scan(VISITORS)] == [(1, number) for number in (1, 2, 3, 4, 5)]
        assert snapshot.get(VISITOR_COUNTS, 1) == 8


async def test_numbers_of_a_failed_commit_are_not_reused(found: Opened):
    pipeline = pipeline_over(found, numbers_at_once=4)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipeline.run)
        await offer(pipeline, submission(1)).wait()
        with failing(found.store, StoreFullError("no space"), "write"):
            assert (await offer(pipeline, submission(2)).wait()).outcome == Failed("service_unavailable")
        await offer(pipeline, submission(2)).wait()
        pipeline.admission.close()
    with found.store.read() as snapshot:
        assert [key for key, _ in snapshot.scan(VISITORS)] == [(1, 1), (1, 3)]


async def test_a_failed_commit_ends_the_pipeline_and_acknowledges_nothing(found: Opened):
    pipeline = pipeline_over(found)
    reply = offer(pipeline, submission(1))
    with failing(found.store, EngineError("EIO"), "write"), pytest.RaisesGroup(pytest.RaisesExc(EngineError)):
        await pipeline.run()
    with trio.move_on_after(0):
        await reply.wait()
        pytest.fail("nothing may be answered when the commit failed")


async def test_the_statistics_report_the_depth_of_each_mailbox(found: Opened, threads: HeldThreads):
    pipeline = pipeline_over(found, stage_capacity=2, batch_limit=1)
    threads.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipeline.run)
        for number in range(10):
            offer(pipeline, submission(number))
        await wait_all_tasks_blocked()
        waiting = {name: box.waiting for name, box in pipeline.statistics().items()}
        assert waiting["visitor_index"] == waiting["scorer"] == 2, "pressure travels back stage by stage"
        assert waiting["admission"] > 0
        threads.release()
        pipeline.admission.close()


@pytest.mark.slow(0.2)
async def test_a_busy_organization_delays_another_by_at_most_one_batch(found: Opened, threads: HeldThreads):
    """Decisions 4: organizations are admitted in turn, at every stage."""
    recorded: list[int] = []

    def note(organization: int, *_: object) -> None:
        recorded.append(organization)

    capacities = {"admission_capacity": 256, "stage_capacity": 4, "batch_limit": 2}
    pipeline = Pipeline(found.store, Fragile, now_ms=World.real().now_ms, publish=note, **capacities)
    threads.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipeline.run)
        for number in range(64):
            offer(pipeline, submission(number))
        await wait_all_tasks_blocked()
        offer(pipeline, msgspec.structs.replace(submission(99), organization=2))
        pipeline.admission.close()
        threads.release()
    assert len(recorded) == 65
    # Two in the commit, four in each of the two mailboxes after admission, one that waits for a place in each of them,
    # and one in the same batch as itself.
    assert recorded.index(2) <= 13


async def test_a_full_queue_of_one_organization_does_not_affect_others(found: Opened):
    """Decisions 4."""
    pipeline = pipeline_over(found, admission_capacity=8)
    for number in range(2):
        offer(pipeline, submission(number))
    with pytest.raises(OverloadedError):
        offer(pipeline, submission(3))
    for organization in (2, 3, 4):
        for number in range(2):
            offer(pipeline, msgspec.structs.replace(submission(number), organization=organization))
    with pytest.raises(OverloadedError):
        offer(pipeline, msgspec.structs.replace(submission(9), organization=5))


async def test_a_request_with_a_delayed_body_does_not_refill_the_rate_limit():
    """Decisions 4: a limit of two a second, whatever moment the head of a request came at."""
    inbox, scorer = Mailbox[Identify](8), Mailbox[Admitted](8)
    now = submission(1)
    for late_ms in (0, 0, 5_000, 0):
        held = msgspec.structs.replace(now, at_ms=now.at_ms - late_ms)
        inbox.offer(Identify(held, 2, None, Reply()))
    inbox.close()
    await run_admission(inbox, scorer, LimitShares(nonproduction=1, address=1), lambda: now.at_ms)
    assert scorer.statistics().accepted == 2
