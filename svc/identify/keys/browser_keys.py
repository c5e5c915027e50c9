"""Keys of browsers and proofs that fail: a key that several have, and a signature that is wrong (decisions 18.6).

What may live here: what is remembered of a key and of an origin's proofs, and what that shows. Pure. Whether a report
is signed, `proof` says; whose key it is, matching.

A browser makes token and key together and loses them together, so that one key behind three tokens is a program's. And
nobody is in two countries and back within an hour: then a copy of the key is elsewhere.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from svc.identify.model import Observation

MAX_TOKENS: Final = 3
"""Tokens behind a key from which on several have it."""
BACK_WITHIN_S: Final = 3600
"""From the first visit elsewhere to the next one from where the key was before."""
KEPT_MS: Final = 400 * 24 * 3600 * 1000
"""How long the record of a key is kept after it was written."""
_REFRESHED_MS: Final = 30 * 24 * 3600 * 1000
"""A record this old is written again."""

WINDOW: Final = 20
"""Signed reports of an origin that are remembered."""
ENOUGH: Final = 18
"""How many of them must have been verified for a failure to count. With fewer, a proxy of the site rewrites reports,
and a failure would accuse every visitor."""
NO_OUTCOMES: Final = 1
"""Of an origin without a signed report. The highest bit that is set is no outcome; those below are, the latest lowest:
1 = verified."""


class BrowserKey(msgspec.Struct, frozen=True, array_like=True):
    """What is remembered of the key of a browser. Append fields, never move them."""

    written_ms: int
    tokens: tuple[int, ...] = ()
    """64-bit hashes of the tokens that came with it, at most `MAX_TOKENS`."""
    country: str = ""
    """ISO 3166-1 code of where it is; empty = not known."""
    since_s: int = 0
    """Since when it is there, in seconds since 1970."""
    before: str = ""
    """Where it was before that."""
    is_shared: bool = False
    """It is no proof any more."""


class Use(NamedTuple):
    """One report that a key signed."""

    token: int
    country: str | None
    """`None` where the address says nothing of that: an anonymity network's, or not known."""
    at_ms: int


class Shared(NamedTuple):
    """What one use shows of a key that several have."""

    behind_tokens: bool = False
    in_two_countries: bool = False


def used(before: BrowserKey | None, use: Use) -> tuple[BrowserKey, Shared]:
    """Return a key's record after a use (the same object if unchanged), and what shows that several have it."""
    if before is None:
        return BrowserKey(use.at_ms, (use.token,), use.country or "", use.at_ms // 1000), Shared()
    after = before
    if use.token not in before.tokens and len(before.tokens) < MAX_TOKENS:
        after = msgspec.structs.replace(after, tokens=(*before.tokens, use.token))
    in_two_countries = False
    if use.country and use.country != before.country:
        at_s = use.at_ms // 1000
        if use.country == before.before and 0 <= at_s - before.since_s <= BACK_WITHIN_S:
            in_two_countries = True
        after = msgspec.structs.replace(after, country=use.country, since_s=at_s, before=before.country)
    shared = Shared(len(after.tokens) >= MAX_TOKENS, in_two_countries)
    if any(shared) and not after.is_shared:
        after = msgspec.structs.replace(after, is_shared=True)
    if after is not before or use.at_ms - before.written_ms > _REFRESHED_MS:
        after = msgspec.structs.replace(after, written_ms=use.at_ms)
    return after, shared


def with_outcome(outcomes: int, *, verified: bool) -> int:
    """Return the outcomes of an origin's signed reports with one more: a leading bit, then the last `WINDOW`."""
    kept = outcomes << 1 | verified
    return kept if kept < 1 << (WINDOW + 1) else kept & ((1 << WINDOW) - 1) | 1 << WINDOW


def usually_verify(outcomes: int) -> bool:
    """Return whether `ENOUGH` of the last `WINDOW` signed reports were verified."""
    return outcomes >= 1 << WINDOW and outcomes.bit_count() - 1 >= ENOUGH


def key_shared(shared: Shared) -> tuple[Observation, ...]:
    """Return the signal of a key that several have; nothing where nothing shows it."""
    evidence: list[str] = []
    if shared.behind_tokens:
        evidence.append("key_behind_tokens")
    if shared.in_two_countries:
        evidence.append("key_in_two_countries")
    return (Observation("key_shared", "high", tuple(evidence)),) if evidence else ()


PROOF_FAILED: Final = Observation("proof_failed", "high", ("proof_does_not_verify",))
