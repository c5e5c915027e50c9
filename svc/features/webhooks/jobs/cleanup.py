"""Erasure of webhook events about identifications, and what goes with events and attempts that have expired."""

from __future__ import annotations

from uuid import UUID

from svc.features.contracts.cleanup import Purge
from svc.features.contracts.erased import Erased, Forgetting, Keys
from svc.features.webhooks.content.envelope import identification_event_id
from svc.features.webhooks.content.payloads import OF_IDENTIFICATION
from svc.features.webhooks.jobs.deliveries import (
    erase_identification,
    purge_webhook_event,
    remove_account,
    webhook_event_rows,
)
from svc.features.webhooks.queries import attempt_index_keys
from svc.features.webhooks.tables import ATTEMPT_COUNTS, ATTEMPTS, DELIVERIES, DUE, MANUAL, WEBHOOK_EVENTS
from svc.identify.records import Event
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import EVENT_ROWS


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
