"""Refused identifications, counted by the minute for subscribers of `identification.refused` (decisions 8.9); and what
erasure and retention delete of webhooks.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from svc.features.contracts.cleanup import Purge
from svc.features.contracts.erased import Erased, Forgetting, Keys
from svc.features.webhooks.content.envelope import identification_event_id
from svc.features.webhooks.content.payloads import OF_IDENTIFICATION
from svc.features.webhooks.jobs.deliveries import (
    enqueue,
    erase_identification,
    purge_webhook_event,
    remove_account,
    webhook_event_rows,
)
from svc.features.webhooks.queries import attempt_index_keys
from svc.features.webhooks.records import webhook_environment
from svc.features.webhooks.refused import Noted, note, notify
from svc.features.webhooks.tables import ATTEMPT_COUNTS, ATTEMPTS, DELIVERIES, DUE, MANUAL, REFUSALS, WEBHOOK_EVENTS
from svc.identify.records import Event
from svc.kernel.net.trace_context import TraceContext
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import EVENT_ROWS
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refused_requests import RefusedRequest


class Notified(NamedTuple):
    """The queues to which a refusal, or the end of its minute, added an event, and the refusals that are kept."""

    queues: tuple[EndpointKey, ...]
    """Those in which an event of them is due."""
    due_ms: int | None
    """When to look at them again; `None` = nothing is kept of them."""


def note_refusal(transaction: Transaction, request: RefusedRequest) -> Notified:
    """Count a refused identification (or several alike), and queue `identification.refused` if a minute has passed
    since the last such event (decisions 8.9).
    """
    row = (request.organization, request.name)
    noted = note(transaction.get(REFUSALS, *row), request)
    return _keep(transaction, row, noted, request.occurred_at_ms, request.trace)


def notify_refusals(transaction: Transaction, organization: int, name: str, now_ms: int) -> Notified:
    """Queue, at the end of a minute, `identification.refused` with the refusals counted since the last such event, or
    stop counting if there were none. `name`: see `RefusedRequest.name`.
    """
    before = transaction.get(REFUSALS, organization, name)
    if before is None:
        return Notified((), None)
    key_id, _, code = name.partition("/")
    return _keep(transaction, (organization, name), notify(before, key_id, code, now_ms), now_ms)


def _keep(
    transaction: Transaction, row: tuple[int, str], noted: Noted, now_ms: int, trace: TraceContext | None = None
) -> Notified:
    organization, _ = row
    if noted.kept is None:
        transaction.delete(REFUSALS, *row)
        return Notified((), None)
    transaction.put(REFUSALS, row, noted.kept)
    if noted.event is None:
        return Notified((), noted.kept.due_ms)
    environment = webhook_environment(noted.event.environment)
    queues = enqueue(transaction, organization, "identification.refused", environment, noted.event, now_ms, trace)
    return Notified(queues, noted.kept.due_ms)


def _of_event(snapshot: Snapshot, number: int, request_id: bytes, _: Event) -> Keys:
    for event_type in OF_IDENTIFICATION:
        event_id = identification_event_id(event_type, UUID(bytes=request_id))
        yield from webhook_event_rows(snapshot, number, event_id.bytes)


ERASED = {"erase_identification": Erased((WEBHOOK_EVENTS, DELIVERIES, DUE, MANUAL), of_event=_of_event)}
FORGET = Forgetting(event=erase_identification, account_of_event=remove_account)


def _purge_attempt(transaction: Transaction, number: int, attempt_id: bytes) -> None:
    """Delete an attempt, its index rows, and the count of its minute, which has expired with it."""
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
