"""The limits on everything that takes a key beside identify (decisions 4).

Owns the buckets, in memory: a restart refills. One set for each use, so that what a page's public key does cannot keep
the organization's own servers out.
"""

from __future__ import annotations

from svc.domain.eviction import client_prefix
from svc.domain.ratelimit import Allowances, Limiter, Shares, Use
from svc.domain.refusals import Refusal, over_rate
from svc.http.authentication import Caller
from svc.http.long_reads import LongReads

_WHOLE = Shares(nonproduction=1, address=1)
SIGN_INS_PER_S = 100
"""Attempts to sign in to the console, of all addresses together."""
_SIGN_INS = Shares(nonproduction=1, address=0.05, address_least_per_s=1)
"""One address (IPv4 /32, IPv6 /64) has 5 of them."""


class RequestLimits:
    """The buckets of one service. `allowances` are requests per second; `shares` bound what nonproduction keys and
    single addresses take of the one for public keys.
    """

    def __init__(self, allowances: Allowances, shares: Shares) -> None:
        self._allowances = allowances
        self._limiters: dict[Use, Limiter] = {
            "client": Limiter(shares),
            "read": Limiter(_WHOLE),
            "management": Limiter(_WHOLE),
        }
        self._servers = Limiter(_WHOLE)
        """Of `client` requests that come with another key than a public one."""
        self.long_reads = LongReads()
        self._sign_ins = Limiter(_SIGN_INS)

    def refusal(self, use: Use, caller: Caller, at_ms: int) -> Refusal | None:
        """`429 rate_limited` where the caller's organization has used up its allowance for this use (decisions 4);
        `None` where it has not, and then a token was taken.
        """
        limit = getattr(self._allowances, use)
        if use == "client" and limit:
            of_organization = caller.organization.rate_limit_per_s
            limit = max(limit, of_organization) if of_organization else 0
        of_servers = use == "client" and caller.key.kind != "public"
        taken = (self._servers if of_servers else self._limiters[use]).take(
            caller.organization.number,
            limit,
            at_ms,
            production=caller.key.environment in ("production", None),
            address=visitor_address(caller),
        )
        return None if taken.admitted else over_rate(taken.reached, taken.retry_after_s, use)

    def sign_in_refusal(self, address: str, at_ms: int) -> Refusal | None:
        """`429 rate_limited` where too many attempts to sign in came from this address, or from all; `None` where not,
        and then a token was taken.
        """
        taken = self._sign_ins.take(0, SIGN_INS_PER_S, at_ms, production=True, address=client_prefix(address))
        if taken.admitted:
            return None
        explanation = "There were too many attempts to sign in. Wait for the seconds in Retry-After."
        return Refusal("rate_limited", retry_after_s=taken.retry_after_s, explanation=explanation)


def visitor_address(caller: Caller) -> str | None:
    """The /32 or /64 that has a limit of its own: of a caller with a public key, which anybody can copy; `None` of
    others.
    """
    return client_prefix(caller.facts.ip) if caller.key.kind == "public" else None
