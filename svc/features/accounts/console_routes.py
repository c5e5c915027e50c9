"""Accounts and visitors in the console: whom an environment saw last, who has most of something, one account, and what
links accounts and visitors (decisions 11.3).

A list reads the index of events, newest first, some at a time. One that is sorted by a count is of the newest
`EVENTS_SORTED` events, and says so: nothing keeps these counts in their order. Each of its pages sorts them again, as
they were when the first page was read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Final, NamedTuple, get_args

import msgspec
import trio
from msgspec import UNSET, UnsetType

from svc.features.accounts import queries as subjects
from svc.features.accounts.bodies import account_body, account_row, visitor_row
from svc.features.accounts.console_bodies import (
    ConsoleAccountBody,
    ConsoleAccountsBody,
    ConsoleAccountsQuery,
    ConsoleVisitorsBody,
    ConsoleVisitorsQuery,
    LookedAtBody,
    Order,
    SeenAccountRow,
    SeenVisitorRow,
)
from svc.features.accounts.queries import NEWEST, Listed, Sighted, Sought
from svc.features.accounts.routes import (
    LISTS,
    bound_of,
    page_of_subjects,
    read_counted_since,
    read_sought,
    seen_subject,
)
from svc.features.events.console_bodies import VisitorQuery
from svc.features.lists.lists import canonical
from svc.features.visitors.console_routes import EVENTS_SHOWN, visits_of
from svc.http.route import Call, Route, Services, console_route
from svc.identify.events.listing import Position
from svc.identify.index.queries import just_above
from svc.identify.velocity.counts import kind_of
from svc.identify.velocity.names import ACCOUNT_ID
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.cursor import read_cursor, write_cursor
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.timestamps import timestamp

EVENTS_SORTED = 10_000
"""The newest of an environment, of whose accounts or visitors a sorted list is."""
LEVELS_AT_ONCE = 4
"""Each is some searches."""
assert {"accounts", "visitors", "addresses", "countries", "events", "score"} < {*get_args(Order)}
_OTHERS: Final[dict[Order, int]] = {"accounts": 0, "visitors": 0, "addresses": 1, "countries": 2}
"""Position of what is counted among the others of a row of velocity."""
_NOT_OF: Final[dict[Listed, Order]] = {"account": "accounts", "visitor": "visitors"}
_Rank = tuple[int, Position]
"""By which a list is sorted, the largest first: the count, and the position of the last event."""
_CURSOR = struct.Struct(">16sQ16sQQ16s")
"""Digest of what it is bound to, where the first page began, and the rank of the last row."""


class _Place(NamedTuple):
    """Where a page of a sorted list begins."""

    top: Position
    """The list is of the events below."""
    below: _Rank | None = None
    """The rank of the row before; `None` = it is the first page."""


async def list_accounts(services: Services, call: Call) -> ConsoleAccountsBody | Refusal:
    """`GET /console/api/seen-accounts`: accounts of an environment, the one that was seen last first or as sorted."""
    query: ConsoleAccountsQuery = call.query
    since = await read_counted_since(services, call.organization.number)
    found = await _list(services, call, "account", query, query.min_visitors)
    if isinstance(found, Refusal):
        return found
    shown, cursor, looked_at = found
    now_s = call.at_ms // 1000
    rows = tuple(SeenAccountRow.of(account_row(each, now_s), each.last) for each in shown)
    return ConsoleAccountsBody(accounts=rows, next_cursor=cursor, looked_at=looked_at, counted_since=since)


async def list_visitors(services: Services, call: Call) -> ConsoleVisitorsBody | Refusal:
    """`GET /console/api/seen-visitors`: visitors of an environment, the one that was seen last first or as sorted."""
    query: ConsoleVisitorsQuery = call.query
    since = await read_counted_since(services, call.organization.number)
    found = await _list(services, call, "visitor", query, query.min_accounts)
    if isinstance(found, Refusal):
        return found
    shown, cursor, looked_at = found
    now_s = call.at_ms // 1000
    rows = tuple(SeenVisitorRow.of(visitor_row(each, now_s), each.last) for each in shown)
    return ConsoleVisitorsBody(visitors=rows, next_cursor=cursor, looked_at=looked_at, counted_since=since)


Query = ConsoleAccountsQuery | ConsoleVisitorsQuery


async def _list(
    services: Services, call: Call, listed: Listed, query: Query, least: int | UnsetType
) -> tuple[Sequence[Sighted], str | UnsetType, LookedAtBody | UnsetType] | Refusal:
    """A page, its cursor, and of a sorted one what it is of."""
    number = call.organization.number
    sought = _sought(services, query, least, listed, number, call.at_ms)
    if isinstance(sought, Refusal):
        return sought
    if query.sort == "last_seen":
        page = await page_of_subjects(services, call.turn, sought, query.cursor, query.limit)
        return page if isinstance(page, Refusal) else (*page, UNSET)
    refusal = call.turn.refusal()
    if refusal is not None:
        return refusal
    place = _place(services, sought, query)
    if place is None:
        return invalid("cursor", "invalid_cursor", "query")
    async with call.turn.exclusive():
        return await _sorted(services, sought, query, place)


def _sought(
    services: Services, query: Query, least: int | UnsetType, listed: Listed, number: int, now_ms: int
) -> Sought | Refusal:
    """What a query asks for. `422` (`invalid_value`)."""
    sought = read_sought(services, query, least, listed, number, kind_of(query.environment), now_ms)
    if isinstance(sought, Refusal):
        return sought
    if query.sort == _NOT_OF[listed]:
        return invalid("sort", "invalid_value", "query")
    network = None if query.network is UNSET else canonical("address", query.network)
    if query.network is not UNSET and network is None:
        return invalid("network", "invalid_value", "query")
    return sought._replace(network=network)


def _place(services: Services, sought: Sought, query: Query) -> _Place | None:
    """Where the page begins; `None` for a cursor that is not valid here."""
    if query.cursor is UNSET:
        return _Place(NEWEST)
    row = read_cursor(services.webhooks.cursors_key, LISTS[sought.listed], sought.number, query.cursor)
    if row is None or not row.startswith(bound_of(sought, query.sort)):
        return None
    _, top_ms, top_id, count, at_ms, at_id = _CURSOR.unpack(row)
    return _Place(Position(top_ms, top_id), (count, Position(at_ms, at_id)))


async def _sorted(
    services: Services, sought: Sought, query: Query, place: _Place
) -> tuple[Sequence[Sighted], str | UnsetType, LookedAtBody]:
    """A page of those of `EVENTS_SORTED` events, by a count, with their levels."""
    found: list[Sighted] = []
    looked_at, events = set[str](), 0
    after: Position | None = place.top
    plain, most = sought._replace(with_levels=False), subjects.EVENTS_AT_ONCE
    while after is not None and events < EVENTS_SORTED:
        read = partial(subjects.step, sought=plain, since=NEWEST, beyond=after, looked_at=looked_at, most=most)
        step = await services.store.query(read)
        found.extend(step.found)
        looked_at |= step.looked_at
        events += step.events
        after = step.resume
        await trio.lowlevel.checkpoint()
    oldest = found[-1].at if after is None and found else after
    since = UNSET if oldest is None or oldest == place.top else timestamp(oldest.arrival_ms)
    body = LookedAtBody(subjects=len(found), is_complete=after is None, since=since)
    by = _by(sought, query.sort)
    ranked = sorted(((by(each), each) for each in found), key=itemgetter(0), reverse=True)
    if place.below is not None:
        ranked = [(rank, each) for rank, each in ranked if rank < place.below]
    page = ranked[: query.limit]
    shown = await _with_levels(services, sought, [each for _, each in page])
    if len(page) == len(ranked):
        return shown, UNSET, body
    top = just_above(max(each.at for each in found)) if place.top == NEWEST else place.top
    (count, at), _ = page[-1]
    row = _CURSOR.pack(bound_of(sought, query.sort), *top, count, *at)
    return shown, write_cursor(services.webhooks.cursors_key, LISTS[sought.listed], sought.number, row), body


def _by(sought: Sought, order: Order) -> Callable[[Sighted], _Rank]:
    now_s = sought.now_ms // 1000

    def key(each: Sighted) -> _Rank:
        if order == "score":
            return each.last.event.verdict.suspect_score or 0, each.at
        counts = each.row.counts(sought.listed, now_s)
        return (counts.events[-1] if order == "events" else counts.others[_OTHERS[order]][-1]), each.at

    return key


async def _with_levels(services: Services, sought: Sought, shown: Sequence[Sighted]) -> list[Sighted]:
    """With the highest level of each."""
    leveled: list[Sighted] = []
    for start in range(0, len(shown), LEVELS_AT_ONCE):
        some = shown[start : start + LEVELS_AT_ONCE]

        def read(snapshot: Snapshot, some: Sequence[Sighted] = some) -> list[Sighted]:
            return [each._replace(level=subjects.highest_level(snapshot, sought, each.last)) for each in some]

        leveled += await services.store.query(read)
        await trio.lowlevel.checkpoint()
    return leveled


async def read_account(services: Services, call: Call) -> ConsoleAccountBody | Refusal:
    """`GET /console/api/accounts/{account_id}`: an account, whom and what it was seen with, and its newest events.
    `404 not_found`.
    """
    query: VisitorQuery = call.query
    account_id, number = call.path["account_id"], call.organization.number
    seen = None
    if ACCOUNT_ID.fullmatch(account_id):
        seen = await seen_subject(services, call, kind_of(query.environment), "account", account_id)
    if seen is None:
        return Refusal("not_found", explanation=_NO_ACCOUNT)
    body = account_body(account_id, seen.row, seen.judged, seen.events, call.at_ms // 1000, seen.counted_since)
    return ConsoleAccountBody(
        **msgspec.structs.asdict(body),
        event_count=len(seen.events),
        events=tuple(await visits_of(services, number, seen.events[:EVENTS_SHOWN])),
    )


_NO_ACCOUNT = "The environment saw no such account in 30 days, or it was erased."
_SORTED = (
    "The one that was seen last first; or by `sort` the ones with the largest counts, of those that the newest "
    f"{EVENTS_SORTED:,} events name. Counts are those of now: one that grows between two pages may be on neither. "
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
        response=ConsoleAccountsBody,
    ),
    console_route(
        operation_id="listSeenConsoleVisitors",
        path="/seen-visitors",
        summary="List the visitors of an environment by what they do",
        description=_SORTED + " Visitors that are not identifiable are left out.",
        handler=list_visitors,
        query=ConsoleVisitorsQuery,
        response=ConsoleVisitorsBody,
    ),
    console_route(
        operation_id="getConsoleAccount",
        path="/accounts/{account_id}",
        summary="Read one account with its events",
        description="What it was seen with comes from its newest 2,000 events; the newest 50 are shown.",
        handler=read_account,
        query=VisitorQuery,
        response=ConsoleAccountBody,
        errors=("not_found",),
    ),
)
