"""The schema of a program: its tables, and the versions of a store that it knows.

The store keeps whatever tables a program has and imports none of them. Which those are says `svc.features.schema`,
which is named here and looked up when a store is opened, as the entry points of plugins are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, cached_property
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias, cast

from svc.kernel.store.schema.key_parts import UUID_V7
from svc.kernel.store.schema.table import FencedBy, Table

OF_THE_PROGRAM = "svc.features.schema"
"""The module that has the `SCHEMA` of this program."""

Migration: TypeAlias = Callable[[Any], None]
"""A function of a `Transaction` that brings a store to the next version."""


class SqlRows(NamedTuple):
    """A table of which PostgreSQL also has the rows as plain columns (`features/exports/sql_events.py`)."""

    table: str
    statement: bytes
    """Adds rows, given as one parameter."""
    encoded: Callable[[Iterable[tuple[bytes, bytes]]], bytes]
    """That parameter, of rows as (key, value); `[]` = none."""


class Schema:
    """The tables of a store in their order, and the migrations that lead to them."""

    def __init__(
        self,
        tables: tuple[Table[Any], ...],
        migrations: tuple[Migration, ...] = (),
        former_tables: tuple[str, ...] = (),
        sql_rows: SqlRows | None = None,
    ) -> None:
        """Name in `former_tables` tables of earlier versions, which are open while a store is upgraded."""
        self.tables, self.migrations, self.former_tables = tables, migrations, former_tables
        self.sql_rows = sql_rows
        self._checks = {table.name: table.verify_checksum for table in tables}

    @property
    def version(self) -> int:
        """The version of a store with these tables."""
        return len(self.migrations)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(table.name for table in self.tables)

    def check_row(self, table: str, key: bytes, value: bytes) -> None:
        """Verify the checksum of a row; this is the store's `CheckRow`. A row of a table that this version does not
        have passes. Raises `CorruptionError`.
        """
        check = self._checks.get(table)
        if check is not None:
            check(key, value)

    @cached_property
    def by_organization(self) -> frozenset[str]:
        """Names of the tables whose keys begin with the organization."""
        return frozenset(table.name for table in self.tables if table.by_organization)

    @cached_property
    def by_own_id(self) -> frozenset[str]:
        """Names of the tables whose keys are the organization and an id (UUIDv7)."""
        tables = (table for table in self.tables if table.by_organization)
        return frozenset(table.name for table in tables if [*table.key.parts.values()][1:] == [UUID_V7])

    @cached_property
    def fenced_by(self) -> dict[str, FencedBy]:
        """By the name of a table, which fence its writers hold."""
        return {table.name: table.fenced_by for table in self.tables}

    @cached_property
    def exactly_counted(self) -> tuple[str, ...]:
        """Names of the tables whose rows are counted exactly."""
        return tuple(table.name for table in self.tables if table.counted)


@cache
def installed() -> Schema:
    """Return the schema of this program."""
    return cast("Schema", import_module(OF_THE_PROGRAM).SCHEMA)
