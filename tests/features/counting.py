"""An engine that counts the rows that pass: of each commit those that it writes and those that it reads, and all that
are read outside of commits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from svc.kernel.store.engine import Engine, KeyRange
from tests.support.engines import Wrapped

T = TypeVar("T")


class Counting(Wrapped):
    """Rows by table: `commits` has those that each wrote or deleted, `read_in_commits` those that it read or looked
    for, `read_at_once` those that each reader did. Webhooks, which go out at any time, are in none of the latter.
    """

    def __init__(self, inner: Engine) -> None:
        super().__init__(inner)
        self.commits: list[Counter[str]] = []
        self.read_in_commits: list[Counter[str]] = []
        self.read_at_once: list[Counter[str]] = []

    @property
    def read_rows(self) -> Counter[str]:
        """Return those that readers read or looked for."""
        return sum(self.read_at_once, Counter[str]())

    def reader(self, inner: Any) -> Any:
        self.read_at_once.append(Counter[str]())
        return _Reader(inner, self.read_at_once[-1])

    def write(self, group: Callable[[Any], T], /, **options: Any) -> T:
        written, read = Counter[str](), Counter[str]()
        self.commits.append(written)
        self.read_in_commits.append(read)
        return self.inner.write(lambda writer: group(_Writer(writer, read, written)), **options)

    def forget(self) -> None:
        """Count from nothing again."""
        for counts in (self.commits, self.read_in_commits, self.read_at_once):
            counts.clear()


class _Reader:
    def __init__(self, inner: Any, rows: Counter[str]) -> None:
        self._inner, self._rows = inner, rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _note(self, table: str, rows: int) -> None:
        if not table.startswith("webhook"):
            self._rows[table] += rows

    def evaluate(self, read: Callable[[Any], T]) -> T:
        return read(self)

    def get(self, table: str, key: bytes) -> bytes | None:
        self._note(table, 1)
        return self._inner.get(table, key)

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        self._note(table, len(keys))
        return self._inner.get_many(table, keys)

    def range(self, asked: KeyRange) -> Iterator[tuple[bytes, bytes]]:
        for row in self._inner.range(asked):
            self._note(asked.table, 1)
            yield row


class _Writer(_Reader):
    def __init__(self, inner: Any, rows: Counter[str], written: Counter[str]) -> None:
        super().__init__(inner, rows)
        self._written = written

    def put(self, table: str, key: bytes, value: bytes) -> None:
        self._written[table] += 1
        self._inner.put(table, key, value)

    def put_many(self, table: str, rows: Sequence[tuple[bytes, bytes]]) -> None:
        self._written[table] += len(rows)
        self._inner.put_many(table, rows)

    def delete(self, table: str, key: bytes) -> bool:
        self._written[table] += 1
        return self._inner.delete(table, key)

    def delete_many(self, table: str, keys: Sequence[bytes]) -> None:
        self._written[table] += len(keys)
        self._inner.delete_many(table, keys)
