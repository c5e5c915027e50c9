"""The visitor index: the one writer of identifications.

Owns the statistics of the classes of devices that were seen lately, the numbers that new visitors get, the order in
which identifications are recorded, and the count of their results. Receives `Assessed`, takes up to a batch of them,
commits them together, responds to each caller, wakes the outbox, and publishes them to subscribers.
Never acknowledges what is not on disk; a commit that fails otherwise than for want of space ends the process.

While one commit is on the disk the next requests gather in the mailbox: group commit without a timer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from uuid import UUID

import structlog
import trio

from svc.features.identification import hints
from svc.features.identification.pipeline.frequencies import NOT_WRITTEN, ClassKey, Frequencies
from svc.features.identification.pipeline.messages import Assessed, Failed, IdentificationCounters
from svc.features.identification.transaction import Recorded, identify
from svc.identify.queries.learned import scope_of
from svc.identify.recording.visitors import NextNumber, VisitorNumbers
from svc.identify.records import Event
from svc.kernel.limits.quotas import Quotas
from svc.kernel.store.contention import EndTurn
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.group import Write
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.store import Store
from svc.kernel.tenants.queries import organization as find_organization
from svc.kernel.values.partitions import Wake
from svc.kernel.work.mailbox import Mailbox
from svc.kernel.work.store_watch import CorruptRows

log = structlog.get_logger()

Publish = Callable[[int, UUID, Event], None]
"""Publishes an identification to subscribers: the organization's number, the request id and the event."""


class VisitorIndex:
    """Records assessed identifications. `wake` and `publish` are called after their commit; `numbers_at_once`: see
    `VisitorNumbers`.
    """

    def __init__(
        self,
        store: Store,
        wake: Wake,
        counters: IdentificationCounters,
        quotas: Quotas = Quotas(),  # noqa: B008  immutable
        publish: Publish = lambda _number, _id, _event: None,
        numbers_at_once: int = 1,
        corrupt: CorruptRows | None = None,
    ) -> None:
        self._store = store
        self._wake = wake
        self._counters = counters
        self._quotas = quotas
        self._publish = publish
        self._corrupt = corrupt or CorruptRows()
        self._frequencies = Frequencies(store, corrupt=self._corrupt)
        self._numbers = VisitorNumbers(numbers_at_once)

    async def run(self, inbox: Mailbox[Assessed], batch_limit: int) -> None:
        """Identify until the inbox is closed and empty; then write what the statistics have learned. At most
        `batch_limit` messages share a commit; each reply follows it.
        """
        try:
            if self._store.groups_at_once > 1:
                await self._record_at_once(inbox, batch_limit, self._store.groups_at_once)
            while True:
                await self._record_in_turn(inbox, batch_limit)
                await self._frequencies.write_behind()
        except trio.EndOfChannel:
            await self._frequencies.write_behind(everything=True)

    async def _record_in_turn(self, inbox: Mailbox[Assessed], batch_limit: int) -> None:
        """Record a batch. Identifications of organizations for which other processes write the same rows wait for a
        turn; those of others do not wait with them, and what arrives meanwhile comes along.
        """
        batch = await inbox.batch(batch_limit)
        contended = self._store.contention.among(map(_organization, batch))
        if not contended:
            await self._record(batch)
            return
        end_turn = self._store.turns.take()
        if end_turn is None:
            batch, end_turn = await self._waited(inbox, batch, batch_limit, contended)
        try:
            await self._record(batch, end_turn)
        finally:
            if end_turn is not None:
                end_turn()

    async def _waited(
        self, inbox: Mailbox[Assessed], batch: list[Assessed], batch_limit: int, contended: frozenset[int]
    ) -> tuple[list[Assessed], EndTurn | None]:
        """Wait for the turn of a batch, and record the identifications of other organizations meanwhile. Return (those
        that have waited, what ends the turn; `None` if it did not come in time).
        """
        since_s = self._store.elapsed_s()
        waiting: list[Assessed] = []
        end_turn: EndTurn | None = None
        while batch and end_turn is None:
            waiting += [message for message in batch if _organization(message) in contended]
            others = [message for message in batch if _organization(message) not in contended]
            if others:
                await self._record(others)
            end_turn, batch = await self._turn_or_batch(inbox, batch_limit - len(waiting), since_s)
        return waiting + batch, end_turn

    async def _turn_or_batch(
        self, inbox: Mailbox[Assessed], limit: int, since_s: float
    ) -> tuple[EndTurn | None, list[Assessed]]:
        """Wait for the turn, or for messages if there is room for them. Return (what ends the turn, messages); neither
        if the turn did not come in time, and seldom both.
        """
        end_turn: EndTurn | None = None
        batch: list[Assessed] = []

        async def receive() -> None:
            with suppress(trio.EndOfChannel):
                batch.extend(await inbox.batch(limit))
                nursery.cancel_scope.cancel()

        try:
            async with trio.open_nursery() as nursery:
                if limit > 0:
                    nursery.start_soon(receive)
                end_turn = await self._store.turns.wait(since_s)
                nursery.cancel_scope.cancel()
        except BaseException:
            if end_turn is not None:
                end_turn()
            raise
        return end_turn, batch

    async def _record_at_once(self, inbox: Mailbox[Assessed], batch_limit: int, most: int) -> None:
        """Record up to `most` parts of batches at a time, until the inbox is closed and empty: then `trio.EndOfChannel`
        is raised. Each organization's part is recorded by itself, so that none waits for another's response. Statistics
        are written while no part is recorded: what they learn during the write would be lost.
        """
        free = trio.Semaphore(most)

        async def recorded(batch: list[Assessed]) -> None:
            try:
                await self._record(batch)
            finally:
                free.release()

        async with trio.open_nursery() as nursery:
            while True:
                try:
                    batch = await inbox.batch(batch_limit)
                except trio.EndOfChannel:
                    break
                for part in _by_organization(batch):
                    await free.acquire()
                    nursery.start_soon(recorded, part)
                if self._frequencies.is_due():
                    for _ in range(most):
                        await free.acquire()
                    await self._frequencies.write_behind()
                    for _ in range(most):
                        free.release()
        raise trio.EndOfChannel

    async def _record(self, batch: list[Assessed], end_turn: EndTurn | None = None) -> None:
        outcomes: Sequence[Recorded | Exception]
        handed_out = self._numbers.hand_out(map(_organization, batch))
        try:
            outcomes = await self._write(batch, handed_out, end_turn)
        except NOT_WRITTEN as error:
            outcomes = [error] * len(batch)
        rejected = [one for one in outcomes if isinstance(one, NOT_WRITTEN)]
        if rejected:
            self._store.outage.stopped("identify", rejected[0], len(rejected))
        for message, outcome, next_number in zip(batch, outcomes, handed_out, strict=True):
            if isinstance(outcome, Recorded):
                self._numbers.give_back(_organization(message), next_number, outcome.new_number)
                await self._recorded(message, outcome)
            elif isinstance(outcome, NOT_WRITTEN):
                unreachable = isinstance(outcome, UnavailableError)
                message.admitted.respond(Failed("service_unavailable", unreachable))
            else:
                if isinstance(outcome, CorruptionError):
                    self._corrupt.note("identify", _organization(message), outcome)
                else:
                    log.error("recording failed", exc_info=outcome, **message.assessment.submission.log_fields)
                message.admitted.respond(Failed("internal_error"))

    async def _write(
        self, batch: list[Assessed], numbers: Sequence[NextNumber], end_turn: EndTurn | None
    ) -> Sequence[Recorded | Exception]:
        capacity_bytes = self._store.capacity_bytes()
        writes = [
            Write(
                partial(
                    identify,
                    assessment=message.assessment,
                    statistics=await self._frequencies.of(_class_of(message)),
                    quotas=self._quotas,
                    capacity_bytes=capacity_bytes,
                    next_number=next_number,
                ),
                _organization(message),
                hint=partial(hints.identification, assessment=message.assessment),
            )
            for message, next_number in zip(batch, numbers, strict=True)
        ]
        return await self._store.write(writes, urgent=True, end_turn=end_turn)

    async def _recorded(self, message: Assessed, recorded: Recorded) -> None:
        """Learn from a committed identification, and respond."""
        number = _organization(message)
        self._counters.note(recorded)
        with suppress(UnavailableError):  # it is committed, and an update is worth less than its response
            await self._frequencies.learn(_class_of(message), recorded)
            if recorded.quota == "store_share" and self._counters.is_news(number, trio.current_time()):
                await _say_who_is_full(self._store, number)
        message.admitted.respond(recorded.outcome)
        self._wake(recorded.queues)
        if recorded.event is not None:
            self._publish(number, message.assessment.submission.request_id, recorded.event)


def _by_organization(batch: list[Assessed]) -> Iterable[list[Assessed]]:
    parts: dict[int, list[Assessed]] = {}
    for message in batch:
        parts.setdefault(_organization(message), []).append(message)
    return parts.values()


def _class_of(message: Assessed) -> ClassKey:
    submission = message.assessment.submission
    return ClassKey(submission.organization, scope_of(submission.environment), message.assessment.features.family)


async def _say_who_is_full(store: Store, number: int) -> None:
    name = (await store.query(partial(find_organization, number=number))).id
    log.warning(
        "an organization holds its share of the store: its identifications are refused",
        organization=name,
        next_step="svc org show; then svc org drop-documents, or a larger store_share or map_gib",
    )


def _organization(message: Assessed) -> int:
    return message.assessment.submission.organization
