"""The one transaction of a deferred report: kept with its event, once, and nothing else changes (interface 2.4)."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from svc.domain.records import DeferredReport
from svc.domain.refusals import Refusal
from svc.store.snapshot import Transaction
from svc.store.tables import DEFERRED_REPORTS, EVENTS


def supplement(
    transaction: Transaction, number: int, request_id: UUID, report: DeferredReport
) -> Literal["accepted", "accepted_before"] | Refusal:
    """Keep the first report of a request; the same again changes nothing, another is a conflict (interface 3)."""
    key = (number, request_id.bytes)
    kept = transaction.get(DEFERRED_REPORTS, *key)
    if kept is not None:
        return "accepted_before" if kept.digest == report.digest else Refusal("supplement_conflict")
    if not transaction.has(EVENTS, *key):
        return Refusal("invalid_supplement", reason="the event has been erased")
    transaction.put(DEFERRED_REPORTS, key, report)
    return "accepted"
