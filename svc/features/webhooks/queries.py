"""Read queries of the outbox: endpoints, what is due, and what an attempt needs. They change nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from typing import Any, NamedTuple
from uuid import UUID

from svc.features.webhooks.queues import BACKLOG_OVER, is_failing
from svc.features.webhooks.records import (
    DELIVERY_KINDS,
    MAX_ENDPOINTS,
    WEBHOOK_ENVIRONMENTS,
    Attempt,
    AttemptCount,
    Delivery,
    DeliveryKey,
    Endpoint,
    EndpointStatus,
    EventType,
    Health,
    WebhookEnvironment,
    WebhookEvent,
    webhook_environment,
)
from svc.features.webhooks.retries import LONGEST_WAIT_MS
from svc.features.webhooks.tables import (
    ATTEMPT_COUNTS,
    ATTEMPTS,
    ATTEMPTS_BY_ENVIRONMENT,
    ATTEMPTS_BY_EVENT,
    DELIVERIES,
    DUE,
    ENDPOINT_COUNTS,
    ENDPOINT_HEALTH,
    ENDPOINTS,
    MANUAL,
    REMOVED_ENDPOINTS,
    WEBHOOK_EVENTS,
)
from svc.identify.queries.hours import hours
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot, all_present
from svc.kernel.values.fields import ENVIRONMENTS
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.partitions import EndpointKey

MINUTES_PER_DAY = 24 * 60
LEAPS, LEAP_AFTER = 16, 32
"""Times that the rest of a queue is skipped in one look; rows of a queue that are read before that."""
BEYOND = b"\xff" * 16
"""Above every attempt id."""


class Registered(NamedTuple):
    """An endpoint, with its key in the store."""

    queue: EndpointKey
    endpoint: Endpoint


class ClaimedDelivery(NamedTuple):
    """A delivery that is to be sent now, with everything that an attempt needs."""

    queue: EndpointKey
    key: DeliveryKey
    delivery: Delivery
    endpoint: Endpoint
    event: WebhookEvent
    failing: bool
    backlogged: bool
    """The endpoint fails, and more deliveries are due than it should be tried with."""


class FailedDeliveries(NamedTuple):
    """The failed deliveries in one part of the log."""

    event_ids: list[bytes]
    """In the order of the attempts that were their last."""
    resume: bytes | None
    """The attempt id at which the next piece begins; `None` = that was the end of the log."""


class AskedQueue(NamedTuple):
    """A queue whose next delivery is asked for: the arguments of `next_delivery`."""

    queue: EndpointKey
    in_flight: frozenset[DeliveryKey]
    backlogged: bool


class WaitingQueues(NamedTuple):
    """Queues with deliveries, in key order."""

    queues: list[tuple[EndpointKey, int]]
    """(queue, Unix ms when its first delivery is due)."""
    has_more: bool
    """Whether there may be others after the last of them."""


class NoWork(NamedTuple):
    """Nothing is to be sent from this queue now."""

    due_ms: int | None
    """When there will be; `None` = not before somebody says so."""


class EndpointOverview(NamedTuple):
    """The state of one endpoint, for metrics."""

    status: EndpointStatus
    sent_to_as: EndpointStatus
    """Its status; `failing` also where its deliveries are sent as those of a failing endpoint are."""
    due_ms: int | None
    """Since when its oldest delivery is due; `None` where nothing is due."""


def endpoints_of(snapshot: Snapshot, number: int) -> list[Registered]:
    """Return all endpoints of an organization, oldest first: at most ten (interface 8)."""
    given = snapshot.get(ENDPOINT_COUNTS, number)
    if given is None:  # most never made one
        return []
    # Ten rows one by one take 14 us and a range of ten 19; where one is left of ten, 8 and 6 us.
    if given > MAX_ENDPOINTS:  # some of them were removed
        rows = snapshot.scan(ENDPOINTS, number)
        return [Registered(EndpointKey(number, endpoint), found) for (_, endpoint), found in rows]
    each = (
        (EndpointKey(number, endpoint), snapshot.get(ENDPOINTS, number, endpoint)) for endpoint in range(1, given + 1)
    )
    return [Registered(key, found) for key, found in each if found is not None]


def endpoint_anywhere(snapshot: Snapshot, endpoint_id: str) -> Registered | None:
    """Return an endpoint of any organization, for the operator; `None` if there is none. Every endpoint is read."""
    rows = snapshot.scan(ENDPOINTS)
    return next((Registered(EndpointKey(*key), found) for key, found in rows if found.id == endpoint_id), None)


def find_endpoint(snapshot: Snapshot, number: int, endpoint_id: str) -> Registered | None:
    """Return an endpoint of the organization by its id; `None` if there is none."""
    return next((found for found in endpoints_of(snapshot, number) if found.endpoint.id == endpoint_id), None)


def subscribers(
    snapshot: Snapshot, number: int, environment: WebhookEnvironment, event_type: EventType
) -> list[Registered]:
    """Return the endpoints that get such an event: subscribed, of its environment, and not paused (decisions 8.4)."""
    return [found for found in endpoints_of(snapshot, number) if subscribes(found.endpoint, environment, event_type)]


def subscribes(endpoint: Endpoint, environment: WebhookEnvironment, event_type: EventType) -> bool:
    """Return whether the endpoint gets an event of this type and environment now; not while paused (decisions 8.4)."""
    return endpoint.environment == environment and endpoint.status != "paused" and event_type in endpoint.events


def health(snapshot: Snapshot, queue: EndpointKey) -> Health:
    """Return how an endpoint has responded recently; the defaults if nothing was ever sent to it."""
    return snapshot.get(ENDPOINT_HEALTH, *queue) or Health()


def attempts_in_a_day(snapshot: Snapshot, queue: EndpointKey, now_ms: int) -> AttemptCount:
    """Return counts of attempts of the last 24 hours, to the minute: a sum of at most 1,441 rows (interface 2.9)."""
    minute = now_ms // 60_000
    rows = snapshot.scan(ATTEMPT_COUNTS, *queue, start=(*queue, minute - MINUTES_PER_DAY))
    counts = [count for (*_, counted), count in rows if counted <= minute]  # later ones are of a clock that was ahead
    return AttemptCount(sum(count.delivered for count in counts), sum(count.failed for count in counts))


def filter_errors_in_a_day(snapshot: Snapshot, registered: Registered, now_ms: int) -> int:
    """Return the number of events of the last 24 hours, in whole hours, for which evaluating the endpoint's filter
    failed. Without a filter nothing is read.
    """
    queue, endpoint = registered
    if endpoint.filter is None:
        return 0
    return sum(
        counts.rule_errors.get(endpoint.id, 0)
        for environment in ENVIRONMENTS
        if webhook_environment(environment) == endpoint.environment
        for _, counts in hours(snapshot, queue.organization, environment, now_ms - DAY_MS, now_ms + 1)
    )


def queues_with_work(snapshot: Snapshot, after: EndpointKey, limit: int) -> WaitingQueues:
    """Return at most `limit` queues with deliveries, after the queue `after` in key order. It scans forward and skips
    the rest of a long queue. Each skip is a round trip to a database, which repeats the earlier ones: so a call makes a
    few, and the next call resumes.
    """
    found: list[tuple[EndpointKey, int]] = []
    last = after
    for _ in range(LEAPS):
        passed = 0
        for (organization, endpoint, due_ms, *_), _ in snapshot.scan(DUE, start=(last.organization, last.endpoint + 1)):
            queue = EndpointKey(organization, endpoint)
            if queue != last:
                if len(found) == limit:
                    return WaitingQueues(found, has_more=True)
                found.append((queue, due_ms))
                last, passed = queue, 0
            elif (passed := passed + 1) == LEAP_AFTER:
                break
        else:
            return WaitingQueues(found, has_more=False)
    return WaitingQueues(found, has_more=True)


def poll_queues(snapshot: Snapshot, after: EndpointKey, late_ms: int, limit: int) -> tuple[WaitingQueues, bool]:
    """Return the same as `queues_with_work`, and whether a queue whose endpoint should respond has a delivery that has
    been due since before `late_ms` (Unix ms).
    """
    waiting = queues_with_work(snapshot, after, limit)
    return waiting, any(due_ms < late_ms and _is_expected(snapshot, queue) for queue, due_ms in waiting.queues)


def _is_expected(snapshot: Snapshot, queue: EndpointKey) -> bool:
    """Return `is_responding`; false if that is unreadable."""
    try:
        return is_responding(snapshot, queue)
    except CorruptionError:
        return False


def queues_ahead(
    snapshot: Snapshot, after: EndpointKey, now_ms: int, limit: int
) -> tuple[list[EndpointKey], EndpointKey | None]:
    """Return those of the next `limit` queues after `after` that have a delivery due later than any may be (the clock
    was ahead), and the last queue examined; `None` if there are no more.
    """
    waiting = queues_with_work(snapshot, after, limit)
    beyond_ms = now_ms + LONGEST_WAIT_MS + 1
    queues = [queue for queue, _ in waiting.queues]
    found = [queue for queue in queues if any(True for _ in snapshot.scan(DUE, *queue, start=(*queue, beyond_ms)))]
    return found, queues[-1] if waiting.has_more else None


def first_removed(snapshot: Snapshot, sends: Callable[[EndpointKey], bool] | None = None) -> EndpointKey | None:
    """Return a removed endpoint that has left rows for `sweep_removed`, and for which `sends` returns true if it is
    given; `None` if there is none.
    """
    removed = (EndpointKey(*key) for key, _ in snapshot.scan(REMOVED_ENDPOINTS))
    return next((queue for queue in removed if sends is None or sends(queue)), None)


def endpoint_overviews(
    snapshot: Snapshot, after: EndpointKey, limit: int, now_ms: int
) -> Iterator[tuple[EndpointKey, EndpointOverview]]:
    """Yield the state of the next `limit` endpoints of all organizations, after `after` in key order. Each costs one
    row and one seek, and one more row if a delivery is due.
    """
    start = (after.organization, after.endpoint + 1)
    for key, endpoint in islice(snapshot.scan(ENDPOINTS, start=start), limit):
        queue = EndpointKey(*key)
        first_ms = next((first_ms for (_, _, first_ms, *_), _ in snapshot.scan(DUE, *queue)), None)
        due_ms = None if first_ms is None or first_ms > now_ms else first_ms
        failing = due_ms is not None and endpoint.status == "active" and is_failing(endpoint, health(snapshot, queue))
        yield queue, EndpointOverview(endpoint.status, "failing" if failing else endpoint.status, due_ms)


def is_responding(snapshot: Snapshot, queue: EndpointKey) -> bool:
    """Return whether deliveries to the endpoint are expected to arrive: it exists and is neither paused nor failing."""
    endpoint = snapshot.get(ENDPOINTS, *queue)
    return endpoint is not None and endpoint.status != "paused" and not is_failing(endpoint, health(snapshot, queue))


def next_delivery(
    snapshot: Snapshot, queue: EndpointKey, now_ms: int, in_flight: Collection[DeliveryKey], *, backlogged: bool = False
) -> ClaimedDelivery | NoWork:
    """Return the delivery of this queue that is to be sent next: a test or redelivery first, else the one that has been
    due longest; `NoWork` says when one will be due. For a paused endpoint only a test or redelivery is returned, so
    that it can be ended. `backlogged`: the queue is known to have a backlog, which is not counted again.
    """
    endpoint = snapshot.get(ENDPOINTS, *queue)
    if endpoint is None:
        return NoWork(None)
    manual = snapshot.get(MANUAL, *queue)  # there is at most one
    if manual is not None and manual not in in_flight:
        return _claim(snapshot, queue, manual, endpoint)
    if endpoint.status == "paused":
        return NoWork(None)
    for due_ms, key in due_deliveries(snapshot, queue):
        if key in in_flight:
            continue
        if due_ms > now_ms:
            return NoWork(due_ms)
        claim = _claim(snapshot, queue, key, endpoint)
        return claim._replace(backlogged=claim.failing and (backlogged or _is_backlogged(snapshot, queue, now_ms)))
    return NoWork(None)


def next_deliveries(snapshot: Snapshot, asked: Sequence[AskedQueue], now_ms: int) -> list[ClaimedDelivery | NoWork]:
    """Return, for each queue in `asked`, the result of `next_delivery` at `now_ms` (Unix ms), in the same order."""
    return [next_delivery(snapshot, one.queue, now_ms, one.in_flight, backlogged=one.backlogged) for one in asked]


def due_deliveries(snapshot: Snapshot, queue: EndpointKey) -> Iterator[tuple[int, DeliveryKey]]:
    """Yield (when it is due in Unix ms, delivery) of a queue, earliest first, those due in the future included."""
    for (_, _, due_ms, event_id, kind_index), _ in snapshot.scan(DUE, *queue):
        yield due_ms, DeliveryKey(event_id, DELIVERY_KINDS[kind_index])


def attempts_page(
    snapshot: Snapshot, number: int, environment: WebhookEnvironment | None, *, since: bytes, before: bytes, limit: int
) -> list[tuple[bytes, Attempt]]:
    """Return (attempt id, attempt) of at most `limit` attempts with ids from `since` to before `before`, newest first;
    with `environment=None`, of both environments. Raises as `_attempts` does.
    """
    stems: list[tuple[Table[Any], tuple[int, ...]]] = [
        (ATTEMPTS_BY_ENVIRONMENT, (number, index))
        for index, each in enumerate(WEBHOOK_ENVIRONMENTS)
        if environment in (None, each)
    ]
    if environment is None:
        stems.append((ATTEMPTS, (number,)))
    keys = (snapshot.scan_keys_reverse(table, (*stem, since), (*stem, before)) for table, stem in stems)
    ids = merge(*((attempt_id for *_, attempt_id in found) for found in keys), reverse=True)
    return _attempts(snapshot, number, islice((attempt_id for attempt_id, _ in groupby(ids)), limit))


def _attempts(snapshot: Snapshot, number: int, ids: Iterable[bytes]) -> list[tuple[bytes, Attempt]]:
    """Return attempts of an index. Raises `CorruptionError` for one not in the log: both are deleted together."""
    rows = ((attempt_id, snapshot.get(ATTEMPTS, number, attempt_id)) for attempt_id in ids)
    return all_present(rows, lambda attempt_id: f"attempt {UUID(bytes=attempt_id)} is missing, and an index has it")


def attempt_index_keys(
    number: int, attempt_id: bytes, attempt: Attempt
) -> tuple[tuple[Table[bytes], tuple[int | bytes, ...]], ...]:
    """Return (table, key) of every index row of an attempt: they are written and deleted together with it."""
    return (
        (ATTEMPTS_BY_ENVIRONMENT, (number, WEBHOOK_ENVIRONMENTS.index(attempt.environment), attempt_id)),
        (ATTEMPTS_BY_EVENT, (number, attempt.event_id, attempt_id)),
    )


def attempts_about(
    snapshot: Snapshot, number: int, event_ids: Sequence[bytes], limit: int
) -> list[tuple[bytes, Attempt]]:
    """Return (attempt id, attempt) of at most `limit` attempts to deliver these events (16-byte ids), newest first. No
    other rows are read, however long the log is.
    """
    keys = (
        snapshot.scan_keys_reverse(ATTEMPTS_BY_EVENT, (number, event_id), (number, event_id, BEYOND))
        for event_id in event_ids
    )
    newest = sorted((attempt_id for found in keys for *_, attempt_id in islice(found, limit)), reverse=True)
    return _attempts(snapshot, number, newest[:limit])


def failed_in(snapshot: Snapshot, queue: EndpointKey, window: range, start: bytes, limit: int) -> FailedDeliveries:
    """Return the events whose last attempt failed in this window (Unix ms), as up to `limit` rows of the organization's
    log from `start` on say.

    The log is in the order of attempt ids. Ids may be ahead of the time of the attempt if the clock was set back, but
    never behind it: so begin at the first id of the window, and go on to the end of the log.
    """
    rows = list(islice(snapshot.scan(ATTEMPTS, queue.organization, start=(queue.organization, start)), limit + 1))
    found = [
        attempt.event_id
        for _, attempt in rows[:limit]
        if attempt.endpoint == queue.endpoint and attempt.status == "failed" and attempt.occurred_at_ms in window
    ]
    following = [attempt_id for (_, attempt_id), _ in rows[limit:]]
    return FailedDeliveries(found, following[0] if following else None)


def _claim(snapshot: Snapshot, queue: EndpointKey, key: DeliveryKey, endpoint: Endpoint) -> ClaimedDelivery:
    delivery = snapshot.get(DELIVERIES, *queue, key.event_id, key.kind_index)
    event = snapshot.get(WEBHOOK_EVENTS, queue.organization, key.event_id)
    assert delivery is not None and event is not None, "a due row without its delivery or its event"  # noqa: PT018
    failing = is_failing(endpoint, health(snapshot, queue))
    return ClaimedDelivery(queue, key, delivery, endpoint, event, failing, backlogged=False)


def _is_backlogged(snapshot: Snapshot, queue: EndpointKey, now_ms: int) -> bool:
    last = next(islice(due_deliveries(snapshot, queue), BACKLOG_OVER, None), None)
    return last is not None and last[0] <= now_ms
