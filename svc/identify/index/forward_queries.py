"""Searches of the index of events from the oldest event on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

from svc.identify.events.segments import Segment, position, slot
from svc.identify.index.queries import SLOTS, Row, Search
from svc.identify.tables import EVENT_SEGMENTS


class SearchForward(Search):
    """As `Search`, but oldest first. `ended_at`: it has covered everything up to here, inclusive, and no more."""

    _is_newest_first = False

    def _slots(self) -> Iterator[bytes]:
        for upper, part, segment in self._rows():
            for found in self._found(upper, part, segment):
                yield from self._tail_below(found)
                if self.ended_at is not None:
                    return
                yield found
            if upper >= self._above:
                break
            yield from self._tail_below(upper + b"\0")  # also at it: the segment's newest event, once it was rewritten
            if self.ended_at is None and self._is_spent:
                self.ended_at = position(upper)
            if self.ended_at is not None:
                return
        yield from self._tail_below(self._above)

    def _tail_below(self, bound: bytes) -> Iterator[bytes]:
        while self.ended_at is None and self._next is not None and self._next[0] < bound:
            yield from self._next_of_tail(self._next)

    def _strip(self, part: int) -> Iterator[Row]:
        """Yield rows of a part up to where the window ends; of `SLOTS`, or where no value is asked for, keys alone."""
        stem, table, snapshot = (*self._scope, part), EVENT_SEGMENTS, self._snapshot
        start = (*stem, *self._oldest)
        rows: Iterator[tuple[tuple[Any, ...], Segment | None]]
        if self._asked and part != SLOTS:
            rows = snapshot.scan(table, *stem, start=start)
        else:
            rows = zip(snapshot.scan_keys(table, start, (*self._scope, part + 1)), repeat(None), strict=False)
        for key, segment in rows:
            yield slot(key[-2:]), part, segment
            if key[-2:] >= self._beyond:
                return
