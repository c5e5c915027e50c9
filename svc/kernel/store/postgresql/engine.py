"""`PostgresqlEngine`: the store's engine over a PostgreSQL database, on the calling thread.

For the command line, migrations and moves: it does one thing after the other, and its writer locks out every other one.
The service reads and writes through `groups.py`, with the same rows and fences.

A reader is a transaction of its own on a connection of its own. A writer takes every fence (`statements.py`), so that
it is alone among all nodes, and holds rows back until some thousand are together.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TypeVar

from svc.kernel.store.engine import (
    OUTSIDE,
    CheckRow,
    Engine,
    EngineError,
    KeyRange,
    MissingTableError,
    Reader,
    Space,
    StoreFullError,
    Writer,
)
from svc.kernel.store.postgresql import statements
from svc.kernel.store.postgresql.connection.errors import DISK_FULL, ConnectionLostError, DatabaseError, SqlError
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.values import TRUE, byteas, int4, integer
from svc.kernel.store.postgresql.connection.wire import Result, Statement, Timeouts, Wire
from svc.kernel.store.postgresql.rows import MAX_FETCHES, Rows, page_of, plain_columns, run_over

T = TypeVar("T")

UNLIMITED = Timeouts(statement_s=None, lock_s=60.0, idle_s=None, answer_s=None)
"""An operator's command may take as long as it takes; a database that is gone is found by the keep-alives."""
FIRST_PAGE, LARGEST_PAGE = 64, 4096
PAGE_BYTES = 4 << 20
"""Rows of a range are fetched some at a time: as many as this has held so far."""
HELD_ROWS, HELD_BYTES = 5_000, 16 << 20
"""What a writer keeps back."""
_AT_ONCE = ("23505", "42P06", "42P07", "XX000")
"""What `create ... if not exists` may fail with where another session does the same."""


class PostgresqlEngine(Engine):
    """A store in a database, which checks its own pages (`data_checksums`, `pg_amcheck`). See `Engine`."""

    def __init__(self, url: StoreUrl, capacity_bytes: int) -> None:
        self._url = url
        self._capacity_bytes = capacity_bytes
        self._tables: set[str] = set()
        self._idle: list[Wire] = []
        self._lock = threading.Lock()
        self._readers = 0

    @classmethod
    def open(
        cls, url: StoreUrl, /, *, map_bytes: int = 1 << 60, durable: bool = True, check_row: CheckRow | None = None
    ) -> PostgresqlEngine:
        """Connect to the database. Nothing is created before `open_tables` is called with `create`. `map_bytes`: the
        size limit of the store for this program. `durable` and `check_row` are not used: the database decides by itself
        (`synchronous_commit`) and checks the rows of a range itself. Raises `EngineError`.
        """
        del durable, check_row
        engine = cls(url, map_bytes)
        engine._give_back(Wire.connect_now(url, UNLIMITED))
        return engine

    def tables(self) -> set[str]:
        """See `Engine.tables`. Raises `DatabaseError` if the schema is another program's."""
        return self._names() - statements.INTERNAL

    def open_tables(self, names: Iterable[str], /, *, create: bool = False) -> None:
        """See `Engine.open_tables`. With `create`, first create the schema if it is missing."""
        names, existing = list(names), self._names()
        missing = [name for name in names if name not in existing]
        if missing and not create:
            raise MissingTableError(f"the store has no table {missing[0]}")
        if create and not existing:
            self._create_schema()
        if missing:
            self._create_tables(missing)
        self._tables.update(names)

    def read(self) -> PostgresqlReader:
        """See `Engine.read`."""
        wire, _ = self._begun([Statement(statements.BEGIN_READING), Statement(b"select 1")])  # a query fixes the state
        with self._lock:
            self._readers += 1
        return PostgresqlReader(wire, self._tables, self._ended)

    def why_stalled(self) -> str:
        """See `Engine.why_stalled`."""
        return "the database does not respond"

    def take_turn(self) -> Callable[[], None] | None:
        """See `Engine.take_turn`: programs that have this engine write alone, or little."""
        return _no_turn

    def write(
        self,
        group: Callable[[Writer], T],
        /,
        *,
        may_use_reserve: bool = False,
        inside: AbstractContextManager[object] = OUTSIDE,
    ) -> T:
        """See `Engine.write`: the only writer of all nodes. `ConnectionLostError`: nobody knows if it committed."""
        del may_use_reserve
        add = [statements.ADD_EVERY_FENCE] if "organizations" in self._tables else []
        begin = [statements.BEGIN, statements.LOCK_ROWS_OF_NONE, *add, statements.TAKE_EVERY_FENCE, statements.COMMITS]
        wire, results = self._begun([Statement(sql) for sql in (*begin, statements.HAS_SQL_EVENTS)])
        *_, taken, commits, has_sql_events = results
        commit = integer(commits.rows[0][0]) - taken.changed
        writer = PostgresqlWriter(wire, self._tables, commit, sql_events=has_sql_events.rows[0][0] == TRUE)
        try:
            with inside:
                result = group(writer)
            writer.end()
        except BaseException:
            self._undo(wire)
            raise
        self._give_back(wire)
        return result

    def space(self) -> Space:
        """See `Engine.space`. The size is that of the whole database, without its log. The size of its disk is unknown,
        so the limit is `map_bytes`. Readers are those of this engine, and block nobody.
        """
        (size,) = self._once([Statement(statements.DATABASE_SIZE)])
        return Space(integer(size.rows[0][0]), self._capacity_bytes, self._capacity_bytes, self._readers, 0)

    def capacity_bytes(self) -> int:
        """See `Engine.capacity_bytes`: the `map_bytes` with which the engine was opened; the database has no limit."""
        return self._capacity_bytes

    def send(self, statement: Statement) -> None:
        """Send a statement in a transaction of its own. Raises `EngineError`."""
        self._once([statement])

    @contextmanager
    def transaction(self, begin: bytes = statements.BEGIN) -> Generator[Callable[[list[Statement]], list[Result]]]:
        """Begin a transaction without a fence, for statements outside the tables of the store. The block gets a
        function that sends statements in one round trip; at its end it is committed, or rolled back if it raises.
        """
        wire, _ = self._begun([Statement(begin)])
        try:
            yield wire.exchange_now
            wire.exchange_now([Statement(statements.COMMIT)])
        except BaseException:
            self._undo(wire)
            raise
        self._give_back(wire)

    def close(self) -> None:
        """See `Engine.close`. A second call does nothing."""
        with self._lock:
            idle, self._idle = self._idle, []
        for wire in idle:
            wire.close()

    def _names(self) -> set[str]:
        (found,) = self._once([Statement(statements.TABLE_NAMES)])
        names = _names_in(found)
        if names and statements.FENCES not in names:
            raise DatabaseError(f"the schema svc of {self._url} belongs to another program: name another database")
        return names

    def _create_schema(self) -> None:
        """Create the schema with the rows that serve as locks. If several try at once, all but one repeat it."""
        for is_last in (False, False, False, True):
            try:
                self._once([Statement(sql, prepared=False) for sql in statements.CREATE_SCHEMA])
            except SqlError as error:
                if is_last or error.state not in _AT_ONCE:
                    raise
            else:
                return

    def _create_tables(self, names: list[str]) -> None:
        """Create the tables that nobody else has created since."""
        with self.transaction() as send:
            _, found = send([Statement(statements.LOCK_ROWS_OF_NONE), Statement(statements.TABLE_NAMES)])
            existing = _names_in(found)
            made = [sql for name in names if name not in existing for sql in statements.create_table(name)]
            send([Statement(sql, prepared=False) for sql in made])

    def _once(self, asked: list[Statement]) -> list[Result]:
        wire, results = self._begun(asked)
        self._give_back(wire)
        return results

    def _begun(self, asked: list[Statement]) -> tuple[Wire, list[Result]]:
        """Return a connection, and the results of these statements on it. One that was lost while idle is replaced."""
        while True:
            with self._lock:
                wire = self._idle.pop() if self._idle else None
            fresh = wire is None
            wire = wire or Wire.connect_now(self._url, UNLIMITED)
            try:
                return wire, wire.exchange_now(asked)
            except ConnectionLostError:
                if fresh:
                    raise
            except BaseException:
                self._undo(wire)
                raise

    def _ended(self, wire: Wire) -> None:
        with self._lock:
            self._readers -= 1
        self._undo(wire)

    def _undo(self, wire: Wire) -> None:
        if wire.is_open and wire.is_in_transaction:
            try:
                wire.exchange_now([Statement(statements.ROLLBACK)])
            except EngineError:
                wire.close()
        self._give_back(wire)

    def _give_back(self, wire: Wire) -> None:
        if wire.is_open:
            with self._lock:
                self._idle.append(wire)


class PostgresqlReader(Reader):
    """One committed state: a transaction that sees no later one."""

    def __init__(self, wire: Wire, tables: set[str], ended: Callable[[Wire], None]) -> None:
        self._wire = wire
        self._tables = tables
        self._ended = ended
        self._commit: int | None = None

    @property
    def commit(self) -> int:
        """See `Reader.commit`: how many fences commits have taken."""
        if self._commit is None:
            self._commit = self._number(statements.COMMITS)
        return self._commit

    def get(self, table: str, key: bytes, /) -> bytes | None:
        """See `Reader.get`: one round trip."""
        return self.get_many(table, [key])[0]

    def get_many(self, table: str, keys: Sequence[bytes], /) -> list[bytes | None]:
        """See `Reader.get_many`: one round trip."""
        self._known(table)
        if not keys:
            return []
        by_organization = _by_organization(table, keys)
        found = self._asked(
            [Statement(statements.fetch(table), (int4(one), byteas(some))) for one, some in by_organization.items()]
        )
        rows = {key: value for result in found for key, value in result.rows}
        return [rows.get(key) for key in keys]

    def range(self, asked: KeyRange, /) -> Iterator[tuple[bytes, bytes]]:
        """See `Reader.range`: a round trip for some thousand rows, whose order the database keeps, `checked` or not."""
        self._known(asked.table)
        return self._pages(asked)

    def _pages(self, left: KeyRange) -> Iterator[tuple[bytes, bytes]]:
        limit = FIRST_PAGE
        while left.beyond is None or left.first < left.beyond:
            (page,) = self._asked([page_of(left, limit)])
            for row in page.rows:
                yield (row[0], b"") if left.keys_only else (row[0], row[1])
            if len(page.rows) < limit:
                return
            last: bytes = page.rows[-1][0]
            left = left._replace(beyond=last) if left.reverse else left._replace(first=last + b"\0")
            size = sum(len(part) for row in page.rows for part in row)
            limit = max(1, min(4 * limit, LARGEST_PAGE, PAGE_BYTES * limit // max(1, size)))

    def count(self, table: str, /) -> int:
        """See `Reader.count`. Reads the table's index: about a second for ten million rows."""
        self._known(table)
        return self._number(statements.count(table))

    def size(self, table: str, /) -> int:
        """See `Reader.size`: with its index and its large values."""
        self._known(table)
        return self._number(statements.size(table))

    def evaluate(self, read: Callable[[Reader], T], /) -> T:
        """See `Reader.evaluate`: one round trip for all that the function asks for in one run."""
        rows = Rows()
        for _ in range(MAX_FETCHES):
            rows.commit = self.commit
            found = run_over(rows, partial(read, rows))
            if found is not None:
                return found[0]
            rows.take(self._asked(rows.fetches()))
        raise EngineError(f"a command has fetched {MAX_FETCHES} times, and asks for more")

    def close(self) -> None:
        """See `Reader.close`. Its transaction is undone, and its connection serves the next reader or writer."""
        self._ended(self._wire)

    def _number(self, sql: bytes) -> int:
        (result,) = self._asked([Statement(sql)])
        return integer(result.rows[0][0])

    def _asked(self, asked: list[Statement]) -> list[Result]:
        return self._wire.exchange_now(asked)

    def _known(self, table: str) -> None:
        if table not in self._tables:
            raise KeyError(table)


class PostgresqlWriter(PostgresqlReader, Writer):
    """The next state while it is being made. Writes are sent before a read, or when enough have accumulated."""

    def __init__(self, wire: Wire, tables: set[str], commit: int, *, sql_events: bool) -> None:
        super().__init__(wire, tables, lambda _: None)
        self._commit = commit
        self._sql_events = sql_events
        self._held: dict[str, dict[bytes, bytes]] = defaultdict(dict)
        self._held_rows = self._held_bytes = 0
        self._changed = False

    def put(self, table: str, key: bytes, value: bytes, /) -> None:
        """See `Writer.put`."""
        self.put_many(table, [(key, value)])

    def put_many(self, table: str, rows: Sequence[tuple[bytes, bytes]], /) -> None:
        """See `Writer.put_many`."""
        self._known(table)
        self._held[table].update(rows)
        self._held_rows += len(rows)
        self._held_bytes += sum(len(key) + len(value) for key, value in rows)
        if self._held_rows > HELD_ROWS or self._held_bytes > HELD_BYTES:
            self.flush()

    def delete(self, table: str, key: bytes, /) -> bool:
        """See `Writer.delete`: one round trip."""
        return self._deleted(table, [key]) > 0

    def delete_many(self, table: str, keys: Sequence[bytes], /) -> None:
        """See `Writer.delete_many`: one round trip."""
        self._deleted(table, keys)

    def _deleted(self, table: str, keys: Sequence[bytes]) -> int:
        self._known(table)
        own = _by_organization(table, keys).items()
        sent = [Statement(statements.delete(table), (int4(organization), byteas(some))) for organization, some in own]
        deleted = sum(result.changed for result in self._sent(sent))
        self._changed |= deleted > 0
        return deleted

    def clear(self, table: str, /) -> None:
        """See `Writer.clear`."""
        self._known(table)
        self._sent([Statement(statements.clear(table))])
        self._changed = True

    def end(self) -> None:
        """Commit, unless nothing was written."""
        self.flush([Statement(statements.COMMIT if self._held or self._changed else statements.ROLLBACK)])

    def flush(self, then: Sequence[Statement] = ()) -> list[Result]:
        """Send the accumulated writes and then the statements `then`; return the results of the latter."""
        held, self._held = self._held, defaultdict(dict)
        self._held_rows = self._held_bytes = 0
        writes = [Statement(statements.write(table), _columns(table, rows)) for table, rows in held.items() if rows]
        if self._sql_events:
            writes += plain_columns(lambda table: held.get(table, {}).items())
        self._changed |= bool(writes)
        return self._sent([*writes, *then])[len(writes) :] if writes or then else []

    def _asked(self, asked: list[Statement]) -> list[Result]:
        return self.flush(asked)

    def _sent(self, sent: list[Statement]) -> list[Result]:
        if self._held:
            self.flush()
        try:
            return self._wire.exchange_now(sent)
        except SqlError as error:
            if error.state == DISK_FULL:
                raise StoreFullError(str(error)) from error
            raise


def _no_turn() -> None: ...


def _names_in(tables: Result) -> set[str]:
    return {name.decode() for (name,) in tables.rows}


def _by_organization(table: str, keys: Sequence[bytes]) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = defaultdict(list)
    for key in keys:
        found[statements.organization_of(table, key)].append(key)
    return found


def _columns(table: str, rows: dict[bytes, bytes]) -> tuple[bytes, bytes, bytes]:
    return *statements.key_columns(table, list(rows)), byteas(list(rows.values()))
