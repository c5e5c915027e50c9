"""Nodes on a real database: who lives is known, and a database that goes away is waited for."""

from __future__ import annotations

from contextlib import closing

import pytest
import trio

from svc.kernel.store.postgresql.cluster.nodes import LONGEST_PAUSE_S, pause_s
from svc.kernel.store.postgresql.connection.url import StoreUrl, store_url
from svc.kernel.store.postgresql.connection.wire import Statement, Timeouts, Wire
from tests.store.postgresql.nodes import leader_lease, node, until, with_schema
from tests.support.postgresql import Cluster

LONG_S = 60.0


@pytest.fixture
def url(cluster: Cluster, database: str) -> StoreUrl:
    return with_schema(cluster.url(database))


def test_pauses_grow_to_a_limit_with_jitter():
    waits = [pause_s(failures, 1) for failures in range(12)]
    assert waits == sorted(waits)
    assert waits[0] == 0.1
    assert waits[-1] == LONGEST_PAUSE_S
    assert pause_s(3, 0) == pause_s(3, 1) / 2


async def test_every_node_knows_the_number_of_live_nodes(url: StoreUrl):
    nodes = [node(url, f"node-{number}", term_s=LONG_S) for number in range(3)]
    for each in nodes:
        await each.beat()
    for each in nodes:
        await each.beat()
    assert [each.living for each in nodes] == [3, 3, 3]
    for each in nodes:
        each.close()


async def test_a_node_that_leaves_is_gone_at_once_and_a_vanished_one_after_the_term(
    cluster: Cluster, database: str, url: StoreUrl
):
    watching, leaving, vanishing = (node(url, name, term_s=LONG_S) for name in ("a", "b", "c"))
    await vanishing.beat()
    vanishing.close()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(leaving.run)
        await until(lambda: leaving.statistics().beats)
        nursery.cancel_scope.cancel()
    await watching.beat()
    assert watching.living == 2
    cluster.execute(f"update svc.nodes set seen_at = seen_at - make_interval(secs => {LONG_S})", database)
    await watching.beat()
    assert watching.living == 1
    watching.close()


async def test_rows_of_nodes_long_gone_are_deleted(cluster: Cluster, database: str, url: StoreUrl):
    cluster.execute("insert into svc.nodes values ('old', now(), now() - interval '2 hours')", database)
    one = node(url, "a")
    await one.beat()
    one.close()
    assert cluster.execute("select node from svc.nodes", database) == [("a",)]


async def test_an_interrupted_heartbeat_is_repeated_on_another_connection(
    cluster: Cluster, database: str, url: StoreUrl
):
    lease = leader_lease("a", term_s=30)
    one = node(url, "a", lease, term_s=0.3)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.run)
        await until(lease.is_held)
        held = lease.held
        cluster.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid != pg_backend_pid() "
            f"and datname = '{database}'"
        )
        await until(lambda: one.statistics().beats_failed)
        beats = one.statistics().beats
        await until(lambda: one.statistics().beats > beats)
        assert lease.held == held, "nobody else had it meanwhile"
        nursery.cancel_scope.cancel()


async def test_without_a_database_a_node_keeps_its_last_state_and_gives_up_its_leases():
    lease = leader_lease("a")
    nowhere = node(store_url("postgresql://nobody@127.0.0.1:1/none"), "a", lease)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(nowhere.run)
        await until(lambda: nowhere.statistics().beats_failed > 1)
        assert nowhere.living == 1
        assert not nowhere.is_answered()
        assert not lease.is_held()
        nursery.cancel_scope.cancel()


async def test_a_heartbeat_is_one_round_trip(url: StoreUrl):
    made: list[Wire] = []

    async def connect(timeouts: Timeouts) -> Wire:
        made.append(await Wire.connect(url, timeouts))
        return made[-1]

    one = node(url, "a", leader_lease("a", term_s=30), connect=connect)
    await one.beat()
    (wire,) = made
    before = wire.round_trips
    await one.beat()
    assert wire.round_trips - before == 1
    one.close()


@pytest.mark.slow
async def test_a_locked_lease_delays_a_heartbeat_at_most_for_its_timeout(url: StoreUrl):
    lease = leader_lease("b", term_s=0.05)
    first = node(url, "a", leader_lease("a", term_s=0.05))
    await first.beat()
    with closing(await Wire.connect(url)) as wire:
        await wire.exchange([Statement(b"begin"), Statement(b"select * from svc.leases for update")])
        await trio.sleep(0.06)
        other = node(url, "b", lease)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other.run)
            await until(lambda: other.statistics().beats_failed)
            await wire.exchange([Statement(b"rollback")])
            await until(lease.is_held)
            nursery.cancel_scope.cancel()
    first.close()
