"""What a job sees of the store: a consistent state to read, and in a transaction to change. No thread, loop or disk.

The typed layer over an engine's reader and writer (`engine.py`): keys are tuples of their parts, values are records,
and every value is checked when it is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeVar

from svc.domain.operations import Changes
from svc.store.engine import Reader, Writer, after_prefix
from svc.store.steps import Steps
from svc.store.tables import TABLES, Table

V = TypeVar("V")

ROWS_A_STEP = 1000

_CHECKS = {table.name: table.verify_checksum for table in TABLES}


def check_row(table: str, key: bytes, value: bytes) -> None:
    """What the store's engine checks the rows beside a range with. Raises `CorruptionError`."""
    check = _CHECKS.get(table)
    if check is not None:
        check(key, value)


class Snapshot:
    """One consistent state of the store. Keys go in and come out as tuples of their parts."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def get(self, table: Table[V], *key: Any) -> V | None:
        """Raises `codec.CorruptionError`, as everything here that reads values."""
        packed = table.key.pack(*key)
        raw = self.reader.get(table.name, packed)
        return None if raw is None else table.decode(packed, raw)

    def has(self, table: Table[Any], *key: Any) -> bool:
        """Whether there is such a row. That there is none is believed without a look at the rows beside it (ADR 18)."""
        return self.reader.get(table.name, table.key.pack(*key)) is not None

    def length(self, table: Table[Any], *key: Any) -> int:
        """Bytes of what is stored under a key, 0 where there is nothing. They are not looked into."""
        raw = self.reader.get(table.name, table.key.pack(*key))
        return 0 if raw is None else len(raw)

    def scan(
        self, table: Table[V], *prefix: Any, start: tuple[Any, ...] | None = None
    ) -> Iterator[tuple[tuple[Any, ...], V]]:
        """Rows whose key starts with `prefix`, in key order, from the key `start` on if given."""
        stem = table.key.prefix(*prefix)
        first = stem if start is None else table.key.prefix(*start)
        for raw, value in self.reader.range(table.name, first, after_prefix(stem)):
            yield table.key.unpack(raw), table.decode(raw, value)

    def scan_keys_reverse(
        self, table: Table[Any], start: tuple[Any, ...], end: tuple[Any, ...]
    ) -> Iterator[tuple[Any, ...]]:
        """Keys below `end` down to `start`, largest first, both given by their first parts. No value is read."""
        first, beyond = table.key.prefix(*start), table.key.prefix(*end)
        for raw, _ in self.reader.range(table.name, first, beyond, reverse=True, keys_only=True):
            yield table.key.unpack(raw)

    def unchecked(self, table: Table[Any], start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """(packed key, what is stored) from this packed key on, as it lies there: for who looks for damage."""
        return self.reader.range(table.name, start, None, checked=False)

    def count(self, table: Table[Any]) -> int:
        """Rows of a table."""
        return self.reader.count(table.name)

    def size(self, table: Table[Any]) -> int:
        """Bytes that a table takes: with LMDB, those of its pages."""
        return self.reader.size(table.name)

    def with_progress(self, steps: Steps) -> Snapshot:
        """The same state; `steps` hears how many rows are read in key order, a thousand at a time."""
        return _Watched(self.reader, steps)


class _Watched(Snapshot):
    def __init__(self, reader: Reader, steps: Steps) -> None:
        super().__init__(reader)
        self._steps = steps
        self._rows = 0

    def scan(
        self, table: Table[V], *prefix: Any, start: tuple[Any, ...] | None = None
    ) -> Iterator[tuple[tuple[Any, ...], V]]:
        for row in super().scan(table, *prefix, start=start):
            self._tell()
            yield row

    def scan_keys_reverse(
        self, table: Table[Any], start: tuple[Any, ...], end: tuple[Any, ...]
    ) -> Iterator[tuple[Any, ...]]:
        for key in super().scan_keys_reverse(table, start, end):
            self._tell()
            yield key

    def _tell(self) -> None:
        self._rows += 1
        if self._rows == ROWS_A_STEP:
            self._steps.step(self._rows)
            self._rows = 0


class Transaction(Snapshot):
    """A snapshot that may be changed. Lives on the writer's thread only."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.writer = writer

    def put(self, table: Table[V], key: tuple[Any, ...], value: V) -> int:
        """Bytes of what is stored, as of `length`."""
        packed = table.key.pack(*key)
        encoded = table.encode(packed, value)
        self.writer.put(table.name, packed, encoded)
        return len(encoded)

    def delete(self, table: Table[Any], *key: Any) -> bool:
        """Whether there was such a row."""
        return self.writer.delete(table.name, table.key.pack(*key))

    def clear(self, table: Table[Any]) -> None:
        """Delete every row, and read none."""
        self.writer.clear(table.name)


class RecordedTransaction(Transaction):
    """A transaction that notes what it leaves of each row, for the operation log."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.changes: Changes = defaultdict(dict)

    def put(self, table: Table[V], key: tuple[Any, ...], value: V) -> int:
        packed = table.key.pack(*key)
        encoded = table.encode(packed, value)
        self.writer.put(table.name, packed, encoded)
        self.changes[table.name][packed] = encoded
        return len(encoded)

    def delete(self, table: Table[Any], *key: Any) -> bool:
        packed = table.key.pack(*key)
        found = self.writer.delete(table.name, packed)
        if found:
            self.changes[table.name][packed] = None
        return found

    def clear(self, table: Table[Any]) -> None:
        for key, _ in list(self.scan(table)):
            self.delete(table, *key)
