"""The outbox on disk: events enqueued in the transaction of their fact, and the results of attempts (decisions 8).

A delivery is open as long as it has a row in `DUE`, and the other way round: there is no queue beside the store that
could lose it. Nothing is written when an attempt begins, but for the first one of a process; one that a crash
interrupts is made again.

A filter (decisions 16.2) is evaluated in the transaction in which the event happens: what it holds back has no
delivery, and can neither be redelivered nor recovered. One whose evaluation fails holds the event back. Endpoints
without a filter cost nothing here; ten with one read what their conditions name of the event once, and the rows of
lists that the rules have not read yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec

from svc.features.rules.ruleset import Facts, matches
from svc.features.webhooks.content.envelope import derived_event_id, identification_event_id, seal
from svc.features.webhooks.content.payloads import OF_IDENTIFICATION
from svc.features.webhooks.queries import (
    MINUTES_PER_DAY,
    Registered,
    attempt_index_keys,
    endpoints_of,
    health,
    subscribers,
    subscribes,
)
from svc.features.webhooks.queues import is_failing
from svc.features.webhooks.records import (
    DELIVERY_KINDS,
    HISTORY_MS,
    Attempt,
    AttemptCount,
    AttemptStatus,
    Delivery,
    DeliveryKey,
    Endpoint,
    EventType,
    Health,
    WebhookEnvironment,
    WebhookEvent,
    webhook_environment,
)
from svc.features.webhooks.retries import (
    DELIVERY_TRANSITIONS,
    ENDPOINT_TRANSITIONS,
    LONGEST_WAIT_MS,
    AttemptResult,
    after_attempt,
    classify_result,
    latest_due_ms,
)
from svc.features.webhooks.tables import (
    ATTEMPT_COUNTS,
    ATTEMPTS,
    DELIVERIES,
    DUE,
    ENDPOINT_HEALTH,
    ENDPOINTS,
    MANUAL,
    WEBHOOK_EVENTS,
)
from svc.identify.records import Event
from svc.kernel.net.trace_context import TraceContext
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.organization import Organization
from svc.kernel.tenants.queries import organization as find_organization
from svc.kernel.values.partitions import EndpointKey

if TYPE_CHECKING:
    from svc.identify.identification import Submission


_OLD_COUNTS_PER_ATTEMPT = 2
"""Rows of minutes over a day ago that a new minute's first attempt deletes: twice as many as it writes."""


class AttemptRecord(NamedTuple):
    """One attempt that was made, with everything that `log_attempt` writes."""

    attempt_id: UUID
    queue: EndpointKey
    key: DeliveryKey
    endpoint: Endpoint
    """As it stood when the attempt was made."""
    event: WebhookEvent
    result: AttemptResult


class AttemptOutcome(NamedTuple):
    """The result of an attempt, once it is written."""

    status: AttemptStatus
    due_ms: int | None
    """When the next one is due."""
    failing: bool
    """Whether the endpoint is to be sent to as one that fails."""
    health: Health = Health()
    """The endpoint's."""


class Receivers(NamedTuple):
    """The endpoints that an event goes to."""

    endpoints: tuple[Registered, ...]
    failed: tuple[str, ...] = ()
    """Ids of the endpoints that it does not go to, since the evaluation of their filter failed."""


NOBODY = Receivers(())


def receivers(subscribed: Iterable[Registered], facts: Facts) -> Receivers:
    """Return those of the endpoints that have no filter, or whose filter is true of the facts."""
    endpoints = tuple(subscribed)
    filters = [found.endpoint.filter for found in endpoints if found.endpoint.filter is not None]
    if not filters:
        return Receivers(endpoints)
    outcome: dict[str | None, bool | None] = {None: True, **matches(dict.fromkeys(filters), facts)}
    return Receivers(
        tuple(found for found in endpoints if outcome[found.endpoint.filter]),
        tuple(found.endpoint.id for found in endpoints if outcome[found.endpoint.filter] is None),
    )


def identification_receivers(snapshot: Snapshot, number: int, facts: Facts, threshold: int) -> Receivers:
    """Return the endpoints to which an identification is sent. At most ten endpoints are read."""
    known = endpoints_of(snapshot, number)
    if not known:
        return NOBODY
    environment, types = webhook_environment(facts.event.environment), identification_types(facts.event, threshold)
    subscribed = [each for each in known if any(subscribes(each.endpoint, environment, name) for name in types)]
    return receivers(subscribed, facts)


def identification_types(event: Event, threshold: int) -> tuple[EventType, ...]:
    """Return the event types that an identification causes (decisions 8.9)."""
    return tuple(name for name, arising in OF_IDENTIFICATION.items() if arising.arises(event, threshold))


def enqueue(
    transaction: Transaction,
    organization: int,
    event_type: EventType,
    environment: WebhookEnvironment,
    data: Any,
    at_ms: int,
    trace: TraceContext | None = None,
) -> tuple[EndpointKey, ...]:
    """Queue an event, of a type without filters, for every endpoint that subscribes to it now. Return the endpoint
    queues to wake after the commit. Call this once per fact, in the transaction that stores it.

    `organization`: its number; `data`: a struct of `svc.features.webhooks.content.payloads`. Without a subscriber it
    costs one read and writes nothing.
    """
    to = subscribers(transaction, organization, environment, event_type)
    if not to:
        return ()
    public_id = find_organization(transaction, organization).id
    # With the organization: two of them may have the same event in the same millisecond, as when a day is settled.
    subject = blake2b(msgspec.json.encode((public_id, data)), digest_size=16).digest()
    event_id = derived_event_id(event_type, subject, at_ms)
    while transaction.has(WEBHOOK_EVENTS, organization, event_id.bytes):  # the same fact twice in a millisecond
        event_id = derived_event_id(event_type, subject + event_id.bytes, at_ms)
    event = seal(event_id, event_type, environment, public_id, data, at_ms, trace)
    return _queue(transaction, organization, event_id, event, to)


def enqueue_about(  # noqa: PLR0913  an event, field by field
    transaction: Transaction,
    organization: int,
    event_id: UUID,
    event_type: EventType,
    environment: WebhookEnvironment,
    data: Any,
    at_ms: int,
    facts: Callable[[], Facts | None],
    *,
    notified: Sequence[EndpointKey] = (),
    trace: TraceContext | None = None,
) -> tuple[EndpointKey, ...]:
    """Queue an event about an identification, as `enqueue` does, for endpoints whose filter is true for its `facts`. If
    the facts are deleted, no filter is true. The webhook event has an id of its own, by which it can be found again.

    `notified`: endpoints that get an event of this identification from this transaction; chats among them get no other.
    """
    subscribed = subscribers(transaction, organization, environment, event_type)
    to: Sequence[Registered] = [one for one in subscribed if not (one.endpoint.is_chat and one.queue in notified)]
    if any(found.endpoint.filter is not None for found in to):
        known = facts()
        to = (
            [found for found in to if found.endpoint.filter is None]
            if known is None
            else receivers(to, known).endpoints
        )
    if not to:
        return ()
    public_id = find_organization(transaction, organization).id
    event = seal(event_id, event_type, environment, public_id, data, at_ms, trace)
    return _queue(transaction, organization, event_id, event, to)


def enqueue_identification(
    transaction: Transaction,
    owner: Organization,
    submission: Submission,
    event: Event,
    threshold: int,
    endpoints: Sequence[Registered],
) -> tuple[EndpointKey, ...]:
    """Queue `identification.completed`, and `visitor.suspect` if the score reaches the threshold (decisions 8.9), for
    those of `endpoints` (`identification_receivers`) that subscribe to it; to chats that subscribe to both, the latter
    alone. Return the endpoint queues to wake after the commit. It writes a row an event, and two for each endpoint.
    """
    if not endpoints:
        return ()
    number, request_id = submission.organization, submission.request_id
    environment = webhook_environment(submission.environment)
    queues: set[EndpointKey] = set()
    for event_type in reversed(identification_types(event, threshold)):  # what says most comes first
        to = [
            found
            for found in endpoints
            if subscribes(found.endpoint, environment, event_type)
            and not (found.endpoint.is_chat and found.queue in queues)
        ]
        if to:
            data = OF_IDENTIFICATION[event_type].data(event, request_id, threshold)
            event_id = identification_event_id(event_type, request_id)
            sealed = seal(event_id, event_type, environment, owner.id, data, submission.at_ms, submission.trace)
            queues.update(_queue(transaction, number, event_id, sealed, to))
    return tuple(sorted(queues))


def open_deliveries(transaction: Transaction, queues: Sequence[EndpointKey], key: DeliveryKey, now_ms: int) -> None:
    """Queue a delivery for each endpoint, due at once. It replaces an ended one of the same event and kind."""
    event_id, kind, delivery = key.event_id, key.kind_index, Delivery("pending", 0, now_ms, now_ms)
    transaction.put_all(DELIVERIES, [(*queue, event_id, kind) for queue in queues], delivery)
    transaction.put_all(DUE, [(*queue, now_ms, event_id, kind) for queue in queues], b"")


def rewrite_delivery(transaction: Transaction, queue: EndpointKey, key: DeliveryKey) -> None:
    """Write a delivery as it is, if it is there: a commit that the disk has to take."""
    row = (*queue, key.event_id, key.kind_index)
    delivery = transaction.get(DELIVERIES, *row)
    if delivery is not None:
        transaction.put(DELIVERIES, row, delivery)


def log_attempt(transaction: Transaction, made: AttemptRecord) -> AttemptOutcome:
    """Write everything that an attempt changes: the log, the delivery and its schedule, the endpoint's health and
    status (decisions 8.3, 8.4). If the delivery was erased or its endpoint removed meanwhile, only the log is written.
    An attempt that is in the log already changes nothing: a caller that does not know whether its commit succeeded
    passes it again.
    """
    queue, key = made.queue, made.key
    endpoint = transaction.get(ENDPOINTS, *queue)
    verdict = classify_result(made.result, queue, key)
    logged = transaction.get(ATTEMPTS, queue.organization, made.attempt_id.bytes)
    if logged is not None:
        known = health(transaction, queue)
        failing = endpoint is not None and is_failing(endpoint, known)
        due_ms = verdict.due_ms if logged.status == verdict.status else None
        return AttemptOutcome(logged.status, due_ms, failing, known)
    delivery = transaction.get(DELIVERIES, *queue, key.event_id, key.kind_index)
    if endpoint is None or delivery is None or not delivery.is_open:
        status = "delivered" if verdict.status == "delivered" else "failed"
        _log(transaction, made, status)
        return AttemptOutcome(status, None, failing=False)
    transaction.delete(DUE, *queue, delivery.due_ms, key.event_id, key.kind_index)
    after = Delivery(
        state=DELIVERY_TRANSITIONS[delivery.state][verdict.status],
        attempts=made.result.attempt,
        queued_at_ms=delivery.queued_at_ms,
        due_ms=delivery.due_ms if verdict.due_ms is None else verdict.due_ms,
    )
    transaction.put(DELIVERIES, (*queue, key.event_id, key.kind_index), after)
    if verdict.due_ms is not None:
        transaction.put(DUE, (*queue, verdict.due_ms, key.event_id, key.kind_index), b"")
    if key.kind != "auto":
        transaction.delete(MANUAL, *queue)
    _log(transaction, made, verdict.status)
    state, trigger = health(transaction, queue), None
    if made.endpoint.url == endpoint.url:  # else this says nothing of where deliveries go now
        state, trigger = after_attempt(state, made.result, verdict, key.kind)
        transaction.put(ENDPOINT_HEALTH, queue, state)
    if trigger is not None and (status := ENDPOINT_TRANSITIONS[endpoint.status][trigger]) != endpoint.status:
        endpoint = msgspec.structs.replace(endpoint, status=status)
        transaction.put(ENDPOINTS, queue, endpoint)
    return AttemptOutcome(verdict.status, verdict.due_ms, is_failing(endpoint, state), state)


def make_due(transaction: Transaction, queue: EndpointKey, now_ms: int, limit: int) -> int:
    """Reschedule up to `limit` deliveries of an endpoint that accepts again, which are due later, to be due now (Unix
    ms); return how many there were (decisions 17.7). With the last of them nothing is owed any more.
    """
    rows = [row for row, _ in islice(transaction.scan(DUE, *queue, start=(*queue, now_ms + 1)), limit)]
    for row in rows:
        _reschedule(transaction, queue, row, now_ms)
    known = health(transaction, queue)
    if known.owed and len(rows) < limit:
        transaction.put(ENDPOINT_HEALTH, queue, msgspec.structs.replace(known, owed=False))
    return len(rows)


def _reschedule(transaction: Transaction, queue: EndpointKey, row: tuple[Any, ...], to_ms: int) -> None:
    *_, due_ms, event_id, kind_index = row
    delivery = transaction.get(DELIVERIES, *queue, event_id, kind_index)
    assert delivery is not None, "a due row without its delivery"
    transaction.delete(DUE, *queue, due_ms, event_id, kind_index)
    transaction.put(DUE, (*queue, to_ms, event_id, kind_index), b"")
    moved = msgspec.structs.replace(delivery, due_ms=to_ms)
    transaction.put(DELIVERIES, (*queue, event_id, kind_index), moved)


def bring_forward(transaction: Transaction, queue: EndpointKey, now_ms: int, limit: int) -> int:
    """Reschedule up to `limit` deliveries that are due later than the longest step after `now_ms` (Unix ms) to be due
    after that step, and return how many there were (decisions 17.1).
    """
    ahead = transaction.scan(DUE, *queue, start=(*queue, now_ms + LONGEST_WAIT_MS + 1))
    rows = [row for row, _ in islice(ahead, limit)]
    for row in rows:
        *_, event_id, kind_index = row
        delivery = transaction.get(DELIVERIES, *queue, event_id, kind_index)
        assert delivery is not None, "a due row without its delivery"
        key = DeliveryKey(event_id, DELIVERY_KINDS[kind_index])
        _reschedule(transaction, queue, row, latest_due_ms(delivery.attempts, queue, key, now_ms))
    return len(rows)


def _queue(
    transaction: Transaction, number: int, event_id: UUID, event: WebhookEvent, to: Sequence[Registered]
) -> tuple[EndpointKey, ...]:
    transaction.put(WEBHOOK_EVENTS, (number, event_id.bytes), event)
    queues = tuple(queue for queue, _ in to)
    open_deliveries(transaction, queues, DeliveryKey(event_id.bytes, "auto"), event.created_at_ms)
    return queues


def _log(transaction: Transaction, made: AttemptRecord, status: AttemptStatus) -> None:
    """Add the attempt to the log and its indexes, and to the endpoint's count of the minute."""
    queue, result = made.queue, made.result
    attempt = Attempt(
        endpoint=queue.endpoint,
        endpoint_id=made.endpoint.id,
        endpoint_url=made.endpoint.url,
        event_id=made.key.event_id,
        event=made.event.type,
        environment=made.event.environment,
        status=status,
        response_code=result.response_code,
        duration_ms=result.duration_ms,
        attempt=result.attempt,
        error=result.error,
        occurred_at_ms=result.started_ms,
    )
    number, attempt_id = queue.organization, made.attempt_id.bytes
    transaction.put(ATTEMPTS, (number, attempt_id), attempt)
    for table, key in attempt_index_keys(number, attempt_id, attempt):
        transaction.put(table, key, b"")
    if not transaction.has(ENDPOINTS, *queue):
        return
    minute = result.started_ms // 60_000
    count = transaction.get(ATTEMPT_COUNTS, *queue, minute)
    if count is None:
        oldest = islice(transaction.scan(ATTEMPT_COUNTS, *queue), _OLD_COUNTS_PER_ATTEMPT)
        for counted in [counted for (*_, counted), _ in oldest if counted < minute - MINUTES_PER_DAY]:
            transaction.delete(ATTEMPT_COUNTS, *queue, counted)
        count = AttemptCount()
    more = (count.delivered + 1, count.failed) if status == "delivered" else (count.delivered, count.failed + 1)
    transaction.put(ATTEMPT_COUNTS, (*queue, minute), AttemptCount(*more))


def recover_deliveries(transaction: Transaction, queue: EndpointKey, event_ids: Iterable[bytes], now_ms: int) -> int:
    """Queue failed deliveries of these events (16-byte ids) for the endpoint again; returns how many were queued. The
    caller does it in steps, since an outage may have failed any number (decisions 8.2, 8.4).

    The automatic delivery itself is opened again, due at once, with all its nine attempts counted from 1: same id, same
    bytes. The log keeps what was tried before. What is in progress, was delivered, erased or is older than 30 days is
    left alone, so that doing it twice queues nothing twice. Where the endpoint is paused they wait with the others. A
    test or redelivery is not queued again, but an event that a redelivery has brought counts as delivered.
    """
    if not transaction.has(ENDPOINTS, *queue):
        return 0
    recovered = 0
    for event_id in event_ids:
        if _never_arrived(transaction, queue, event_id) and _is_kept(transaction, queue, event_id, now_ms):
            open_deliveries(transaction, [queue], DeliveryKey(event_id, "auto"), now_ms)
            recovered += 1
    return recovered


def _never_arrived(transaction: Transaction, queue: EndpointKey, event_id: bytes) -> bool:
    keys = (DeliveryKey(event_id, "auto"), DeliveryKey(event_id, "redelivery"))
    automatic, redelivery = (transaction.get(DELIVERIES, *queue, key.event_id, key.kind_index) for key in keys)
    if automatic is None or automatic.state != "failed":
        return False
    return redelivery is None or redelivery.state != "delivered"


def _is_kept(transaction: Transaction, queue: EndpointKey, event_id: bytes, now_ms: int) -> bool:
    event = transaction.get(WEBHOOK_EVENTS, queue.organization, event_id)
    return event is not None and event.created_at_ms >= now_ms - HISTORY_MS
