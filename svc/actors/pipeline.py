"""The identification pipeline: three actors and their mailboxes, started together and drained from the front.

Identify -> admission -> Admitted -> scorer -> Assessed -> visitor index -> one commit, then the replies
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import trio

from svc.actors import admission, scorer
from svc.actors.counters import IdentificationCounters
from svc.actors.mailbox import Mailbox, MailboxStatistics
from svc.actors.messages import Admitted, Assessed, Identify
from svc.actors.visitor_index import Nudge, Publish, VisitorIndex
from svc.actors.watch.corruption import CorruptRows
from svc.domain.attestation.trust import Trust
from svc.domain.limits.quotas import Quotas
from svc.domain.limits.ratelimit import Buckets, LimitShares
from svc.domain.network.facts import Ranges
from svc.store.store import Store

ADMISSION_PARTS = 4
"""One organization may take so small a part of the places at the front door."""


class Pipeline:
    """The three actors and their mailboxes; `admission` is the front door. `run` returns when it is closed and
    everything behind it has its reply.
    """

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
        nudge: Nudge = lambda _: None,
        publish: Publish = lambda _number, _id, _event: None,
        buckets: Buckets | None = None,
        numbers_at_once: int = 1,
        corrupt: CorruptRows | None = None,
    ) -> None:
        """`ranges()` is the address look-up in force, `None` while there is none; `trust` is as of `assess`; `nudge` is
        the outbox's, `publish` the live hub's; `shares` and `quotas` bound what one organization takes, by the clock
        `now_ms`, as far as `buckets` go; `numbers_at_once` is as of `VisitorNumbers`.
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
        index = VisitorIndex(store, nudge, self.counters, quotas, publish, numbers_at_once, corrupt)
        self._actors: tuple[Callable[[], Awaitable[None]], ...] = (
            partial(index.run, self._visitor_index, batch_limit),
            partial(scorer.run, self._scorer, self._visitor_index, ranges, trust),
            partial(admission.run, self.admission, self._scorer, shares, now_ms, buckets),
        )

    async def run(self) -> None:
        """Run the three actors; returns when `admission` is closed and every message behind it has its reply."""
        async with trio.open_nursery() as nursery:
            for actor in self._actors:
                nursery.start_soon(actor)

    def statistics(self) -> dict[str, MailboxStatistics]:
        """The statistics of each mailbox by name, in the order in which a request passes them."""
        return {
            "admission": self.admission.statistics(),
            "scorer": self._scorer.statistics(),
            "visitor_index": self._visitor_index.statistics(),
        }
