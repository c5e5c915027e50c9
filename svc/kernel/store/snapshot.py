"""What a job sees of the store: a consistent state to read, and in a transaction to change. No thread, loop or disk.

The typed layer over an engine's reader and writer (`engine.py`): keys are tuples of their parts, values are records,
and every value is checked when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from svc.kernel.store.engine import KeyRange, Reader, Writer, after_prefix
from svc.kernel.store.overlay import Recording
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.steps import ROWS_REPORTED, Steps

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")


class Snapshot:
    """One consistent state of the store. Keys are passed and returned as tuples of their parts; every value that is
    read is verified. All methods that read values raise `codec.CorruptionError`.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    @property
    def is_missing(self) -> bool:
        """Whether what was read is a guess: see `Reader.is_missing`."""
        return self.reader.is_missing

    def get(self, table: Table[V], *key: Any) -> V | None:
        """Return the value under a key, given part by part; `None` if there is none. Raises `codec.CorruptionError`."""
        packed = table.key.pack(*key)
        raw = self.reader.get(table.name, packed)
        return None if raw is None else table.decode(packed, raw)

    def has(self, table: Table[Any], *key: Any) -> bool:
        """Return whether there is a row under this key; its neighbors are not checked (ADR 18)."""
        return self.reader.get(table.name, table.key.pack(*key)) is not None

    def length(self, table: Table[Any], *key: Any) -> int:
        """Return the bytes stored under a key, unverified and with the checksum; 0 if there is nothing."""
        raw = self.reader.get(table.name, table.key.pack(*key))
        return 0 if raw is None else len(raw)

    def scan(
        self, table: Table[V], *prefix: Any, start: tuple[Any, ...] | None = None
    ) -> Iterator[tuple[tuple[Any, ...], V]]:
        """Yield (key, value) of keys that start with `prefix`, from `start` on, in order. Raises `CorruptionError`."""
        stem = table.key.prefix(*prefix)
        first = stem if start is None else table.key.prefix(*start)
        for raw, value in self._range(table, first, after_prefix(stem)):
            yield table.key.unpack(raw), table.decode(raw, value)

    def keys_of(self, table: Table[Any], *prefix: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the keys that start with the parts `prefix`, smallest first. Otherwise as `scan_keys_reverse`."""
        stem = table.key.prefix(*prefix)
        for raw, _ in self._range(table, stem, after_prefix(stem), keys_only=True):
            yield table.key.unpack(raw)

    def scan_keys_reverse(
        self, table: Table[Any], start: tuple[Any, ...], end: tuple[Any, ...]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield keys below `end` and not below `start`, largest first; both may be the first parts of a key. Values are
        not read. Raises `codec.CorruptionError` where keys are out of order.
        """
        first, beyond = table.key.prefix(*start), table.key.prefix(*end)
        for raw, _ in self._range(table, first, beyond, reverse=True, keys_only=True):
            yield table.key.unpack(raw)

    def scan_keys(
        self, table: Table[Any], start: tuple[Any, ...], end: tuple[Any, ...] | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Yield keys from `start` to below `end`, or the table's end, smallest first, as `scan_keys_reverse`."""
        beyond = None if end is None else table.key.prefix(*end)
        for raw, _ in self._range(table, table.key.prefix(*start), beyond, keys_only=True):
            yield table.key.unpack(raw)

    def scan_reverse(
        self, table: Table[V], start: tuple[Any, ...], end: tuple[Any, ...]
    ) -> Iterator[tuple[tuple[Any, ...], V]]:
        """Yield (key, value) as `scan_keys_reverse` yields keys. Raises `codec.CorruptionError`."""
        first, beyond = table.key.prefix(*start), table.key.prefix(*end)
        for raw, value in self._range(table, first, beyond, reverse=True):
            yield table.key.unpack(raw), table.decode(raw, value)

    def scan_past_corruption(
        self, table: Table[V], start: tuple[Any, ...], end: tuple[Any, ...], *, reverse: bool = False
    ) -> Iterator[tuple[tuple[Any, ...], V | CorruptionError]]:
        """Yield (key, value) of the rows below `end` and not below `start`, both as in `scan_keys`. For a row that
        fails its check, yield the error as its value; its key may be corrupt, and out of order.
        """
        first, beyond = table.key.prefix(*start), table.key.prefix(*end)
        for checked in (True, False):
            try:
                for raw, value in self._range(table, first, beyond, reverse=reverse, checked=checked):
                    first, beyond = (first, raw) if reverse else (raw + b"\0", beyond)
                    yield table.key.unpack(raw), _decoded(table, raw, value)
            except CorruptionError:
                if not checked:
                    raise
            else:
                return

    def stored(self, table: Table[Any], start: tuple[Any, ...], end: tuple[Any, ...]) -> Iterator[tuple[bytes, bytes]]:
        """Return (packed key, stored bytes) from `start` to below `end`, for callers that may know the bytes."""
        return self._range(table, table.key.prefix(*start), table.key.prefix(*end))

    def unchecked(self, table: Table[Any], start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Return (packed key, stored bytes) from a packed key on, as they are: for callers that look for corruption."""
        return self._range(table, start, None, checked=False)

    def count(self, table: Table[Any]) -> int:
        """Return the number of rows of a table."""
        return self.reader.count(table.name)

    def size(self, table: Table[Any]) -> int:
        """Return the bytes that a table takes in the file: with LMDB, those of its pages."""
        return self.reader.size(table.name)

    def evaluate(self, read: Callable[[Snapshot], T]) -> T:
        """Return the result of a pure function of this state, as `Reader.evaluate` does."""
        return self.reader.evaluate(lambda reader: read(Snapshot(reader)))

    def with_progress(self, steps: Steps) -> Snapshot:
        """Return the same state, with scans that report to `steps` what they read, `ROWS_REPORTED` at a time."""
        return _Watched(self.reader, steps)

    def _range(
        self, table: Table[Any], first: bytes, beyond: bytes | None, **how: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        return self.reader.range(KeyRange(table.name, first, beyond, **how))


def _decoded(table: Table[V], key: bytes, raw: bytes) -> V | CorruptionError:
    try:
        return table.decode(key, raw)
    except CorruptionError as error:
        return error


class _Watched(Snapshot):
    def __init__(self, reader: Reader, steps: Steps) -> None:
        super().__init__(reader)
        self._steps = steps
        self._rows = 0

    def _range(
        self, table: Table[Any], first: bytes, beyond: bytes | None, **how: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        for row in super()._range(table, first, beyond, **how):
            self._rows += 1
            if self._rows == ROWS_REPORTED:
                self._steps.step(self._rows)
                self._rows = 0
            yield row


class Transaction(Snapshot):
    """A snapshot that can be changed."""

    changed = 0
    """Rows that were written or deleted through it so far; one that was changed twice counts twice."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self.writer = writer

    def put(self, table: Table[V], key: tuple[Any, ...], value: V) -> int:
        """Insert or replace a row, and return the number of bytes stored (see `length`). Raises `StoreFullError`."""
        packed = table.key.pack(*key)
        encoded = table.encode(packed, value)
        self.writer.put(table.name, packed, encoded)
        self.changed += 1
        return len(encoded)

    def put_all(self, table: Table[V], keys: Iterable[tuple[Any, ...]], value: V) -> None:
        """Insert or replace rows that have the same value, which is encoded once. Raises `StoreFullError`."""
        body, packed = table.value.encode(value), [table.key.pack(*key) for key in keys]
        self.writer.put_many(table.name, [(key, table.with_checksum(key, body)) for key in packed])
        self.changed += len(packed)

    def delete(self, table: Table[Any], *key: Any) -> bool:
        """Delete a row; return whether it existed. Raises `StoreFullError`: pages are taken before any is freed."""
        found = self.writer.delete(table.name, table.key.pack(*key))
        self.changed += found
        return found

    def clear(self, table: Table[Any]) -> None:
        """Delete every row of a table."""
        self.writer.clear(table.name)

    def update(self, table: Table[V], key: tuple[Any, ...], step: Callable[[V | None], V]) -> None:
        """Replace a row by the result of `step`, a pure function of its value (`None` if there is no row), without
        reading it. This is for rows that many jobs add to, such as sums: jobs that only update a row do not conflict,
        in any process. Raises `codec.CorruptionError` and `StoreFullError`.
        """
        self.put(table, key, step(self.get(table, *key)))

    def ask(self, table: Table[V], key: tuple[Any, ...], question: Callable[[V | None], T]) -> T:
        """Return the answer of `question`, a pure function, for a row (`None` if there is none), without reading the
        row: the job depends on the answer but not on the row. An example is "is it above the limit?" for a row that
        other jobs update. Answers are compared by `==`. Raises `codec.CorruptionError`.
        """
        return question(self.get(table, *key))


def all_present(rows: Iterable[tuple[K, V | None]], problem: Callable[[K], str]) -> list[tuple[K, V]]:
    """Return (key, row) of rows that other rows name. Raises `CorruptionError` with the `problem` of the first key that
    has no row, after all have been asked for: a store that fetches its rows knows then which ones to fetch.
    """
    found: list[tuple[K, V]] = []
    for key, row in list(rows):
        if row is None:
            raise CorruptionError(problem(key))
        found.append((key, row))
    return found


class DecodedSums:
    """A cache of decoded rows that the jobs of a group update: each would otherwise decode the same bytes."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, bytes], tuple[bytes, Any]] = {}

    def decode(self, table: Table[V], key: bytes, raw: bytes | None) -> V | None:
        """Return the decoded value, as `Table.decode` does; `None` if there is no row."""
        if raw is None:
            return None
        latest = self._latest.get((table.name, key))
        if latest is None or latest[0] is not raw:
            latest = self._latest[table.name, key] = raw, table.decode(key, raw)
        return latest[1]

    def encode(self, table: Table[V], key: bytes, value: V) -> bytes:
        """See `Table.encode`."""
        raw = table.encode(key, value)
        self._latest[table.name, key] = raw, value
        return raw


class RecordedTransaction(Transaction):
    """The transaction of a job that may have to run again (`group.py`): it records what the job reads."""

    def __init__(self, recording: Recording, sums: DecodedSums) -> None:
        super().__init__(recording)
        self._recording = recording
        self._sums = sums

    def update(self, table: Table[V], key: tuple[Any, ...], step: Callable[[V | None], V]) -> None:
        """See `Transaction.update`: the step is recorded, and no read."""
        packed, sums = table.key.pack(*key), self._sums

        def on_bytes(raw: bytes | None) -> bytes:
            return sums.encode(table, packed, step(sums.decode(table, packed, raw)))

        self._recording.update(table.name, packed, on_bytes)
        self.changed += 1

    def ask(self, table: Table[V], key: tuple[Any, ...], question: Callable[[V | None], T]) -> T:
        """See `Transaction.ask`: only the answer is recorded as read."""
        packed, sums = table.key.pack(*key), self._sums

        def on_bytes(raw: bytes | None) -> T:
            return question(sums.decode(table, packed, raw))

        return self._recording.ask(table.name, packed, on_bytes)


class Late(Generic[T]):
    """The return value of a job whose outcome depends on rows that it did not read, such as a sum that it has updated.
    `finish` makes the outcome from the state after this job and before any later one; it may be called more than once.
    """

    __slots__ = ("finish",)

    def __init__(self, finish: Callable[[Snapshot], T]) -> None:
        self.finish = finish
