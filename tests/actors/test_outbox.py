"""The outbox under virtual time: what is sent when, to whom, how much of it at once, and what survives."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from svc.features.webhooks.jobs.endpoints import Queued
from svc.features.webhooks.queries import Registered, find_endpoint
from svc.features.webhooks.queues import BACKLOG_OVER
from svc.features.webhooks.records import Attempted
from svc.features.webhooks.sending.outbox import BRING_FORWARD_S, POLL_INTERVAL_S
from svc.kernel.store.store import StoreFullError
from svc.kernel.values.refusals import Refusal
from tests.support.effort import effort
from tests.support.outbox import URL, OutboxWorld, outbox_world
from tests.support.receivers import DOWN, OK, Post, always
from tests.support.simulation import seeded_scheduling
from tests.support.worlds import EPOCH_MS, failing

TIMEOUT = Attempted(None, "timeout", 10_000, None)
HOUR = 3600


def status(world: OutboxWorld, registered: Registered) -> str:
    query = partial(find_endpoint, number=registered.queue.organization, endpoint_id=registered.endpoint.id)
    found = world.read(query)
    assert found is not None
    return found.endpoint.status


def queued_test(world: OutboxWorld, registered: Registered) -> Queued | Refusal:
    queued = world.queue_test(registered)
    if isinstance(queued, Queued):
        world.outbox.wake((queued.queue,))
    return queued


async def test_the_outbox_sleeps_while_nothing_is_due(world: OutboxWorld, autojump_clock: MockClock):
    """Between two attempts it reads the store only to look for what other processes have committed."""
    number, _ = world.subscribed(always(DOWN))
    reads = 0
    read = world.store.read

    def counted() -> Any:
        nonlocal reads
        reads += 1
        return read()

    async with world.running():
        world.send(number)
        await trio.sleep(400)
        world.store.read = counted  # between the fourth attempt and the fifth
        await trio.sleep(300)
        del world.store.read
    assert len(world.receivers.posts) == 4
    assert reads == 300 // POLL_INTERVAL_S + 300 // BRING_FORWARD_S


async def test_deliveries_committed_by_another_process_are_found(world: OutboxWorld, autojump_clock: MockClock):
    number, _ = world.subscribed()
    async with world.running():
        await trio.sleep(1)
        world.enqueue(number)  # and nobody wakes
        await trio.sleep(POLL_INTERVAL_S + 1)
    assert len(world.receivers.posts) == 1


@pytest.mark.slow(0.3)
async def test_a_slow_and_a_dead_endpoint_delay_no_other(world: OutboxWorld, autojump_clock: MockClock):
    number, healthy = world.subscribed()
    for hole in range(9):
        url = f"https://hole{hole}.example/"
        world.endpoint(number, url, always(TIMEOUT, 10))
    async with world.running():
        for _ in range(120):
            world.send(number)
            await trio.sleep(0.5)
    delays = [
        post.at_ms - EPOCH_MS - 500 * order for order, post in enumerate(world.receivers.to(healthy.endpoint.url))
    ]
    assert len(delays) == 120
    assert max(delays) < 100
    assert all(world.receivers.most_open[f"https://hole{hole}.example/"] <= 2 for hole in range(9))


@pytest.mark.slow
@pytest.mark.parametrize("count", [130, 390])
async def test_slow_endpoints_of_many_organizations_delay_no_other(
    world: OutboxWorld, autojump_clock: MockClock, count: int
):
    """They accept after nine seconds, as their first deliveries show."""
    healthy = world.organization()
    world.endpoint(healthy, URL)
    slow = [world.organization() for _ in range(count // 10)]
    for place in range(count):
        endpoint = world.endpoint(slow[place % len(slow)], f"https://slow{place}.example/").endpoint
        world.receivers.scripts[endpoint.url] = always(OK._replace(duration_ms=9_000), 9)
    async with world.running():
        for number in slow:
            world.send(number)
        await trio.sleep(60)
        for number in slow:
            world.send(number, 4)
        await trio.sleep(1)
        for _ in range(20):
            world.send(healthy)
            await trio.sleep(0.5)
    assert [(post.at_ms - EPOCH_MS) // 100 for post in world.receivers.to(URL)] == list(range(610, 710, 5))


@pytest.mark.slow
async def test_the_concurrency_limit_rises_with_successes_and_falls_with_failures(
    world: OutboxWorld, autojump_clock: MockClock
):
    number, _ = world.subscribed()
    async with world.running():
        world.send(number, 30)
        await trio.sleep(0.05)
        assert world.receivers.most_open[URL] == 2
        world.send(number, 300)
        await trio.sleep(60)
        assert world.receivers.most_open[URL] == 8
        world.receivers.scripts[URL] = always(DOWN)
        world.send(number, 40)
        await trio.sleep(2)
        world.receivers.most_open[URL] = 0
        world.send(number, 40)
        await trio.sleep(2)
        assert world.receivers.most_open[URL] == 1


@pytest.mark.slow
async def test_an_organization_never_has_more_than_32_open_requests(world: OutboxWorld, autojump_clock: MockClock):
    number = world.organization()
    for place in range(10):
        url = f"https://r{place}.example/"
        world.endpoint(number, url, always(OK, 0.5))
    async with world.running():
        world.send(number, 200)
        await trio.sleep(120)
    assert len(world.receivers.posts) == 2000
    assert world.receivers.most_open_in_all == 32


@pytest.mark.slow
async def test_an_outage_with_a_backlog_uses_few_attempts_and_recovers_in_minutes(
    world: OutboxWorld, autojump_clock: MockClock
):
    number, endpoint = world.subscribed(always(DOWN))
    async with world.running():
        world.send(number, 10 * BACKLOG_OVER)
        await trio.sleep(6 * HOUR)
        burned = len(world.receivers.posts)
        assert status(world, endpoint) == "failing"
        assert "failed" not in world.states(endpoint.queue)
        world.receivers.scripts[URL] = always(OK)
        await trio.sleep(600)
    assert burned < 140
    assert world.states(endpoint.queue) == ["delivered"] * 10 * BACKLOG_OVER
    assert status(world, endpoint) == "active"
    assert world.receivers.most_open[URL] == 8, "the window has opened again"


@pytest.mark.slow
@pytest.mark.parametrize(("endpoints", "events"), [(1, 400), (9, 100), (1, 4)])
async def test_after_a_short_outage_the_first_delivery_comes_within_seconds(
    world: OutboxWorld, autojump_clock: MockClock, endpoints: int, events: int
):
    """Decisions 17.7: however many deliveries wait."""
    number, urls = world.organization(), [f"https://r{place}.example/" for place in range(endpoints)]
    queues = [world.endpoint(number, url).queue for url in urls]
    for url in urls:
        world.receivers.scripts[url] = always(DOWN)
    async with world.running():
        for _ in range(20):
            world.send(number, events // 20 or 1)
            await trio.sleep(1)
        for url in urls:
            world.receivers.scripts[url] = always(OK)
        await trio.sleep(15)
        for queue in queues:
            assert "delivered" in world.states(queue)
        await trio.sleep(45)
    for queue in queues:
        assert set(world.states(queue)) == {"delivered"}


@pytest.mark.slow
async def test_the_first_success_after_an_outage_makes_all_that_wait_due(world: OutboxWorld, autojump_clock: MockClock):
    """Decisions 17.7: whatever their own schedule says."""
    number, endpoint = world.subscribed(always(DOWN))
    async with world.running():
        world.send(number, 90)
        await trio.sleep(HOUR)
        tried = len(world.receivers.posts)
        world.receivers.scripts[URL] = always(OK)
        await trio.sleep(60)
        assert len(world.receivers.posts) == tried, "all of them wait for half an hour"
        world.send(number)
        await trio.sleep(30)
    assert world.states(endpoint.queue) == ["delivered"] * 91
    assert world.violations() == []


async def test_a_new_webhook_costs_one_commit_and_one_that_waited_for_the_process_two(
    world: OutboxWorld, autojump_clock: MockClock
):
    """ADR 163: what the process has committed shows that the disk takes commits."""
    number, _ = world.subscribed(always(OK))
    async with world.running():
        await trio.sleep(1)
        before = world.store.commits
        world.send(number)
        await trio.sleep(1)
        assert world.store.commits == before + 2, "the event, and what came of the attempt"
    world.send(number)
    before = world.store.commits
    async with world.running(world.new_outbox()):
        await trio.sleep(1)
    assert world.store.commits == before + 2, "the delivery as it is, and what came of the attempt"
    assert len(world.receivers.posts) == 2


@pytest.mark.slow
async def test_a_few_pending_deliveries_keep_their_own_schedule_in_an_outage(
    world: OutboxWorld, autojump_clock: MockClock
):
    number, endpoint = world.subscribed(always(DOWN))
    async with world.running():
        world.send(number, 20)
        await trio.sleep(9 * HOUR)
    assert world.states(endpoint.queue) == ["failed"] * 20
    assert len(world.receivers.posts) == 180


async def test_a_queued_test_delivery_ends_unsent_when_the_endpoint_is_paused(
    world: OutboxWorld, autojump_clock: MockClock
):
    number, endpoint = world.subscribed()
    assert isinstance(queued_test(world, endpoint), Queued)
    world.change(endpoint, paused=True)
    async with world.running():
        await trio.sleep(1)
    assert world.receivers.posts == []
    (logged,) = world.attempts(number)
    assert (logged.status, logged.error, logged.response_code) == ("failed", "paused", None)
    assert queued_test(world, endpoint) == Refusal("webhook_paused")


@pytest.mark.slow(0.3)
async def test_a_test_delivery_skips_the_backlog_and_its_success_ends_the_outage(
    world: OutboxWorld, autojump_clock: MockClock
):
    number, endpoint = world.subscribed(always(DOWN))
    async with world.running():
        world.send(number, 3 * BACKLOG_OVER)
        await trio.sleep(HOUR)
        world.receivers.scripts[URL] = always(OK)
        queued = queued_test(world, endpoint)
        assert isinstance(queued, Queued)
        await trio.sleep(0.2)
        assert str(queued.event_id) in {post.event_id for post in world.receivers.posts}
        await trio.sleep(60)
    assert set(world.states(endpoint.queue)) == {"delivered"}


async def test_a_restart_resends_what_was_in_flight_and_loses_nothing(world: OutboxWorld, autojump_clock: MockClock):
    number, endpoint = world.subscribed(always(OK, 5))
    async with world.running():
        world.send(number, 20)
        await trio.sleep(12)  # two by two: four delivered, two under way
    assert world.states(endpoint.queue).count("delivered") == 4
    async with world.running(world.new_outbox()):
        await trio.sleep(60)
    assert world.states(endpoint.queue) == ["delivered"] * 20
    arrived = [post.event_id for post in world.receivers.posts]
    assert len(set(arrived)) == 20
    assert len(arrived) == 22, "only what was in flight came twice"
    assert {post.event_id: post.body for post in world.receivers.posts} == world.bodies(number)


async def test_a_drain_starts_nothing_new_and_waits_for_requests_in_flight(
    world: OutboxWorld, autojump_clock: MockClock
):
    number, endpoint = world.subscribed(always(OK, 5))
    async with world.running() as outbox:
        world.send(number, 20)
        await trio.sleep(1)
        began = trio.current_time()
        await outbox.drain()
        assert 3 < trio.current_time() - began < 5
        await trio.sleep(20)
    assert world.states(endpoint.queue).count("delivered") == 2
    assert len(world.receivers.posts) == 2


async def test_attempts_made_while_the_store_is_full_are_recorded_later(world: OutboxWorld, autojump_clock: MockClock):
    number, endpoint = world.subscribed()
    async with world.running():
        await world.first_attempt()
        with failing(world.store, StoreFullError("no space"), "write"):
            world.send(number, 5)
            await trio.sleep(30)
            assert len(world.receivers.posts) == 2, "nothing is sent that could not be written down"
        await trio.sleep(5)
    assert world.states(endpoint.queue) == ["delivered"] * 5
    assert len(world.receivers.posts) == 5


async def test_a_transport_error_fails_one_attempt_and_not_the_outbox(world: OutboxWorld, autojump_clock: MockClock):
    number = world.organization()
    bad, good = world.endpoint(number, URL), world.endpoint(number, "https://good.example/")

    def break_off(_: Post) -> Any:
        raise RuntimeError("nobody foresaw this")

    world.receivers.scripts[URL] = break_off
    async with world.running() as outbox:
        world.send(number)
        await trio.sleep(1)
        assert outbox.statistics().attempts == {"delivered": 1, "retrying": 1, "failed": 0}
    assert world.states(bad.queue) == ["retrying"]
    assert world.states(good.queue) == ["delivered"]


@pytest.mark.slow
def test_the_same_seed_sends_the_same_requests_at_the_same_times(tmp_path: Path):
    async def run(directory: Path, seed: int) -> list[Post]:
        chance = random.Random(seed)
        with outbox_world(directory, seed) as world:
            number = world.organization()
            for place in range(4):
                world.endpoint(number, f"https://r{place}.example/")
                world.receivers.scripts[f"https://r{place}.example/"] = lambda _: (
                    chance.uniform(0.01, 2),
                    chance.choice((OK, DOWN, TIMEOUT)),
                )
            async with world.running():
                for _ in range(10):
                    world.send(number, chance.randrange(4))
                    await trio.sleep(chance.uniform(0, 20))
                await trio.sleep(HOUR)
            return world.receivers.posts

    def simulate(name: str, seed: int) -> list[Post]:
        with seeded_scheduling(seed):
            return trio.run(run, tmp_path / name, seed, clock=MockClock(autojump_threshold=0))

    one = simulate("one", 7)
    assert len(one) > 40
    assert one == simulate("other", 7)
    assert one != simulate("third", 8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(effort(2, 6)))
async def test_every_event_arrives_or_is_listed_as_failed(seed: int, tmp_path: Path, autojump_clock: MockClock):
    """Ten endpoints that answer, fail, hang and drop by chance, and an outbox that is cut off repeatedly."""
    chance = random.Random(seed)
    failures = ((10, TIMEOUT), (0.05, DOWN), (0.01, Attempted(None, "connection_reset", 5, None)))

    def respond(_: Post) -> tuple[float, Attempted]:
        return (chance.uniform(0.01, 2), OK) if chance.random() < 0.6 else chance.choice(failures)

    with outbox_world(tmp_path, seed) as world:
        number = world.organization()
        endpoints = [world.endpoint(number, f"https://r{place}.example/") for place in range(10)]
        for endpoint in endpoints:
            world.receivers.scripts[endpoint.endpoint.url] = respond
        for _ in range(8):
            async with world.running(world.new_outbox()) as world.outbox:
                for _ in range(5):
                    world.send(number, chance.randrange(4))
                    await trio.sleep(chance.uniform(0, 20))
            assert world.violations() == []
        async with world.running(world.new_outbox()):
            await trio.sleep(12 * HOUR)
        events = world.bodies(number)
        assert len(events) > 20
        for endpoint in endpoints:
            rows = world.deliveries(endpoint.queue)
            ended = {str(UUID(bytes=key.event_id)): delivery.state for key, delivery in rows}
            assert ended.keys() == events.keys()
            assert set(ended.values()) <= {"delivered", "failed"}
            arrived = {post.event_id for post in world.receivers.to(endpoint.endpoint.url)}
            assert {event_id for event_id, state in ended.items() if state == "delivered"} <= arrived
