"""Token buckets (decisions 4): what an organization may ask for in a second, and what parts of it may take of that.

`take(bucket, limit, now)` decides on one bucket; `Buckets` keep them by name; a `Limiter` says from which of them a
request takes. Nothing waits. Counted in thousandths of a token, so that one millisecond refills `limit` of them and no
fraction is ever lost.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from svc.kernel.limits.eviction import site_prefix

DEFAULT_LIMIT_PER_S = 100
MAX_ADDRESSES = 16_384
"""Addresses whose buckets are kept: unused for a second, a bucket is full, and not missed."""
SITE_ADDRESSES = 2
"""An IPv6 /48 may take as much as this number of addresses: one customer of a provider has up to 65,536 of them."""
CLOCK_STEP_MS = 1_000
"""A clock that goes back by less has not been set: two readings have changed places."""


class Bucket(NamedTuple):
    """A token bucket: what is left of it, in thousandths of a token, at a time in Unix milliseconds."""

    thousandths: int
    at_ms: int


Bound = Literal["organization", "nonproduction", "address", "account"]
"""Whose bucket is empty: the organization's, its keys' outside production, or that of one IP or e-mail address."""


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


def take(bucket: Bucket | None, limit_per_s: int, now_ms: int, tokens: int = 1) -> Taken:
    """Take a token from a bucket, or several; `None` = a new bucket, which is full. Where there is one, more may be
    taken than there are: the bucket owes them then. Its size equals the limit per second; a clock that was set back
    refills nothing; limit 0 = no limit (decisions 4). Processes that share a bucket read the clock first and take the
    token a little later: a time up to `CLOCK_STEP_MS` before the bucket's is therefore not treated as a clock set back,
    and does not refill the same millisecond twice.
    """
    if limit_per_s == 0:
        return Taken(Bucket(0, now_ms), admitted=True, remaining=0, retry_after_s=0)
    full = limit_per_s * 1000
    early_ms = 0
    if bucket is None:
        held = full
    else:
        held = min(full, bucket.thousandths + limit_per_s * max(0, now_ms - bucket.at_ms))
        if 0 < bucket.at_ms - now_ms < CLOCK_STEP_MS:
            early_ms = bucket.at_ms - now_ms
    at_ms = now_ms + early_ms
    if held >= 1000:
        held -= 1000 * tokens
        return Taken(Bucket(held, at_ms), admitted=True, remaining=max(0, held // 1000), retry_after_s=0)
    missing_ms = early_ms - (-(1000 - held) // limit_per_s)
    return Taken(Bucket(held, at_ms), admitted=False, remaining=0, retry_after_s=max(1, -(-missing_ms // 1000)))


def take_all(wanted: Sequence[tuple[Bucket | None, int]], now_ms: int, tokens: int = 1) -> list[Taken]:
    """Take tokens of each bucket, or of none; `wanted` has each bucket with its limit. The buckets in the result are
    to be kept in either case: what had time to refill has refilled.
    """
    each = [take(bucket, limit_per_s, now_ms, tokens) for bucket, limit_per_s in wanted]
    if all(one.admitted for one in each):
        return each
    return [
        one._replace(bucket=Bucket(one.bucket.thousandths + 1000 * tokens, one.bucket.at_ms)) if one.admitted else one
        for one in each
    ]


class BucketName(NamedTuple):
    """The name of a bucket: its use, its organization (0 = none), and the part of the organization's traffic."""

    use: str
    organization: int
    bound: Bound = "organization"
    address: str = ""
    """Empty but for the bounds `address` and `account`."""


class Buckets(Protocol):
    """Where buckets are kept. Nothing waits, and nothing fails."""

    def take(self, wanted: Mapping[BucketName, int], now_ms: int, tokens: int = 1) -> list[Taken]:
        """Take tokens of each of these buckets, or of none, by their limits per second, none of which is 0. Nobody else
        takes in between. In the order of `wanted`. Buckets of accounts may have a slower clock of their own, and
        are then taken alone.
        """
        ...


class MemoryBuckets:
    """The buckets of one process. Of addresses and of accounts, the one that was used least lately goes."""

    def __init__(self) -> None:
        self._lasting: dict[BucketName, Bucket] = {}
        self._addresses: OrderedDict[BucketName, Bucket] = OrderedDict()
        self._accounts: OrderedDict[BucketName, Bucket] = OrderedDict()

    @property
    def addresses(self) -> int:
        """Addresses whose buckets are kept now; `MAX_ADDRESSES` at most."""
        return len(self._addresses)

    def take(self, wanted: Mapping[BucketName, int], now_ms: int, tokens: int = 1) -> list[Taken]:
        """See `Buckets`."""
        each = take_all([(self._kept(name).get(name), limit) for name, limit in wanted.items()], now_ms, tokens)
        for name, one in zip(wanted, each, strict=True):
            kept = self._kept(name)
            kept[name] = one.bucket
            if isinstance(kept, OrderedDict):
                kept.move_to_end(name)
                while len(kept) > MAX_ADDRESSES:
                    kept.popitem(last=False)
        return each

    def _kept(self, name: BucketName) -> dict[BucketName, Bucket]:
        if name.bound == "account":
            return self._accounts
        return self._addresses if name.bound == "address" else self._lasting


class DividedBuckets:
    """One node's share of each limit of buckets that several nodes divide evenly: at least one request a second, so
    that all of them may admit `nodes`. What is left is counted as if each other node had as much left.
    """

    def __init__(self, own: Buckets, nodes: Callable[[], int]) -> None:
        """Divide by `nodes()`, the number of nodes now, including this one; at least 1."""
        self._own = own
        self._nodes = nodes

    def take(self, wanted: Mapping[BucketName, int], now_ms: int, tokens: int = 1) -> list[Taken]:
        """See `Buckets`."""
        nodes = self._nodes()
        taken = self._own.take({name: max(1, limit // nodes) for name, limit in wanted.items()}, now_ms, tokens)
        return [
            one._replace(remaining=min(limit, one.remaining * nodes))
            for one, limit in zip(taken, wanted.values(), strict=True)
        ]


class LimitShares(NamedTuple):
    """What parts of an organization's traffic may take of its limit (decisions 4)."""

    nonproduction: float = 0.25
    """Keys outside production, together."""
    address: float = 0.25
    """One visitor address with a public key. An IPv6 /48 has `SITE_ADDRESSES` times as much."""
    address_least_per_s: int = 10
    """The least rate for that address, as far as the organization's limit permits."""


class Allowances(NamedTuple):
    """Requests that an organization may make in a second beside identify, by what they ask for; 0 = no limit."""

    client: int = 100
    """Challenges and deferred reports; as many as identifications where it may make more of those."""
    read: int = 50
    """With secret keys."""
    management: int = 20
    work: int = 4_000
    """Units of work that takes long (`svc.http.callers.limits`)."""


Use = Literal["client", "read", "management"]
"""What a request beside identify counts against."""


class Limiter:
    """The limits on one use: a request takes a token from each bucket that it belongs to, or from none."""

    def __init__(self, use: str, shares: LimitShares, buckets: Buckets) -> None:
        self._use = use
        self._shares = shares
        self._buckets = buckets

    def take(self, organization: int, limit_per_s: int, now_ms: int, *, production: bool, address: str | None) -> Taken:
        """Take a token for one request. `address` is the visitor's `client_prefix`, `None` if it has no limit of its
        own.

        What is left is the organization's; it is 0 on a refusal, whichever bucket is empty. The limit that is named
        then is the one with the longest wait, the organization's first.
        """
        if not limit_per_s:
            return take(None, 0, now_ms)
        use, shares = self._use, self._shares
        wanted = {BucketName(use, organization): limit_per_s}
        if not production:
            most = share_of(limit_per_s, shares.nonproduction)
            wanted[BucketName(use, organization, "nonproduction")] = most
        if address is not None:
            most = share_of(limit_per_s, shares.address, shares.address_least_per_s)
            wanted[BucketName(use, organization, "address", address)] = most
            site = site_prefix(address)
            if site is not None:
                most = share_of(limit_per_s, min(1, SITE_ADDRESSES * shares.address), shares.address_least_per_s)
                wanted[BucketName(use, organization, "address", site)] = most
        taken = dict(zip(wanted, self._buckets.take(wanted, now_ms), strict=True))
        whole = next(iter(taken.values()))
        if all(one.admitted for one in taken.values()):
            return whole
        reached = max(taken, key=lambda name: taken[name].retry_after_s)
        waits = taken[reached].retry_after_s
        return Taken(whole.bucket, admitted=False, remaining=0, retry_after_s=waits, reached=reached.bound)


def share_of(limit_per_s: int, share: float, least: int = 1) -> int:
    """Return the part `share` (0 to 1) of a limit, rounded down, at least `least` and never more than all of it."""
    return min(limit_per_s, max(least, int(limit_per_s * share + _ROUNDING)))


_ROUNDING = 1e-9
"""What a product of fractions may miss: 0.29 of 100 is 28.999999999999996."""
