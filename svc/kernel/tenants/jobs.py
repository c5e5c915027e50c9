"""The ledger of an organization and what it holds of the store, in the transaction that changes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar
from uuid import UUID

import msgspec

from svc.kernel.limits.quotas import Holding
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.billing import LedgerEntry
from svc.kernel.tenants.queries import balance, known_balance
from svc.kernel.tenants.tables import BALANCES, CREDITS, HOLDINGS, LEDGER, LEDGER_DAYS
from svc.kernel.values.ids import DAY_MS, made_at_ms

T = TypeVar("T")


def holding(snapshot: Snapshot, number: int) -> Holding:
    """Return what an organization holds; zeros if nothing was counted yet. For the counts of today see `Holding.on`."""
    return snapshot.get(HOLDINGS, number) or Holding()


def holdings(snapshot: Snapshot, after: int, count: int) -> Iterator[tuple[int, Holding]]:
    """Yield (number, what it holds) of the next `count` organizations above the number `after`."""
    return ((number, held) for (number,), held in islice(snapshot.scan(HOLDINGS, start=(after + 1,)), count))


def keep(transaction: Transaction, number: int, changed: Holding) -> None:
    """Write an organization's row of `HOLDINGS`, in the transaction that made the change."""
    transaction.put(HOLDINGS, (number,), changed)


def ask(transaction: Transaction, number: int, at_ms: int, question: Callable[[Holding], T]) -> T:
    """Return the answer of `question` about what the organization holds, with the counts of the UTC day of `at_ms`. As
    with `Transaction.ask`, only the answer is recorded as read.
    """
    return transaction.ask(HOLDINGS, (number,), lambda held: question((held or Holding()).on(at_ms)))


def add(transaction: Transaction, number: int, at_ms: int, change: Callable[[Holding], Holding]) -> None:
    """Change what the organization holds on the UTC day of `at_ms`, as `Transaction.update`, which reads nothing."""
    transaction.update(HOLDINGS, (number,), lambda held: change((held or Holding()).on(at_ms)))


def close_day(transaction: Transaction, number: int, day: int) -> None:
    """Close a UTC day since 1970: what is billed from now on counts for a later one. Nothing is read."""
    transaction.update(HOLDINGS, (number,), lambda held: (held or Holding()).closed(day))


def release(
    transaction: Transaction, number: int, *, events: int = 0, visitors: int = 0, report_bytes: int = 0
) -> None:
    """Subtract deleted events, visitors and `row_bytes` of reports from what an organization holds."""
    transaction.update(
        HOLDINGS,
        (number,),
        lambda held: (held or Holding()).plus(events=-events, visitors=-visitors, report_bytes=-report_bytes),
    )


def add_credit(transaction: Transaction, number: int, *, entry_id: UUID, micros: int, now_ms: int, note: str) -> int:
    """Add a credit of `micros` to the ledger, negative to take it back, and return the new balance."""
    enter(transaction, number, entry_id, LedgerEntry("credit", micros, now_ms, note))
    return balance(transaction, number)


def enter(transaction: Transaction, number: int, entry_id: UUID, entry: LedgerEntry) -> None:
    """Add one line to the ledger and the balance, which changes in no other way (decisions 5.1). It counts for the UTC
    day of its time or, if that is later, the last that its organization has counted (decisions 17.2).
    """
    day = ask(transaction, number, entry.at_ms, lambda held: held.day)
    if day != made_at_ms(entry_id.bytes) // DAY_MS:
        entry = msgspec.structs.replace(entry, day=day)
        transaction.put(LEDGER_DAYS, (number, day, entry_id.bytes), b"")
    transaction.put(LEDGER, (number, entry_id.bytes), entry)
    if entry.kind == "credit":
        transaction.put(CREDITS, (number, entry_id.bytes), b"")
    transaction.update(BALANCES, (number,), lambda balance: known_balance(balance) + entry.amount_micros)
