"""Rows that were fetched lately, for queries that may be answered with them.

What may live here: how long a row is kept, and how it is dropped. No connection.
"""

from __future__ import annotations

from collections.abc import Iterable

import trio

from svc.store.overlay import Raw
from svc.store.postgresql.rows import RowKey, Rows


class RecentRows:
    """Rows that were fetched lately, for `for_s` seconds at most. That there is no row is not remembered."""

    def __init__(self, for_s: float) -> None:
        self._half_s = for_s / 2
        self._new: dict[RowKey, bytes] = {}
        self._old: dict[RowKey, bytes] = {}
        self._since_s = 0.0

    def get(self, place: RowKey) -> Raw:
        """The row; `None` where it was not fetched lately."""
        self._turn_over()
        raw = self._new.get(place)
        return self._old.get(place) if raw is None else raw

    def add(self, rows: Rows) -> None:
        """Keep what was fetched."""
        self._turn_over()
        self._new.update(rows.found_everywhere())

    def invalidate(self, places: Iterable[RowKey]) -> None:
        """These were written: what was fetched of them is old."""
        for place in places:
            self._new.pop(place, None)
            self._old.pop(place, None)

    def _turn_over(self) -> None:
        """What was added in one half is kept to the end of the next one."""
        now_s = trio.current_time()
        if now_s - self._since_s >= self._half_s:
            self._old = self._new if now_s - self._since_s < 2 * self._half_s else {}
            self._new, self._since_s = {}, now_s
