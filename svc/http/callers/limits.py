"""The limits on everything that takes a key beside identify (decisions 4), and the turns of what takes long.

The buckets are in memory: a restart refills. Each use has its own, so that what a page's public key does cannot keep
the organization's own servers out.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import msgspec
import trio

from svc.http.callers.caller import Caller
from svc.kernel.access.audit import AuditRecord
from svc.kernel.limits.eviction import client_prefix, site_prefix
from svc.kernel.limits.quotas import seconds_to_midnight
from svc.kernel.limits.ratelimit import Allowances, BucketName, Buckets, Limiter, LimitShares, MemoryBuckets, Use
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.refusals import Refusal, over_day, over_rate

RETRY_AFTER_S = 1


class LongReads:
    """The turns of one service: of all organizations one long read runs at a time, and each organization queues once.
    One that may take longer than some tenths of a second holds the turn for a slice at a time (`slices.in_turns`).

    A request gets its `Turn` with its `Call`, and nothing else takes one: so what a request reads while it holds the
    turn never waits for that turn.
    """

    def __init__(self) -> None:
        self.lock = trio.Lock()
        self.own: dict[int, trio.Lock] = {}
        """Of organizations that have one which runs or waits."""
        self.pages: dict[int, trio.Lock] = {}
        """The same of pages."""
        self.exclusive: set[int] = set()
        """Organizations that have an exclusive read."""

    def turn(self, organization: int) -> Turn:
        """Return the turn of one request of the organization. It is not taken yet."""
        return Turn(self, organization)


@asynccontextmanager
async def _of(locks: dict[int, trio.Lock], organization: int) -> AsyncGenerator[None]:
    """Hold the organization's lock for a block."""
    own = locks.setdefault(organization, trio.Lock())
    try:
        async with own:
            yield
    finally:
        if not own.locked() and locks.get(organization) is own:
            del locks[organization]


class Turn:
    """The turn of one request among the long reads of a service. Blocks that hold it may be within each other: the
    outermost waits for it and gives it back. A read of seconds is exclusive and holds the turn for each of its slices:
    others of the organization are refused, and other organizations go on in between.
    """

    def __init__(self, reads: LongReads, organization: int) -> None:
        self._reads, self._organization = reads, organization
        self._is_held = False

    def refusal(self) -> Refusal | None:
        """Return `429 rate_limited` while the organization has an exclusive read."""
        if self._organization not in self._reads.exclusive:
            return None
        explanation = "A preview or suggestion of this organization runs. Wait for the seconds in Retry-After."
        return Refusal("rate_limited", retry_after_s=RETRY_AFTER_S, explanation=explanation)

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Hold the turn for a block: for a read that goes on beyond its first milliseconds."""
        if self._is_held:
            yield
            return
        async with _of(self._reads.own, self._organization), self._reads.lock:
            self._is_held = True
            try:
                yield
            finally:
                self._is_held = False

    @asynccontextmanager
    async def page(self) -> AsyncGenerator[None]:
        """Be, for a block, the one page of the organization that is read: for a read of some slices. Others of the
        organization wait, and nobody else. The turn may not be asked for within.
        """
        if self._is_held:
            yield
            return
        async with _of(self._reads.pages, self._organization):
            yield

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Refuse the organization's other exclusive reads for a block, by `refusal`. Enter it only if there is none,
        without a checkpoint in between.
        """
        self._reads.exclusive.add(self._organization)
        try:
            yield
        finally:
            self._reads.exclusive.discard(self._organization)


BYTES_A_DAY = 16 << 20
"""Of one organization and UTC day: some 50,000 changes, or 600 of a hundred long origins each."""


class AuditBudget:
    """How many bytes of audit records each organization has stored today."""

    def __init__(self) -> None:
        self._used: dict[int, tuple[int, int]] = {}
        """By organization: the UTC day, and the bytes of its records."""

    def refusal(self, organization: int, at_ms: int) -> Refusal | None:
        """Return `429 rate_limited` until midnight if an organization has used up its budget."""
        day, used = self._used.get(organization, (0, 0))
        if day != at_ms // DAY_MS or used < BYTES_A_DAY:
            return None
        return over_day("the changes that it may make today", seconds_to_midnight(at_ms), "the audit budget")

    def note(self, record: AuditRecord) -> None:
        """Count a record that was stored."""
        today = record.at_ms // DAY_MS
        day, used = self._used.get(record.organization, (today, 0))
        length = len(msgspec.json.encode(record))  # what is stored has about as much
        self._used[record.organization] = (today, length + (used if day == today else 0))


_WHOLE = LimitShares(nonproduction=1, address=1)
SIGN_INS_PER_S = 5
"""Attempts to sign in to the console from one address (IPv4 /32, IPv6 /64)."""
SITE_SIGN_INS_PER_S = 20
"""From one IPv6 /48, which is what a customer of a provider has. There is no bound over all addresses: many of them
could keep everybody out, and what they would guess has 256 bits."""
ACCOUNT_SIGN_INS, ACCOUNT_SIGN_INS_S = 10, 600
"""Attempts to sign in with one e-mail address, from any address, in this number of seconds: one a minute once they are
used up. Their bucket has a clock that is slower by this factor, so that a restart alone refills it at once.
"""
OPEN_READS_PER_S = 20
"""Requests of one address for data that is read from the store without a key, and that callers cache."""
SITE_OPEN_READS_PER_S = 80


EVENT_WORK: Final = 1
"""Units of an event that a preview looks at."""
ENTRY_WORK: Final = 10
"""Of a list entry that is added or removed."""
CONDITION_WORK: Final = 10
"""Of a rule or a filter that is saved or tried: it is compiled, in some tenths of a millisecond."""
CHARACTERS_A_UNIT: Final = 20
"""Of its condition, beside that: the longest ones take some milliseconds."""


def condition_work(conditions: Iterable[str]) -> int:
    """Return the units of conditions that are saved or tried."""
    return sum(CONDITION_WORK + len(text) // CHARACTERS_A_UNIT for text in conditions)


class RequestLimits:
    """The limits of one service. `allowances`: requests per second; `shares`: the parts of the public keys' limit that
    nonproduction keys and single addresses may use; `buckets`: shared with other workers, if there are any.
    """

    def __init__(self, allowances: Allowances, shares: LimitShares, buckets: Buckets | None = None) -> None:
        self._allowances = allowances
        self._buckets = buckets = buckets or MemoryBuckets()
        self._limiters = {name: Limiter(name, _WHOLE, buckets) for name in ("server", "read", "management")}
        """By use; `server` for `client` requests that come without a public key, sent or forwarded."""
        self._limiters["client"] = Limiter("client", shares, buckets)
        self.long_reads = LongReads()
        self.audit = AuditBudget()

    def allow(self, allowances: Allowances) -> None:
        """Set the requests per second from now on; the fill levels of the buckets stay."""
        self._allowances = allowances

    def refusal(self, use: Use, caller: Caller, at_ms: int) -> Refusal | None:
        """Return `429 rate_limited` if the caller's organization has used up its allowance for this use (decisions 4);
        `None` if it has not, and then a token was taken.
        """
        limit = getattr(self._allowances, use)
        if use == "client" and limit:
            of_organization = caller.organization.rate_limit_per_s
            limit = max(limit, of_organization) if of_organization else 0
        of_servers = use == "client" and caller.applied.kind != "public"
        taken = self._limiters["server" if of_servers else use].take(
            caller.organization.number,
            limit,
            at_ms,
            production=caller.key.environment in ("production", None),
            address=visitor_address(caller),
        )
        return None if taken.admitted else over_rate(taken.reached, taken.retry_after_s, use)

    def work_refusal(self, organization: int, units: int, at_ms: int) -> Refusal | None:
        """Return `429 rate_limited` if the organization has used up its allowance of work that takes long; `None` if it
        has not, and then these units were taken, even if there were fewer: the next request waits for them.
        """
        limit = self._allowances.work
        if not limit or not units:
            return None
        (taken,) = self._buckets.take({BucketName("work", organization): limit}, at_ms, units)
        if taken.admitted:
            return None
        explanation = "The organization has had much work done just now. Wait for the seconds in Retry-After."
        return Refusal("rate_limited", retry_after_s=taken.retry_after_s, explanation=explanation)

    def sign_in_refusal(self, address: str, at_ms: int) -> Refusal | None:
        """Return `429 rate_limited` if too many attempts to sign in came from this address or its site; `None` if not,
        and then a token was taken of both.
        """
        too_many = "There were too many attempts to sign in. Wait for the seconds in Retry-After."
        return self._refusal_of_address("sign-in", address, (SIGN_INS_PER_S, SITE_SIGN_INS_PER_S), at_ms, too_many)

    def account_refusal(self, digest: bytes, at_ms: int) -> Refusal | None:
        """Return `429 rate_limited` if too many attempts were made to sign in with one e-mail address, whether or not a
        member has it; otherwise take a token and return `None`. `digest`: see `email_digest`.
        """
        wanted = {BucketName("sign-in", 0, "account", digest.hex()): ACCOUNT_SIGN_INS}
        (taken,) = self._buckets.take(wanted, at_ms // ACCOUNT_SIGN_INS_S)
        if taken.admitted:
            return None
        wait_s = -(-ACCOUNT_SIGN_INS_S // ACCOUNT_SIGN_INS)
        too_many = "There were too many attempts to sign in with this address. Wait for the seconds in Retry-After."
        return Refusal("rate_limited", retry_after_s=wait_s, explanation=too_many)

    def open_read_refusal(self, address: str, at_ms: int) -> Refusal | None:
        """Return `429 rate_limited` if this address or its site reads public data of the store too often; otherwise
        take a token of both and return `None`.
        """
        too_many = "This address asks too often. Wait for the seconds in Retry-After, and keep what you read."
        return self._refusal_of_address(
            "open-read", address, (OPEN_READS_PER_S, SITE_OPEN_READS_PER_S), at_ms, too_many
        )

    def _refusal_of_address(
        self, use: str, address: str, limits_per_s: tuple[int, int], at_ms: int, explanation: str
    ) -> Refusal | None:
        """Count a request for an address and its site. Refuse it at one of their `limits_per_s`."""
        prefix = client_prefix(address)
        prefixes = [one for one in (prefix, site_prefix(prefix)) if one is not None]
        wanted = {BucketName(use, 0, "address", one): limit for one, limit in zip(prefixes, limits_per_s, strict=False)}
        taken = self._buckets.take(wanted, at_ms)
        if all(one.admitted for one in taken):
            return None
        wait_s = max(one.retry_after_s for one in taken)
        return Refusal("rate_limited", retry_after_s=wait_s, explanation=explanation)


def visitor_address(caller: Caller) -> str | None:
    """Return the /32 or /64 that has a limit of its own: of a visitor with a public key, which anybody can copy,
    whether it was sent or forwarded (decisions 4); `None` of others.
    """
    return client_prefix(caller.facts.ip) if caller.applied.kind == "public" else None
