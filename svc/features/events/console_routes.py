"""Events in the console: a list, one event with the webhooks about it and the visits beside it, and the live stream.

The stream `GET /console/api/stream` sends server-sent events (docs/adr/0038): identifications from the live hub as they
are committed, and to a viewer that reconnects what it missed from the store. One write has all that has come since the
last one, and there are five of them a second at most.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from itertools import starmap
from math import inf
from typing import Annotated, NamedTuple, get_args
from uuid import UUID

import trio
from msgspec import UNSET, UnsetType

from svc.features.events.console_bodies import (
    ConsoleEventBody,
    ConsoleEventsQuery,
    CountEventsQuery,
    EventKeyBody,
)
from svc.features.events.live import MAX_VIEWERS, LiveEvent, LiveHub, Viewer
from svc.features.events.routes import (
    count_events,
    detailed,
    find_positions,
    page_of_events,
    read_request_id,
)
from svc.features.webhooks.bodies import delivery_row
from svc.features.webhooks.content.envelope import identification_event_id
from svc.features.webhooks.content.payloads import OF_IDENTIFICATION
from svc.features.webhooks.queries import attempts_about
from svc.http.callers.limits import Turn
from svc.http.change import caller_of, still_holds, still_holds_in_use
from svc.http.route import Call, Outcome, Route, Services, Stream, console_route
from svc.http.schema import EventsAnswer, FiltersQuery, TotalBody
from svc.identify.events.listing import Filters, Listing, Position, read_filters, read_search
from svc.identify.queries import events
from svc.identify.queries.events import KEYS_OF_A_LOOK, EventPosition, read_each, readable_event
from svc.identify.queries.visitors import neighbors
from svc.kernel.access.credentials import KeyKind
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.fields import Environment, about
from svc.kernel.values.ids import end_of_now
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import body_of
from svc.kernel.work.slices import all_in_slices

ATTEMPTS_SHOWN = 100
MAX_TOTAL = 10_000
"""Events that are counted for a list; beyond, there are more than that."""


async def list_events(services: Services, call: Call) -> EventsAnswer | Refusal:
    """`GET /console/api/events`: a page of the events of an environment, newest first (decisions 7.1). `422
    invalid_window` or `validation_error`.
    """
    query: ConsoleEventsQuery = call.query
    return await page_of_events(services, call, query.asked(), query.environment)


async def count_matching(services: Services, call: Call) -> TotalBody | Refusal:
    """`GET /console/api/events/count`: how many events a list has. `422 invalid_window` or `validation_error`."""
    query: CountEventsQuery = call.query
    listing, number = read_search(query.asked(), call.at_ms, services.event_retention_ms), call.organization.number
    if isinstance(listing, Refusal):
        return listing
    counted, is_exact = await count_events(services, call.turn, number, query.environment, listing, MAX_TOTAL)
    return TotalBody(count=counted, is_exact=is_exact)


async def read_event(services: Services, call: Call) -> ConsoleEventBody | Refusal:
    """`GET /console/api/events/{request_id}`: an event with its document, of any environment of the organization. `404
    event_not_found`, `422 invalid_request_id`.
    """
    request_id = read_request_id(call.path["request_id"])
    if isinstance(request_id, Refusal):
        return request_id
    number = call.organization.number
    oldest_ms = call.at_ms - services.event_retention_ms
    event_ids = [identification_event_id(event_type, request_id).bytes for event_type in OF_IDENTIFICATION]

    def read(snapshot: Snapshot) -> ConsoleEventBody | Refusal:
        event = readable_event(snapshot, number, request_id, call.at_ms, services.event_retention_ms)
        if event is None:
            return Refusal("event_not_found", explanation=_NOT_FOUND)
        beside = neighbors(snapshot, number, request_id, event, oldest_ms)
        attempts = attempts_about(snapshot, number, event_ids, ATTEMPTS_SHOWN)
        key = lookups.find_key_of(snapshot, number, event.key_id, get_args(KeyKind))
        return ConsoleEventBody(
            event=detailed(snapshot, number, request_id, event),
            key=EventKeyBody(id=event.key_id) if key is None else body_of(EventKeyBody, key),
            previous=_id_text(beside.previous),
            next=_id_text(beside.next),
            deliveries=tuple(starmap(delivery_row, attempts)),
        )

    return await services.store.query(read)


def _id_text(request_id: UUID | None) -> str | UnsetType:
    return UNSET if request_id is None else str(request_id)


_NOT_FOUND = "The organization has no such event, or it is no longer kept."


MEDIA_TYPE = "text/event-stream"
WRITE_EVERY_S = 0.2
HEARTBEAT_S = 10.0
"""How often an idle stream is sent a heartbeat, and how late at most the end of its session or key is noticed. The
reverse proxies of `ops` give up after 15 s of silence.
"""
MAX_RESUMED = 200
"""Identifications that a viewer that reconnects is sent from the store."""
MAX_COUNTED = 2_000
"""Identifications that are looked at for it; those beyond `MAX_RESUMED` are counted as missed."""
TOO_MANY_STREAMS = f"The organization has {MAX_VIEWERS} live streams open, and may not have more. Close one."
PING = b": ping\n\n"
"""A comment, which browsers ignore."""


class StreamQuery(FiltersQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the live stream."""

    environment: Annotated[Environment, about("Whose identifications are shown.", "production")] = "production"


class Watched(NamedTuple):
    """The events that a viewer sees."""

    number: int
    """Of the organization."""
    environment: Environment
    filters: Filters


async def stream(services: Services, call: Call) -> Outcome | Refusal:
    """`GET /console/api/stream`: identifications as they are committed, until the client leaves, its session or key
    ends, or the service drains. `429 rate_limited` beyond `MAX_VIEWERS`, or where the hub is full; `422` for filters
    as of the list of events, and for a `Last-Event-ID` that is not a request id.
    """
    query: StreamQuery = call.query
    filters = read_filters(query.asked())
    if isinstance(filters, Refusal):
        return filters
    after = call.headers.get("last-event-id")
    last = None if not after else read_request_id(after)
    if isinstance(last, Refusal):
        return invalid("last-event-id", "invalid_value", "header")
    caller = caller_of(call)
    watched = Watched(caller.organization.number, query.environment, filters)
    holds = partial(still_holds, services, caller)
    credential = caller.digest if caller.session is None else caller.session.digest
    hub = services.part(LiveHub)
    viewer = hub.watch(*watched, credential=credential, holds=holds)
    if viewer is None:
        full = "The service has as many live streams open as it may." if hub.is_full else TOO_MANY_STREAMS
        return Refusal("rate_limited", retry_after_s=int(HEARTBEAT_S), explanation=full)
    resumed = None if last is None else partial(_resumed, services, call.turn, watched, last, call.at_ms)
    parts = parts_of(viewer, resumed, partial(still_holds_in_use, services, caller))
    return Outcome(Stream(parts, MEDIA_TYPE, viewer.close), headers={"X-Accel-Buffering": "no"})


async def parts_of(
    viewer: Viewer, resumed: Callable[[], Awaitable[list[LiveEvent | int]]] | None, holds: Callable[[], Awaitable[bool]]
) -> AsyncGenerator[bytes]:
    """Yield the parts of the stream, each to be written in one piece. It ends when the hub ends the viewer, or `holds`
    says that its credential is no longer valid.
    """
    yield PING  # so that the head is sent, and the page knows that it is connected
    seen: set[UUID] = set()
    if resumed is not None:
        found = await resumed()
        seen.update(each.request_id for each in found if isinstance(each, LiveEvent))
        if found:
            yield b"".join(_missed(each) if isinstance(each, int) else _message(each) for each in found)
    written_at, check_at = -inf, trio.current_time() + HEARTBEAT_S
    while True:
        came: list[LiveEvent] = []
        try:
            with trio.move_on_at(check_at):
                came.append(await viewer.next())
        except trio.EndOfChannel:
            return
        if came:
            await trio.sleep_until(written_at + WRITE_EVERY_S)
            came += viewer.waiting()
        parts = [_message(each) for each in came if each.request_id not in seen]
        missed = viewer.take_missed()
        if missed:
            parts.append(_missed(missed))
        if trio.current_time() >= check_at:
            if not await holds():
                return
            check_at = trio.current_time() + HEARTBEAT_S
            parts = parts or [PING]
        if parts:
            yield b"".join(parts)
            written_at = trio.current_time()


async def _resumed(services: Services, turn: Turn, watched: Watched, last: UUID, now_ms: int) -> list[LiveEvent | int]:
    """Return events after the viewer's last one, oldest first, behind the number of earlier ones left out, if any."""
    positions = await _positions_after(services, turn, watched, last, now_ms)
    newest, others = positions[:MAX_RESUMED], positions[MAX_RESUMED:]
    read = partial(read_each, filters=watched.filters)
    found = await all_in_slices(services.world, services.store, newest[::-1], read)
    return [*([len(others)] if others else []), *(LiveEvent(*match) for match in found if match is not None)]


async def _positions_after(
    services: Services, turn: Turn, watched: Watched, last: UUID, now_ms: int
) -> list[EventPosition]:
    """Return positions of matching events after `last`, newest first, of the `MAX_COUNTED` newest looked at. Where the
    store no longer has `last`, the time comes from its id.
    """
    known = await services.store.query(partial(events.event, number=watched.number, request_id=last))
    arrival_ms = int.from_bytes(last.bytes[:6]) if known is None else known.occurred_at_ms
    from_ms = max(arrival_ms, now_ms - services.event_retention_ms)
    listing = Listing(from_ms, end_of_now(max(from_ms, now_ms)), watched.filters, limit=MAX_COUNTED)
    found, _ = await find_positions(
        services, turn, watched.number, [watched.environment], listing, MAX_COUNTED // KEYS_OF_A_LOOK
    )
    return [match for match in found if match.position > Position(arrival_ms, last.bytes)]


def _message(found: LiveEvent) -> bytes:
    return b"id: %s\nevent: identification\ndata: %s\n\n" % (str(found.request_id).encode(), found.row)


def _missed(count: int) -> bytes:
    return b'event: missed\ndata: {"count": %d}\n\n' % count


ROUTES: tuple[Route, ...] = (
    console_route(
        operation_id="listConsoleEvents",
        path="/events",
        summary="List events of an environment",
        description="As the server API lists those of its key's environment, with the same filters and pages.",
        handler=list_events,
        query=ConsoleEventsQuery,
        errors=("invalid_window",),
    ),
    console_route(
        operation_id="countConsoleEvents",
        path="/events/count",
        summary="Count the events of a list",
        description=(
            f"Up to {MAX_TOTAL:,}, by the index and without reading them. A request looks at no more of the index than "
            "one for a page does: `is_exact` is `false` where it ends there."
        ),
        handler=count_matching,
        query=CountEventsQuery,
        errors=("invalid_window",),
    ),
    console_route(
        operation_id="getConsoleEvent",
        path="/events/{request_id}",
        summary="Read one event of any environment",
        description=(
            "As the server API reads it, and besides the key with which it came, the attempts to deliver webhooks "
            "about it, and the visitor's events just before and after it."
        ),
        handler=read_event,
        errors=("event_not_found", "invalid_request_id"),
    ),
    console_route(
        operation_id="streamEvents",
        path="/stream",
        summary="Watch identifications as they come",
        description=(
            "Server-sent events (`text/event-stream`). `event: identification` has a row of `listEvents` as its data "
            'and the request id as its `id`; `event: missed` has `{"count": n}`, for a viewer that reads too slowly. A '
            f"comment follows {HEARTBEAT_S:.0f} seconds without either. With `Last-Event-ID` it begins with what came "
            f"since, the newest {MAX_RESUMED} at most, and the count of up to {MAX_COUNTED - MAX_RESUMED} more. An "
            f"organization has {MAX_VIEWERS} streams at most, and all of them together a quarter of the connections "
            "that the service takes (`max_connections`). The stream ends with its session or key, at most "
            f"{HEARTBEAT_S:.0f} seconds later, and when the service stops."
        ),
        request_headers=("Last-Event-ID",),
        handler=stream,
        query=StreamQuery,
        media_type=MEDIA_TYPE,
        errors=("invalid_window",),
    ),
)
