"""Changes to a stored event: account, action, tag and label from a backend (decisions 11.2, 14.1), and a
deferred report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from uuid import UUID

import msgspec

from svc.features.labels.jobs import LabelChange, Labeled, label_request, rewrite_labeled
from svc.features.webhooks.jobs.cleanup import remove_account
from svc.identify.queries.events import event_by_request, refuse_hidden
from svc.identify.queries.velocity import event_subjects, is_counted
from svc.identify.recording.velocity import move_event, verify_pair
from svc.identify.records import RETENTION_MS, AsSent, DeferredReport, Event
from svc.identify.tables import DEFERRED_REPORTS, EVENTS, VISITOR_IDS
from svc.kernel.limits.quotas import Quotas, has_capacity, may_archive, row_bytes, seconds_to_midnight
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.jobs import add, ask
from svc.kernel.tenants.queries import share_in_force
from svc.kernel.values.fields import Environment
from svc.kernel.values.refusals import Refusal, over_day, over_share


def change_event(
    transaction: Transaction,
    number: int,
    environment: Environment,
    request_id: UUID,
    fields: Mapping[str, str | None],
    now_ms: int,
    retention_ms: int,
    label: LabelChange = LabelChange(),  # noqa: B008  immutable
) -> Event | Labeled | Refusal:
    """Set `account_id`, `action` and `tag` of an event to these values, where `None` removes one, and change its label.
    Refusals: `404 event_not_found`, `422` for a reason without a label.

    The event keeps its visitor, score and velocity, and what its request said (`AsSent`); the counts of accounts,
    visitors and addresses are updated, and an account that is set is verified (`svc.identify.velocity.record`).
    Webhooks about it that are still to be sent no longer name an account that it had: the erasure of that account would
    not find them. Of an event that is past its retention only the label can be changed, and it is returned.
    """
    before = event_by_request(transaction, number, environment, request_id, now_ms, retention_ms)
    if before is None and not fields:
        return label_request(transaction, number, request_id.bytes, label, now_ms, environment)
    if before is None:
        return Refusal("event_not_found")
    labeled = label.upon(Labeled(before.label, before.label_reason))
    if isinstance(labeled, Refusal):
        return labeled
    after = msgspec.structs.replace(before, **fields, label=labeled.label, label_reason=labeled.reason)
    if "account_id" in fields:
        after = msgspec.structs.replace(after, account_verified=after.account_id is not None)
    after = msgspec.structs.replace(after, as_sent=_as_sent(before, after))
    if after == before:
        return before
    rewrite_labeled(transaction, number, request_id.bytes, before, after, now_ms)
    if before.account_id not in (None, after.account_id):
        remove_account(transaction, number, request_id)
    if fields.keys() & {"account_id", "action"} and is_counted(transaction, number, request_id.bytes, before):
        visitor = transaction.get(VISITOR_IDS, number, before.verdict.visitor_id.encode())
        was, is_now = (event_subjects(number, request_id.bytes, event, visitor) for event in (before, after))
        move_event(transaction, before, was, is_now, now_ms)
        if "account_id" in fields:
            verify_pair(transaction, is_now)
    return after


def _as_sent(before: Event, after: Event) -> AsSent | None:
    said = before.as_sent or AsSent(True, before.account_verified, before.action, before.tag)
    if after.account_id != before.account_id:
        said = msgspec.structs.replace(said, is_same_account=False)
    return None if said == AsSent(True, after.account_verified, after.action, after.tag) else said


def supplement(
    transaction: Transaction,
    number: int,
    request_id: UUID,
    report: DeferredReport,
    quotas: Quotas = Quotas(),  # noqa: B008  immutable
    capacity_bytes: int = 1 << 60,
) -> Literal["accepted", "accepted_before"] | Refusal:
    """Store the first deferred report of a request; the same report again changes nothing, another one is a conflict
    (interface 3). It counts as an archived report (decisions 4): refused with `429` until midnight over the day's
    budget, with `503` over the organization's share of the store. Raises `CorruptionError` if a corrupt table hides the
    event.
    """
    key = (number, request_id.bytes)
    kept = transaction.get(DEFERRED_REPORTS, *key)
    if kept is not None:
        return "accepted_before" if kept.digest == report.digest else Refusal("supplement_conflict")
    event = transaction.get(EVENTS, *key)
    if event is None:
        refuse_hidden(transaction, number, request_id, report.received_at_ms, RETENTION_MS)
        return Refusal("invalid_supplement", reason="the event has been erased")
    at_ms, production = report.received_at_ms, event.environment == "production"
    if not ask(transaction, number, at_ms, lambda held: has_capacity(held, quotas, capacity_bytes)):
        share = share_in_force(transaction, quotas.store_share)
        alone = quotas._replace(store_share=share)
        if not ask(transaction, number, at_ms, lambda held: has_capacity(held, alone, capacity_bytes)):
            return over_share()
    bytes_sent = len(report.signals)
    if not ask(transaction, number, at_ms, lambda held: may_archive(held, quotas, bytes_sent, production=production)):
        seconds = seconds_to_midnight(at_ms)
        return over_day("its archived reports of today", seconds, reason="over the day's budget of archived reports")
    length = transaction.put(DEFERRED_REPORTS, key, report)
    add(transaction, number, at_ms, lambda held: held.with_report(row_bytes(length), production=production))
    return "accepted"
