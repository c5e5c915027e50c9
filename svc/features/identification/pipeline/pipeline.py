"""The identification pipeline: three actors and their mailboxes, started together and drained from the front.

Identify -> admission -> Admitted -> scorer -> Assessed -> visitor index -> one commit, then the replies

What may live here: the pipeline, and its first two actors; the third is `visitor_index.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import structlog
import trio

from svc.features.identification.pipeline.messages import (
    Admission,
    Admitted,
    Assessed,
    Failed,
    IdentificationCounters,
    Identify,
    PipelineResult,
    RateLimited,
)
from svc.features.identification.pipeline.visitor_index import Publish, VisitorIndex
from svc.identify.attestation.trust import Trust
from svc.identify.identification import assess
from svc.identify.network.facts import Ranges
from svc.kernel.limits.quotas import Quotas
from svc.kernel.limits.ratelimit import Buckets, Limiter, LimitShares, MemoryBuckets
from svc.kernel.store.store import Store
from svc.kernel.values.partitions import Wake
from svc.kernel.work.mailbox import Mailbox, MailboxStatistics
from svc.kernel.work.store_watch import CorruptRows

log = structlog.get_logger()


ADMISSION_PARTS = 4
"""One organization may take one part in this number of the capacity of admission."""


class Pipeline:
    """The three actors and their mailboxes. `admission` is the entry."""

    def __init__(  # noqa: PLR0913  what it is made of, and its limits
        self,
        store: Store,
        ranges: Callable[[], Ranges | None],
        trust: Trust | None = None,
        *,
        now_ms: Callable[[], int],
        admission_capacity: int,
        stage_capacity: int,
        batch_limit: int,
        shares: LimitShares = LimitShares(),  # noqa: B008  immutable
        quotas: Quotas = Quotas(),  # noqa: B008  immutable
        wake: Wake = lambda _: None,
        publish: Publish = lambda _number, _id, _event: None,
        buckets: Buckets | None = None,
        numbers_at_once: int = 1,
        corrupt: CorruptRows | None = None,
    ) -> None:
        """Assemble the pipeline. `ranges()` is the address look-up in force, `None` while there is none; `trust`: see
        `assess`; `wake` is the outbox's, `publish` the live hub's; `shares` and `quotas` bound what one organization
        takes, by the clock `now_ms`, as far as `buckets` go; `numbers_at_once`: see `VisitorNumbers`.
        """
        self.admission = Mailbox[Identify](
            admission_capacity,
            lambda message: message.submission.organization,
            owner_capacity=max(1, admission_capacity // ADMISSION_PARTS),
        )
        self._scorer = Mailbox[Admitted](
            stage_capacity, lambda message: message.submission.organization, source=self.admission
        )
        self._visitor_index = Mailbox[Assessed](
            stage_capacity, lambda message: message.assessment.submission.organization, source=self._scorer
        )
        self.counters = IdentificationCounters()
        index = VisitorIndex(store, wake, self.counters, quotas, publish, numbers_at_once, corrupt)
        self._actors: tuple[Callable[[], Awaitable[None]], ...] = (
            partial(index.run, self._visitor_index, batch_limit),
            partial(run_scorer, self._scorer, self._visitor_index, ranges, trust),
            partial(run_admission, self.admission, self._scorer, shares, now_ms, buckets),
        )

    async def run(self) -> None:
        """Run the three actors. Return when `admission` is closed and every message has its reply."""
        async with trio.open_nursery() as nursery:
            for actor in self._actors:
                nursery.start_soon(actor)

    def statistics(self) -> dict[str, MailboxStatistics]:
        """Return the statistics of each mailbox by name, in the order in which a request passes them."""
        return {
            "admission": self.admission.statistics(),
            "scorer": self._scorer.statistics(),
            "visitor_index": self._visitor_index.statistics(),
        }


async def run_admission(
    inbox: Mailbox[Identify],
    scorer: Mailbox[Admitted],
    shares: LimitShares,
    now_ms: Callable[[], int],
    buckets: Buckets | None = None,
) -> None:
    """Apply the rate limits to messages until the inbox is closed and empty; then close the scorer's mailbox.

    It receives `Identify`, of each organization in turn, and sends `Admitted` to the scorer, or the refusal to the
    caller. It never reads the store. `buckets`: the token buckets of organizations and of those that share their
    limits; if `None`, they are this process's own, in memory, and a restart refills them (decisions 4).

    `now_ms` is read when a message is handled, not when it arrived: a body may come long after its head, and its time
    would refill the bucket twice.
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


async def run_scorer(
    inbox: Mailbox[Admitted],
    visitor_index: Mailbox[Assessed],
    ranges: Callable[[], Ranges | None],
    trust: Trust | None,
) -> None:
    """Assess messages until the inbox is closed and empty; then close the visitor index's mailbox.

    It receives `Admitted`, and sends `Assessed` to the visitor index, or the failure of one hostile report to its
    caller alone. It never reads the store or the clock, and takes one message at a time, so that others can overtake
    the rest. `ranges()` returns the network ranges in force; it is called for each report, since they may be replaced.
    `trust`: see `assess`.
    """
    try:
        while True:
            for admitted in await inbox.batch(1):
                try:
                    assessment = assess(admitted.submission, ranges(), trust)
                except Exception:  # a report that breaks an adapter must not be an off-switch
                    log.exception("assessment failed", **admitted.submission.log_fields)
                    admitted.respond(Failed("internal_error"))
                    continue
                await visitor_index.put(Assessed(assessment, admitted))
    except trio.EndOfChannel:
        visitor_index.close()
