"""Erasure of webhook events about identifications, and what goes with events and attempts that have expired, and with
endpoints that were removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any
from uuid import UUID

import msgspec

from svc.features.contracts.cleanup import Purge
from svc.features.contracts.erased import Erased, Forgetting, Keys
from svc.features.webhooks.content.envelope import identification_event_id, without_account
from svc.features.webhooks.content.payloads import OF_IDENTIFICATION
from svc.features.webhooks.queries import attempt_index_keys
from svc.features.webhooks.records import DELIVERY_KINDS, Delivery, DeliveryKey
from svc.features.webhooks.tables import (
    ATTEMPT_COUNTS,
    ATTEMPTS,
    DELIVERIES,
    DUE,
    ENDPOINTS,
    MANUAL,
    REMOVED_ENDPOINTS,
    WEBHOOK_EVENTS,
)
from svc.identify.records import Event
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import EVENT_ROWS
from svc.kernel.values.partitions import EndpointKey


def erase_identification(transaction: Transaction, organization: int, request_id: UUID) -> None:
    """Delete the events of an identification and every delivery of them, open or ended (decisions 7.6).

    The log of attempts keeps their ids; it holds nothing of the visitor.
    """
    for event_type in OF_IDENTIFICATION:
        purge_webhook_event(transaction, organization, identification_event_id(event_type, request_id).bytes)


def remove_account(transaction: Transaction, organization: int, request_id: UUID) -> None:
    """Remove the account from the bodies of the webhooks about an identification (decisions 11.6)."""
    for event_type in OF_IDENTIFICATION:
        event_id = identification_event_id(event_type, request_id).bytes
        change_body(transaction, organization, event_id, without_account)


def change_body(transaction: Transaction, organization: int, event_id: bytes, change: Callable[[bytes], bytes]) -> bool:
    """Take something out of the body of a webhook event (16-byte id); return whether that changed it."""
    event = transaction.get(WEBHOOK_EVENTS, organization, event_id)
    if event is None or (body := change(event.body)) == event.body:
        return False
    transaction.put(WEBHOOK_EVENTS, (organization, event_id), msgspec.structs.replace(event, body=body))
    return True


def purge_webhook_event(transaction: Transaction, organization: int, event_id: bytes) -> int:
    """Delete an event (16-byte id) and every delivery of it; do nothing if there is none. An attempt in flight is still
    logged when it ends. Return how many rows there were.
    """
    rows = list(webhook_event_rows(transaction, organization, event_id))
    return sum(transaction.delete(table, *key) for table, key in rows)


def webhook_event_rows(
    snapshot: Snapshot, organization: int, event_id: bytes
) -> Iterator[tuple[Table[Any], tuple[Any, ...]]]:
    """Yield (table, key) of an event (16-byte id), of its deliveries, and of the schedule of open ones; nothing if
    there is no such event.
    """
    if not snapshot.has(WEBHOOK_EVENTS, organization, event_id):
        return
    yield WEBHOOK_EVENTS, (organization, event_id)
    present = list(snapshot.keys_of(ENDPOINTS, organization))
    removed = list(snapshot.keys_of(REMOVED_ENDPOINTS, organization))
    for queue in (EndpointKey(*key) for key in present + removed):
        for kind in DELIVERY_KINDS:
            key = DeliveryKey(event_id, kind)
            delivery = snapshot.get(DELIVERIES, *queue, event_id, key.kind_index)
            if delivery is not None:
                yield from _delivery_rows(queue, key, delivery)


def _delivery_rows(
    queue: EndpointKey, key: DeliveryKey, delivery: Delivery
) -> Iterator[tuple[Table[Any], tuple[Any, ...]]]:
    yield DELIVERIES, (*queue, key.event_id, key.kind_index)
    if delivery.is_open:
        yield DUE, (*queue, delivery.due_ms, key.event_id, key.kind_index)
        if key.kind != "auto":
            yield MANUAL, tuple(queue)


def sweep_removed(transaction: Transaction, queue: EndpointKey, limit: int) -> None:
    """Delete up to `limit` remaining rows of a removed endpoint."""
    deliveries = list(islice(transaction.scan(DELIVERIES, *queue), limit))
    for (*_, event_id, kind_index), delivery in deliveries:
        for table, row in _delivery_rows(queue, DeliveryKey(event_id, DELIVERY_KINDS[kind_index]), delivery):
            transaction.delete(table, *row)
    counts = list(islice(transaction.scan(ATTEMPT_COUNTS, *queue), limit - len(deliveries)))
    for key, _ in counts:
        transaction.delete(ATTEMPT_COUNTS, *key)
    if len(deliveries) + len(counts) < limit:
        transaction.delete(REMOVED_ENDPOINTS, *queue)


def _of_event(snapshot: Snapshot, number: int, request_id: bytes, _: Event) -> Keys:
    for event_type in OF_IDENTIFICATION:
        event_id = identification_event_id(event_type, UUID(bytes=request_id))
        yield from webhook_event_rows(snapshot, number, event_id.bytes)


ERASED = {"erase_identification": Erased((WEBHOOK_EVENTS, DELIVERIES, DUE, MANUAL), of_event=_of_event)}
FORGET = Forgetting(event=erase_identification, account_of_event=remove_account)


def _purge_attempt(transaction: Transaction, number: int, attempt_id: bytes) -> None:
    """Delete an attempt with its index rows, and the count of its minute, which nothing adds up any more."""
    attempt = transaction.get(ATTEMPTS, number, attempt_id)
    assert attempt is not None
    transaction.delete(ATTEMPTS, number, attempt_id)
    for table, key in attempt_index_keys(number, attempt_id, attempt):
        transaction.delete(table, *key)
    transaction.delete(ATTEMPT_COUNTS, number, attempt.endpoint, attempt.occurred_at_ms // 60_000)


PASSES: tuple[()] = ()
PURGED_BY = {
    WEBHOOK_EVENTS.name: Purge(purge_webhook_event, EVENT_ROWS),
    ATTEMPTS.name: Purge(_purge_attempt),
}
