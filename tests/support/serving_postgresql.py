"""Serving stores on the test process's PostgreSQL: each data directory has a database of its own, at first with an
empty store.

To create a database with a store's tables takes the server 200 ms of CPU, and each session some more. So the database
of a test that has ended is emptied, in a millisecond, and given to the next one, and so are its idle connections.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import trio
from psycopg import pq
from trio.testing import wait_all_tasks_blocked

from svc.features.checks.invariants import violations
from svc.features.exports.sql_events import DROP_REST, STOP
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.engine import CheckRow, KeyRange, Reader
from svc.kernel.store.opening import open_store
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.wire import Pool, Wire
from svc.kernel.store.postgresql.engine import UNLIMITED, PostgresqlEngine
from svc.kernel.store.postgresql.store import SERVING, PostgresqlStore
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.store import Store
from svc.world import World
from tests.support.postgresql import MISSING, Cluster, shared_cluster
from tests.support.worlds import HeldThreads, inline

TEMPLATE = "template_of_stores"
ROOMY_BYTES = 64 << 20
_LIMIT = """
create table first.room (bytes int8);
create function first.take_room() returns trigger language plpgsql as $$ begin
  update first.room set bytes = bytes - octet_length(new.key) - octet_length(new.value);
  if (select bytes < 0 from first.room) then raise 'No space left on device' using errcode = 'disk_full'; end if;
  return new;
end $$;
create function first.limit_to(bytes int8) returns void language plpgsql as $$ declare name text; begin
  insert into first.room values (bytes);
  for name in select table_name from information_schema.columns where table_schema = 'svc' and column_name = 'value'
  loop
    execute format('create trigger room before insert or update on svc.%I for each row'
      ' execute function first.take_room()', name);
  end loop;
end $$
"""

_numbers = count(1)
_in_use: dict[Path, _Database] = {}
_free: list[_Database] = []
_open: set[_Served] = set()


def url_of(directory: Path, port: int | None = None, *, has_store: bool = True) -> StoreUrl:
    """The database of a data directory: an empty store where it is new, or none yet; `port` of a proxy, if not the
    server's own.
    """
    return _cluster().url(_database_of(directory, has_store=has_store).name, port)


def open_served(
    directory: Path, world: World, serve: StoreUrl | None = None, map_bytes: int = ROOMY_BYTES, **how: Any
) -> Opened:
    """A directory with a pepper, and its store on PostgreSQL; what it serves goes over `serve`, if given. Every query
    sees the newest rows unless `how` says otherwise. Commits wait while the world's threads are held. The disk of a
    database with fewer than `ROOMY_BYTES` is full when so much was written to it.
    """
    database = _database_of(directory)
    if map_bytes < ROOMY_BYTES:
        database.limit(map_bytes)
    opened = open_directory(
        directory,
        world.run_sync,
        world.entropy,
        map_bytes=map_bytes,
        durable=False,
        open_engine=database.open_engine,
    )
    engine = opened.store.engine
    assert isinstance(engine, _Engine)
    return opened._replace(store=_Served(engine, serve, world, {"recent_s": 0.0, **how}))


def directories_in_use() -> frozenset[Path]:
    """Those that have a database."""
    return frozenset(_in_use)


def give_back_databases(but: frozenset[Path] = frozenset()) -> None:
    """When the directories, all `but` these, will not be opened again."""
    for directory in _in_use.keys() - but:
        database = _in_use.pop(directory)
        if database.is_limited:
            database.drop()
        else:
            _free.append(database)


async def analyze(opened: Opened) -> None:
    """Have the database count the rows of a store, and the store look."""
    assert isinstance(opened.store, _Served)
    _cluster().execute("analyze", opened.store.engine.database.name)
    await opened.store.measured()


async def faults(store: Store) -> list[str]:
    """Every broken rule of a store. On PostgreSQL over a session of its database that does nothing else, and so has
    prepared the statements of the rules: a service that ends may close those that it has. Most tables of most tests are
    empty, and are not asked for rows again.
    """
    if not isinstance(store, _Served):
        return await store.query(lambda snapshot: list(violations(snapshot)))
    database = store.engine.database
    empty = database.empty_tables()
    checking = copy(store)
    checking._readers = Pool(database.connect_to_check, 1)
    try:
        found = await checking.query(lambda snapshot: list(violations(Snapshot(_Filled(snapshot.reader, empty)))))
        # Another service on the database may have written in between.
        return found and await checking.query(lambda snapshot: list(violations(snapshot)))
    finally:
        database.of_checks += checking._readers._idle


@contextmanager
def reading(store: Store) -> Iterator[Snapshot]:
    """As `Store.read`, for looks at all tables: on PostgreSQL each one that is not empty is a round trip."""
    if not isinstance(store, _Served):
        with store.read() as snapshot:
            yield snapshot
        return
    empty = store.engine.database.empty_tables()
    with store.read() as snapshot:
        yield Snapshot(_Filled(snapshot.reader, empty))


class _Filled:
    """A reader that knows which tables are empty."""

    def __init__(self, inner: Reader, empty: frozenset[str]) -> None:
        self._inner, self._empty = inner, empty

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get(self, table: str, key: bytes, /) -> bytes | None:
        return None if table in self._empty else self._inner.get(table, key)

    def range(self, asked: KeyRange, /) -> Iterator[tuple[bytes, bytes]]:
        return iter(()) if asked.table in self._empty else self._inner.range(asked)

    def count(self, table: str, /) -> int:
        return 0 if table in self._empty else self._inner.count(table)


async def at_rest() -> None:
    """Wait until every task waits, and none of them for the database."""
    await wait_all_tasks_blocked()
    while any(store.is_busy for store in _open):
        await trio.sleep(0.0005)
        await wait_all_tasks_blocked()


class _Database:
    """A copy of the template, and the sessions of stores that were closed."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        cluster.execute(f"create database {name} template {TEMPLATE}")
        self.name, self.url = name, cluster.url(name)
        self.of_engines: list[Wire] = []
        self.of_stores: list[Wire] = []
        self.of_checks: list[Wire] = []
        self.is_limited = False
        self._session = pq.PGconn.connect(cluster.conninfo(name))

    def open_engine(self, _: Path, /, *, map_bytes: int, durable: bool, check_row: CheckRow) -> PostgresqlEngine:
        return _Engine(self, map_bytes)

    async def connect(self) -> Wire:
        return self.of_stores.pop() if self.of_stores else await Wire.connect(self.url, SERVING)

    async def connect_to_check(self) -> Wire:
        return self.of_checks.pop() if self.of_checks else await Wire.connect(self.url, SERVING)

    def empty(self, *, has_store: bool) -> None:
        """Once every other session has ended: one that was cut off may still be about to commit."""
        kept = [wire.process for wire in (*self.of_engines, *self.of_stores, *self.of_checks) if wire.is_open]
        self._run(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database()"
            f" and pid not in ({', '.join(map(str, (*kept, self._session.backend_pid)))})"
        )
        if self._run("select 1 where to_regclass('svc.sql_events') is not null").ntuples:
            _cluster().execute("; ".join((*STOP, *DROP_REST)), self.name)
        self._run("select first.clear()")
        if has_store:
            self._run("select first.fill()")

    def empty_tables(self) -> frozenset[str]:
        result = self._run("select first.empty()")
        return frozenset(filter(None, (result.get_value(0, 0) or b"").decode().split()))

    def limit(self, room_bytes: int) -> None:
        """For good. A trigger says what the server says of a full disk."""
        if not self.is_limited:
            self._run(f"select first.limit_to({room_bytes})")
            self.is_limited = True

    def drop(self) -> None:
        for wire in (*self.of_engines, *self.of_stores, *self.of_checks):
            wire.close()
        self._session.finish()
        _cluster().execute(f"drop database {self.name} with (force)")

    def _run(self, sql: str) -> pq.PGresult:
        result = self._session.exec_(sql.encode())
        assert result.status == pq.ExecStatus.TUPLES_OK, result.get_error_message()
        return result


class _Engine(PostgresqlEngine):
    def __init__(self, database: _Database, map_bytes: int) -> None:
        super().__init__(database.url, map_bytes)
        self.database = database
        self._give_back(database.of_engines.pop() if database.of_engines else Wire.connect_now(database.url, UNLIMITED))

    def close(self) -> None:
        self.database.of_engines += self._idle
        self._idle = []


class _Served(PostgresqlStore):
    def __init__(self, engine: _Engine, serve: StoreUrl | None, world: World, how: dict[str, Any]) -> None:
        super().__init__(engine, serve or engine.database.url, world, **how)
        self._database = engine.database if serve is None else None
        if self._database is not None:
            self._writers._connect = self._readers._connect = self._database.connect
        _open.add(self)

    @property
    def is_busy(self) -> bool:
        return any(pool._free.borrowed_tokens for pool in (self._writers, self._readers))

    def close(self) -> None:
        _open.discard(self)
        if self._database is not None:
            for pool in (self._writers, self._readers):
                self._database.of_stores += pool._idle
                pool._idle = []
        super().close()

    async def _lent(self, run: Any, limit: Any) -> Any:
        """When `HeldThreads` lets it go, as with LMDB the commit on a thread."""
        if isinstance(self._run_sync, HeldThreads):
            await self._run_sync(lambda: None)
        return await super()._lent(run, limit)


def _database_of(directory: Path, *, has_store: bool = True) -> _Database:
    if directory not in _in_use:
        _in_use[directory] = _free.pop() if _free else _Database(_cluster(), f"served_{next(_numbers)}")
        _in_use[directory].empty(has_store=has_store)
    return _in_use[directory]


@cache
def _cluster() -> Cluster:
    """With the template: the tables of an empty store, a function that makes them so again, and one that names those
    without rows.
    """
    cluster = shared_cluster()
    assert cluster is not None, MISSING
    cluster.execute(f"create database {TEMPLATE}")
    url = cluster.url(TEMPLATE)
    open_store(Path(), inline, open_engine=lambda _, /, **how: PostgresqlEngine.open(url, **how)).close()
    tables = [name for (name,) in cluster.execute("select tablename from pg_tables where schemaname = 'svc'", TEMPLATE)]
    empty = " || ".join(f"case when exists (select from svc.{name}) then '' else '{name} ' end" for name in tables)
    ((names,),) = cluster.execute(f"select {empty}", TEMPLATE)
    filled = [name for name in tables if name not in (names or "").split()]
    copies = [f"create table first.{name} as table svc.{name}" for name in filled]
    deletes = [f"delete from svc.{name}" for name in tables]
    inserts = [f"insert into svc.{name} table first.{name}" for name in filled]
    steps = ["create schema first", _LIMIT, *copies]
    for name, statements in (("clear", deletes), ("fill", inserts)):
        steps.append(f"create function first.{name}() returns void language sql as $$ {'; '.join(statements)} $$")
    steps.append(f"create function first.empty() returns text language plpgsql as $$ begin return {empty}; end $$")
    cluster.execute(";".join(steps), TEMPLATE)
    return cluster
