"""A snapshot for several searches of the index of events, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Generic, TypeVar

from svc.identify.tables import EVENT_SEGMENTS
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot

T = TypeVar("T")
V = TypeVar("V")


class ReadOnce(Snapshot):
    """A snapshot for several searches one after the other: it reads and decodes each row of the index once, when the
    first search needs it, and keeps it.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.reader)
        self._rows: dict[Any, Any] = {}

    def get(self, table: Table[V], *key: Any) -> V | None:
        """See `Snapshot.get`."""
        if table is not EVENT_SEGMENTS:
            return super().get(table, *key)
        if key not in self._rows:
            self._rows[key] = super().get(table, *key)
        return self._rows[key]

    def scan_reverse(
        self, table: Table[V], start: tuple[Any, ...], end: tuple[Any, ...]
    ) -> Iterator[tuple[tuple[Any, ...], V]]:
        """See `Snapshot.scan_reverse`."""
        asked = (table.name, start, end)
        if asked not in self._rows:
            self._rows[asked] = _Shared(super().scan_reverse(table, start, end))
        return iter(self._rows[asked])

    def scan_past_corruption(
        self, table: Table[V], start: tuple[Any, ...], end: tuple[Any, ...], *, reverse: bool = False
    ) -> Iterator[tuple[tuple[Any, ...], V | CorruptionError]]:
        """See `Snapshot.scan_past_corruption`."""
        asked = (table.name, start, end, reverse)
        if asked not in self._rows:
            self._rows[asked] = _Shared(super().scan_past_corruption(table, start, end, reverse=reverse))
        return iter(self._rows[asked])


class _Shared(Generic[T]):
    """An iterator for several readers: each reads it from the start, and nothing is taken from the source twice."""

    def __init__(self, source: Iterator[T]) -> None:
        self._source = source
        self._given: list[T] = []

    def __iter__(self) -> Iterator[T]:
        for at in count():
            if at == len(self._given):
                one = next(self._source, None)
                if one is None:
                    return
                self._given.append(one)
            yield self._given[at]
