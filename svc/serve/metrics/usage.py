"""What the store says of all its organizations at a scrape: the state of their webhooks, their oldest open review, and
the organizations that hold most; and the metrics of webhooks.

Some rows are read at a time, with checkpoints in between, so that a scrape delays nobody.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from heapq import nlargest
from typing import NamedTuple, get_args

import trio

from svc.features.reviews.queries import first_open_reviews
from svc.features.webhooks.queries import LEAPS, endpoint_overviews
from svc.features.webhooks.records import EndpointStatus
from svc.features.webhooks.sending.attempts import OutboxStatistics
from svc.kernel.store.store import Store, StoreSpace
from svc.kernel.tenants.jobs import holdings
from svc.kernel.tenants.queries import organization
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.work.slices import MAX_AT_ONCE
from svc.serve.metrics.samples import Metric, Samples, by, one

ORGANIZATIONS_SHOWN = 10


class UsageCounts(NamedTuple):
    """Webhook endpoints by status, and how far behind each status is."""

    endpoints: Counter[EndpointStatus]
    oldest_due_ms: dict[EndpointStatus, int]
    """By what they are sent to as; absent where nothing is due."""


async def count_usage(store: Store, now_ms: int) -> UsageCounts:
    """Count webhook endpoints by status, and find when the oldest due delivery of each status fell due (Unix ms). A few
    endpoints at a time are read, each time in a new snapshot, with checkpoints in between.
    """
    usage, after = UsageCounts(Counter(), {}), EndpointKey(0, 0)
    while True:
        found = await store.query(partial(endpoint_overviews, after=after, limit=MAX_AT_ONCE, now_ms=now_ms))
        for endpoint in found:
            usage.endpoints[endpoint.status] += 1
            if endpoint.due_ms is not None:
                oldest = usage.oldest_due_ms.get(endpoint.sent_to_as, endpoint.due_ms)
                usage.oldest_due_ms[endpoint.sent_to_as] = min(oldest, endpoint.due_ms)
        if len(found) < MAX_AT_ONCE:
            return usage
        after = found[-1].queue
        await trio.lowlevel.checkpoint()


async def oldest_open_review(store: Store) -> int | None:
    """Return when the oldest open review of all organizations was opened (Unix ms); `None` if none is open. Reads some
    organizations at a time, with checkpoints in between.
    """
    oldest: int | None = None
    after = 0
    while True:
        found = await store.query(partial(first_open_reviews, after=after, limit=LEAPS))
        opened_ms = [opened_ms for _, opened_ms in found]
        oldest = min(opened_ms if oldest is None else (oldest, *opened_ms), default=None)
        if len(found) < LEAPS:
            return oldest
        after = found[-1][0]
        await trio.lowlevel.checkpoint()


async def largest_holdings(store: Store) -> dict[str, int]:
    """Return the bytes held, by organization id, of the `ORGANIZATIONS_SHOWN` that hold most. Reads some organizations
    at a time, with checkpoints in between.
    """
    largest: list[tuple[int, int]] = []
    after = 0
    while True:
        found = await store.query(partial(holdings, after=after, count=MAX_AT_ONCE))
        held = [(holding.held_bytes, number) for number, holding in found]
        largest = nlargest(ORGANIZATIONS_SHOWN, [*largest, *held])
        if len(found) < MAX_AT_ONCE:
            break
        after = found[-1][0]
        await trio.lowlevel.checkpoint()
    return await store.query(
        lambda snapshot: {organization(snapshot, number).id: held_bytes for held_bytes, number in largest}
    )


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
    """Return the samples of the queue of deliveries, which are the same for all that use the store. Times
    are Unix ms.
    """
    yield OPEN_DELIVERIES, one(space.rows["webhook_due"])
    since_ms = {status: usage.oldest_due_ms.get(status, now_ms) for status in ENDPOINT_STATUSES}
    yield OLDEST_DUE_SECONDS, [((status,), max(0, now_ms - at_ms) / 1000) for status, at_ms in since_ms.items()]
    yield ENDPOINTS, [((status,), usage.endpoints[status]) for status in ENDPOINT_STATUSES]
    yield ATTEMPTS_IN_FLIGHT, one(outbox.in_flight)
    yield ENDPOINT_QUEUES, one(outbox.queues)


def attempt_samples(outbox: OutboxStatistics) -> Samples:
    """Return the samples of the attempts that this process has made."""
    yield ATTEMPTS, by(outbox.attempts)
    yield ATTEMPT_ERRORS, by(outbox.errors)
    yield ATTEMPT_SECONDS, one(outbox.attempts_s)
