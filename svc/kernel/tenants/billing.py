"""Billing: what an identification costs, who is refused, the totals of a day, how a billing status may change.

What may live here: prices, the records of money and of billing statuses, and the rules over them (decisions 5).

Amounts are integers in millionths of a US dollar. The ledger is append-only and the balance is always its sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import Literal, NamedTuple, get_args

import msgspec

from svc.kernel.values.fields import Environment, State
from svc.kernel.values.ids import DAY_MS

BillingStatus = Literal["free", "active", "past_due", "blocked"]
BILLING_STATUSES: tuple[BillingStatus, ...] = get_args(BillingStatus)
FIRST_STATUSES: tuple[BillingStatus, ...] = ("free", "active")
"""Of a new organization: prepaid, or postpaid (decisions 5.2)."""
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
    """The author and the reason, for credits."""
    day: int | None = None
    """UTC day since 1970 that it counts for, where that is not the day of its id (decisions 17.2)."""


class Usage(msgspec.Struct, frozen=True):
    """Counts and sums of some lines of a ledger. Identifications are distinguished by their price."""

    identifiable: int = 0
    unidentifiable: int = 0
    free: int = 0
    """Production identifications that cost nothing: their network could not be looked up (interface 8)."""
    charged_micros: int = 0
    credited_micros: int = 0
    """Credits less what was taken back."""

    @property
    def identifications(self) -> int:
        """All identifications that these ledger lines are about."""
        return self.identifiable + self.unidentifiable + self.free

    @property
    def change_micros(self) -> int:
        """What the balance gained, in micro-dollars; negative where more was charged than credited."""
        return self.credited_micros - self.charged_micros

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))


class Settlement(msgspec.Struct, frozen=True, array_like=True):
    """The production totals of a UTC day: `usage.daily_settled` (decisions 8.10). Append fields."""

    identifiable: int
    unidentifiable: int
    free: int
    amount_micros: int
    """Charged on that day."""
    balance_micros: int
    """At the end of that day."""
    settled_at_ms: int
    is_closed: bool = False
    """Whether nothing could be added to the day any more, which versions before 0.3.0 did not see to."""


class BillingChange(msgspec.Struct, frozen=True, array_like=True):
    """One change of a billing status. Append fields, never move them."""

    previous: BillingStatus
    current: BillingStatus
    blocked_reason: BlockedReason | None
    at_ms: int
    by: str
    """The operator's name on the machine, or `settler`."""
    note: str = ""


OVERDUE_MS = 7 * DAY_MS
"""How long an organization may be past due before it is blocked (decisions 5.3)."""
SETTLED_AFTER_MS = 5 * 60 * 1000
"""A UTC day is settled this long after it has ended (decisions 5.4)."""


def counters(entries: Iterable[LedgerEntry]) -> Usage:
    """Return the sums of ledger lines. A charge of any price but `UNIDENTIFIABLE_MICROS` counts as identifiable."""
    identifiable = unidentifiable = free = charged = credited = 0
    for entry in entries:
        amount = entry.amount_micros
        if entry.kind == "credit":
            credited += amount
            continue
        charged -= amount
        if not amount:
            free += 1
        elif amount == -UNIDENTIFIABLE_MICROS:
            unidentifiable += 1
        else:
            identifiable += 1
    return Usage(identifiable, unidentifiable, free, charged, credited)


def price_micros(*, environment: Environment, state: State, identifiable: bool) -> int:
    """Return the price in micro-dollars (interface 8): 0 outside production and without a network look-up."""
    if environment != "production" or state == "unavailable":
        return 0
    return IDENTIFIABLE_MICROS if identifiable else UNIDENTIFIABLE_MICROS


RefusedForMoney = Literal["billing_blocked", "no_credit"]


def refused_for_money(
    *, environment: Environment, status: BillingStatus, balance_micros: int, credit_limit_micros: int | None, price: int
) -> RefusedForMoney | None:
    """Return the code of the `402`, of production traffic alone (decisions 5.2, 5.3), or `None`. In micro-dollars."""
    if environment != "production":
        return None
    if status == "blocked":
        return "billing_blocked"
    if credit_limit_micros is not None and price > balance_micros + credit_limit_micros:
        return "no_credit"
    return None


WARNED_DAYS = 7
"""One whose credit lasts for less is reported, by its charges of as many days (decisions 16.4)."""
CreditState = Literal["enough", "low", "used_up"]


class Credit(NamedTuple):
    """How long the credit of an organization lasts, unless it is postpaid."""

    state: CreditState
    days: float | None
    """How many days it lasts; `None` if nothing was charged in the last days."""


def credit_outlook(available_micros: int, charged_micros: int, since_first_ms: int) -> Credit:
    """Return how far `available_micros`, which is the balance with the credit limit, goes (decisions 16.4).
    `charged_micros`: in the last `WARNED_DAYS`; `since_first_ms`: since the first of those charges.
    """
    a_day = charged_micros * DAY_MS / max(since_first_ms, DAY_MS)
    days = max(available_micros, 0) / a_day if a_day > 0 else None
    if available_micros < IDENTIFIABLE_MICROS:
        return Credit("used_up", days)
    return Credit("low" if days is not None and days < WARNED_DAYS else "enough", days)
