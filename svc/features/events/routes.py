"""Events read back by the customer's server, and deferred reports that join them (interface 2.3, 2.4, 4.1, 4.2).

Endpoint functions: typed in, typed out, no HTTP framework.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from msgspec import UNSET

from svc.features.events.archived_document import DocumentBody, EventDetailBody, document_body, event_detail
from svc.features.events.change_jobs import change_event, supplement
from svc.features.feed.routes import page_of_feed
from svc.features.labels.jobs import LabelChange, Labeled
from svc.http.body import decode_signals
from svc.http.callers.caller import Caller
from svc.http.callers.limits import Turn
from svc.http.change import caller_of, change
from svc.http.listing import encoded_row, note_unreadable, read_behind
from svc.http.openapi.json_schema import FORWARDED
from svc.http.route import Call, Route, Services
from svc.http.schema import (
    EventsAnswer,
    LabelAnswer,
    ListEventsQuery,
    SupplementAnswer,
    SupplementBody,
    UpdateEventBody,
)
from svc.identify.events.archive import deflate, inflate
from svc.identify.events.listing import (
    EVERYTHING,
    Asked,
    CursorScope,
    Filters,
    Listing,
    Resume,
    next_cursor,
    read_listing,
)
from svc.identify.keys import deferred
from svc.identify.queries import events
from svc.identify.queries.visitors import visitor_id_of
from svc.identify.records import DeferredReport, Event
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import Environment
from svc.kernel.values.ids import end_of_now
from svc.kernel.values.refusals import Detail, Refusal
from svc.kernel.values.struct_fields import fields_sent, sent
from svc.kernel.work.slices import scanned

log = structlog.get_logger()

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


async def list_events(services: Services, call: Call) -> EventsAnswer | Refusal:
    """`GET /events`: a page of events of the key's own organization and environment, newest first (interface 4.2), or
    of its feed. `422 invalid_window`.
    """
    asked, environment = call.query.asked(), _environment(caller_of(call))
    page = page_of_feed if asked.order == "oldest" else page_of_events
    return await page(services, call, asked, environment)


async def page_of_events(
    services: Services, call: Call, asked: Asked, environment: Environment
) -> EventsAnswer | Refusal:
    """Return the page of events of the caller's organization that was asked for, newest first. `422 invalid_window`,
    `422 validation_error`.
    """
    number = call.organization.number
    scope = CursorScope(services.webhooks.cursors_key, number, environment)
    listing = read_listing(asked, call.at_ms, scope, services.event_retention_ms)
    if isinstance(listing, Refusal):
        return listing
    scan = partial(_scan_rows, events.EventScan(number, [environment], listing))
    shown, resume = await read_behind(
        services, scan, listing.start, listing.limit, most=events.MAX_LOOKS + listing.limit, turn=call.turn
    )
    note_unreadable(services, "listEvents", number, (found for found, _ in shown))
    cursor = UNSET if resume is None else next_cursor(asked, listing, resume, scope)
    rows: tuple[Any, ...] = tuple(row for _, row in shown)
    return EventsAnswer(rows=rows, page=asked.page or 1, page_size=asked.limit, next_cursor=cursor)


def _scan_rows(
    scan: events.EventScan, snapshot: Snapshot, resume: Resume, count: int
) -> Iterator[tuple[Resume, tuple[events.EventMatch | events.UnreadableEvent, Any] | None]]:
    for behind, found in scan.events(snapshot, resume, count):
        yield behind, None if found is None else (found, encoded_row(events.listed_row(found)))


async def find_positions(
    services: Services,
    turn: Turn,
    number: int,
    environments: Sequence[Environment],
    listing: Listing,
    most: int = events.MAX_LOOKS,
) -> tuple[list[events.EventPosition], Resume | None]:
    """Return the positions of the events of a listing, of some environments of the organization together: at most
    `listing.limit`, and where to go on, `None` = at the end. At most about `most` looks at the index find nothing. A
    long search holds the turn of its request.
    """
    scan = events.EventScan(number, environments, listing).positions
    most += listing.limit
    return await read_behind(services, scan, listing.start, listing.limit, most=most, turn=turn)


async def find_events(
    services: Services,
    turn: Turn,
    number: int,
    environments: Sequence[Environment],
    listing: Listing,
) -> tuple[list[events.EventMatch], Resume | None]:
    """Return the same as `find_positions`, but the events there that can be read."""
    scan = partial(_scan_readable, events.EventScan(number, environments, listing))
    most = events.MAX_LOOKS + listing.limit
    return await read_behind(services, scan, listing.start, listing.limit, most=most, turn=turn)


async def count_events(
    services: Services, turn: Turn, number: int, environment: Environment, listing: Listing, most: int
) -> tuple[int, bool]:
    """Return how many events a listing asks for, and whether that is exact: it is not beyond `most`, nor where as much
    of the index was looked at as a page looks at. A long search holds the turn of its request.
    """
    counted, looks = 0, 0
    scan = partial(events.scan_counts, number=number, environment=environment, listing=listing, most=most + 1)
    async with AsyncExitStack() as stack:
        slices = await stack.enter_async_context(aclosing(scanned(services.world, services.store, scan, listing.start)))
        async for some in slices:
            counted += sum(part for _, part in some)
            if counted > most:
                return most, False
            if some[-1][0] == events.NOTHING_BEHIND:
                break
            if looks == 0:
                await stack.enter_async_context(turn.held())
            looks += len(some)
            if looks >= events.MAX_LOOKS:
                return counted, False
    return counted, True


def _scan_readable(
    scan: events.EventScan, snapshot: Snapshot, resume: Resume, count: int
) -> Iterator[tuple[Resume, events.EventMatch | None]]:
    for behind, found in scan.events(snapshot, resume, count):
        yield behind, found if isinstance(found, events.EventMatch) else None


async def newest_positions(
    services: Services, turn: Turn, number: int, environments: Sequence[Environment], now_ms: int, *, most: int
) -> list[events.EventPosition]:
    """Return the positions of the newest events of some environments together, newest first, at most `most`."""
    listing = Listing(now_ms - services.event_retention_ms, end_of_now(now_ms), EVERYTHING, limit=most)
    return (await find_positions(services, turn, number, environments, listing))[0]


async def get_event(services: Services, call: Call) -> EventDetailBody | Refusal:
    """`GET /events/{request_id}`: one event with its archived document and its deferred report (interface 2.3). `404
    event_not_found`, `422 invalid_request_id`.
    """
    request_id = read_request_id(call.path["request_id"])
    if isinstance(request_id, Refusal):
        return request_id
    caller = caller_of(call)
    return await read_event(services, caller, request_id, call.at_ms)


async def read_event(services: Services, caller: Caller, request_id: UUID, now_ms: int) -> EventDetailBody | Refusal:
    """Return an event of the caller's organization and environment in the form of interface 2.3, with its archive and
    its deferred report; `404 event_not_found`.
    """
    number, environment = caller.organization.number, _environment(caller)

    def read(snapshot: Snapshot) -> EventDetailBody | Refusal:
        event = events.event_by_request(snapshot, number, environment, request_id, now_ms, services.event_retention_ms)
        return Refusal("event_not_found") if event is None else detailed(snapshot, number, request_id, event)

    return await services.store.query(read)


def detailed(snapshot: Snapshot, number: int, request_id: UUID, event: Event) -> EventDetailBody:
    """Return a stored event in the form of interface 2.3, with its archive and its deferred report."""
    document = _document(snapshot, number, request_id, event)
    report = events.deferred_report(snapshot, number, request_id)
    return event_detail(event, request_id, document, None if report is None else inflate(report.signals))


async def update_event(services: Services, call: Call) -> EventDetailBody | LabelAnswer | Refusal:
    """`PATCH /events/{request_id}`: set or remove account, action, tag and label of an event (decisions 11.2); beyond
    its retention the label alone, which is the response then (14.1). `404 event_not_found`, `422 invalid_request_id`.
    """
    request_id = read_request_id(call.path["request_id"])
    if isinstance(request_id, Refusal):
        return request_id
    caller, body = caller_of(call), call.body
    fields = fields_sent(body)
    label = LabelChange(fields.pop("label", UNSET), fields.pop("label_reason", UNSET))
    job = partial(
        change_event,
        number=caller.organization.number,
        environment=_environment(caller),
        request_id=request_id,
        fields=fields,
        now_ms=call.at_ms,
        label=label,
        retention_ms=services.event_retention_ms,
    )
    changed = await change(services, call, job) if fields or label != LabelChange() else None
    if isinstance(changed, Refusal):
        return changed
    if isinstance(changed, Labeled):
        return LabelAnswer(request_id=str(request_id), label=changed.label, label_reason=changed.reason)
    return await read_event(services, caller, request_id, call.at_ms)


async def visits(
    services: Services, caller: Caller, visitor_id: str, limit: int, now_ms: int
) -> list[tuple[UUID, Event]]:
    """Return a visitor's newest events in the caller's environment with their ids: `limit` at most, newest first."""
    listing = Listing(
        now_ms - services.event_retention_ms, end_of_now(now_ms), Filters(visitor_id=visitor_id), limit=limit
    )
    number, environment = caller.organization.number, _environment(caller)
    found = await services.store.query(
        partial(events.event_page, number=number, environment=environment, listing=listing)
    )
    return [(each.request_id, each.event) for each in found.events if isinstance(each, events.EventMatch)]


async def supplement_event(services: Services, call: Call) -> SupplementAnswer | Refusal:
    """`POST /events/{request_id}/supplement`: `202` once the deferred report is durable (interface 2.4, 4.1). `409
    supplement_conflict`, `422 invalid_supplement` or `invalid_request_id`.
    """
    body: SupplementBody = call.body
    caller = caller_of(call)
    request_id = read_request_id(call.path["request_id"])
    if isinstance(request_id, Refusal):
        return request_id
    signals_json = bytes(body.signals)
    signals = decode_signals(signals_json)
    if isinstance(signals, Refusal):
        return signals
    refusal = token_refusal(services, call, caller, body.token, request_id)
    if refusal is not None:
        return refusal
    if signals.get("tier") != "deferred":
        return Refusal("invalid_supplement", (Detail("signals.tier", "invalid_value", "body"),))
    platform, version = sent(body.sdk.platform), sent(body.sdk.version)
    report = DeferredReport(
        signals=deflate(signals_json),
        sdk_platform=platform,
        sdk_version=version,
        digest=deferred.report_digest(platform, version, signals_json),
        received_at_ms=call.at_ms,
    )
    job = partial(
        supplement,
        number=caller.organization.number,
        request_id=request_id,
        report=report,
        quotas=services.quotas,
        capacity_bytes=services.store.capacity_bytes(),
    )
    received = await change(services, call, job)
    if isinstance(received, Refusal):
        return received
    duplicate = True if received == "accepted_before" else UNSET
    return SupplementAnswer(str(request_id), duplicate)


def read_request_id(text: str) -> UUID | Refusal:
    """Return the request id in a path, or `422 invalid_request_id`. Any UUID passes, even one never given."""
    if _UUID.fullmatch(text):
        return UUID(text)
    return Refusal("invalid_request_id", (Detail("request_id", "invalid_value", "path"),))


def token_refusal(services: Services, call: Call, caller: Caller, token: str, request_id: UUID) -> Refusal | None:
    """Return `422 invalid_supplement` unless the deferred token is valid for this request and the caller's key and
    origin (decisions 7.4); `None` if it is.
    """
    opened = deferred.open_token(services.deferred_key, token, caller.applied.id, caller.origin, call.at_ms)
    if opened is not None and opened.request_id == request_id:
        return None
    return Refusal("invalid_supplement", (Detail("token", "invalid_value", "body"),))


def _document(snapshot: Snapshot, number: int, request_id: UUID, event: Event) -> DocumentBody | None:
    """Return the archive; `None` where none was kept. Raises `CorruptionError` (decisions 17.5)."""
    if not event.has_document:
        return None
    document = events.document(snapshot, number, request_id)
    if document is None:
        raise CorruptionError(f"request {request_id} has no document, and its event says otherwise")
    weights = events.weights_snapshot(snapshot, document.weights_digest)
    split_from = visitor_id_of(snapshot, number, document.split_from)
    try:
        return document_body(event, document, inflate(document.signals), weights, split_from)
    except zlib.error as error:
        raise CorruptionError(f"the archived report of request {request_id} cannot be read: {error}") from error


def _environment(caller: Caller) -> Environment:
    assert caller.key.environment is not None, "only management keys have none"
    return caller.key.environment


_read = partial(Route, tag="Server API", kinds=("secret",))
ROUTES: tuple[Route, ...] = (
    Route(
        operation_id="supplementEvent",
        method="POST",
        path="/events/{request_id}/supplement",
        tag="Client API",
        summary="Send the deferred report of an identification",
        description=(
            "What takes long to collect may follow within 24 hours, from the same key and origin. It is kept with the "
            "event and changes nothing else. The same report again is taken as a duplicate. A secret or proxy key "
            "that identified sends it with the same forwarded origin, and a proxy key with `x-svc-visitor-ip` again. "
            "An app, which has no origin, names its platform again in `sdk.platform` or `x-svc-sdk-platform`."
        ),
        request_headers=FORWARDED,
        handler=supplement_event,
        kinds=("public", "secret", "proxy"),
        body=SupplementBody,
        status=202,
        from_browsers=True,
        errors=("supplement_conflict", "invalid_supplement", "invalid_request_id", "invalid_visitor_metadata"),
    ),
    _read(
        operation_id="listEvents",
        path="/events",
        summary="List events",
        description=(
            "Newest first, of the organization and environment of the key, of at most 30 days at once, as far back as "
            "events are kept: 30 days, unless the operator says more. Without `from` the window begins 24 hours before "
            "its end. Each row has the verdict of identify, with the signals by name under `signals` and their groups "
            "under `triggers`. Filters may be combined. `next_cursor` leads to the next page, in the same window and "
            "with the same filters, and is left out on the last one; `page` counts pages instead, at most 10,000 "
            "events deep. A page of several filters that are rarely met together may be short, or empty, and still "
            "have a `next_cursor`: a request looks at no more than 20,000 events. `rule` lists what a rule decided, "
            "with `shadow=true` what it matched in shadow mode. "
            "With `order=oldest` the list is a feed: each event once, oldest first, from the oldest that is kept or "
            "from `from`, and then behind `after`. No event comes behind a `next_cursor`, of which each page has one: "
            "go on with it, and wait a second where `has_more` is false. An event comes about two seconds after its "
            "arrival; one that was stored later comes when it is, after younger ones. `to`, `page` and "
            "`cursor` are not for a feed, nor are filters on what an event may get later: `account_id`, `action`, "
            "`tag`, `label` and `rule` are `not_with_order`."
        ),
        handler=list_events,
        query=ListEventsQuery,
        errors=("invalid_window",),
    ),
    _read(
        operation_id="getEvent",
        path="/events/{request_id}",
        summary="Read one event",
        description=(
            "With the archived submission under `document`, and the deferred report when one arrived. The document "
            "also says why the verdict is what it is: `evidence` of each signal, `linkage` (how the visitor was found, "
            "how sure that is), `changes` since the visitor's last report, and the result of its `attestation`. Its "
            "contents are not a public contract."
        ),
        handler=get_event,
        errors=("event_not_found", "invalid_request_id"),
    ),
    _read(
        operation_id="updateEvent",
        method="PATCH",
        path="/events/{request_id}",
        summary="Set the account, the action, the tag or the label of an event",
        description=(
            "For what is known only afterwards, such as the account that a sign-up makes, or a chargeback. Fields that "
            "are left out stay, `null` removes one; the last writer wins. The event keeps its visitor, velocity, "
            "signals, score and price, and no webhook is sent; the counts of the account and the visitor follow. A "
            "label may be set for 400 days: of an event that is not readable any more the label alone, which is then "
            "the response."
        ),
        handler=update_event,
        body=UpdateEventBody,
        other_responses=((200, LabelAnswer),),
        errors=("event_not_found", "invalid_request_id"),
    ),
)
