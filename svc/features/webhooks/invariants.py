"""What must be true of the outbox in every store, at every moment; read by `invariants` for one organization.

A delivery is open exactly while it is scheduled, none has more attempts than there are, and the counts are the log's.
Memory is bounded by a day's minutes of the organization's endpoints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from operator import le
from uuid import UUID

from svc.features.webhooks.queries import MINUTES_PER_DAY, attempt_index_keys
from svc.features.webhooks.records import DELIVERY_KINDS, MAX_ENDPOINTS
from svc.features.webhooks.retries import MAX_ATTEMPTS
from svc.features.webhooks.tables import (
    ATTEMPT_COUNTS,
    ATTEMPTS,
    ATTEMPTS_BY_ENVIRONMENT,
    ATTEMPTS_BY_EVENT,
    DELIVERIES,
    DUE,
    ENDPOINT_COUNTS,
    ENDPOINTS,
    MANUAL,
    REMOVED_ENDPOINTS,
    WEBHOOK_EVENTS,
)
from svc.kernel.store.snapshot import Snapshot


def _endpoints(snapshot: Snapshot, number: int) -> Iterator[str]:
    given = snapshot.get(ENDPOINT_COUNTS, number) or 0
    endpoint_numbers = [endpoint_number for (_, endpoint_number), _ in snapshot.scan(ENDPOINTS, number)]
    if len(endpoint_numbers) > MAX_ENDPOINTS:
        yield f"organization {number} has {len(endpoint_numbers)} endpoints"
    for endpoint_number in endpoint_numbers:
        if endpoint_number > given:
            yield f"endpoint {endpoint_number} of organization {number} is beyond the {given} numbers given"
        if snapshot.has(REMOVED_ENDPOINTS, number, endpoint_number):
            yield f"endpoint {endpoint_number} of organization {number} is there and removed"


def _deliveries(snapshot: Snapshot, number: int) -> Iterator[str]:
    for (_, endpoint_number, event_id, kind), delivery in snapshot.scan(DELIVERIES, number):
        name = _name(number, endpoint_number, event_id)
        if delivery.attempts > MAX_ATTEMPTS:
            yield f"{name} had {delivery.attempts} attempts"
        if (delivery.state == "pending") != (delivery.attempts == 0):
            yield f"{name} is {delivery.state} after {delivery.attempts} attempts"
        if not snapshot.has(ENDPOINTS, number, endpoint_number) and not snapshot.has(
            REMOVED_ENDPOINTS, number, endpoint_number
        ):
            yield f"{name} leads to no endpoint"
        if not snapshot.has(WEBHOOK_EVENTS, number, event_id):
            yield f"{name} has no event to send"
        if not delivery.is_open:
            continue
        if not snapshot.has(DUE, number, endpoint_number, delivery.due_ms, event_id, kind):
            yield f"{name} is open and not scheduled"
        if DELIVERY_KINDS[kind] != "auto" and not snapshot.has(MANUAL, number, endpoint_number):
            yield f"{name} was asked for and its endpoint is not busy"


def _schedule(snapshot: Snapshot, number: int) -> Iterator[str]:
    for (_, endpoint_number, due_ms, event_id, kind), _ in snapshot.scan(DUE, number):
        delivery = snapshot.get(DELIVERIES, number, endpoint_number, event_id, kind)
        if delivery is None or not delivery.is_open or delivery.due_ms != due_ms:
            yield f"{_name(number, endpoint_number, event_id)} is scheduled and not open"


def _manual(snapshot: Snapshot, number: int) -> Iterator[str]:
    for (_, endpoint_number), key in snapshot.scan(MANUAL, number):
        delivery = snapshot.get(DELIVERIES, number, endpoint_number, key.event_id, key.kind_index)
        if delivery is None or not delivery.is_open:
            yield f"endpoint {endpoint_number} of organization {number} is busy with nothing"


def _log(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Check that the log has the attempts that the counts of minutes, kept for a day, say. It may have more of a minute
    a day older than the newest attempt of its endpoint: a clock that was ahead had the count deleted.
    """
    counts = {
        (endpoint_number, minute): (count.delivered, count.failed)
        for (_, endpoint_number, minute), count in snapshot.scan(ATTEMPT_COUNTS, number)
        if snapshot.has(ENDPOINTS, number, endpoint_number)
    }
    delivered: Counter[tuple[int, int]] = Counter()
    failed: Counter[tuple[int, int]] = Counter()
    newest: dict[int, int] = {}
    for (_, attempt_id), attempt in snapshot.scan(ATTEMPTS, number):
        for table, key in attempt_index_keys(number, attempt_id, attempt):
            if not snapshot.has(table, *key):
                yield f"attempt {UUID(bytes=attempt_id)} is not in {table.name}"
        delivery = (number, attempt.endpoint, attempt.event_id)
        if (
            snapshot.has(ENDPOINTS, number, attempt.endpoint)
            and snapshot.has(WEBHOOK_EVENTS, number, attempt.event_id)
            and not any(snapshot.has(DELIVERIES, *delivery, kind) for kind in range(len(DELIVERY_KINDS)))
        ):
            yield f"attempt {UUID(bytes=attempt_id)} is of {_name(*delivery)}, which does not exist"
        minute = (attempt.endpoint, attempt.occurred_at_ms // 60_000)
        newest[attempt.endpoint] = max(newest.get(attempt.endpoint, 0), minute[1])
        if minute in counts:
            (delivered if attempt.status == "delivered" else failed)[minute] += 1
    for table in (ATTEMPTS_BY_ENVIRONMENT, ATTEMPTS_BY_EVENT):
        if snapshot.count(ATTEMPTS) != snapshot.count(table):
            yield f"attempts and {table.name} are not as many"
    for (endpoint_number, minute), count in counts.items():
        logged = delivered[endpoint_number, minute], failed[endpoint_number, minute]
        was_over = newest.get(endpoint_number, 0) > minute + MINUTES_PER_DAY and all(map(le, count, logged))
        if count != logged and not was_over:
            yield (
                f"endpoint {endpoint_number} of organization {number} counts {count} in minute {minute}, "
                f"the log {logged}"
            )


def _name(number: int, endpoint_number: int, event_id: bytes) -> str:
    return f"the delivery of event {UUID(bytes=event_id)} to endpoint {endpoint_number} of organization {number}"


RULES = {
    "endpoints": _endpoints,
    "deliveries": _deliveries,
    "schedule": _schedule,
    "manual": _manual,
    "log": _log,
}
"""The rules of one organization's outbox."""
