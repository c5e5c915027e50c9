"""Read queries about labels: outcomes of the archive, labels of a visitor or an account, and the sums of performance.

Adding up the rows of 400 days takes ten times as long as reading their bytes. So sums are cached beside the bytes that
they were made of, and made again where these differ: no process has to tell another of a change (decisions 14.2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from svc.features.labels.outcomes import OUTCOME_MS, Outcome, OutcomeSegment, outcome_of
from svc.features.labels.performance import LabelCounts, Performance
from svc.features.labels.tables import ACCOUNT_NUMBERS, OUTCOME_DAYS, OUTCOMES, SUBJECT_LABELS
from svc.identify.model import SUBJECTS, Subject
from svc.identify.records import Event
from svc.identify.tables import HOURS, VISITOR_IDS
from svc.identify.velocity.counts import KINDS, EnvironmentKind, account_digest
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from svc.kernel.values.ids import DAY_MS, HOUR_MS, made_at_ms

NO_LABELS = LabelCounts()


class Archived(NamedTuple):
    """An archived outcome, and the segment that has it."""

    newest: bytes
    """In the key of its segment."""
    segment: OutcomeSegment
    outcome: Outcome


def find_outcome(snapshot: Snapshot, number: int, request_id: bytes) -> Archived | None:
    """Return the archived outcome of a deleted event of the organization; `None` if there is none. One row is read."""
    found = next(snapshot.scan_keys(OUTCOMES, (number, request_id), (number + 1,)), None)
    segment = None if found is None else snapshot.get(OUTCOMES, *found)
    outcome = None if segment is None else segment.find(request_id)
    if found is None or segment is None or outcome is None:
        return None
    return Archived(found[1], segment, outcome)


def stored_outcome(snapshot: Snapshot, number: int, request_id: bytes, event: Event) -> Outcome:
    """Return the outcome of a stored event, with the numbers of its visitor and its account; 0 if it has none."""
    visitor = snapshot.get(VISITOR_IDS, number, event.verdict.visitor_id.encode()) or 0
    return outcome_of(event, request_id, visitor, account_number(snapshot, number, event.account_id))


def account_number(snapshot: Snapshot, number: int, account_id: str | None) -> int:
    """Return the number under which outcomes know an account; 0 if no outcome has it."""
    if account_id is None:
        return 0
    return snapshot.get(ACCOUNT_NUMBERS, number, account_digest(number, account_id)) or 0


def labels_of(
    snapshot: Snapshot, number: int, kind: EnvironmentKind, subject: Subject, subject_id: str | None
) -> LabelCounts:
    """Return the counts of a visitor's or an account's labeled events, by its id, over 400 days. Two rows are read."""
    if subject_id is None:
        return NO_LABELS
    if subject == "visitor":
        known_as = snapshot.get(VISITOR_IDS, number, subject_id.encode()) or 0
    else:
        known_as = account_number(snapshot, number, subject_id)
    if not known_as:
        return NO_LABELS
    return snapshot.get(SUBJECT_LABELS, number, KINDS.index(kind), SUBJECTS.index(subject), known_as) or NO_LABELS


def labeled_days(snapshot: Snapshot, number: int) -> frozenset[int]:
    """Return the UTC days since 1970 that have labels, and those next to them, which request ids may be of."""
    found = {
        day
        for (_, _, day), counts in snapshot.scan(OUTCOME_DAYS, number)
        if counts.fraud.events or counts.legitimate.events
    }
    return frozenset(day + beside for day in found for beside in (-1, 0, 1))


def labeled_segments(
    snapshot: Snapshot, below: bytes, count: int, *, number: int, of_days: frozenset[int], now_ms: int
) -> Iterator[tuple[bytes, list[Outcome] | None]]:
    """Yield the keys of the next `count` segments of the archive below the key `below`, newest first, with the labeled
    outcomes of those that are of these days; `None` = it is of another one.
    """
    for _, newest in islice(snapshot.scan_keys_reverse(OUTCOMES, (number,), (number, below)), count):
        if made_at_ms(newest) // DAY_MS not in of_days:
            yield newest, None
            continue
        segment = snapshot.get(OUTCOMES, number, newest)
        outcomes = () if segment is None else segment.outcomes
        yield newest, [each for each in outcomes if each.facts.label is not None and each.at_ms >= now_ms - OUTCOME_MS]


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
    """Yield the ranges of days that make up a window, oldest first. Two windows share all but those at their ends."""
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
    """A cache by key of results and their inputs; keeps the `most` that were used last."""

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
