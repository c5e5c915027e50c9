"""The metrics of webhooks: endpoints and deliveries that wait, and attempts."""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing
from functools import partial
from typing import NamedTuple, get_args

from svc.features.webhooks.queries import endpoint_overviews
from svc.features.webhooks.records import EndpointStatus
from svc.features.webhooks.sending.attempts import OutboxStatistics
from svc.kernel.store.store import Store, StoreSpace
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.work.slices import scanned
from svc.serve.metrics.samples import Metric, Samples, by, one
from svc.world import World

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


class EndpointCounts(NamedTuple):
    """Webhook endpoints by status, and how far behind each status is."""

    endpoints: Counter[EndpointStatus]
    oldest_due_ms: dict[EndpointStatus, int]
    """By the status as which its endpoint is sent to (`EndpointOverview.sent_to_as`); absent where nothing is due."""


async def count_endpoints(world: World, store: Store) -> EndpointCounts:
    """Count webhook endpoints by status, and find when the oldest due delivery of each status fell due (Unix ms)."""
    counts = EndpointCounts(Counter(), {})
    scan = partial(endpoint_overviews, now_ms=world.now_ms())
    async with aclosing(scanned(world, store, scan, EndpointKey(0, 0))) as slices:
        async for some in slices:
            for _, endpoint in some:
                counts.endpoints[endpoint.status] += 1
                if endpoint.due_ms is not None:
                    oldest = counts.oldest_due_ms.get(endpoint.sent_to_as, endpoint.due_ms)
                    counts.oldest_due_ms[endpoint.sent_to_as] = min(oldest, endpoint.due_ms)
    return counts


def queue_samples(outbox: OutboxStatistics, space: StoreSpace) -> Samples:
    """Return the samples of the queue of deliveries."""
    yield OPEN_DELIVERIES, one(space.rows["webhook_due"])
    yield ATTEMPTS_IN_FLIGHT, one(outbox.in_flight)
    yield ENDPOINT_QUEUES, one(outbox.queues)


def webhook_samples(counts: EndpointCounts, now_ms: int) -> Samples:
    """Return the samples of the endpoints, which are the same for all that use the store. Times are Unix ms."""
    since_ms = {status: counts.oldest_due_ms.get(status, now_ms) for status in ENDPOINT_STATUSES}
    yield OLDEST_DUE_SECONDS, [((status,), max(0, now_ms - at_ms) / 1000) for status, at_ms in since_ms.items()]
    yield ENDPOINTS, [((status,), counts.endpoints[status]) for status in ENDPOINT_STATUSES]


def attempt_samples(outbox: OutboxStatistics) -> Samples:
    """Return the samples of the attempts that this process has made."""
    yield ATTEMPTS, by(outbox.attempts)
    yield ATTEMPT_ERRORS, by(outbox.errors)
    yield ATTEMPT_SECONDS, one(outbox.attempts_s)
