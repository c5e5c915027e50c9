"""Organizations, their limits and their money: what the operator may change."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec

from svc.domain.billing import TRANSITIONS, BillingStatus, LedgerEntry
from svc.domain.records import Organization
from svc.store.snapshot import Transaction
from svc.store.tables import BALANCES, LEDGER, META, ORGANIZATION_IDS, ORGANIZATIONS


def create_organization(
    transaction: Transaction, *, organization_id: str, name: str, now_ms: int, rate_limit_per_s: int
) -> Organization:
    """A new organization: free, without credit."""
    number = transaction.get(META, "next_organization") or 1
    organization = Organization(organization_id, number, name, now_ms, rate_limit_per_s=rate_limit_per_s)
    transaction.put(META, ("next_organization",), number + 1)
    transaction.put(ORGANIZATIONS, (number,), organization)
    transaction.put(ORGANIZATION_IDS, (organization_id,), number)
    transaction.put(BALANCES, (number,), 0)
    return organization


def add_credit(transaction: Transaction, number: int, *, entry_id: UUID, micros: int, now_ms: int, note: str) -> int:
    """Put credit on the ledger; the new balance. A negative amount takes credit back."""
    return enter(transaction, number, entry_id, LedgerEntry("credit", micros, now_ms, note))


def enter(transaction: Transaction, number: int, entry_id: UUID, entry: LedgerEntry) -> int:
    """The only way to change a balance: one line on the ledger, and the sum with it."""
    balance = (transaction.get(BALANCES, number) or 0) + entry.amount_micros
    transaction.put(LEDGER, (number, entry_id.bytes), entry)
    transaction.put(BALANCES, (number,), balance)
    return balance


def set_rate_limit(transaction: Transaction, number: int, per_s: int) -> Organization:
    """0 = no limit."""
    return _change(transaction, number, rate_limit_per_s=per_s)


def set_credit_limit(transaction: Transaction, number: int, micros: int) -> Organization:
    """How far the balance may go below zero."""
    return _change(transaction, number, credit_limit_micros=micros)


def set_billing_status(
    transaction: Transaction, number: int, status: BillingStatus
) -> Organization | Literal["not_allowed"]:
    """Follow the table of transitions (decisions 5.3); the same status again changes nothing."""
    organization = _organization(transaction, number)
    if status == organization.billing_status:
        return organization
    if status not in TRANSITIONS[organization.billing_status]:
        return "not_allowed"
    reason = "operator" if status == "blocked" else None
    return _change(transaction, number, billing_status=status, blocked_reason=reason)


def _change(transaction: Transaction, number: int, **changes: object) -> Organization:
    organization = msgspec.structs.replace(_organization(transaction, number), **changes)
    transaction.put(ORGANIZATIONS, (number,), organization)
    return organization


def _organization(transaction: Transaction, number: int) -> Organization:
    organization = transaction.get(ORGANIZATIONS, number)
    if organization is None:
        raise LookupError(f"no organization has the number {number}")
    return organization
