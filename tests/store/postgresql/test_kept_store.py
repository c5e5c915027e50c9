"""The store of the leader: what a node writes without the lease is refused in its transaction."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from functools import partial

import pytest
import trio

from svc.features.tables import TABLES
from svc.features.webhooks.queries import BEYOND, LEAP_AFTER, attempts_page, queues_with_work
from svc.features.webhooks.records import Attempt
from svc.features.webhooks.tables import ATTEMPTS, DUE
from svc.kernel.access.credentials import new_key
from svc.kernel.access.tables import KEYS, ORGANIZATION_KEYS
from svc.kernel.store.engine import StoreFullError
from svc.kernel.store.group import LeaseLostError
from svc.kernel.store.opening import open_store
from svc.kernel.store.postgresql.cluster.leases import Lease
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.store.postgresql.store import PostgresqlStore
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store
from svc.kernel.store.tables import META
from svc.kernel.tenants.queries import keys_of
from svc.kernel.values.ids import first_id
from svc.kernel.values.partitions import EndpointKey
from svc.world import World
from tests.store.postgresql.nodes import fill_disk, leader_lease, node
from tests.support.postgresql import Cluster
from tests.support.writes import writes


@pytest.fixture
def url(cluster: Cluster, database: str) -> StoreUrl:
    url = cluster.url(database)
    open_store(url, World.real().run_sync).close()
    return url


@asynccontextmanager
async def store_at(url: StoreUrl) -> AsyncGenerator[PostgresqlStore]:
    engine = PostgresqlEngine.open(url)
    engine.open_tables([table.name for table in TABLES])
    with closing(PostgresqlStore(engine, url, World.real())) as store:
        yield store


ATTEMPT = Attempt(
    endpoint=1,
    endpoint_id="whk_1",
    endpoint_url="https://shop.example",
    event_id=bytes(16),
    event="webhook.test",
    environment="live",
    status="delivered",
    response_code=204,
    duration_ms=1,
    attempt=1,
    error=None,
    occurred_at_ms=0,
)


def count_up(transaction: Transaction) -> int:
    value = (transaction.get(META, "next_organization") or 0) + 1
    transaction.put(META, ("next_organization",), value)
    return value


async def written(store: Store) -> int | None:
    return await store.query(lambda snapshot: snapshot.get(META, "next_organization"))


async def test_the_lease_holder_writes_and_is_counted_with_the_store(url: StoreUrl):
    lease = leader_lease("a", term_s=30)
    one = node(url, "a", lease)
    await one.beat()
    async with store_at(url) as store:
        assert await store.kept_by(lease).write(writes([count_up])) == [1]
        assert await store.write(writes([count_up])) == [2]
        assert (store.commits, store.statistics().commits) == (2, 2)
    one.close()


async def test_a_full_disk_that_the_lease_holder_meets_is_that_of_the_store(
    url: StoreUrl, monkeypatch: pytest.MonkeyPatch
):
    lease = leader_lease("a", term_s=30)
    one = node(url, "a", lease)
    await one.beat()
    async with store_at(url) as store:
        kept = store.kept_by(lease)
        with monkeypatch.context() as patched:
            fill_disk(patched)
            with pytest.raises(StoreFullError):
                await kept.write(writes([count_up]))
        assert store.is_full
        assert store.needs_trial_write
        assert await kept.write(writes([count_up])) == [1]
        assert not store.is_full
    one.close()


async def test_without_the_lease_nothing_is_written(url: StoreUrl):
    async with store_at(url) as store:
        with pytest.raises(LeaseLostError):
            await store.kept_by(leader_lease("a")).write(writes([count_up]))
        assert await written(store) is None


async def test_a_former_holder_is_rejected_in_the_transaction(url: StoreUrl):
    """As after a minute of SIGSTOP: by its own clock nothing has happened."""
    stopped, following = leader_lease("a", term_s=0.05), leader_lease("b", term_s=30)
    one, other = node(url, "a", stopped), node(url, "b", following)
    await one.beat()
    async with store_at(url) as store:
        await trio.sleep(0.06)
        await other.beat()
        believes(stopped)
        assert stopped.is_held()
        with pytest.raises(LeaseLostError):
            await store.kept_by(stopped).write(writes([count_up]))
        with pytest.raises(LeaseLostError):
            await store.kept_by(stopped).write(writes([count_up], organizations=[0]))
        assert await written(store) is None
        assert await store.kept_by(following).write(writes([count_up], organizations=[0])) == [1]
    for each in (one, other):
        each.close()


def believes(lease: Lease) -> None:
    """What it was told last, as if that had been now."""
    lease._until_s = trio.current_time() + 60


@pytest.mark.slow
async def test_any_number_of_waiting_endpoints_is_found_in_few_round_trips_each(url: StoreUrl):
    """Each with more deliveries than are read before the rest of a queue is leapt over."""
    waiting = 130

    def fill(transaction: Transaction) -> None:
        for endpoint in range(1, waiting + 1):
            for place in range(LEAP_AFTER + 1):
                transaction.put(DUE, (1, endpoint, 1_000 + place, place.to_bytes(16), 0), b"")

    async with store_at(url) as store:
        store.write_now([fill])
        found: list[EndpointKey] = []
        before = store.exchanges().query_round_trips
        after, has_more = EndpointKey(0, 0), True
        while has_more:
            look = partial(queues_with_work, after=after, limit=256)
            queues, has_more = await store.query(look)
            found += [queue for queue, _ in queues]
            after = found[-1]
        assert found == [EndpointKey(1, endpoint) for endpoint in range(1, waiting + 1)]
        assert store.exchanges().query_round_trips - before < 2 * waiting


async def test_rows_that_an_index_names_are_fetched_together(url: StoreUrl):
    """One that is missing is an error, but only after all of them were asked for."""
    listed = 300

    def fill(transaction: Transaction) -> None:
        for number in range(listed):
            key, _ = new_key(
                key_id=f"key_{number:020}",
                organization=1,
                kind="secret",
                name="",
                environment="production",
                region="us",
                entropy=number.to_bytes(32),
                now_ms=number,
            )
            digest, attempt_id = number.to_bytes(32), first_id(number + 1)
            transaction.put(KEYS, (digest,), key)
            transaction.put(ORGANIZATION_KEYS, (1, number, key.id), digest)
            transaction.put(ATTEMPTS, (1, attempt_id), ATTEMPT)

    async with store_at(url) as store:
        store.write_now([fill])
        before = store.exchanges().query_round_trips
        assert len(await store.query(lambda snapshot: keys_of(snapshot, 1))) == listed
        assert store.exchanges().query_round_trips - before < listed / 10
        before = store.exchanges().query_round_trips
        page = partial(attempts_page, number=1, environment=None, since=first_id(0), before=BEYOND, limit=listed)
        assert len(await store.query(page)) == listed
        assert store.exchanges().query_round_trips - before < listed / 10
