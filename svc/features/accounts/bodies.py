"""Bodies and queries of accounts and visitors in the server API (decisions 11.3). As in `svc.http.schema`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, NamedTuple, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.accounts.queries import Sighted
from svc.features.reviews.queries import Judged
from svc.http.schema import CursorOn, Limit
from svc.identify.events.event_row import AccountVelocity, VisitorVelocity, windows
from svc.identify.model import Level
from svc.identify.queries.events import EventMatch
from svc.identify.records import Event
from svc.identify.velocity.counts import MOST, VelocityRow
from svc.kernel.values.fields import AccountId, PageCursor, Timestamp, VisitorId, about, open_to
from svc.kernel.values.struct_fields import present
from svc.kernel.values.timestamps import timestamp

MAX_SHOWN = 100
"""Visitors, accounts, addresses and countries of one account or visitor."""

_FirstSeen = Annotated[Timestamp, about("When it was seen first.")]
_FirstSecond = Annotated[Timestamp, about("When it was seen first, to the second.")]
_LastSeen = Annotated[Timestamp, about("When it was seen last.")]
CountedSince = Annotated[
    Timestamp,
    about("While counts are rebuilt after an upgrade: `velocity` leaves out earlier events. Else absent."),
]
_CountryCode = Annotated[str, about("ISO 3166-1 alpha-2.", "GB")]
_HighestLevel = Annotated[
    Level,
    about(
        "The highest suspect level of its events in the last 24 hours; left out where none was scored.",
        "high",
        form=open_to(*get_args(Level)),
    ),
]
_Least = Annotated[int, Meta(ge=1, le=MOST)]


class SubjectsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the lists of accounts and of visitors have in common. `svc.identify.events.listing` checks the filters."""

    country: Annotated[str, about("Only those seen from this country in 30 days: two letters.", "GB")] | UnsetType = (
        UNSET
    )
    level: (
        Annotated[
            str,
            about(
                "Only those whose events of the last 24 hours have this as their highest suspect level.",
                "high",
                form={"enum": [*get_args(Level)]},
            ),
        ]
        | UnsetType
    ) = UNSET
    q: Annotated[str, Meta(max_length=256), about("Only those whose id begins with this.", "user-8")] | UnsetType = (
        UNSET
    )
    cursor: PageCursor | UnsetType = UNSET
    limit: Limit = 50


class AccountsQuery(SubjectsQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the accounts."""

    min_visitors: Annotated[_Least, about("The least number of visitors in 30 days.", 6)] | UnsetType = UNSET


class SeenVisitorsQuery(SubjectsQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the visitors."""

    min_accounts: (
        Annotated[_Least, about("The least number of accounts in 30 days, sign-ups without one included.", 3)]
        | UnsetType
    ) = UNSET


class AccountRow(msgspec.Struct, frozen=True, kw_only=True):
    """One account of a list."""

    account_id: AccountId
    first_seen_at: _FirstSecond
    last_seen_at: _LastSeen
    level: _HighestLevel | UnsetType = UNSET
    velocity: Annotated[AccountVelocity, about("Of the account, now.")]


class SeenVisitorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One visitor of a list."""

    visitor_id: VisitorId
    first_seen_at: _FirstSecond
    last_seen_at: _LastSeen
    level: _HighestLevel | UnsetType = UNSET
    velocity: Annotated[VisitorVelocity, about("Of the visitor, now.")]


class AccountsAnswer(msgspec.Struct, frozen=True):
    """A page of accounts."""

    accounts: Annotated[tuple[AccountRow, ...], about("The one that was seen last first.")]
    next_cursor: CursorOn | UnsetType = UNSET
    counted_since: CountedSince | UnsetType = UNSET


class SeenVisitorsAnswer(msgspec.Struct, frozen=True):
    """A page of visitors."""

    visitors: Annotated[tuple[SeenVisitorRow, ...], about("The one that was seen last first.")]
    next_cursor: CursorOn | UnsetType = UNSET
    counted_since: CountedSince | UnsetType = UNSET


class VisitorOfAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A visitor that acted for an account."""

    visitor_id: VisitorId
    confidence: Annotated[int, about("`visitor_confidence` of its last event for the account.", 100)]
    first_seen_at: _FirstSeen
    last_seen_at: _LastSeen


class AccountOfVisitor(msgspec.Struct, frozen=True, kw_only=True):
    """An account that a visitor acted for."""

    account_id: AccountId
    confidence: Annotated[int, about("`visitor_confidence` of the visitor's last event for it.", 100)]
    first_seen_at: _FirstSeen
    last_seen_at: _LastSeen


class SeenAddress(msgspec.Struct, frozen=True, kw_only=True):
    """An address that an account or a visitor was seen at."""

    ip_address: Annotated[str, about("The address.", "81.2.69.160")]
    country_code: _CountryCode | UnsetType = UNSET
    first_seen_at: _FirstSeen
    last_seen_at: _LastSeen


class SeenCountry(msgspec.Struct, frozen=True, kw_only=True):
    """A country that an account or a visitor was seen from."""

    country_code: _CountryCode
    first_seen_at: _FirstSeen
    last_seen_at: _LastSeen


class LabelCounts(msgspec.Struct, frozen=True):
    """Events by what they turned out to be."""

    fraud: Annotated[int, about("Labeled `fraud`.", 1)]
    legitimate: Annotated[int, about("Labeled `legitimate`.", 7)]


class _SubjectAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What an account and a visitor have in common."""

    first_seen_at: _FirstSecond
    last_seen_at: _LastSeen
    addresses: Annotated[tuple[SeenAddress, ...], about("The newest 100, the one seen last first.")]
    countries: Annotated[tuple[SeenCountry, ...], about("The newest 100, the one seen last first.")]
    labels: Annotated[LabelCounts, about("Its labeled events of the last 400 days.")]
    notes_count: Annotated[int, about("Notes about it.", 0)]
    counted_since: CountedSince | UnsetType = UNSET


class AccountAnswer(_SubjectAnswer, frozen=True, kw_only=True):
    """One account."""

    account_id: AccountId
    velocity: Annotated[AccountVelocity, about("Of the account, now.")]
    visitors: Annotated[
        tuple[VisitorOfAccount, ...],
        about("The newest 100 identifiable visitors that acted for it, the one seen last first."),
    ]


class SeenVisitorAnswer(_SubjectAnswer, frozen=True, kw_only=True):
    """One visitor."""

    visitor_id: VisitorId
    velocity: Annotated[VisitorVelocity, about("Of the visitor, now.")]
    accounts: Annotated[
        tuple[AccountOfVisitor, ...], about("The newest 100 accounts that it acted for, the one seen last first.")
    ]


class Seen(NamedTuple):
    """An account or a visitor with its newest events."""

    row: VelocityRow
    """What it counts."""
    judged: Judged
    events: list[EventMatch]
    """The newest, newest first: at least one."""
    counted_since: int | None
    """Unix ms, while counts of the organization are being rebuilt (decisions 11.3)."""


def account_body(account_id: str, seen: Seen, now_s: int) -> AccountAnswer:
    """Return an account."""
    of_visitors = _grouped(
        (match for match in seen.events if match.event.verdict.identifiable), lambda event: event.verdict.visitor_id
    )
    return AccountAnswer(
        account_id=account_id,
        velocity=AccountVelocity(*windows(seen.row.counts("account", now_s))),
        visitors=tuple(
            VisitorOfAccount(visitor_id=visitor_id, confidence=used[0].verdict.visitor_confidence, **_span(used))
            for visitor_id, used in of_visitors
        ),
        **_common(seen),
    )


def visitor_body(visitor_id: str, seen: Seen, now_s: int) -> SeenVisitorAnswer:
    """Return a visitor."""
    return SeenVisitorAnswer(
        visitor_id=visitor_id,
        velocity=VisitorVelocity(*windows(seen.row.counts("visitor", now_s))),
        accounts=tuple(
            AccountOfVisitor(account_id=account_id, confidence=used[0].verdict.visitor_confidence, **_span(used))
            for account_id, used in _grouped(seen.events, lambda event: event.account_id)
        ),
        **_common(seen),
    )


def shown_since(counted_since_ms: int | None) -> str | UnsetType:
    """Return the time since which counts are of all events; `UNSET` once they are complete."""
    return UNSET if counted_since_ms is None else timestamp(counted_since_ms)


def account_row(each: Sighted, now_s: int) -> AccountRow:
    """Return an account of a list."""
    velocity = AccountVelocity(*windows(each.row.counts("account", now_s)))
    return AccountRow(account_id=each.id, level=present(each.level), velocity=velocity, **_times(each))


def visitor_row(each: Sighted, now_s: int) -> SeenVisitorRow:
    """Return a visitor of a list."""
    velocity = VisitorVelocity(*windows(each.row.counts("visitor", now_s)))
    return SeenVisitorRow(visitor_id=each.id, level=present(each.level), velocity=velocity, **_times(each))


def _times(each: Sighted) -> dict[str, str]:
    last_ms = each.at.arrival_ms
    return {"first_seen_at": _first_seen(each.row, last_ms), "last_seen_at": timestamp(last_ms)}


def _common(seen: Seen) -> dict[str, Any]:
    """Return the fields that the bodies of an account and of a visitor share."""
    found, labels = seen.events, seen.judged.labels
    return {
        "first_seen_at": _first_seen(seen.row, found[-1].event.occurred_at_ms),
        "last_seen_at": timestamp(found[0].event.occurred_at_ms),
        "addresses": tuple(
            SeenAddress(ip_address=address, country_code=present(used[0].country_code), **_span(used))
            for address, used in _grouped(found, lambda event: event.ip_address)
        ),
        "countries": tuple(
            SeenCountry(country_code=code, **_span(used))
            for code, used in _grouped(found, lambda event: event.country_code)
        ),
        "labels": LabelCounts(labels.fraud, labels.legitimate),
        "notes_count": seen.judged.notes_count,
        "counted_since": shown_since(seen.counted_since),
    }


def _grouped(found: Iterable[EventMatch], value_of: Callable[[Event], str | None]) -> list[tuple[str, list[Event]]]:
    """Return (value, events with it) of the `MAX_SHOWN` values that were seen last; `found` is newest first."""
    groups: dict[str, list[Event]] = {}
    for _, event in found:
        value = value_of(event)
        if value is not None:
            groups.setdefault(value, []).append(event)
    return list(groups.items())[:MAX_SHOWN]


def _span(used: Sequence[Event]) -> dict[str, str]:
    return {
        "first_seen_at": timestamp(used[-1].occurred_at_ms),
        "last_seen_at": timestamp(used[0].occurred_at_ms),
    }


def _first_seen(row: VelocityRow, oldest_ms: int) -> str:
    """Return when the subject was first seen, to the second as its row has it: by that, or by the oldest event that was
    looked at.
    """
    oldest_s = oldest_ms // 1000
    return timestamp(1000 * min(oldest_s, row.first_s or oldest_s))
