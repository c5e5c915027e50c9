"""How many keys an organization may have and issue (decisions 2.5).

What may live here: the count that is kept for each organization, and the rules over it.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Literal

import msgspec

MOST_ACTIVE_KEYS = 200
"""Keys of an organization that are neither revoked nor expired, of all kinds together."""


class ActiveKeys(msgspec.Struct, frozen=True, array_like=True):
    """How many active keys one organization has."""

    unlimited: int = 0
    """Those without an expiry."""
    expiries_ms: tuple[int, ...] = ()
    """When the others expire, in order; each is after `as_of_ms`."""
    as_of_ms: int = 0
    """Keys that expired until then are left out. Never goes back, whatever the clock does."""

    @property
    def count(self) -> int:
        """Active keys at `as_of_ms`: call it on the result of `at`."""
        return self.unlimited + len(self.expiries_ms)

    def at(self, now_ms: int) -> ActiveKeys:
        """The record at `now_ms`, without the keys that have expired; never at an earlier time than `as_of_ms`."""
        as_of_ms = max(self.as_of_ms, now_ms)
        expired = bisect_right(self.expiries_ms, as_of_ms)
        return ActiveKeys(self.unlimited, self.expiries_ms[expired:], as_of_ms)

    def plus_key(self, expires_at_ms: int | None) -> ActiveKeys:
        """The record with one more key; the same object for a key that has expired already."""
        if expires_at_ms is None:
            return msgspec.structs.replace(self, unlimited=self.unlimited + 1)
        if expires_at_ms <= self.as_of_ms:
            return self
        expiries = list(self.expiries_ms)
        insort(expiries, expires_at_ms)
        return msgspec.structs.replace(self, expiries_ms=tuple(expiries))

    def minus_key(self, expires_at_ms: int | None) -> ActiveKeys:
        """The record without a key that was not revoked before; the same object for one that has expired and is left
        out already.
        """
        if expires_at_ms is None:
            return msgspec.structs.replace(self, unlimited=self.unlimited - 1)
        if expires_at_ms not in self.expiries_ms:
            return self
        expiries = list(self.expiries_ms)
        expiries.remove(expires_at_ms)
        return msgspec.structs.replace(self, expiries_ms=tuple(expiries))


def may_issue(active: int, issued_today: int, keys_per_day: int) -> Literal["active_keys", "keys_per_day"] | None:
    """Which limit forbids issuing a key now (decisions 2.5); `None` = it may be issued."""
    if active >= MOST_ACTIVE_KEYS:
        return "active_keys"
    return "keys_per_day" if issued_today >= keys_per_day else None
