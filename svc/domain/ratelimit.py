"""The token bucket of an organization (decisions 4): `take(bucket, limit, now)` decides, nothing waits.

Counted in thousandths of a token, so that one millisecond refills `limit` of them and no fraction is ever lost.
"""

from __future__ import annotations

from typing import NamedTuple

DEFAULT_LIMIT_PER_S = 100


class Bucket(NamedTuple):
    """What is left, in thousandths of a token, at a moment in Unix milliseconds."""

    thousandths: int
    at_ms: int


class Taken(NamedTuple):
    bucket: Bucket
    admitted: bool
    remaining: int
    """Whole tokens left."""
    retry_after_s: int
    """Whole seconds until a token, at least 1; 0 when admitted."""


def take(bucket: Bucket | None, limit_per_s: int, now_ms: int) -> Taken:
    """Take one token. A new bucket is full; burst = limit; a clock that goes back refills nothing; 0 = no limit."""
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
