"""From the path of a request to its routes."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from svc.http.route import CONSOLE_ROOT, Route


class Resource(msgspec.Struct, frozen=True):
    """The routes of one path."""

    routes: dict[str, Route]
    """By method."""
    from_browsers: bool
    """Preflights are responded to here."""
    allow: str
    """Every method that the path takes, as the `Allow` header says it (RFC 9110, 10.2.1)."""
    is_console: bool
    """A session of the console is a credential here."""


class RouteMatch(NamedTuple):
    """The resource that a path leads to, and the values of its variable segments by name, decoded."""

    resource: Resource
    path: dict[str, str]


class Paths:
    """Finds the resource that a path leads to: those without variable segments at once, the others by their segments.

    The path is matched as it was sent, so that a reverse proxy's rules about paths hold here too: an escape in a fixed
    segment makes another path. Escapes in variable segments are decoded.
    """

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._fixed: dict[str, RouteMatch] = {}
        self._variable: dict[int, list[tuple[tuple[str, ...], Resource]]] = {}
        for path, resource in _by_path(routes).items():
            if "{" in path:
                segments = tuple(path.split("/"))
                self._variable.setdefault(len(segments), []).append((segments, resource))
            else:
                self._fixed[path] = RouteMatch(resource, {})

    def find(self, path: str) -> RouteMatch | None:
        """Return the resource of a path as it stands in the request line, without the query; `None` if nothing is."""
        found = self._fixed.get(path)
        if found is not None:
            return found
        parts = path.split("/")
        for segments, resource in self._variable.get(len(parts), ()):
            variables = _matched(segments, parts)
            if variables is not None:
                return RouteMatch(resource, variables)
        return None


def _matched(segments: tuple[str, ...], parts: list[str]) -> dict[str, str] | None:
    variables: dict[str, str] = {}
    for segment, part in zip(segments, parts, strict=True):
        if segment[:1] == "{":
            if not part:
                return None
            variables[segment[1:-1]] = unquote(part)
        elif segment != part:
            return None
    return variables


def _by_path(routes: tuple[Route, ...]) -> dict[str, Resource]:
    table: dict[str, dict[str, Route]] = {}
    for route in routes:
        for beginning in route.under:
            table.setdefault(beginning + route.path, {})[route.method] = route
    return {path: _resource(path, found) for path, found in table.items()}


def _resource(path: str, routes: dict[str, Route]) -> Resource:
    from_browsers = any(route.from_browsers for route in routes.values())
    taken: list[str] = [*routes]
    if "GET" in routes:
        taken.append("HEAD")
    if from_browsers:
        taken.append("OPTIONS")
    return Resource(routes, from_browsers, ", ".join(sorted(taken)), path.startswith(CONSOLE_ROOT + "/"))
