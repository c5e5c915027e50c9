"""The identification pipeline: three actors and their mailboxes, started together and drained from the front.

Identify -> admission -> Admitted -> scorer -> Assessed -> visitor index -> one commit, then the replies
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from svc.actors import admission, scorer, visitor_index
from svc.actors.mailbox import Mailbox, MailboxStatistics
from svc.actors.messages import Admitted, Assessed, Identify
from svc.actors.tally import Tally
from svc.domain.attestation import Trust
from svc.domain.network import Ranges
from svc.store.store import Store


class Pipeline:
    """`admission` is the front door. `run` returns when the door is closed and everything behind it is answered."""

    def __init__(
        self,
        store: Store,
        ranges: Callable[[], Ranges | None],
        trust: Trust | None = None,
        *,
        admission_capacity: int,
        stage_capacity: int,
        batch_limit: int,
        nudge: visitor_index.Nudge = lambda _: None,
    ) -> None:
        """`ranges()` is the address look-up in force, `None` while there is none; `trust` is as of `assess`; `nudge` is
        the outbox's.
        """
        self.admission = Mailbox[Identify](admission_capacity)
        self._scorer = Mailbox[Admitted](stage_capacity)
        self._visitor_index = Mailbox[Assessed](stage_capacity)
        self._store = store
        self._ranges = ranges
        self._trust = trust
        self._batch_limit = batch_limit
        self._nudge = nudge
        self.tally = Tally()

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                visitor_index.run, self._visitor_index, self._store, self._batch_limit, self._nudge, self.tally
            )
            nursery.start_soon(
                scorer.run, self._scorer, self._visitor_index, self._ranges, self._trust, self._batch_limit
            )
            nursery.start_soon(admission.run, self.admission, self._scorer, self._batch_limit)

    def statistics(self) -> dict[str, MailboxStatistics]:
        """Per mailbox, in the order in which a request passes them."""
        return {
            "admission": self.admission.statistics(),
            "scorer": self._scorer.statistics(),
            "visitor_index": self._visitor_index.statistics(),
        }
