"""The outbox at its edges: what it says of itself, what is late, how long things take, and how it starts and ends."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from svc.features.webhooks.jobs.endpoints import Queued, queue_redelivery
from svc.features.webhooks.queries import Registered
from svc.features.webhooks.records import Attempted
from svc.features.webhooks.retries import STEPS_MS
from svc.features.webhooks.sending.outbox import BATCH, DRAIN_S, LATE_S, POLL_INTERVAL_S, QUEUES_PER_POLL, SWEEP_ROWS
from svc.features.webhooks.sending.patience import RETRY_S
from svc.features.webhooks.tables import ATTEMPTS, DELIVERIES, ENDPOINTS, REMOVED_ENDPOINTS
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.store import StoreFullError
from tests.support.outbox import URL, OutboxWorld
from tests.support.receivers import DOWN, OK, always
from tests.support.worlds import EPOCH_MS, failing

OTHER = "https://other.example/"
LOOK_S = POLL_INTERVAL_S


async def run_for(world: OutboxWorld, seconds: float) -> None:
    """The outbox at work for so long; then cut off as a crash would."""
    with trio.move_on_after(seconds):
        await world.outbox.run()


# What is late


async def test_an_outbox_that_has_not_polled_for_a_minute_is_behind(world: OutboxWorld, autojump_clock: MockClock):
    assert not world.outbox.is_behind(), "it has not had a minute to look"
    await trio.sleep(LATE_S + 0.001)
    assert world.outbox.is_behind(), "it has never looked"
    await run_for(world, 1)
    assert not world.outbox.is_behind()
    await trio.sleep(LATE_S - 1.001)
    assert not world.outbox.is_behind(), "it looked less than a minute ago"
    await trio.sleep(0.002)
    assert world.outbox.is_behind()
    await run_for(world, LOOK_S * 4 + LATE_S)
    assert not world.outbox.is_behind(), "it went on looking"


@pytest.mark.parametrize(("waited_s", "late"), [(LATE_S, False), (LATE_S + 0.001, True)])
async def test_a_delivery_that_could_have_been_sent_a_minute_ago_is_late_until_it_is_sent(
    waited_s: float, late: bool, world: OutboxWorld, autojump_clock: MockClock
):
    number, _ = world.subscribed()
    world.enqueue(number)
    await trio.sleep(waited_s)
    await run_for(world, 1)
    assert world.outbox.is_behind() is late
    await run_for(world, 1)
    assert not world.outbox.is_behind()


async def test_deliveries_of_a_paused_or_failing_endpoint_are_not_late(world: OutboxWorld, autojump_clock: MockClock):
    number, paused = world.subscribed()
    world.endpoint(number, OTHER, always(DOWN))
    world.send(number)
    world.change(paused, paused=True)
    await run_for(world, 3600)
    world.send(number)
    await trio.sleep(7200)
    world.receivers.scripts[OTHER] = always(OK, 5)
    await run_for(world, 1)
    assert not world.outbox.is_behind()


@pytest.mark.slow(0.2)
async def test_every_endpoint_queue_is_scanned_and_a_single_late_delivery_is_found(
    world: OutboxWorld, autojump_clock: MockClock
):
    """More queues than are looked at without a pause; the first of them alone is late."""
    numbers = [world.organization() for _ in range(QUEUES_PER_POLL // 8 + 1)]
    for number in numbers:
        for place in range(8):
            world.endpoint(number, f"https://r{number}-{place}.example/")
    world.enqueue(numbers[0])
    await trio.sleep(LATE_S + 1)
    for number in numbers[1:]:
        world.enqueue(number)
    await run_for(world, 2)
    assert world.outbox.is_behind()
    urls = {post.url for post in world.receivers.posts}
    assert len(urls) == len(world.receivers.posts) == 8 * len(numbers)


# What it says of itself


async def test_attempt_outcomes_and_durations_are_counted(world: OutboxWorld, autojump_clock: MockClock):
    number, _ = world.subscribed()
    world.endpoint(number, OTHER)
    before = world.outbox.statistics()
    assert (before.in_flight, before.queues, before.attempts) == (
        0,
        0,
        {"delivered": 0, "retrying": 0, "failed": 0},
    )
    world.receivers.scripts[OTHER] = always(Attempted(410, "http_status", 9_000, None), 9)
    world.receivers.scripts[URL] = always(Attempted(200, None, 1_500, None), 1.5)
    async with world.running():
        world.send(number)
        await trio.sleep(1)
        assert (world.outbox.statistics().in_flight, world.outbox.statistics().queues) == (2, 2)
        await trio.sleep(1)
        assert world.outbox.statistics().in_flight == 1
        await trio.sleep(10)
    said = world.outbox.statistics()
    assert said.in_flight == 0
    assert said.attempts == {"delivered": 1, "retrying": 0, "failed": 1}
    assert said.errors == {"http_status": 1}
    assert said.attempts_s.total == pytest.approx(10.5)
    assert sum(said.attempts_s.counts) == 2
    taken = [bound for bound, count in zip(said.attempts_s.bounds, said.attempts_s.counts, strict=False) if count]
    assert all(bound >= 1.5 for bound in taken)


async def test_an_attempt_records_when_it_began_and_how_long_it_took(
    world: OutboxWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
):
    """Also one that is cut off, and one whose transport breaks."""

    async def break_off(*_: Any) -> Attempted:
        await trio.sleep(0.75)
        raise RuntimeError("nobody foresaw this")

    number, endpoint = world.subscribed(always(OK, 9))
    async with world.running():
        await world.first_attempt()
        await trio.sleep(2)
        world.send(number)
        await trio.sleep(2.5)
        world.remove(endpoint)
        await trio.sleep(1)
        world.endpoint(number, OTHER)
        monkeypatch.setattr(world.receivers, "post", break_off)
        world.send(number)
        await trio.sleep(1)
    cut, broken = sorted(world.attempts(number), key=lambda attempt: attempt.occurred_at_ms)
    assert (cut.error, cut.attempt, cut.occurred_at_ms) == ("removed", 1, EPOCH_MS + 3_000)
    assert cut.duration_ms == 2_500
    assert (broken.error, broken.attempt, broken.duration_ms) == ("connect_error", 1, 750)
    assert broken.occurred_at_ms == EPOCH_MS + 6_500
    assert world.outbox.statistics().errors == {"removed": 1, "connect_error": 1}


async def test_removing_or_pausing_an_endpoint_does_not_lower_its_concurrency_limit(
    world: OutboxWorld, autojump_clock: MockClock
):
    """What we end ourselves says nothing of the receiver."""
    number, endpoint = world.subscribed()
    world.queue_test(endpoint)
    world.change(endpoint, paused=True)
    await run_for(world, 1)
    assert [one.error for one in world.attempts(number)] == ["paused"]
    world.change(endpoint, paused=False)
    world.receivers.scripts[URL] = always(OK, 1)
    async with world.running():
        world.send(number, 10)
        await trio.sleep(0.5)
        assert world.receivers.most_open[URL] == 2


# How it ends


async def test_a_drain_with_nothing_in_flight_ends_at_once(world: OutboxWorld, autojump_clock: MockClock):
    number, _ = world.subscribed()
    async with world.running():
        await trio.sleep(1)
        began = trio.current_time()
        await world.outbox.drain()
        assert trio.current_time() == began
        world.send(number)
        await trio.sleep(LOOK_S + 1)
        assert world.receivers.posts == [], "nothing is begun any more"


async def test_a_drain_waits_no_longer_than_an_attempt_may_take(world: OutboxWorld, autojump_clock: MockClock):
    number, endpoint = world.subscribed(always(OK, 3600))
    async with world.running():
        world.send(number)
        await trio.sleep(1)
        began = trio.current_time()
        await world.outbox.drain()
        assert trio.current_time() - began == DRAIN_S == 10.0
    assert world.states(endpoint.queue) == ["pending"]


async def test_a_drain_waits_until_the_slowest_attempt_is_recorded(world: OutboxWorld, autojump_clock: MockClock):
    number = world.organization()
    queues = [world.endpoint(number, url).queue for url in (URL, OTHER)]
    world.receivers.scripts[URL] = always(OK, 2)
    world.receivers.scripts[OTHER] = always(OK, 6)
    async with world.running():
        world.send(number)
        await trio.sleep(1)
        await world.outbox.drain()
        assert [world.states(queue) for queue in queues] == [["delivered"]] * 2
        assert 5 <= trio.current_time() < 6.5


async def test_an_outbox_that_was_cancelled_can_start_again(world: OutboxWorld, autojump_clock: MockClock):
    """The same outbox: what was in flight is not held against the new beginning."""
    number, endpoint = world.subscribed(always(OK, 5))
    world.send(number, 4)
    await run_for(world, 3)
    assert world.outbox.statistics().in_flight == 2
    await run_for(world, 30)
    assert world.states(endpoint.queue) == ["delivered"] * 4
    assert world.outbox.statistics().in_flight == 0


# What is left behind


async def test_rows_of_a_removed_endpoint_are_deleted_in_bounded_steps_also_at_startup(
    world: OutboxWorld, autojump_clock: MockClock
):
    number = world.organization()
    for url in (URL, OTHER):
        removed: Registered = world.endpoint(number, url)
        for _ in range(SWEEP_ROWS // 2 + 20):
            world.enqueue(number)
        world.remove(removed)

    def rows(table: Any) -> int:
        return world.read(lambda snapshot: snapshot.count(table))

    assert rows(DELIVERIES) == SWEEP_ROWS + 40
    commits = world.store.statistics().commits
    await run_for(world, 5)
    assert [rows(table) for table in (DELIVERIES, REMOVED_ENDPOINTS, ENDPOINTS)] == [0, 0, 0]
    assert 1 < world.store.statistics().commits - commits < 10
    late = world.endpoint(number, URL)
    world.enqueue(number)
    async with world.running():
        await trio.sleep(1)
        assert rows(ATTEMPTS) == 1
        world.remove(late)
        await trio.sleep(1)
    assert [rows(table) for table in (DELIVERIES, REMOVED_ENDPOINTS)] == [0, 0]


async def test_while_the_store_is_full_the_outbox_retries_each_second_and_starts_nothing(
    world: OutboxWorld, autojump_clock: MockClock
):
    number, _ = world.subscribed()
    world.send(number, 3)
    with failing(world.store, StoreFullError("no space"), "write") as tries:
        await run_for(world, 10)
    assert world.receivers.posts == []
    gaps = {round(later - one, 6) for one, later in pairwise(tries)}
    assert gaps == {RETRY_S}


@pytest.mark.parametrize("reads_that_fail", [1, 7])
async def test_a_read_that_fails_repeats_no_webhook_in_flight(
    reads_that_fail: int, world: OutboxWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
):
    number = world.organization()
    for index in range(5):
        url = f"https://r{index}.example/"
        world.endpoint(number, url, always(OK, after_s=5))
    query, failing = world.store.query, [0]

    async def may_fail(read: Any, **how: Any) -> Any:
        if failing[0]:
            failing[0] -= 1
            raise UnavailableError("the database did not respond")
        return await query(read, **how)

    monkeypatch.setattr(world.store, "query", may_fail)
    async with world.running():
        world.send(number)
        await trio.sleep(1)
        failing[0] = reads_that_fail
        world.outbox.poll()
        world.send(number)  # found once the store responds again
        await trio.sleep(30)
    posts = [(post.url, post.event_id) for post in world.receivers.posts]
    assert len(posts) == len(set(posts)) == 10
    assert failing == [0]


async def test_a_wall_clock_that_is_set_back_does_not_put_off_the_next_poll(
    world: OutboxWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
):
    """Decisions 17.1: what another process commits is found within one interval."""
    number, _ = world.subscribed()
    now_ms = world.world.now_ms
    async with world.running():
        await trio.sleep(1)
        monkeypatch.setattr(world.world, "now_ms", lambda: now_ms() - 3_600_000)
        world.enqueue(number)  # without a wake
        await trio.sleep(POLL_INTERVAL_S + 1)
    assert len(world.receivers.posts) == 1


async def test_a_retry_waits_its_step_although_the_wall_clock_is_set_back(
    world: OutboxWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
):
    """Decisions 17.1, and the steps after it are no shorter."""
    number, _ = world.subscribed(always(DOWN))
    now_ms = world.world.now_ms
    async with world.running():
        world.send(number)
        await trio.sleep(1)
        monkeypatch.setattr(world.world, "now_ms", lambda: now_ms() - 3_600_000)
        await trio.sleep(1.1 * sum(STEPS_MS[:3]) / 1000)
    assert len(world.receivers.posts) == 4
    waited_ms = [later.at_ms - one.at_ms for one, later in pairwise(world.receivers.posts)]
    for wait_ms, step_ms in zip(waited_ms, STEPS_MS, strict=False):
        assert 0.85 * step_ms <= wait_ms <= 1.15 * step_ms


async def test_what_a_clock_that_ran_ahead_has_scheduled_waits_one_step_from_the_start(
    world: OutboxWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
):
    """Decisions 17.1: after a start no stored time is later than one full step from that start."""
    number, endpoint = world.subscribed(always(DOWN))
    ahead_ms, now_ms = 400 * 86_400_000, world.world.now_ms
    monkeypatch.setattr(world.world, "now_ms", lambda: now_ms() + ahead_ms)
    world.outbox = world.new_outbox()
    async with world.running():
        world.send(number)
        await trio.sleep(7)  # two attempts
    world.enqueue(number)  # never tried
    monkeypatch.undo()
    world.receivers.scripts[URL] = always(OK)
    world.outbox = world.new_outbox()
    began_s, seen = trio.current_time(), len(world.receivers.posts)
    await run_for(world, 1.1 * STEPS_MS[1] / 1000 + 1)
    assert len(world.receivers.posts) - seen == 2
    assert world.receivers.posts[seen].at_ms / 1000 - EPOCH_MS / 1000 - began_s < 1, "the new one at once"
    assert set(world.states(endpoint.queue)) == {"delivered"}


async def test_a_failing_job_ends_the_outbox_with_its_error(
    world: OutboxWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
):
    """Its supervisor begins again from the disk; what was sent is sent again."""
    number, endpoint = world.subscribed()

    async def failing(jobs: Any, **_: Any) -> Any:
        return [ValueError("nobody foresaw this") for _ in jobs]

    async def fail() -> None:
        await world.first_attempt()
        monkeypatch.setattr(world.store, "write", failing)
        world.send(number)

    with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="nobody foresaw this"), flatten_subgroups=True):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            await run_for(world, 10)
    monkeypatch.undo()
    await run_for(world, 1)
    assert world.states(endpoint.queue) == ["delivered"]
    assert len(world.receivers.posts) == 2


async def test_attempts_that_end_together_are_recorded_together(world: OutboxWorld, autojump_clock: MockClock):
    numbers = [world.organization() for _ in range(8)]
    for number in numbers:
        for place in range(10):
            url = f"https://r{number}-{place}.example/"
            world.endpoint(number, url, always(OK, 1))
    async with world.running():
        await trio.sleep(1)
        for number in numbers:
            world.send(number)
        commits = world.store.statistics().commits
        await trio.sleep(1.5)
        assert 80 / BATCH <= world.store.statistics().commits - commits <= 5
    assert world.outbox.statistics().attempts["delivered"] == 80


# In time


async def test_a_retry_is_sent_when_it_is_due_and_a_wake_is_answered_at_once(
    world: OutboxWorld, autojump_clock: MockClock
):
    """To the millisecond, though looks come at other times."""
    number, endpoint = world.subscribed(always(DOWN))
    async with world.running():
        await world.first_attempt()
        await trio.sleep(0.25)
        world.send(number)
        due_ms = EPOCH_MS + 1_250
        for attempt in range(1, 5):
            await trio.sleep((due_ms - world.now_ms) / 1000 + 0.5)
            assert [post.at_ms for post in world.receivers.posts][attempt - 1 :] == [due_ms]
            ((_, delivery),) = world.deliveries(endpoint.queue)
            assert delivery.attempts == attempt
            due_ms = delivery.due_ms


async def test_a_redelivery_is_sent_in_parallel_to_pending_deliveries(world: OutboxWorld, autojump_clock: MockClock):
    number, endpoint = world.subscribed()
    world.send(number)
    await run_for(world, 1)
    (first,) = world.receivers.posts
    event_id = UUID(first.event_id)
    job = partial(queue_redelivery, number=number, endpoint_id=endpoint.endpoint.id, event_id=event_id)
    queued = world.do(partial(job, now_ms=world.now_ms))
    assert isinstance(queued, Queued)
    await run_for(world, 1)
    assert [post.body for post in world.receivers.posts] == [first.body] * 2
    assert [(one.attempt, one.status) for one in world.attempts(number)] == [(1, "delivered")] * 2


async def test_a_signature_contains_the_second_of_its_attempt(world: OutboxWorld, autojump_clock: MockClock):
    """By which a receiver refuses what is old: each attempt has its own."""
    number, _ = world.subscribed(always(DOWN))
    await trio.sleep(1.999)
    world.send(number)
    await run_for(world, 120)
    assert len(world.receivers.posts) > 2
    for post in world.receivers.posts:
        second = str(post.at_ms // 1000)
        assert (post.headers["X-Svc-Timestamp"], post.headers["webhook-timestamp"]) == (second, second)
