"""A write to every table of the store that leaves nothing behind: what stands in the way of an identification stands in
its way, too (ADR 183).

A row is inserted, updated and deleted in each table by one transaction, which is committed: locks, rights, indexes,
triggers, a disk that is full and a server that is read-only are all met, whatever identifications need of them.
"""

from __future__ import annotations

from svc.kernel.store.postgresql import statements
from svc.kernel.store.postgresql.connection.values import TRUE, byteas, int4
from svc.kernel.store.postgresql.connection.wire import Result, Statement, Wire
from svc.kernel.store.schema.table import installed

_KEY = statements.LARGEST_ORGANIZATION.to_bytes(4) + b"\xff" * 16
"""Of no organization, and in the form of the key of an event, which triggers read."""
_FENCE = (
    b"insert into svc.writers values ($1::int4, 0) on conflict do nothing",
    b"update svc.writers set turn = turn + 1 where organization = $1::int4",
    b"delete from svc.writers where organization = $1::int4",
)
_SQL_EVENTS = b"insert into svc.sql_events select * from svc.sql_events limit 0"
"""No row: the lock and the rights."""
_BEGINNING = [Statement(statements.BEGIN), Statement(statements.HAS_SQL_EVENTS)]


async def try_write(wire: Wire) -> None:
    """Write to every table and commit. Raises `SqlError` and `ConnectionLostError`: then discard the connection."""
    _, found = await wire.exchange(_BEGINNING)
    await wire.exchange(_writes(found))


def try_write_now(wire: Wire) -> None:
    """Do the same as `try_write` on the calling thread."""
    _, found = wire.exchange_now(_BEGINNING)
    wire.exchange_now(_writes(found))


def _writes(has_sql_events: Result) -> list[Statement]:
    fence = (int4(statements.LARGEST_ORGANIZATION),)
    sent = [Statement(sql, fence) for sql in _FENCE]
    for table in installed().tables:
        rows = (*statements.key_columns(table.name, [_KEY]), byteas([b"trial write"]))
        organization = int4(statements.organization_of(table.name, _KEY))
        write = Statement(statements.write(table.name), rows)
        sent += [write, write, Statement(statements.delete(table.name), (organization, byteas([_KEY])))]
    if has_sql_events.rows[0][0] == TRUE:
        sent.append(Statement(_SQL_EVENTS))
    return [*sent, Statement(statements.COMMIT)]
