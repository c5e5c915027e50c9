"""Bodies and queries of accounts and visitors in the server API (decisions 11.3). As in `svc.http.schema`."""

from __future__ import annotations

from typing import Annotated, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.domain.accounts.velocity import MOST
from svc.domain.events.event_row import AccountVelocity, VisitorVelocity
from svc.domain.fields import AccountId, PageCursor, Timestamp, VisitorId, about, open_to
from svc.domain.model import Level
from svc.http.schema import CursorOn, Limit

_FirstSeen = Annotated[Timestamp, about("When it was seen first.")]
_LastSeen = Annotated[Timestamp, about("When it was seen last.")]
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
    """What the lists of accounts and of visitors have in common. `svc.domain.events.listing` checks the filters."""

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

    min_visitors: Annotated[_Least, about("Only accounts with so many visitors in 30 days.", 6)] | UnsetType = UNSET


class SeenVisitorsQuery(SubjectsQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the visitors."""

    min_accounts: Annotated[_Least, about("Only visitors of so many accounts in 30 days.", 3)] | UnsetType = UNSET


class AccountRow(msgspec.Struct, frozen=True, kw_only=True):
    """One account of a list."""

    account_id: AccountId
    first_seen_at: _FirstSeen
    last_seen_at: _LastSeen
    level: _HighestLevel | UnsetType = UNSET
    velocity: Annotated[AccountVelocity, about("Of the account, now.")]


class SeenVisitorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One visitor of a list."""

    visitor_id: VisitorId
    first_seen_at: _FirstSeen
    last_seen_at: _LastSeen
    level: _HighestLevel | UnsetType = UNSET
    velocity: Annotated[VisitorVelocity, about("Of the visitor, now.")]


class AccountsAnswer(msgspec.Struct, frozen=True):
    """A page of accounts."""

    accounts: Annotated[tuple[AccountRow, ...], about("The one that was seen last first.")]
    next_cursor: CursorOn | UnsetType = UNSET


class SeenVisitorsAnswer(msgspec.Struct, frozen=True):
    """A page of visitors."""

    visitors: Annotated[tuple[SeenVisitorRow, ...], about("The one that was seen last first.")]
    next_cursor: CursorOn | UnsetType = UNSET


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

    fraud: Annotated[int, about("Labeled `fraud`.", 1)] = 0
    legitimate: Annotated[int, about("Labeled `legitimate`.", 7)] = 0


class _SubjectAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What an account and a visitor have in common. Nothing sets labels or notes yet: they are zero."""

    first_seen_at: _FirstSeen
    last_seen_at: _LastSeen
    addresses: Annotated[tuple[SeenAddress, ...], about("The newest 100, the one seen last first.")]
    countries: Annotated[tuple[SeenCountry, ...], about("The newest 100, the one seen last first.")]
    labels: Annotated[LabelCounts, about("Its labeled events.")] = LabelCounts()
    notes_count: Annotated[int, about("Notes about it.", 0)] = 0


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
