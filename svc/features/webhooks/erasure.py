"""Webhook events about identifications, with their deliveries."""

from __future__ import annotations

from uuid import UUID

from svc.features.contracts.erased import Erased, Forgetting, Keys
from svc.features.webhooks.content.envelope import identification_event_id
from svc.features.webhooks.content.payloads import OF_IDENTIFICATION
from svc.features.webhooks.jobs.deliveries import erase_identification, remove_account, webhook_event_rows
from svc.features.webhooks.tables import DELIVERIES, DUE, MANUAL, WEBHOOK_EVENTS
from svc.identify.records import Event
from svc.kernel.store.snapshot import Snapshot


def _of_event(snapshot: Snapshot, number: int, request_id: bytes, _: Event) -> Keys:
    for event_type in OF_IDENTIFICATION:
        event_id = identification_event_id(event_type, UUID(bytes=request_id))
        yield from webhook_event_rows(snapshot, number, event_id.bytes)


ERASED = {"erase_identification": Erased((WEBHOOK_EVENTS, DELIVERIES, DUE, MANUAL), of_event=_of_event)}
FORGET = Forgetting(event=erase_identification, account_of_event=remove_account)
