"""What an erasure cannot read: a transaction that goes past such rows, so that it ends whatever a store has lost
(decisions 17.5).

A corrupt row reads as no row, is never written over, and can be deleted, for which it need not be read: it goes with
its key. What is left is kept for the report. A row whose key is corrupt is nobody's, and for `svc check`. Where
`has` is true and `get` returns `None`, the row is corrupt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from svc.identify.tables import EVENTS
from svc.kernel.store.engine import after_prefix
from svc.kernel.store.schema.codec import CorruptionError, CorruptPageError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Transaction

T = TypeVar("T")
V = TypeVar("V")


class UnreadableRows:
    """The corrupt rows that the transactions of one erasure have met, without events: erasure reads those past
    corruption by itself, and they are named as events (`texts.unreadable_events`).
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, bytes], CorruptionError] = {}

    def past(self, transaction: Transaction) -> Transaction:
        """Return the transaction as one that goes past corrupt rows and notes them here. It may run more than once."""
        return _PastCorruption(transaction, self)

    def left(self) -> list[CorruptionError]:
        """Return what is wrong with each row that was met; of one that was deleted, that what it led to may be left."""
        return list(self._found.values())

    def note(self, table: Table[Any], key: bytes, error: CorruptionError) -> None:
        """Note a corrupt row. Raises the error if it is an event, or nothing can be read any more."""
        if table is EVENTS or isinstance(error, CorruptPageError):
            raise error
        self._found[table.name, key] = error

    def note_deleted(self, table: Table[Any], key: bytes) -> None:
        """Note that a corrupt row was deleted."""
        was = self._found[table.name, key]
        self._found[table.name, key] = CorruptionError(f"{was}; it is deleted, and what only it led to is not")


class _PastCorruption(Transaction):
    def __init__(self, inner: Transaction, found: UnreadableRows) -> None:
        super().__init__(inner.writer)
        self._inner, self._unreadable = inner, found
        self._left: set[tuple[str, bytes]] = set()
        """Rows that this transaction could not read and has not deleted."""

    @property
    def changed(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]  nobody sets it from without
        """See `Transaction.changed`."""
        return self._inner.changed

    def get(self, table: Table[V], *key: Any) -> V | None:
        """See `Snapshot.get`; `None` also for a corrupt row."""
        try:
            return self._inner.get(table, *key)
        except CorruptionError as error:
            self._note(table, table.key.pack(*key), error)
            return None

    def scan(
        self, table: Table[V], *prefix: Any, start: tuple[Any, ...] | None = None
    ) -> Iterator[tuple[tuple[Any, ...], V]]:
        """See `Snapshot.scan`; without corrupt rows."""
        stem = table.key.prefix(*prefix)
        first = stem if start is None else table.key.prefix(*start)
        return self._readable(table, self._range(table, first, after_prefix(stem)))

    def scan_reverse(
        self, table: Table[V], start: tuple[Any, ...], end: tuple[Any, ...]
    ) -> Iterator[tuple[tuple[Any, ...], V]]:
        """See `Snapshot.scan_reverse`; without corrupt rows."""
        first, beyond = table.key.prefix(*start), table.key.prefix(*end)
        return self._readable(table, self._range(table, first, beyond, reverse=True))

    def put(self, table: Table[V], key: tuple[Any, ...], value: V) -> int:
        """See `Transaction.put`; leave a row that could not be read: `value` was made without it."""
        if (table.name, table.key.pack(*key)) in self._left:
            return 0
        return self._inner.put(table, key, value)

    def delete(self, table: Table[Any], *key: Any) -> bool:
        """See `Transaction.delete`."""
        packed = table.key.pack(*key)
        if (table.name, packed) in self._left:
            self._left.remove((table.name, packed))
            self._unreadable.note_deleted(table, packed)
        return self._inner.delete(table, *key)

    def update(self, table: Table[V], key: tuple[Any, ...], step: Callable[[V | None], V]) -> None:
        """See `Transaction.update`; leave a corrupt row."""
        try:
            self._inner.update(table, key, step)
        except CorruptionError as error:
            self._note(table, table.key.pack(*key), error)

    def ask(self, table: Table[V], key: tuple[Any, ...], question: Callable[[V | None], T]) -> T:
        """See `Transaction.ask`; a corrupt row is no row."""
        try:
            return self._inner.ask(table, key, question)
        except CorruptionError as error:
            self._note(table, table.key.pack(*key), error)
            return question(None)

    def _range(
        self, table: Table[Any], first: bytes, beyond: bytes | None, **how: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        rows = super()._range(table, first, beyond, **how | {"checked": False})
        return (row for row in rows if row[0] >= first and (beyond is None or row[0] < beyond))

    def _readable(self, table: Table[V], rows: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[tuple[Any, ...], V]]:
        for raw, stored in rows:
            try:
                value = table.decode(raw, stored)
            except CorruptionError as error:
                self._note(table, raw, error)
            else:
                yield table.key.unpack(raw), value

    def _note(self, table: Table[Any], key: bytes, error: CorruptionError) -> None:
        self._unreadable.note(table, key, error)
        self._left.add((table.name, key))
