"""Settlement: the totals of each UTC day of production traffic, and organizations that are past due for too long.

What may live here: the settler's questions and its transactions, and the statement, all of them over the ledger.
A day is a range of its keys, without the lines that count for another day and with those of other days that count for
it (decisions 17.2). Reading one takes as many steps as it has lines, so that no snapshot is held for long: the day is
closed first, and nothing is added to it from then on. Each transaction looks again, and so happens once, whatever was
interrupted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, islice, takewhile
from typing import NamedTuple

from svc.features.organizations.jobs import Author, change_billing_status
from svc.features.webhooks.content.payloads import DailySettled
from svc.features.webhooks.jobs.deliveries import enqueue
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import STEP_LOOKS
from svc.kernel.tenants.billing import (
    OVERDUE_MS,
    SETTLED_AFTER_MS,
    BillingChange,
    LedgerEntry,
    Settlement,
    Usage,
    counters,
)
from svc.kernel.tenants.queries import balance as current_balance
from svc.kernel.tenants.tables import BILLING_CHANGES, LEDGER, LEDGER_DAYS, ORGANIZATIONS, PAST_DUE, SETTLEMENTS
from svc.kernel.values.ids import DAY_MS, first_id, made_at_ms
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.struct_fields import body_of
from svc.kernel.values.timestamps import timestamp


class DueDay(NamedTuple):
    """A UTC day that is to be settled, and the days whose ledger lines are read for it."""

    day: int
    """Since 1970."""
    from_day: int
    """The first one after the last day that was settled: credit given in between counts, too."""
    balance_micros: int
    """Before that day."""


class LinePosition(NamedTuple):
    """Where to resume reading the ledger lines of some days: first the lines that count for the day of their id, in the
    order of ids, then the others in the order of `LEDGER_DAYS`.
    """

    moved_day: int | None
    """Of a line that counts for another day than its id's: that day."""
    raw_id: bytes


class SettlementStep(NamedTuple):
    """The sum of some lines of a ledger."""

    usage: Usage
    resume: LinePosition | None
    """Where the next step begins; `None` = everything was read."""


class StatementDay(NamedTuple):
    """One UTC day of a statement."""

    day: int
    """Since 1970, UTC."""
    usage: Usage
    balance_micros: int
    """At the end of the day."""


class AccountStatement(NamedTuple):
    """The ledger of some UTC days, summed by day."""

    opening_micros: int
    """The balance before the first line."""
    days: list[StatementDay]
    """Those with a line on the ledger."""
    credits: list[LedgerEntry]
    changes: list[BillingChange]
    """Of the billing status."""


def due_day(snapshot: Snapshot, number: int, now_ms: int) -> DueDay | None:
    """Return the oldest UTC day of an organization with production traffic that has ended and is not settled (decisions
    5.4); `None` if there is none.
    """
    last = next(snapshot.scan_reverse(SETTLEMENTS, (number,), (number + 1,)), None)
    from_day, balance = (0, 0) if last is None else (last[0][1] + 1, last[1].balance_micros)
    own, moved = _own_lines(snapshot, number, first_id(from_day * DAY_MS)), _moved_lines(snapshot, number, from_day)
    firsts = [next((day for _, day, entry in of if entry.kind == "identification"), None) for of in (own, moved)]
    due = min((day for day in firsts if day is not None), default=None)
    if due is None or now_ms < (due + 1) * DAY_MS + SETTLED_AFTER_MS:
        return None
    return DueDay(due, from_day, balance)


def read_usage(snapshot: Snapshot, number: int, due: DueDay, resume: LinePosition | None = None) -> SettlementStep:
    """Return the sum of the next `STEP_LOOKS` lines of the ledger that count for the days from `due.from_day` to
    `due.day`, which is closed.
    """
    own: Iterable[_Line] = ()
    if resume is None or resume.moved_day is None:
        start = first_id(due.from_day * DAY_MS) if resume is None else resume.raw_id
        beyond = first_id((due.day + 1) * DAY_MS)
        own = takewhile(lambda line: line[0].raw_id < beyond, _own_lines(snapshot, number, start))
        resume = None
    moved = _moved_lines(snapshot, number, due.from_day, resume)
    lines = chain(own, takewhile(lambda line: line[1] <= due.day, moved))
    found = list(islice(lines, STEP_LOOKS + 1))
    usage = counters(entry for _, _, entry in found[:STEP_LOOKS])
    return SettlementStep(usage, found[STEP_LOOKS][0] if len(found) > STEP_LOOKS else None)


def settle(
    transaction: Transaction, number: int, due: DueDay, usage: Usage, now_ms: int
) -> tuple[EndpointKey, ...] | None:
    """Record the totals of a closed day and queue `usage.daily_settled` (decisions 5.4, 8.9); `None` if it was
    settled before. `usage` is the sum of all steps of `read_usage`. Returns the endpoint queues to wake.
    """
    if transaction.has(SETTLEMENTS, number, due.day):
        return None
    settlement = Settlement(
        identifiable=usage.identifiable,
        unidentifiable=usage.unidentifiable,
        free=usage.free,
        amount_micros=usage.charged_micros,
        balance_micros=due.balance_micros + usage.change_micros,
        settled_at_ms=now_ms,
        is_closed=True,
    )
    transaction.put(SETTLEMENTS, (number, due.day), settlement)
    date = timestamp(due.day * DAY_MS)[:10]
    data = body_of(DailySettled, settlement, date=date, identifications=usage.identifications)
    return enqueue(transaction, number, "usage.daily_settled", "live", data, now_ms)


def is_overdue(snapshot: Snapshot, number: int, now_ms: int) -> bool:
    """Return whether an organization has been past due for 7 days (decisions 5.3)."""
    since_ms = snapshot.get(PAST_DUE, number)
    return since_ms is not None and now_ms - since_ms >= OVERDUE_MS


def block_overdue(transaction: Transaction, number: int, author: Author) -> tuple[EndpointKey, ...] | None:
    """Block an organization that has been past due for 7 days (decisions 5.3); `None` if it is not, or no longer.
    Returns the endpoint queues to wake.
    """
    since_ms = transaction.get(PAST_DUE, number)
    organization = transaction.get(ORGANIZATIONS, number)
    if organization is None or since_ms is None or author.at_ms - since_ms < OVERDUE_MS:
        return None
    return change_billing_status(transaction, organization, "blocked", "payment_overdue", author)


def statement(snapshot: Snapshot, number: int, first_day: int, beyond_day: int) -> AccountStatement:
    """Return the ledger from `first_day` up to but not including `beyond_day`, both in UTC days since 1970.

    Reads the ledger from the first day to its end, since only the present balance is known. The credits of that time
    are held in memory.
    """
    usages: defaultdict[int, Usage] = defaultdict(Usage)
    given: list[LedgerEntry] = []
    own = _own_lines(snapshot, number, first_id(first_day * DAY_MS))
    for _, day, entry in chain(own, _moved_lines(snapshot, number, first_day)):
        usages[day] += counters((entry,))
        if entry.kind == "credit" and day < beyond_day:
            given.append(entry)
    changed = sum(usage.change_micros for usage in usages.values())
    balance = opening = current_balance(snapshot, number) - changed
    days: list[StatementDay] = []
    for day, usage in sorted(usages.items()):
        balance += usage.change_micros
        if day < beyond_day:
            days.append(StatementDay(day, usage, balance))
    first_line, beyond = first_id(first_day * DAY_MS), first_id(beyond_day * DAY_MS)
    of_status = snapshot.scan(BILLING_CHANGES, number, start=(number, first_line))
    changes = [change for (_, raw_id), change in of_status if raw_id < beyond]
    return AccountStatement(opening, days, given, changes)


_Line = tuple[LinePosition, int, LedgerEntry]
"""Where it is, the UTC day that it counts for, and the line."""


def _own_lines(snapshot: Snapshot, number: int, start: bytes) -> Iterator[_Line]:
    """Yield the lines from an id on that count for the day of their id."""
    for (_, raw_id), entry in snapshot.scan(LEDGER, number, start=(number, start)):
        if entry.day is None:
            yield LinePosition(None, raw_id), made_at_ms(raw_id) // DAY_MS, entry


def _moved_lines(snapshot: Snapshot, number: int, from_day: int, resume: LinePosition | None = None) -> Iterator[_Line]:
    """Yield the lines that count for another day than their id's, from a day or a position on."""
    at = (from_day, b"") if resume is None else (resume.moved_day, resume.raw_id)
    for (_, day, raw_id), _ in snapshot.scan(LEDGER_DAYS, number, start=(number, *at)):
        entry = snapshot.get(LEDGER, number, raw_id)
        assert entry is not None, "a line of the ledger stays"
        yield LinePosition(day, raw_id), day, entry
