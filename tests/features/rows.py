"""Every row of a store as it lies there, for "and nothing changed"."""

from __future__ import annotations

from contextlib import closing
from typing import Any, TypeAlias

import msgspec

from svc.features.tables import TABLES
from svc.kernel.access.tables import KEYS, SESSIONS
from svc.kernel.store.engine import Engine, KeyRange
from svc.kernel.store.schema.table import Table

Rows: TypeAlias = dict[str, dict[bytes, Any]]
"""By table and key."""
CREDENTIALS: tuple[Table[Any], ...] = (KEYS, SESSIONS)
"""Of which every request notes that they were used."""


def rows(engine: Engine, number: int | None = None) -> Rows:
    """The rows of an organization, by its number, in the tables that are kept by organization; of all of them in all
    tables without one. When a credential was last used is left out.
    """
    prefix, beyond = (b"", None) if number is None else (number.to_bytes(4), (number + 1).to_bytes(4))
    with closing(engine.read()) as reader:
        return {
            table.name: {
                key: _kept(table, key, value) for key, value in reader.range(KeyRange(table.name, prefix, beyond))
            }
            for table in TABLES
            if number is None or table.by_organization
        }


def _kept(table: Table[Any], key: bytes, value: bytes) -> Any:
    if table not in CREDENTIALS:
        return value
    return msgspec.structs.replace(table.decode(key, value), last_used_at_ms=0)


def changes(before: Rows, after: Rows) -> dict[str, set[bytes]]:
    """The keys of rows that are new, gone or other, by table; only of tables that have any."""
    found = {
        name: {key for key in now.keys() | before[name].keys() if now.get(key) != before[name].get(key)}
        for name, now in after.items()
        if now != before[name]
    }
    return {name: keys for name, keys in found.items() if keys}
