"""How far the credit of organizations goes, for reading (decisions 16.4).

The charges of the last days are read from the counters of hours, however many identifications they are. Those of events
that were erased since are not in them.
"""

from __future__ import annotations

from itertools import islice, takewhile
from typing import NamedTuple

from svc.domain.billing import WARNED_DAYS, Credit, credit_outlook
from svc.domain.events.hour_counts import HOUR_MS
from svc.domain.ids import DAY_MS, first_id
from svc.store.schema.tables import LEDGER
from svc.store.snapshot import Snapshot
from svc.store.views.hours import hours
from svc.store.views.lookups import balance, organization

MOST_LINES = 1000
"""Of the ledger, among which the first charge of an hour is looked for: behind as many free ones the hour counts."""


class Outlook(NamedTuple):
    """How far the credit of one organization goes."""

    organization_id: str
    credit: Credit | None
    """`None` = nothing can run out: it is postpaid, blocked or removed."""


def outlook(snapshot: Snapshot, number: int, now_ms: int) -> Outlook:
    """Of an organization that there is. Raises `CorruptionError`."""
    return Outlook(organization(snapshot, number).id, credit_of(snapshot, number, now_ms))


def credit_of(snapshot: Snapshot, number: int, now_ms: int) -> Credit | None:
    """How far the credit of an organization goes; `None` where nothing can run out."""
    account = organization(snapshot, number)
    limit = account.credit_limit_micros
    if limit is None or account.removed_at_ms is not None or account.billing_status == "blocked":
        return None
    from_ms = now_ms - WARNED_DAYS * DAY_MS
    counted = [
        (hour_ms, counts.amount_micros)
        for hour_ms, counts in hours(snapshot, number, "production", from_ms, now_ms + 1)
        if counts.amount_micros
    ]
    first_ms = _first_charge_ms(snapshot, number, max(counted[0][0], from_ms)) if counted else now_ms
    available = balance(snapshot, number) + limit
    return credit_outlook(available, sum(micros for _, micros in counted), now_ms - first_ms)


def _first_charge_ms(snapshot: Snapshot, number: int, since_ms: int) -> int:
    """When the first charge was made since a time, in an hour that has one; the time itself where it is not found."""
    beyond = first_id((since_ms // HOUR_MS + 1) * HOUR_MS)
    rows = islice(snapshot.scan(LEDGER, number, start=(number, first_id(since_ms))), MOST_LINES)
    lines = (entry for _, entry in takewhile(lambda row: row[0][1] < beyond, rows))
    return next((entry.at_ms for entry in lines if entry.kind == "identification" and entry.amount_micros), since_ms)
