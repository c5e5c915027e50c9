"""Token buckets (decisions 4): what an organization may ask for in a second, and what parts of it may take of that.

`take(bucket, limit, now)` decides on one bucket; a `Limiter` holds the buckets of all organizations. Nothing waits.
Counted in thousandths of a token, so that one millisecond refills `limit` of them and no fraction is ever lost.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal, NamedTuple

DEFAULT_LIMIT_PER_S = 100
MOST_ADDRESSES = 16_384
"""Addresses whose buckets are kept. A bucket is full again after a second without use, so one that is evicted later
than that is not missed."""


class Bucket(NamedTuple):
    """A token bucket: what is left of it, in thousandths of a token, at a time in Unix milliseconds."""

    thousandths: int
    at_ms: int


Bound = Literal["organization", "nonproduction", "address"]
"""Whose bucket is empty: the organization's, that of its keys outside production, or that of one visitor address."""


class Taken(NamedTuple):
    """The decision of one bucket, and the bucket after it."""

    bucket: Bucket
    admitted: bool
    remaining: int
    """Whole tokens left."""
    retry_after_s: int
    """Whole seconds until a token, at least 1; 0 when admitted."""
    reached: Bound = "organization"
    """Which limit was reached, where it was not admitted."""


def take(bucket: Bucket | None, limit_per_s: int, now_ms: int) -> Taken:
    """Take one token of a bucket; `None` = a new one, which is full. Burst = limit; a clock that goes back refills
    nothing; limit 0 = no limit (decisions 4).
    """
    if limit_per_s == 0:
        return Taken(Bucket(0, now_ms), admitted=True, remaining=0, retry_after_s=0)
    full = limit_per_s * 1000
    refilled = full if bucket is None else bucket.thousandths + limit_per_s * max(0, now_ms - bucket.at_ms)
    held = min(full, refilled)
    if held >= 1000:
        held -= 1000
        return Taken(Bucket(held, now_ms), admitted=True, remaining=held // 1000, retry_after_s=0)
    missing_ms = -(-(1000 - held) // limit_per_s)
    return Taken(Bucket(held, now_ms), admitted=False, remaining=0, retry_after_s=max(1, -(-missing_ms // 1000)))


class Shares(NamedTuple):
    """What parts of an organization's traffic may take of its limit (decisions 4)."""

    nonproduction: float = 0.25
    """Keys outside production, together."""
    address: float = 0.25
    """One visitor address with a public key."""
    address_least_per_s: int = 10
    """At least so much for that address, as far as the organization's limit goes."""


class Allowances(NamedTuple):
    """Requests that an organization may make in a second beside identify, by what they ask for; 0 = no limit."""

    client: int = 100
    """Challenges and deferred reports; as many as identifications where it may make more of those."""
    read: int = 50
    """With secret keys."""
    management: int = 20


Use = Literal["client", "read", "management"]
"""What a request beside identify counts against."""


class Limiter:
    """The buckets of organizations, of their traffic outside production, and of single addresses.

    A request takes a token from each bucket that it belongs to, or from none.
    """

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._organizations: dict[int, Bucket] = {}
        self._nonproduction: dict[int, Bucket] = {}
        self._addresses: OrderedDict[tuple[int, str], Bucket] = OrderedDict()

    @property
    def addresses(self) -> int:
        """Addresses whose buckets are kept now; `MOST_ADDRESSES` at most."""
        return len(self._addresses)

    def take(self, organization: int, limit_per_s: int, now_ms: int, *, production: bool, address: str | None) -> Taken:
        """Take a token for one request. `address` names the visitor's, `None` where it has no limit of its own.

        What is left is the organization's; it is 0 on a refusal, whichever bucket is empty. The limit that is named
        then is the one with the longest wait, the organization's first.
        """
        whole = take(self._organizations.get(organization), limit_per_s, now_ms)
        taken: dict[Bound, Taken] = {"organization": whole}
        if limit_per_s and not production:
            most = share_of(limit_per_s, self._shares.nonproduction)
            taken["nonproduction"] = take(self._nonproduction.get(organization), most, now_ms)
        if limit_per_s and address is not None:
            most = share_of(limit_per_s, self._shares.address, self._shares.address_least_per_s)
            taken["address"] = take(self._addresses.get((organization, address)), most, now_ms)
        if not all(one.admitted for one in taken.values()):
            reached = max(taken, key=lambda bound: taken[bound].retry_after_s)
            waits = taken[reached].retry_after_s
            return Taken(whole.bucket, admitted=False, remaining=0, retry_after_s=waits, reached=reached)
        self._organizations[organization] = whole.bucket
        if "nonproduction" in taken:
            self._nonproduction[organization] = taken["nonproduction"].bucket
        if address is not None and "address" in taken:
            self._remember((organization, address), taken["address"].bucket)
        return whole

    def _remember(self, key: tuple[int, str], bucket: Bucket) -> None:
        self._addresses[key] = bucket
        self._addresses.move_to_end(key)
        if len(self._addresses) > MOST_ADDRESSES:
            self._addresses.popitem(last=False)


def share_of(limit_per_s: int, share: float, least: int = 1) -> int:
    """The part `share` (0 to 1) of a limit, in whole requests a second: at least `least`, and never more than all of
    it.
    """
    return min(limit_per_s, max(least, round(limit_per_s * share)))
