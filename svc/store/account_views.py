"""An organization's money as it is read: what a day came to, what was given, how its billing status changed. Queries
over a snapshot; they change nothing.
"""

from __future__ import annotations

from itertools import islice

from svc.domain.billing import BillingChange, LedgerEntry, Settlement
from svc.store.snapshot import Snapshot
from svc.store.tables import BILLING_CHANGES, CREDITS, LEDGER, SETTLEMENTS


def newest_settlements(snapshot: Snapshot, number: int, limit: int) -> list[tuple[int, Settlement]]:
    """(UTC day since 1970, what it came to) of the last settled days, newest first."""
    rows = snapshot.scan_reverse(SETTLEMENTS, (number,), (number + 1,))
    return [(day, settled) for (_, day), settled in islice(rows, limit)]


def newest_credits(snapshot: Snapshot, number: int, limit: int) -> list[LedgerEntry]:
    """The last credits on the ledger, newest first; a negative one was taken back. Reads no charge, however many there
    are.
    """
    keys = snapshot.scan_keys_reverse(CREDITS, (number,), (number + 1,))
    lines = (snapshot.get(LEDGER, *key) for key in islice(keys, limit))
    return [line for line in lines if line is not None]


def newest_billing_changes(snapshot: Snapshot, number: int, limit: int) -> list[BillingChange]:
    """The last changes of the billing status, newest first."""
    rows = snapshot.scan_reverse(BILLING_CHANGES, (number,), (number + 1,))
    return [change for _, change in islice(rows, limit)]
