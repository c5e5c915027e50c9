"""The metrics of webhooks: what waits, and what came of attempts."""

from __future__ import annotations

from typing import get_args

from svc.actors.webhooks.attempts import OutboxStatistics
from svc.domain.webhooks.records import EndpointStatus
from svc.metrics.samples import Metric, Samples, by, one
from svc.metrics.usage import UsageCounts
from svc.store.store import StoreSpace

OPEN_DELIVERIES = Metric("svc_webhook_deliveries_open", "gauge", "Deliveries that wait for their next attempt.")
OLDEST_DUE_SECONDS = Metric(
    "svc_webhook_oldest_due_seconds",
    "gauge",
    "How long the oldest due delivery has waited, by endpoint status; 0 = none is due.",
    ("status",),
)
ENDPOINTS = Metric("svc_webhook_endpoints", "gauge", "Webhook endpoints by status.", ("status",))
ATTEMPTS_IN_FLIGHT = Metric("svc_webhook_attempts_in_flight", "gauge", "Attempts that have not ended.")
ENDPOINT_QUEUES = Metric("svc_webhook_queues", "gauge", "Endpoints with work, or of which something was learned.")
ATTEMPTS = Metric(
    "svc_webhook_attempts",
    "counter",
    "Attempts: `delivered`, `retrying` (another follows), `failed` (none follows).",
    ("result",),
)
ATTEMPT_ERRORS = Metric("svc_webhook_attempt_errors", "counter", "Attempts that failed, by why.", ("error",))
ATTEMPT_SECONDS = Metric("svc_webhook_attempt_duration_seconds", "histogram", "How long attempts took.")

WEBHOOK_METRICS: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of these, in this order."""

ENDPOINT_STATUSES: tuple[EndpointStatus, ...] = get_args(EndpointStatus)


def webhook_samples(outbox: OutboxStatistics, space: StoreSpace, usage: UsageCounts, now_ms: int) -> Samples:
    """The samples of the queue of deliveries, which are the same for all that use the store. Times are Unix ms."""
    yield OPEN_DELIVERIES, one(space.rows["webhook_due"])
    since_ms = {status: usage.oldest_due_ms.get(status, now_ms) for status in ENDPOINT_STATUSES}
    yield OLDEST_DUE_SECONDS, [((status,), max(0, now_ms - at_ms) / 1000) for status, at_ms in since_ms.items()]
    yield ENDPOINTS, [((status,), usage.endpoints[status]) for status in ENDPOINT_STATUSES]
    yield ATTEMPTS_IN_FLIGHT, one(outbox.in_flight)
    yield ENDPOINT_QUEUES, one(outbox.queues)


def attempt_samples(outbox: OutboxStatistics) -> Samples:
    """The samples of the attempts that this process has made."""
    yield ATTEMPTS, by(outbox.attempts)
    yield ATTEMPT_ERRORS, by(outbox.errors)
    yield ATTEMPT_SECONDS, one(outbox.attempts_s)
