"""Signals of the group `account`: what the velocity of an event's subjects shows (decisions 11.5)."""

from __future__ import annotations

from typing import Final

import msgspec

from svc.domain.accounts.velocity import Velocity, VelocityRow
from svc.domain.model import Observation

KNOWN_S: Final = 24 * 3600
"""An account that was first seen so long ago has devices that are its own."""


class AccountThresholds(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """From which counts on the signals fire. Stored within an organization: append fields."""

    multi_account: int = 3
    """Accounts of one visitor in 30 days."""
    account_testing_visitor: int = 5
    """Accounts of one visitor in an hour."""
    account_testing_address: int = 20
    """Accounts of one address in an hour."""
    account_sharing: int = 6
    """Visitors of one account in 30 days."""


def account_signals(
    velocity: Velocity, thresholds: AccountThresholds, account_before: VelocityRow, visitor: int | None, at_s: int
) -> tuple[Observation, ...]:
    """Return the signals of an event with an account. `account_before` is the account's row before it; `visitor` the
    number of its visitor, `None` = not identifiable.
    """
    if velocity.account is None:
        return ()
    accounts, at_address = velocity.visitor.others[0], velocity.address.others[1]
    found: list[Observation] = []
    if accounts[2] >= thresholds.multi_account:
        found.append(Observation("multi_account", "high", ("many_accounts_of_visitor",)))
    tested = [
        evidence
        for evidence, count, threshold in (
            ("many_accounts_of_visitor_in_an_hour", accounts[0], thresholds.account_testing_visitor),
            ("many_accounts_of_address_in_an_hour", at_address[0], thresholds.account_testing_address),
        )
        if count >= threshold
    ]
    if tested:
        found.append(Observation("account_testing", "high", tuple(tested)))
    if velocity.account.others[0][2] >= thresholds.account_sharing:
        found.append(Observation("account_sharing", "medium", ("many_visitors_of_account",)))
    is_known = bool(account_before.first_s) and at_s - account_before.first_s >= KNOWN_S
    if is_known and visitor is not None and visitor not in account_before.others[0].ids:
        found.append(Observation("account_new_device", "medium", ("visitor_new_to_account",)))
    return tuple(found)
