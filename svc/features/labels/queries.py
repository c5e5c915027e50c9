"""Read queries about labels: outcomes of the archive, counts of days, and the labels of a visitor or an account."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from svc.features.labels.outcomes import OUTCOME_MS, Outcome, OutcomeSegment, outcome_of
from svc.features.labels.performance import LabelCounts
from svc.features.labels.tables import ACCOUNT_NUMBERS, OUTCOME_DAYS, OUTCOMES, SUBJECT_LABELS
from svc.identify.model import SUBJECTS, Subject
from svc.identify.records import Event
from svc.identify.tables.visitors import VISITOR_IDS
from svc.identify.velocity.counts import KINDS, EnvironmentKind, account_digest
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.ids import DAY_MS, made_at_ms

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
    """Return the counts of labeled events of a visitor or an account, by its id, over the last 400 days. Two rows are
    read.
    """
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
    """Return the UTC days since 1970 that have labels, and the days next to them, on which the request id may have been
    made.
    """
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


def day_of(at_ms: int) -> int:
    """Return the UTC day since 1970 of a time in Unix ms."""
    return at_ms // DAY_MS
