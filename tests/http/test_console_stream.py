"""What a live stream writes and when, by a clock of its own."""

from __future__ import annotations

import random
from contextlib import aclosing
from itertools import pairwise
from uuid import UUID

import trio
from trio.testing import MockClock

from svc.features.events.console_routes import HEARTBEAT_S, PING, WRITE_EVERY_S, parts_of
from svc.features.events.live import EVENTS_HELD, LiveEvent, LiveHub, Viewer
from svc.identify.events.listing import EVERYTHING
from svc.identify.records import Event
from tests.store.test_events import event as made_event


def an_event() -> Event:
    return made_event(random.Random(1), 0, environment="production")


async def always() -> bool:
    return True


async def never() -> bool:
    return False


def watched(hub: LiveHub) -> Viewer:
    viewer = hub.watch(1, "production", EVERYTHING, b"credential")
    assert viewer is not None
    return viewer


def publish(hub: LiveHub, count: int = 1, first: int = 0) -> None:
    for number in range(first, first + count):
        hub.publish(1, UUID(int=number), an_event())


async def test_a_quiet_stream_sends_a_heartbeat_every_10_seconds_while_its_session_is_valid(autojump_clock: MockClock):
    hub, looks = LiveHub(1000), list[float]()

    async def holds() -> bool:
        looks.append(trio.current_time())
        return len(looks) < 4

    began = trio.current_time()
    async with aclosing(parts_of(watched(hub), None, holds)) as parts:
        assert [part async for part in parts] == [PING] * 4  # the first one at once
    assert all(after - before >= HEARTBEAT_S for before, after in pairwise([began, *looks]))


async def test_a_busy_stream_checks_its_session_as_often(autojump_clock: MockClock):
    hub = LiveHub(1000)
    async with trio.open_nursery() as nursery:

        async def load() -> None:
            for number in range(10_000):
                publish(hub, first=number)
                await trio.sleep(0.1)

        nursery.start_soon(load)
        async with aclosing(parts_of(watched(hub), None, never)) as parts:
            written = [part async for part in parts]
        assert written[0] == PING
        assert len(written) <= 2 + HEARTBEAT_S / WRITE_EVERY_S, "it ended at the first heartbeat"
        nursery.cancel_scope.cancel()


async def test_events_are_batched_into_at_most_five_writes_a_second(autojump_clock: MockClock):
    hub = LiveHub(1000)
    times: list[float] = []
    shown = 0
    async with trio.open_nursery() as nursery:

        async def load() -> None:
            for number in range(100):
                publish(hub, first=number)
                await trio.sleep(0.02)
            hub.end(b"credential")

        async with aclosing(parts_of(watched(hub), None, always)) as parts:
            await anext(parts)
            nursery.start_soon(load)
            async for part in parts:
                times.append(trio.current_time())
                shown += part.count(b"event: identification\n")
    assert shown == 100
    assert len(times) <= 12
    assert min(after - before for before, after in pairwise(times)) >= WRITE_EVERY_S - 1e-9


async def test_a_resumed_viewer_is_sent_the_number_of_missed_events(autojump_clock: MockClock):
    hub = LiveHub(1000)
    async with aclosing(parts_of(watched(hub), None, always)) as parts:
        await anext(parts)
        publish(hub, EVENTS_HELD + 7)
        part = await anext(parts)
    assert part.count(b"event: identification\n") == EVENTS_HELD
    assert part.endswith(b'event: missed\ndata: {"count": 7}\n\n')


async def test_events_already_sent_from_the_store_are_not_sent_again(autojump_clock: MockClock):
    hub = LiveHub(1000)

    async def resumed():
        return [3, LiveEvent(UUID(int=1), an_event())]

    viewer = watched(hub)
    publish(hub, 3)
    hub.end(b"credential")
    async with aclosing(parts_of(viewer, resumed, always)) as parts:
        _, first, second = [part async for part in parts]
    assert first.startswith(b'event: missed\ndata: {"count": 3}\n\nid: 00000000-0000-0000-0000-000000000001\n')
    assert second.count(b"id: ") == 2
    assert b"000000000001\n" not in second


async def test_a_row_is_encoded_once_for_all_viewers(autojump_clock: MockClock):
    found = LiveEvent(UUID(int=1), an_event())
    assert found.row is found.row


async def test_nothing_is_sent_after_the_end(autojump_clock: MockClock):
    hub = LiveHub(1000)
    viewer = watched(hub)
    hub.end(b"another")
    publish(hub)
    hub.end(b"credential")
    publish(hub)
    assert len(viewer.waiting()) == 1
    viewer.close()
    viewer.close()
    publish(hub)
    assert hub.statistics().open == 0
