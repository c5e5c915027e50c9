"""Making, filling, comparing and dropping `svc.sql_events`, also while nodes serve.

A group looks for the table behind its fences. So once the table is there and every fence was had, each group writes its
rows. Events from before are then added a page at a time, beside the nodes. A page locks its events and skips those that
are locked, so that neither waits for the other, and nothing that is erased meanwhile comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from svc.features.exports import sql_events
from svc.kernel.store.postgresql import statements
from svc.kernel.store.postgresql.connection.errors import SqlError
from svc.kernel.store.postgresql.connection.values import TRUE, int4, int8, integer
from svc.kernel.store.postgresql.connection.wire import Result, Statement
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.store.steps import QUIET, Steps
from svc.kernel.values.errors import OperatorError

PAGE = 1000
"""Events."""
_IN_USE, _REFUSED = "55P03", ("42501", "2BP01")
"""States of SQL: a lock that was not to be had; what the user may not do, and what others depend on."""
_UTF8 = b"UTF8"
Send = Callable[[list[Statement]], list[Result]]


class SqlEventsError(OperatorError):
    """The table cannot be made, changed or dropped; the message says why. Nothing was changed."""


class Installation(NamedTuple):
    """The state of the table."""

    installed: bool
    events: int = 0
    """Of the store."""
    rows: int = 0
    bytes: int = 0
    """With indexes."""
    readers: tuple[str, ...] = ()
    """Roles, beside the service's own, that may read it."""


def install(engine: PostgresqlEngine, reader: str | None = None, steps: Steps = QUIET) -> Installation:
    """Create the table if it is missing, with the columns of this version, let the role `reader` read it, and bring its
    rows up to date. May be repeated. Raises `SqlEventsError` and `EngineError`.
    """
    with engine.transaction() as send:
        _refuse_unusable(send, reader)
        _send(send, _missing_parts(send))
        if reader is not None:
            _send(send, sql_events.grant(reader))
    with engine.transaction() as send:
        _take_every_fence(send)
    _fill(engine, steps)
    return installation(engine)


def remove(engine: PostgresqlEngine) -> None:
    """Drop the table and what belongs to it, if it exists. Raises `SqlEventsError` and `EngineError`."""
    with engine.transaction() as send:
        _take_every_fence(send)
        _send(send, sql_events.STOP)
    with engine.transaction() as send:
        _send(send, sql_events.DROP_REST)


def installation(engine: PostgresqlEngine) -> Installation:
    """Return the state of the table. Reads its index and that of the events: about a second for ten million. Raises
    `EngineError`.
    """
    with engine.transaction(statements.BEGIN_READING) as send:
        if not _has_table(send):
            return Installation(installed=False)
        counts, readers = send([Statement(sql_events.COUNTS), Statement(sql_events.READERS)])
        events, rows, size = map(integer, counts.rows[0])
        return Installation(True, events, rows, size, tuple(name.decode() for (name,) in readers.rows))


def faults(engine: PostgresqlEngine) -> Iterator[str]:
    """Yield a sentence for each difference between the rows and the events, in one state of the database; nothing if
    there is no table. Raises `EngineError`.
    """
    with engine.transaction(statements.BEGIN_READING) as send:
        if not _has_table(send):
            return
        others = 0
        for page in _pages(send, sql_events.EVENTS_AFTER):
            rows = sql_events.encoded_rows(page)
            others += _number(send, Statement(sql_events.COUNT_OTHER_ROWS, (rows,)))
        without_event = _number(send, Statement(sql_events.COUNT_WITHOUT_EVENT))
    if others:
        yield f"sql_events: {others} events are missing or different; `svc sql install` puts them right"
    if without_event:
        yield f"sql_events: {without_event} rows are of no event; `svc sql install` deletes them"


def _refuse_unusable(send: Send, reader: str | None) -> None:
    encoding, role = send([Statement(sql_events.ENCODING), Statement(sql_events.ROLE, ((reader or "").encode(),))])
    if encoding.rows[0][0] != _UTF8:
        raise SqlEventsError(
            f"the database has the encoding {encoding.rows[0][0].decode()}, which cannot hold every text: it needs UTF8"
        )
    if reader is not None and not role.rows:
        raise SqlEventsError(f"there is no role {reader!r}: `create role {reader} login password '…'` makes it")


def _take_every_fence(send: Send) -> None:
    """No group that began before is left."""
    fences = (statements.LOCK_ROWS_OF_NONE, statements.ADD_EVERY_FENCE, statements.TAKE_EVERY_FENCE)
    send([Statement(sql) for sql in fences])


def _missing_parts(send: Send) -> list[str]:
    (made,) = send([Statement(sql_events.MADE_COLUMNS)])
    existing = {name.decode() for (name,) in made.rows}
    if not existing:
        return list(sql_events.MAKE)
    missing = [f"{name} {kind}" for name, kind in sql_events.COLUMNS.items() if name not in existing]
    return [f"alter table svc.sql_events add column {column}" for column in missing]


def _send(send: Send, parts: Sequence[str]) -> None:
    try:
        send([Statement(sql.encode(), prepared=False) for sql in (sql_events.GIVE_UP_SOON, *parts)])
    except SqlError as error:
        if error.state == _IN_USE:
            raise SqlEventsError("a query is using svc.sql_events: end it, and try again") from None
        if error.state in _REFUSED:
            raise SqlEventsError(str(error)) from None
        raise


def _fill(engine: PostgresqlEngine, steps: Steps) -> None:
    with engine.transaction(statements.BEGIN_READING) as send:
        steps.stage("events", _number(send, Statement(statements.count("events"))))
    after: tuple[int, bytes] | None = (0, b"")
    while after is not None:
        with engine.transaction() as send:
            page, after = _page(send, sql_events.LOCKED_EVENTS_AFTER, after)
            rows = sql_events.encoded_rows(page)
            send([Statement(sql, (rows,)) for sql in (sql_events.DELETE_OTHER_ROWS, sql_events.ADD_ROWS)])
        steps.step(len(page))
    with engine.transaction() as send:
        send([Statement(sql_events.DELETE_WITHOUT_EVENT)])


def _pages(send: Send, sql: bytes) -> Iterator[list[tuple[bytes, bytes]]]:
    after: tuple[int, bytes] | None = (0, b"")
    while after is not None:
        page, after = _page(send, sql, after)
        yield page


def _page(
    send: Send, sql: bytes, after: tuple[int, bytes]
) -> tuple[list[tuple[bytes, bytes]], tuple[int, bytes] | None]:
    """Events as (key, value), and after which the next page goes on; `None` = there is none."""
    organization, key = after
    (found,) = send([Statement(sql, (int4(organization), key, int8(PAGE)))])
    rows = [(row[1], row[2]) for row in found.rows]
    last = found.rows[-1] if found.rows else None
    return rows, None if last is None else (integer(last[0]), last[1])


def _has_table(send: Send) -> bool:
    (found,) = send([Statement(statements.HAS_SQL_EVENTS)])
    return found.rows[0][0] == TRUE


def _number(send: Send, statement: Statement) -> int:
    (found,) = send([statement])
    return integer(found.rows[0][0])
