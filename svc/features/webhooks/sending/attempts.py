"""One attempt of a webhook, and what the outbox keeps of attempts: those in flight, those that have ended, the counts.

What may live here: what needs no queue and no store. When an attempt is made, and what follows, is `outbox.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

import msgspec
import structlog
import trio

from svc.features.webhooks.content.signature import AttemptRequest
from svc.features.webhooks.jobs.deliveries import AttemptRecord
from svc.features.webhooks.queries import ClaimedDelivery
from svc.features.webhooks.records import Attempted, AttemptError, AttemptStatus, Transport
from svc.kernel.store.group import LeaseEpoch
from svc.kernel.values.histogram import HistogramStatistics

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


class Sender:
    """Makes attempts. `request`: `signature.attempt_request` with its keys."""

    def __init__(self, transport: Transport, request: Callable[..., AttemptRequest]) -> None:
        self._transport, self._request = transport, request

    async def post(self, claim: ClaimedDelivery, signed_ms: int) -> Attempted:
        """Return what came of one POST, signed for this time (Unix ms, by the machine's clock). A transport that breaks
        on one receiver fails that attempt alone.
        """
        began = trio.current_time()
        try:
            sent = self._request(claim.endpoint, claim.key.event_id, claim.event, now_ms=signed_ms)
            return await self._transport.post(claim.endpoint.url, sent.body, sent.headers)
        except Exception:
            log.exception(
                "delivery attempt crashed", endpoint=claim.endpoint.id, event_id=str(UUID(bytes=claim.key.event_id))
            )
            return Attempted(None, "connect_error", ms_since(began), None)


def ms_since(began: float) -> int:
    """Return the milliseconds since then by the clock of the loop: the wall clock may have been set meanwhile."""
    return round((trio.current_time() - began) * 1000)
