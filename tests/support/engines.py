"""Engines that wrap the real one: they note, lose or reject what passes. For `open_directory(open_engine=...)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from svc.kernel.store.engine import CheckRow, Engine, Reader, Writer
from svc.kernel.store.lmdb.engine import LmdbEngine

T = TypeVar("T")

Note = Callable[[str, str, bytes, bytes], bool]
"""(`put` or `delete`, table, key, value): whether the write is made. A delete has the value b""."""


class Wrapped:
    """An engine that does what the inner one does. Subclasses wrap readers, writers or commits."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def reader(self, inner: Reader) -> Any:
        return inner

    def writer(self, inner: Writer) -> Any:
        return inner

    def read(self) -> Any:
        return self.reader(self.inner.read())

    def write(self, group: Callable[[Any], T], /, **options: Any) -> T:
        return self.inner.write(lambda writer: group(self.writer(writer)), **options)


class Watched(Wrapped):
    """An engine that tells of every write before it is made, and leaves out those that `note` says no to."""

    def __init__(self, inner: Engine, note: Note) -> None:
        super().__init__(inner)
        self._note = note

    def writer(self, inner: Writer) -> Any:
        return _WatchedWriter(inner, self._note)


class _WatchedWriter:
    def __init__(self, inner: Writer, note: Note) -> None:
        self._inner = inner
        self._note = note

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def put(self, table: str, key: bytes, value: bytes) -> None:
        if self._note("put", table, key, value):
            self._inner.put(table, key, value)

    def delete(self, table: str, key: bytes) -> bool:
        return self._note("delete", table, key, b"") and self._inner.delete(table, key)

    def delete_many(self, table: str, keys: Sequence[bytes]) -> None:
        self._inner.delete_many(table, [key for key in keys if self._note("delete", table, key, b"")])

    def put_many(self, table: str, rows: Sequence[tuple[bytes, bytes]]) -> None:
        self._inner.put_many(table, [row for row in rows if self._note("put", table, *row)])


def opening(wrap: Callable[[Engine], T]) -> Callable[..., T]:
    """An `OpenEngine` that wraps the real engine."""

    def open_engine(directory: Path, /, *, map_bytes: int, durable: bool, check_row: CheckRow) -> T:
        return wrap(LmdbEngine.open(directory, map_bytes=map_bytes, durable=durable, check_row=check_row))

    return open_engine
