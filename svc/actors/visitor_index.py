"""The visitor index: the one writer of identifications.

Owns the statistics of every organization that was seen since the start, the order in which identifications are
recorded, and the count of what they came to. Hears `Assessed`, takes up to a batch of them, commits them together,
answers each caller, and nudges the outbox.
Never acknowledges what is not on disk; a commit that fails otherwise than for want of room ends the process.

While one commit is on the disk the next requests gather in the mailbox: group commit without a timer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import structlog
import trio

from svc.actors.mailbox import Mailbox
from svc.actors.messages import Assessed, Failed
from svc.actors.tally import Tally
from svc.domain.matching import Statistics
from svc.domain.webhooks.records import LaneKey
from svc.store.snapshot import Transaction
from svc.store.store import Store, StoreFull
from svc.store.tables import STATISTICS
from svc.store.transactions.identification import Recorded, identify

log = structlog.get_logger()

LESSONS_BETWEEN_WRITES = 256
"""Lessons that an organization's statistics may be ahead of the store. A crash forgets at most so many of them."""


Nudge = Callable[[Iterable[LaneKey]], None]
"""Tells the outbox in which lanes a commit has made something due."""


async def run(inbox: Mailbox[Assessed], store: Store, batch_limit: int, nudge: Nudge, tally: Tally) -> None:
    """Until the inbox is closed and empty; then writes what the statistics have learned."""
    frequencies = Frequencies(store)
    try:
        while True:
            await _record(await inbox.batch(batch_limit), store, frequencies, nudge, tally)
            await frequencies.write_behind(LESSONS_BETWEEN_WRITES)
    except trio.EndOfChannel:
        await frequencies.write_behind(1)


class Frequencies:
    """The statistics of organizations, in memory, written behind."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[int, Statistics] = {}
        self._ahead: dict[int, int] = {}

    def of(self, organization: int) -> Statistics:
        statistics = self._known.get(organization)
        if statistics is None:
            with self._store.read() as snapshot:
                raw = snapshot.get(STATISTICS, organization)
            statistics = Statistics() if raw is None else Statistics.from_bytes(raw)
            self._known[organization] = statistics
        return statistics

    def learn(self, organization: int, recorded: Recorded) -> None:
        """Only after the commit has returned: a transaction that is undone teaches nothing."""
        if recorded.lesson is not None:
            self._known[organization].learn(recorded.lesson)
            self._ahead[organization] = self._ahead.get(organization, 0) + 1

    async def write_behind(self, lessons: int) -> None:
        """Write those that are at least so many lessons ahead of the store."""
        numbers = [number for number, ahead in self._ahead.items() if ahead >= lessons]
        if not numbers:
            return
        try:
            (outcome,) = await self._store.write([partial(self._put, numbers)])
        except StoreFull:
            log.warning("statistics not written: the store is full", organizations=len(numbers))
        else:
            if outcome is not None:
                raise outcome
        for number in numbers:
            del self._ahead[number]

    def _put(self, numbers: list[int], transaction: Transaction) -> None:
        for number in numbers:
            transaction.put(STATISTICS, (number,), self._known[number].to_bytes())


async def _record(batch: list[Assessed], store: Store, frequencies: Frequencies, nudge: Nudge, tally: Tally) -> None:
    jobs = [
        partial(identify, assessment=message.assessment, statistics=frequencies.of(_organization(message)))
        for message in batch
    ]
    try:
        outcomes = await store.write(jobs)
    except StoreFull as error:
        log.warning("nothing can be stored", reason=str(error), refused=len(batch))
        for message in batch:
            message.admitted.answer(Failed("service_unavailable"))
        return
    for message, outcome in zip(batch, outcomes, strict=True):
        if isinstance(outcome, Recorded):
            frequencies.learn(_organization(message), outcome)
            tally.note(outcome)
            message.admitted.answer(outcome.outcome)
            nudge(outcome.lanes)
        else:
            request_id = str(message.assessment.submission.request_id)
            log.error("recording failed", request_id=request_id, exc_info=outcome)
            message.admitted.answer(Failed("internal_error"))


def _organization(message: Assessed) -> int:
    return message.assessment.submission.organization
