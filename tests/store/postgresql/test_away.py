"""A database that takes connections and says nothing: a stopped server, or a packet filter that drops."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest
import trio
from trio.testing import MockClock

from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.opening import open_store
from svc.kernel.store.postgresql.connection.url import store_url
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.store.postgresql.store import GIVE_UP_S, PostgresqlStore
from svc.world import World
from tests.store.postgresql.test_version import add_one, balance, run_sync
from tests.support.postgresql import USER, Cluster
from tests.support.writes import writes


@pytest.mark.parametrize("what", ["query", "write"])
async def test_a_database_that_is_away_is_given_up_when_clients_would_give_up(
    what: str, cluster: Cluster, database: str, autojump_clock: MockClock
):
    """ADR 50: after four seconds, however long one attempt may take."""
    url = cluster.url(database)
    open_store(url, run_sync).close()
    with closing(PostgresqlEngine.open(url)) as engine, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        port = silent.getsockname()[1]
        store = PostgresqlStore(engine, store_url(f"postgresql://{USER}@127.0.0.1:{port}/svc"), World.real())
        began_s = trio.current_time()
        with pytest.raises(UnavailableError, match="4 seconds"):
            await (store.query(balance) if what == "query" else store.write(writes([add_one], organizations=[1])))
        assert trio.current_time() - began_s == pytest.approx(GIVE_UP_S, abs=0.1)
