"""Closing the feed: what makes sure that no event comes behind a position that is given out (ADR 130)."""

from __future__ import annotations

from svc.features.feed.queries import closed_to_ms
from svc.identify.index.queries import Scope
from svc.identify.tables.events import FEED_CLOSED
from svc.kernel.store.snapshot import Transaction


def close(transaction: Transaction, scope: Scope, to_ms: int) -> int:
    """Close the feed up to and including `to_ms` (any Unix ms): events stored from then on get a position after it.
    Return the time up to which it is closed now, which may be later.

    This relies on conflict detection: a job that writes this row and a job that has read it, to store an event, are
    never both committed unless one has seen the other.
    """
    closed = closed_to_ms(transaction, scope)
    if to_ms > closed:
        transaction.put(FEED_CLOSED, scope, to_ms)
    return max(closed, to_ms)
