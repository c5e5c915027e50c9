"""The events of one environment, as the server API lists them; and one event of the organization, in whatever
environment, with the webhooks about it and the visits beside it.
"""

from __future__ import annotations

from itertools import starmap
from typing import get_args
from uuid import UUID

from msgspec import UNSET, UnsetType

from svc.features.events.console_bodies import ConsoleEventBody, ConsoleEventsQuery, event_key
from svc.features.events.routes import asked_for, detailed, page_of_events, read_request_id
from svc.features.webhooks.bodies import delivery_row
from svc.features.webhooks.content.envelope import identification_event_id
from svc.features.webhooks.content.payloads import OF_IDENTIFICATION
from svc.features.webhooks.queries import attempts_about
from svc.http.route import Call, Route, Services, console_route
from svc.http.schema import EventsAnswer
from svc.identify.queries.events import readable_event
from svc.identify.queries.visitors import neighbors
from svc.kernel.access.credentials import KeyKind
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.refusals import Refusal

ATTEMPTS_SHOWN = 100


async def list_events(services: Services, call: Call) -> EventsAnswer | Refusal:
    """`GET /console/api/events`: a page of the events of an environment, newest first (decisions 7.1). `422
    invalid_window` or `validation_error`.
    """
    query: ConsoleEventsQuery = call.query
    return await page_of_events(services, call, asked_for(query), query.environment)


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
            key=event_key(event.key_id, key),
            previous=_id_text(beside.previous),
            next=_id_text(beside.next),
            deliveries=tuple(starmap(delivery_row, attempts)),
        )

    return await services.store.query(read)


def _id_text(request_id: UUID | None) -> str | UnsetType:
    return UNSET if request_id is None else str(request_id)


_NOT_FOUND = "The organization has no such event, or it is no longer kept."

ROUTES: tuple[Route, ...] = (
    console_route(
        operation_id="listConsoleEvents",
        path="/events",
        summary="List events of an environment",
        description="As the server API lists those of its key's environment, with the same filters and pages.",
        handler=list_events,
        query=ConsoleEventsQuery,
        response=EventsAnswer,
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
        response=ConsoleEventBody,
        errors=("event_not_found", "invalid_request_id"),
    ),
)
