"""Accounts and visitors read by the customer's server (decisions 11.3): those of the environments that are counted with
that of the key.

What an account or a visitor was seen with comes from its newest `EVENTS_LOOKED_AT` events. A list is read from the
index of events (`svc.features.accounts.queries`), some at a time: how much there is delays nobody.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from svc.features.accounts import queries as subjects
from svc.features.accounts.bodies import (
    AccountAnswer,
    AccountsAnswer,
    AccountsQuery,
    Seen,
    SeenVisitorAnswer,
    SeenVisitorsAnswer,
    SeenVisitorsQuery,
    SubjectsQuery,
    account_body,
    account_row,
    shown_since,
    visitor_body,
    visitor_row,
)
from svc.features.accounts.queries import NEWEST, Sighted, Sought, SubjectScan
from svc.features.events.routes import find_events
from svc.features.reviews.queries import judged
from svc.http.callers.limits import Turn
from svc.http.change import caller_of
from svc.http.listing import DEFAULT_LIMIT, Page, encoded_row, read_behind
from svc.http.route import Call, Route, Services
from svc.identify.events.listing import FILTERS, Listing, Position, filters_of
from svc.identify.model import Level, Subject
from svc.identify.queries.events import EventMatch
from svc.identify.queries.velocity import counted_since, event_subjects, shown_row
from svc.identify.velocity.counts import EMPTY, EnvironmentKind, VelocityRow, kind_of
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.encodings import Cursors, List, bound_to
from svc.kernel.values.ids import end_of_now
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.work.slices import Slice, all_in_slices

A = TypeVar("A")

EVENTS_LOOKED_AT = 2000
"""The newest of one account or visitor."""
MAX_EVENTS = 5000
"""Events that are looked at for one page of a list: a filter that few fit gets a short page and a cursor."""
MAX_EVENTS_BY_LEVEL = 2000
"""The same where a level is asked for, for which the events of a day are searched."""
LEVELS_AT_ONCE = 128
"""Accounts or visitors whose levels are looked for at a time, where some of them are not at the level."""

_POSITION = struct.Struct(">Q16s")
"""Of the last event of a page."""
LISTS: dict[Subject, List] = {"account": "seen_accounts", "visitor": "seen_visitors"}
"""The lists that cursors are of."""


async def get_account(services: Services, call: Call) -> AccountAnswer | Refusal:
    """`GET /accounts/{account_id}`: an account, and whom and what it was seen with (decisions 11.3). `404 not_found`
    where the environments have no event of it.
    """
    account_id = call.path["account_id"]
    seen = await seen_subject(services, call, _kind(call), "account", account_id)
    return Refusal("not_found") if seen is None else account_body(account_id, seen, call.at_ms // 1000)


async def get_visitor(services: Services, call: Call) -> SeenVisitorAnswer | Refusal:
    """`GET /visitors/{visitor_id}`: a visitor, and whom and what it was seen with (decisions 11.3). `404 not_found`
    where the environments have no event of it.
    """
    visitor_id = call.path["visitor_id"]
    seen = await seen_subject(services, call, _kind(call), "visitor", visitor_id)
    return Refusal("not_found") if seen is None else visitor_body(visitor_id, seen, call.at_ms // 1000)


def _kind(call: Call) -> EnvironmentKind:
    environment = caller_of(call).key.environment
    assert environment is not None, "only management keys have none"
    return kind_of(environment)


async def events_of_subject(
    services: Services, call: Call, kind: EnvironmentKind, listed: Subject, subject_id: str, *, limit: int
) -> list[EventMatch]:
    """Return the newest events of an account or a visitor in all environments of a kind, newest first."""
    number, now_ms = call.organization.number, call.at_ms
    filters = filters_of(listed, subject_id)
    listing = Listing(now_ms - services.event_retention_ms, end_of_now(now_ms), filters, limit=limit)
    return (await find_events(services, call.turn, number, subjects.environments_of(kind), listing))[0]


async def seen_subject(
    services: Services, call: Call, kind: EnvironmentKind, listed: Subject, subject_id: str
) -> Seen | None:
    """Return an account or a visitor of the caller's organization with its newest events; `None` if there is none.
    `subject_id` may be any text.
    """
    if not subjects.is_subject_id(listed, subject_id):
        return None
    number, now_ms = call.organization.number, call.at_ms
    found = await events_of_subject(services, call, kind, listed, subject_id, limit=EVENTS_LOOKED_AT)
    if not found:
        return None

    def read(snapshot: Snapshot) -> Seen:
        known_as = subjects.number_of(snapshot, number, listed, subject_id)
        if known_as is None:
            row = _row_of_events(number, found)
        else:
            row = shown_row(snapshot, number, kind, listed, known_as, now_ms // 1000)
        said = judged(snapshot, number, kind, listed, subject_id, [match.event for match in found])
        return Seen(row, said, found, counted_since(snapshot, number))

    return await services.store.query(read)


def _row_of_events(number: int, found: Sequence[EventMatch]) -> VelocityRow:
    """Return counts of a visitor that is not identifiable, which has no row of its own."""
    row = EMPTY
    for match in found:
        if match.event.velocity is not None and not match.event.velocity.is_counted:
            continue
        who = event_subjects(number, match.request_id.bytes, match.event, None)
        row = row.with_event(who.at_s, who.others_of("visitor"))
    return row


async def list_accounts(services: Services, call: Call) -> AccountsAnswer | Refusal:
    """`GET /accounts`: a page of accounts, the one that was seen last first (decisions 11.3)."""
    query: AccountsQuery = call.query
    return await _page(services, call, "account", query, query.min_visitors, account_row, AccountsAnswer)


async def list_visitors(services: Services, call: Call) -> SeenVisitorsAnswer | Refusal:
    """`GET /visitors`: a page of identifiable visitors, the one that was seen last first (decisions 11.3)."""
    query: SeenVisitorsQuery = call.query
    return await _page(services, call, "visitor", query, query.min_accounts, visitor_row, SeenVisitorsAnswer)


async def _page(
    services: Services,
    call: Call,
    listed: Subject,
    query: AccountsQuery | SeenVisitorsQuery,
    least: int | UnsetType,
    row_of: Callable[[Sighted, int], msgspec.Struct],
    answer: Callable[[tuple[Any, ...], str | UnsetType, str | UnsetType], A],
) -> A | Refusal:
    """Return a page of a list, or `422 validation_error` for an invalid filter or cursor."""
    number = call.organization.number
    sought = read_sought(services, query, least, listed, number, _kind(call), call.at_ms)
    if isinstance(sought, Refusal):
        return sought
    since = await read_counted_since(services, number)
    page = await page_of_subjects(services, call.turn, sought, query, row_of)
    return page if isinstance(page, Refusal) else answer(page.rows, page.next_cursor, since)


async def read_counted_since(services: Services, number: int) -> str | UnsetType:
    """Return the time since which counts of an organization are of all events; `UNSET` once they are complete. Counts
    that are read after it are of that time and more.
    """
    return shown_since(await services.store.query(partial(counted_since, number=number)))


def read_sought(
    services: Services,
    query: SubjectsQuery,
    least: int | UnsetType,
    listed: Subject,
    number: int,
    kind: EnvironmentKind,
    now_ms: int,
) -> Sought | Refusal:
    """Return what a query of a list asks for. `422` (`invalid_value`)."""
    values: dict[str, str] = {}
    for name, text in (("country", query.country), ("level", query.level)):
        if text is not UNSET:
            value = FILTERS[name](text)
            if value is None:
                return invalid(name, "invalid_value", "query")
            values[name] = value
    return Sought(
        listed,
        number,
        kind,
        now_ms,
        now_ms - services.event_retention_ms,
        prefix="" if query.q is UNSET else query.q,
        least=0 if least is UNSET else least,
        country=values.get("country"),
        level=cast("Level | None", values.get("level")),
    )


async def page_of_subjects(
    services: Services,
    turn: Turn,
    sought: Sought,
    query: SubjectsQuery,
    row_of: Callable[[Sighted, int], msgspec.Struct],
) -> Page[Any] | Refusal:
    """Return the page of what is sought that the query asks for, of what `row_of` makes of each and the time (Unix s).
    `422` (`invalid_cursor`).
    """
    bound = bound_to(sought._replace(now_ms=0, oldest_ms=0), "last_seen")
    cursors = Cursors(services.webhooks.cursors_key, LISTS[sought.listed], sought.number, bound)
    after = _POSITION.pack(*NEWEST) if query.cursor is UNSET else cursors.read(query.cursor)
    if after is None:
        return invalid("cursor", "invalid_cursor", "query")
    limit = DEFAULT_LIMIT if query.limit is UNSET else query.limit
    scan = SubjectScan(sought, is_first=query.cursor is UNSET)
    read = _all_levels if sought.level is None else _one_level
    found, behind = await read(services, turn, sought, scan, Position(*_POSITION.unpack(after)), limit)
    rows = await subject_rows(services, sought, found, row_of)
    return Page(rows, UNSET if behind is None else cursors.write(_POSITION.pack(*behind)))


async def _all_levels(
    services: Services, turn: Turn, sought: Sought, scan: SubjectScan, after: Position, limit: int
) -> tuple[list[Sighted], Position | None]:
    """Return up to `limit` subjects behind a position, and where to go on; `None` = there is none behind it."""
    found, behind = await read_behind(services, scan, after, limit, most=MAX_EVENTS, turn=turn)
    return await leveled(services, turn, sought, found), behind


async def _one_level(
    services: Services, turn: Turn, sought: Sought, scan: SubjectScan, after: Position, limit: int
) -> tuple[list[Sighted], Position | None]:
    """Return the same as `_all_levels`, of those at the level that is sought: some at a time, and their levels."""
    found: list[Sighted] = []
    behind, left = after, MAX_EVENTS_BY_LEVEL
    while True:
        most = min(LEVELS_AT_ONCE, left)
        some, resume = await read_behind(services, scan, behind, most, most=most, turn=turn)
        for each in await leveled(services, turn, sought, some):
            if each.level == sought.level and len(found) == limit:
                return found, found[-1].at
            if each.level == sought.level:
                found.append(each)
        left -= most
        if resume is None or left <= 0:
            return found, resume
        behind = resume


async def leveled(services: Services, turn: Turn, sought: Sought, found: Sequence[Sighted]) -> list[Sighted]:
    """Return these with the highest level of each in 24 hours. The index is read once for all of them."""
    places: defaultdict[int, list[Position]] = defaultdict(list)
    time, is_long = Slice(services.world), False
    async with AsyncExitStack() as stack:
        for scope in sought.scopes:
            behind: Position | None = NEWEST
            while behind is not None:
                read = partial(subjects.places_of_a_day, sought=sought, scope=scope, found=found, beyond=behind)
                some, behind = await services.store.query(read)
                for digest, own in some.items():
                    places[digest] = (places[digest] + own)[: subjects.MAX_OF_A_DAY + 1]
                if behind is not None and not is_long:
                    is_long = True
                    await stack.enter_async_context(turn.held())
                await time.pause()
        read_levels = partial(subjects.with_levels, sought=sought, places=places)
        return await all_in_slices(services.world, services.store, found, read_levels)


async def subject_rows(
    services: Services, sought: Sought, found: Sequence[Sighted], row_of: Callable[[Sighted, int], msgspec.Struct]
) -> tuple[Any, ...]:
    """Return what `row_of` makes of each, encoded."""
    time, rows = Slice(services.world), list[Any]()
    for each in found:
        rows.append(encoded_row(row_of(each, sought.now_ms // 1000)))
        await time.pause()
    return tuple(rows)


_KINDS = "Those of production are apart; those of staging and development are together, by the environment of the key. "
_LIST = (
    "The one that was seen last first, as far back as events are kept. "
    + _KINDS
    + "Filters may be combined. A page with filters that few fit may be short, or empty, and still have a "
    "`next_cursor`: a request looks at no more than 5,000 events."
)
_ONE = _KINDS + "What it was seen with comes from its newest 2,000 events."
_route = partial(Route, tag="Server API", kinds=("secret",))
ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="listAccounts",
        path="/accounts",
        summary="List accounts",
        description=_LIST,
        handler=list_accounts,
        query=AccountsQuery,
    ),
    _route(
        operation_id="getAccount",
        path="/accounts/{account_id}",
        summary="Read one account",
        description=_ONE,
        handler=get_account,
        errors=("not_found",),
    ),
    _route(
        operation_id="listVisitors",
        path="/visitors",
        summary="List visitors",
        description=_LIST
        + " Visitors that are not identifiable, and new ones of a report that was sent before, are left out.",
        handler=list_visitors,
        query=SeenVisitorsQuery,
    ),
    _route(
        operation_id="getVisitor",
        path="/visitors/{visitor_id}",
        summary="Read one visitor",
        description=_ONE,
        handler=get_visitor,
        errors=("not_found",),
    ),
)
