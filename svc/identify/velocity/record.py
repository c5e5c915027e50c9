"""Accounts as records: since when an account is known, which visitors it had, and what that signals (decisions 11.5).

What may live here: the record of one account, how an event changes it, and what it says of a visitor. Pure: records in,
records out. A record is kept as long as visitors are (docs/adr/0167), and the velocity in it for 30 to 60 days.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from svc.identify.model import Observation
from svc.identify.velocity.counts import EMPTY, Velocity, VelocityRow
from svc.kernel.tenants.organization import AccountThresholds

DAY_S: Final = 24 * 3600
MAX_VISITORS: Final = 64
"""Visitors of one account that its record keeps."""
MAX_DAYS: Final = 0xFFFF
DAYS_TO_KNOW: Final = 2
"""Earlier UTC days on which a visitor came for an account, after which the account is known to have it."""


class KnownVisitor(msgspec.Struct, frozen=True, array_like=True):
    """A visitor that came for an account. Times are seconds since 1970. Append fields, never move them."""

    visitor: int
    """Its number."""
    first_s: int
    last_s: int
    """The first event of the last UTC day, so that later events of a day write nothing."""
    days: int = 1
    """UTC days on which it came, up to `MAX_DAYS`."""
    verified_s: int = 0
    """Time of the first event whose account a backend verified; 0 = none."""
    is_first: bool = False
    """Whether the first event of the account was its own."""

    def is_had(self, at_s: int) -> bool:
        """Return whether the account is known to have had the visitor before an event at this time: a backend verified
        the pair, it came on two earlier UTC days, or it is the account's first visitor.
        """
        earlier_days = self.days - (at_s // DAY_S <= self.last_s // DAY_S)
        return bool(self.verified_s) or self.is_first or earlier_days >= DAYS_TO_KNOW

    def as_first(self, visitor: int | None) -> KnownVisitor:
        """Return the visitor as one of an account whose first visitor has this number."""
        return msgspec.structs.replace(self, is_first=self.visitor == visitor)

    @property
    def worth(self) -> tuple[bool, bool, int]:
        """Its rank if there is no room for all: verified pairs first, then visitors of several days, then newest."""
        return bool(self.verified_s) or self.is_first, self.days > DAYS_TO_KNOW, self.last_s

    def with_event(self, at_s: int, *, verified: bool) -> KnownVisitor:
        """Return the visitor with another event; the same object if it adds nothing."""
        day = at_s // DAY_S
        is_new_day = not self.first_s // DAY_S <= day <= self.last_s // DAY_S
        last_s = at_s if day > self.last_s // DAY_S else self.last_s
        verified_s = (min(self.verified_s, at_s) if self.verified_s else at_s) if verified else self.verified_s
        after = (min(self.first_s, at_s), last_s, min(self.days + is_new_day, MAX_DAYS), verified_s)
        if after == (self.first_s, self.last_s, self.days, self.verified_s):
            return self
        return KnownVisitor(self.visitor, *after, self.is_first)


class PairEvent(NamedTuple):
    """The part of an event that counts for the record of its account."""

    at_s: int
    visitor: int | None
    """Its number; `None` = not identifiable."""
    is_verified: bool


_FORMAT: Final = 1
"""First byte of a packed record."""
_HEAD: Final = struct.Struct("<BIIB")
"""Format, first and last time, number of visitors."""
_VISITOR: Final = struct.Struct("<IIIHI?")


class AccountRecord(msgspec.Struct, frozen=True):
    """What is kept of one account. Times are seconds since 1970."""

    first_s: int
    last_s: int
    """The first event of the last UTC day."""
    visitors: tuple[KnownVisitor, ...] = ()
    """At most `MAX_VISITORS`, in no order."""
    activity: VelocityRow = EMPTY
    """Its velocity."""

    def pack(self) -> bytes:
        """Return 10 bytes, 19 for each visitor, and its velocity; little-endian (docs/internals/format.md)."""
        return b"".join(
            (
                _HEAD.pack(_FORMAT, self.first_s, self.last_s, len(self.visitors)),
                *(
                    _VISITOR.pack(one.visitor, one.first_s, one.last_s, one.days, one.verified_s, one.is_first)
                    for one in self.visitors
                ),
                b"" if self.activity is EMPTY else self.activity.pack(),
            )
        )

    @staticmethod
    def unpack(raw: bytes) -> AccountRecord:
        """Return the record in these bytes. Raises `ValueError` and `struct.error` for bytes that are none."""
        form, first_s, last_s, size = _HEAD.unpack_from(raw)
        if form != _FORMAT:
            raise ValueError(f"not a record of an account: first byte {form}")
        activity_at = _HEAD.size + size * _VISITOR.size
        visitors = tuple([KnownVisitor(*found) for found in _VISITOR.iter_unpack(raw[_HEAD.size : activity_at])])
        if len(visitors) < size:
            raise ValueError(f"{len(visitors)} visitors of {size}")
        activity = VelocityRow.unpack(raw[activity_at:]) if len(raw) > activity_at else EMPTY
        return AccountRecord(first_s, last_s, visitors, activity)

    def counting(self, activity: VelocityRow) -> AccountRecord:
        """Return the record with this velocity."""
        return AccountRecord(self.first_s, self.last_s, self.visitors, activity)

    def of(self, visitor: int | None) -> KnownVisitor | None:
        """Return the visitor with this number; `None` if the account is not known to have it."""
        return next((known for known in self.visitors if known.visitor == visitor), None)

    def with_event(self, event: PairEvent) -> AccountRecord:
        """Return the record with an event of the account; the same object if it adds nothing."""
        at_s = event.at_s
        first_s = min(self.first_s, at_s)
        last_s = at_s if at_s // DAY_S > self.last_s // DAY_S else self.last_s
        visitors = self.visitors
        if event.visitor is not None:
            visitors = _with(visitors, event)
            if at_s < self.first_s:
                visitors = tuple(each.as_first(event.visitor) for each in visitors)
        if visitors is self.visitors and (first_s, last_s) == (self.first_s, self.last_s):
            return self
        return AccountRecord(first_s, last_s, visitors, self.activity)

    def without_event(self, event: PairEvent, others: Sequence[PairEvent], *, is_all: bool) -> AccountRecord | None:
        """Return the record without an event that was moved to another account; `None` if nothing is left. `others`:
        other stored events of the account; `is_all`: whether there are no more of them. Earlier events, which are past
        their retention, keep their part.
        """
        is_first = is_all and self.first_s == event.at_s
        if is_first and not others:
            return None
        known = self.of(event.visitor)
        visitors = self.visitors
        if known is not None:
            own = [other for other in others if other.visitor == event.visitor]
            has_more = bool(own) or not is_all or known.first_s < event.at_s
            left = (_reduced(known, event, own, is_all=is_all),) if has_more else ()
            visitors = (*(each for each in visitors if each is not known), *left)
        if not is_first:
            return AccountRecord(self.first_s, self.last_s, visitors, self.activity)
        first = min(others, key=lambda other: other.at_s)
        visitors = tuple(each.as_first(first.visitor) for each in visitors)
        return AccountRecord(first.at_s, self.last_s, visitors, self.activity)

    def without(self, visitors: frozenset[int]) -> AccountRecord | None:
        """Return the record without these visitors, which are erased; the same object if it has none of them, and
        `None` if they were all that it had: no event of anybody else is counted.
        """
        left = tuple(known for known in self.visitors if known.visitor not in visitors)
        activity = self.activity
        for gone in visitors.intersection(activity.others[0].ids):
            activity = activity.without_others((gone, None, None))
        if len(left) == len(self.visitors):
            return self if activity is self.activity else self.counting(activity)
        return AccountRecord(self.first_s, self.last_s, left, activity) if left or activity.events else None

    def since(self, at_s: int, active_s: int) -> AccountRecord | None:
        """Return the record without visitors that were last seen before the day of this time, and without a velocity
        whose last event is from before `active_s`; `None` if the account was last seen before the day.
        """
        if self.last_s // DAY_S < at_s // DAY_S:
            return None
        left = tuple(known for known in self.visitors if known.last_s // DAY_S >= at_s // DAY_S)
        activity = self.activity if self.activity.last_s >= active_s else EMPTY
        if len(left) == len(self.visitors) and activity is self.activity:
            return self
        return AccountRecord(self.first_s, self.last_s, left, activity)


def first_record(event: PairEvent) -> AccountRecord:
    """Return the record of an account of which this is the first event."""
    verified_s = event.at_s if event.is_verified else 0
    known = () if event.visitor is None else (_known(event.visitor, event.at_s, verified_s, is_first=True),)
    return AccountRecord(event.at_s, event.at_s, known)


def _known(visitor: int, at_s: int, verified_s: int, *, is_first: bool) -> KnownVisitor:
    return KnownVisitor(visitor, at_s, at_s, 1, verified_s, is_first)


def _with(visitors: tuple[KnownVisitor, ...], event: PairEvent) -> tuple[KnownVisitor, ...]:
    assert event.visitor is not None
    for at, known in enumerate(visitors):
        if known.visitor == event.visitor:
            after = known.with_event(event.at_s, verified=event.is_verified)
            return visitors if after is known else (*visitors[:at], after, *visitors[at + 1 :])
    new = _known(event.visitor, event.at_s, event.at_s if event.is_verified else 0, is_first=False)
    if len(visitors) < MAX_VISITORS:
        return (*visitors, new)
    least = min((*visitors, new), key=lambda known: known.worth)
    return visitors if least is new else (*(known for known in visitors if known is not least), new)


def _reduced(known: KnownVisitor, event: PairEvent, own: Sequence[PairEvent], *, is_all: bool) -> KnownVisitor:
    """Return a visitor of the account without an event that went to another account, while others stay: what these say.
    Of those that are not among `own` no more is known than what the record has.
    """
    times = sorted(other.at_s for other in own)
    verified_s = known.verified_s
    if verified_s == event.at_s:
        verified_s = min((other.at_s for other in own if other.is_verified), default=0)
    if is_all and times and known.first_s in (event.at_s, times[0]):
        by_day = {at_s // DAY_S: at_s for at_s in reversed(times)}
        days = min(len(by_day), MAX_DAYS)
        return KnownVisitor(known.visitor, times[0], by_day[times[-1] // DAY_S], days, verified_s, known.is_first)
    day, last_s = event.at_s // DAY_S, known.last_s
    has_day = not is_all or any(at_s // DAY_S == day for at_s in times)
    if not has_day and last_s // DAY_S == day:
        last_s = max(known.first_s, times[-1] if times else day * DAY_S - 1)
    days = max(1, known.days - (not has_day))
    return KnownVisitor(known.visitor, known.first_s, last_s, days, verified_s, known.is_first)


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
