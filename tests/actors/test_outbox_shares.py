"""Several outboxes over one store, under virtual time: each sends to its shares, and shares move between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import trio
import trio.lowlevel
from trio.testing import MockClock

from svc.features.webhooks.queries import Registered
from svc.features.webhooks.sending.outbox import Outbox
from svc.kernel.store.group import LeaseEpoch
from svc.kernel.values.partitions import PARTITIONS, EndpointKey, partition_of
from tests.support.outbox import OutboxWorld
from tests.support.receivers import OK, always

URL = "https://receiver.example/"


class Given:
    """The shares that a test gives one outbox, as `Partitions`."""

    senders = 2

    def __init__(self, shares: Iterable[int]) -> None:
        self.epochs = dict.fromkeys(shares, 1)
        self.leaving: frozenset[int] = frozenset()
        self.given_back: set[int] = set()
        self.dropped: set[LeaseEpoch] = set()
        self._changed = trio.Event()

    def sends(self, queue: EndpointKey) -> bool:
        return partition_of(queue) in self.epochs.keys() - self.leaving

    def lease(self, queue: EndpointKey) -> LeaseEpoch | None:
        return LeaseEpoch(str(partition_of(queue)), self.epochs[partition_of(queue)])

    def is_lost(self, lease: LeaseEpoch | None) -> bool:
        return lease is None or self.epochs.get(int(lease.name)) != lease.epoch

    def drop(self, lost: Iterable[LeaseEpoch]) -> None:
        self.dropped |= set(lost)

    def give_back(self, shares: Iterable[int]) -> None:
        for share in set(shares):
            self.given_back.add(share)
            del self.epochs[share]
            self.leaving -= {share}

    async def changed(self) -> None:
        await self._changed.wait()

    def take(self, shares: Iterable[int]) -> None:
        self.epochs |= dict.fromkeys(shares, 2)
        self._note()

    def lose(self, shares: Iterable[int]) -> None:
        for share in shares:
            del self.epochs[share]
        self._note()

    def ask_back(self, shares: Iterable[int]) -> None:
        self.leaving = frozenset(shares)
        self._note()

    def _note(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


class Two:
    """Two outboxes and who has what; the endpoints are ten of one organization."""

    def __init__(self, world: OutboxWorld) -> None:
        self.world = world
        self.number = world.organization()
        self.endpoints = [world.endpoint(self.number, f"{URL}{place}") for place in range(10)]
        half = PARTITIONS // 2
        self.shares = Given(range(half)), Given(range(half, PARTITIONS))
        self.outboxes = [self._outbox(shares) for shares in self.shares]

    def _outbox(self, shares: Given) -> Outbox:
        return Outbox(self.world.store, self.world.world, self.world.receivers, self.world.secrets_key, shares)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with trio.open_nursery() as nursery:
            for outbox in self.outboxes:
                nursery.start_soon(outbox.run)
            await trio.sleep(0.1)
            yield
            nursery.cancel_scope.cancel()

    def send(self) -> None:
        """One event to all endpoints; both outboxes hear of it."""
        queues = self.world.enqueue(self.number)
        for outbox in self.outboxes:
            outbox.wake(queues)

    def of(self, place: int) -> list[Registered]:
        return [each for each in self.endpoints if self.shares[place].sends(each.queue)]

    def delivered(self) -> list[int]:
        return [outbox.statistics().attempts["delivered"] for outbox in self.outboxes]


async def test_each_node_sends_to_the_endpoints_of_its_shares_and_nothing_is_sent_twice(
    world: OutboxWorld, autojump_clock: MockClock
):
    two = Two(world)
    async with two.running():
        for _ in range(5):
            two.send()
        await trio.sleep(1)
    sent = Counter((post.url, post.event_id) for post in world.receivers.posts)
    assert len(sent) == 50
    assert set(sent.values()) == {1}
    assert two.delivered() == [5 * len(two.of(0)), 5 * len(two.of(1))]
    assert min(two.delivered()) > 0


async def test_a_share_is_released_when_its_attempts_are_recorded_and_the_other_node_continues(
    world: OutboxWorld, autojump_clock: MockClock
):
    two = Two(world)
    moved = two.of(0)[0]
    share = partition_of(moved.queue)
    world.receivers.hold(moved.endpoint.url)
    async with two.running():
        for _ in range(3):
            two.send()
        await trio.sleep(1)
        begun = len(world.receivers.to(moved.endpoint.url))
        two.shares[0].ask_back([share])
        await trio.sleep(1)
        assert two.shares[0].given_back == set()
        assert len(world.receivers.to(moved.endpoint.url)) == begun < 3
        await world.receivers.release(moved.endpoint.url)
        await trio.sleep(1)
        assert two.shares[0].given_back == {share}
        assert len(world.receivers.to(moved.endpoint.url)) == begun
        two.shares[1].take([share])
        await trio.sleep(1)
    assert world.states(moved.queue) == ["delivered"] * 3
    assert len(world.receivers.to(moved.endpoint.url)) == 3


async def test_an_attempt_in_flight_in_a_lost_share_is_repeated_by_the_other_and_recorded_once(
    world: OutboxWorld, autojump_clock: MockClock
):
    two = Two(world)
    moved = two.of(0)[0]
    world.receivers.scripts[moved.endpoint.url] = always(OK, after_s=5)
    async with two.running():
        two.send()
        await trio.sleep(1)
        two.shares[0].lose([partition_of(moved.queue)])
        two.shares[1].take([partition_of(moved.queue)])
        await trio.sleep(10)
        assert two.outboxes[0].statistics().in_flight == 0
    first, second = world.receivers.to(moved.endpoint.url)
    assert (first.event_id, first.body) == (second.event_id, second.body)
    logged = [attempt for attempt in world.attempts(two.number) if attempt.endpoint_id == moved.endpoint.id]
    assert [(attempt.attempt, attempt.error) for attempt in logged] == [(1, None)]


async def test_an_outbox_that_lost_its_shares_drains_at_once(world: OutboxWorld, autojump_clock: MockClock):
    two = Two(world)
    world.receivers.script = always(OK, after_s=5)
    async with two.running():
        two.send()
        await trio.sleep(1)
        began_s = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(two.outboxes[0].drain)
            await trio.lowlevel.checkpoint()
            two.shares[0].lose(list(two.shares[0].epochs))
        assert trio.current_time() - began_s < 1


async def test_rows_of_a_removed_endpoint_are_deleted_by_the_outbox_that_owns_its_share(
    world: OutboxWorld, autojump_clock: MockClock
):
    two = Two(world)
    gone = two.of(0)[0]
    share = partition_of(gone.queue)
    two.shares[0].lose([share])
    async with two.running():
        two.send()
        world.remove(gone)
        for outbox in two.outboxes:
            outbox.removed(gone.queue)
        await trio.sleep(1)
        assert world.deliveries(gone.queue) != []
        two.shares[1].take([share])
        await trio.sleep(1)
        assert world.deliveries(gone.queue) == []
