"""Leases on a real database: one holder at a time, by the database's clock, and none that was stopped writes."""

from __future__ import annotations

from contextlib import closing

import pytest
import trio
from trio.testing import MockClock

from svc.kernel.store.group import LeaseEpoch
from svc.kernel.store.postgresql.cluster.leases import BELIEVED, Lease, believed_until_s, lease_fence
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.values import int8
from svc.kernel.store.postgresql.connection.wire import Result, Statement, Timeouts, Wire
from tests.store.postgresql.nodes import leader_lease, node, until, with_schema
from tests.support.postgresql import Cluster

LONG_S = 60.0


@pytest.fixture
def url(cluster: Cluster, database: str) -> StoreUrl:
    return with_schema(cluster.url(database))


def age(cluster: Cluster, database: str, seconds: float) -> None:
    """As if so long had passed, for the database."""
    cluster.execute(f"update svc.leases set expires_at = expires_at - make_interval(secs => {seconds})", database)


def row(epoch: int) -> Result:
    return Result([(b"a", int8(epoch))], 1)


async def test_a_holder_trusts_part_of_the_term_from_before_its_request(autojump_clock: MockClock):
    lease = Lease("keeper", "a", term_s=10)
    asked_s = trio.current_time()
    await trio.sleep(3)  # the answer took its time
    lease.learn(row(1), asked_s)
    assert lease.held == LeaseEpoch("keeper", 1)
    began_s = trio.current_time()
    await lease.lost()
    assert trio.current_time() - began_s == pytest.approx(10 * BELIEVED - 3)
    assert lease.held is None
    assert believed_until_s(100, 10) == 108


async def test_a_renewal_extends_the_lease_and_a_refusal_ends_it_at_once(autojump_clock: MockClock):
    lease = Lease("keeper", "a", term_s=10)
    lease.learn(row(1), trio.current_time())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lease.lost)
        await trio.sleep(6)
        lease.learn(row(1), trio.current_time())
        await trio.sleep(6)
        assert lease.is_held()
        lease.learn(Result([], 0), trio.current_time())
        assert not lease.is_held()
    assert trio.current_time() == pytest.approx(12)


async def test_one_node_has_the_lease_and_another_gets_it_when_it_ends(url: StoreUrl):
    first, second = leader_lease("a", LONG_S), leader_lease("b", LONG_S)
    async with trio.open_nursery() as nursery:
        one = node(url, "a", first)
        await one.beat()
        assert first.held == LeaseEpoch("keeper", 1)
        scope = trio.CancelScope()

        async def run_one() -> None:
            with scope:
                await one.run()

        nursery.start_soon(run_one)
        other = node(url, "b", second)
        nursery.start_soon(other.run)
        await until(lambda: other.statistics().beats > 1)
        assert (first.is_held(), second.is_held()) == (True, False)
        scope.cancel()
        await until(second.is_held)
        assert second.held == LeaseEpoch("keeper", 2)
        nursery.cancel_scope.cancel()


async def test_a_vanished_holder_is_replaced_after_the_term_and_not_before(
    cluster: Cluster, database: str, url: StoreUrl
):
    first, second = leader_lease("a", LONG_S), leader_lease("b", LONG_S)
    one, other = node(url, "a", first), node(url, "b", second)
    await one.beat()
    one.close()
    for passed_s in (0, LONG_S / 2):
        age(cluster, database, passed_s)
        await other.beat()
        assert not second.is_held()
    age(cluster, database, LONG_S / 2)
    await other.beat()
    assert second.held == LeaseEpoch("keeper", 2)
    other.close()


async def test_a_write_of_a_stopped_holder_is_rejected_in_its_transaction(url: StoreUrl):
    """It still believes: its clock stood still with it."""
    first, second = leader_lease("a", term_s=0.05), leader_lease("b", term_s=10)
    one, other = node(url, "a", first), node(url, "b", second)
    await one.beat()
    first.learn(row(1), trio.current_time() + 60)
    stopped = first.held
    await trio.sleep(0.06)
    await other.beat()
    assert stopped is not None
    assert second.held is not None
    assert first.is_held()
    with closing(await Wire.connect(url)) as wire:
        _, refused, _ = await wire.exchange(
            [Statement(b"begin"), lease_fence([stopped]), Statement(b"rollback")],
        )
        _, held, _ = await wire.exchange([Statement(b"begin"), lease_fence([second.held]), Statement(b"commit")])
    assert refused.rows == []
    assert len(held.rows) == 1
    await one.beat()
    assert not first.is_held()
    for each in (one, other):
        each.close()


async def test_a_lease_cannot_be_taken_during_a_write_of_its_holder(url: StoreUrl):
    """The holder's transaction is open when its term ends: the next holder has the lease when that is over."""
    first, second = leader_lease("a", term_s=0.05), leader_lease("b", term_s=10)
    one, other = node(url, "a", first), node(url, "b", second)
    await one.beat()
    with closing(await Wire.connect(url)) as wire:
        await wire.exchange([Statement(b"begin"), lease_fence([LeaseEpoch("keeper", 1)])])
        await trio.sleep(0.06)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other.beat)
            await trio.sleep(0.2)
            assert not second.is_held()
            await wire.exchange([Statement(b"commit")])
        assert second.held == LeaseEpoch("keeper", 2)
    for each in (one, other):
        each.close()


async def test_an_expired_lease_is_renewed_if_it_was_not_taken(
    cluster: Cluster, database: str, url: StoreUrl, mock_clock: MockClock
):
    lease = leader_lease("a", LONG_S)
    one = node(url, "a", lease)
    await one.beat()
    age(cluster, database, LONG_S)
    mock_clock.jump(LONG_S)
    assert not lease.is_held()
    await one.beat()
    assert lease.held == LeaseEpoch("keeper", 1)
    one.close()


async def test_of_many_concurrent_requests_one_gets_the_lease(url: StoreUrl):
    leases = [leader_lease(f"node-{number}", term_s=10) for number in range(8)]
    nodes = [node(url, f"node-{number}", lease) for number, lease in enumerate(leases)]
    async with trio.open_nursery() as nursery:
        for each in nodes:
            nursery.start_soon(each.beat)
    assert sum(lease.is_held() for lease in leases) == 1
    for each in nodes:
        each.close()


async def test_the_clock_of_a_session_has_no_effect(url: StoreUrl):
    """Nothing that a node sends is a time: with a shifted time zone in its session the answer is the same."""
    first, second = leader_lease("a", term_s=10), leader_lease("b", term_s=10)
    one = node(url, "a", first)
    await one.beat()

    async def elsewhere(timeouts: Timeouts) -> Wire:
        wire = await Wire.connect(url, timeouts)
        await wire.exchange([Statement(b"set time zone 'Asia/Kathmandu'", prepared=False)])
        return wire

    other = node(url, "b", second, connect=elsewhere)
    await other.beat()
    assert first.is_held()
    assert not second.is_held()
    assert other.living == 2
    for each in (one, other):
        each.close()
