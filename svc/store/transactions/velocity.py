"""Velocity rows: what an event adds to those of its visitor, account and address, and what takes it out again.

Bounds: two rows are read and written, three with an account; in the first event of a subject in a period of 30 days one
more is read for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from svc.domain.accounts.signals import account_signals
from svc.domain.accounts.velocity import (
    EMPTY,
    LONGEST_S,
    OTHERS,
    SUBJECTS,
    Counts,
    Subject,
    Velocity,
    VelocityRow,
    kind_of,
)
from svc.domain.identification import Assessment
from svc.domain.model import ENVIRONMENTS, Observation
from svc.domain.records import Event
from svc.store.schema.tables import EVENTS, VELOCITY, VISITOR_IDS
from svc.store.snapshot import Snapshot, Transaction
from svc.store.views.event_index import Scope, Search, digest_of
from svc.store.views.lookups import organization
from svc.store.views.velocity import Party, make_party, party_of, read_row, row_key, row_keys


class Counted(NamedTuple):
    """The rows to which an event was counted."""

    velocity: Velocity
    """The event included."""
    observations: tuple[Observation, ...] = ()
    """The signals that this shows."""
    account_first_s: int | None = None
    """When its account was seen first; `None` = it has none."""


def count_event(transaction: Transaction, assessment: Assessment, visitor: int | None, *, is_new: bool) -> Counted:
    """Add an identification to the velocity rows of its subjects. `visitor`: its number, `None` if it is not
    identifiable; for one that `is_new` no row is looked up.
    """
    submission = assessment.submission
    who = make_party(
        submission.organization,
        submission.environment,
        submission.at_ms,
        visitor,
        submission.account_id,
        assessment.history.address,
        assessment.network.country_code,
    )
    rows: dict[Subject, VelocityRow] = {}
    before: dict[Subject, VelocityRow] = {"visitor": EMPTY} if is_new else {}
    for subject in SUBJECTS:
        if subject == "account":
            if who.account is None:
                continue
            before["account"] = read_row(transaction, who, "account", who.at_s)
        rows[subject] = _added(transaction, who, subject, before.get(subject))
    velocity = Velocity(
        _with_accounts(rows["visitor"].counts("visitor", who.at_s), submission.test.account_velocity),
        rows["account"].counts("account", who.at_s) if "account" in rows else None,
        rows["address"].counts("address", who.at_s),
    )
    if who.account is None:
        return Counted(velocity)
    thresholds = organization(transaction, who.organization).account_thresholds
    shown = account_signals(velocity, thresholds, before["account"], visitor, who.at_s)
    return Counted(velocity, shown, rows["account"].first_s)


def _with_accounts(counts: Counts, at_least: int) -> Counts:
    """The counts of a visitor with `at_least` accounts: what a test verdict asks for."""
    if not at_least:
        return counts
    hour, day, month = counts.others[0]
    accounts = (max(hour, at_least), max(day, at_least), max(month, at_least))
    return Counts(counts.events, (accounts, *counts.others[1:]))


def _added(transaction: Transaction, who: Party, subject: Subject, before: VelocityRow | None) -> VelocityRow:
    """The row of a subject with the event, written where the subject has one."""
    others = who.others_of(subject)
    if who.id_of(subject) is None:
        return EMPTY.with_event(who.at_s, others)
    row = (read_row(transaction, who, subject, who.at_s) if before is None else before).with_event(who.at_s, others)
    transaction.put(VELOCITY, row_key(who, subject, who.at_s // LONGEST_S), row)
    return row


MOST_COMPARED = 1000
"""Other events of an account that are looked through for its visitors, addresses and countries."""


def move_event(transaction: Transaction, event: Event, before: Party, after: Party, now_ms: int) -> None:
    """Count a stored event, already rewritten, for another account, or for none (decisions 11.2).

    The previous account loses the event, and those of its visitor, address and country that none of its other events
    has; visitor and address lose the account in the same way. Only present rows are changed: none of a period before
    the event, if a clock is behind it, and none that the erasure of the event would not look for.
    """
    now_s = min(max(now_ms // 1000, before.at_s), before.at_s + LONGEST_S)
    if before.account is not None and event.account_id is not None:
        others = list(_others_of_account(transaction, before, event.account_id))
        row = read_row(transaction, before, "account", now_s)
        gone = tuple(
            None if other is None or any(party.others_of("account")[at] == other for party in others) else other
            for at, other in enumerate(before.others_of("account"))
        )
        _write(transaction, before, "account", now_s, row.without_event(before.at_s, gone))
        for subject in ("visitor", "address"):
            own = before.id_of(subject)
            if own is not None and all(party.id_of(subject) != own for party in others):
                row = read_row(transaction, before, subject, now_s)
                _write(transaction, before, subject, now_s, row.without_others(_account_alone(before, subject)))
    if after.account is not None:
        row = read_row(transaction, after, "account", now_s).with_event(after.at_s, after.others_of("account"))
        _write(transaction, after, "account", now_s, row)
        for subject in ("visitor", "address"):
            if after.id_of(subject) is not None:
                row = read_row(transaction, after, subject, now_s)
                row = row.with_others(after.at_s, _account_alone(after, subject))
                _write(transaction, after, subject, now_s, row)


def _others_of_account(snapshot: Snapshot, who: Party, account_id: str) -> Iterator[Party]:
    """The parties of the newest events of an account; the event that was its own is written with another one."""
    environments = [name for name in ENVIRONMENTS if kind_of(name) == kind_of(who.environment)]
    for environment in environments:
        scope = Scope(who.organization, ENVIRONMENTS.index(environment))
        search = Search(snapshot, scope, (digest_of("account_id", account_id),))
        for _, request_id in islice(search, MOST_COMPARED):
            event = snapshot.get(EVENTS, who.organization, request_id)
            if event is not None and event.account_id == account_id:
                visitor = snapshot.get(VISITOR_IDS, who.organization, event.verdict.visitor_id.encode())
                yield party_of(who.organization, event, visitor)


def _account_alone(who: Party, subject: Subject) -> tuple[int | None, ...]:
    return tuple(who.account if kind == "accounts" else None for kind in OTHERS[subject])


def _write(transaction: Transaction, who: Party, subject: Subject, now_s: int, row: VelocityRow) -> None:
    """Write a row under the present period, also an empty one: that of the period before counts no more then."""
    transaction.put(VELOCITY, row_key(who, subject, now_s // LONGEST_S), row)


def forget_visitor(transaction: Transaction, who: Party) -> None:
    """Take an event of a visitor that is being erased, and the visitor, out of the rows of its account and address;
    delete the visitor's own rows. An account or a country that only this visitor had stays counted until it leaves the
    windows: what is stored is a digest, and tells nothing about the visitor.
    """
    for key in row_keys(who):
        row = transaction.get(VELOCITY, *key)
        if row is None:
            continue
        subject = SUBJECTS[key[3]]
        left = EMPTY if subject == "visitor" else row.without_event(who.at_s, _visitor_alone(who, subject))
        if left.is_empty:
            transaction.delete(VELOCITY, *key)
        elif left != row:
            transaction.put(VELOCITY, key, left)


def forget_account(transaction: Transaction, who: Party) -> None:
    """Take the account of an event, which is being erased, out of the rows of its visitor and its address. The
    account's own rows are deleted elsewhere.
    """
    for key in row_keys(who):
        subject = SUBJECTS[key[3]]
        row = None if subject == "account" else transaction.get(VELOCITY, *key)
        left = None if row is None else row.without_others(_account_alone(who, subject))
        if left is not None and left != row:
            transaction.put(VELOCITY, key, left)


def own_part(who: Party, key: tuple[int, ...], row: VelocityRow) -> VelocityRow:
    """Return the part of a row that is about the visitor of an event: the whole row if it is the visitor's own, else
    the event alone.
    """
    subject = SUBJECTS[key[3]]
    return row if subject == "visitor" else EMPTY.with_event(who.at_s, _visitor_alone(who, subject))


def _visitor_alone(who: Party, subject: Subject) -> tuple[int | None, ...]:
    return tuple(who.visitor if kind == "visitors" else None for kind in OTHERS[subject])
