"""What the page `/try` asks for: its key, an event with its reasons, and to be forgotten.

The page is for developers: it identifies with one public development key, the setting `try_key`. What it may read and
erase is what its own browser has made. The deferred token proves that of one identification, and the client token that
of earlier ones with the page's key. That the report is a known visitor's proves nothing: a neighbor's device may be the
same.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Annotated
from uuid import UUID

import msgspec

from svc.features.erasure.visitors import events_of, has_events
from svc.features.events.archived_document import EventDetailBody
from svc.features.events.routes import read_event, read_request_id, token_refusal, visits
from svc.features.visitors.routes import erase_wholly
from svc.http.change import caller_of
from svc.http.route import Call, Route, Services
from svc.http.schema import DeferredTokenText
from svc.identify.events.event_row import EventBody, event_row
from svc.identify.queries.visitors import find_visitor
from svc.identify.records import Event
from svc.identify.tables import EVENTS
from svc.kernel.access.credentials import digest
from svc.kernel.store.directory import Opened
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.errors import OperatorError
from svc.kernel.values.fields import RequestId, about
from svc.kernel.values.refusals import Refusal, invalid

MAX_VISITS = 24
"""Shown on the page."""
MAX_LOOKED_AT = 200
"""Events of the visitor, of which those are shown that this browser made; a visitor with more is not erased here."""
KNOWN_ELSEWHERE = (
    "The organization has identified this browser outside development too, and this page erases development data "
    "alone. Erase the visitor with a management key: `eraseVisitor`."
)
KNOWN_FOR_LONG = (
    "The organization has known this browser for longer than events are kept: what it did outside development may be "
    "forgotten, and this page erases development data alone. Erase the visitor with a management key: `eraseVisitor`."
)

KNOWN_BY_LIKENESS = (
    "The visitor was recognized by its device, not by a token of this browser: the earlier visits may be those of "
    "another one like it. Reload the page, so that this browser's new token counts, or erase the visitor with a "
    "management key: `eraseVisitor`."
)
KNOWN_TO_OTHER_KEYS = (
    "The visitor was identified with other keys too, and this page erases what it made itself alone. Erase the visitor "
    "with a management key: `eraseVisitor`."
)


class TryConfig(msgspec.Struct, frozen=True):
    """Response of `getTryConfig`: what the page needs before it can identify."""

    api_key: Annotated[str, about("The public development key of the page.")]


class TryBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of both requests of the page: an identification, and the proof that this browser made it."""

    request_id: RequestId
    token: Annotated[DeferredTokenText, about("The `deferred_token` of that identification.")]


class TryAnswer(msgspec.Struct, frozen=True):
    """Response of `explainTry`."""

    event: Annotated[EventDetailBody, about("The event of the request.")]
    visits: Annotated[
        tuple[EventBody, ...],
        about("The newest events that this browser made with the page's key, by its token, newest first."),
    ]


class TryKeyError(OperatorError):
    """The setting `try_key` names a key that cannot be the page's."""


def checked_key(opened: Opened, secret: str | None, now_ms: int) -> str | None:
    """Return the setting `try_key`, unchanged. Raises `TryKeyError` unless it is the secret of a public development key
    in force.
    """
    if secret is None:
        return None
    with opened.store.read() as snapshot:
        key = lookups.find_key(snapshot, digest(opened.pepper, secret))
    if key is None or not key.usable(now_ms):
        raise TryKeyError("try_key: the store has no such key that is in force; `svc key issue` makes one")
    if (key.kind, key.environment) != ("public", "development"):
        raise TryKeyError("try_key: the page /try takes a public development key alone")
    if "web" not in key.platforms:
        raise TryKeyError("try_key: the page /try is for the web, which is none of the key's platforms")
    return secret


async def configuration(services: Services, _: Call) -> TryConfig | Refusal:
    """`GET /try/config.json`: the key of the page; `404 not_found` where the setting `try_key` is missing."""
    if services.try_key is None:
        return Refusal("not_found")
    return TryConfig(services.try_key)


async def explain(services: Services, call: Call) -> TryAnswer | Refusal:
    """`POST /try/event`: an identification that this browser has made, with its visitor's newest events. `404
    not_found` for another key, `422 invalid_supplement` for a token that proves nothing.
    """
    event = await _own_event(services, call)
    if isinstance(event, Refusal):
        return event
    caller = caller_of(call)
    found = await visits(services, caller, event.visitor_id, MAX_LOOKED_AT, call.at_ms)
    shown = _own_visits(found, event.request_id, caller.key.id)[:MAX_VISITS]
    return TryAnswer(event, tuple(event_row(one, request_id) for request_id, one in shown))


def _own_visits(found: list[tuple[UUID, Event]], request_id: str, key_id: str) -> list[tuple[UUID, Event]]:
    """Return a visitor's events that came from the same browser as this one, with this key: those decided by its token
    and the visitor's first one, if this event is one of these; else only this one.
    """
    asked = [(each, event) for each, event in found if str(each) == request_id]
    if not any(_is_by_token(event) for _, event in asked):
        return asked
    return [(each, event) for each, event in found if event.key_id == key_id and _is_by_token(event)]


def _is_by_token(event: Event) -> bool:
    """Return whether the client token led to the visitor, or the visitor is new."""
    return event.verdict.visitor_is_new or event.verdict.linkage in ("token", "doubted_token")


async def forget(services: Services, call: Call) -> Refusal | None:
    """`POST /try/forget`: erase the visitor of an identification that this browser has made. `204`; errors as of
    `explain`. `403 insufficient_role` where the visitor has events outside development, or may have had some that are
    no longer kept: its id is the same there, and a public key must not erase it. The same where it was recognized by
    its device alone, or has events of other keys: those are not this browser's.
    """
    event = await _own_event(services, call)
    if isinstance(event, Refusal):
        return event
    caller = caller_of(call)
    number, raw_id = caller.organization.number, event.visitor_id.encode()

    def unless(snapshot: Snapshot) -> Refusal | None:
        ids = islice(events_of(snapshot, number, raw_id, ("development",)), MAX_LOOKED_AT + 1)
        found = {each: made for each in ids if (made := snapshot.get(EVENTS, number, each)) is not None}
        own = found.get(UUID(event.request_id).bytes)
        if own is None or not _is_by_token(own):
            return Refusal("insufficient_role", explanation=KNOWN_BY_LIKENESS)
        if len(found) > MAX_LOOKED_AT or any(made.key_id != caller.key.id for made in found.values()):
            return Refusal("insufficient_role", explanation=KNOWN_TO_OTHER_KEYS)
        if has_events(snapshot, number, raw_id, ("production", "staging")):
            return Refusal("insufficient_role", explanation=KNOWN_ELSEWHERE)
        record = find_visitor(snapshot, number, event.visitor_id)
        is_older = record is not None and record.first_seen_s * 1000 < call.at_ms - services.event_retention_ms
        return Refusal("insufficient_role", explanation=KNOWN_FOR_LONG) if is_older else None

    return await erase_wholly(services, call, event.visitor_id, unless=unless)


async def _own_event(services: Services, call: Call) -> EventDetailBody | Refusal:
    body: TryBody = call.body
    if services.try_key is None or call.headers.get("x-api-key") != services.try_key:
        return Refusal("not_found")
    request_id = read_request_id(body.request_id)
    if isinstance(request_id, Refusal):
        return invalid("request_id", "invalid_value")
    caller = caller_of(call)
    refused = token_refusal(services, call, caller, body.token, request_id)
    return refused or await read_event(services, caller, request_id, call.at_ms)


_own = partial(Route, method="POST", under=("",), kinds=("public",), body=TryBody)
ROUTES: tuple[Route, ...] = (
    Route(
        operation_id="getTryConfig",
        path="/try/config.json",
        under=("",),
        handler=configuration,
    ),
    _own(
        operation_id="explainTry",
        path="/try/event",
        handler=explain,
        errors=("event_not_found", "invalid_supplement"),
    ),
    _own(
        operation_id="forgetTry",
        path="/try/forget",
        handler=forget,
        status=204,
        errors=("event_not_found", "invalid_supplement", "insufficient_role"),
    ),
)
