"""How far the credit of organizations goes, for reading (decisions 16.4).

The charges of the last days are read from the counters of hours, however many identifications they are. Those of events
that were erased since are not in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile
from typing import NamedTuple

from svc.identify.queries.hours import hours
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants.billing import WARNED_DAYS, Credit, LedgerEntry, credit_outlook
from svc.kernel.tenants.queries import balance, organization
from svc.kernel.tenants.tables import LEDGER
from svc.kernel.values.ids import DAY_MS, HOUR_MS, first_id

MAX_LINES = 1000
"""Lines of the ledger that are read of an hour: for its first charge, and for what was charged in it before the seven
days began. If no charge is among them, the hour's start counts as the time of the first.
"""


class Outlook(NamedTuple):
    """How far the credit of one organization lasts."""

    organization_id: str
    credit: Credit | None
    """`None` = nothing can run out: it is postpaid, blocked or removed."""


def outlook(snapshot: Snapshot, number: int, now_ms: int) -> Outlook:
    """Return how far the credit of an existing organization lasts, with its public id. Raises `CorruptionError`."""
    return Outlook(organization(snapshot, number).id, credit_of(snapshot, number, now_ms))


def credit_of(snapshot: Snapshot, number: int, now_ms: int) -> Credit | None:
    """Return how far an organization's credit lasts; `None` if unlimited, or the organization removed or blocked."""
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
    before = sum(-line.amount_micros for line in _charges(snapshot, number, from_ms // HOUR_MS * HOUR_MS, from_ms))
    charged = sum(micros for _, micros in counted) - before
    first_ms = next((at for hour_ms, _ in counted if (at := _first_ms(snapshot, number, hour_ms, from_ms))), now_ms)
    available = balance(snapshot, number) + limit
    return credit_outlook(available, max(charged, 0), now_ms - first_ms)


def _first_ms(snapshot: Snapshot, number: int, hour_ms: int, from_ms: int) -> int | None:
    """Return the time of the hour's first charge from `from_ms` on; `None` if all were earlier."""
    since_ms = max(hour_ms, from_ms)
    found = next(iter(_charges(snapshot, number, since_ms, hour_ms + HOUR_MS)), None)
    if found is not None:
        return found.at_ms
    return None if hour_ms < from_ms else since_ms


def _charges(snapshot: Snapshot, number: int, from_ms: int, to_ms: int) -> Iterator[LedgerEntry]:
    """Yield the charges among the first `MAX_LINES` ledger lines from `from_ms` to before `to_ms`."""
    rows = islice(snapshot.scan(LEDGER, number, start=(number, first_id(from_ms))), MAX_LINES)
    beyond = first_id(to_ms)
    lines = (entry for _, entry in takewhile(lambda row: row[0][1] < beyond, rows))
    return (entry for entry in lines if entry.kind == "identification" and entry.amount_micros)
