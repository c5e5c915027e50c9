"""What `recent` queries share: rows that were fetched a moment ago, and fetches that are under way.

However many queries miss the same rows at once, one of them has them fetched. A fetch belongs to none of the queries
that wait for it: each of them may be cancelled, and gives up when its own time is over.

What may live here: the age of rows, and who waits for which fetch. No connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import trio

from svc.kernel.store.overlay import Raw, RowKey
from svc.kernel.store.postgresql.connection.wire import Result, Statement
from svc.kernel.store.postgresql.rows import Rows


class Fetched(NamedTuple):
    """The results of the statements of `Rows.fetches`, in their order."""

    results: list[Result]
    asked_s: float
    """When they were sent, on the loop's clock: no row is from before."""


@dataclass(eq=False)
class _Fetch:
    began_s: float = inf
    written: set[RowKey] = field(default_factory=set[RowKey])
    """Rows that this node has written since: what was fetched of them may be older."""
    ended: trio.Event = field(default_factory=trio.Event)
    fetched: Fetched | None = None
    failure: Exception | None = None


class RecentRows:
    """Fetched rows that exist, for at most `for_s` seconds from when they were asked for, and fetches under way."""

    def __init__(self, for_s: float, fetch: Callable[[Rows], Awaitable[Fetched]]) -> None:
        """Use `fetch` to fetch what is missing of rows; it must end by itself."""
        self._for_s = for_s
        self._fetch = fetch
        self._rows: dict[RowKey, tuple[bytes, float]] = {}
        """Row -> its value, and when that has to be forgotten; about in this order."""
        self._under_way: dict[tuple[Statement, ...], _Fetch] = {}

    def get(self, row_key: RowKey) -> Raw:
        """Return the cached row; `None` if it is not cached."""
        found = self._rows.get(row_key)
        return found[0] if found is not None and trio.current_time() < found[1] else None

    async def fetched(self, rows: Rows, since_s: float) -> list[Result] | None:
        """Return the results of `rows.fetches()`, of a fetch that other queries may share. `since_s`: when the query
        began. `None` if the database was asked before that by a fetch that was under way, and has ended now: the rows
        may be cached, and otherwise are missing or have to be asked for again. Raises what `fetch` raises.
        """
        asked = tuple(rows.fetches())
        fetch = self._under_way.get(asked)
        if fetch is None:
            fetch = self._under_way[asked] = _Fetch()
            trio.lowlevel.spawn_system_task(self._run, asked, fetch, rows.again())
        await fetch.ended.wait()
        if fetch.failure is not None and fetch.began_s >= since_s:
            raise fetch.failure
        fetched = fetch.fetched
        return None if fetched is None or fetched.asked_s < since_s else fetched.results

    def invalidate(self, row_keys: Collection[RowKey]) -> None:
        """Drop these rows: this node has written them."""
        for row_key in row_keys:
            self._rows.pop(row_key, None)
        for fetch in self._under_way.values():
            fetch.written.update(row_keys)

    async def _run(self, asked: tuple[Statement, ...], fetch: _Fetch, rows: Rows) -> None:
        fetch.began_s = trio.current_time()
        try:
            fetched = await self._fetch(rows)
            rows.take(fetched.results)
            self._add(rows, fetched.asked_s, fetch.written)
            fetch.fetched = fetched
        except Exception as error:  # noqa: BLE001  each query that waits raises it
            fetch.failure = error
        finally:
            del self._under_way[asked]
            fetch.ended.set()

    def _add(self, rows: Rows, asked_s: float, but: set[RowKey]) -> None:
        until_s = asked_s + self._for_s
        for row_key, raw in rows.found_everywhere():
            if row_key not in but:
                self._rows.pop(row_key, None)
                self._rows[row_key] = raw, until_s
        now_s = trio.current_time()
        while self._rows and next(iter(self._rows.values()))[1] <= now_s:
            del self._rows[next(iter(self._rows))]
