"""Read queries about velocity: the subjects of an event, and the rows that count them (decisions 11.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final, NamedTuple, cast

from svc.identify.history.activity import AddressActivity, VisitorActivity
from svc.identify.history.evidence import address_id
from svc.identify.matching import Visitor
from svc.identify.model import EventSignal, Observation
from svc.identify.records import Event
from svc.identify.tables import ACCOUNTS, ADDRESSES, RECOUNTS, VISITORS
from svc.identify.velocity.counts import (
    EMPTY,
    KINDS,
    LONGEST_S,
    OTHERS,
    SIGN_UP,
    EnvironmentKind,
    Subject,
    VelocityRow,
    account_digest,
    country_digest,
    kind_of,
    sign_up_digest,
)
from svc.identify.velocity.record import AccountRecord
from svc.kernel.store.schema.codec import Layout
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import Environment


class EventSubjects(NamedTuple):
    """The subjects that take part in an event, by the ids under which velocity rows know them."""

    organization: int
    environment: Environment
    at_s: int
    visitor: int | None
    """Its number; `None` = not identifiable."""
    account: int | None
    counted_account: int | None
    """What rows of visitor and address count as its account: the account, or of a sign-up without one its own place."""
    address: int
    country: int | None

    def id_of(self, subject: Subject) -> int | None:
        """Return the id of a subject; `None` if the event has none."""
        return getattr(self, subject)

    def others_of(self, subject: Subject) -> tuple[int | None, ...]:
        """Return the ids of the other subjects that a subject's row counts, in the order of `OTHERS`."""
        return _OTHERS_OF[subject](self)


_FIELDS: Final = {"visitors": "visitor", "accounts": "counted_account", "addresses": "address", "countries": "country"}
_OTHERS_OF: Final[dict[Subject, Callable[[EventSubjects], tuple[int | None, ...]]]] = {
    subject: attrgetter(*(_FIELDS[kind] for kind in kinds)) for subject, kinds in OTHERS.items()
}


def event_subjects(number: int, request_id: bytes, event: Event, visitor: int | None) -> EventSubjects:
    """Return the subjects of an event. `number`: the organization's; `request_id`: 16 bytes; `visitor`: its number."""
    account = None if event.account_id is None else account_digest(number, event.account_id)
    return EventSubjects(
        number,
        event.environment,
        event.occurred_at_ms // 1000,
        visitor,
        account,
        counted_account(number, request_id, account, event.action),
        address_id(event.ip_address),
        None if event.country_code is None else country_digest(event.country_code),
    )


def counted_account(number: int, request_id: bytes, account: int | None, action: str | None) -> int | None:
    """Return what counts as the account of an event: its account (a digest), or for a sign-up without one the event's
    own place (decisions 11.2); `None` for any other event.
    """
    if account is None and action == SIGN_UP:
        return sign_up_digest(number, request_id)
    return account


class StoredRow(NamedTuple):
    """The velocity of a subject as a row has it."""

    subject: Subject
    period: int
    """Of an address, the number of the 30-day period since 1970 of which the row is; others have one row."""
    velocity: VelocityRow


def read_row(snapshot: Snapshot, who: EventSubjects, subject: Subject, now_s: int) -> VelocityRow:
    """Return the velocity of an event's subject, without what left the longest window; empty if none is stored."""
    subject_id = who.id_of(subject)
    assert subject_id is not None
    return row_of(snapshot, who.organization, kind_of(who.environment), subject, subject_id, now_s)


def row_of(
    snapshot: Snapshot, number: int, kind: EnvironmentKind, subject: Subject, subject_id: int, now_s: int
) -> VelocityRow:
    """Return the same as `read_row`, for the subject with this id."""
    if subject == "account":
        record = snapshot.get(ACCOUNTS, number, KINDS.index(kind), subject_id)
        return EMPTY if record is None else record.activity.within(now_s)
    if subject == "visitor":
        return activity_of(snapshot.get(VISITORS, number, subject_id)).row(kind).within(now_s)
    return read_address(snapshot, number, subject_id, now_s).row(kind).within(now_s)


def activity_of(visitor: Visitor | None) -> VisitorActivity:
    """Return what a visitor did lately; nothing for one without a record."""
    return NO_ACTIVITY if visitor is None else VisitorActivity.unpack(visitor.activity)


NO_ACTIVITY: Final = VisitorActivity()


def read_address(snapshot: Snapshot, number: int, address: int, now_s: int) -> AddressActivity:
    """Return what came from an address, by its id: of the present period of 30 days, or of the one before."""
    period = now_s // LONGEST_S
    row = snapshot.get(ADDRESSES, number, period, address)
    if row is None:
        row = snapshot.get(ADDRESSES, number, max(period - 1, 0), address)
    return NO_ADDRESS if row is None else row


NO_ADDRESS: Final = AddressActivity()


def stored_rows(snapshot: Snapshot, who: EventSubjects) -> Iterator[StoredRow]:
    """Yield all velocity that may count an event: of its address, that of its period and of the next."""
    kind = kind_of(who.environment)
    if who.visitor is not None:
        visitor = snapshot.get(VISITORS, who.organization, who.visitor)
        if visitor is not None:
            yield StoredRow("visitor", 0, activity_of(visitor).row(kind))
    if who.account is not None:
        record = snapshot.get(ACCOUNTS, *account_key(who))
        if record is not None:
            yield StoredRow("account", 0, record.activity)
    for key in address_keys(who):
        activity = snapshot.get(ADDRESSES, *key)
        if activity is not None:
            yield StoredRow("address", key[1], activity.row(kind))


def address_keys(who: EventSubjects) -> tuple[tuple[int, int, int], ...]:
    """Return the keys of the rows of an event's address that may know of it: of its 30-day period and of the next."""
    period = who.at_s // LONGEST_S
    return (who.organization, period, who.address), (who.organization, period + 1, who.address)


def is_counted(snapshot: Snapshot, number: int, request_id: bytes, event: Event) -> bool:
    """Return whether rows count a stored event: not if its report was sent before, nor if it is one of before 0.3.0
    that was not counted since. `number`: of its organization; `request_id`: 16 bytes.
    """
    if event.velocity is not None:
        return event.velocity.is_counted
    recount = snapshot.get(RECOUNTS, number)
    return recount is not None and request_id >= recount.counted_from and not is_replay(event.verdict.signals or ())


def is_replay(fired: Iterable[EventSignal | Observation]) -> bool:
    """Return whether an event with these signals moves no count, since it fired `replayed` (decisions 11.4)."""
    return any(each.signal == "replayed" for each in fired)


def counted_since(snapshot: Snapshot, number: int) -> int | None:
    """Return the time (Unix ms) since which counts of an organization are of all its events, while those of an upgraded
    store are being rebuilt; `None` = they are complete (decisions 11.3).
    """
    recount = snapshot.get(RECOUNTS, number)
    return None if recount is None else recount.counted_since_ms


class KnownAccount(NamedTuple):
    """What is known of the account of an event at its time."""

    first_s: int | None = None
    """When it was seen first; `None` = not known."""
    is_verified: bool = False
    """Whether a backend verified the pair of visitor and account before."""


def known_account(record: AccountRecord | None, visitor: int | None, at_s: int) -> KnownAccount:
    """Return what the record of its account says at the time of an event. `visitor`: the number of its visitor."""
    if record is None:
        return KnownAccount()
    pair = None if visitor is None else record.of(visitor)
    return KnownAccount(record.first_s, pair is not None and 0 < pair.verified_s <= at_s)


def account_key(who: EventSubjects) -> tuple[int, int, int]:
    """Return the key of the record of the event's account."""
    assert who.account is not None
    return who.organization, KINDS.index(kind_of(who.environment)), who.account


def shown_row(
    snapshot: Snapshot, number: int, kind: EnvironmentKind, subject: Subject, subject_id: int, now_s: int
) -> VelocityRow:
    """Return the same as `row_of`, with the first day of an account from its record. Of a visitor's record only its
    velocity is decoded: a list reads thousands.
    """
    if subject == "visitor":
        activity = snapshot.get(_ACTIVITIES, number, subject_id)
        return EMPTY if activity is None else VisitorActivity.row_in(activity, kind).within(now_s)
    if subject != "account":
        return row_of(snapshot, number, kind, subject, subject_id, now_s)
    record = snapshot.get(ACCOUNTS, number, KINDS.index(kind), subject_id)
    if record is None:
        return EMPTY
    row = record.activity.within(now_s)
    return VelocityRow(record.first_s, row.last_s, row.events, row.others)


_ACTIVITIES: Final[Table[bytes]] = replace(cast("Any", VISITORS), value=Layout(bytes, Visitor.activity_in))
"""Of visitors, the bytes of their activity."""


def read_account(snapshot: Snapshot, number: int, environment: Environment, account_id: str) -> AccountRecord | None:
    """Return the record of an account in the kind of this environment; `None` if it is not known."""
    return snapshot.get(ACCOUNTS, number, KINDS.index(kind_of(environment)), account_digest(number, account_id))
