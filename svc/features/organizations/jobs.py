"""Organizations, their limits and their money: what the operator may change; and the audit record of each change.

Nothing here alters an audit record or takes one away. Only retention deletes records, when their 400 days have passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple
from uuid import UUID

import msgspec

from svc.features.webhooks.content.payloads import BillingStatusChanged
from svc.features.webhooks.jobs.deliveries import enqueue
from svc.identify.records import RetentionPass
from svc.identify.tables import RETENTION_PASSES
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.tables import META
from svc.kernel.tenants.billing import TRANSITIONS, BillingChange, BillingStatus, BlockedReason
from svc.kernel.tenants.organization import Organization
from svc.kernel.tenants.queries import organization as find_organization
from svc.kernel.tenants.queries import refuse_given
from svc.kernel.tenants.tables import BALANCES, BILLING_CHANGES, ORGANIZATION_IDS, ORGANIZATIONS, PAST_DUE
from svc.kernel.values.ids import HOUR_MS
from svc.kernel.values.partitions import EndpointKey


def create_organization(
    transaction: Transaction,
    *,
    organization_id: str,
    name: str,
    now_ms: int,
    rate_limit_per_s: int,
    is_postpaid: bool = False,
) -> Organization:
    """Create an organization with the next number and balance 0: `free` with a credit limit of 0, or postpaid: `active`
    without one (decisions 5.2).
    """
    number = transaction.get(META, "next_organization") or 1
    refuse_given(transaction, ORGANIZATIONS, number)
    organization = Organization(organization_id, number, name, now_ms, rate_limit_per_s=rate_limit_per_s)
    if is_postpaid:
        organization = msgspec.structs.replace(organization, billing_status="active", credit_limit_micros=None)
    transaction.put(META, ("next_organization",), number + 1)
    transaction.put(ORGANIZATIONS, (number,), organization)
    transaction.put(ORGANIZATION_IDS, (organization_id,), number)
    transaction.put(BALANCES, (number,), 0)
    return organization


def set_rate_limit(transaction: Transaction, number: int, per_s: int) -> Organization:
    """Set the limit of identifications per second; 0 = none (decisions 4). Raises `LookupError` if unknown."""
    return _change(transaction, number, rate_limit_per_s=per_s)


def rotate_verdict_key(transaction: Transaction, number: int, *, overlap_hours: int, now_ms: int) -> Organization:
    """Sign verdicts with the next key from now on; the previous key stays valid for `overlap_hours`, 0 = not at all.
    Raises `LookupError` for an unknown organization.
    """
    generation = find_organization(transaction, number).verdict_key_generation + 1
    until_ms = now_ms + overlap_hours * HOUR_MS if overlap_hours else None
    return _change(transaction, number, verdict_key_generation=generation, previous_verdict_key_expires_at_ms=until_ms)


def set_credit_limit(transaction: Transaction, number: int, micros: int | None) -> Organization:
    """Set by how many micro-dollars the balance may go below zero, `None` = without limit; the billing status does not
    change (decisions 5.2). Raises `LookupError` for an unknown organization.
    """
    return _change(transaction, number, credit_limit_micros=micros)


def change_settings(
    transaction: Transaction, number: int, *, decision_in_response: bool | None, thresholds: Mapping[str, int]
) -> Organization:
    """Change settings of an organization (decisions 11.5): `None`, and thresholds that are not named, stay as they are.
    Raises `LookupError` for an unknown organization.
    """
    before = find_organization(transaction, number)
    return _change(
        transaction,
        number,
        account_thresholds=msgspec.structs.replace(before.account_thresholds, **thresholds),
        decision_in_response=before.decision_in_response if decision_in_response is None else decision_in_response,
    )


class Author(NamedTuple):
    """Who changes a billing status, when and why, for the record of the change."""

    change_id: UUID
    """UUIDv7."""
    at_ms: int
    by: str
    note: str = ""


def set_billing_status(
    transaction: Transaction, number: int, status: BillingStatus, author: Author
) -> Organization | Literal["not_allowed"]:
    """Change the billing status on behalf of the operator; return `not_allowed` if `TRANSITIONS` does not allow it
    (decisions 5.3). Setting the present status changes nothing. The outbox of a running service finds the webhook at
    its next poll. Raises `LookupError` for an unknown organization.
    """
    organization = find_organization(transaction, number)
    if status == organization.billing_status:
        return organization
    if status not in TRANSITIONS[organization.billing_status]:
        return "not_allowed"
    change_billing_status(transaction, organization, status, "operator" if status == "blocked" else None, author)
    return find_organization(transaction, number)


def change_billing_status(
    transaction: Transaction,
    organization: Organization,
    status: BillingStatus,
    reason: BlockedReason | None,
    author: Author,
) -> tuple[EndpointKey, ...]:
    """Write a new status and its record, and queue `billing.status_changed` (decisions 8.9); whether the step is
    allowed is not checked here. Every change of a status goes through this function. Returns the endpoint queues to
    wake.
    """
    number, before = organization.number, organization.billing_status
    change = BillingChange(before, status, reason, author.at_ms, author.by, author.note)
    transaction.put(BILLING_CHANGES, (number, author.change_id.bytes), change)
    if status == "past_due":
        # A clock that is behind would have the term of payment pass at once.
        believed = transaction.get(RETENTION_PASSES, number) or RetentionPass()
        transaction.put(PAST_DUE, (number,), max(author.at_ms, believed.began_at_ms))
    else:
        transaction.delete(PAST_DUE, number)
    data = BillingStatusChanged(
        previous_status=before,
        current_status=status,
        accepting_traffic=status != "blocked",
        blocked_reason=reason,
    )
    _change(transaction, number, billing_status=status, blocked_reason=reason)
    return enqueue(transaction, number, "billing.status_changed", "live", data, author.at_ms)


def _change(transaction: Transaction, number: int, **changes: object) -> Organization:
    organization = msgspec.structs.replace(find_organization(transaction, number), **changes)
    transaction.put(ORGANIZATIONS, (number,), organization)
    return organization
