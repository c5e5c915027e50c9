"""The tables of organizations and their money."""

from __future__ import annotations

from svc.kernel.limits.quotas import Holding
from svc.kernel.store.schema.codec import Key, Opaque, Record, Signed
from svc.kernel.store.schema.key_parts import DAY, TEXT, U32, UUID_V7
from svc.kernel.store.schema.table import FOR_EVER, NOT_PERSONAL, WITH_ORGANIZATION, NotPersonal, Table, Until
from svc.kernel.tenants.billing import BillingChange, LedgerEntry, Settlement
from svc.kernel.tenants.organization import Organization

_ORGANIZATION = Key(organization=U32)
_OWN_ID = Key(organization=U32, id=UUID_V7)
_NOT_OF_A_PERSON = NotPersonal("a line says when and how much, and nothing of whom")

ORGANIZATIONS = Table(
    "organizations",
    _ORGANIZATION,
    Record(Organization, remembered=1024),
    FOR_EVER,
    NOT_PERSONAL,
    stays=True,
    invariants=("organizations",),
)
ORGANIZATION_IDS = Table("organization_ids", Key(organization_id=TEXT), Signed("organization"), FOR_EVER, NOT_PERSONAL)
"""organization id -> number"""
BALANCES = Table("balances", _ORGANIZATION, Signed("micros"), FOR_EVER, NOT_PERSONAL, stays=True)
"""Always the sum of its ledger."""
LEDGER = Table("ledger", _OWN_ID, Record(LedgerEntry), FOR_EVER, _NOT_OF_A_PERSON, stays=True, invariants=("money",))
"""By the request id for identifications; append-only."""
CREDITS = Table("ledger_credits", _OWN_ID, Opaque(), FOR_EVER, NOT_PERSONAL, stays=True, invariants=("money",), since=2)
"""Which lines of the ledger are credits: they are few among many."""
LEDGER_DAYS = Table(
    "ledger_days",
    Key(organization=U32, day=DAY, id=UUID_V7),
    Opaque(),
    FOR_EVER,
    NOT_PERSONAL,
    stays=True,
    invariants=("money",),
    since=5,
)
"""Lines of the ledger that count for another day than that of their id, by the day that they count for."""
SETTLEMENTS = Table(
    "settlements",
    Key(organization=U32, day=DAY),
    Record(Settlement),
    FOR_EVER,
    NOT_PERSONAL,
    stays=True,
    invariants=("money",),
)
"""Only days with production traffic, each written once."""
BILLING_CHANGES = Table(
    "billing_changes",
    _OWN_ID,
    Record(BillingChange),
    FOR_EVER,
    NotPersonal("the operator's note on an organization's payments"),
    stays=True,
    invariants=("billing",),
)
"""Append-only."""
PAST_DUE = Table(
    "past_due",
    _ORGANIZATION,
    Signed("since_ms"),
    Until("the organization paid, or is blocked"),
    NOT_PERSONAL,
    stays=True,
)
"""Those that are past due now and no others."""
HOLDINGS = Table("holdings", _ORGANIZATION, Record(Holding), WITH_ORGANIZATION, NOT_PERSONAL, since=2)
"""What it holds of the store and has taken today, and its active keys; no row = nothing."""
