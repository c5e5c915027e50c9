"""A store that a newer program upgrades while a node of an older one serves it."""

from __future__ import annotations

import threading
from functools import partial

import pytest
import trio

from svc.features.schema import SCHEMA
from svc.kernel.store.opening import open_store
from svc.kernel.store.postgresql.version import OtherVersionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.tables import META
from svc.kernel.tenants.tables import BALANCES
from svc.world import World, elapsed_s, pause
from tests.store.postgresql.test_kept_store import store_at
from tests.support.postgresql import Cluster
from tests.support.writes import writes

run_sync = World.real().run_sync


def add_one(transaction: Transaction) -> int:
    value = (transaction.get(BALANCES, 1) or 0) + 1
    transaction.put(BALANCES, (1,), value)
    return value


def balance(snapshot: Snapshot) -> int:
    return snapshot.get(BALANCES, 1) or 0


@pytest.mark.slow(2)
async def test_no_group_writes_to_a_store_that_was_upgraded_while_it_waited(cluster: Cluster, database: str):
    """It waits for the fence that the upgrade holds, and looks at the version when it has it."""
    url, begun = cluster.url(database), threading.Event()

    def upgrade(transaction: Transaction) -> None:
        begun.set()
        until_s = elapsed_s() + 20
        while cluster.execute("select 1 from pg_locks where not granted", database) == []:
            assert elapsed_s() < until_s, "nobody waits"
            pause(0.01)
        transaction.put(BALANCES, (1,), 100)

    newer = partial(open_store, url, run_sync, migrations=(*SCHEMA.migrations, upgrade))
    open_store(url, run_sync).close()
    async with store_at(url) as older:
        assert await older.write(writes([add_one], organizations=[1])) == [1]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, lambda: newer().close())
            await trio.to_thread.run_sync(begun.wait)
            with pytest.raises(OtherVersionError, match="run the newer program"):
                await older.write(writes([add_one], organizations=[1]))
        with pytest.raises(OtherVersionError):
            await older.query(balance)
        assert "run the newer program" in await older.other_version()
        assert older.statistics().commits == 1
    store = newer()
    with store.read() as snapshot:
        assert balance(snapshot) == 100
    store.close()


async def test_a_restored_older_store_is_not_written(cluster: Cluster, database: str):
    url = cluster.url(database)
    open_store(url, run_sync).close()
    async with store_at(url) as store:
        await store.write(writes([lambda transaction: transaction.put(META, ("version",), SCHEMA.version - 1)]))
        with pytest.raises(OtherVersionError, match="restart the service"):
            await store.write(writes([add_one], organizations=[1]))


async def test_the_version_check_takes_no_extra_round_trip(cluster: Cluster, database: str):
    url = cluster.url(database)
    open_store(url, run_sync).close()
    async with store_at(url) as store:
        await store.write(writes([add_one], organizations=[1]))
        before = store.exchanges()
        await store.write(writes([add_one], organizations=[1]))
        await store.query(balance)
        after = store.exchanges()
    assert after.round_trips - before.round_trips == 3
    assert after.query_round_trips - before.query_round_trips == 1
