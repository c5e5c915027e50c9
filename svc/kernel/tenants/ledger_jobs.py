"""The ledger of an organization and its balance (decisions 5.1): what credits and charges are entered by."""

from __future__ import annotations

from uuid import UUID

import msgspec

from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants import holding_jobs as holdings
from svc.kernel.tenants.billing import LedgerEntry
from svc.kernel.tenants.queries import balance, known_balance
from svc.kernel.tenants.tables import BALANCES, CREDITS, LEDGER, LEDGER_DAYS
from svc.kernel.values.ids import DAY_MS, made_at_ms


def add_credit(transaction: Transaction, number: int, *, entry_id: UUID, micros: int, now_ms: int, note: str) -> int:
    """Add a credit (`micros`, micro-dollars) to the ledger and return the new balance. A negative amount takes credit
    back.
    """
    enter(transaction, number, entry_id, LedgerEntry("credit", micros, now_ms, note))
    return balance(transaction, number)


def enter(transaction: Transaction, number: int, entry_id: UUID, entry: LedgerEntry) -> None:
    """Add one line to the ledger and to the balance; balances change in no other way (decisions 5.1). The line counts
    for the UTC day of its own time, or for the last day that its organization has counted, if that is later (decisions
    17.2).
    """
    day = holdings.ask(transaction, number, entry.at_ms, lambda held: held.day)
    if day != made_at_ms(entry_id.bytes) // DAY_MS:
        entry = msgspec.structs.replace(entry, day=day)
        transaction.put(LEDGER_DAYS, (number, day, entry_id.bytes), b"")
    transaction.put(LEDGER, (number, entry_id.bytes), entry)
    if entry.kind == "credit":
        transaction.put(CREDITS, (number, entry_id.bytes), b"")
    transaction.update(BALANCES, (number,), lambda balance: known_balance(balance) + entry.amount_micros)
