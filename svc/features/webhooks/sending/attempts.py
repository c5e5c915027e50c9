"""Parts of the outbox: one attempt, the counts of attempts, due times that are moved, and partitions.

Due times are moved for what a clock that ran ahead has put off (decisions 17.1) and for what waits for an endpoint that
accepts again (17.7), some rows in each commit. When an attempt is made, and what follows, is `outbox.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import NamedTuple, Protocol
from uuid import UUID

import msgspec
import structlog
import trio

from svc.features.webhooks.content.envelope import AttemptRequest
from svc.features.webhooks.jobs.deliveries import AttemptRecord, bring_forward, make_due
from svc.features.webhooks.queries import ClaimedDelivery, queues_ahead
from svc.features.webhooks.records import Attempted, AttemptError, AttemptStatus, Transport
from svc.features.webhooks.sending.patience import read, write
from svc.kernel.store.group import LeaseEpoch, Write
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store
from svc.kernel.values.histogram import HistogramStatistics
from svc.kernel.values.partitions import EndpointKey

log = structlog.get_logger()


class OutboxStatistics(msgspec.Struct, frozen=True):
    """What the outbox does now, and its counts since the start."""

    in_flight: int
    queues: int
    """Endpoints with work, or of which something was learned."""
    attempts: dict[AttemptStatus, int]
    """Attempts since the start, by result."""
    errors: dict[AttemptError, int]
    """Attempts that failed, by why."""
    attempts_s: HistogramStatistics
    """How long attempts took."""


class InFlight(msgspec.Struct, eq=False):
    """An attempt in flight."""

    scope: trio.CancelScope
    lease: LeaseEpoch | None
    is_lost: bool = False
    """Its partition is another's: its outcome must not be written down here."""


class EndedAttempt(NamedTuple):
    """An attempt that has ended, to be written down."""

    record: AttemptRecord
    lease: LeaseEpoch | None


async def post(
    transport: Transport, request: Callable[..., AttemptRequest], claim: ClaimedDelivery, signed_ms: int
) -> Attempted:
    """Return what came of one POST, signed for this time (Unix ms, by the machine's clock). `request`:
    `envelope.attempt_request` with its keys. A transport that breaks on one receiver fails that attempt alone.
    """
    began = trio.current_time()
    try:
        sent = request(claim.endpoint, claim.key.event_id, claim.event, now_ms=signed_ms)
        return await transport.post(claim.endpoint.url, sent.body, sent.headers, claim.queue.organization)
    except Exception:
        log.exception(
            "delivery attempt crashed", endpoint=claim.endpoint.id, event_id=str(UUID(bytes=claim.key.event_id))
        )
        return Attempted(None, "connect_error", ms_since(began), None)


def ms_since(began: float) -> int:
    """Return the milliseconds since then by the clock of the loop: the wall clock may have been set meanwhile."""
    return round((trio.current_time() - began) * 1000)


QUEUES_A_LOOK = 256
"""Queues looked at without a pause: about a millisecond."""
MAX_ROWS = 100
"""Deliveries moved in one commit, each with three rows."""


async def bring_all_forward(store: Store, partitions: Partitions, clock_ms: Callable[[], int]) -> None:
    """Make due after one step from now what is due later than anything may be."""
    after: EndpointKey | None = EndpointKey(0, 0)
    while after is not None:
        now_ms = clock_ms()
        found, after = await read(store, partial(queues_ahead, after=after, now_ms=now_ms, limit=QUEUES_A_LOOK))
        for queue in filter(partitions.sends, found):
            await _move(store, partitions, queue, partial(bring_forward, queue=queue, now_ms=now_ms, limit=MAX_ROWS))


async def make_all_due(store: Store, partitions: Partitions, queue: EndpointKey, now_ms: int) -> None:
    """Make due now whatever is due later. What an attempt puts off meanwhile may come along once."""
    await _move(store, partitions, queue, partial(make_due, queue=queue, now_ms=now_ms, limit=MAX_ROWS))


async def _move(store: Store, partitions: Partitions, queue: EndpointKey, job: Callable[[Transaction], int]) -> None:
    """Repeat a job until it moves fewer than `MAX_ROWS` rows, or another process sends to the endpoint."""
    moved: object = MAX_ROWS
    while moved == MAX_ROWS and partitions.sends(queue):
        one = Write(job, queue.organization, lease=partitions.lease(queue))
        (moved,) = await write(store, [one], partitions.drop)


class Partitions(Protocol):
    """The partitions of one process (`svc.kernel.values.partitions`). The methods of this class are right for a
    process that sends to all endpoints.
    """

    @property
    def senders(self) -> int:
        """Return the number of processes that send, including this one."""
        return 1

    def sends(self, queue: EndpointKey) -> bool:  # noqa: ARG002  any
        """Return whether this process may begin attempts in this queue now."""
        return True

    def lease(self, queue: EndpointKey) -> LeaseEpoch | None:  # noqa: ARG002  any
        """Return the lease under which an attempt in this queue is made and recorded; `None` if no lease is needed."""
        return None

    def is_lost(self, lease: LeaseEpoch | None) -> bool:  # noqa: ARG002  there is none
        """Return whether this process may have lost a lease."""
        return False

    def drop(self, lost: Iterable[LeaseEpoch]) -> None:
        """Stop using leases under which the store has refused a write."""

    @property
    def leaving(self) -> Collection[int]:
        """Return partitions that other processes wait for: no attempt begins in them."""
        return ()

    def give_back(self, partitions: Iterable[int]) -> None:
        """Release partitions to the processes that wait for them. The caller has recorded what was in flight there."""

    async def changed(self) -> None:
        """Wait until the partitions of this process or the number of senders change."""
        await trio.sleep_forever()


class EveryPartition(Partitions):
    """The partitions of a process that sends to all endpoints."""


EVERY_PARTITION = EveryPartition()
