"""Bodies and queries of the console about accounts and visitors. As in `svc.http.schema`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.accounts.bodies import AccountAnswer, AccountRow, AccountsQuery, CountedSince, SeenVisitorsQuery
from svc.features.accounts.bodies import SeenVisitorRow as VisitorRow
from svc.features.events.console_bodies import InEnvironment, VisitBody
from svc.http.schema import CursorOn
from svc.identify.events.event_row import EventBody
from svc.kernel.values.fields import AccountId, Timestamp, VisitorId, about

Order = Literal["last_seen", "accounts", "visitors", "addresses", "countries", "events", "score"]
_Sort = Annotated[
    Order,
    about(
        "By when they were seen, by a count in 30 days (accounts of a visitor, visitors of an account), or by the "
        "score of the last event.",
        "accounts",
    ),
]
_Network = Annotated[str, about("Only those seen from this address or network.", "95.194.0.0/16")]
_LastEvent = Annotated[EventBody, about("Its last event.")]


class ConsoleAccountsQuery(AccountsQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the accounts of an environment."""

    environment: InEnvironment = "production"
    sort: _Sort = "last_seen"
    network: _Network | UnsetType = UNSET


class ConsoleVisitorsQuery(SeenVisitorsQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the visitors of an environment."""

    environment: InEnvironment = "production"
    sort: _Sort = "last_seen"
    network: _Network | UnsetType = UNSET


class LookedAtBody(msgspec.Struct, frozen=True, kw_only=True):
    """What a sorted list is of."""

    subjects: Annotated[int, about("How many fit, among which the first ones are shown.", 412)]
    is_complete: Annotated[bool, about("Whether all events of 30 days were looked at.", False)]
    since: Annotated[Timestamp, about("When the oldest event that was looked at came.")] | UnsetType = UNSET


class SeenAccountRow(AccountRow, frozen=True, kw_only=True):
    """One account of a list."""

    last_event: _LastEvent


class SeenVisitorRow(VisitorRow, frozen=True, kw_only=True):
    """One visitor of a list."""

    last_event: _LastEvent


class ConsoleAccountsBody(msgspec.Struct, frozen=True, kw_only=True):
    """A page of accounts."""

    accounts: Annotated[tuple[SeenAccountRow, ...], about("As they are sorted.")]
    next_cursor: CursorOn | UnsetType = UNSET
    looked_at: Annotated[LookedAtBody, about("Of a list that is sorted by a count.")] | UnsetType = UNSET
    counted_since: CountedSince | UnsetType = UNSET


class ConsoleVisitorsBody(msgspec.Struct, frozen=True, kw_only=True):
    """A page of visitors."""

    visitors: Annotated[tuple[SeenVisitorRow, ...], about("As they are sorted.")]
    next_cursor: CursorOn | UnsetType = UNSET
    looked_at: Annotated[LookedAtBody, about("Of a list that is sorted by a count.")] | UnsetType = UNSET
    counted_since: CountedSince | UnsetType = UNSET


class ConsoleAccountBody(AccountAnswer, frozen=True, kw_only=True):
    """One account, and what was done with it."""

    event_count: Annotated[int, about("Its events in 30 days; 2,000 stands for 2,000 or more.", 12)]
    events: Annotated[tuple[VisitBody, ...], about("Its newest 50 events, newest first.")]


class LinksQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of links. Exactly one of `visitor` and `account` is sent."""

    environment: InEnvironment = "production"
    visitor: Annotated[VisitorId, about("The visitor in the middle.")] | UnsetType = UNSET
    account: Annotated[AccountId, Meta(max_length=256), about("The account in the middle.")] | UnsetType = UNSET


class NodeBody(msgspec.Struct, frozen=True, kw_only=True):
    """An account or a visitor."""

    kind: Annotated[Literal["visitor", "account"], about("What it is.", "account")]
    id: Annotated[str, about("Its id.", "user-8271")]
    steps: Annotated[int, about("How far from the one in the middle: 0 to 4.", 1)]


class LinkBody(msgspec.Struct, frozen=True, kw_only=True):
    """A visitor that acted for an account."""

    visitor_id: VisitorId
    account_id: AccountId
    events: Annotated[int, about("How often, of the events that were looked at.", 3)]
    first_seen_at: Annotated[Timestamp, about("When first, of these.")]
    last_seen_at: Annotated[Timestamp, about("When last.")]


class LinksBody(msgspec.Struct, frozen=True, kw_only=True):
    """Accounts and visitors that are connected with one of them."""

    nodes: Annotated[tuple[NodeBody, ...], about("The one in the middle first, then by steps.")]
    links: Annotated[tuple[LinkBody, ...], about("Those of the first step first, the latest first.")]
    is_complete: Annotated[bool, about("`false` where there are more than are shown.", True)]
