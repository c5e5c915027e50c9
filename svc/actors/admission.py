"""Admission: the rate limiter in front of the pipeline.

Takes from the token buckets of organizations and of what has a part of their limits; they are in memory, and a restart
refills (decisions 4).
Hears `Identify`, of each organization in turn. Says `Admitted` to the scorer, or the refusal to the asker.
Never reads the store.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from svc.actors.mailbox import Mailbox
from svc.actors.messages import Admission, Admitted, Identify, PipelineResult, RateLimited
from svc.domain.limits.ratelimit import Buckets, Limiter, LimitShares, MemoryBuckets


async def run(
    inbox: Mailbox[Identify],
    scorer: Mailbox[Admitted],
    shares: LimitShares,
    now_ms: Callable[[], int],
    buckets: Buckets | None = None,
) -> None:
    """Apply the rate limits until the inbox is closed and empty; then close the scorer's. `buckets` are this process's
    own where none are given.

    Time is that of now, not of arrival: a body may come long after its head, and would refill the bucket a second time.
    """
    limiter = Limiter("identify", shares, buckets or MemoryBuckets())
    try:
        while True:
            # One at a time: what an actor has taken already can no longer be overtaken by another organization.
            for submission, limit_per_s, address, reply in await inbox.batch(1):
                is_production = submission.environment == "production"
                taken = limiter.take(
                    submission.organization, limit_per_s, now_ms(), production=is_production, address=address
                )
                admission = Admission(limit_per_s, taken.remaining)
                if taken.admitted:
                    await scorer.put(Admitted(submission, admission, reply))
                else:
                    reply.set(PipelineResult(admission, RateLimited(taken.retry_after_s, taken.reached)))
    except trio.EndOfChannel:
        scorer.close()
