"""Admission: the rate limiter in front of the pipeline.

Owns one token bucket per organization, in memory: a restart refills (decisions 4).
Hears `Identify`. Says `Admitted` to the scorer, or the refusal to the asker.
Never reads the store, never awaits a decision.
"""

from __future__ import annotations

import trio

from svc.actors.mailbox import Mailbox
from svc.actors.messages import Admission, Admitted, Answer, Identify, RateLimited
from svc.domain.ratelimit import Bucket, take


async def run(inbox: Mailbox[Identify], scorer: Mailbox[Admitted], batch_limit: int) -> None:
    """Until the inbox is closed and empty; then closes the scorer's."""
    buckets: dict[int, Bucket] = {}
    try:
        while True:
            for submission, limit_per_s, reply in await inbox.batch(batch_limit):
                number = submission.organization
                taken = take(buckets.get(number), limit_per_s, submission.at_ms)
                buckets[number] = taken.bucket
                admission = Admission(limit_per_s, taken.remaining)
                if taken.admitted:
                    await scorer.put(Admitted(submission, admission, reply))
                else:
                    reply.set(Answer(admission, RateLimited(taken.retry_after_s)))
    except trio.EndOfChannel:
        scorer.close()
