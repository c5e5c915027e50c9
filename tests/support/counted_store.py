"""A store that counts what jobs and queries read of it, through the interface that they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from svc.kernel.store.group import Write
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.store import Store

T = TypeVar("T")


class CountedReads(Transaction):
    """Counts each row that is read or looked for, by table."""

    def __init__(self, of: Snapshot, rows: Counter[str]) -> None:
        self.reader = of.reader
        if isinstance(of, Transaction):
            self.writer = of.writer
        self._rows = rows

    def get(self, table: Any, *key: Any) -> Any:
        self._rows[table.name] += 1
        return super().get(table, *key)

    def scan(self, table: Any, *prefix: Any, start: tuple[Any, ...] | None = None) -> Iterator[Any]:
        return self._counted(table, super().scan(table, *prefix, start=start))

    def scan_keys(self, table: Any, start: tuple[Any, ...], end: tuple[Any, ...] | None = None) -> Iterator[Any]:
        return self._counted(table, super().scan_keys(table, start, end))

    def scan_keys_reverse(self, table: Any, start: tuple[Any, ...], end: tuple[Any, ...]) -> Iterator[Any]:
        return self._counted(table, super().scan_keys_reverse(table, start, end))

    def scan_reverse(self, table: Any, start: tuple[Any, ...], end: tuple[Any, ...]) -> Iterator[Any]:
        return self._counted(table, super().scan_reverse(table, start, end))

    def scan_past_corruption(
        self, table: Any, start: tuple[Any, ...], end: tuple[Any, ...], *, reverse: bool = False
    ) -> Iterator[Any]:
        return self._counted(table, super().scan_past_corruption(table, start, end, reverse=reverse))

    def _counted(self, table: Any, rows: Iterator[T]) -> Iterator[T]:
        for row in rows:
            self._rows[table.name] += 1
            yield row


class CountedStore:
    """`query` and `write` of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.rows = Counter[str]()

    async def query(self, read: Callable[[Snapshot], T], **given: Any) -> T:
        return await self._store.query(lambda snapshot: read(CountedReads(snapshot, self.rows)), **given)

    async def write(self, writes: Sequence[Write[T]], **given: Any) -> list[T | Exception]:
        def run(job: Callable[[Transaction], T], transaction: Transaction) -> T:
            return job(CountedReads(transaction, self.rows))

        counted = [write._replace(job=partial(run, write.job)) for write in writes]
        return await self._store.write(counted, **given)
