"""Nodes behind pgBouncer, which gives a session to each connection, or to each transaction."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.wire import Statement, Timeouts, Wire
from tests.spec.test_nodes import identify, metrics, ready, serving
from tests.support.acknowledged import shop
from tests.support.pgbouncer import Pooling, pgbouncer, program
from tests.support.postgresql import Cluster
from tests.support.process import run as run_program

pytestmark = pytest.mark.skipif(program() is None, reason="no pgbouncer: install the system's package pgbouncer")
SERVERS = {"session": 30, "transaction": 4}
"""Of transactions, fewer than two nodes have connections."""
both = pytest.mark.parametrize("pooling", ["session", "transaction"])


@pytest.mark.slow
@both
def test_two_nodes_respond_as_one_behind_a_pooler(cluster: Cluster, database: str, tmp_path: Path, pooling: Pooling):
    with pgbouncer(cluster, pooling, SERVERS[pooling]) as port:
        url = str(cluster.url(database, port))
        key = shop(tmp_path, SVC_STORE=url)
        with serving(tmp_path, url) as one, serving(tmp_path, url) as two:
            for number in range(20):
                status, first, _ = identify(one, key, f"{number}")
                assert status == 200
                assert identify(two, key, f"{number}")[1]["request_id"] == first["request_id"]
            assert ready(one) == ready(two) == (200, "ok")
            assert (metrics(one)["svc_leases_held"], metrics(two)["svc_leases_held"]) == (1, 0)
            assert metrics(two)["svc_nodes"] == 2
            assert metrics(two)["svc_notices_listening"] == 0, "it looks by itself, since some are lost"
            assert one.terminate() == 0
            two.wait_until_said("leader from now on")
            assert two.terminate() == 0
        run_program("check", "--data", str(tmp_path), "--store", url)


@pytest.mark.slow
@both
def test_behind_a_pooler_no_session_state_remains(cluster: Cluster, database: str, pooling: Pooling):
    """One session, which others have next."""
    look = [
        Statement(sql.encode()) for sql in ("show statement_timeout", "select count(*) from pg_prepared_statements")
    ]
    with pgbouncer(cluster, pooling, 1) as port:
        for _ in range(2):
            with closing(Wire.connect_now(cluster.url(database, port), Timeouts(statement_s=1))) as wire:
                assert wire.is_pooled
                timeout, prepared = wire.exchange_now(look)
                assert timeout.rows == [(b"0",)]
                assert int.from_bytes(prepared.rows[0][0]) == 0
    with closing(Wire.connect_now(cluster.url(database), Timeouts(statement_s=1))) as wire:
        assert not wire.is_pooled
        assert wire.exchange_now(look)[0].rows == [(b"1s",)]


def test_the_process_of_a_session_is_that_of_the_server(cluster: Cluster, database: str):
    """By which a node tells its own notices from those of others; the pooler makes one up."""
    with pgbouncer(cluster, "session") as port:
        connect = partial(Wire.connect_now, StoreUrl("", cluster.url(database, port).parameters))
        with closing(connect()) as wire:
            (found,) = wire.exchange_now([Statement(b"select pg_backend_pid()")])
            assert int.from_bytes(found.rows[0][0]) == wire.process
