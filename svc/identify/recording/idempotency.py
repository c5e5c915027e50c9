"""Idempotency keys: a request that repeats an earlier one gets its response and changes nothing (decisions 3.2)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from uuid import UUID

from svc.identify.events.archive import inflate
from svc.identify.identification import Duplicate, Submission
from svc.identify.records import IDEMPOTENCY_MS, REPLAYED_MS, Event, Idempotency
from svc.identify.tables import DOCUMENTS, EVENTS, IDEMPOTENCY
from svc.kernel.store.snapshot import Transaction


def repeated_request(transaction: Transaction, submission: Submission) -> Callable[[int], Duplicate] | None:
    """Return a function from the balance to the response, if another request had this idempotency key within
    `IDEMPOTENCY_MS`; else `None`.
    """
    if submission.idempotency is None:
        return None
    earlier = transaction.get(IDEMPOTENCY, submission.organization, submission.idempotency)
    if earlier is None or submission.at_ms - earlier.at_ms >= IDEMPOTENCY_MS:
        return None
    original = _original(transaction, submission, earlier.request_id)
    return partial(Duplicate, UUID(bytes=earlier.request_id), original=original)


def note_idempotency(transaction: Transaction, submission: Submission) -> None:
    """Store the idempotency key of a request that was identified; do nothing if it has none."""
    if submission.idempotency is not None:
        row = Idempotency(submission.request_id.bytes, submission.at_ms)
        transaction.put(IDEMPOTENCY, (submission.organization, submission.idempotency), row)


def _original(transaction: Transaction, submission: Submission, request_id: bytes) -> Event | None:
    """Return the event of the earlier request if this one gets its response: it asks for that soon enough, with the
    same key and from the same origin (decisions 3.2). An idempotency key can be guessed or read, so it must come from
    the same address besides, or with the same report, as from a phone that changed its network. `None` if it was
    erased.
    """
    event = transaction.get(EVENTS, submission.organization, request_id) if submission.wants_original else None
    if event is None or abs(submission.at_ms - event.occurred_at_ms) > REPLAYED_MS:
        return None
    if (submission.key_id, submission.origin) != (event.key_id, event.origin):
        return None
    if event.ip_address == submission.facts.ip:
        return event
    document = transaction.get(DOCUMENTS, submission.organization, request_id)
    with suppress(zlib.error):
        if document is not None and inflate(document.signals) == submission.signals_json:
            return event
    return None
