"""Visitors of the organization: all, those seen with a tag or at an address, and one visitor's history.

Lists and histories are bounded, and read some rows at a time: how often somebody was here delays nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import trio
from msgspec import UNSET, UnsetType

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
from svc.features.events.routes import KEYS_AT_ONCE, read_at
from svc.http.callers.limits import Turn
from svc.http.route import Call, Route, Services, console_route
from svc.http.rows import in_parts, page_of
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
from svc.identify.queries import events, records
from svc.identify.queries import visitors as visitor_views
from svc.identify.queries.events import EventMatch
from svc.identify.queries.visitors import Activity, sum_of
from svc.kernel.net.addresses import parse_ip
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.cursor import read_cursor, write_cursor
from svc.kernel.values.environments import ENVIRONMENTS, Environment
from svc.kernel.values.ids import is_visitor_id
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import present, sent

EVENTS_SHOWN = 50
EVENTS_LOOKED_AT = 200
TAGS_SHOWN = 50
VISITORS_AT_ONCE = 4
"""Of those that may have events in an environment: each is a search, of milliseconds among millions of events."""
VISITORS_A_PAGE = 1000
"""That are looked at for one page: an environment with few of them gets a short page and a cursor."""


class Found(NamedTuple):
    """A visitor of a list."""

    visitor_id: str
    record: Visitor | None
    """`None` for one that cannot be recognized."""
    matching_events: int | UnsetType = UNSET
    """Events with the tag or the address that was asked for."""


_NO_VISITOR = "The organization has no such visitor, or it was erased."


async def list_visitors(services: Services, call: Call) -> VisitorsBody | Refusal:
    """`GET /console/api/visitors`: a page of all visitors, of those seen in an environment, or of those seen with a tag
    or at an address. `422 validation_error`.
    """
    query: VisitorsQuery = call.query
    number, key = call.organization.number, services.webhooks.cursors_key
    filters = _filters(query)
    if isinstance(filters, Refusal):
        return filters
    bound = _bound(sent(query.environment), filters)
    row = b"" if query.cursor is UNSET else read_cursor(key, "visitors", number, query.cursor)
    if row is None or (row and not row.startswith(bound)):
        return invalid("cursor", "invalid_cursor", "query")
    after = row[len(bound) :]
    if filters is not None:
        environment: Environment = "production" if query.environment is UNSET else query.environment
        found = await _seen_with(services, number, environment, filters, after, query.limit + 1)
    elif query.environment is UNSET:
        found = await _created(services, number, after, query.limit + 1)
    else:
        shown, rest = await _seen_in(services, call, number, query.environment, after, query.limit)
        cursor = UNSET if rest is None else write_cursor(key, "visitors", number, bound + rest)
        return VisitorsBody(await _rows(services, call, number, shown), cursor)
    shown = found[: query.limit]
    cursor = write_cursor(key, "visitors", number, bound + shown[-1][0]) if len(found) > query.limit else UNSET
    return VisitorsBody(await _rows(services, call, number, [each for _, each in shown]), cursor)


def _filters(query: VisitorsQuery) -> Filters | Refusal | None:
    """`None` = all visitors."""
    if query.tag is not UNSET:
        if query.ip_address is not UNSET:
            return invalid("ip_address", "invalid_value", "query")
        return Filters(tag=query.tag) if len(query.tag) <= MAX_TAG_LENGTH else invalid("tag", "too_long", "query")
    if query.ip_address is UNSET:
        return None
    address = parse_ip(query.ip_address)
    return invalid("ip_address", "invalid_value", "query") if address is None else Filters(ip_address=address)


def _bound(environment: Environment | None, filters: Filters | None) -> bytes:
    """What a cursor is bound to beside the organization."""
    asked = msgspec.json.encode((environment, filters), order="deterministic")
    return blake2b(asked, digest_size=16).digest()


async def _rows(services: Services, call: Call, number: int, page: Sequence[Found]) -> tuple[VisitorRow, ...]:
    """A row for each visitor; none for one that was erased meanwhile."""
    rows: list[VisitorRow] = []
    for visitor_id, record, matching in page:
        counted = await activity_of(services, call, number, visitor_id, record)
        total = sum_of(counted.values())
        times = seen(record, total)
        if times:
            rows.append(VisitorRow(visitor_id=visitor_id, events=total.events, matching_events=matching, **times))
        await trio.lowlevel.checkpoint()
    return tuple(rows)


async def _created(services: Services, number: int, after: bytes, limit: int) -> list[tuple[bytes, Found]]:
    """(where the next page begins, visitor), the most recently created first."""
    before = int.from_bytes(after) if after else None
    found = await services.store.query(partial(visitor_views.visitors, number=number, after=before, limit=limit))
    return [(visitor.to_bytes(4), Found(record.visitor_id, record)) for visitor, record in found]


async def _seen_in(
    services: Services, call: Call, number: int, environment: Environment, after: bytes, limit: int
) -> tuple[list[Found], bytes | None]:
    """Visitors with events in the environment, the most recently created first, and where the next page begins; `None`
    = this is the last one.
    """
    find = partial(
        _some_seen, number=number, environment=environment, since_ms=call.at_ms - services.event_retention_ms
    )

    async def read(before: int | None, count: int) -> list[tuple[int | None, Found | None]]:
        return await services.store.query(partial(find, before=before, count=count))

    before = int.from_bytes(after) if after else None
    found, last = await page_of(read, before, limit, VISITORS_AT_ONCE, VISITORS_A_PAGE)
    return found, None if last is None else last.to_bytes(4)


def _some_seen(
    snapshot: Snapshot, *, number: int, environment: Environment, since_ms: int, before: int | None, count: int
) -> list[tuple[int | None, Found | None]]:
    """(number, a visitor with events in the environment) of some visitors; the last of `count` is
    not looked at.
    """
    has_events = partial(visitor_views.has_events_in, snapshot, number, environment)
    return [
        (visitor, Found(record.visitor_id, record) if index < count and has_events(record, since_ms) else None)
        for index, (visitor, record) in enumerate(visitor_views.visitors(snapshot, number, before, count), start=1)
    ]


async def _seen_with(
    services: Services, number: int, environment: Environment, filters: Filters, after: bytes, limit: int
) -> list[tuple[bytes, Found]]:
    """(where the next page begins, visitor), in the order of ids."""
    find = partial(
        visitor_views.visitors_with,
        number=number,
        environment=environment,
        filters=filters,
        after=after.decode() or None,
        limit=limit,
    )

    def read(snapshot: Snapshot) -> list[Found]:
        return [
            Found(each.visitor_id, visitor_views.find_visitor(snapshot, number, each.visitor_id), each.events)
            for each in find(snapshot)
        ]

    return [(each.visitor_id.encode(), each) for each in await services.store.query(read)]


async def read_visitor(services: Services, call: Call) -> VisitorBody | Refusal:
    """`GET /console/api/visitors/{visitor_id}`: a visitor, its tags and addresses, and its newest events in an
    environment. `404 not_found` for a visitor that the organization does not have.
    """
    query: VisitorQuery = call.query
    visitor_id, environment = call.path["visitor_id"], query.environment
    number = call.organization.number
    if not is_visitor_id(visitor_id):
        return Refusal("not_found", explanation=_NO_VISITOR)
    listing = Listing(
        call.at_ms - services.event_retention_ms, call.at_ms + 1, Filters(visitor_id=visitor_id), limit=EVENTS_LOOKED_AT
    )
    record, positions = await services.store.query(
        lambda snapshot: (
            visitor_views.find_visitor(snapshot, number, visitor_id),
            events.positions(snapshot, number, environment, listing).rows,
        )
    )
    found = await in_parts(positions, partial(read_at, services, listing.filters))
    if record is None and not found:
        return Refusal("not_found", explanation=_NO_VISITOR)
    visits = await visits_of(services, number, found[:EVENTS_SHOWN])
    counted = await activity_of(services, call, number, visitor_id, record)
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
    return await in_parts(matches, partial(_visits, services, number))


async def _visits(services: Services, number: int, matches: Sequence[EventMatch]) -> list[VisitBody]:
    changes = await services.store.query(lambda snapshot: [_change(snapshot, number, match) for match in matches])
    rows = [msgspec.structs.asdict(event_row(match.event, match.request_id)) for match in matches]
    return [VisitBody(**row, changes=present(changed)) for row, changed in zip(rows, changes, strict=True)]


def _change(snapshot: Snapshot, number: int, match: EventMatch) -> tuple[str, ...] | None:
    """What differed from the visitor's report before; `None` where nothing says."""
    if not match.event.has_document:
        return None
    try:
        document = records.document(snapshot, number, match.request_id)
    except CorruptionError:
        return None  # who opens the event finds that its document cannot be read
    return None if document is None else document.changes


def _behind(
    services: Services, number: int, environment: Environment, listing: Listing, found: Sequence[EventMatch]
) -> str | UnsetType:
    """The cursor of the list of events behind those that are shown."""
    if len(found) <= EVENTS_SHOWN:
        return UNSET
    last = found[EVENTS_SHOWN - 1]
    scope = CursorScope(services.webhooks.cursors_key, number, environment)
    resume = Resume(Position(last.event.occurred_at_ms, last.request_id.bytes))
    return next_cursor(Asked(visitor=listing.filters.visitor_id), listing, resume, scope)


ROUTES: tuple[Route, ...] = (
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
        response=VisitorsBody,
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
        response=VisitorBody,
        errors=("not_found",),
    ),
)


async def activity_of(
    services: Services, call: Call, number: int, visitor_id: str, record: Visitor | None
) -> dict[Environment, Activity]:
    """Return the events of a visitor that are kept, by environment. `record`: what the store has of it; `None` for one
    that cannot be recognized.
    """
    since_ms = visitor_views.counted_from_ms(record, call.at_ms - services.event_retention_ms)
    listing = Listing(since_ms, call.at_ms + 1, Filters(visitor_id=visitor_id))
    return {
        environment: await _counted(services, call.turn, number, environment, listing) for environment in ENVIRONMENTS
    }


async def _counted(services: Services, turn: Turn, number: int, environment: Environment, listing: Listing) -> Activity:
    """`KEYS_AT_ONCE` are looked at between two checkpoints; what is beyond the first holds the turn of its
    request.
    """
    read = partial(visitor_views.activity, number=number, environment=environment, most_keys=KEYS_AT_ONCE)
    found, after = await services.store.query(partial(read, listing=listing))
    if after is None:
        return found
    async with turn.held():
        while after is not None:
            await trio.lowlevel.checkpoint()
            older, after = await services.store.query(partial(read, listing=listing._replace(after=after)))
            found = found.plus(older)
    return found
