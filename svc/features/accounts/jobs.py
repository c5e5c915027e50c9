"""Transactions that count the events of an upgraded store.

They run after an upgrade from a version without velocity. A recount (decisions 11.3, docs/adr/0192) counts the newest
events first, and writes in the same transaction how far it came. So each event is counted once, whatever interrupts
it, and counts are always of everything since some time.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from svc.identify.queries.velocity import event_subjects, is_replay
from svc.identify.recording.velocity import count_stored
from svc.identify.tables import ACCOUNT_ERASURES, EVENTS, RECOUNTS, VISITOR_IDS
from svc.identify.velocity.counts import LONGEST_S, Recount
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.queries import is_removed
from svc.kernel.values.ids import first_id

MAX_EVENTS = 20
"""In one step. Each reads its row and its visitor's number, and reads and writes at most four rows of counts."""


def begin(transaction: Transaction, newest: Mapping[int, bytes]) -> None:
    """Note that no old event is counted. `newest`: the id of the newest one by the number of its organization."""
    for number, request_id in newest.items():
        above = (int.from_bytes(request_id) + 1).to_bytes(16)
        transaction.put(RECOUNTS, (number,), Recount(above))


class Pending(NamedTuple):
    """A recount that is under way."""

    number: int
    """Of the organization."""
    recount: Recount


def pending(snapshot: Snapshot) -> list[Pending]:
    """Return the recounts that are not complete, by the number of their organization."""
    return [Pending(number, recount) for (number,), recount in snapshot.scan(RECOUNTS) if not recount.is_complete]


def step(transaction: Transaction, number: int, now_ms: int) -> Recount | None:
    """Count the next events of an organization and return how far that is; `None` if it has nothing to count. Events
    that cannot be read are left out.
    """
    recount = transaction.get(RECOUNTS, number)
    if recount is None or recount.is_complete or is_removed(transaction, number):
        return None
    oldest, counted = first_id(now_ms - 1000 * LONGEST_S), 0
    start, end = (number, min(oldest, recount.counted_from)), (number, recount.counted_from)
    rows = list(islice(transaction.scan_past_corruption(EVENTS, start, end, reverse=True), MAX_EVENTS))
    for (_, request_id), event in rows:
        if isinstance(event, CorruptionError) or event.velocity is not None or is_replay(event.verdict.signals or ()):
            continue
        visitor = transaction.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
        who = event_subjects(number, request_id, event, visitor)
        if who.account is not None and transaction.has(ACCOUNT_ERASURES, number, who.account):
            who = who._replace(account=None, counted_account=None)
        count_stored(transaction, who, now_ms // 1000, is_verified=event.account_verified)
        counted += 1
    is_complete = len(rows) < MAX_EVENTS
    counted_from = start[1] if is_complete else rows[-1][0][1]
    after = Recount(counted_from, recount.events + counted, is_complete)
    transaction.put(RECOUNTS, (number,), after)
    return after
