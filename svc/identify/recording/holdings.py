"""What an organization holds of the store, counted by reading its rows."""

from __future__ import annotations

from svc.identify.tables.events import DEFERRED_REPORTS, DOCUMENTS, EVENTS
from svc.identify.tables.visitors import VISITORS
from svc.kernel.limits.quotas import Holding, row_bytes
from svc.kernel.store.snapshot import Snapshot

REPORTS = (DOCUMENTS, DEFERRED_REPORTS)
"""Where archived reports lie."""


def report_bytes(snapshot: Snapshot, number: int, request_id: bytes) -> int:
    """Return the `row_bytes` of the archived reports of an event; 0 if it has none."""
    return sum(row_bytes(snapshot.length(table, number, request_id)) for table in REPORTS)


def counted(snapshot: Snapshot, number: int) -> Holding:
    """Return what an organization holds, by reading every row; the counts of the day are zero, and keys are not
    counted.
    """
    found = Holding()
    for table in REPORTS:
        for key in snapshot.scan_keys_reverse(table, (number,), (number + 1,)):
            found = found.plus(report_bytes=row_bytes(snapshot.length(table, *key)))
    events = sum(1 for _ in snapshot.scan_keys_reverse(EVENTS, (number,), (number + 1,)))
    visitors = sum(1 for _ in snapshot.scan_keys_reverse(VISITORS, (number,), (number + 1,)))
    return found.plus(events=events, visitors=visitors)
