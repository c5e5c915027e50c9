"""ROUTES: every route as one row. Registration, authentication, CORS, documents and tests all read this table."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from svc.domain.credentials import KeyKind
from svc.http import client_api, health
from svc.http.endpoint import Endpoint
from svc.http.schema import HealthBody, IdentifyAnswer, IdentifyBody, ReadinessBody

BASE = "/api/v1"
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    operation_id: str
    method: Method
    path: str
    """Below `BASE`; `{name}` stands for one segment, any but an empty one."""
    endpoint: Endpoint
    kinds: tuple[KeyKind, ...] = ()
    """Keys that may call it; none = open to all. A path with `{organization_id}` is the key's own organization's."""
    role: Literal["admin"] | None = None
    """The role that a management key needs; any, where there is none."""
    query: type[msgspec.Struct] | None = None
    """What the query may say; nothing, where there is none."""
    body: type[msgspec.Struct] | None = None
    answer: type[msgspec.Struct] | None
    """Of the answer of `status`; `None` = it has no body."""
    status: int = 200
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


class Found(NamedTuple):
    """A place, and what its path's variable segments are."""

    place: Place
    path: dict[str, str]


class Paths:
    """Finds the place that a path leads to: those without variable segments at once, the others by their segments."""

    def __init__(self, routes: tuple[Route, ...] = ROUTES) -> None:
        self._fixed: dict[str, Found] = {}
        self._variable: dict[int, list[tuple[tuple[str, ...], Place]]] = {}
        for path, place in _by_path(routes).items():
            if "{" in path:
                segments = tuple(path.split("/"))
                self._variable.setdefault(len(segments), []).append((segments, place))
            else:
                self._fixed[path] = Found(place, {})

    def find(self, path: str) -> Found | None:
        """`None` where nothing is."""
        found = self._fixed.get(path)
        if found is not None:
            return found
        parts = path.split("/")
        for segments, place in self._variable.get(len(parts), ()):
            variables = _matched(segments, parts)
            if variables is not None:
                return Found(place, variables)
        return None


def _matched(segments: tuple[str, ...], parts: list[str]) -> dict[str, str] | None:
    variables: dict[str, str] = {}
    for segment, part in zip(segments, parts, strict=True):
        if segment[:1] == "{":
            if not part:
                return None
            variables[segment[1:-1]] = part
        elif segment != part:
            return None
    return variables


def _by_path(routes: tuple[Route, ...]) -> dict[str, Place]:
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
