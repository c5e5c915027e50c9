"""One request from its first header to its answer: the checks in their fixed order, and the one way to render.

route -> key -> body size, media type, encoding -> JSON -> fields -> state (decisions 1.8). The request id and the time
of arrival are made here, once. This module and `app` are the only ones that know Quart's request.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

import msgspec
import structlog
import trio
from msgspec import UNSET
from quart import Request, Response
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge, RequestTimeout

from svc.domain.refusals import CATALOGUE, Refusal, invalid
from svc.http.authentication import Caller, authenticate, claimed_platform, platform_refusal
from svc.http.body import acceptable, read_body
from svc.http.endpoint import Call, Outcome, Services
from svc.http.routes import Route, by_path
from svc.http.schema import error_body
from svc.world import World

log = structlog.get_logger()

EXPOSED_HEADERS = "Svc-Balance-Micros, RateLimit-Limit, RateLimit-Remaining, Retry-After, X-Request-Id"
PREFLIGHT_HEADERS = {
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": "x-api-key, idempotency-key, content-type, content-encoding, x-svc-sdk-platform",
    "Access-Control-Max-Age": "7200",
}

_encoder = msgspec.json.Encoder()


class Exchange:
    """Answers requests from the table of routes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._routes = by_path()

    async def answer(self, request: Request) -> Response:
        """Every request gets exactly one answer, a fault of this program included."""
        at_ms = self._services.world.now_ms()
        request_id = self._services.world.request_id(at_ms)
        headers = _read_headers(request)
        method: str = request.scope["method"]  # as it came: methods are case-sensitive, and Quart's are not
        methods = self._routes.get(request.path)
        origin = headers.get("origin")
        if methods is None:
            return _render(request_id, Outcome(Refusal("not_found")), None)
        browsers = any(route.from_browsers for route in methods.values())
        if method == "OPTIONS" and browsers:
            return _preflight(request_id, origin, methods)
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed = {"Allow": ", ".join(sorted(methods))}
            return _render(
                request_id, Outcome(Refusal("method_not_allowed"), headers=allowed), origin if browsers else None
            )
        try:
            outcome = await self._run(route, request, request_id, at_ms, headers)
        except HTTPException as error:
            outcome = Outcome(_refusal_of(error))
        except Exception:
            log.exception("request failed", request_id=str(request_id), operation=route.operation_id)
            outcome = Outcome(Refusal("internal_error"))
        return _render(request_id, outcome, origin if route.from_browsers else None)

    async def _run(
        self, route: Route, request: Request, request_id: UUID, at_ms: int, headers: dict[str, str]
    ) -> Outcome:
        caller: Caller | None = None
        if route.kinds:
            peer = request.scope["client"]
            with self._services.store.read() as snapshot:
                found = authenticate(
                    self._services.gate,
                    snapshot,
                    headers,
                    peer[0] if peer else "",
                    kinds=route.kinds,
                    now_ms=at_ms,
                )
            if isinstance(found, Refusal):
                return _refused(found, request_id)
            caller = found
        body = None if route.body is None else await self._body(request, headers, route.body)
        platform = _platform(body, headers)
        if caller is not None and (refusal := platform_refusal(caller, platform)) is not None:
            return _refused(refusal, request_id)
        if isinstance(body, Refusal):
            return Outcome(body)
        if request.query_string:
            return Outcome(_unknown_query(request.query_string))
        call = Call(request_id=request_id, at_ms=at_ms, headers=headers, caller=caller, platform=platform, body=body)
        return await route.endpoint(self._services, call)

    async def _body(
        self, request: Request, headers: dict[str, str], kind: type[msgspec.Struct]
    ) -> msgspec.Struct | Refusal:
        content_type, encoding = headers.get("content-type"), headers.get("content-encoding")
        refusal = acceptable(content_type, encoding, headers.get("content-length"))
        if refusal is not None:
            return refusal
        with trio.move_on_after(self._services.request_timeout_s):
            return read_body(await request.body, content_type, encoding, kind)
        return Refusal("request_timeout")


def edge_refusal(world: World, status: int) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Body and headers of an answer that the edge makes before there is a request."""
    code = next(code for code, (known, _) in CATALOGUE.items() if known == status)
    request_id = str(world.request_id(world.now_ms()))
    body = _encoder.encode(error_body(Refusal(code), request_id))
    return body, [(b"content-type", b"application/json"), (b"x-request-id", request_id.encode())]


def _read_headers(request: Request) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in request.scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _platform(body: Any, headers: dict[str, str]) -> str | None:
    """The effective platform: the body's, else the header's (decisions 2.7)."""
    sdk = getattr(body, "sdk", None)
    if sdk is None or sdk.platform is UNSET:
        return claimed_platform(headers)
    return sdk.platform


def _refused(refusal: Refusal, request_id: UUID) -> Outcome:
    if refusal.code == "unauthorized":
        log.info("refused", request_id=str(request_id), code=refusal.code, reason=refusal.reason)
    return Outcome(refusal)


def _unknown_query(query_string: bytes) -> Refusal:
    """No route of this table takes a query; a mistyped one must not be silently ignored (decisions 1.6)."""
    names = [name for name, _ in parse_qsl(query_string.decode("latin-1"), keep_blank_values=True)]
    return invalid(names[0] if names else "", "unknown_field", "query")


def _refusal_of(error: HTTPException) -> Refusal:
    if isinstance(error, RequestEntityTooLarge):
        return Refusal("payload_too_large")
    if isinstance(error, RequestTimeout):
        return Refusal("request_timeout")
    return Refusal("bad_request")


def _preflight(request_id: UUID, origin: str | None, methods: dict[str, Route]) -> Response:
    """Answered for any origin, without a key (decisions 3.11)."""
    headers = {"X-Request-Id": str(request_id), "Vary": "Origin", "Allow": ", ".join([*sorted(methods), "OPTIONS"])}
    if origin is not None:
        headers |= {"Access-Control-Allow-Origin": origin, **PREFLIGHT_HEADERS}
    response = Response(b"", status=204, headers=headers)
    del response.headers["Content-Type"]
    return response


def _render(request_id: UUID, outcome: Outcome, origin: str | None) -> Response:
    headers = {"X-Request-Id": str(request_id), **outcome.headers}
    body: msgspec.Struct = outcome.body
    status = outcome.status
    if isinstance(body, Refusal):
        status = body.status
        if body.retry_after_s is not None:
            headers["Retry-After"] = str(body.retry_after_s)
        body = error_body(body, str(request_id))
    if origin is not None:
        headers |= {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": EXPOSED_HEADERS,
            "Vary": "Origin",
        }
    return Response(_encoder.encode(body), status=status, headers=headers, content_type="application/json")
