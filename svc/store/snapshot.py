"""What a job sees of the store: a consistent state to read, and in a transaction to change. No thread, loop or disk.

What leaves this package is ordered keys and ranges as tuples of their parts, and nothing of LMDB's own, so that another
ordered-key engine could stand behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from svc.store.tables import Table

V = TypeVar("V")


class Snapshot:
    """One consistent state of the store. Keys go in and come out as tuples of their parts."""

    def __init__(self, handle: Any, tables: dict[str, Any]) -> None:
        self._handle = handle
        self._tables = tables

    def get(self, table: Table[V], *key: Any) -> V | None:
        raw = self._handle.get(table.key.pack(*key), db=self._tables[table.name])
        return None if raw is None else table.value.decode(raw)

    def has(self, table: Table[Any], *key: Any) -> bool:
        return self._handle.get(table.key.pack(*key), db=self._tables[table.name]) is not None

    def scan(
        self, table: Table[V], *prefix: Any, start: tuple[Any, ...] | None = None
    ) -> Iterator[tuple[tuple[Any, ...], V]]:
        """Rows whose key starts with `prefix`, in key order, from the key `start` on if given."""
        stem = table.key.prefix(*prefix)
        with self._handle.cursor(db=self._tables[table.name]) as cursor:
            found = cursor.set_range(stem if start is None else table.key.prefix(*start))
            while found:
                raw = cursor.key()
                if not raw.startswith(stem):
                    return
                yield table.key.unpack(raw), table.value.decode(cursor.value())
                found = cursor.next()

    def keys_down(self, table: Table[Any], start: tuple[Any, ...], end: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """Keys below `end` down to `start`, largest first, both given by their first parts. No value is read."""
        first, beyond = table.key.prefix(*start), table.key.prefix(*end)
        with self._handle.cursor(db=self._tables[table.name]) as cursor:
            if not (cursor.prev() if cursor.set_range(beyond) else cursor.last()):
                return
            for raw in cursor.iterprev(keys=True, values=False):
                if raw < first:
                    return
                yield table.key.unpack(raw)

    def count(self, table: Table[Any]) -> int:
        return self._handle.stat(self._tables[table.name])["entries"]


class Transaction(Snapshot):
    """A snapshot that may be changed. Lives on the writer's thread only."""

    def put(self, table: Table[V], key: tuple[Any, ...], value: V) -> None:
        self._handle.put(table.key.pack(*key), table.value.encode(value), db=self._tables[table.name])

    def delete(self, table: Table[Any], *key: Any) -> bool:
        """Whether there was such a row."""
        return self._handle.delete(table.key.pack(*key), db=self._tables[table.name])
