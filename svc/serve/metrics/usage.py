"""What the store says of all its organizations at a scrape: the state of their webhooks, their oldest open review, and
the organizations that hold most; and the metrics of webhooks.

All of it is read in slices of time, so that a scrape delays nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from heapq import nlargest
from typing import NamedTuple, TypeVar, get_args

from svc.features.reviews.queries import first_open_reviews
from svc.features.webhooks.queries import endpoint_overviews
from svc.features.webhooks.records import EndpointStatus
from svc.features.webhooks.sending.attempts import OutboxStatistics
from svc.kernel.store import operations
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.store import Store, StoreSpace
from svc.kernel.tenants.jobs import holdings
from svc.kernel.tenants.queries import organization, share_in_force
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.work.slices import scanned
from svc.kernel.work.store_watch import CorruptRows
from svc.serve.metrics.samples import Metric, Samples, by, one
from svc.world import World

T = TypeVar("T")

ORGANIZATIONS_SHOWN = 10


class Stored(NamedTuple):
    """What was read from the store for a scrape."""

    usage: UsageCounts | None
    """`None` where a row of it cannot be read."""
    held: dict[str, int] | None
    """Bytes, of the organizations that hold most; `None` where a row of it cannot be read."""
    space: StoreSpace
    share: float
    """Of the store, which one organization may use."""
    oldest_review_ms: int | None
    """When the oldest open review was opened (Unix ms); `None` where none is open."""
    backup_behind_ms: int | None
    """`None` where a row of it cannot be read."""


async def read_stored(world: World, store: Store, store_share: float, corrupt: CorruptRows) -> Stored:
    """Read what a scrape shows of the store. A corrupt row takes its own figures away, and no others (decisions 17.5);
    it is noted in `corrupt`.
    """
    return Stored(
        await _unless_corrupt(partial(count_usage, world, store), corrupt),
        await _unless_corrupt(partial(largest_holdings, world, store), corrupt),
        await store.measured(),
        await store.query(partial(share_in_force, store_share=store_share)),
        await _unless_corrupt(partial(oldest_open_review, world, store), corrupt),
        await _unless_corrupt(partial(store.query, partial(operations.behind_ms, now_ms=world.now_ms())), corrupt),
    )


async def _unless_corrupt(read: Callable[[], Awaitable[T]], corrupt: CorruptRows) -> T | None:
    try:
        return await read()
    except CorruptionError as error:
        corrupt.note("metrics", None, error)
        return None


class UsageCounts(NamedTuple):
    """Webhook endpoints by status, and how far behind each status is."""

    endpoints: Counter[EndpointStatus]
    oldest_due_ms: dict[EndpointStatus, int]
    """By the status as which its endpoint is sent to (`EndpointOverview.sent_to_as`); absent where nothing is due."""


async def count_usage(world: World, store: Store) -> UsageCounts:
    """Count webhook endpoints by status, and find when the oldest due delivery of each status fell due (Unix ms)."""
    usage = UsageCounts(Counter(), {})
    scan = partial(endpoint_overviews, now_ms=world.now_ms())
    async with aclosing(scanned(world, store, scan, EndpointKey(0, 0))) as slices:
        async for some in slices:
            for _, endpoint in some:
                usage.endpoints[endpoint.status] += 1
                if endpoint.due_ms is not None:
                    oldest = usage.oldest_due_ms.get(endpoint.sent_to_as, endpoint.due_ms)
                    usage.oldest_due_ms[endpoint.sent_to_as] = min(oldest, endpoint.due_ms)
    return usage


async def oldest_open_review(world: World, store: Store) -> int | None:
    """Return when the oldest open review of all organizations was opened (Unix ms); `None` if none is open."""
    async with aclosing(scanned(world, store, first_open_reviews, 0)) as slices:
        return min([opened_ms async for some in slices for _, opened_ms in some], default=None)


async def largest_holdings(world: World, store: Store) -> dict[str, int]:
    """Return the bytes held, by organization id, of the `ORGANIZATIONS_SHOWN` that hold most."""
    largest: list[tuple[int, int]] = []
    async with aclosing(scanned(world, store, holdings, 0)) as slices:
        async for some in slices:
            held = [(holding.held_bytes, number) for number, holding in some]
            largest = nlargest(ORGANIZATIONS_SHOWN, [*largest, *held])
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


def queue_samples(outbox: OutboxStatistics, space: StoreSpace) -> Samples:
    """Return the samples of the queue of deliveries."""
    yield OPEN_DELIVERIES, one(space.rows["webhook_due"])
    yield ATTEMPTS_IN_FLIGHT, one(outbox.in_flight)
    yield ENDPOINT_QUEUES, one(outbox.queues)


def webhook_samples(usage: UsageCounts, now_ms: int) -> Samples:
    """Return the samples of the endpoints, which are the same for all that use the store. Times are Unix ms."""
    since_ms = {status: usage.oldest_due_ms.get(status, now_ms) for status in ENDPOINT_STATUSES}
    yield OLDEST_DUE_SECONDS, [((status,), max(0, now_ms - at_ms) / 1000) for status, at_ms in since_ms.items()]
    yield ENDPOINTS, [((status,), usage.endpoints[status]) for status in ENDPOINT_STATUSES]


def attempt_samples(outbox: OutboxStatistics) -> Samples:
    """Return the samples of the attempts that this process has made."""
    yield ATTEMPTS, by(outbox.attempts)
    yield ATTEMPT_ERRORS, by(outbox.errors)
    yield ATTEMPT_SECONDS, one(outbox.attempts_s)
