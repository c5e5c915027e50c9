"""What days add up to for performance, read again only where rows have changed (decisions 14.2).

A window of 400 days has thousands of rows of hours and days. Adding them up takes ten times as long as reading their
bytes, so sums are kept beside the bytes that they were made of, and made again where these differ. Nothing has to tell
this memory of a change, in whatever process it was made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from svc.features.labels.performance import Performance
from svc.features.labels.tables import OUTCOME_DAYS
from svc.identify.tables.events import HOURS
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from svc.kernel.values.ids import DAY_MS, HOUR_MS

K = TypeVar("K")
P = TypeVar("P")

DAYS_OF_STRETCH = 16
"""Whose rows are read in one step: a millisecond."""
MAX_DAYS = 512
"""Whose sums are kept in memory, each with the bytes of its 25 rows: some megabytes."""
MAX_STRETCHES = 128
HOURS_OF_DAY = DAY_MS // HOUR_MS

StoredRow = tuple[bytes, bytes]
"""Packed key, stored bytes."""


class Stretch(NamedTuple):
    """A range of UTC days, both ends included, of one environment of an organization."""

    number: int
    environment: Environment
    first_day: int
    last_day: int


class DayRows(NamedTuple):
    """The stored rows of a day, as bytes: equal rows have equal sums."""

    hours: tuple[StoredRow, ...]
    """Counters of stored events."""
    outcomes: tuple[StoredRow, ...]
    """Of archived events, and of labels: one at most."""


def stretches(number: int, environment: Environment, first_day: int, last_day: int) -> Iterator[Stretch]:
    """Yield the ranges of days that make up a window, oldest first. Two windows share all of them but those at their
    ends.
    """
    while first_day <= last_day:
        end = min(last_day, first_day - first_day % DAYS_OF_STRETCH + DAYS_OF_STRETCH - 1)
        yield Stretch(number, environment, first_day, end)
        first_day = end + 1


def read_rows(snapshot: Snapshot, stretch: Stretch) -> dict[int, DayRows]:
    """Return the rows of the days that have any, by UTC day. They are verified when they are added up."""
    hours: defaultdict[int, list[StoredRow]] = defaultdict(list)
    for row in _stored(snapshot, HOURS, stretch, HOURS_OF_DAY):
        hours[HOURS.key.unpack(row[0])[2] // HOURS_OF_DAY].append(row)
    outcomes = {OUTCOME_DAYS.key.unpack(row[0])[2]: row for row in _stored(snapshot, OUTCOME_DAYS, stretch, 1)}
    return {
        day: DayRows(tuple(hours[day]), (outcomes[day],) if day in outcomes else ())
        for day in sorted(hours.keys() | outcomes.keys())
    }


def _stored(snapshot: Snapshot, table: Table[Any], stretch: Stretch, of_day: int) -> Iterator[StoredRow]:
    stem = (stretch.number, ENVIRONMENTS.index(stretch.environment))
    return snapshot.stored(table, (*stem, stretch.first_day * of_day), (*stem, (stretch.last_day + 1) * of_day))


class PerformanceSums:
    """A cache of the sums that were computed last."""

    def __init__(self) -> None:
        self._days: _Latest[tuple[int, Environment, int], DayRows] = _Latest(MAX_DAYS)
        self._stretches: _Latest[Stretch, tuple[Performance, ...]] = _Latest(MAX_STRETCHES)

    def of_day(self, stretch: Stretch, day: int, rows: DayRows) -> Performance:
        """Return the sum of the rows of a day. Raises `CorruptionError`."""

        def add_up() -> Performance:
            summed = Performance()
            for row in rows.hours:
                summed.add_hour(HOURS.decode(*row))
            for row in rows.outcomes:
                summed.add_day(OUTCOME_DAYS.decode(*row))
            return summed

        return self._days.get((stretch.number, stretch.environment, day), rows, add_up)

    def knows(self, stretch: Stretch, day: int, rows: DayRows) -> bool:
        """Return whether the sum of a day is cached, so that `of_day` takes no time."""
        return self._days.has((stretch.number, stretch.environment, day), rows)

    def of_stretch(self, stretch: Stretch, days: tuple[Performance, ...]) -> Performance:
        """Return the sum over its days, given the sums that `of_day` returned."""

        def add_up() -> Performance:
            summed = Performance()
            for day in days:
                summed.add(day)
            return summed

        return self._stretches.get(stretch, days, add_up)


class _Latest(Generic[K, P]):
    """A cache by key of results and their inputs; keeps a limited number, those used last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[K, tuple[P, Performance]] = {}

    def has(self, key: K, made_of: P) -> bool:
        kept = self._kept.get(key)
        return kept is not None and kept[0] == made_of

    def get(self, key: K, made_of: P, make: Callable[[], Performance]) -> Performance:
        kept = self._kept.pop(key, None)
        if kept is None or kept[0] != made_of:
            kept = made_of, make()
        self._kept[key] = kept
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return kept[1]
