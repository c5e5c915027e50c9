"""The rules of labels: what is counted is what outcomes and labels add up to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any
from uuid import UUID

from svc.features.labels.jobs import MAX_IN_SEGMENT
from svc.features.labels.outcomes import Outcome, OutcomeSegment
from svc.features.labels.performance import DayOutcomes, LabelCounts
from svc.features.labels.queries import stored_outcome
from svc.features.labels.tables import (
    ACCOUNT_NUMBER_COUNTS,
    ACCOUNT_NUMBERS,
    NUMBERED_ACCOUNTS,
    OUTCOME_DAYS,
    OUTCOMES,
    SUBJECT_LABELS,
)
from svc.identify.model import SUBJECTS
from svc.identify.tables import ACCOUNT_ERASURES, EVENTS, VISITORS
from svc.identify.velocity.counts import KINDS, kind_of
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.key_parts import DAY
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import ENVIRONMENTS
from svc.kernel.values.ids import DAY_MS, made_at_ms


def label_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield what is wrong with the archive of outcomes of an organization, with the counts of its days, and with the
    labels of its visitors and accounts, in words. The counts of days and of those with labels are held in memory.
    """
    for (_, newest), segment in snapshot.scan(OUTCOMES, number):
        yield from _segment_fault(number, newest, segment)
        for outcome in segment.outcomes:
            if snapshot.has(EVENTS, number, outcome.request_id):
                yield f"request {UUID(bytes=outcome.request_id)} is archived and its event is stored"
    for table, expected in expected_label_rows(snapshot, number).items():
        kept = {tuple(key[1:]): counts for key, counts in snapshot.scan(table, number)}
        for key in sorted(expected.keys() | kept.keys()):
            if kept.get(key) != expected.get(key):
                yield from _MISCOUNTED[table](snapshot, number, *key)
    yield from _misnumbered(snapshot, number)


def expected_label_rows(snapshot: Snapshot, number: int) -> dict[Table[Any], dict[tuple[int, ...], Any]]:
    """Return what the rows of days and of labeled subjects must have, by the end of their keys, by what can be read."""
    days: defaultdict[tuple[int, ...], DayOutcomes] = defaultdict(DayOutcomes)
    subjects: defaultdict[tuple[int, ...], LabelCounts] = defaultdict(LabelCounts)
    for _, segment in snapshot.scan(OUTCOMES, number):
        for outcome in segment.outcomes:
            key = _day_key(outcome)
            days[key] = days[key].archiving([outcome.facts])
    for outcome in _labeled(snapshot, number):
        key, label, kind = _day_key(outcome), outcome.facts.label, KINDS.index(kind_of(outcome.facts.environment))
        days[key] = days[key].labeling(outcome.facts)
        for subject, known_as, table in ((0, outcome.visitor, VISITORS), (1, outcome.account, NUMBERED_ACCOUNTS)):
            if label is not None and known_as and snapshot.has(table, number, known_as):
                subjects[kind, subject, known_as] = subjects[kind, subject, known_as].adding(label, 1)
    return {OUTCOME_DAYS: days, SUBJECT_LABELS: subjects}


def _day_key(outcome: Outcome) -> tuple[int, ...]:
    return ENVIRONMENTS.index(outcome.facts.environment), outcome.day


def _miscounted_day(_: Snapshot, number: int, environment: int, day: int) -> Iterator[str]:
    name = f"organization {number}, {ENVIRONMENTS[environment]}, {DAY.show(day)}"
    yield f"the counts of {name} are not what its outcomes and labels add up to"


def _miscounted_subject(snapshot: Snapshot, number: int, _: int, subject: int, known_as: int) -> Iterator[str]:
    account = snapshot.get(NUMBERED_ACCOUNTS, number, known_as) if subject else None
    if account is None or not snapshot.has(ACCOUNT_ERASURES, number, account.digest):
        yield f"the labels of {SUBJECTS[subject]} {known_as} of organization {number} are not those of its events"
    # else it has left some of its events, and its number goes last


_MISCOUNTED: dict[Table[Any], Callable[..., Iterator[str]]] = {
    OUTCOME_DAYS: _miscounted_day,
    SUBJECT_LABELS: _miscounted_subject,
}


def _segment_fault(number: int, newest: bytes, segment: OutcomeSegment) -> Iterator[str]:
    ids = [outcome.request_id for outcome in segment.outcomes]
    is_in_order = all(one < other for one, other in pairwise(ids)) and ids[-1:] == [newest]
    is_of_one_day = len({made_at_ms(each) // DAY_MS for each in ids}) == 1
    if not is_in_order or not is_of_one_day or len(ids) > MAX_IN_SEGMENT:
        yield f"the outcomes of organization {number} up to {UUID(bytes=newest)} are not a segment of one day in order"


def _labeled(snapshot: Snapshot, number: int) -> Iterator[Outcome]:
    """Yield outcomes with a label: archived ones, then those of stored events that are readable."""
    for _, segment in snapshot.scan(OUTCOMES, number):
        yield from (outcome for outcome in segment.outcomes if outcome.facts.label is not None)
    for (_, request_id), event in snapshot.scan_past_corruption(EVENTS, (number,), (number + 1,)):
        if not isinstance(event, CorruptionError) and event.label is not None:
            yield stored_outcome(snapshot, number, request_id, event)


def _misnumbered(snapshot: Snapshot, number: int) -> Iterator[str]:
    given = snapshot.get(ACCOUNT_NUMBER_COUNTS, number) or 0
    for (_, known_as), account in snapshot.scan(NUMBERED_ACCOUNTS, number):
        if known_as > given or snapshot.get(ACCOUNT_NUMBERS, number, account.digest) != known_as:
            yield f"account number {known_as} of organization {number} was not given, or is not found by its account"
    for (_, digest), known_as in snapshot.scan(ACCOUNT_NUMBERS, number):
        account = snapshot.get(NUMBERED_ACCOUNTS, number, known_as)
        if account is None or account.digest != digest:
            yield f"account number {known_as} of organization {number} leads to another account"


RULES = {"labels": label_faults}
