"""Programs with another schema: what a test adds to the tables or the versions of this one."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from svc.features import schema
from svc.features.schema import SCHEMA
from svc.kernel.store.schema.table import Migration, Schema, Table, installed


@contextmanager
def program_with(
    *, tables: Sequence[Table[Any]] = SCHEMA.tables, migrations: Sequence[Migration] = SCHEMA.migrations
) -> Generator[Schema]:
    """In the block, stores are opened as by a program with these tables and versions."""
    schema.SCHEMA = Schema(tuple(tables), dict(enumerate(migrations, start=1)), SCHEMA.former_tables, SCHEMA.sql_rows)
    installed.cache_clear()
    try:
        yield schema.SCHEMA
    finally:
        schema.SCHEMA = SCHEMA
        installed.cache_clear()
