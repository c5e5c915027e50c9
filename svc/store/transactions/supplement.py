"""The one transaction of a deferred report: kept with its event, once, and nothing else changes (interface 2.4)."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from svc.domain.limits.quotas import Quotas, has_capacity, may_archive, row_bytes, seconds_to_midnight
from svc.domain.records import DeferredReport
from svc.domain.refusals import Refusal, over_day, over_share
from svc.store.schema.tables import DEFERRED_REPORTS, EVENTS
from svc.store.snapshot import Transaction
from svc.store.transactions.holdings import add, ask


def supplement(
    transaction: Transaction,
    number: int,
    request_id: UUID,
    report: DeferredReport,
    quotas: Quotas = Quotas(),  # noqa: B008  immutable
    capacity_bytes: int = 1 << 60,
) -> Literal["accepted", "accepted_before"] | Refusal:
    """Keep the first report of a request; the same again changes nothing, another is a conflict (interface 3).

    It counts as an archived report (decisions 4): over the budget of the day it is `429` until midnight, over the
    organization's share of the store `503`.
    """
    key = (number, request_id.bytes)
    kept = transaction.get(DEFERRED_REPORTS, *key)
    if kept is not None:
        return "accepted_before" if kept.digest == report.digest else Refusal("supplement_conflict")
    event = transaction.get(EVENTS, *key)
    if event is None:
        return Refusal("invalid_supplement", reason="the event has been erased")
    at_ms, production = report.received_at_ms, event.environment == "production"
    if not ask(transaction, number, at_ms, lambda held: has_capacity(held, quotas, capacity_bytes)):
        return over_share()
    bytes_sent = len(report.signals)
    if not ask(transaction, number, at_ms, lambda held: may_archive(held, quotas, bytes_sent, production=production)):
        seconds = seconds_to_midnight(at_ms)
        return over_day("its archived reports of today", seconds, reason="over the day's budget of archived reports")
    length = transaction.put(DEFERRED_REPORTS, key, report)
    add(transaction, number, at_ms, lambda held: held.with_report(row_bytes(length), production=production))
    return "accepted"
