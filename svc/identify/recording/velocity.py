"""Velocity: what an event adds to that of its visitor, account and address, and what takes it out again.

It lies in rows that an identification writes anyway: of a visitor in its record, of an account in its record, of an
address in the row that has its day, too (docs/adr/0216).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from svc.identify.history.activity import AddressActivity, AddressHistory, VisitorActivity, VisitorHistory
from svc.identify.history.evidence import DAY_S
from svc.identify.history.newcomers import Arrival, arrived, without
from svc.identify.index.digests import digest_of
from svc.identify.index.queries import Scope, Search
from svc.identify.model import Observation
from svc.identify.queries.events import event_if_readable
from svc.identify.queries.velocity import (
    EventSubjects,
    KnownAccount,
    StoredRow,
    account_key,
    activity_of,
    address_keys,
    counted_account,
    event_subjects,
    is_counted,
    known_account,
    read_address,
    read_row,
    stored_rows,
)
from svc.identify.records import Event
from svc.identify.tables import ACCOUNTS, ADDRESSES, VISITOR_IDS, VISITORS
from svc.identify.velocity.counts import (
    EMPTY,
    LONGEST_S,
    OTHERS,
    SUBJECTS,
    Counts,
    Subject,
    Velocity,
    VelocityRow,
    account_digest,
    country_digest,
    kind_of,
)
from svc.identify.velocity.record import AccountRecord, PairEvent, account_signals, first_record, may_show
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.organization import AccountThresholds
from svc.kernel.values.fields import ENVIRONMENTS

if TYPE_CHECKING:  # commands load this module, and need no reader of reports
    from svc.identify.identification import Assessment


class Counted(NamedTuple):
    """What an event was counted to."""

    velocity: Velocity
    """The event included, unless its report was sent before."""
    visitor: VelocityRow
    """Of its visitor, likewise."""
    address: VelocityRow
    """Of its address, likewise."""
    observations: tuple[Observation, ...] = ()
    """The signals that this shows."""
    known: KnownAccount = KnownAccount()
    """What was known of its account."""


def count_event(
    transaction: Transaction,
    assessment: Assessment,
    thresholds: AccountThresholds,
    visitor: int | None,
    lately: VisitorActivity,
    at_address: AddressActivity,
    arrival: Arrival | None = None,
    *,
    is_replayed: bool = False,
) -> Counted:
    """Count an identification for its visitor, account and address. That of the account is written with its record;
    those of the others are for the caller to write. `thresholds`: the organization's; `visitor`: its number, `None` if
    it is not identifiable; `lately`, `at_address`: what it and its address did before. An event that `is_replayed` is
    added to nothing: its counts are without it. `arrival`: what the row of its address remembers of it, `None` =
    nothing.
    """
    submission = assessment.submission
    kind = kind_of(submission.environment)
    who = _subjects_of(assessment, visitor)
    record = None if who.account is None else transaction.get(ACCOUNTS, *account_key(who))
    of_visitor = _counted(who, "visitor", lately.row(kind), is_replayed=is_replayed)
    of_address = _counted(who, "address", at_address.row(kind), is_replayed=is_replayed)
    if arrival is not None and not is_replayed:
        of_address = arrived(of_address, arrival, who.at_s)
    of_account = EMPTY if record is None else record.activity
    if who.account is not None:
        of_account = _counted(who, "account", of_account, is_replayed=is_replayed)
    velocity = Velocity(
        _with_accounts(of_visitor.counts("visitor", who.at_s), submission.test.account_velocity),
        None if who.account is None else of_account.counts("account", who.at_s),
        of_address.counts("address", who.at_s),
        not is_replayed,
    )
    known = known_account(record, visitor, who.at_s)
    if who.account is not None and not is_replayed:
        event = PairEvent(who.at_s, visitor, submission.account_verified)
        after = first_record(event) if record is None else record.with_event(event)
        transaction.put(ACCOUNTS, account_key(who), after.counting(of_account))
        known = known._replace(first_s=who.at_s if known.first_s is None else min(known.first_s, who.at_s))
    if not may_show(velocity):
        return Counted(velocity, of_visitor, of_address)
    observations = account_signals(velocity, thresholds, record, visitor, who.at_s)
    return Counted(velocity, of_visitor, of_address, observations, known)


def activity_after(
    assessment: Assessment, lately: VisitorActivity, history: VisitorHistory | None, counted: Counted
) -> bytes:
    """Return a visitor's activity after an identification, packed. `history`: of its day, `None` = as it was."""
    if history is not None:
        lately = lately._replace(history=history)
    if counted.velocity.is_counted:
        lately = lately.with_row(kind_of(assessment.submission.environment), counted.visitor)
    return lately.pack()


def put_address(
    transaction: Transaction,
    assessment: Assessment,
    before: AddressActivity,
    history: AddressHistory | None,
    counted: Counted,
) -> None:
    """Write what came from an address, if anything changed. `history`: that of its day, `None` = as it was."""
    submission, seen = assessment.submission, assessment.history
    if history is None and not counted.velocity.is_counted:
        return
    after = before._replace(history=before.history.on(seen.day) if history is None else history)
    if counted.velocity.is_counted:
        after = after.with_row(kind_of(submission.environment), counted.address)
    transaction.put(ADDRESSES, (submission.organization, seen.at_s // LONGEST_S, seen.address), after)


def _subjects_of(assessment: Assessment, visitor: int | None) -> EventSubjects:
    submission, number, country = (
        assessment.submission,
        assessment.submission.organization,
        assessment.network.country_code,
    )
    account = None if submission.account_id is None else account_digest(number, submission.account_id)
    return EventSubjects(
        number,
        submission.environment,
        submission.at_ms // 1000,
        visitor,
        account,
        counted_account(number, submission.request_id.bytes, account, submission.action),
        assessment.history.address,
        None if country is None else country_digest(country),
    )


def _note_account(transaction: Transaction, who: EventSubjects, *, is_verified: bool) -> None:
    """Add the event to the record of its account, if that changes anything: once a day for a visitor."""
    record = transaction.get(ACCOUNTS, *account_key(who))
    event = PairEvent(who.at_s, who.visitor, is_verified)
    after = first_record(event) if record is None else record.with_event(event)
    if after is not record:
        transaction.put(ACCOUNTS, account_key(who), after)


def _with_accounts(counts: Counts, at_least: int) -> Counts:
    """Raise a visitor's counts of accounts to `at_least`, as a test verdict asks for."""
    if not at_least:
        return counts
    hour, day, month = counts.others[0]
    accounts = (max(hour, at_least), max(day, at_least), max(month, at_least))
    return Counts(counts.events, (accounts, *counts.others[1:]))


def _counted(who: EventSubjects, subject: Subject, before: VelocityRow, *, is_replayed: bool) -> VelocityRow:
    """Return the velocity of a subject with the event, unless that `is_replayed`."""
    row = before.within(who.at_s)
    return row if is_replayed else row.with_space(who.at_s).with_event(who.at_s, who.others_of(subject))


MAX_COMPARED = 100
"""Newest other events of an account in one environment that are compared with an event that leaves it."""
MAX_SHARED = 16
"""Where it has more: so many at most of those that share the event's visitor, of those that share its address, and of
those that share its country."""


def move_event(
    transaction: Transaction, event: Event, before: EventSubjects, after: EventSubjects, now_ms: int
) -> None:
    """Count a stored event, already rewritten, for another account, or for none (decisions 11.2). `event`: as it was.

    The previous account loses the event, and those of its visitor, address and country that none of its other events
    has; the others it saw last at the newest of those. Visitor and address lose the account in the same way, and the
    place that a sign-up without an account had. Only present rows are changed: none of a period before the event, if a
    clock is behind it, and none that the erasure of the event would not look for.
    """
    now_s = min(max(now_ms // 1000, before.at_s), before.at_s + LONGEST_S)
    sharing = _Sharing()
    if before.account is not None and event.account_id is not None and before.account != after.account:
        sharing = _others_of_account(transaction, before, event, event.account_id)
        _leave_account(transaction, event, before, sharing, now_s)
    if before.counted_account not in (None, after.counted_account):
        _lose_account(transaction, before, sharing, now_s)
    if after.account is not None and after.account != before.account:
        row = read_row(transaction, after, "account", now_s).with_event(after.at_s, after.others_of("account"))
        _write(transaction, after, "account", now_s, row)
    if after.counted_account not in (None, before.counted_account):
        for subject in ("visitor", "address"):
            if after.id_of(subject) is not None:
                row = read_row(transaction, after, subject, now_s)
                row = row.with_others(after.at_s, _account_alone(after, subject))
                _write(transaction, after, subject, now_s, row)


def count_stored(transaction: Transaction, who: EventSubjects, now_s: int, *, is_verified: bool) -> None:
    """Add a stored event that no row counts to the rows of its subjects and to the record of its account."""
    now_s = min(max(now_s, who.at_s), who.at_s + LONGEST_S)
    for subject in SUBJECTS:
        if who.id_of(subject) is not None:
            row = read_row(transaction, who, subject, now_s)
            _write(transaction, who, subject, now_s, row.with_event(who.at_s, who.others_of(subject)))
    if who.account is not None:
        _note_account(transaction, who, is_verified=is_verified)


def verify_pair(transaction: Transaction, who: EventSubjects) -> None:
    """Record that a backend has set the account of a stored event (decisions 11.5)."""
    if who.account is not None:
        _note_account(transaction, who, is_verified=True)


class _OfAccount(NamedTuple):
    """Another event of an account."""

    subjects: EventSubjects
    is_verified: bool


class _Sharing(NamedTuple):
    """Other events of an account."""

    events: Sequence[_OfAccount] = ()
    is_all: bool = True
    """Whether it has no more."""


def _lose_account(transaction: Transaction, before: EventSubjects, sharing: _Sharing, now_s: int) -> None:
    """Take what an event counted as its account out of the rows of its visitor and its address."""
    for subject in ("visitor", "address"):
        own, gone = before.id_of(subject), _account_alone(before, subject)
        if own is not None:
            row = read_row(transaction, before, subject, now_s).without_others(gone)
            for each in sharing.events:
                if each.subjects.id_of(subject) == own:
                    row = row.with_others(each.subjects.at_s, gone)
            _write(transaction, before, subject, now_s, row.within(now_s))


def _leave_account(
    transaction: Transaction, event: Event, before: EventSubjects, sharing: _Sharing, now_s: int
) -> None:
    """Take an event out of the row and the record of its former account."""
    gone = before.others_of("account")
    row = read_row(transaction, before, "account", now_s).without_event(before.at_s, gone)
    for each in sharing.events:
        left = each.subjects.others_of("account")
        shared = tuple(one if one == other else None for one, other in zip(gone, left, strict=True))
        row = row.with_others(each.subjects.at_s, shared)
    _write(transaction, before, "account", now_s, row.within(now_s))
    record = transaction.get(ACCOUNTS, *account_key(before))
    if record is None:
        return
    others = [PairEvent(each.subjects.at_s, each.subjects.visitor, each.is_verified) for each in sharing.events]
    own = PairEvent(before.at_s, before.visitor, event.account_verified)
    keep_record(transaction, account_key(before), record.without_event(own, others, is_all=sharing.is_all))


def keep_record(transaction: Transaction, key: tuple[int, int, int], record: AccountRecord | None) -> None:
    """Write what is left of the record of an account; `None` = nothing."""
    if record is None:
        transaction.delete(ACCOUNTS, *key)
    else:
        transaction.put(ACCOUNTS, key, record)


def _others_of_account(snapshot: Snapshot, who: EventSubjects, event: Event, account_id: str) -> _Sharing:
    """Return the counted events of an account with which an event that leaves it is compared: the newest, and if there
    are more, those that have most in common with it. The event is stored with its new account already.
    """
    number = who.organization
    kind = kind_of(who.environment)
    scopes = [Scope(number, at) for at, environment in enumerate(ENVIRONMENTS) if kind_of(environment) == kind]
    account = digest_of("account_id", account_id)
    newest = [list(islice(Search(snapshot, scope, (account,)), MAX_COMPARED + 1)) for scope in scopes]
    found = {request_id for ids in newest for _, request_id in ids[:MAX_COMPARED]}
    is_all = all(len(ids) <= MAX_COMPARED for ids in newest)
    if not is_all:
        shared = {"visitor": event.verdict.visitor_id, "ip_address": event.ip_address, "country": event.country_code}
        for facet, value in shared.items():
            digests = () if value is None else (account, digest_of(facet, value))
            for scope in scopes if digests else ():
                search = Search(snapshot, scope, digests)
                found.update(request_id for _, request_id in islice(search, MAX_SHARED))
    events: list[_OfAccount] = []
    for request_id in sorted(found):
        other = event_if_readable(snapshot, number, request_id)
        if other is not None and other.account_id == account_id and is_counted(snapshot, number, request_id, other):
            visitor = snapshot.get(VISITOR_IDS, number, other.verdict.visitor_id.encode())
            subjects = event_subjects(number, request_id, other, visitor)
            events.append(_OfAccount(subjects, other.account_verified))
    return _Sharing(events, is_all)


def _account_alone(who: EventSubjects, subject: Subject) -> tuple[int | None, ...]:
    return tuple(who.counted_account if kind == "accounts" else None for kind in OTHERS[subject])


def _write(transaction: Transaction, who: EventSubjects, subject: Subject, now_s: int, row: VelocityRow) -> None:
    """Write the velocity of a subject of an event. Of an address it is written under the present period, also an empty
    one, since it replaces that of the period before.
    """
    kind = kind_of(who.environment)
    if subject == "visitor":
        _write_visitor(transaction, who, row)
    elif subject == "account":
        record = transaction.get(ACCOUNTS, *account_key(who))
        if record is None:
            record = first_record(PairEvent(who.at_s, who.visitor, is_verified=False))
        transaction.put(ACCOUNTS, account_key(who), record.counting(row))
    else:
        before = read_address(transaction, who.organization, who.address, now_s)
        key = (who.organization, now_s // LONGEST_S, who.address)
        transaction.put(ADDRESSES, key, before.with_row(kind, row))


def _write_visitor(transaction: Transaction, who: EventSubjects, row: VelocityRow) -> None:
    """Write the velocity of the visitor of an event; nothing if it is erased."""
    assert who.visitor is not None
    visitor = transaction.get(VISITORS, who.organization, who.visitor)
    if visitor is not None:
        activity = activity_of(visitor).with_row(kind_of(who.environment), row)
        after = msgspec.structs.replace(visitor, activity=activity.pack())
        transaction.put(VISITORS, (who.organization, who.visitor), after)


def _rewrite(transaction: Transaction, who: EventSubjects, stored: StoredRow, row: VelocityRow) -> None:
    """Replace velocity that is stored; delete the row of an address that has nothing else."""
    if row == stored.velocity:
        return
    if stored.subject != "address":
        _write(transaction, who, stored.subject, 0, row)
        return
    key = (who.organization, stored.period, who.address)
    activity = transaction.get(ADDRESSES, *key)
    assert activity is not None, "its velocity was read"
    write_address(transaction, key, activity.with_row(kind_of(who.environment), row))


def write_address(transaction: Transaction, key: tuple[int, int, int], activity: AddressActivity) -> None:
    """Write what is left of what came from an address; delete its row if that is nothing."""
    if activity.is_empty:
        transaction.delete(ADDRESSES, *key)
    else:
        transaction.put(ADDRESSES, key, activity)


def forget_visitor(transaction: Transaction, who: EventSubjects) -> None:
    """Take an event of a visitor that is being erased, and the visitor, out of the velocity of its account and address
    and out of the record of its account; its own is deleted with its row. The place of a sign-up without an account
    goes, too. An account or a country that only this visitor had stays counted until it leaves the windows: what is
    stored is a digest, and tells nothing about the visitor.
    """
    for stored in list(stored_rows(transaction, who)):
        row, subject = stored.velocity, stored.subject
        left = EMPTY if subject == "visitor" else row.without_event(who.at_s, _visitor_alone(who, subject))
        if who.account is None:
            left = left.without_others(_account_alone(who, subject))
        if subject == "address":
            left = without(left, who.visitor)
        _rewrite(transaction, who, stored, EMPTY if left.is_empty else left)
    if who.account is None or who.visitor is None:
        return
    record = transaction.get(ACCOUNTS, *account_key(who))
    remaining = None if record is None else record.without(frozenset({who.visitor}))
    if remaining is not None and not remaining.visitors and not remaining.activity.events:
        remaining = None  # this was its last event, and an earlier one took the visitor out
    if remaining is not record:
        keep_record(transaction, account_key(who), remaining)


def forget_in_history(transaction: Transaction, who: EventSubjects) -> None:
    """Take the visitor of an event, which is being erased, out of the day of its address."""
    for key in address_keys(who):
        activity = transaction.get(ADDRESSES, *key)
        if activity is None or activity.history.day not in (who.at_s // DAY_S, who.at_s // DAY_S + 1):
            continue
        left = activity.history.without(who.visitor or 0)
        if left != activity.history:
            write_address(transaction, key, activity._replace(history=left))


def forget_account(transaction: Transaction, who: EventSubjects, left: EventSubjects) -> None:
    """Take the account of an event, which is being erased, out of the velocity of its visitor and its address; `left`:
    the subjects of the event without it, which may be a sign-up with a place of its own. The account's own is deleted
    with its record, elsewhere.
    """
    for stored in list(stored_rows(transaction, left)):
        after = stored.velocity.without_others(_account_alone(who, stored.subject))
        after = after.with_others(left.at_s, _account_alone(left, stored.subject))
        _rewrite(transaction, left, stored, after)


def own_part(who: EventSubjects, activity: AddressActivity) -> AddressActivity:
    """Return the part of what came from an address that is about the visitor of an event."""
    history = activity.history
    own = tuple(pair for pair in zip(history.visitors, history.homelands, strict=True) if pair[0] == who.visitor)
    seen = AddressHistory(tuple(number for number, _ in own), tuple(homeland for _, homeland in own), day=history.day)
    row = EMPTY.with_event(who.at_s, _visitor_alone(who, "address"))
    return AddressActivity(history=seen if own else AddressHistory()).with_row(kind_of(who.environment), row)


def _visitor_alone(who: EventSubjects, subject: Subject) -> tuple[int | None, ...]:
    return tuple(who.visitor if kind == "visitors" else None for kind in OTHERS[subject])
