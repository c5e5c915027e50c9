"""Signals of the group `account`: what the velocity of an event's subjects shows (decisions 11.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from svc.identify.model import Observation
from svc.identify.velocity.counts import Velocity
from svc.identify.velocity.record import AccountRecord
from svc.kernel.tenants.organization import AccountThresholds

KNOWN_S: Final = 24 * 3600
"""From this age on, an account has devices that are known as its own."""


def account_signals(
    velocity: Velocity, thresholds: AccountThresholds, before: AccountRecord | None, visitor: int | None, at_s: int
) -> tuple[Observation, ...]:
    """Return the signals of an event. `before` is the record of its account before it, `None` if there is none;
    `visitor` the number of its visitor, `None` = not identifiable.
    """
    found = [*_of_many_accounts(velocity, thresholds)]
    if velocity.account is not None and velocity.account.others[0][2] >= thresholds.account_sharing:
        found.append(Observation("account_sharing", "medium", ("many_visitors_of_account",)))
    if before is not None and visitor is not None and at_s - before.first_s >= KNOWN_S:
        known = before.of(visitor)
        if known is None or not known.is_had(at_s):
            found.append(Observation("account_new_device", "medium", ("visitor_new_to_account",)))
    return tuple(found)


def _of_many_accounts(velocity: Velocity, thresholds: AccountThresholds) -> Iterator[Observation]:
    """Yield what the accounts of the visitor and of the address show, whether or not the event names one."""
    accounts, at_address = velocity.visitor.others[0], velocity.address.others[1]
    if accounts[2] >= thresholds.multi_account:
        yield Observation("multi_account", "high", ("many_accounts_of_visitor",))
    tested = [
        evidence
        for evidence, count, threshold in (
            ("many_accounts_of_visitor_in_an_hour", accounts[0], thresholds.account_testing_visitor),
            ("many_accounts_of_address_in_an_hour", at_address[0], thresholds.account_testing_address),
        )
        if count >= threshold
    ]
    if tested:
        yield Observation("account_testing", "high", tuple(tested))


def may_show(velocity: Velocity) -> bool:
    """Return whether any signal can be shown: nothing is to be looked up for an event without any account."""
    return velocity.account is not None or velocity.visitor.others[0][2] > 0 or velocity.address.others[1][0] > 0
