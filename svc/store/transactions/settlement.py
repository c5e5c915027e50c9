"""Settlement: what each UTC day of production traffic came to, and organizations that are past due for too long.

What may live here: the settler's questions and its two transactions, and the statement, all of them over the ledger.
A day is a range of its keys. Reading one takes as many steps as it has lines, so that no snapshot is held for long:
nothing is added to a day that is over. Both transactions look again, and so happen once, whatever was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice, takewhile
from typing import NamedTuple

from svc.domain.billing import (
    OVERDUE_MS,
    SETTLED_AFTER_MS,
    BillingChange,
    LedgerEntry,
    Settlement,
    Usage,
    counters,
)
from svc.domain.bodies import body_of
from svc.domain.ids import DAY_MS, first_id, made_at_ms
from svc.domain.timestamps import timestamp
from svc.domain.webhooks.payloads import DailySettled
from svc.store.snapshot import Snapshot, Transaction
from svc.store.tables import BALANCES, BILLING_CHANGES, LEDGER, ORGANIZATIONS, PAST_DUE, SETTLEMENTS
from svc.store.transactions.accounts import Author, change_billing_status
from svc.store.transactions.webhooks import enqueue

LINES_A_STEP = 256


class DueDay(NamedTuple):
    """A UTC day that is to be settled, and which lines of the ledger to read for it."""

    day: int
    """Since 1970."""
    from_id: bytes
    """The first line after the last day that was settled: credit given in between counts, too."""
    balance_micros: int
    """Before that line."""


class SettlementStep(NamedTuple):
    """The sum of some lines of a ledger."""

    usage: Usage
    resume: bytes | None
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
    """The oldest UTC day of an organization with production traffic that is over and not settled (decisions 5.4);
    `None` where there is none.
    """
    last = next(snapshot.scan_reverse(SETTLEMENTS, (number,), (number + 1,)), None)
    day, balance = (0, 0) if last is None else (last[0][1] + 1, last[1].balance_micros)
    from_id = first_id(day * DAY_MS)
    lines = _lines(snapshot, number, from_id)
    traffic = next((raw_id for raw_id, entry in lines if entry.kind == "identification"), None)
    if traffic is None:
        return None
    due = made_at_ms(traffic) // DAY_MS
    return DueDay(due, from_id, balance) if now_ms >= (due + 1) * DAY_MS + SETTLED_AFTER_MS else None


def read_usage(snapshot: Snapshot, number: int, resume: bytes, day: int) -> SettlementStep:
    """Sum the next `LINES_A_STEP` lines of the ledger from the id `resume` up to the end of the UTC day."""
    beyond = first_id((day + 1) * DAY_MS)
    of_day = takewhile(lambda line: line[0] < beyond, _lines(snapshot, number, resume))
    found = list(islice(of_day, LINES_A_STEP + 1))
    usage = counters(entry for _, entry in found[:LINES_A_STEP])
    return SettlementStep(usage, found[LINES_A_STEP][0] if len(found) > LINES_A_STEP else None)


def settle(transaction: Transaction, number: int, due: DueDay, usage: Usage, now_ms: int) -> bool:
    """Record what a day came to and queue `usage.daily_settled` (decisions 5.4, 8.9); `False` where it was settled
    before. `usage` is the sum of all steps of `read_usage`.
    """
    if transaction.has(SETTLEMENTS, number, due.day):
        return False
    settlement = Settlement(
        identifiable=usage.identifiable,
        unidentifiable=usage.unidentifiable,
        free=usage.free,
        amount_micros=usage.charged_micros,
        balance_micros=due.balance_micros + usage.change_micros,
        settled_at_ms=now_ms,
    )
    transaction.put(SETTLEMENTS, (number, due.day), settlement)
    date = timestamp(due.day * DAY_MS)[:10]
    data = body_of(DailySettled, settlement, date=date, identifications=usage.identifications)
    enqueue(transaction, number, "usage.daily_settled", "live", data, now_ms)
    return True


def overdue(snapshot: Snapshot, now_ms: int) -> list[int]:
    """Numbers of the organizations that have been past due for 7 days (decisions 5.3)."""
    return [number for (number,), since_ms in snapshot.scan(PAST_DUE) if now_ms - since_ms >= OVERDUE_MS]


def block_overdue(transaction: Transaction, number: int, author: Author) -> bool:
    """Block an organization that has been past due for 7 days (decisions 5.3); `False` where it is not, or no
    longer.
    """
    since_ms = transaction.get(PAST_DUE, number)
    organization = transaction.get(ORGANIZATIONS, number)
    if organization is None or since_ms is None or author.at_ms - since_ms < OVERDUE_MS:
        return False
    change_billing_status(transaction, organization, "blocked", "payment_overdue", author)
    return True


def statement(snapshot: Snapshot, number: int, first_day: int, beyond_day: int) -> AccountStatement:
    """The ledger from `first_day` up to but not including `beyond_day`, both in UTC days since 1970.

    Reads the ledger from the first day to its end, since only the present balance is known. The credits of that time
    are held in memory.
    """
    first_line, beyond = first_id(first_day * DAY_MS), first_id(beyond_day * DAY_MS)
    given: list[LedgerEntry] = []

    def noted(lines: Iterable[tuple[bytes, LedgerEntry]]) -> Iterator[LedgerEntry]:
        for raw_id, entry in lines:
            if entry.kind == "credit" and raw_id < beyond:
                given.append(entry)
            yield entry

    lines = _lines(snapshot, number, first_line)
    by_day = groupby(lines, key=lambda line: made_at_ms(line[0]) // DAY_MS)
    usages = [(day, counters(noted(of_day))) for day, of_day in by_day]
    balance = opening = (snapshot.get(BALANCES, number) or 0) - sum(usage.change_micros for _, usage in usages)
    days: list[StatementDay] = []
    for day, usage in usages:
        balance += usage.change_micros
        if day < beyond_day:
            days.append(StatementDay(day, usage, balance))
    changed = snapshot.scan(BILLING_CHANGES, number, start=(number, first_line))
    changes = [change for (_, raw_id), change in changed if raw_id < beyond]
    return AccountStatement(opening, days, given, changes)


def _lines(snapshot: Snapshot, number: int, start: bytes) -> Iterator[tuple[bytes, LedgerEntry]]:
    """(id, line) from an id on."""
    return ((raw_id, entry) for (_, raw_id), entry in snapshot.scan(LEDGER, number, start=(number, start)))
