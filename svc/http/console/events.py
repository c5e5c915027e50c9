"""The events of one environment, as the server API lists them."""

from __future__ import annotations

from svc.http.console.schema import ConsoleEventsQuery
from svc.http.events import asked_for, page_of_events
from svc.http.handler import Call, Outcome, Services
from svc.http.route import Route, console_route
from svc.http.schema import EventsAnswer


async def list_events(services: Services, call: Call) -> Outcome:
    """`GET /console/api/events`: a page of the events of an environment, newest first (decisions 7.1). `422
    invalid_window` or `validation_error`.
    """
    query: ConsoleEventsQuery = call.query
    return await page_of_events(services, call, asked_for(query), query.environment)


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
)
