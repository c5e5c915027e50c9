"""Rows that are also written as plain columns for SQL, where the store has a table of such rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from svc.kernel.store.postgresql.connection.wire import Statement
from svc.kernel.store.schema.table import installed

HAS_TABLE = b"select to_regclass('svc.sql_events') is not null"


def statements(rows_of: Callable[[str], Iterable[tuple[bytes, bytes]]]) -> list[Statement]:
    """Return the statement that also adds rows as plain columns, in a store that keeps them so; an empty list if there
    are none. `rows_of`: the written rows of a table by its name, as (key, value).
    """
    kept = installed().sql_rows
    encoded = b"[]" if kept is None else kept.encoded(rows_of(kept.table))
    return [] if kept is None or encoded == b"[]" else [Statement(kept.statement, (encoded,))]
