"""What an endpoint function gets and gives: `async def endpoint(services, call) -> Outcome`. No HTTP framework."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from svc.actors.live import LiveHub
from svc.actors.mailbox import Mailbox
from svc.actors.messages import Identify
from svc.actors.watch.corruption import CorruptRows
from svc.actors.watch.store import StoreWatch
from svc.domain.limits.body_budget import BodyBudget
from svc.domain.limits.quotas import Quotas
from svc.domain.refusals import Refusal
from svc.domain.webhooks.records import EndpointKey
from svc.domain.webhooks.refused import RefusedRequest
from svc.http.authentication import AuthPolicy, Caller
from svc.http.limits import RequestLimits
from svc.http.sessions import Site
from svc.store.store import Store
from svc.world import World


class Webhooks(NamedTuple):
    """What the webhook routes use beside the store."""

    due: Callable[[Iterable[EndpointKey]], None]
    """As `Outbox.nudge`, wherever the outbox runs: must be called after the commit of every change."""
    removed: Callable[[EndpointKey], None]
    """As `Outbox.removed`."""
    is_behind: Callable[[], bool]
    """As `Outbox.is_behind`."""
    secrets_key: bytes
    """As in `svc.domain.webhooks.signature`."""
    cursors_key: bytes
    """As in `svc.domain.webhooks.cursor`."""
    check_target: Callable[[str], Awaitable[Refusal | None]]
    """What is the matter with a URL as a target, in a few seconds at most."""


class Services(NamedTuple):
    """The objects that endpoints use; made once, in `svc.service`. `deferred_key` as of `deferred.signing_key`."""

    world: World
    watch: StoreWatch
    """Whether the store commits, and its file is there."""
    corrupt: CorruptRows
    """What could not be read."""
    store: Store
    admission: Mailbox[Identify]
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
    live: LiveHub
    """Who watches identifications as they come, in this worker."""
    end_viewers: Callable[[bytes], None]
    """As `LiveHub.end`, in all workers."""
    try_key: str | None = None
    """Secret of the public key of the page `/try`; `None` = there is no such page."""
    is_store_answering: Callable[[], bool] = lambda: True
    """Whether the store can be reached, as far as is known."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request that was authenticated and whose body and query were decoded, as an endpoint gets it."""

    request_id: UUID
    operation_id: str
    """Of the route."""
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


class File(NamedTuple):
    """A response body that is sent as it is."""

    content: bytes
    media_type: str


class Stream(NamedTuple):
    """A response body without an end of its own: it is sent part by part, until it ends or nobody takes it."""

    parts: AsyncGenerator[bytes]
    media_type: str
    close: Callable[[], None]
    """Must be called when nothing more is sent, however it came to that."""


class Outcome(NamedTuple):
    """What an endpoint responds with: a body of the schema, a file, a stream, nothing, or a refusal."""

    body: msgspec.Struct | File | Stream | Refusal | None
    status: int = 200
    """Of a body or of nothing; a refusal brings its own."""
    headers: Mapping[str, str] = MappingProxyType({})


def unavailable() -> Outcome:
    """`503 service_unavailable` while the store cannot be reached."""
    return Outcome(NOT_NOW)


RETRY_AFTER_S = 1
"""When a client may find the store again."""
NOT_NOW = Refusal("service_unavailable", retry_after_s=RETRY_AFTER_S)
"""The store takes no writes now."""
Handler = Callable[[Services, Call], Awaitable[Outcome]]
