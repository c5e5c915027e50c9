"""The refusal log under virtual time: told at once, then once a minute, at the cost of few commits."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from svc.features.webhooks.sending.refusal_log import RefusalLog
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.store import StoreFullError
from svc.kernel.values.refusals import RefusedRequest
from tests.support.outbox import URL, OutboxWorld
from tests.support.worlds import failing


@asynccontextmanager
async def running(world: OutboxWorld, refusals: RefusalLog | None = None) -> AsyncGenerator[RefusalLog, None]:
    refusals = refusals or RefusalLog(world.store, world.world, world.outbox.wake)
    async with world.running(), trio.open_nursery() as nursery:
        nursery.start_soon(refusals.run)
        yield refusals
        nursery.cancel_scope.cancel()


def refused(world: OutboxWorld, number: int, code: str = "rate_limited", key_id: str = "key_x") -> RefusedRequest:
    return RefusedRequest(
        organization=number,
        key_id=key_id,
        code=code,
        status=429,
        environment="production",
        request_id=world.world.request_id(world.now_ms).bytes,
        occurred_at_ms=world.now_ms,
        origin=None,
        ip_address="81.2.69.160",
    )


def told(world: OutboxWorld) -> list[tuple[int, str, str, int]]:
    """(second, key, code, count) of what the receiver has seen."""
    start = world.receivers.posts[0].at_ms if world.receivers.posts else 0
    said = [(post.at_ms, json.loads(post.body)["data"]) for post in world.receivers.posts]
    return [(round((at_ms - start) / 1000), data["key_id"], data["code"], data["count"]) for at_ms, data in said]


@pytest.mark.slow(0.1)
async def test_a_flood_of_refusals_is_reported_at_once_then_once_a_minute_and_none_is_lost(
    world: OutboxWorld, autojump_clock: MockClock
):
    number, _ = world.subscribed(events=("identification.refused",))
    async with running(world) as refusals:
        for _ in range(900):
            refusals.note(refused(world, number))
            await trio.sleep(0.1)
        commits = world.store.statistics().commits
        await trio.sleep(300)
    events = told(world)
    assert [key for _, key, _, _ in events] == ["key_x"] * 3
    assert [round(second / 60) for second, *_ in events] == [0, 1, 2]
    assert sum(count for *_, count in events) == 900
    assert events[0][-1] == 1
    assert commits < 110, "about one a second"


async def test_refusals_are_counted_per_key_and_code(world: OutboxWorld, autojump_clock: MockClock):
    number, _ = world.subscribed(events=("identification.refused",))
    async with running(world) as refusals:
        refusals.note(refused(world, number))
        refusals.note(refused(world, number, "no_credit"))
        refusals.note(refused(world, number, key_id="key_y"))
        await trio.sleep(90)
    assert sorted(told(world)) == [
        (0, "key_x", "no_credit", 1),
        (0, "key_x", "rate_limited", 1),
        (0, "key_y", "rate_limited", 1),
    ]


async def test_refusals_counted_before_a_restart_are_reported_after_it(world: OutboxWorld, autojump_clock: MockClock):
    number, _ = world.subscribed(events=("identification.refused",))
    async with running(world) as refusals:
        for _ in range(5):
            refusals.note(refused(world, number))
            await trio.sleep(2)
    world.outbox = world.new_outbox()
    async with running(world):
        await trio.sleep(120)
    assert sum(count for *_, count in told(world)) == 5


async def test_refusals_of_the_last_second_are_written_when_the_service_ends(
    world: OutboxWorld, autojump_clock: MockClock
):
    """Also those of a commit that is under way, and where nothing ran, as in a worker that is not the leader."""
    number, _ = world.subscribed(events=("identification.refused",))
    async with running(world) as refusals:
        for _ in range(3):
            refusals.note(refused(world, number))
            await trio.sleep(0.0001)
        await refusals.drain()
    other = RefusalLog(world.store, world.world, world.outbox.wake)
    other.note(refused(world, number))
    await other.drain()
    world.outbox = world.new_outbox()
    async with running(world):
        await trio.sleep(120)
    counts = {post.event_id: post.event["data"]["count"] for post in world.receivers.posts}  # one may come again
    assert sum(counts.values()) == 4


async def test_without_a_subscriber_nothing_is_written(world: OutboxWorld, autojump_clock: MockClock):
    number, _ = world.subscribed()
    world.endpoint(number, URL, environment="test", events=("identification.refused",))
    async with running(world) as refusals:
        await trio.sleep(1)
        commits = world.store.statistics().commits
        for _ in range(20):
            refusals.note(refused(world, number))
            await trio.sleep(1)
        assert world.store.statistics().commits == commits


async def test_a_store_that_is_away_delays_refusal_reports_and_loses_none(
    world: OutboxWorld, autojump_clock: MockClock
):
    """Reads and writes alike."""
    number, _ = world.subscribed(events=("identification.refused",))
    async with running(world) as refusals:
        with failing(world.store, UnavailableError("the database did not respond"), "query", "write"):
            for _ in range(50):
                refusals.note(refused(world, number))
                await trio.sleep(0.1)
        await trio.sleep(120)
    assert sum(count for *_, count in told(world)) == 50


async def test_a_full_store_delays_refusal_reports_and_loses_none(world: OutboxWorld, autojump_clock: MockClock):
    number, _ = world.subscribed(events=("identification.refused",))
    async with running(world) as refusals:
        with failing(world.store, StoreFullError("no space"), "write"):
            for _ in range(5):
                refusals.note(refused(world, number))
                await trio.sleep(2)
        assert world.receivers.posts == []
        await trio.sleep(120)
    assert [count for *_, count in told(world)] == [5]


async def test_the_details_are_of_the_latest_refusal_also_of_one_that_came_while_a_write_failed(
    world: OutboxWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
):
    number, _ = world.subscribed(events=("identification.refused",))
    write, refusals, left = world.store.write, RefusalLog(world.store, world.world, world.outbox.wake), 3
    noted = [refused(world, number)]

    async def may_be_full(jobs: Any, **how: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            noted.append(refused(world, number))
            refusals.note(noted[-1])
            raise StoreFullError("no space")
        return await write(jobs, **how)

    monkeypatch.setattr(world.store, "write", may_be_full)
    async with running(world, refusals):
        refusals.note(noted[0])
        await trio.sleep(120)
    (data,) = [json.loads(post.body)["data"] for post in world.receivers.posts]
    assert (data["count"], data["request_id"]) == (4, str(UUID(bytes=noted[-1].request_id)))
