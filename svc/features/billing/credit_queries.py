"""How far the credit of organizations goes, for reading (decisions 16.4).

The charges of the last days are those of the bill: of its settled days, of the day before today and of the day so
far, however many identifications they are. Erasures leave it as it is. What the first of these days has before its part
of the seven days begins is subtracted by the counters of hours, where what was erased since is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice, takewhile
from typing import NamedTuple

from svc.identify.events.hour_counts import HourCounts
from svc.identify.queries.hours import hours
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants.billing import WARNED_DAYS, Credit, LedgerEntry, credit_outlook
from svc.kernel.tenants.queries import balance, organization
from svc.kernel.tenants.tables import HOLDINGS, LEDGER, SETTLEMENTS
from svc.kernel.values.ids import DAY_MS, HOUR_MS, MAX_LEAD_MS, first_id

MAX_LINES = 1000
"""Lines of the ledger that are read of a day or an hour: for its first charge, and for what was charged on the first of
the seven days before they begin.
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
    first_day, hour_ms = from_ms // DAY_MS, from_ms // HOUR_MS * HOUR_MS
    counted = hours(snapshot, number, "production", first_day * DAY_MS, now_ms + 1)
    before = sum(counts.amount_micros for at_ms, counts in counted if at_ms < hour_ms)
    before += sum(-line.amount_micros for line in _charges(snapshot, number, hour_ms, from_ms))
    billed = _billed(snapshot, number, range(first_day, (now_ms + MAX_LEAD_MS) // DAY_MS + 1), counted)
    firsts = (_first_ms(snapshot, number, day, from_ms) for day in sorted(billed) if billed[day])
    first_ms = next((at_ms for at_ms in firsts if at_ms is not None), now_ms)
    available = balance(snapshot, number) + limit
    return credit_outlook(available, max(sum(billed.values()) - before, 0), now_ms - first_ms)


def _billed(snapshot: Snapshot, number: int, days: range, counted: Iterable[tuple[int, HourCounts]]) -> dict[int, int]:
    """Return UTC day since 1970 -> micro-dollars charged, given the counters of the hours of these days. Those count
    where a day that has ended is to be settled yet, or a clock that was far ahead has begun another one (ADR 177).
    """
    billed = Counter[int]()
    for at_ms, counts in counted:
        billed[at_ms // DAY_MS] += counts.amount_micros
    held = snapshot.get(HOLDINGS, number)
    for bill in () if held is None else (held.ended, held.bill):
        if bill is not None and bill.day in days:
            billed[bill.day] = bill.usage.charged_micros
    for (_, day), settled in snapshot.scan(SETTLEMENTS, number, start=(number, days.start)):
        billed[day] = settled.amount_micros
    return billed


def _first_ms(snapshot: Snapshot, number: int, day: int, from_ms: int) -> int | None:
    """Return the time of a UTC day's first charge from `from_ms` on; `None` if all were earlier."""
    day_ms = day * DAY_MS
    since_ms = max(day_ms, from_ms)
    found = next(_charges(snapshot, number, since_ms, day_ms + DAY_MS), None)
    if found is not None:
        return found.at_ms
    return None if day_ms < from_ms else since_ms


def _charges(snapshot: Snapshot, number: int, from_ms: int, to_ms: int) -> Iterator[LedgerEntry]:
    """Yield the charges among the first `MAX_LINES` ledger lines from `from_ms` to before `to_ms`."""
    rows = islice(snapshot.scan(LEDGER, number, start=(number, first_id(from_ms))), MAX_LINES)
    beyond = first_id(to_ms)
    lines = (entry for _, entry in takewhile(lambda row: row[0][1] < beyond, rows))
    return (entry for entry in lines if entry.kind == "identification" and entry.amount_micros)
