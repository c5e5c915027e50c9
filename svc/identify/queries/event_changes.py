"""Notes that a stored event was changed or erased, for those who follow changes (decisions 19, ADR 221).

A note has a place of its own in the order of the feed: never in the part that is closed (`features/feed/jobs.py`), nor
before its event, nor before an earlier note. So notes are in the order of their commits on all workers and nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from svc.identify.events.listing import CHANGE_KINDS, ChangeKind
from svc.identify.index.queries import Scope
from svc.identify.tables import EVENT_CHANGES, FEED_CLOSED
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction

ChangeKey = tuple[int, int, int, int, int, bytes]
"""Organization, index of the environment, time of the place (Unix ms), sequence, index of the kind, request id."""


def note_changes(
    transaction: Transaction, scope: Scope, kind: ChangeKind, now_ms: int, events: Sequence[tuple[bytes, int]]
) -> None:
    """Note that events were changed or erased at `now_ms`, in this order: each by the 16 bytes of its id and the time
    of its own place. Times are Unix milliseconds. One row of changes is read.
    """
    last: tuple[int, int] | None = None
    for request_id, not_before_ms in events:
        wanted_ms = max(now_ms, not_before_ms)

        def open_ms(closed_to_ms: int | None, wanted_ms: int = wanted_ms) -> int:
            return wanted_ms if closed_to_ms is None else max(wanted_ms, closed_to_ms + 1)

        at_ms, sequence = transaction.ask(FEED_CLOSED, scope, open_ms), 0
        if last is None:
            newest = newest_change(transaction, scope, at_ms)
            last = None if newest is None else newest[2:4]
        if last is not None and last[0] >= at_ms:
            at_ms, sequence = last[0], last[1] + 1
        last = at_ms, sequence
        transaction.put(EVENT_CHANGES, (*scope, at_ms, sequence, CHANGE_KINDS.index(kind), request_id), now_ms)


def newest_change(snapshot: Snapshot, scope: Scope, from_ms: int, before_ms: int | None = None) -> ChangeKey | None:
    """Return the key of the newest readable note whose place is from `from_ms` on and before `before_ms`, if any."""
    beyond = (scope.number, scope.environment + 1) if before_ms is None else (*scope, before_ms)
    found = snapshot.scan_past_corruption(EVENT_CHANGES, (*scope, from_ms), beyond, reverse=True)
    return next((cast("ChangeKey", key) for key, made_ms in found if not isinstance(made_ms, CorruptionError)), None)


def changes_from(
    snapshot: Snapshot, scope: Scope, first: tuple[int, int], to_ms: int
) -> Iterator[tuple[ChangeKey, int]]:
    """Yield (key, when it was made) of the readable notes from a time and sequence on, up to and including `to_ms`."""
    found = snapshot.scan_past_corruption(EVENT_CHANGES, (*scope, *first), (*scope, to_ms + 1))
    return ((cast("ChangeKey", key), made_ms) for key, made_ms in found if not isinstance(made_ms, CorruptionError))
