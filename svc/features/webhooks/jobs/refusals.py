"""Refused identifications, counted by the minute for subscribers of `identification.refused` (decisions 8.9)."""

from __future__ import annotations

from typing import NamedTuple

from svc.features.webhooks.jobs.deliveries import enqueue
from svc.features.webhooks.records import webhook_environment
from svc.features.webhooks.refused import Noted, note, notify
from svc.features.webhooks.tables import REFUSALS
from svc.kernel.net.trace_context import TraceContext
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import RefusedRequest


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
