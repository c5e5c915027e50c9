"""The record of an organization."""

from __future__ import annotations

import msgspec

from svc.kernel.limits.ratelimit import DEFAULT_LIMIT_PER_S
from svc.kernel.tenants.billing import BillingStatus, BlockedReason


class AccountThresholds(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The counts from which on the signals fire. Stored within an organization: append fields."""

    multi_account: int = 3
    """Accounts of one visitor in 30 days."""
    account_testing_visitor: int = 5
    """Accounts of one visitor in an hour."""
    account_testing_address: int = 20
    """Accounts of one address in an hour."""
    account_sharing: int = 6
    """Visitors of one account in 30 days."""


class Organization(msgspec.Struct, frozen=True, array_like=True):
    """A customer. `number` is its short name in the keys of every other table."""

    id: str
    number: int
    name: str
    created_at_ms: int
    rate_limit_per_s: int = DEFAULT_LIMIT_PER_S
    """0 = no limit."""
    billing_status: BillingStatus = "free"
    blocked_reason: BlockedReason | None = None
    credit_limit_micros: int | None = 0
    """How far the balance may go below zero; `None` = as far as it goes: the organization is postpaid."""
    removed_at_ms: int | None = None
    """When the operator removed it: its keys are refused from then on, and what it held is erased."""
    verdict_key_generation: int = 1
    """Of the key that signs verdicts (`signed_verdict`)."""
    previous_verdict_key_expires_at_ms: int | None = None
    """Until when verdicts by the generation before are accepted."""
    account_thresholds: AccountThresholds = AccountThresholds()
    decision_in_response: bool = True
    """Whether responses and verdicts for public keys have the decision of the rules."""
    has_rules: bool = False
    """Whether it has saved rules or used a list since it was made."""
    filled_lists: tuple[str, ...] = ()
    """Names of its lists with entries, expired ones too: rules ask no other, so each of them is named."""
