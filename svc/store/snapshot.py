"""What a job sees of the store: a consistent state to read, and in a transaction to change. No thread, loop or disk.

What leaves this package is ordered keys and ranges as tuples of their parts, and nothing of LMDB's own, so that another
ordered-key engine could stand behind it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeVar

from svc.domain.operations import Changes
from svc.store.codec import Corrupted
from svc.store.steps import Steps
from svc.store.tables import Table

V = TypeVar("V")

ROWS_A_STEP = 1000


class Snapshot:
    """One consistent state of the store. Keys go in and come out as tuples of their parts."""

    def __init__(self, handle: Any, tables: dict[str, Any]) -> None:
        self._handle = handle
        self._tables = tables

    def get(self, table: Table[V], *key: Any) -> V | None:
        packed = table.key.pack(*key)
        raw = self._find(table, packed)
        return None if raw is None else table.decode(packed, raw)

    def has(self, table: Table[Any], *key: Any) -> bool:
        return self._find(table, table.key.pack(*key)) is not None

    def length(self, table: Table[Any], *key: Any) -> int:
        """Bytes of what is stored under a key, 0 where there is nothing. They are not looked into."""
        raw = self._find(table, table.key.pack(*key))
        return 0 if raw is None else len(raw)

    def scan(
        self, table: Table[V], *prefix: Any, start: tuple[Any, ...] | None = None
    ) -> Iterator[tuple[tuple[Any, ...], V]]:
        """Rows whose key starts with `prefix`, in key order, from the key `start` on if given."""
        stem = table.key.prefix(*prefix)
        first = stem if start is None else table.key.prefix(*start)
        with self._handle.cursor(db=self._tables[table.name]) as cursor:
            found = cursor.set_range(first)
            before = self._vouched_before(table, cursor, first, found=found)
            while found:
                raw = cursor.key()
                if raw <= before:
                    raise _out_of_order(table, raw)
                body = table.vouched(raw, cursor.value())  # the key, too, before it is believed
                if not raw.startswith(stem):
                    return
                yield table.key.unpack(raw), table.value.decode(body)
                found, before = cursor.next(), raw

    def keys_down(self, table: Table[Any], start: tuple[Any, ...], end: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """Keys below `end` down to `start`, largest first, both given by their first parts. No value is read."""
        first, beyond = table.key.prefix(*start), table.key.prefix(*end)
        with self._handle.cursor(db=self._tables[table.name]) as cursor:
            found = cursor.set_range(beyond)
            if found:
                table.vouched(cursor.key(), cursor.value())
            if not (cursor.prev() if found else cursor.last()):
                return
            after = beyond
            for raw in cursor.iterprev(keys=True, values=False):
                if raw >= after:
                    raise _out_of_order(table, raw)
                if raw < first:
                    table.vouched(raw, cursor.value())
                    return
                yield table.key.unpack(raw)
                after = raw

    def unchecked(self, table: Table[Any], start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """(packed key, what is stored) from this packed key on, as it lies there: for who looks for damage."""
        with self._handle.cursor(db=self._tables[table.name]) as cursor:
            if cursor.set_range(start):
                yield from cursor

    def _find(self, table: Table[Any], packed: bytes) -> bytes | None:
        """The bytes under a key. That there are none is believed without a look at the rows beside it (ADR 18)."""
        return self._handle.get(packed, db=self._tables[table.name])

    def _vouched_before(self, table: Table[Any], cursor: Any, key: bytes, *, found: bool) -> bytes:
        """The last key before this one, b"" where there is none; the cursor, at the first key from this one on if
        `found`, stays there. Raises `Corrupted`.

        A search says the truth if the rows on either side of where it ended are what was written there, in their
        places: a damaged key leads astray only who comes to lie beside it.
        """
        if found:
            following = cursor.key()
            if following < key:
                raise _out_of_order(table, following)
            table.vouched(following, cursor.value())
        if not (cursor.prev() if found else cursor.last()):
            if found:
                cursor.first()
            elif self.count(table):
                raise Corrupted(f"{table.name} counts {self.count(table)} rows and shows none")
            return b""
        before: bytes = cursor.key()
        if before >= key:
            raise _out_of_order(table, before)
        table.vouched(before, cursor.value())
        if found:
            cursor.next()
        return before

    def count(self, table: Table[Any]) -> int:
        return self._handle.stat(self._tables[table.name])["entries"]

    def size(self, table: Table[Any]) -> int:
        """Bytes of the pages that a table takes."""
        stat = self._handle.stat(self._tables[table.name])
        return stat["psize"] * (stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])

    def watched(self, steps: Steps) -> Snapshot:
        """The same state; `steps` hears how many rows are read in key order, a thousand at a time."""
        return _Watched(self._handle, self._tables, steps)


def _out_of_order(table: Table[Any], key: bytes) -> Corrupted:
    return Corrupted(f"rows of {table.name} are not in order: {key.hex()}")


class _Watched(Snapshot):
    def __init__(self, handle: Any, tables: dict[str, Any], steps: Steps) -> None:
        super().__init__(handle, tables)
        self._steps = steps
        self._rows = 0

    def scan(
        self, table: Table[V], *prefix: Any, start: tuple[Any, ...] | None = None
    ) -> Iterator[tuple[tuple[Any, ...], V]]:
        for row in super().scan(table, *prefix, start=start):
            self._tell()
            yield row

    def keys_down(self, table: Table[Any], start: tuple[Any, ...], end: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        for key in super().keys_down(table, start, end):
            self._tell()
            yield key

    def _tell(self) -> None:
        self._rows += 1
        if self._rows == ROWS_A_STEP:
            self._steps.step(self._rows)
            self._rows = 0


class Transaction(Snapshot):
    """A snapshot that may be changed. Lives on the writer's thread only."""

    def put(self, table: Table[V], key: tuple[Any, ...], value: V) -> int:
        """Bytes of what is stored, as of `length`."""
        packed = table.key.pack(*key)
        encoded = table.encode(packed, value)
        self._handle.put(packed, encoded, db=self._tables[table.name])
        return len(encoded)

    def delete(self, table: Table[Any], *key: Any) -> bool:
        """Whether there was such a row."""
        return self._handle.delete(table.key.pack(*key), db=self._tables[table.name])

    def clear(self, table: Table[Any]) -> None:
        """Delete every row, and read none."""
        self._handle.drop(self._tables[table.name], delete=False)


class RecordedTransaction(Transaction):
    """A transaction that notes what it leaves of each row, for the operation log."""

    def __init__(self, handle: Any, tables: dict[str, Any]) -> None:
        super().__init__(handle, tables)
        self.changes: Changes = defaultdict(dict)

    def put(self, table: Table[V], key: tuple[Any, ...], value: V) -> int:
        packed = table.key.pack(*key)
        encoded = table.encode(packed, value)
        self._handle.put(packed, encoded, db=self._tables[table.name])
        self.changes[table.name][packed] = encoded
        return len(encoded)

    def delete(self, table: Table[Any], *key: Any) -> bool:
        packed = table.key.pack(*key)
        found = self._handle.delete(packed, db=self._tables[table.name])
        if found:
            self.changes[table.name][packed] = None
        return found

    def clear(self, table: Table[Any]) -> None:
        for key, _ in list(self.scan(table)):
            self.delete(table, *key)
