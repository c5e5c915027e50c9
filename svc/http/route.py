"""What one row of the table of routes says: how the route is served, and what the documents say of it; and which rows a
path leads to.

The rows stand below their endpoints, and `svc.features.routes` makes one table of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args, get_type_hints
from urllib.parse import unquote
from uuid import UUID

import msgspec

from svc.http.body import BodyBudget
from svc.http.callers.caller import AuthPolicy, Caller, Site
from svc.http.callers.limits import RequestLimits, Turn
from svc.identify.records import RETENTION_MS
from svc.kernel.access.audit import Audited
from svc.kernel.access.credentials import KeyKind
from svc.kernel.access.roles import Permission
from svc.kernel.limits.quotas import Quotas
from svc.kernel.limits.ratelimit import Use
from svc.kernel.net.trace_context import TraceContext
from svc.kernel.store.store import Store
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import Refusal, RefusedRequest
from svc.kernel.work.store_watch import CorruptRows, StoreWatch
from svc.world import World

T = TypeVar("T")


class Webhooks(NamedTuple):
    """What the webhook routes use beside the store."""

    due: Callable[[Iterable[EndpointKey]], None]
    """As `Outbox.wake`, wherever the outbox runs: must be called after the commit of every change."""
    removed: Callable[[EndpointKey], None]
    """As `Outbox.removed`."""
    is_behind: Callable[[], bool]
    """As `Outbox.is_behind`."""
    secrets_key: bytes
    """As in `svc.features.webhooks.content.envelope`."""
    cursors_key: bytes
    """As in `svc.kernel.values.encodings`."""
    check_target: Callable[[str, int], Awaitable[Refusal | None]]
    """What is the matter with a URL as a target of an organization (its number), in a few seconds at most."""


class Services(NamedTuple):
    """The objects that endpoints use; made once, in `svc.serve.service`. `deferred_key`: see `deferred.signing_key`."""

    world: World
    watch: StoreWatch
    """Whether the store commits, and its file is there."""
    corrupt: CorruptRows
    """What could not be read."""
    store: Store
    policy: AuthPolicy
    deferred_key: bytes
    """Signs deferred tokens."""
    verdict_key: bytes
    """As of `signed_verdict.verdict_key`."""
    network_data: Callable[[], str]
    """`ok`, `missing` or `stale`, now."""
    note_refusal: Callable[[RefusedRequest], None]
    """Counts it for `identification.refused`; never waits."""
    webhooks: Webhooks
    request_timeout_s: float
    limits: RequestLimits
    """On everything that takes a key beside identify."""
    quotas: Quotas
    bodies: BodyBudget
    """Of the bodies that are arriving in this worker."""
    end_viewers: Callable[[bytes], None]
    """As `LiveHub.end`, in all workers."""
    public_url: str | None = None
    """Where people reach this service, without a slash at the end; `None` = by the `Host` of the request."""
    try_key: str | None = None
    """Secret of the public key of the page `/try`; `None` = there is no such page."""
    event_retention_ms: int = RETENTION_MS
    """For how long events are readable."""
    is_store_answering: Callable[[], bool] = lambda: True
    """Whether the store can be reached, as far as is known."""
    parts: Mapping[type, object] = MappingProxyType({})
    """What features keep beside the store, each by its type."""

    def part(self, kind: type[T]) -> T:
        """Return what a feature keeps beside the store. Raises `KeyError` if this service has no such part."""
        return cast("T", self.parts[kind])


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request that was authenticated and whose body and query were decoded, as an endpoint gets it."""

    request_id: UUID
    route: Route
    at_ms: int
    """When it arrived; the only reading of the clock."""
    headers: dict[str, str]
    """Lower-case names; the values of a header that came more than once are joined with a comma."""
    repeated: frozenset[str] = frozenset()
    """Names of the headers that came more than once."""
    caller: Caller | None
    """`None` on routes without a key, and only there."""
    platform: str | None
    """What the body, else the header, says of the SDK's platform."""
    path: Mapping[str, str] = MappingProxyType({})
    """The variable segments of the path, by name."""
    query: Any = None
    """The route's query type, decoded; `None` where it has none."""
    body: Any
    """The route's body type, decoded; `None` where it has none."""
    site: Site | None = None
    """How the browser reached the service, on the paths of the console; `None` on all others."""
    trace: TraceContext | None = None
    """The trace that the request belongs to, with the request's own span; `None` where it names none."""
    long_reads: Turn | None = None
    """Its turn among the long reads of the service; `None` on routes without a key."""

    @property
    def organization(self) -> Organization:
        """Return the organization of the caller. Raises `AssertionError` on a route that takes no key."""
        assert self.caller is not None
        return self.caller.organization

    @property
    def turn(self) -> Turn:
        """Return the turn for a long read of this request. Raises `AssertionError` on a route that takes no key."""
        assert self.long_reads is not None
        return self.long_reads


class Stream(NamedTuple):
    """A response body that is sent part by part, until it ends or nobody takes it."""

    parts: AsyncGenerator[bytes]
    media_type: str
    close: Callable[[], None]
    """Must be called when nothing more is sent, for whatever reason."""
    is_file: bool = False
    """Whether it is whole only with its end: the drain waits for that, and what fails has none."""


Content = msgspec.Struct | Stream | Refusal | None
"""What an endpoint responds with: a body of the schema, a stream, a refusal, or nothing. The route has the status."""


class Outcome(NamedTuple):
    """A response that has a status or headers of its own."""

    body: Content
    status: int = 200
    """Of a body or of nothing; a refusal brings its own."""
    headers: Mapping[str, str] = MappingProxyType({})


RETRY_AFTER_S = 1
"""When a client may find the store again."""
NOT_NOW = Refusal("service_unavailable", retry_after_s=RETRY_AFTER_S)
"""The store takes no writes now."""
Handler = Callable[[Services, Call], Awaitable[Content | Outcome]]


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
"""Codes that any route may respond with: what is not HTTP, comes too slowly or has a query it may not; and faults."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table of routes. A field that is left out has the ordinary case."""

    operation_id: str
    method: Method = "GET"
    path: str
    """`{name}` stands for one segment, any but an empty one."""
    variables: Mapping[str, Any] = MappingProxyType({})
    """What `{name}` means, as an annotated text, where `json_schema.PATH` does not say it; one that the path does not
    have is ignored."""
    under: tuple[str, ...] = (BASE,)
    """Where the path begins; empty = at the root."""
    tag: str = ""
    """Of `document.TAGS`: where the reference lists it. Empty, like the summary, where it does not."""
    summary: str = ""
    description: str = ""
    request_headers: tuple[str, ...] = ()
    """Of `json_schema.REQUEST_HEADERS`, beside the key."""
    response_headers: tuple[str, ...] = ()
    """Of `json_schema.RESPONSE_HEADERS`, on every response that reached admission."""
    example: str = ""
    """A body to show, as JSON; empty = an example of every field at once."""
    handler: Handler
    kinds: tuple[KeyKind, ...] = ()
    """Keys that may call it; none = open to all. With keys, a path with `{organization_id}` is of their organization.
    """
    identifies: bool = False
    """It identifies: requests count against the rate limit of admission, its transaction looks at the key again, and a
    refusal is counted for `identification.refused`."""
    audited: Audited = Audited()
    """What the audit log says of a change by a management key or a member, beside what follows from path and body."""
    needs: Permission | None = None
    """What the role of a key or member must allow (`roles.ROLES_WITH`); see `permission` for those that say nothing."""
    query: type[msgspec.Struct] | None = None
    """What the query may say; nothing, where there is none."""
    body: type[msgspec.Struct] | None = None
    body_required: bool = True
    """Whether it may not be left out; one that is left out is `{}`."""
    response: type[msgspec.Struct] | None = None
    """Body of the response of `status`, where the annotation of the handler does not say it."""
    media_type: str = ""
    """Of a response that is not JSON, several with a comma between; empty where `response` says it, or where there is
    no body.
    """
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
    def permission(self) -> Permission | None:
        """Return what a role must allow: without `needs`, `read` for a `GET` and else `develop`; `None` if the route
        takes no management key.
        """
        if "management" not in self.kinds:
            return None
        return self.needs or ("read" if self.method == "GET" else "develop")

    @property
    def codes(self) -> tuple[str, ...]:
        """Return every code that the route may respond with."""
        following = {
            "not_found": "{organization_id}" in self.path,
            "insufficient_role": self.permission not in (None, "own", "read"),
            "cross_origin_request": self.under[0].startswith(CONSOLE_ROOT),
            "unsupported_media_type": self.body is not None,
        }
        implied = (*(KEYED if self.kinds else ()), *(code for code, follows in following.items() if follows))
        return tuple(dict.fromkeys((*implied, *self.errors, *EVERY_ROUTE)))

    @property
    def answer(self) -> type[msgspec.Struct] | None:
        """Return the body of the response of `status`: `response`, else the one that the handler is annotated to
        return; `None` if it has none.
        """
        if self.response is not None or isinstance(self.handler, partial):
            return self.response
        returned = get_type_hints(self.handler)["return"]
        kinds = [kind for kind in get_args(returned) or (returned,) if isinstance(kind, type)]
        return next((kind for kind in kinds if issubclass(kind, msgspec.Struct) and kind is not Refusal), None)

    @property
    def documented_path(self) -> str:
        """Return the path from `BASE` on if it is served there, else the whole path."""
        return self.path if not self.under or BASE in self.under else self.under[0] + self.path

    @property
    def use(self) -> Use | None:
        """Return the allowance that requests count against (decisions 4); `None` if admission limits them, and for
        routes without a key.
        """
        if not self.kinds or self.identifies:
            return None
        if self.kinds == ("management",):
            return "management"
        return "client" if "public" in self.kinds else "read"

    @property
    def empty_body(self) -> bytes:
        """Return what a missing body is decoded as: `{}`, or no bytes if a body is required, which are refused."""
        return b"" if self.body_required else b"{}"


console_route = partial(Route, under=(CONSOLE,), tag="Console", kinds=("management",))
"""A row that the pages of the console read."""


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
