"""Refused identifications, counted by the minute for subscribers of `identification.refused` (decisions 8.9): an event
at once, then at most one a minute per key and code, with a count. A flood costs the store little more.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import msgspec

from svc.features.webhooks.content.payloads import RefusedIdentification
from svc.features.webhooks.jobs.deliveries import enqueue
from svc.features.webhooks.records import Refusals, webhook_environment
from svc.features.webhooks.tables import REFUSALS
from svc.kernel.net.trace_context import TraceContext
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import RefusedRequest
from svc.kernel.values.struct_fields import body_of


class Noted(NamedTuple):
    """The result of a refusal or of a minute's end."""

    event: RefusedIdentification | None
    """To be queued now, if any."""
    kept: Refusals | None
    """What to remember; `None` = nothing."""


def note(before: Refusals | None, request: RefusedRequest) -> Noted:
    """Count one more refusal (or `count`). Return the event at once if the last one was a minute ago or more."""
    kept = body_of(
        Refusals,
        request,
        told_at_ms=request.occurred_at_ms if before is None else before.told_at_ms,
        count=request.count + (0 if before is None else before.count),
    )
    if before is not None and before.must_wait(request.occurred_at_ms):
        return Noted(None, kept)
    return _noted(kept, request.key_id, request.code, request.occurred_at_ms)


def notify(before: Refusals, key_id: str, code: str, now_ms: int) -> Noted:
    """Return the event that reports the refusals counted since the last one, once its minute has passed. Before that,
    return no event and keep `before`; if nothing was counted, return no event and keep nothing.
    """
    if before.must_wait(now_ms):
        return Noted(None, before)
    return _noted(before, key_id, code, now_ms) if before.count else Noted(None, None)


def _noted(refusals: Refusals, key_id: str, code: str, now_ms: int) -> Noted:
    request_id = str(UUID(bytes=refusals.request_id))
    event = body_of(RefusedIdentification, refusals, request_id=request_id, code=code, key_id=key_id)
    return Noted(event, msgspec.structs.replace(refusals, told_at_ms=now_ms, count=0))


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
