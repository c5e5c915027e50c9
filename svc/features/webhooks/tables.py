"""The tables of the outbox: endpoints, events, deliveries, and the log of attempts."""

from __future__ import annotations

from svc.features.webhooks.records import (
    DELIVERY_KINDS,
    HISTORY_MS,
    WEBHOOK_ENVIRONMENTS,
    Attempt,
    AttemptCount,
    Delivery,
    DeliveryKey,
    Endpoint,
    Health,
    Refusals,
    WebhookEvent,
)
from svc.kernel.store.schema.codec import Key, Layout, Opaque, Record, Signed
from svc.kernel.store.schema.key_parts import (
    MOMENT,
    TEXT,
    U32,
    UUID_V7,
    index_of,
    period,
)
from svc.kernel.store.schema.table import (
    NOT_PERSONAL,
    WITH_ORGANIZATION,
    ErasedBy,
    KeptFor,
    NotPersonal,
    Table,
    Until,
    With,
)

_ORGANIZATION = Key(organization=U32)
_ENDPOINT = Key(organization=U32, endpoint=U32)
_KIND = index_of(DELIVERY_KINDS)

# The outbox. Endpoints have numbers too, given per organization and never twice, so that what is left of a removed one
# can be nobody else's. A delivery is an event on its way to an endpoint.
ENDPOINTS = Table(
    "webhook_endpoints",
    _ENDPOINT,
    Record(Endpoint, remembered=1024),
    Until("it is removed"),
    NotPersonal("filters are the customer's own text"),
    invariants=("endpoints",),
)
"""Oldest first."""
ENDPOINT_COUNTS = Table("webhook_endpoint_counts", _ORGANIZATION, Signed("given"), WITH_ORGANIZATION, NOT_PERSONAL)
"""Endpoint numbers given so far."""
ENDPOINT_HEALTH = Table("webhook_endpoint_health", _ENDPOINT, Record(Health), With("webhook_endpoints"), NOT_PERSONAL)
"""No row = nothing was tried yet."""
REMOVED_ENDPOINTS = Table(
    "webhook_removed_endpoints", _ENDPOINT, Opaque(), Until("the endpoint's other rows are swept away"), NOT_PERSONAL
)
WEBHOOK_EVENTS = Table(
    "webhook_events",
    Key(organization=U32, event_id=UUID_V7),
    Record(WebhookEvent),
    KeptFor(HISTORY_MS),
    ErasedBy("erase_identification"),
)
DELIVERIES = Table(
    "webhook_deliveries",
    Key(organization=U32, endpoint=U32, event_id=UUID_V7, kind=_KIND),
    Record(Delivery),
    With("webhook_events"),
    ErasedBy("erase_identification"),
    invariants=("deliveries",),
)
"""Kept after the end, for redelivery."""
DUE = Table(
    "webhook_due",
    Key(organization=U32, endpoint=U32, due=MOMENT, event_id=UUID_V7, kind=_KIND),
    Opaque(),
    With("webhook_deliveries"),
    ErasedBy("erase_identification"),
    counted=True,
    invariants=("schedule",),
)
"""The schedule of each endpoint is a range, and one that has a million rows to wait for is in nobody's way."""
MANUAL = Table(
    "webhook_manual",
    _ENDPOINT,
    Layout(DeliveryKey.pack, DeliveryKey.unpack),
    With("webhook_deliveries"),
    ErasedBy("erase_identification"),
    invariants=("manual",),
)
"""The one test or redelivery that is queued."""
ATTEMPTS = Table(
    "webhook_attempts",
    Key(organization=U32, attempt_id=UUID_V7),
    Record(Attempt),
    KeptFor(HISTORY_MS),
    NotPersonal("ids of events that lead nowhere once they are erased"),
    invariants=("log",),
)
ATTEMPTS_BY_ENVIRONMENT = Table(
    "webhook_attempts_by_environment",
    Key(organization=U32, environment=index_of(WEBHOOK_ENVIRONMENTS), attempt_id=UUID_V7),
    Opaque(),
    With("webhook_attempts"),
    NOT_PERSONAL,
)
ATTEMPTS_BY_EVENT = Table(
    "webhook_attempts_by_event",
    Key(organization=U32, event_id=UUID_V7, attempt_id=UUID_V7),
    Opaque(),
    With("webhook_attempts"),
    NotPersonal("ids of events that lead nowhere once they are erased"),
    invariants=("log",),
    since=2,
)
ATTEMPT_COUNTS = Table(
    "webhook_attempt_counts",
    Key(organization=U32, endpoint=U32, minute=period(60_000)),
    Record(AttemptCount),
    With("webhook_attempts"),
    NOT_PERSONAL,
    invariants=("log",),
)
"""Those of the last 24 hours are kept."""
REFUSALS = Table(
    "webhook_refusals",
    Key(organization=U32, key_id_and_code=TEXT),
    Record(Refusals),
    Until("the minute has ended and their webhook events are stored"),
    NotPersonal("of a request that was refused: no visitor was found, and a minute later it is gone"),
)
"""`key_.../code`: refusals of the last minute."""
