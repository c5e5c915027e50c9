"""The rule of velocity rows: whatever event is stored is counted with its visitor, account and address."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from svc.domain.accounts.velocity import LONGEST_S, MOST, OTHERS, SUBJECTS, VelocityRow
from svc.store.schema.tables import EVENTS, VELOCITY, VISITOR_IDS
from svc.store.snapshot import Snapshot
from svc.store.views.velocity import party_of, row_key

SAFE_S = LONGEST_S - 24 * 3600
"""So long before the last event of a row nothing has left it."""


def velocity_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Events of an organization that a row of their subjects does not count, in words. Events of earlier versions have
    none.
    """
    for (_, request_id), event in snapshot.scan(EVENTS, number):
        if event.velocity is None:
            continue
        visitor = snapshot.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
        who = party_of(number, event, visitor)
        for subject in SUBJECTS:
            if who.id_of(subject) is None:
                continue
            period = who.at_s // LONGEST_S
            keys = (row_key(who, subject, period + 1), row_key(who, subject, period))
            row = next((row for key in keys if (row := snapshot.get(VELOCITY, *key)) is not None), None)
            others = dict(zip(OTHERS[subject], who.others_of(subject), strict=True))
            for fault in _uncounted(row, who.at_s, others):
                yield f"event {UUID(bytes=request_id)} of organization {number}: {fault} of its {subject}"


def _uncounted(row: VelocityRow | None, at_s: int, others: dict[str, int | None]) -> Iterator[str]:
    if row is None:
        yield "there is no velocity"
        return
    if at_s <= row.last_s - SAFE_S:
        return
    if at_s not in row.events and len(row.events) < MOST:
        yield "it is not among the events"
    for (kind, other), seen in zip(others.items(), row.others, strict=False):
        if other is not None and other not in seen.ids and len(seen.ids) < MOST:
            yield f"it is not among the {kind}"
