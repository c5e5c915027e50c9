"""Visitors of an organization: erasure of visitors and accounts by its own automation (decisions 7.6, 11.6), and the
console's lists and histories, which are bounded and read some rows at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from svc.features.erasure.accounts import continue_account_erasure, erase_account
from svc.features.erasure.texts import unreadable_events
from svc.features.erasure.unreadable import UnreadableRows
from svc.features.erasure.visitors import continue_erasure, erase_visitor
from svc.features.events.console_bodies import (
    VisitBody,
    VisitorBody,
    VisitorQuery,
    VisitorRow,
    VisitorsBody,
    VisitorsQuery,
    address_rows,
    seen,
    tag_rows,
)
from svc.features.events.routes import find_events
from svc.http.callers.limits import Turn
from svc.http.change import delete_in_steps
from svc.http.listing import read_behind
from svc.http.route import ORGANIZATION, Call, Route, Services, console_route
from svc.identify.events.event_row import event_row
from svc.identify.events.listing import (
    MAX_TAG_LENGTH,
    Asked,
    CursorScope,
    Filters,
    Listing,
    Position,
    Resume,
    next_cursor,
)
from svc.identify.matching import Visitor
from svc.identify.model import Subject
from svc.identify.queries import events
from svc.identify.queries import visitors as visitor_views
from svc.identify.queries.events import EventMatch
from svc.identify.queries.visitors import Activity, sum_of
from svc.identify.velocity.counts import account_digest
from svc.kernel.access.audit import Audited
from svc.kernel.net.addresses import parse_ip
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.encodings import Cursors, bound_to
from svc.kernel.values.fields import ENVIRONMENTS, Environment
from svc.kernel.values.ids import end_of_now, is_visitor_id
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import present, sent
from svc.kernel.work.slices import Scan, all_in_slices, scanned


async def erase(services: Services, call: Call) -> Refusal | None:
    """`DELETE .../visitors/{visitor_id}`: `204` when nothing of the visitor is left to read (decisions 7.6). `404
    not_found`.

    Where the caller does not wait, or the store is full in between, retention completes the erasure.
    """
    return await erase_wholly(services, call, call.path["visitor_id"])


async def erase_wholly(
    services: Services, call: Call, visitor_id: str, *, unless: Callable[[Snapshot], Refusal | None] = lambda _: None
) -> Refusal | None:
    """Erase a visitor of the caller's organization, step by step; `204` when nothing of it is left to read (decisions
    7.6), `404 not_found` for an unknown one. `unless` may refuse it, in the transaction that begins.
    """
    number, left = call.organization.number, UnreadableRows()

    def begin(transaction: Transaction) -> Refusal | bool:
        return unless(transaction) or erase_visitor(left.past(transaction), number, visitor_id, call.at_ms)

    def go_on(transaction: Transaction) -> bool:
        return continue_erasure(left.past(transaction), number, visitor_id.encode(), call.at_ms)

    refused = await delete_in_steps(services, call, begin, go_on)
    return refused or await _note_left(services, call, "visitor", visitor_id, left)


async def erase_an_account(services: Services, call: Call) -> Refusal | None:
    """`DELETE .../accounts/{account_id}`: `204` when nothing names the account any more (decisions 11.6). `404
    not_found`.

    Where the caller does not wait, or the store is full in between, retention completes the erasure.
    """
    number, account_id = call.organization.number, call.path["account_id"]
    digest, left = account_digest(number, account_id), UnreadableRows()

    def begin(transaction: Transaction) -> Refusal | bool:
        return erase_account(left.past(transaction), number, account_id, call.at_ms)

    def go_on(transaction: Transaction) -> bool:
        return continue_account_erasure(left.past(transaction), number, digest, call.at_ms)

    refused = await delete_in_steps(services, call, begin, go_on)
    return refused or await _note_left(services, call, "account", account_id, left)


async def _note_left(services: Services, call: Call, subject: Subject, subject_id: str, left: UnreadableRows) -> None:
    """Report the events and other rows that cannot be read and that an erasure has left (decisions 17.5)."""
    number = call.organization.number
    find = partial(unreadable_events, number=number, subject=subject, subject_id=subject_id)
    for error in (*await services.store.query(find), *left.left()):
        services.corrupt.note(call.route.operation_id, number, error)


EVENTS_SHOWN = 50
EVENTS_LOOKED_AT = 200
TAGS_SHOWN = 50
VISITORS_AT_ONCE = 200
"""Visitors whose events are counted together, so that each row of a segment that is read is of use."""
MATCHING_EVENTS = 500
"""Newest events of a tag or an address among which its visitors are looked for."""
MAX_VISITORS = 1000
"""Visitors that are looked at for one page: an environment with few of them gets a short page and a cursor."""


class Found(NamedTuple):
    """A visitor of a list."""

    visitor_id: str
    record: Visitor | None
    """`None` for one that cannot be recognized."""
    matching_events: int | UnsetType = UNSET
    """Events with the tag or the address that was asked for."""
    position: bytes = b""
    """In the list of all visitors."""


_NO_VISITOR = "The organization has no such visitor, or it was erased."


async def list_visitors(services: Services, call: Call) -> VisitorsBody | Refusal:
    """`GET /console/api/visitors`: a page of all visitors, of those seen in an environment, or of those seen with a tag
    or at an address. `422 validation_error`.
    """
    query: VisitorsQuery = call.query
    number, filters = call.organization.number, _filters(query)
    if isinstance(filters, Refusal):
        return filters
    cursors = Cursors(services.webhooks.cursors_key, "visitors", number, bound_to(sent(query.environment), filters))
    return await (_created_page if filters is None else partial(_seen_page, filters=filters))(services, call, cursors)


async def _seen_page(services: Services, call: Call, cursors: Cursors, filters: Filters) -> VisitorsBody | Refusal:
    """Return a page of visitors that were seen with a tag or at an address, in the order of their ids."""
    query: VisitorsQuery = call.query
    number, behind = call.organization.number, b"" if query.cursor is UNSET else cursors.read(query.cursor)
    if behind is None:
        return invalid("cursor", "invalid_cursor", "query")
    environment: Environment = "production" if query.environment is UNSET else query.environment
    listing = Listing(0, end_of_now(call.at_ms), filters, limit=MATCHING_EVENTS)
    matching, _ = await find_events(services, call.turn, number, [environment], listing)
    counted = Counter(event.verdict.visitor_id for _, event in matching)
    ids = sorted(visitor_id for visitor_id in counted if visitor_id.encode() > behind)
    shown = ids[: query.limit]

    def read(snapshot: Snapshot, some: Sequence[str]) -> Iterator[Found]:
        for visitor_id in some:
            record = visitor_views.find_visitor(snapshot, number, visitor_id)
            yield Found(visitor_id, record, counted[visitor_id])

    rows = await _rows(services, call, await all_in_slices(services.world, services.store, shown, read))
    cursor = cursors.write(shown[-1].encode()) if len(ids) > len(shown) else UNSET
    return VisitorsBody(tuple(row for _, row in rows), cursor)


async def _created_page(services: Services, call: Call, cursors: Cursors) -> VisitorsBody | Refusal:
    """Return a page of visitors, most recently created first; with an environment, only those with events in it. The
    counts that a row shows say whether they have any, for some visitors together: for more of them each time that the
    page is not full.
    """
    query: VisitorsQuery = call.query
    behind = b"" if query.cursor is UNSET else cursors.read(query.cursor)
    if behind is None:
        return invalid("cursor", "invalid_cursor", "query")
    scan = partial(_created, number=call.organization.number)
    rows: list[tuple[Found, VisitorRow]] = []
    looked_at, at_once = 0, query.limit + 1
    while behind is not None and len(rows) <= query.limit and looked_at < MAX_VISITORS:
        found, behind = await read_behind(services, scan, behind, at_once, turn=call.turn)
        rows += await _rows(services, call, found, sent(query.environment))
        looked_at, at_once = looked_at + len(found), min(2 * at_once, VISITORS_AT_ONCE)
    if len(rows) > query.limit:
        behind = rows[query.limit - 1][0].position
    cursor = UNSET if behind is None else cursors.write(behind)
    return VisitorsBody(tuple(row for _, row in rows[: query.limit]), cursor)


def _filters(query: VisitorsQuery) -> Filters | Refusal | None:
    """Return the filters of a query; `None` for all visitors."""
    if query.tag is not UNSET:
        if query.ip_address is not UNSET:
            return invalid("ip_address", "invalid_value", "query")
        return Filters(tag=query.tag) if len(query.tag) <= MAX_TAG_LENGTH else invalid("tag", "too_long", "query")
    if query.ip_address is UNSET:
        return None
    address = parse_ip(query.ip_address)
    return invalid("ip_address", "invalid_value", "query") if address is None else Filters(ip_address=address)


async def _rows(
    services: Services, call: Call, page: Sequence[Found], environment: Environment | None = None
) -> list[tuple[Found, VisitorRow]]:
    """Return a row for each visitor that has not been erased meanwhile and has events in the environment, if one is
    given.
    """
    rows: list[tuple[Found, VisitorRow]] = []
    counted = await activities_of(services, call, page)
    for found in page:
        visitor_id = found.visitor_id
        if environment is not None and visitor_id not in counted[environment]:
            continue
        total = sum_of(of_visitors[visitor_id] for of_visitors in counted.values() if visitor_id in of_visitors)
        times = seen(found.record, total)
        if times:
            matching = found.matching_events
            row = VisitorRow(visitor_id=visitor_id, events=total.events, matching_events=matching, **times)
            rows.append((found, row))
    return rows


def _created(snapshot: Snapshot, after: bytes, count: int, *, number: int) -> Iterator[tuple[bytes, Found]]:
    """Yield visitors, most recently created first."""
    before = int.from_bytes(after) if after else None
    for visitor, record in visitor_views.visitors(snapshot, number, before, count):
        position = visitor.to_bytes(4)
        yield position, Found(record.visitor_id, record, position=position)


async def read_visitor(services: Services, call: Call) -> VisitorBody | Refusal:
    """`GET /console/api/visitors/{visitor_id}`: a visitor, its tags and addresses, and its newest events in an
    environment. `404 not_found` for a visitor that the organization does not have.
    """
    query: VisitorQuery = call.query
    visitor_id, environment = call.path["visitor_id"], query.environment
    number = call.organization.number
    if not is_visitor_id(visitor_id):
        return Refusal("not_found", explanation=_NO_VISITOR)
    kept_ms = call.at_ms - services.event_retention_ms
    listing = Listing(kept_ms, end_of_now(call.at_ms), Filters(visitor_id=visitor_id), limit=EVENTS_LOOKED_AT)
    record = await services.store.query(partial(visitor_views.find_visitor, number=number, visitor_id=visitor_id))
    since_known = listing._replace(from_ms=visitor_views.counted_from_ms(record, kept_ms))
    found, _ = await find_events(services, call.turn, number, [environment], since_known)
    if record is None and not found:
        return Refusal("not_found", explanation=_NO_VISITOR)
    visits = await visits_of(services, number, found[:EVENTS_SHOWN])
    counted = {
        of: found.get(visitor_id, Activity())
        for of, found in (await activities_of(services, call, [Found(visitor_id, record)])).items()
    }
    total = sum_of(counted.values())
    times = seen(record, total)
    if not times:
        return Refusal("not_found", explanation=_NO_VISITOR)
    return VisitorBody(
        visitor_id=visitor_id,
        identifiable=record is not None,
        event_count=total.events,
        environment_event_count=counted[environment].events,
        **times,
        tags=tuple(tag_rows(found)[:TAGS_SHOWN]),
        addresses=tuple(address_rows(found)),
        events=tuple(visits),
        next_cursor=_behind(services, number, environment, listing, found),
    )


async def visits_of(services: Services, number: int, matches: Sequence[EventMatch]) -> list[VisitBody]:
    """Return events of a timeline, each with what had changed."""
    return await all_in_slices(services.world, services.store, matches, partial(_visits, number))


def _visits(number: int, snapshot: Snapshot, matches: Sequence[EventMatch]) -> Iterator[VisitBody]:
    for match in matches:
        row = msgspec.structs.asdict(event_row(match.event, match.request_id))
        yield VisitBody(**row, changes=present(_change(snapshot, number, match)))


def _change(snapshot: Snapshot, number: int, match: EventMatch) -> tuple[str, ...] | None:
    """Return what differed from the visitor's previous report; `None` if unknown."""
    if not match.event.has_document:
        return None
    try:
        document = events.document(snapshot, number, match.request_id)
    except CorruptionError:
        return None  # who opens the event finds that its document cannot be read
    return None if document is None else document.changes


def _behind(
    services: Services, number: int, environment: Environment, listing: Listing, found: Sequence[EventMatch]
) -> str | UnsetType:
    """Return the cursor of the events after those shown."""
    if len(found) <= EVENTS_SHOWN:
        return UNSET
    last = found[EVENTS_SHOWN - 1]
    scope = CursorScope(services.webhooks.cursors_key, number, environment)
    resume = Resume(Position(last.event.occurred_at_ms, last.request_id.bytes))
    return next_cursor(Asked(visitor=listing.filters.visitor_id), listing, resume, scope)


async def activities_of(
    services: Services, call: Call, visitors: Sequence[Found]
) -> dict[Environment, dict[str, Activity]]:
    """Return the activity of visitors in the events that are kept, by environment and id; those without events are left
    out. The index of events is read once for all of them, from when the first of them was known.
    """
    kept_ms = call.at_ms - services.event_retention_ms
    since_ms = min((visitor_views.counted_from_ms(found.record, kept_ms) for found in visitors), default=kept_ms)
    scan = partial(
        visitor_views.scan_activities,
        number=call.organization.number,
        visitor_ids=[found.visitor_id for found in visitors],
        since_ms=since_ms,
    )
    beyond = Position(end_of_now(call.at_ms), bytes(16))
    return {
        environment: await _counted(services, call.turn, partial(scan, environment=environment), beyond)
        for environment in ENVIRONMENTS
    }


async def _counted(
    services: Services, turn: Turn, scan: Scan[Position, dict[str, Activity]], beyond: Position
) -> dict[str, Activity]:
    """Return the sums of a scan. A count of more than one slice holds the request's turn."""
    found: dict[str, Activity] = {}
    slices = scanned(services.world, services.store, scan, beyond)
    async with AsyncExitStack() as stack:
        async for some in await stack.enter_async_context(aclosing(slices)):
            for _, counted in some:
                found |= {each: found.get(each, Activity()).plus(more) for each, more in counted.items()}
            if some[-1][0] != visitor_views.END:
                await stack.enter_async_context(turn.held())
    return found


ROUTES: tuple[Route, ...] = (
    Route(
        operation_id="eraseVisitor",
        audited=Audited(names_people=True),
        method="DELETE",
        path=ORGANIZATION + "/visitors/{visitor_id}",
        tag="Management: visitors",
        summary="Erase a visitor",
        description=(
            "With its events, their submissions and deferred reports, for good. Events that cannot be read stay until "
            "the operator takes them out; rules, webhooks and names of lists stay as they are, whatever they name."
        ),
        handler=erase,
        kinds=("management",),
        needs="administer",
        status=204,
    ),
    Route(
        operation_id="eraseAccount",
        audited=Audited(names_people=True),
        method="DELETE",
        path=ORGANIZATION + "/accounts/{account_id}",
        tag="Management: visitors",
        summary="Erase an account",
        description=(
            "Its id leaves events, counts, lists, notes and queued webhooks, for good. The events stay; so do rules, "
            "webhooks, names of lists and events that cannot be read, whatever they name."
        ),
        handler=erase_an_account,
        kinds=("management",),
        needs="administer",
        status=204,
    ),
    console_route(
        operation_id="listConsoleVisitors",
        path="/visitors",
        summary="List visitors",
        description=(
            "All visitors of the organization, the most recently created first. With `environment`, those with events "
            "in it as far back as events are kept; a page may then be short or empty and have a `next_cursor`. What a "
            "row says is of all environments. With `tag` or `ip_address`, of which one may be sent, those seen with it "
            "in the environment (`production` when left out) among its 500 newest events, in the order of their ids."
        ),
        handler=list_visitors,
        query=VisitorsQuery,
    ),
    console_route(
        operation_id="getConsoleVisitor",
        path="/visitors/{visitor_id}",
        summary="Read one visitor",
        description=(
            "With its tags, addresses and newest events in the environment. Those behind them are listed by the list "
            "of events, with `visitor`, `environment` and `next_cursor` as its `cursor`, and no window."
        ),
        handler=read_visitor,
        query=VisitorQuery,
        errors=("not_found",),
    ),
)
