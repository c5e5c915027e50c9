"""What the outbox keeps: endpoints, events, deliveries and the log of attempts, as they stand in the store; and what it
asks of the network: one POST, and its outcome.

Every record is an `array_like` struct: fields are appended with defaults and never moved. Times are Unix milliseconds.

Types of events and errors of attempts are open enumerations: they are stored as text, so that a release may add one
without a new store version, and an older program reads, lists and keeps what it does not know (ADR 31).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol, get_args

import msgspec

from svc.kernel.net.trace_context import TraceContext
from svc.kernel.values.fields import Environment

EventType = Literal[
    "identification.completed",
    "visitor.suspect",
    "identification.refused",
    "billing.status_changed",
    "usage.daily_settled",
    "webhook.test",
    "review.opened",
    "review.closed",
]
EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)
LIVE_ONLY: frozenset[EventType] = frozenset({"billing.status_changed"})
"""Types that only `live` endpoints may subscribe to (interface 6)."""

WebhookFormat = Literal["json", "slack", "discord", "teams"]
"""What a delivery is: the signed envelope, or one unsigned message for people (decisions 16.2)."""

WebhookEnvironment = Literal["live", "test"]
"""Their indexes here are stored: append, never reorder."""
WEBHOOK_ENVIRONMENTS: tuple[WebhookEnvironment, ...] = get_args(WebhookEnvironment)

EndpointStatus = Literal["active", "paused", "failing"]
DeliveryState = Literal["pending", "retrying", "delivered", "failed"]
AttemptStatus = Literal["delivered", "retrying", "failed"]
TransportError = Literal[
    "timeout",
    "dns_error",
    "blocked_address",
    "connect_error",
    "tls_error",
    "connection_reset",
    "redirect",
    "http_status",
    "response_too_large",
]
"""Why an attempt failed, as attempt records say it (decisions 8.3)."""
AttemptError = Literal[TransportError, "paused", "removed"]

DeliveryKind = Literal["auto", "test", "redelivery"]
"""Their indexes here are stored: append, never reorder."""
DELIVERY_KINDS: tuple[DeliveryKind, ...] = get_args(DeliveryKind)

MAX_ENDPOINTS = 10
"""Per organization (interface 8)."""
HISTORY_MS = 30 * 24 * 3600 * 1000
"""How long an event may be redelivered and an attempt is listed (interface 8)."""
REFUSALS_EVERY_MS = 60_000
"""From one `identification.refused` of a key and code to the next (decisions 8.9)."""


def webhook_environment(environment: Environment) -> WebhookEnvironment:
    """Return the webhook environment of an event: `live` for production traffic, else `test` (decisions 8.9)."""
    return "live" if environment == "production" else "test"


class DeliveryKey(NamedTuple):
    """One delivery of a queue. A test or a redelivery is separate from the automatic delivery of its event."""

    event_id: bytes
    """UUIDv7, 16 bytes."""
    kind: DeliveryKind

    @property
    def kind_index(self) -> int:
        """Return the index of the kind in `DELIVERY_KINDS`: one byte of the key."""
        return DELIVERY_KINDS.index(self.kind)

    def pack(self) -> bytes:
        """Return the key in 17 bytes: the event's id and the index of the kind."""
        return self.event_id + bytes([self.kind_index])

    @classmethod
    def unpack(cls, raw: bytes) -> DeliveryKey:
        """Read the bytes of `pack`. Raises `IndexError` for bytes that are too short or name no kind."""
        return cls(raw[:16], DELIVERY_KINDS[raw[16]])


class Endpoint(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A registered receiver (interface 2.9). Its secret is derived from `generation` and never stored."""

    id: str
    url: str
    description: str
    environment: WebhookEnvironment
    events: tuple[str, ...]
    """`EventType`s; also those of a later version, which this one never sends."""
    created_at_ms: int
    secret_last4: str
    generation: int = 1
    """Of the signing secret; rotating adds one."""
    previous_secret_expires_at_ms: int | None = None
    """Until then the secret of the generation before signs too."""
    status: EndpointStatus = "active"
    format: WebhookFormat = "json"
    filter: str | None = None
    """A condition in CEL: only events of which it is true are sent, of the types in `payloads.FILTERED`."""

    @property
    def is_chat(self) -> bool:
        """Return whether people read its deliveries: it gets one message for an identification (docs/adr/0224), which
        is unsigned. Its secret was never shown to anybody.
        """
        return self.format != "json"


class Health(msgspec.Struct, frozen=True, array_like=True):
    """How an endpoint has responded recently: stored by itself, since it changes with every attempt."""

    failures: int = 0
    """Failed attempts since the last delivered one."""
    failing_since_ms: int | None = None
    """When the first of them began."""
    last_attempt_at_ms: int | None = None
    owed: bool = False
    """What waits is to be made due at the next success: an outage was not followed by one yet, or the service ended
    meanwhile (decisions 17.7).
    """


class WebhookEvent(msgspec.Struct, frozen=True, array_like=True):
    """An event, stored once for all endpoints that it goes to."""

    type: str
    """An `EventType`, also one of a later version."""
    environment: WebhookEnvironment
    created_at_ms: int
    body: bytes
    """The envelope, byte for byte as it is signed and sent on every attempt."""
    trace: TraceContext | None = None
    """Of the request that caused it, with that request's span; every attempt carries it."""


class Delivery(msgspec.Struct, frozen=True, array_like=True):
    """The delivery of one event to one endpoint, and its progress."""

    state: DeliveryState
    attempts: int
    """Attempts made."""
    queued_at_ms: int
    due_ms: int
    """When the next attempt is scheduled; when the last one was, where the delivery has ended."""

    @property
    def is_open(self) -> bool:
        """Return whether another attempt will be made."""
        return self.state in ("pending", "retrying")


class Attempt(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One line of the log of attempts (interface 2.10): `event_id` as 16 bytes, the endpoint as it was at the time."""

    endpoint: int
    """The endpoint's number."""
    endpoint_id: str
    endpoint_url: str
    event_id: bytes
    event: str
    """An `EventType`, also one of a later version."""
    environment: WebhookEnvironment
    status: AttemptStatus
    response_code: int | None
    duration_ms: int
    attempt: int
    """1, 2, ..."""
    error: str | None
    """An `AttemptError`, also one of a later version."""
    occurred_at_ms: int


class AttemptCount(msgspec.Struct, frozen=True, array_like=True):
    """How many attempts of one endpoint succeeded and failed in one minute."""

    delivered: int = 0
    failed: int = 0


class Refusals(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The refusals of one key and code since the last event about them, with the details of the latest."""

    told_at_ms: int
    """When the last event was made."""
    count: int
    request_id: bytes
    occurred_at_ms: int
    status: int
    environment: Environment
    origin: str | None = None
    ip_address: str | None = None
    reason: str | None = None

    @property
    def due_ms(self) -> int:
        """Return the time (Unix ms) from which the next event may be created: a minute after the last."""
        return self.told_at_ms + REFUSALS_EVERY_MS

    def must_wait(self, now_ms: int) -> bool:
        """Return whether the minute since the last event has not passed, unless the clock was set back by more."""
        return abs(now_ms - self.told_at_ms) < REFUSALS_EVERY_MS


class Attempted(NamedTuple):
    """The outcome of one POST. Without an `error` it was delivered."""

    response_code: int | None
    """`None` without a response."""
    error: TransportError | None
    duration_ms: int
    retry_after_s: int | None
    """What the response's `Retry-After` asks for, if anything."""


class Transport(Protocol):
    """Sends to addresses that webhooks may use, within the time of one attempt (decisions 8.2, 8.7)."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], organization: int) -> Attempted:
        """Make one attempt for an organization (its number), which ends after ten seconds at the latest. Expected
        failures are values, never exceptions.

        A kept connection that turns out to be dead is replaced within the attempt.
        """
        ...
