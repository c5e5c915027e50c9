"""After an outage: deliveries that ended `failed` begin again (decisions 8.2, 8.4).

What may live here: which deliveries are recovered, and what becomes of them. The caller does it in steps, since an
outage may have failed any number: each step reads one piece of the log and changes what that piece names.
"""

from __future__ import annotations

from collections.abc import Iterable

from svc.domain.webhooks.records import HISTORY_MS, DeliveryKey, EndpointKey
from svc.store.schema.tables import DELIVERIES, ENDPOINTS, WEBHOOK_EVENTS
from svc.store.snapshot import Transaction
from svc.store.transactions.webhooks.deliveries import open_delivery


def recover_deliveries(transaction: Transaction, queue: EndpointKey, event_ids: Iterable[bytes], now_ms: int) -> int:
    """Queue failed deliveries of these events (16-byte ids) for the endpoint again; returns how many were queued.

    The automatic delivery itself is opened again, due at once, with all its nine attempts counted from 1: same id, same
    bytes. The log keeps what was tried before. What is in progress, was delivered, erased or is older than 30 days is
    left alone, so that doing it twice queues nothing twice. Where the endpoint is paused they wait with the others.

    A test or redelivery is not queued again: it was asked for and can be asked for again. But an event that a
    redelivery has brought counts as delivered.
    """
    if not transaction.has(ENDPOINTS, *queue):
        return 0
    recovered = 0
    for event_id in event_ids:
        if _never_arrived(transaction, queue, event_id) and _is_kept(transaction, queue, event_id, now_ms):
            open_delivery(transaction, queue, DeliveryKey(event_id, "auto"), now_ms)
            recovered += 1
    return recovered


def _never_arrived(transaction: Transaction, queue: EndpointKey, event_id: bytes) -> bool:
    keys = (DeliveryKey(event_id, "auto"), DeliveryKey(event_id, "redelivery"))
    automatic, redelivery = (transaction.get(DELIVERIES, *queue, key.event_id, key.place) for key in keys)
    if automatic is None or automatic.state != "failed":
        return False
    return redelivery is None or redelivery.state != "delivered"


def _is_kept(transaction: Transaction, queue: EndpointKey, event_id: bytes, now_ms: int) -> bool:
    event = transaction.get(WEBHOOK_EVENTS, queue.organization, event_id)
    return event is not None and event.created_at_ms >= now_ms - HISTORY_MS
