"""Webhook endpoints: create, change, remove, rotate, test, redeliver (interface 4.4, decisions 8).

Each returns what the response shows, or the refusal. The caller notifies the outbox of a changed endpoint afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from svc.features.rules.checking import filter_problem
from svc.features.rules.jobs import list_prefixes
from svc.features.webhooks.content.envelope import seal, signing_secret
from svc.features.webhooks.jobs.deliveries import open_deliveries
from svc.features.webhooks.queries import (
    Registered,
    endpoints_of,
    find_endpoint,
    health,
)
from svc.features.webhooks.records import (
    DELIVERY_KINDS,
    EVENT_TYPES,
    HISTORY_MS,
    LIVE_ONLY,
    MAX_ENDPOINTS,
    DeliveryKey,
    DeliveryKind,
    Endpoint,
    EventType,
    Health,
    WebhookEnvironment,
    WebhookFormat,
)
from svc.features.webhooks.retries import ENDPOINT_TRANSITIONS, EndpointTrigger
from svc.features.webhooks.tables import (
    DELIVERIES,
    ENDPOINT_COUNTS,
    ENDPOINT_HEALTH,
    ENDPOINTS,
    MANUAL,
    REMOVED_ENDPOINTS,
    WEBHOOK_EVENTS,
)
from svc.kernel.net.trace_context import TraceContext
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.queries import organization as find_organization
from svc.kernel.tenants.queries import refuse_given
from svc.kernel.values.ids import made_at_ms
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import record_of

MAX_OVERLAP_HOURS = 168


class Issued(NamedTuple):
    """An endpoint with its new signing secret, which is shown only once."""

    registered: Registered
    secret: str


class Queued(NamedTuple):
    """A test or redelivery that was queued: `queue` is to be woken after the commit."""

    queue: EndpointKey
    event_id: UUID


class NewEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint to register. The URL was checked before (decisions 8.7)."""

    id: str
    url: str
    description: str
    environment: WebhookEnvironment
    events: tuple[str, ...]
    format: WebhookFormat = "json"
    filter: str | None = None


def create_endpoint(
    transaction: Transaction, number: int, new: NewEndpoint, secrets_key: bytes, now_ms: int
) -> Issued | Refusal:
    """Register an active endpoint and create its first secret. `secrets_key`: see `envelope.secrets_key`. Refusals:
    `409 webhook_limit` beyond ten endpoints (interface 8); `422`: see `faulty_events` and `faulty_filter`.
    """
    refusal = faulty_events(new.events, new.environment) or faulty_filter(transaction, number, new.filter)
    if refusal is not None:
        return refusal
    if len(endpoints_of(transaction, number)) >= MAX_ENDPOINTS:
        return Refusal("webhook_limit")
    endpoint_number = (transaction.get(ENDPOINT_COUNTS, number) or 0) + 1
    for table in (ENDPOINTS, DELIVERIES):
        refuse_given(transaction, table, number, endpoint_number)
    secret = signing_secret(secrets_key, new.id, 1)
    events = _read_events(new.events)
    endpoint = record_of(Endpoint, new, events=events, created_at_ms=now_ms, secret_last4=secret[-4:])
    transaction.put(ENDPOINT_COUNTS, (number,), endpoint_number)
    transaction.put(ENDPOINTS, (number, endpoint_number), endpoint)
    return Issued(Registered(EndpointKey(number, endpoint_number), endpoint), secret)


def change_endpoint(
    transaction: Transaction, number: int, endpoint_id: str, fields: Mapping[str, Any]
) -> Registered | Refusal:
    """Set fields of an endpoint, by the names and types of `NewEndpoint`, and whether it is `paused`. The URL was
    checked before (decisions 8.7). If it is failing, a changed URL or `paused: false` resets its health (8.4).
    Refusals: `404 not_found`; `422`: see `faulty_events` and `faulty_filter`.
    """
    found = find_endpoint(transaction, number, endpoint_id)
    if found is None:
        return Refusal("not_found")
    endpoint, changes = found.endpoint, dict(fields)
    events = fields.get("events", _read_events(endpoint.events))
    refusal = faulty_events(events, fields.get("environment", endpoint.environment))
    refusal = refusal or faulty_filter(transaction, number, fields.get("filter"))
    if refusal is not None:
        return refusal
    triggers: list[EndpointTrigger] = []
    if fields.get("url", endpoint.url) != endpoint.url:
        triggers.append("url_changed")
    if "paused" in changes:
        triggers.append("paused" if changes.pop("paused") else "resumed")
    if "events" in changes:  # as it is, a subscription may name types of a later version, and goes on doing so
        changes["events"] = _read_events(events)
    status = endpoint.status
    for trigger in triggers:
        status = ENDPOINT_TRANSITIONS[status][trigger]
    if {"url_changed", "resumed"} & set(triggers):
        before = health(transaction, found.queue)
        fresh = Health(last_attempt_at_ms=before.last_attempt_at_ms, owed=before.owed)
        transaction.put(ENDPOINT_HEALTH, found.queue, fresh)
    changed = msgspec.structs.replace(endpoint, **changes, status=status)
    transaction.put(ENDPOINTS, found.queue, changed)
    return Registered(found.queue, changed)


def remove_endpoint(transaction: Transaction, number: int, endpoint_id: str) -> EndpointKey | Refusal:
    """Remove an endpoint: no delivery to it begins after this commit. `sweep_removed` deletes its other rows, of which
    there may be a million. `404 not_found` for an unknown endpoint.
    """
    found = find_endpoint(transaction, number, endpoint_id)
    if found is None:
        return Refusal("not_found")
    transaction.delete(ENDPOINTS, *found.queue)
    transaction.delete(ENDPOINT_HEALTH, *found.queue)
    transaction.put(REMOVED_ENDPOINTS, found.queue, b"")
    return found.queue


def rotate_secret(
    transaction: Transaction, number: int, endpoint_id: str, *, overlap_hours: int, secrets_key: bytes, now_ms: int
) -> Issued | Refusal:
    """Create the next signing secret. The previous one also signs for `overlap_hours`, older ones do not (decisions
    8.1). Refusals: `404 not_found`, `409 webhook_unsigned` for a chat format.
    """
    found = find_endpoint(transaction, number, endpoint_id)
    if found is None:
        return Refusal("not_found")
    if found.endpoint.is_chat:
        return Refusal("webhook_unsigned")
    generation = found.endpoint.generation + 1
    secret = signing_secret(secrets_key, endpoint_id, generation)
    rotated = msgspec.structs.replace(
        found.endpoint,
        generation=generation,
        secret_last4=secret[-4:],
        previous_secret_expires_at_ms=now_ms + overlap_hours * 3_600_000 if overlap_hours else None,
    )
    transaction.put(ENDPOINTS, found.queue, rotated)
    return Issued(Registered(found.queue, rotated), secret)


def queue_sample(
    transaction: Transaction,
    number: int,
    endpoint_id: str,
    event_type: EventType,
    data: Any,
    *,
    event_id: UUID,
    now_ms: int,
    trace: TraceContext | None = None,
) -> Queued | Refusal:
    """Queue a `webhook.test` (decisions 8.5), or another event with made-up `data`, a struct of
    `svc.features.webhooks.content.payloads`, whether or not the endpoint subscribes to its type: one attempt. `404
    not_found`, `409 webhook_paused`, or `409 webhook_busy` while a test or redelivery is queued.
    """
    found = _not_busy(transaction, number, endpoint_id)
    if isinstance(found, Refusal):
        return found
    public_id = find_organization(transaction, number).id
    event = seal(event_id, event_type, found.endpoint.environment, public_id, data, now_ms, trace)
    transaction.put(WEBHOOK_EVENTS, (number, event_id.bytes), event)
    return _queue(transaction, found.queue, event_id, "test", now_ms)


def queue_redelivery(
    transaction: Transaction, number: int, endpoint_id: str, *, event_id: UUID, now_ms: int
) -> Queued | Refusal:
    """Queue one more delivery, with the same id, of an event that was queued for this endpoint in the last 30 days
    (decisions 8.5). Refusals: `404 not_found`, `409 webhook_paused`, or `409 webhook_busy` while a test or redelivery
    is queued.
    """
    found = find_endpoint(transaction, number, endpoint_id)
    if found is None or made_at_ms(event_id.bytes) < now_ms - HISTORY_MS:
        return Refusal("not_found")
    event = transaction.get(WEBHOOK_EVENTS, number, event_id.bytes)
    if event is None or event.created_at_ms < now_ms - HISTORY_MS:
        return Refusal("not_found")
    if not any(transaction.has(DELIVERIES, *found.queue, event_id.bytes, kind) for kind in range(len(DELIVERY_KINDS))):
        return Refusal("not_found")
    free = _not_busy(transaction, number, endpoint_id)
    return free if isinstance(free, Refusal) else _queue(transaction, found.queue, event_id, "redelivery", now_ms)


def faulty_events(events: Sequence[str], environment: WebhookEnvironment) -> Refusal | None:
    """Return `422` for a type that does not exist (`unknown_event_type`) or needs a `live` endpoint (`requires_live`,
    interface 6); `None` if the endpoint may subscribe to all of them.
    """
    if not set(events) <= set(EVENT_TYPES):
        return invalid("events", "unknown_event_type")
    return invalid("events", "requires_live") if environment != "live" and LIVE_ONLY & set(events) else None


def faulty_filter(snapshot: Snapshot, number: int, condition: str | None) -> Refusal | None:
    """Return `422` (`invalid_condition`, `too_expensive`) for a condition that cannot be saved, with the reason in the
    message; `None` if it can be saved, or there is none (decisions 13.4, 16.2).
    """
    problem = None if condition is None else filter_problem(condition, list_prefixes(snapshot, number))
    if problem is None:
        return None
    issue, words = problem
    return invalid("filter", issue, explanation=f"filter: {words}")


def _not_busy(transaction: Transaction, number: int, endpoint_id: str) -> Registered | Refusal:
    found = find_endpoint(transaction, number, endpoint_id)
    if found is None:
        return Refusal("not_found")
    if found.endpoint.status == "paused":
        return Refusal("webhook_paused")
    return Refusal("webhook_busy") if transaction.has(MANUAL, *found.queue) else found


def _queue(transaction: Transaction, queue: EndpointKey, event_id: UUID, kind: DeliveryKind, now_ms: int) -> Queued:
    key = DeliveryKey(event_id.bytes, kind)
    transaction.put(MANUAL, queue, key)
    open_deliveries(transaction, [queue], key, now_ms)
    return Queued(queue, event_id)


def _read_events(events: Sequence[str]) -> tuple[EventType, ...]:
    """Return each event type once, in the order of the interface."""
    return tuple(event_type for event_type in EVENT_TYPES if event_type in events)
