"""ROUTES: every route as one row. Registration, authentication, CORS, documents and tests all read this table."""

from __future__ import annotations

from typing import Literal

import msgspec

from svc.domain.credentials import KeyKind
from svc.http import client_api, health
from svc.http.endpoint import Endpoint
from svc.http.schema import HealthBody, IdentifyAnswer, IdentifyBody, ReadinessBody

BASE = "/api/v1"


class Route(msgspec.Struct, frozen=True, kw_only=True):
    operation_id: str
    method: Literal["GET", "POST"]
    path: str
    """Below `BASE`."""
    endpoint: Endpoint
    kinds: tuple[KeyKind, ...] = ()
    """Keys that may call it; none = open to all."""
    body: type[msgspec.Struct] | None = None
    answer: type[msgspec.Struct]
    from_browsers: bool = False
    """CORS is answered (decisions 3.11)."""
    at_root: bool = False
    """Served without `BASE` too."""
    errors: tuple[str, ...] = ()
    """Codes it may answer beyond those every route has."""


ROUTES: tuple[Route, ...] = (
    Route(
        operation_id="identify",
        method="POST",
        path="/identify",
        endpoint=client_api.identify,
        kinds=("public", "secret", "proxy"),
        body=IdentifyBody,
        answer=IdentifyAnswer,
        from_browsers=True,
        errors=(
            "unauthorized",
            "billing_blocked",
            "no_credit",
            "payload_too_large",
            "unsupported_media_type",
            "idempotency_key_too_long",
            "invalid_visitor_metadata",
            "validation_error",
            "rate_limited",
        ),
    ),
    Route(
        operation_id="getHealth",
        method="GET",
        path="/healthz",
        endpoint=health.healthz,
        answer=HealthBody,
        at_root=True,
    ),
    Route(
        operation_id="getReadiness",
        method="GET",
        path="/readyz",
        endpoint=health.readyz,
        answer=ReadinessBody,
        at_root=True,
    ),
)


class Place(msgspec.Struct, frozen=True):
    """One path as it is served."""

    routes: dict[str, Route]
    """By method."""
    from_browsers: bool
    """CORS is answered here."""
    allow: str
    """Every method that the path takes, as the `Allow` header says it (RFC 9110, 10.2.1)."""


def by_path(routes: tuple[Route, ...] = ROUTES) -> dict[str, Place]:
    """Path -> what is there."""
    table: dict[str, dict[str, Route]] = {}
    for route in routes:
        for path in (BASE + route.path, route.path) if route.at_root else (BASE + route.path,):
            table.setdefault(path, {})[route.method] = route
    return {path: _place(found) for path, found in table.items()}


def _place(routes: dict[str, Route]) -> Place:
    from_browsers = any(route.from_browsers for route in routes.values())
    taken: list[str] = [*routes]
    if "GET" in routes:
        taken.append("HEAD")
    if from_browsers:
        taken.append("OPTIONS")
    return Place(routes, from_browsers, ", ".join(sorted(taken)))
