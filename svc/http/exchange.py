"""One request from its first header to its response: the checks in their fixed order.

route -> key -> body size, media type, encoding -> JSON -> fields -> state (decisions 1.8). The request id and the time
of arrival are made here, once. Requests and responses are plain values; no framework is in between (docs/adr/0004).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, nullcontext, suppress
from typing import NamedTuple

import msgspec
import structlog
import trio
from structlog.contextvars import bound_contextvars

from svc.http.body import MAX_BODY_BYTES, MAX_WIRE_BYTES, acceptable, decode, sdk_platform, unpack
from svc.http.callers.authentication import (
    AuthRequest,
    authenticate,
    claimed_platform,
    forbidden,
    platform_refusal,
    sender,
)
from svc.http.callers.caller import Caller, Site
from svc.http.callers.sessions import authenticate_session, cleared_cookie, read_site, signed_out
from svc.http.change import note_use, still_holds_in_use
from svc.http.pages.app import Pages
from svc.http.query import read_query
from svc.http.responses import NEVER_CACHED, Response, encode_headers, preflight, render
from svc.http.route import CONSOLE_ROOT, NOT_NOW, Call, Outcome, Paths, Route, RouteMatch, Services, Stream
from svc.http.server.fair_queue import KnownKeys
from svc.http.server.messages import Application, Body, Headers, Reply, Request
from svc.http.traffic import PREFLIGHT, RequestContext, Traffic
from svc.kernel.access.credentials import ApiKey
from svc.kernel.access.jobs import CorruptSessionError
from svc.kernel.limits.eviction import client_prefix
from svc.kernel.net.trace_context import read_trace
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.refusals import NOTIFIABLE, Refusal, RefusedRequest

log = structlog.get_logger()

CONSOLE_PATHS = f"{CONSOLE_ROOT}/".encode()
CONSOLE_HEADERS = ((b"X-Content-Type-Options", b"nosniff"),)
"""Of every response below `CONSOLE_PATHS`: a browser with a session never takes one for a page or a script."""

LARGE_BODY_BYTES = 65_536
"""Unpacking one of these takes milliseconds, and so does decoding it: others have a turn in between."""

_NO_FIELDS = nullcontext()


LOOK_EVERY_S = 1.0
"""How often it is looked again whether the session or key of a download is valid. On a database each part of a file
would otherwise take twice as many round trips."""
CUT_OFF = "a download was cut off: its session or key has ended"


class AccessEndedError(Exception):
    """The session or key of a download has ended: nothing more is sent, and the response gets no end."""


class _Arrived(NamedTuple):
    route: Route
    match: RouteMatch
    request: Request
    headers: dict[str, str]
    context: RequestContext

    @property
    def peer(self) -> str:
        """Return the address of the connection, empty if the server does not know it."""
        return self.request.client[0] if self.request.client else ""


class Exchange:
    """Handles every request by the table of routes: authenticates, reads the body, calls the endpoint, encodes."""

    def __init__(self, services: Services, traffic: Traffic, keys: KnownKeys, pages: Pages, paths: Paths) -> None:
        """Serve the routes of `paths`, and every other path by `pages`. Tell `keys` of every valid key."""
        self._services = services
        self._traffic = traffic
        self._keys = keys
        self._pages = pages
        self._paths = paths

    async def respond(self, request: Request) -> Response:
        """Return the response to a request, `500 internal_error` after a fault of this program. It is counted and
        logged; a stream when it is closed. Raises only cancellation, when the client is gone.
        """
        at_ms = self._services.world.now_ms()
        context = self._traffic.began(self._services.world.request_id(at_ms), at_ms)
        headers = _read_headers(request)
        context.request, context.caused_by = request, read_trace(headers)
        try:
            with bound_contextvars(**context.trace_fields) if context.caused_by else _NO_FIELDS:
                response = await self._respond(request, headers, context)
        except BaseException:
            self._traffic.ended(context, None)
            raise
        if request.path.startswith(CONSOLE_PATHS):
            response = response._replace(headers=list(dict.fromkeys((*response.headers, *CONSOLE_HEADERS))))
        if response.stream is not None:
            return self._counted(response, response.stream, context)
        self._traffic.ended(context, response.status)
        return response

    def _counted(self, response: Response, stream: Stream, context: RequestContext) -> Response:
        """Return the response with a stream that ends the request when it is closed."""

        def close() -> None:
            stream.close()
            self._traffic.ended(context, response.status)

        parts = self._noted(stream, context)
        return response._replace(stream=stream._replace(close=close, parts=parts))

    async def _noted(self, stream: Stream, context: RequestContext) -> AsyncGenerator[bytes]:
        """Yield the parts of a stream. Count a corrupt row, which ends it, as that of any other request. Raises
        `AccessEndedError` in the place of a part of a file if the session or key is found to have ended.
        """
        caller, elapsed_s = context.caller if stream.is_file else None, self._services.world.elapsed_s
        looked_s = elapsed_s()
        async with aclosing(stream.parts) as parts:
            try:
                async for part in parts:
                    if caller is not None and elapsed_s() >= looked_s + LOOK_EVERY_S:
                        looked_s = elapsed_s()
                        if not await still_holds_in_use(self._services, caller):
                            log.info(CUT_OFF, request_id=str(context.request_id), operation=context.operation_id)
                            raise AccessEndedError
                    yield part
            except CorruptionError as error:
                self._services.corrupt.note(context.operation_id, None, error)
                raise

    async def _respond(self, request: Request, headers: dict[str, str], context: RequestContext) -> Response:
        path = request.path.decode("latin-1")
        found = self._paths.find(path)
        if found is None:
            return await self._page(request, headers, context)
        method, resource = request.method, found.resource
        route = resource.routes.get("GET" if method == "HEAD" else method)
        origin = headers.get("origin") if resource.from_browsers else None
        if method == "OPTIONS" and resource.from_browsers:
            context.operation_id = PREFLIGHT
            return preflight(context.request_id, origin, resource)
        if route is None:
            context.refusal = Refusal("method_not_allowed")
            return render(context.request_id, Outcome(context.refusal, headers={"Allow": resource.allow}), origin)
        context.operation_id = route.operation_id
        arrived = _Arrived(route, found, request, headers, context)
        try:
            outcome = await self._run(arrived)
        except UnavailableError as error:
            self._services.store.outage.stopped("request", error)
            outcome = Outcome(NOT_NOW)
        except CorruptionError as error:
            self._services.corrupt.note(route.operation_id, None, error)
            outcome = Outcome(Refusal("internal_error"))
            if isinstance(error, CorruptSessionError):
                site = read_site(self._services.policy, headers, request.scheme, arrived.peer)
                outcome = Outcome(signed_out("the session is corrupt"), headers={"Set-Cookie": cleared_cookie(site)})
        except Exception:
            log.exception("request failed", request_id=str(context.request_id), operation=route.operation_id)
            outcome = Outcome(Refusal("internal_error"))
        context.body = outcome.body
        if isinstance(outcome.body, Refusal):
            context.refusal = outcome.body
        if isinstance(outcome.body, Stream) and method == "HEAD":
            outcome.body.close()
            outcome = Outcome(None, headers={**outcome.headers, "Content-Type": outcome.body.media_type})
        may_not_be_kept = "x-api-key" in headers or resource.is_console
        return render(context.request_id, outcome, origin, has_key=may_not_be_kept)

    async def _page(self, request: Request, headers: dict[str, str], context: RequestContext) -> Response:
        """Return a response of the pages, which is never a stream. Their routes take no body and no key."""
        fields = {"X-Request-Id": str(context.request_id), "Cache-Control": NEVER_CACHED}
        try:
            page = await self._pages(request, str(context.request_id))
        except Exception:
            log.exception("request failed", request_id=str(context.request_id), operation="page")
            context.refusal = Refusal("internal_error")
            return render(context.request_id, Outcome(context.refusal), None)
        if page.operation_id is not None:
            context.operation_id = page.operation_id
            refusal = await self._skip_body(request.body, headers)
            if refusal is not None:
                context.refusal = refusal
                return render(context.request_id, Outcome(refusal), None)
        context.refusal = page.refusal
        fields |= page.headers
        if "x-api-key" in headers:
            fields["Cache-Control"] = NEVER_CACHED
        return Response(page.status, encode_headers(fields), page.body)

    async def _run(self, arrived: _Arrived) -> Outcome:
        policy, route, context, headers = self._services.policy, arrived.route, arrived.context, arrived.headers
        is_console = arrived.match.resource.is_console
        site = read_site(policy, headers, arrived.request.scheme, arrived.peer) if is_console else None
        caller = await self._authenticate(arrived, site) if route.kinds else None
        if isinstance(caller, Refusal):
            outcome, key = Outcome(caller), caller.key
            origin, ip = caller.origin, sender(policy, headers, arrived.peer)
        else:
            context.caller = caller
            over = None
            if caller is not None:
                if caller.session is None:
                    self._keys.note(headers.get("x-api-key", ""), caller.organization.number)
                over = None if route.use is None else self._services.limits.refusal(route.use, caller, context.at_ms)
            elif route.reads_for_all:
                asking = sender(policy, headers, arrived.peer)
                over = self._services.limits.open_read_refusal(asking, context.at_ms)
            outcome = Outcome(over) if over is not None else await self._handle(arrived, site)
            key = None if caller is None else caller.applied
            origin, ip = (None, None) if caller is None else (caller.origin, caller.facts.ip)
        if route.identifies and key is not None and isinstance(outcome.body, Refusal):
            self._note(key, outcome.body, context, origin, ip)
        return outcome

    def _note(self, key: ApiKey, refusal: Refusal, context: RequestContext, origin: str | None, ip: str | None) -> None:
        """Record a refusal for the subscribers of `identification.refused` (decisions 8.9)."""
        if refusal.status not in NOTIFIABLE or key.environment is None:
            return
        refused = RefusedRequest(
            organization=key.organization,
            key_id=key.id,
            code=refusal.code,
            status=refusal.status,
            environment=key.environment,
            request_id=context.request_id.bytes,
            occurred_at_ms=context.at_ms,
            origin=origin,
            ip_address=ip,
            reason=refusal.reason or None,
            trace=context.trace,
        )
        self._services.note_refusal(refused)

    async def _handle(self, arrived: _Arrived, site: Site | None) -> Outcome:
        """Run the checks that follow the key, in their fixed order, and then the handler."""
        route, match, request, headers, context = arrived
        caller = context.caller
        if caller is not None:
            refusal = forbidden(caller, match.path.get("organization_id"), route.permission)
            if refusal is not None:
                return Outcome(refusal)
        body: msgspec.Struct | Refusal | None
        platform = None
        if route.body is None:
            body = await self._skip_body(request.body, headers)
        else:
            client = client_prefix(sender(self._services.policy, headers, arrived.peer) or "")
            json = await self._json(request.body, headers, client)
            body = json if isinstance(json, Refusal) else decode(json or route.empty_body, route.body)
            platform = None if isinstance(json, Refusal) else sdk_platform(json, body)
        platform = platform or claimed_platform(headers)
        if caller is not None and (refusal := platform_refusal(caller, platform)) is not None:
            return Outcome(refusal)
        if isinstance(body, Refusal):
            return Outcome(body)
        query = read_query(request.query, route.query)
        if isinstance(query, Refusal):
            return Outcome(query)
        call = Call(
            request_id=context.request_id,
            route=route,
            at_ms=context.at_ms,
            headers=headers,
            repeated=_repeated(request, headers),
            caller=caller,
            platform=platform,
            path=match.path,
            query=query,
            body=body,
            site=site,
            trace=context.trace,
            long_reads=None if caller is None else self._services.limits.long_reads.turn(caller.organization.number),
        )
        if route.method == "GET":
            await note_use(self._services, call)
        answer = await route.handler(self._services, call)
        outcome = answer if isinstance(answer, Outcome) else Outcome(answer, route.status)
        if route.method != "GET" and not isinstance(outcome.body, Refusal):  # what is refused leaves nothing behind
            await note_use(self._services, call)
        return outcome

    async def _authenticate(self, arrived: _Arrived, site: Site | None) -> Caller | Refusal:
        """Authenticate by the key, or on the paths of the console by the session if no key is sent."""
        policy, route, headers, at_ms = self._services.policy, arrived.route, arrived.headers, arrived.context.at_ms

        def find(snapshot: Snapshot) -> Caller | Refusal:
            request = AuthRequest(policy, snapshot, headers, arrived.peer, at_ms)
            if site is not None and "x-api-key" not in headers:
                return authenticate_session(request, site, arrived.request.method)
            return authenticate(request, route.kinds)

        # A transaction looks at the key again; what only reads has no other look at it.
        found = await self._services.store.query(find, recent=route.identifies)
        if route.identifies and isinstance(found, Refusal) and found.key is not None and found.status == 401:
            # And a refusal is final: the key's list of origins may be a new one.
            found = await self._services.store.query(find)
        if isinstance(found, Refusal) and found.status == 401 and self._services.store.lost() is not None:
            return NOT_NOW  # an older file in the store's place may not have the key (decisions 17.4)
        return found

    async def _json(self, body: Body, headers: dict[str, str], client: str) -> bytes | Refusal:
        """Return the text of the body, not yet parsed. Parts as they arrive count against the client's budget."""
        content_type, encoding = headers.get("content-type"), headers.get("content-encoding")
        refusal = acceptable(content_type, encoding, headers.get("content-length"))
        if refusal is not None:
            return refusal
        wire = body.whole()
        if wire is None:
            parts: list[bytes] = []
            budget, timeout_s = self._services.bodies, self._services.request_timeout_s

            def keep(part: bytes) -> bool:
                has_space = budget.take(client, len(part))
                if has_space:
                    parts.append(part)
                return has_space

            try:
                refusal = await _receive_body(body, timeout_s, MAX_WIRE_BYTES, keep)
                if refusal is not None:
                    return refusal
                wire = b"".join(parts)
            finally:
                budget.release(client, sum(map(len, parts)))
        unpacked = unpack(wire, content_type, encoding)
        if isinstance(unpacked, bytes) and len(unpacked) > LARGE_BODY_BYTES:
            await trio.lowlevel.checkpoint()
        return unpacked

    async def _skip_body(self, body: Body, headers: dict[str, str]) -> Refusal | None:
        """Read past the body of a route that takes none, up to 1 MiB (decisions 9.3), without keeping it in memory."""
        length = headers.get("content-length", "0")
        if length == "0" and "transfer-encoding" not in headers:
            return None
        if length.isdecimal() and int(length) > MAX_BODY_BYTES:
            return Refusal("payload_too_large")
        return await _receive_body(body, self._services.request_timeout_s, MAX_BODY_BYTES, lambda _: True)


async def _receive_body(body: Body, timeout_s: float, most_bytes: int, take: Callable[[bytes], bool]) -> Refusal | None:
    """Pass all parts of the body to `take`, within limits of time and of size on the wire. Return `503` if `take`
    returns false, for want of space.
    """
    size = 0
    with trio.CancelScope(deadline=trio.current_time() + timeout_s):
        while part := await body.receive():
            size += len(part)
            if size > most_bytes:
                return Refusal("payload_too_large")
            if not take(part):
                return NOT_NOW
        return None if part is not None else Refusal("bad_request")  # the client has left: nobody reads this
    return Refusal("request_timeout")


def _read_headers(request: Request) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in request.headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _repeated(request: Request, headers: dict[str, str]) -> frozenset[str]:
    fields = [name for name, _ in request.headers]
    if len(fields) == len(headers):
        return frozenset()
    return frozenset(name.decode("latin-1") for name, count in Counter(fields).items() if count > 1)


def application(exchange: Exchange) -> Application:
    """Return the application that handles one request through the exchange: head and body are sent when the whole
    response is ready, the parts of a stream as they come.
    """

    async def respond(request: Request, reply: Reply) -> None:
        status, headers, body, stream = await exchange.respond(request)
        if stream is None:
            await reply.respond(status, headers, body)
        else:
            await _send_stream(reply, status, headers, stream)

    return respond


async def _send_stream(reply: Reply, status: int, headers: Headers, stream: Stream) -> None:
    """Send a stream to its end, or until this task is cancelled because nobody reads it any more, and close it. What
    may not be sent to its end has none, so that nobody takes it for whole.
    """
    try:
        reply.begin(status, headers, is_stream=not stream.is_file)
        with suppress(AccessEndedError):
            async with aclosing(stream.parts) as parts:
                async for part in parts:
                    await reply.send(part)
            await reply.end()
    finally:
        stream.close()
