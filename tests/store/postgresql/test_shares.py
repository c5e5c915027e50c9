"""Shares of the outbox on a real database: each has one holder while nodes join, leave, die or stand still."""

from __future__ import annotations

import random
from contextlib import closing

import pytest
import trio

from svc.kernel.store.group import LeaseEpoch
from svc.kernel.store.postgresql.cluster.leases import lease_fence
from svc.kernel.store.postgresql.cluster.nodes import Node
from svc.kernel.store.postgresql.cluster.partitions import PartitionLeases, lease_name
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.wire import Statement, Wire
from svc.kernel.values.partitions import PARTITIONS, EndpointKey, part_of, partition_of
from tests.store.postgresql.nodes import connecting, until, with_schema
from tests.support.postgresql import Cluster

LONG_S = 60.0
EVERY = frozenset(range(PARTITIONS))


@pytest.fixture
def url(cluster: Cluster, database: str) -> StoreUrl:
    return with_schema(cluster.url(database))


class Sender:
    """A node, and an outbox that has nothing in flight but in the `busy` shares."""

    def __init__(self, url: StoreUrl, name: str, term_s: float = LONG_S) -> None:
        self.shares = PartitionLeases(name, term_s)
        self.node = Node(connecting(url), name, [], lambda: 0.5, term_s, self.shares)
        self.busy: set[int] = set()

    @property
    def held(self) -> frozenset[int]:
        return self.shares.held

    async def beat(self) -> None:
        await self.node.beat()
        self.shares.give_back(self.shares.leaving - self.busy)

    async def run(self) -> None:
        """As its process does."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.node.run)
            while True:
                await self.shares.changed()
                self.shares.give_back(self.shares.leaving - self.busy)


async def beat(*senders: Sender, times: int = 4) -> None:
    for _ in range(times):
        for each in senders:
            await each.beat()


def close(*senders: Sender) -> None:
    for each in senders:
        each.node.close()


async def test_one_node_takes_all_shares_and_releases_half_when_another_joins(url: StoreUrl):
    one, two = Sender(url, "a"), Sender(url, "b")
    await one.beat()
    assert one.held == frozenset(), "it does not know yet how many there are"
    await one.beat()
    assert one.held == EVERY
    await two.beat()
    await two.beat()
    assert two.held == frozenset()
    assert two.shares.is_below_part
    await one.beat()
    assert one.held == frozenset(range(PARTITIONS // 2))
    await one.beat()
    await two.beat()
    assert two.held == EVERY - one.held
    assert not two.shares.is_below_part
    close(one, two)


async def test_a_share_is_kept_until_its_attempts_in_flight_are_recorded(url: StoreUrl):
    one, two = Sender(url, "a"), Sender(url, "b")
    await beat(one)
    one.busy = {PARTITIONS - 1}
    queue = next(key for number in range(1, 999) if partition_of(key := EndpointKey(number, 1)) == PARTITIONS - 1)
    lease = one.shares.lease(queue)
    await beat(two, one, two)
    assert one.held == frozenset(range(PARTITIONS // 2)) | {PARTITIONS - 1}
    assert not one.shares.sends(queue)
    assert not one.shares.is_lost(lease)
    assert PARTITIONS - 1 not in two.held
    one.busy.clear()
    await beat(one, two, times=2)
    assert one.shares.is_lost(lease)
    assert two.shares.sends(queue)
    close(one, two)


async def test_a_share_to_be_released_is_kept_if_the_other_node_leaves_first(url: StoreUrl):
    one, two = Sender(url, "a"), Sender(url, "b")
    await beat(one)
    one.busy = set(EVERY)
    await two.beat()
    await one.beat()
    assert one.shares.leaving == frozenset(range(PARTITIONS // 2, PARTITIONS))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(two.node.run)
        nursery.cancel_scope.cancel()
    await one.beat()
    assert one.shares.leaving == frozenset()
    assert one.held == EVERY
    close(one)


async def test_no_share_ever_has_two_holders_and_in_the_end_each_has_one(
    url: StoreUrl, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("svc.kernel.store.postgresql.cluster.nodes.LEAVE_S", LONG_S)  # whatever else the machine does
    chance = random.Random(7)
    living = [Sender(url, f"node-{chance.random()}")]
    for step in range(60):
        what = chance.random()
        if what < 0.1 and len(living) < 5:
            living.append(Sender(url, f"node-{chance.random()}"))
        elif what < 0.2 and len(living) > 1:
            leaving = living.pop(chance.randrange(len(living)))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(leaving.node.run)
                nursery.cancel_scope.cancel()
            assert leaving.held == frozenset()
        else:
            each = chance.choice(living)
            each.busy = set(chance.sample(range(PARTITIONS), 20))
            await each.beat()
        held = [share for each in living for share in each.held]
        assert len(held) == len(set(held)), step
    for each in living:
        each.busy.clear()
    await beat(*living, times=6)
    assert sorted(share for each in living for share in each.held) == sorted(EVERY)
    parts = [part_of(rank, len(living)) for rank in range(len(living))]
    assert sorted(len(each.held) for each in living) == sorted(parts)
    close(*living)


@pytest.mark.slow
async def test_the_shares_of_a_vanished_node_are_taken_after_its_term(url: StoreUrl):
    one, two, three = (Sender(url, name, term_s=1.0) for name in "abc")
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def run_three() -> None:
            with scope:
                await three.run()

        nursery.start_soon(run_three)
        for each in (one, two):
            nursery.start_soon(each.run)
        await until(lambda: sorted(map(len, (one.held, two.held, three.held))) == [21, 21, 22])
        three.shares.end()  # nobody tells the database: as of a process that was killed, its leases run on
        scope.cancel()
        await until(lambda: len(one.held) == len(two.held) == PARTITIONS // 2)
        assert one.held | two.held == EVERY
        nursery.cancel_scope.cancel()


async def test_the_lease_fence_accepts_valid_leases_and_rejects_that_of_a_stopped_node(url: StoreUrl):
    one, two = Sender(url, "a", term_s=0.05), Sender(url, "b")
    await one.beat()
    await one.beat()
    stopped = LeaseEpoch(lease_name(0), 1)
    await trio.sleep(0.1)
    assert one.held == frozenset(), "by its own clock, too"
    await beat(two, times=2)
    assert two.held == frozenset(range(PARTITIONS // 2))
    with closing(await Wire.connect(url)) as wire:
        mixed = [stopped, LeaseEpoch(lease_name(1), 2)]
        _, found, _ = await wire.exchange([Statement(b"begin"), lease_fence(mixed), Statement(b"rollback")])
    assert found.rows == [(lease_name(1).encode(),)]
    close(one, two)


async def test_a_write_under_a_share_does_not_block_its_renewal_and_prevents_its_takeover(url: StoreUrl):
    one, two = Sender(url, "a", term_s=0.5), Sender(url, "b")
    await one.beat()
    await one.beat()
    with closing(await Wire.connect(url)) as wire:
        await wire.exchange([Statement(b"begin"), lease_fence([LeaseEpoch(lease_name(5), 1)])])
        await one.beat()  # raises after two seconds where it has to wait for the write
        await trio.sleep(0.6)
        await beat(two, times=2)
        assert two.held == frozenset(range(PARTITIONS // 2 + 1)) - {5}
        await wire.exchange([Statement(b"commit"), Statement(b"delete from svc.nodes where node = 'a'")])
        await beat(two, times=2)
    assert two.held == EVERY
    close(one, two)


async def test_a_heartbeat_with_shares_is_one_round_trip(url: StoreUrl):
    one = Sender(url, "a")
    await one.beat()
    wire = one.node._wire
    assert wire is not None
    before = wire.round_trips
    await one.beat()
    assert wire.round_trips - before == 1
    close(one)


async def test_a_share_rejected_by_the_store_is_given_up(url: StoreUrl):
    one = Sender(url, "a")
    await beat(one, times=2)
    one.shares.drop([LeaseEpoch(lease_name(3), 1), LeaseEpoch(lease_name(4), 7)])
    assert one.held == EVERY - {3}
    close(one)
