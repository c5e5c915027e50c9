"""What one row of the table of routes says: how the route is served, and what the documents say of it.

The rows stand below their endpoints, and `svc.http.routes` makes one table of them.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import msgspec

from svc.domain.access.credentials import KeyKind
from svc.domain.limits.ratelimit import Use
from svc.http.handler import Handler

BASE = "/api/v1"
CONSOLE_ROOT = "/console"
"""Below it a session is a credential beside a management key (`sessions`)."""
CONSOLE = "/console/api"
"""What the console reads. A row that is served there acts on the credential's own organization."""
ORGANIZATION = "/management/organizations/{organization_id}"
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

KEYED = ("unauthorized", "validation_error", "rate_limited")
"""Codes that a route with a key may respond with."""
EVERY_ROUTE = (
    "bad_request",
    "request_timeout",
    "payload_too_large",
    "validation_error",
    "header_fields_too_large",
    "internal_error",
    "service_unavailable",
)
"""Codes that any route may respond with: what is no HTTP, comes too slowly or has a query it may not; and faults."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table of routes. A field that is left out has the ordinary case."""

    operation_id: str
    method: Method = "GET"
    path: str
    """`{name}` stands for one segment, any but an empty one; `{name...}` at the end for all that follows."""
    under: tuple[str, ...] = (BASE,)
    """Where the path begins; empty = at the root."""
    tag: str = ""
    """Of `openapi.TAGS`: where the reference lists it. Empty, like the summary, where it does not."""
    summary: str = ""
    description: str = ""
    request_headers: tuple[str, ...] = ()
    """Of `parameters.REQUEST_HEADERS`, beside the key."""
    response_headers: tuple[str, ...] = ()
    """Of `parameters.RESPONSE_HEADERS`, on every response that reached admission."""
    example: str = ""
    """A body to show, as JSON; empty = an example of every field at once."""
    handler: Handler
    kinds: tuple[KeyKind, ...] = ()
    """Keys that may call it; none = open to all. With keys, a path with `{organization_id}` is of their organization.
    """
    role: Literal["admin"] | None = None
    """The role that a management key needs; any, where there is none."""
    query: type[msgspec.Struct] | None = None
    """What the query may say; nothing, where there is none."""
    body: type[msgspec.Struct] | None = None
    body_required: bool = True
    """Whether it may not be left out; one that is left out is `{}`."""
    response: type[msgspec.Struct] | None = None
    """Of the response of `status`; `None` = it has no body, or is a file."""
    media_type: str = ""
    """Of a response that is no JSON; empty where `response` says it, or where there is no body."""
    status: int = 200
    other_responses: tuple[tuple[int, type[msgspec.Struct]], ...] = ()
    """(status, body) of whatever else it responds with, errors aside."""
    reads_for_all: bool = False
    """It reads the store without a key: each address has an allowance (decisions 4)."""
    from_browsers: bool = False
    """Preflights are responded to (decisions 3.11)."""
    errors: tuple[str, ...] = ()
    """Codes it may respond with beyond those that every route has, and those that follow from the rest of the row."""

    @property
    def codes(self) -> tuple[str, ...]:
        """Every code that it may respond with."""
        following = {
            "not_found": "{organization_id}" in self.path,
            "insufficient_role": self.role is not None,
            "cross_origin_request": self.under[0].startswith(CONSOLE_ROOT),
            "unsupported_media_type": self.body is not None,
        }
        implied = (*(KEYED if self.kinds else ()), *(code for code, follows in following.items() if follows))
        return tuple(dict.fromkeys((*implied, *self.errors, *EVERY_ROUTE)))

    @property
    def documented_path(self) -> str:
        """The path from `BASE` on where it is served there, else whole."""
        return self.path if not self.under or BASE in self.under else self.under[0] + self.path

    @property
    def use(self) -> Use | None:
        """The allowance that its requests count against (decisions 4); `None` for identify, which has the rate limit,
        and for routes without a key.
        """
        if not self.kinds or self.operation_id == "identify":
            return None
        if self.kinds == ("management",):
            return "management"
        return "client" if "public" in self.kinds else "read"

    @property
    def empty_body(self) -> bytes:
        """What a missing body is decoded as: `{}`, or no bytes, which is refused, where a body is required."""
        return b"" if self.body_required else b"{}"


console_route = partial(Route, under=(CONSOLE,), tag="Console", kinds=("management",))
"""A row that the pages of the console read."""


def page_route(operation_id: str, path: str, handler: Handler, query: type[msgspec.Struct] | None = None) -> Route:
    """A row at the root of the service that browsers open without a key, and get a file."""
    return Route(operation_id=operation_id, path=path, under=("",), handler=handler, query=query)
