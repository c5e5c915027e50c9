"""Histograms: how often something took how long, or was how large, in fixed buckets. Plain counting; no clock."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

REQUEST_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Buckets for what a client waits for, up to the longest that a request may take."""
WAIT_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Buckets for what happens inside one request: a stage, a commit, a stall of the loop."""
GROUPS = (1, 2, 4, 8, 16, 32, 64)
"""Buckets for the size of a group."""


class Exemplar(msgspec.Struct, frozen=True, array_like=True):
    """One of the values that a bucket counts, with the trace in which it was measured."""

    trace_id: str
    value: float
    at_ms: int
    """Unix milliseconds."""


class HistogramStatistics(msgspec.Struct, frozen=True):
    """A copy of a histogram's counts."""

    bounds: tuple[float, ...]
    """Upper bounds of the buckets, inclusive, ascending; the last bucket has none."""
    counts: tuple[int, ...]
    """Values in each bucket alone: one more than there are bounds."""
    total: float
    """Sum of all values."""
    exemplars: dict[int, Exemplar] = {}
    """The latest of a bucket, by its index in `counts`, of buckets that have one."""


class Histogram:
    """Counts values in fixed buckets; `bounds` as in `HistogramStatistics`."""

    __slots__ = ("_bounds", "_counts", "_exemplars", "_total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._exemplars: dict[int, Exemplar] = {}
        self._total = 0.0

    def observe(self, value: float, trace_id: str | None = None, at_ms: int = 0) -> None:
        """Count one value, in the unit of the bounds; with a trace it is its bucket's exemplar, of the time `at_ms`."""
        bucket = bisect_left(self._bounds, value)
        self._counts[bucket] += 1
        self._total += value
        if trace_id is not None:
            self._exemplars[bucket] = Exemplar(trace_id, value, at_ms)

    def statistics(self) -> HistogramStatistics:
        """Return a copy that later observations do not change."""
        return HistogramStatistics(self._bounds, tuple(self._counts), self._total, dict(self._exemplars))
