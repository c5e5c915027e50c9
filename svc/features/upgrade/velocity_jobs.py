"""What migrations make of the velocity and the days of earlier versions, which had tables of their own.

What may live here: those tables as they were, the records of accounts that version 7 made of them, and the rows into
which version 9 moves them (docs/adr/0216).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from svc.features.accounts.jobs import begin
from svc.identify.history.activity import AddressActivity, AddressHistory, VisitorActivity, VisitorHistory
from svc.identify.history.evidence import DAY_S
from svc.identify.queries.velocity import NO_ADDRESS, EventSubjects, account_key, activity_of, event_subjects
from svc.identify.tables import ACCOUNTS, ADDRESSES, EVENTS, VISITOR_IDS, VISITORS
from svc.identify.velocity.counts import KINDS, LONGEST_S, OTHERS, SUBJECTS, Subject, VelocityRow, kind_of
from svc.identify.velocity.record import AccountRecord, KnownVisitor, PairEvent, first_record
from svc.kernel.store.schema.codec import Key, Layout, Opaque, Record
from svc.kernel.store.schema.key_parts import DAY, U32, U64, index_of, period
from svc.kernel.store.schema.table import LastTwoPeriods, NotPersonal, Table
from svc.kernel.store.snapshot import Transaction


class FormerVisitorDay(msgspec.Struct, frozen=True, array_like=True):
    """A row of `visitor_history`: `VisitorHistory` without its day."""

    activity: tuple[tuple[int, int], ...] = ()
    addresses: tuple[tuple[int, int], ...] = ()
    countries: tuple[tuple[str, int], ...] = ()
    lessons: int = 0


class FormerAddressDay(msgspec.Struct, frozen=True, array_like=True):
    """A row of `address_history`: `AddressHistory` without its day."""

    visitors: tuple[int, ...] = ()
    homelands: tuple[str, ...] = ()
    lessons: int = 0
    lookalikes: int = 0


_FORMER = NotPersonal("empty since version 9")


class FormerAccount(msgspec.Struct, frozen=True, array_like=True):
    """A row of `accounts` as versions 7 and 8 wrote it: `AccountRecord` without its velocity."""

    first_s: int
    last_s: int
    visitors: tuple[KnownVisitor, ...] = ()


FORMER_ACCOUNTS = Table("accounts", ACCOUNTS.key, Record(FormerAccount), ACCOUNTS.keep, _FORMER)
_RAW_ACCOUNTS = Table("accounts", ACCOUNTS.key, Opaque(), ACCOUNTS.keep, _FORMER)
_CBOR_ARRAY = 0x80
"""The first byte of a record of versions 7 and 8, at least; later ones begin with a 1."""
VELOCITY = Table(
    "velocity",
    Key(organization=U32, period=period(1000 * LONGEST_S), kind=index_of(KINDS), subject=index_of(SUBJECTS), id=U64),
    Layout(VelocityRow.pack, VelocityRow.unpack),
    LastTwoPeriods(),
    _FORMER,
)
VISITOR_HISTORY = Table(
    "visitor_history",
    Key(organization=U32, day=DAY, visitor=U32),
    Record(FormerVisitorDay),
    LastTwoPeriods(),
    _FORMER,
)
ADDRESS_HISTORY = Table(
    "address_history",
    Key(organization=U32, day=DAY, address=U64),
    Record(FormerAddressDay),
    LastTwoPeriods(),
    _FORMER,
)
TABLES = (VELOCITY, VISITOR_HISTORY, ADDRESS_HISTORY)


def build_records(transaction: Transaction) -> None:
    """Make the record of each account, and count each sign-up without an account as one of its own (decisions 11.2).

    The visitor of the oldest event that is stored passes for the first. An account without events, of which a velocity
    row is left, has the visitors of that row. Events from before velocity are noted as such: `recount` counts them.
    """
    uncounted: dict[int, bytes] = {}
    for (number, request_id), event in transaction.scan(EVENTS):
        if event.velocity is None:
            uncounted[number] = request_id  # they come in the order of their ids
        if event.velocity is None or not event.velocity.is_counted:
            continue
        visitor = transaction.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
        who = event_subjects(number, request_id, event, visitor)
        if who.account is not None:
            record = transaction.get(ACCOUNTS, *account_key(who))
            own = PairEvent(who.at_s, visitor, event.account_verified)
            after = first_record(own) if record is None else record.with_event(own)
            _write(transaction, account_key(who), record, after)
        elif who.counted_account is not None:
            _count_sign_up(transaction, who)
    of_account = SUBJECTS.index("account")
    for (number, _, kind, subject, account), row in _rows(transaction, VELOCITY):
        if subject == of_account and row.first_s:
            record = transaction.get(ACCOUNTS, number, kind, account)
            _write(transaction, (number, kind, account), record, _with_row(record, row))
    begin(transaction, uncounted)


def _write(
    transaction: Transaction, key: tuple[int, int, int], before: AccountRecord | None, after: AccountRecord
) -> None:
    if after is not before:
        transaction.put(ACCOUNTS, key, after)


def _with_row(record: AccountRecord | None, row: VelocityRow) -> AccountRecord:
    """Add the first day and the visitors of a velocity row to the record."""
    seen = row.others[0]
    for at_s, visitor in zip(seen.times, seen.ids, strict=True):
        own = PairEvent(at_s, visitor, is_verified=False)
        if record is None:
            record = first_record(own)
        elif record.of(visitor) is None:
            record = record.with_event(own)
    if record is None:
        record = AccountRecord(row.first_s, row.last_s)
    return record.with_event(PairEvent(row.first_s, None, is_verified=False))


def _count_sign_up(transaction: Transaction, who: EventSubjects) -> None:
    of_event = who.at_s // LONGEST_S
    for subject in ("visitor", "address"):
        place = tuple(who.counted_account if kind == "accounts" else None for kind in OTHERS[subject])
        keys = [_key(who, subject, of) for of in (of_event + 1, of_event)] if who.id_of(subject) is not None else []
        key = next((key for key in keys if transaction.has(VELOCITY, *key)), None)
        row = None if key is None else transaction.get(VELOCITY, *key)
        if key is not None and row is not None:
            transaction.put(VELOCITY, key, row.with_others(who.at_s, place))


def _key(who: EventSubjects, subject: Subject, of: int) -> tuple[int, ...]:
    subject_id = who.id_of(subject)
    assert subject_id is not None
    return who.organization, of, KINDS.index(kind_of(who.environment)), SUBJECTS.index(subject), subject_id


def move(transaction: Transaction) -> None:
    """Move what these tables have into the records of visitors and accounts and the rows of addresses. Rows come in the
    order of their periods, so that the latest one of a subject stays.
    """
    for key, raw in transaction.scan(_RAW_ACCOUNTS):
        if raw[0] >= _CBOR_ARRAY:
            former = FORMER_ACCOUNTS.value.decode(raw)
            transaction.put(ACCOUNTS, key, AccountRecord(former.first_s, former.last_s, former.visitors))
    for (number, of, kind, subject, subject_id), row in _rows(transaction, VELOCITY):
        _move_velocity(transaction, number, of, kind, SUBJECTS[int(subject)], subject_id, row)
    for (number, day, visitor), seen in _rows(transaction, VISITOR_HISTORY):
        history = VisitorHistory(seen.activity, seen.addresses, seen.countries, seen.lessons, day)
        _change_visitor(transaction, number, visitor, lambda before, now=history: before._replace(history=now))
    for (number, day, address), seen in _rows(transaction, ADDRESS_HISTORY):
        history = AddressHistory(seen.visitors, seen.homelands, seen.lessons, seen.lookalikes, day)
        key = (number, day * DAY_S // LONGEST_S, address)
        _change_address(transaction, key, lambda before, now=history: before._replace(history=now))


def _rows(transaction: Transaction, table: Table[Any]) -> Iterator[tuple[Any, Any]]:
    try:
        yield from transaction.scan(table)
    except KeyError:  # of a store that never had it
        return


def _move_velocity(
    transaction: Transaction, number: int, of: int, kind: int, subject: Subject, subject_id: int, row: VelocityRow
) -> None:
    if subject == "visitor":
        _change_visitor(transaction, number, subject_id, lambda before: before.with_row(KINDS[kind], row))
    elif subject == "address":
        key = (number, of, subject_id)
        _change_address(transaction, key, lambda before: before.with_row(KINDS[kind], row))
    else:
        record = transaction.get(ACCOUNTS, number, kind, subject_id)
        if record is not None:
            transaction.put(ACCOUNTS, (number, kind, subject_id), record.counting(row))


def _change_visitor(
    transaction: Transaction, number: int, visitor: int, change: Callable[[VisitorActivity], VisitorActivity]
) -> None:
    record = transaction.get(VISITORS, number, visitor)
    if record is not None:
        activity = change(activity_of(record)).pack()
        transaction.put(VISITORS, (number, visitor), msgspec.structs.replace(record, activity=activity))


def _change_address(
    transaction: Transaction, key: tuple[int, int, int], change: Callable[[AddressActivity], AddressActivity]
) -> None:
    transaction.put(ADDRESSES, key, change(transaction.get(ADDRESSES, *key) or NO_ADDRESS))
