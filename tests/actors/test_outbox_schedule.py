"""The whole schedule of a delivery, many times over, and what is recovered after it has ended (decisions 8.2).

For more seeds: SEEDS=1000 pytest -n 2 tests/actors/test_outbox_schedule.py -k nine_attempts_in
"""

from __future__ import annotations

import os
import random
from itertools import pairwise
from pathlib import Path

import pytest
import structlog
import trio
from trio.testing import MockClock

from svc.features.webhooks.jobs.deliveries import recover_deliveries
from svc.features.webhooks.queries import Registered, failed_in
from svc.features.webhooks.queues import BACKLOG_OVER
from svc.features.webhooks.records import Attempted
from svc.features.webhooks.retries import JITTER, STEPS_MS
from svc.features.webhooks.sending.outbox import POLL_INTERVAL_S
from svc.kernel.values.ids import first_id
from tests.support.outbox import URL, OutboxWorld, outbox_world
from tests.support.receivers import DOWN, OK, always
from tests.support.worlds import EPOCH_MS

SEEDS = int(os.environ.get("SEEDS", "4"))
OTHER = "https://other.example/"
HOUR_S = 3600
LONGEST_MS = 10_100
"""Of an attempt, which the next one waits for where the step is shorter."""
FAILURES = (
    (10, Attempted(None, "timeout", 10_000, None)),
    (0.02, DOWN),
    (0.5, Attempted(None, "connection_reset", 500, None)),
    (3, Attempted(None, "dns_error", 3_000, None)),
    (0.02, Attempted(301, "redirect", 20, None)),
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_nine_attempts_in_six_and_a_half_to_seven_and_a_half_hours_whatever_fails(
    seed: int, tmp_path: Path, autojump_clock: MockClock
):
    """Twelve endpoints of four organizations: as many jitters, each with failures of its own, some slow."""
    with outbox_world(tmp_path, seed) as world:
        urls: list[str] = []
        for place in range(12):
            if place % 3 == 0:
                number = world.organization()
            url = f"https://r{place}.example/"
            world.endpoint(number, url)
            chance = random.Random(f"{seed}/{place}")
            world.receivers.scripts[url] = lambda _, chance=chance: chance.choice(FAILURES)
            urls.append(url)
        async with world.running():
            await trio.sleep(seed)  # another time makes other ids, and those another jitter
            for number in range(1, 5):
                world.send(number)
            await trio.sleep(8 * HOUR_S)
        for url in urls:
            times = [post.at_ms for post in world.receivers.to(url)]
            assert len(times) == 9
            assert 6.4 <= (times[-1] - times[0]) / 3_600_000 <= 7.5
            for step_ms, (one, next_one) in zip(STEPS_MS, pairwise(times), strict=True):
                off_ms = abs(next_one - one - step_ms)
                assert off_ms <= JITTER * step_ms + LONGEST_MS, "slow failures do not stretch the whole"


def recover(world: OutboxWorld, endpoint: Registered) -> int:
    """As another process does: nobody wakes."""
    now_ms = world.now_ms
    failed = world.read(lambda txn: failed_in(txn, endpoint.queue, range(now_ms), first_id(EPOCH_MS), 10_000))
    return world.do(lambda txn: recover_deliveries(txn, endpoint.queue, failed.event_ids, now_ms))


@pytest.mark.slow
@pytest.mark.parametrize("count", [20, 150])
async def test_dead_letters_of_a_day_of_outage_are_recovered_without_a_restart(
    count: int, world: OutboxWorld, autojump_clock: MockClock
):
    number, endpoint = world.subscribed()
    gone = [Attempted(410, "http_status", 20, None)] * count
    world.receivers.scripts[URL] = lambda _: (0.02, gone.pop() if gone else DOWN)
    async with world.running():
        world.send(number, count)
        await trio.sleep(24 * HOUR_S)
        assert set(world.states(endpoint.queue)) == {"failed"}
        first = {post.event_id: post.body for post in world.receivers.posts}
        world.receivers.scripts[URL] = always(OK)
        tried = len(world.receivers.posts)
        assert recover(world, endpoint) == count
        await trio.sleep(POLL_INTERVAL_S + 60)
        assert recover(world, endpoint) == 0
    assert world.states(endpoint.queue) == ["delivered"] * count
    again = world.receivers.posts[tried:]
    assert {post.event_id: post.body for post in again} == first == world.bodies(number)
    assert len(again) == count


@pytest.mark.slow
async def test_a_delivery_recovered_too_early_gets_nine_more_attempts(world: OutboxWorld, autojump_clock: MockClock):
    number, endpoint = world.subscribed(always(DOWN))
    async with world.running():
        world.send(number)
        await trio.sleep(8 * HOUR_S)
        assert recover(world, endpoint) == 1
        await trio.sleep(8 * HOUR_S)
    assert world.states(endpoint.queue) == ["failed"]
    assert [one.attempt for one in world.attempts(number)] == [*range(1, 10)] * 2
    assert len({post.body for post in world.receivers.posts}) == 1


@pytest.mark.slow
async def test_a_backlog_waiting_for_a_probe_is_sent_at_once_when_the_endpoint_url_changes(
    world: OutboxWorld, autojump_clock: MockClock
):
    """Though events went on joining it, for which it was not counted again."""
    number, endpoint = world.subscribed(always(DOWN))
    async with world.running():
        world.send(number, BACKLOG_OVER + 20)
        await trio.sleep(HOUR_S)
        tried = len(world.receivers.posts)
        world.send(number, 30)
        await trio.sleep(1)
        assert len(world.receivers.posts) - tried <= 1, "a delivery that joins the backlog waits with it"
        world.change(endpoint, url=OTHER)
        world.outbox.wake((endpoint.queue,))
        await trio.sleep(30)
    assert world.states(endpoint.queue) == ["delivered"] * (BACKLOG_OVER + 50)
    assert len(world.receivers.to(OTHER)) == BACKLOG_OVER + 50


@pytest.mark.slow
@pytest.mark.parametrize("ended", ["before the change", "after the change", "after the success"])
async def test_the_first_success_after_an_outage_sends_all_that_wait_whatever_comes_between(
    ended: str, world: OutboxWorld, autojump_clock: MockClock
):
    """A resume or another URL, an attempt that fails even then, a service that ends: at once, or in between."""
    number, endpoint = world.subscribed()
    world.receivers.scripts |= {URL: always(DOWN), OTHER: always(DOWN)}

    async def serve(*, until: str) -> None:
        """An outbox, and what comes between, until it ends there."""
        world.outbox = world.new_outbox()
        async with world.running():
            await trio.sleep(4 * HOUR_S if until == "before the change" else 1)
            if until != "before the change":
                world.change(endpoint, url=OTHER, paused=False)
                world.send(number)
                await trio.sleep(20)
                assert world.states(endpoint.queue).count("delivered") == 0
            if until == "after the success":
                world.receivers.scripts[OTHER] = always(OK)
                world.send(number)
                while "delivered" not in world.states(endpoint.queue):  # noqa: ASYNC110  nobody tells of a commit
                    await trio.sleep(0.0001)

    world.send(number, 20)
    for until in ("before the change", "after the change", "after the success"):
        await serve(until=until)
        if until == ended:
            break
    world.receivers.scripts[URL] = world.receivers.scripts[OTHER] = always(OK)
    world.outbox = world.new_outbox()
    async with world.running():
        world.send(number)
        await trio.sleep(30)
    assert set(world.states(endpoint.queue)) == {"delivered"}


@pytest.mark.slow
async def test_an_endpoint_recovers_by_a_success_and_by_nothing_else(world: OutboxWorld, autojump_clock: MockClock):
    """A changed URL at which it fails too is no recovery: an operator who reads that line stops looking."""
    with structlog.testing.capture_logs() as logged:
        number, endpoint = world.subscribed()
        world.receivers.scripts |= {URL: always(DOWN), OTHER: always(DOWN)}
        async with world.running():
            world.send(number)
            await trio.sleep(HOUR_S)
            world.change(endpoint, url=OTHER)
            world.send(number)
            await trio.sleep(HOUR_S)
            world.receivers.scripts[OTHER] = always(OK)
            world.send(number)
            await trio.sleep(1)
    said = [line["event"] for line in logged if line["event"].startswith("endpoint ")]
    assert said == ["endpoint failing", "endpoint failing", "endpoint recovered"]
