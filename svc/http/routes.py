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


def by_path(routes: tuple[Route, ...] = ROUTES) -> dict[str, dict[str, Route]]:
    """Path -> method -> route, as served."""
    table: dict[str, dict[str, Route]] = {}
    for route in routes:
        for path in (BASE + route.path, route.path) if route.at_root else (BASE + route.path,):
            table.setdefault(path, {})[route.method] = route
    return table
