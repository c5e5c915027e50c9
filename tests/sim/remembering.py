"""A snapshot that remembers which record each row was: the rules read the same rows after every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from svc.kernel.store.engine import KeyRange, Reader, after_prefix
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.steps import Steps

V = TypeVar("V")

Row = tuple[tuple[Any, ...], Any]
Rows = dict[tuple[str, bytes, bytes], Row]
"""By table and bytes: the same bytes, checked once, are the same record."""


class Remembering(Snapshot):
    """`rows` is what other snapshots have read. A row whose key or value has other bytes is read and checked again."""

    def __init__(self, reader: Reader, rows: Rows) -> None:
        super().__init__(reader)
        self._rows = rows

    def get(self, table: Table[V], *key: Any) -> V | None:
        packed = table.key.pack(*key)
        raw = self.reader.get(table.name, packed)
        return None if raw is None else self._row(table, packed, raw)[1]

    def scan(
        self, table: Table[V], *prefix: Any, start: tuple[Any, ...] | None = None
    ) -> Iterator[tuple[tuple[Any, ...], V]]:
        stem = table.key.prefix(*prefix)
        first = stem if start is None else table.key.prefix(*start)
        return (self._row(table, *row) for row in self.reader.range(KeyRange(table.name, first, after_prefix(stem))))

    def with_progress(self, steps: Steps) -> Snapshot:
        del steps
        return self

    def _row(self, table: Table[Any], packed: bytes, raw: bytes) -> Row:
        place = (table.name, packed, raw)
        row = self._rows.get(place)
        if row is None:
            row = self._rows[place] = table.key.unpack(packed), table.decode(packed, raw)
        return row
