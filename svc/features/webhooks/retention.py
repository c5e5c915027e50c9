"""What belongs to webhook events and attempts that have expired."""

from __future__ import annotations

from svc.features.contracts.cleanup import Purge
from svc.features.webhooks.jobs.deliveries import purge_webhook_event
from svc.features.webhooks.queries import attempt_index_keys
from svc.features.webhooks.tables import ATTEMPT_COUNTS, ATTEMPTS, WEBHOOK_EVENTS
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import EVENT_ROWS


def _purge_attempt(transaction: Transaction, number: int, attempt_id: bytes) -> None:
    """With its index rows, and with the count of its minute, which nothing counts any more."""
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
