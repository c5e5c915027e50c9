"""Billing: what an identification costs, who is refused, and how a billing status may change (decisions 5).

Amounts are integers in millionths of a US dollar. The ledger is append-only and the balance is always its sum.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from svc.domain.model import Environment, State

BillingStatus = Literal["free", "active", "past_due", "blocked"]
BILLING_STATUSES: tuple[BillingStatus, ...] = ("free", "active", "past_due", "blocked")
BlockedReason = Literal["payment_overdue", "operator"]

IDENTIFIABLE_MICROS = 3_000
UNIDENTIFIABLE_MICROS = 500
MICROS_PER_USD = 1_000_000

TRANSITIONS: dict[BillingStatus, tuple[BillingStatus, ...]] = {
    "free": ("active", "blocked"),
    "active": ("free", "past_due", "blocked"),
    "past_due": ("active", "blocked"),
    "blocked": ("active", "free"),
}
"""status -> those that may follow it (decisions 5.3)."""


class LedgerEntry(msgspec.Struct, frozen=True, array_like=True):
    """One line of an organization's ledger. Append fields, never move them."""

    kind: Literal["credit", "identification"]
    amount_micros: int
    """Positive adds to the balance, negative is charged."""
    at_ms: int
    note: str = ""
    """Who did it and why, for credits."""


def price_micros(*, environment: Environment, state: State, identifiable: bool) -> int:
    """What one identification costs (interface 8): nothing outside production and nothing without a network look-up."""
    if environment != "production" or state == "unavailable":
        return 0
    return IDENTIFIABLE_MICROS if identifiable else UNIDENTIFIABLE_MICROS


def refused_for_money(
    *, environment: Environment, status: BillingStatus, balance_micros: int, credit_limit_micros: int, price: int
) -> Literal["billing_blocked", "no_credit"] | None:
    """The `402` of this very identification, or `None`. Only production traffic is refused (decisions 5.2, 5.3)."""
    if environment != "production":
        return None
    if status == "blocked":
        return "billing_blocked"
    if price > balance_micros + credit_limit_micros:
        return "no_credit"
    return None
