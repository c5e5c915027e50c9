"""Decisions 17.4: whatever keeps writes from being stored, the service is not ready, and ready again by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
from psycopg import pq

from tests.crash.test_failing_disk import identify, until_ready_is
from tests.support.acknowledged import shop
from tests.support.postgresql import Cluster
from tests.support.process import PRELOADED, Served, run

SETTINGS = "w.FAILING_S = 1.0; w.SUSPECT_S = 0.5"
QUICK = [PRELOADED, f"import svc.kernel.store.write_health as w, svc.cli; {SETTINGS}; svc.cli.main()"]
"""The program, in which writes that were tried for a second fail: nobody waits for ten."""
ROLE = "writes_what_it_may"

BREAKS = {
    "an exclusive lock": ("begin; lock table svc.events in exclusive mode", "rollback"),
    "an index that is built": ("begin; create index on svc.sql_events (action)", "rollback"),
    "a revoked right": (f"revoke insert on svc.events from {ROLE}", f"grant insert on svc.events to {ROLE}"),
    "a renamed table": ("alter table svc.ledger rename to away", "alter table svc.away rename to ledger"),
    "a read-only database": (
        (
            "do $$ begin "
            "execute format('alter database %I set default_transaction_read_only = on', current_database());"
            "perform pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
            " and pid <> pg_backend_pid(); end $$"
        ),
        (
            "set default_transaction_read_only = off; do $$ begin execute format("
            "'alter database %I reset default_transaction_read_only', current_database()); end $$"
        ),
    ),
    "a rule about rows": (
        "alter table svc.events add constraint short check (octet_length(value) < 64) not valid",
        "alter table svc.events drop constraint short",
    ),
}
FULL = (
    (
        "create function public.fill() returns trigger language plpgsql as "
        "$$ begin raise 'No space left on device' using errcode = 'disk_full'; end $$; "
        "create trigger full_disk before insert on svc.events for each row execute function public.fill()"
    ),
    "drop trigger full_disk on svc.events; drop function public.fill",
)


@contextmanager
def session(cluster: Cluster, database: str) -> Iterator[pq.PGconn]:
    connection = pq.PGconn.connect(cluster.conninfo(database))
    try:
        yield connection
    finally:
        connection.finish()


def execute(connection: pq.PGconn, sql: str) -> None:
    result = connection.exec_(sql.encode())
    assert result.status == pq.ExecStatus.COMMAND_OK, result.get_error_message()


WAITING = ("an exclusive lock", "an index that is built")
"""Breaks in which a write waits until it is given up; in the others it is refused."""
HOW = [
    *(pytest.param(how, marks=pytest.mark.one_case("writes that wait")) for how in WAITING),
    *(pytest.param(how, marks=pytest.mark.one_case("refused writes")) for how in BREAKS if how not in WAITING),
    "a full disk",
]


@pytest.mark.slow(2)
@pytest.mark.parametrize("how", HOW)
async def test_whatever_keeps_writes_from_being_stored_the_service_is_not_ready(
    how: str, cluster: Cluster, database: str, tmp_path: Path
):
    execute_once = cluster.execute
    execute_once(f"do $$ begin create role {ROLE} login; exception when duplicate_object then null; end $$")
    execute_once(f"grant create on database {database} to {ROLE}")
    url = f"postgresql://{ROLE}@127.0.0.1:{cluster.port}/{database}?sslmode=disable"
    data = tmp_path / "data"
    key = shop(data, SVC_STORE=url)
    run("sql", "install", "--data", str(data), SVC_STORE=url)
    broken, mended = BREAKS.get(how, FULL)
    server = Served(data, program=QUICK, SVC_STORE=url)
    try:
        assert await identify(server.port, key) == 200
        with session(cluster, database) as operator:
            execute(operator, broken)
            with sending(server.port, key) as statuses:
                await until_ready_is(server.port, 503, "full" if how == "a full disk" else "failing")
            assert 200 not in statuses
            if how not in ("a full disk", "a rule about rows"):
                assert await identify(server.port, key) == 503, "nothing is acknowledged meanwhile"
                (said, *_) = server.wait_until_said("writes fail: nothing is stored")
                assert said["because"]
            execute(operator, mended)
        await until_ready_is(server.port, 200, "ok")
        assert await identify(server.port, key) == 200
        assert server.terminate() == 0
    finally:
        if server.runs():
            server.kill()
    run("check", "--data", str(data), SVC_STORE=url)


@contextmanager
def sending(port: int, key: str) -> Iterator[list[int | None]]:
    """Identifications all the time, from two threads; their statuses."""
    statuses: list[int | None] = []
    ended = threading.Event()

    def send() -> None:
        while not ended.wait(0.1):
            statuses.append(trio.run(identify, port, key))

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        ended.set()
        for thread in threads:
            thread.join()
