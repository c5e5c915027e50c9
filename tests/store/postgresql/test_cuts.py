"""A connection that is cut at every message of a group's transaction, in both directions: what it does is done once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from uuid import UUID

import pytest

from svc.features.tables import TABLES
from svc.kernel.store.opening import open_store
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.store.postgresql.store import PostgresqlStore
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.billing import LedgerEntry
from svc.kernel.tenants.jobs import enter
from svc.kernel.tenants.tables import BALANCES, HOLDINGS, LEDGER
from svc.world import World
from tests.support.cutting_proxy import CuttingProxy, Direction, messages
from tests.support.postgresql import Cluster
from tests.support.writes import give_balances, writes


def bill(organization: int, number: int, transaction: Transaction) -> int:
    """A line of the ledger under an id of its own, and the sum: a second one would be found in the sum."""
    enter(transaction, organization, UUID(int=number), LedgerEntry("identification", 1, number))
    return number


def hint(organization: int, snapshot: Snapshot) -> Iterator[None]:
    snapshot.has(BALANCES, organization)
    snapshot.has(HOLDINGS, organization)
    yield
    snapshot.has(LEDGER, organization, UUID(int=0).bytes)


def billed(organization: int, snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.get(BALANCES, organization) or 0, len(list(snapshot.scan(LEDGER, organization)))


@pytest.mark.slow(4)
@pytest.mark.parametrize("direction", ["sent", "answered"])
@pytest.mark.parametrize("organizations", [(1,), (1, 2, 3)], ids=["alone", "shared"])
async def test_a_group_interrupted_at_any_message_is_committed_once(
    cluster: Cluster, database: str, direction: Direction, organizations: tuple[int, ...]
):
    """Before each message and in the middle of it, those of the response to the commit among them."""
    shared = len(organizations) > 1
    open_store(cluster.url(database), World.real().run_sync).close()
    with CuttingProxy(cluster.port) as proxy:
        engine = PostgresqlEngine.open(cluster.url(database))
        engine.open_tables([table.name for table in TABLES])
        give_balances(engine, len(organizations))
        store = PostgresqlStore(engine, cluster.url(database, proxy.port), World.real(), writers=2 if shared else 1)

        async def write(number: int) -> list[int | Exception]:
            return await store.write(
                writes(
                    [partial(bill, organization, number) for organization in organizations],
                    organizations=organizations,
                    hints=[partial(hint, organization) for organization in organizations] if shared else [],
                ),
                urgent=shared,
            )

        try:
            written = 0
            for _ in range(8 if shared else 2):  # then all is prepared, and new organizations share a group
                proxy.record()
                written += 1
                await write(written)
            passed = bytes(proxy.recorded[direction])
            places = [place for one in messages(passed) for place in (one.start, (one.start + one.stop) // 2)]
            if direction == "sent":
                places.append(len(passed))
            last = _begin_of_last_exchange(passed)
            for place in places:
                cuts, before = proxy.cuts, store.exchanges()
                # At the next byte: else a node whose commit is next may notice the cut before it sends it, or after.
                proxy.cut_after(direction, place, once=True, at_next=place < len(passed))
                written += 1
                assert await write(written) == [written] * len(organizations)
                assert proxy.cuts == cuts + 1
                after = store.exchanges()
                assert after.retries == before.retries + 1
                assert after.uncertain - before.uncertain == (place >= last), "the commit alone may be in doubt"
                written += 1  # one that has happened has prepared nothing on its next connection
                await write(written)
            for organization in organizations:
                assert await store.query(partial(billed, organization)) == (written, written)
            assert len(places) > 40
        finally:
            store.close()


def _begin_of_last_exchange(passed: bytes) -> int:
    """Where the third exchange of the group begins: after the second sync, or what answers it."""
    ends = [one.stop for one in messages(passed) if passed[one.start] in b"SZ"]
    assert len(ends) == 3
    return ends[1]
