"""Looks at an index, a bounded number of keys each, by which a scan goes on from slice to slice.

What may live here: how looks follow one another, whatever they look for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

P = TypeVar("P")
R = TypeVar("R")
Rows = Iterator[tuple[P, R | None]]

MAX_AHEAD = 256
"""Rows that one look finds ahead of what is asked for: about a millisecond."""


class Looks(Generic[P, R]):
    """Looks at the index, one after the other. What one finds beyond what is asked for is kept for what is asked next:
    a read in slices that has one of these for all of them does not begin its search again with each.

    Such rows are of an earlier snapshot, and say where something was: what is gone since shows when it is read.
    """

    def __init__(self, position_of: Callable[[R], P]) -> None:
        self._position_of = position_of
        self._behind: P | None = None
        self._ahead = deque[R]()
        """What is behind that position."""
        self._resume: P | None = None
        """Where to look behind these; `None` = there is nothing."""
        self._at_once = 0

    def scan(self, look: Callable[[P, int], tuple[Sequence[R], P | None]], start: P, count: int) -> Rows[P, R]:
        """Yield what is found behind `start`, up to `count` rows, each with its position; `None` = a look that found
        nothing, or not as much as it was asked for. `look` returns rows, and where the next one begins, `None` = at the
        end.
        """
        while count > 0:
            if self._behind != start or not self._ahead:
                limit = max(count, self._at_once)
                found, self._resume = look(start, limit)
                self._ahead, self._at_once = deque(found), min(2 * limit, MAX_AHEAD)
            while self._ahead and count > 0:
                row, count = self._ahead.popleft(), count - 1
                self._behind = start = self._position_of(row)
                yield start, row
            if self._ahead or self._resume is None:
                return
            if self._resume != start and count > 0:
                start, count = self._resume, count - 1
                yield start, None


def in_looks(
    look: Callable[[P, int], tuple[Sequence[R], P | None]], position_of: Callable[[R], P], start: P, count: int
) -> Rows[P, R]:
    """Yield the same as `Looks.scan`, where nothing is kept."""
    return Looks(position_of).scan(look, start, count)
