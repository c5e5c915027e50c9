"""Looks at an index, a bounded number of keys each, by which a scan goes on from slice to slice.

What may live here: how looks follow one another, whatever they look for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

P = TypeVar("P")
R = TypeVar("R")
Rows = Iterator[tuple[P, R | None]]
Look = Callable[[P, int], tuple[Sequence[R], P | None]]

MAX_AHEAD = 256
"""Rows that one look finds ahead of what is asked for: about a millisecond."""


class Looks(Generic[P, R]):
    """Looks at the index, one after the other. What one finds beyond what is asked for is kept for what is asked next:
    a read in slices that has one of these for all of them does not begin its search again with each, nor with each run
    of a slice over rows that are being fetched (`kernel/store/postgresql/rows.py`).

    Such rows are of an earlier snapshot, and say where something was: what is gone since shows when it is read.
    """

    def __init__(self, position_of: Callable[[R], P]) -> None:
        self._position_of: Callable[[R], P] = position_of
        self._begun: P | None = None
        """Behind which the last scan began, and what was found from there on."""
        self._found: list[R] = []
        self._kept = 0
        """How many of these rest on rows that were all there, and where to look behind them."""
        self._kept_resume: P | None = None
        self._next: int = 0
        self._behind: P | None = None
        """Of the next of them."""
        self._resume: P | None = None
        """Where to look behind these; `None` = there is nothing."""
        self._at_once = 0

    def scan(
        self, look: Look[P, R], start: P, count: int, is_missing: Callable[[], bool] = lambda: False
    ) -> Rows[P, R]:
        """Yield what is found behind `start`, up to `count` rows, each with its position; `None` = a look that found
        nothing, or not as much as it was asked for. `look` returns rows, and where the next one begins, `None` = at the
        end. `is_missing`: whether it has asked for rows that are not there yet.
        """
        self._begin(start)
        while count > 0:
            if self._next == len(self._found):
                limit = max(count, self._at_once)
                found, self._resume = look(start, limit)
                self._found += found
                self._at_once = min(2 * limit, MAX_AHEAD)
                if not is_missing():
                    self._kept, self._kept_resume = len(self._found), self._resume
            while self._next < len(self._found) and count > 0:
                row: R = self._found[self._next]
                self._next, count = self._next + 1, count - 1
                self._behind = start = self._position_of(row)
                yield start, row
            if self._next < len(self._found) or self._resume is None:
                return
            if self._resume != start and count > 0:
                start, count = self._resume, count - 1
                yield start, None

    def _begin(self, start: P) -> None:
        if start == self._behind:
            del self._found[: self._next]
            self._kept = max(self._kept - self._next, 0)
        elif start != self._begun:
            self._kept = 0
        del self._found[self._kept :]
        self._resume = self._kept_resume
        self._begun = self._behind = start
        self._next = 0
