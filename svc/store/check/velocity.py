"""The rule of velocity rows: whatever event of the last 30 days is stored is counted with its visitor, account and
address. Events may be kept for longer, and are in no window then.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from svc.domain.accounts.velocity import LONGEST_S, MOST, OTHERS, SUBJECTS, VelocityRow
from svc.store.schema.tables import ACCOUNT_ERASURES, EVENTS, RETENTION_PASSES, VELOCITY, VISITOR_IDS
from svc.store.snapshot import Snapshot
from svc.store.views.velocity import party_of, row_key

SAFE_S = LONGEST_S - 24 * 3600
"""So long before the last event of a row nothing has left it."""


def velocity_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield events of an organization that a row of their subjects does not count, in words. Events of earlier versions
    have none, and an account that is being erased is in some rows no longer.
    """
    made = snapshot.get(RETENTION_PASSES, number)
    kept_from_s = 0 if made is None else made.began_at_ms // 1000 - LONGEST_S  # retention may have deleted older rows
    for (_, request_id), event in snapshot.scan(EVENTS, number):
        if event.velocity is None or event.occurred_at_ms // 1000 < kept_from_s:
            continue
        visitor = snapshot.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
        who = party_of(number, event, visitor)
        if who.account is not None and snapshot.has(ACCOUNT_ERASURES, number, who.account):
            who = who._replace(account=None)
        for subject in SUBJECTS:
            if who.id_of(subject) is None:
                continue
            period = who.at_s // LONGEST_S
            keys = (row_key(who, subject, period + 1), row_key(who, subject, period))
            others = dict(zip(OTHERS[subject], who.others_of(subject), strict=True))
            # That of its own period has an event which was committed after one of the next period.
            rows = [row for key in keys if (row := snapshot.get(VELOCITY, *key)) is not None]
            faults = [list(_uncounted(row, who.at_s, others)) for row in rows]
            for fault in min(faults, key=len, default=["there is no velocity"]):
                yield f"event {UUID(bytes=request_id)} of organization {number}: {fault} of its {subject}"


def _uncounted(row: VelocityRow, at_s: int, others: dict[str, int | None]) -> Iterator[str]:
    if at_s <= row.last_s - SAFE_S:
        return
    if at_s not in row.events and _is_kept(row.events, at_s):
        yield "it is not among the events"
    for (kind, other), seen in zip(others.items(), row.others, strict=False):
        if other is not None and other not in seen.ids and _is_kept(seen.times, at_s):
            yield f"it is not among the {kind}"


def _is_kept(times: tuple[int, ...], at_s: int) -> bool:
    """Whether a list with entries of these times has one of this time, if it counted it. A full list has cut older ones
    off, and where it is not full, an erasure or another account may have taken entries away since.
    """
    return 0 < len(times) < MOST and at_s > times[0]
