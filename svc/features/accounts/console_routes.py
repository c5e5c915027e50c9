"""Accounts and visitors in the console: whom an environment saw last, who has most of something, one account, and what
links accounts and visitors (decisions 11.3).

A list reads the index of events, newest first, some at a time. One that is sorted by a count is of the newest
`EVENTS_SORTED` events, and says so: nothing keeps these counts in their order. It has no further pages.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from heapq import nlargest
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_args

import msgspec
from msgspec import UNSET, UnsetType

from svc.features.accounts.bodies import (
    AccountAnswer,
    AccountRow,
    AccountsQuery,
    CountedSince,
    SeenVisitorsQuery,
    account_body,
    account_row,
    visitor_row,
)
from svc.features.accounts.bodies import SeenVisitorRow as VisitorRow
from svc.features.accounts.queries import NEWEST, Sighted, Sought, SubjectScan, sighted_at
from svc.features.accounts.routes import (
    LEVELS_AT_ONCE,
    leveled,
    page_of_subjects,
    read_counted_since,
    read_sought,
    seen_subject,
    subject_rows,
)
from svc.features.events.console_bodies import InEnvironment, VisitBody, VisitorQuery
from svc.features.lists.lists import canonical
from svc.features.visitors.routes import EVENTS_SHOWN, visits_of
from svc.http.callers.limits import Turn
from svc.http.route import Call, Route, Services, console_route
from svc.http.schema import CursorOn
from svc.identify.events.event_row import EventBody, event_row
from svc.identify.events.listing import Position
from svc.identify.model import Subject
from svc.identify.velocity.counts import kind_of
from svc.kernel.values.fields import Timestamp, about
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.timestamps import timestamp
from svc.kernel.work.slices import all_in_slices, in_turns, scanned

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
    is_complete: Annotated[bool, about("Whether all events that are kept were looked at.", False)]
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

    event_count: Annotated[int, about("Its events that are kept; 2,000 stands for 2,000 or more.", 12)]
    events: Annotated[tuple[VisitBody, ...], about("Its newest 50 events, newest first.")]


R = TypeVar("R", SeenAccountRow, SeenVisitorRow)

Query = ConsoleAccountsQuery | ConsoleVisitorsQuery
RowOf = Callable[[Sighted, int], msgspec.Struct]
"""Makes a row of an account or a visitor, of which the time (Unix s) says what is counted."""

EVENTS_SORTED = 10_000
"""The newest of an environment, of whose accounts or visitors a sorted list is."""
assert {"accounts", "visitors", "addresses", "countries", "events", "score"} < {*get_args(Order)}
_OTHERS: Final[dict[Order, int]] = {"accounts": 0, "visitors": 0, "addresses": 1, "countries": 2}
"""Position of what is counted among the others of a row of velocity."""
_NOT_OF: Final[dict[Subject, Order]] = {"account": "accounts", "visitor": "visitors"}


async def list_accounts(services: Services, call: Call) -> ConsoleAccountsBody | Refusal:
    """`GET /console/api/seen-accounts`: accounts of an environment, the one that was seen last first or as sorted."""
    query: ConsoleAccountsQuery = call.query
    row_of = partial(_with_last, SeenAccountRow, account_row)
    found = await _list(services, call, "account", query, query.min_visitors, row_of)
    return found if isinstance(found, Refusal) else ConsoleAccountsBody(accounts=found.rows, **found.others)


async def list_visitors(services: Services, call: Call) -> ConsoleVisitorsBody | Refusal:
    """`GET /console/api/seen-visitors`: visitors of an environment, the one that was seen last first or as sorted."""
    query: ConsoleVisitorsQuery = call.query
    row_of = partial(_with_last, SeenVisitorRow, visitor_row)
    found = await _list(services, call, "visitor", query, query.min_accounts, row_of)
    return found if isinstance(found, Refusal) else ConsoleVisitorsBody(visitors=found.rows, **found.others)


def _with_last(kind: type[R], row_of: RowOf, each: Sighted, now_s: int) -> R:
    row = msgspec.structs.asdict(row_of(each, now_s))
    return kind(**row, last_event=event_row(each.last.event, each.last.request_id))


class _Found(NamedTuple):
    rows: tuple[Any, ...]
    others: dict[str, Any]
    """The other fields of the body."""


async def _list(
    services: Services, call: Call, listed: Subject, query: Query, least: int | UnsetType, row_of: RowOf
) -> _Found | Refusal:
    number = call.organization.number
    sought = _sought(services, query, least, listed, number, call.at_ms)
    if isinstance(sought, Refusal):
        return sought
    since = await read_counted_since(services, number)
    if query.sort == "last_seen":
        page = await page_of_subjects(services, call.turn, sought, query, row_of)
        if isinstance(page, Refusal):
            return page
        return _Found(page.rows, {"next_cursor": page.next_cursor, "counted_since": since})
    refusal = invalid("cursor", "invalid_cursor", "query") if query.cursor is not UNSET else call.turn.refusal()
    if refusal is not None:
        return refusal
    with call.turn.exclusive():
        rows, looked_at = await _sorted(services, call.turn, sought, query, row_of)
        return _Found(rows, {"looked_at": looked_at, "counted_since": since})


def _sought(
    services: Services, query: Query, least: int | UnsetType, listed: Subject, number: int, now_ms: int
) -> Sought | Refusal:
    """Return what a query asks for, or `422` (`invalid_value`)."""
    sought = read_sought(services, query, least, listed, number, kind_of(query.environment), now_ms)
    if isinstance(sought, Refusal):
        return sought
    if query.sort == _NOT_OF[listed]:
        return invalid("sort", "invalid_value", "query")
    network = None if query.network is UNSET else canonical("address", query.network)
    if query.network is not UNSET and network is None:
        return invalid("network", "invalid_value", "query")
    return sought._replace(network=network)


async def _sorted(
    services: Services, turn: Turn, sought: Sought, query: Query, row_of: RowOf
) -> tuple[tuple[Any, ...], LookedAtBody]:
    """Return the first `query.limit` subjects of `EVENTS_SORTED` events by a count, with their levels, as rows."""
    ranked: list[tuple[int, Position]] = []
    scan, rank = SubjectScan(sought, is_first=True), _rank_by(query.sort)
    left, oldest, waiting = EVENTS_SORTED, None, list[Sighted]()
    slices = scanned(services.world, services.store, scan, NEWEST, wanted=lambda: left)
    async with aclosing(in_turns(slices, turn.held)) as parts:
        async for some in parts:
            left, oldest = left - len(some), some[-1][0]
            waiting += [each for _, each in some if each is not None]
            if sought.level is None or len(waiting) >= LEVELS_AT_ONCE:
                ranked += map(rank, await _fitting(services, turn, sought, waiting))
                waiting.clear()
            if left <= 0:
                break
    ranked += map(rank, await _fitting(services, turn, sought, waiting))
    places = [place for _, place in nlargest(query.limit, ranked)]
    shown = await all_in_slices(services.world, services.store, places, partial(sighted_at, sought=sought))
    found = await leveled(services, turn, sought, [each for each in shown if each is not None])
    body = LookedAtBody(
        subjects=len(ranked),
        is_complete=left > 0,
        since=UNSET if oldest is None else timestamp(oldest.arrival_ms),
    )
    return await subject_rows(services, sought, found, row_of), body


async def _fitting(services: Services, turn: Turn, sought: Sought, found: list[Sighted]) -> list[Sighted]:
    """Return those of them that are at the level that is sought."""
    if sought.level is None:
        return found
    return [each for each in await leveled(services, turn, sought, found) if each.level == sought.level]


def _rank_by(order: Order) -> Callable[[Sighted], tuple[int, Position]]:
    """Return what a subject is sorted by. Its row has nothing from before 30 days."""

    def rank(each: Sighted) -> tuple[int, Position]:
        if order == "score":
            return each.last.event.verdict.suspect_score or 0, each.at
        return len(each.row.events if order == "events" else each.row.others[_OTHERS[order]].ids), each.at

    return rank


async def read_account(services: Services, call: Call) -> ConsoleAccountBody | Refusal:
    """`GET /console/api/accounts/{account_id}`: an account, whom and what it was seen with, and its newest events.
    `404 not_found`.
    """
    query: VisitorQuery = call.query
    account_id, number = call.path["account_id"], call.organization.number
    seen = await seen_subject(services, call, kind_of(query.environment), "account", account_id)
    if seen is None:
        return Refusal("not_found", explanation=_NO_ACCOUNT)
    body = account_body(account_id, seen, call.at_ms // 1000)
    return ConsoleAccountBody(
        **msgspec.structs.asdict(body),
        event_count=len(seen.events),
        events=tuple(await visits_of(services, number, seen.events[:EVENTS_SHOWN])),
    )


_NO_ACCOUNT = "No event that is kept in the environment names such an account."
_SORTED = (
    "The one that was seen last first; or by `sort` the ones with the largest counts, of those that the newest "
    f"{EVENTS_SORTED:,} events name: at most 200, without further pages. "
    "Production is apart; staging and development are together."
)
ROUTES: tuple[Route, ...] = (
    console_route(
        operation_id="listConsoleAccounts",
        path="/seen-accounts",
        summary="List the accounts of an environment",
        description=_SORTED,
        handler=list_accounts,
        query=ConsoleAccountsQuery,
    ),
    console_route(
        operation_id="listSeenConsoleVisitors",
        path="/seen-visitors",
        summary="List the visitors of an environment by what they do",
        description=_SORTED
        + " Visitors that are not identifiable, and new ones of a report that was sent before, are left out.",
        handler=list_visitors,
        query=ConsoleVisitorsQuery,
    ),
    console_route(
        operation_id="getConsoleAccount",
        path="/accounts/{account_id}",
        summary="Read one account with its events",
        description="What it was seen with comes from its newest 2,000 events; the newest 50 are shown.",
        handler=read_account,
        query=VisitorQuery,
        errors=("not_found",),
    ),
)
