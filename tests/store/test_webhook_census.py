"""How endpoints stand, over all organizations, some at a time."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import trio

from svc.features.webhooks.queries import EndpointOverview, endpoint_overviews
from svc.features.webhooks.queues import OUTAGE_FAILURES
from svc.features.webhooks.records import Health
from svc.features.webhooks.tables import ENDPOINT_HEALTH, ENDPOINTS
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.work.slices import MAX_AT_ONCE
from svc.serve.metrics.webhooks import count_endpoints
from tests.support.outbox import OutboxWorld, outbox_world

URL = "https://receiver.example/"


def overviews(world: OutboxWorld, limit: int = 99) -> dict[EndpointKey, EndpointOverview]:
    found, after = dict[EndpointKey, EndpointOverview](), EndpointKey(0, 0)
    while part := world.read(lambda snapshot: list(endpoint_overviews(snapshot, after, limit, world.now_ms))):  # noqa: B023
        assert len(part) <= limit
        found |= dict(part)
        after = part[-1][0]
    return found


def usage(world: OutboxWorld) -> list[EndpointOverview]:
    return [*overviews(world).values()]


async def test_endpoints_of_all_organizations_are_found_whatever_the_step_size(tmp_path: Path, autojump_clock):
    with outbox_world(tmp_path) as world:
        numbers = [world.organization() for _ in range(3)]
        queues = [world.endpoint(number, URL).queue for number in numbers for _ in range(3)]
        for limit in (1, 2, 3, 99):
            assert [*overviews(world, limit)] == queues
        world.enqueue(numbers[1])
        assert [standing.due_ms is not None for standing in usage(world)] == [False] * 3 + [True] * 3 + [False] * 3


async def test_a_delivery_scheduled_for_later_is_not_due(tmp_path: Path, autojump_clock):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        world.endpoint(number, URL)
        world.enqueue(number)
        due_ms = world.now_ms
        await trio.sleep(9)
        (standing,) = usage(world)
        assert (standing.status, standing.sent_to_as, standing.due_ms) == ("active", "active", due_ms)
        read = partial(endpoint_overviews, after=EndpointKey(0, 0), limit=9, now_ms=due_ms - 1)
        ((_, earlier),) = world.read(lambda snapshot: list(read(snapshot)))
        assert earlier.due_ms is None


async def test_an_endpoint_with_many_failures_is_treated_as_failing_before_its_status_changes(
    tmp_path: Path, autojump_clock
):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        registered = world.endpoint(number, URL)
        world.enqueue(number)
        world.do(lambda txn: txn.put(ENDPOINT_HEALTH, registered.queue, Health(failures=OUTAGE_FAILURES)))
        (standing,) = usage(world)
        assert (standing.status, standing.sent_to_as) == ("active", "failing")
        world.change(registered, paused=True)
        (standing,) = usage(world)
        assert (standing.status, standing.sent_to_as) == ("paused", "paused")


async def test_a_census_counts_by_status_and_keeps_the_oldest_due(tmp_path: Path, autojump_clock):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        registered = world.endpoint(number, URL)
        world.enqueue(number)
        first_ms = world.now_ms
        await trio.sleep(5)
        late = world.endpoint(number, URL)
        world.enqueue(number)
        world.change(late, paused=True)
        row = world.read(lambda snapshot: snapshot.get(ENDPOINTS, *registered.queue))
        for place in range(MAX_AT_ONCE):
            world.do(lambda txn, at=place: txn.put(ENDPOINTS, (number + 1, at + 1), row))
        found = await count_endpoints(world.world, world.store)
        assert found.endpoints == {"active": 1 + MAX_AT_ONCE, "paused": 1}
        assert found.oldest_due_ms == {"active": first_ms, "paused": world.now_ms}
        for place in range(MAX_AT_ONCE):
            world.do(lambda txn, at=place: txn.delete(ENDPOINTS, number + 1, at + 1))
