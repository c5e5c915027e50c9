"""Bodies of the management API about webhooks: what interface 2.9 and 2.10, and decisions 8, say as types.

As in `svc.http.management.schema`. What an endpoint subscribes to and where it is are judged by the rules of the
domain, which know more than a type; their forms stand here for the published documents.
"""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.domain.timestamps import timestamp
from svc.domain.webhooks.addresses import MAX_URL_LENGTH
from svc.domain.webhooks.records import (
    EVENT_TYPES,
    Attempt,
    AttemptCount,
    AttemptError,
    AttemptStatus,
    EndpointStatus,
    EventType,
    WebhookEnvironment,
)
from svc.http.management.schema import Timestamp
from svc.store.transactions.webhook_endpoints import MAX_OVERLAP_HOURS
from svc.store.webhook_views import Registered

TargetUrl = Annotated[str, Meta(extra_json_schema={"pattern": "^[Hh][Tt][Tt][Pp][Ss]://", "maxLength": MAX_URL_LENGTH})]
EventName = Annotated[str, Meta(extra_json_schema={"enum": list(EVENT_TYPES)})]
Description = Annotated[str, Meta(max_length=500)]
Hours = Annotated[int, Meta(ge=0, le=MAX_OVERLAP_HOURS)]


class CreateWebhookBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: TargetUrl
    environment: WebhookEnvironment
    events: tuple[EventName, ...]
    description: Description
    """May be empty."""


class UpdateWebhookBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is left out stays as it is."""

    url: TargetUrl | UnsetType = UNSET
    environment: WebhookEnvironment | UnsetType = UNSET
    events: tuple[EventName, ...] | UnsetType = UNSET
    """The whole new list."""
    description: Description | UnsetType = UNSET
    paused: bool | UnsetType = UNSET


class RotateWebhookSecretBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    previous_secret_valid_hours: Hours = 24


class RedeliverWebhookBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    event_id: UUID
    """An event that was sent to this endpoint in the last 30 days."""


class WebhookBody(msgspec.Struct, frozen=True, kw_only=True):
    """Interface 2.9."""

    id: str
    url: str
    description: str
    environment: WebhookEnvironment
    events: tuple[EventType, ...]
    status: EndpointStatus
    """`failing` is never switched off: the first `2xx` makes it `active` again."""
    secret_last4: str
    previous_secret_expires_at: Timestamp | UnsetType = UNSET
    """During a rotation: when the previous secret stops signing."""
    delivered_24h: int
    failed_24h: int
    last_delivery_at: Timestamp | UnsetType = UNSET
    """When it was last sent to, whatever came of it."""
    created_at: Timestamp


class WebhooksBody(msgspec.Struct, frozen=True):
    endpoints: tuple[WebhookBody, ...]
    """Newest first."""


class IssuedWebhookBody(msgspec.Struct, frozen=True):
    """Answered when an endpoint is created, and when its secret is rotated."""

    endpoint: WebhookBody
    secret: str


class QueuedDeliveryBody(msgspec.Struct, frozen=True):
    event_id: str
    """Of the delivery that is on its way."""


class ListWebhookDeliveriesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    environment: Literal["live", "test", "all"] = "all"
    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    cursor: str | UnsetType = UNSET


class WebhookDeliveryBody(msgspec.Struct, frozen=True, kw_only=True):
    """Interface 2.10: one attempt."""

    id: str
    endpoint_id: str
    endpoint_url: str
    """As it was when this was sent."""
    event_id: str
    """The same on every attempt, and on a redelivery."""
    event: EventType
    environment: WebhookEnvironment
    status: AttemptStatus
    response_code: int | UnsetType = UNSET
    """Left out without an answer."""
    duration_ms: int
    attempt: int
    error: AttemptError | UnsetType = UNSET
    """Left out on success."""
    occurred_at: Timestamp
    """When the attempt began."""


class WebhookDeliveriesBody(msgspec.Struct, frozen=True):
    deliveries: tuple[WebhookDeliveryBody, ...]
    """Newest first."""
    next_cursor: str | UnsetType = UNSET


def webhook_row(registered: Registered, day: AttemptCount, last_attempt_at_ms: int | None, now_ms: int) -> WebhookBody:
    """A stored endpoint as a row of the interface. `day`: its attempts in the last 24 hours."""
    endpoint = registered.endpoint
    until_ms = endpoint.previous_secret_expires_at_ms
    return WebhookBody(
        id=endpoint.id,
        url=endpoint.url,
        description=endpoint.description,
        environment=endpoint.environment,
        events=endpoint.events,
        status=endpoint.status,
        secret_last4=endpoint.secret_last4,
        previous_secret_expires_at=UNSET if until_ms is None or now_ms >= until_ms else timestamp(until_ms),
        delivered_24h=day.delivered,
        failed_24h=day.failed,
        last_delivery_at=UNSET if last_attempt_at_ms is None else timestamp(last_attempt_at_ms),
        created_at=timestamp(endpoint.created_at_ms),
    )


def delivery_row(attempt_id: bytes, attempt: Attempt) -> WebhookDeliveryBody:
    """A line of the log as a row of the interface."""
    return WebhookDeliveryBody(
        id=str(UUID(bytes=attempt_id)),
        endpoint_id=attempt.endpoint_id,
        endpoint_url=attempt.endpoint_url,
        event_id=str(UUID(bytes=attempt.event_id)),
        event=attempt.event,
        environment=attempt.environment,
        status=attempt.status,
        response_code=UNSET if attempt.response_code is None else attempt.response_code,
        duration_ms=attempt.duration_ms,
        attempt=attempt.attempt,
        error=UNSET if attempt.error is None else attempt.error,
        occurred_at=timestamp(attempt.occurred_at_ms),
    )
