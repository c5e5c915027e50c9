"""Labels of events, and outcomes: changed, archived, deleted and erased (decisions 14.1, docs/adr/0119).

An event that is stored has its label itself. When it is deleted, its outcome goes into the archive, and there its label
may change for 400 days in all. Counts by day, and the labels of visitors and accounts, follow each change.

Bounds: an identification reads and writes nothing here. A label reads and writes a row for its day, and up to two for
its visitor and its account.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

import msgspec

from svc.features.contracts.cleanup import Pass, Purge, each_row
from svc.features.contracts.erased import Erased, Forgetting, Keys
from svc.features.labels.outcomes import OUTCOME_MS, Facts, Outcome, merged
from svc.features.labels.performance import NO_OUTCOMES, DayOutcomes, LabelCounts
from svc.features.labels.queries import account_number, find_outcome, stored_outcome
from svc.features.labels.tables import (
    ACCOUNT_NUMBER_COUNTS,
    ACCOUNT_NUMBERS,
    NUMBERED_ACCOUNTS,
    OUTCOME_DAYS,
    OUTCOMES,
    SUBJECT_LABELS,
    NumberedAccount,
)
from svc.identify.index.queries import Scope
from svc.identify.model import SUBJECTS, Label, Subject
from svc.identify.queries.event_changes import note_changes
from svc.identify.queries.events import refuse_hidden, rewrite_event
from svc.identify.records import Event
from svc.identify.tables import EVENTS, VISITORS
from svc.identify.velocity.counts import KINDS, account_digest, kind_of
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.queries import refuse_given
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from svc.kernel.values.ids import DAY_MS, first_id, made_at_ms
from svc.kernel.values.refusals import Refusal, invalid

MAX_IN_SEGMENT = 512


class Labeled(NamedTuple):
    """The present label of an event."""

    label: Label | None
    reason: str | None


class LabelChange(msgspec.Struct, frozen=True):
    """A change of a label; `UNSET` leaves a field as it is."""

    label: Label | msgspec.UnsetType | None = msgspec.UNSET
    reason: str | msgspec.UnsetType | None = msgspec.UNSET

    def upon(self, before: Labeled) -> Labeled | Refusal:
        """Return the label after this change of `before`. A reason goes with its label: it is removed with it, and
        `422` refuses a reason without a label.
        """
        label = before.label if self.label is msgspec.UNSET else self.label
        kept = before.reason if label == before.label else None
        reason = kept if self.reason is msgspec.UNSET else self.reason
        if reason is not None and label is None:
            return invalid("label_reason", "invalid_value")
        return Labeled(label, reason)


def label_request(
    transaction: Transaction,
    number: int,
    request_id: bytes,
    change: LabelChange,
    now_ms: int,
    environment: Environment | None = None,
) -> Labeled | Refusal:
    """Change the label of an event of the organization, stored or archived; with `environment`, only if it is of that
    one. Refuses with `404 event_not_found` an event that is unknown or arrived more than 400 days ago. Raises
    `CorruptionError` if a corrupt table hides it.
    """
    event = transaction.get(EVENTS, number, request_id)
    if event is not None:
        if environment not in (None, event.environment) or event.occurred_at_ms < now_ms - OUTCOME_MS:
            return Refusal("event_not_found")
        labeled = change.upon(Labeled(event.label, event.label_reason))
        if isinstance(labeled, Labeled):
            after = msgspec.structs.replace(event, label=labeled.label, label_reason=labeled.reason)
            rewrite_labeled(transaction, number, request_id, event, after, now_ms)
        return labeled
    found = find_outcome(transaction, number, request_id)
    if found is None:
        refuse_hidden(transaction, number, UUID(bytes=request_id), now_ms, OUTCOME_MS)
    if found is None or environment not in (None, found.outcome.facts.environment):
        return Refusal("event_not_found")
    if found.outcome.at_ms < now_ms - OUTCOME_MS:
        return Refusal("event_not_found")
    facts = found.outcome.facts
    labeled = change.upon(Labeled(facts.label, facts.label_reason))
    if isinstance(labeled, Labeled):
        outcome = found.outcome.with_label(labeled.label, labeled.reason)
        transaction.put(OUTCOMES, (number, found.newest), found.segment.replacing(outcome))
        _recount(transaction, number, found.outcome, outcome)
        if outcome != found.outcome:
            scope = Scope(number, ENVIRONMENTS.index(facts.environment))
            note_changes(transaction, scope, "updated", now_ms, [(request_id, outcome.at_ms)])
    return labeled


def rewrite_labeled(
    transaction: Transaction, number: int, request_id: bytes, before: Event, after: Event, now_ms: int
) -> None:
    """Replace a stored event, and update its label rows if it has or had a label."""
    if after == before:
        return
    rewrite_event(transaction, number, UUID(bytes=request_id), before, after, now_ms)
    if before.label is None and after.label is None:
        return
    was = stored_outcome(transaction, number, request_id, before)
    if after.label is not None:
        _number_account(transaction, number, after.account_id, after.occurred_at_ms // DAY_MS)
    _recount(transaction, number, was, stored_outcome(transaction, number, request_id, after))


def archive(transaction: Transaction, number: int, events: Sequence[tuple[bytes, Event]]) -> None:
    """Put the outcomes of these events, each with its request id (16 bytes), which are about to be deleted, into the
    archive. Erased visitors and accounts have no number in it.
    """
    outcomes: list[Outcome] = []
    for request_id, event in events:
        _number_account(transaction, number, event.account_id, event.occurred_at_ms // DAY_MS)
        outcomes.append(stored_outcome(transaction, number, request_id, event))
    targets: defaultdict[tuple[int, bytes | None], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        day = made_at_ms(outcome.request_id) // DAY_MS
        targets[day, _target(transaction, number, outcome.request_id, day)].append(outcome)
    for (_, newest), added in targets.items():
        segment = None if newest is None else transaction.get(OUTCOMES, number, newest)
        if segment is not None:
            transaction.delete(OUTCOMES, number, newest)
        for each in merged(segment, added, MAX_IN_SEGMENT):
            transaction.put(OUTCOMES, (number, each.newest), each)
    _count_archived(transaction, number, outcomes, 1)


def _target(transaction: Transaction, number: int, request_id: bytes, day: int) -> bytes | None:
    """Return the key of the segment that an outcome belongs in; `None` if its day has none yet."""
    first, beyond = first_id(day * DAY_MS), first_id((day + 1) * DAY_MS)
    found = next(transaction.scan_keys(OUTCOMES, (number, request_id), (number, beyond)), None) or next(
        transaction.scan_keys_reverse(OUTCOMES, (number, first), (number, request_id)), None
    )
    return None if found is None else found[1]


def _purge_outcomes(transaction: Transaction, number: int, newest: bytes) -> None:
    """Delete a segment of the archive, and subtract its outcomes from the counts."""
    segment = transaction.get(OUTCOMES, number, newest)
    if segment is None:
        return
    transaction.delete(OUTCOMES, number, newest)
    for outcome in segment.outcomes:
        _recount(transaction, number, outcome, None)
    _count_archived(transaction, number, segment.outcomes, -1)


def forget_labels(transaction: Transaction, number: int, subject: Subject, known_as: int) -> None:
    """Delete the label counts of a visitor or an account that is being erased, by its number, which leads nowhere
    afterwards. The labels stay with their events and outcomes (decisions 14.1).
    """
    for kind in range(len(KINDS)):
        transaction.delete(SUBJECT_LABELS, number, kind, SUBJECTS.index(subject), known_as)


def _forget_account_number(transaction: Transaction, number: int, digest: int) -> None:
    """Delete the number of an account, found by its digest, and its counts."""
    known_as = transaction.get(ACCOUNT_NUMBERS, number, digest)
    transaction.delete(ACCOUNT_NUMBERS, number, digest)
    if known_as is not None:
        forget_labels(transaction, number, "account", known_as)
        transaction.delete(NUMBERED_ACCOUNTS, number, known_as)


def _delete_unnamed_account(
    now_ms: int, transaction: Transaction, key: tuple[int, int], account: NumberedAccount
) -> bool:
    """Delete the number of an account if no outcome names it any more; return whether it was deleted."""
    if account.last_day * DAY_MS >= now_ms - OUTCOME_MS - 2 * DAY_MS:
        return False
    _forget_account_number(transaction, key[0], account.digest)
    transaction.delete(NUMBERED_ACCOUNTS, *key)  # nothing leads to it if an erasure could not read its number
    return True


def _number_account(transaction: Transaction, number: int, account_id: str | None, day: int) -> None:
    """Give the account a number if it has none, and record that an outcome of this day names it."""
    if account_id is None:
        return
    known_as, digest = account_number(transaction, number, account_id), account_digest(number, account_id)
    if not known_as:
        if transaction.has(ACCOUNT_NUMBERS, number, digest):
            return  # it cannot be read, which must not prevent an erasure
        known_as = (transaction.get(ACCOUNT_NUMBER_COUNTS, number) or 0) + 1
        refuse_given(transaction, NUMBERED_ACCOUNTS, number, known_as)
        transaction.put(ACCOUNT_NUMBER_COUNTS, (number,), known_as)
        transaction.put(ACCOUNT_NUMBERS, (number, digest), known_as)
    kept = transaction.get(NUMBERED_ACCOUNTS, number, known_as)
    if kept is None or kept.last_day < day:
        transaction.put(NUMBERED_ACCOUNTS, (number, known_as), NumberedAccount(digest, day))


def _recount(transaction: Transaction, number: int, before: Outcome, after: Outcome | None) -> None:
    """Replace an outcome's former label in the counts with its current one; with `None`, only remove it."""
    if before == after:
        return
    for outcome, sign in ((before, -1), (after, 1)):
        if outcome is None or outcome.facts.label is None:
            continue
        key = (number, ENVIRONMENTS.index(outcome.facts.environment), outcome.day)
        day = transaction.get(OUTCOME_DAYS, *key) or NO_OUTCOMES
        _put_day(transaction, key, day.labeling(outcome.facts, sign))
        _count_subject(transaction, number, outcome.facts, "visitor", outcome.visitor, sign)
        _count_subject(transaction, number, outcome.facts, "account", outcome.account, sign)


def _count_archived(transaction: Transaction, number: int, outcomes: Iterable[Outcome], sign: int) -> None:
    by_day: defaultdict[tuple[int, int, int], list[Facts]] = defaultdict(list)
    for outcome in outcomes:
        by_day[number, ENVIRONMENTS.index(outcome.facts.environment), outcome.day].append(outcome.facts)
    for key, facts in by_day.items():
        _put_day(transaction, key, (transaction.get(OUTCOME_DAYS, *key) or NO_OUTCOMES).archiving(facts, sign))


def _put_day(transaction: Transaction, key: tuple[int, int, int], counts: DayOutcomes) -> None:
    if counts == NO_OUTCOMES:
        transaction.delete(OUTCOME_DAYS, *key)
    else:
        transaction.put(OUTCOME_DAYS, key, counts)


def _count_subject(
    transaction: Transaction, number: int, facts: Facts, subject: Subject, known_as: int, sign: int
) -> None:
    """Count a label of a visitor or account; do nothing if it is erased or never had a number."""
    table = VISITORS if subject == "visitor" else NUMBERED_ACCOUNTS
    if not known_as or facts.label is None or not transaction.has(table, number, known_as):
        return
    key = (number, KINDS.index(kind_of(facts.environment)), SUBJECTS.index(subject), known_as)
    counts = (transaction.get(SUBJECT_LABELS, *key) or LabelCounts()).adding(facts.label, sign)
    if counts == LabelCounts():
        transaction.delete(SUBJECT_LABELS, *key)
    else:
        transaction.put(SUBJECT_LABELS, key, counts)


def _has_number(snapshot: Snapshot, number: int, subject: Subject, subject_id: str) -> bool:
    return subject == "account" and snapshot.has(ACCOUNT_NUMBERS, number, account_digest(number, subject_id))


def _forget_account(transaction: Transaction, number: int, subject: Subject, subject_id: str) -> bool:
    is_known = _has_number(transaction, number, subject, subject_id)
    if is_known:
        _forget_account_number(transaction, number, account_digest(number, subject_id))
    return is_known


def _forget_visitor(transaction: Transaction, number: int, visitor_number: int) -> None:
    forget_labels(transaction, number, "visitor", visitor_number)


def _of_visitor(_: Snapshot, number: int, visitor: int, _id: bytes) -> Keys:
    for kind in range(len(KINDS)):
        yield SUBJECT_LABELS, (number, kind, SUBJECTS.index("visitor"), visitor)


def _of_account(snapshot: Snapshot, number: int, account_id: str) -> Keys:
    known_as = account_number(snapshot, number, account_id)
    if known_as:
        yield ACCOUNT_NUMBERS, (number, account_digest(number, account_id))
        yield NUMBERED_ACCOUNTS, (number, known_as)
        for kind in range(len(KINDS)):
            yield SUBJECT_LABELS, (number, kind, SUBJECTS.index("account"), known_as)


ERASED = {
    "forget_labels": Erased(
        (SUBJECT_LABELS, ACCOUNT_NUMBERS, NUMBERED_ACCOUNTS), of_visitor=_of_visitor, of_account=_of_account
    ),
}
FORGET = Forgetting(is_known=_has_number, at_once=_forget_account, visitor=_forget_visitor)


PASSES: tuple[Pass, ...] = (
    lambda sweep: each_row(NUMBERED_ACCOUNTS, partial(_delete_unnamed_account, sweep.now_ms), sweep.number),
)
PURGED_BY = {OUTCOMES.name: Purge(_purge_outcomes, rows=250)}
"""Of a segment most rows are those of the outcomes that are labeled."""
