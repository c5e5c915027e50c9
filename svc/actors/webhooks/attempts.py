"""What the outbox keeps of attempts: those in flight, those that have ended, and the counts.

What may live here: records. What is done with them is `outbox.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import trio

from svc.domain.histogram import HistogramStatistics
from svc.domain.webhooks.records import AttemptError, AttemptStatus
from svc.store.group import LeaseEpoch
from svc.store.transactions.webhooks.deliveries import AttemptRecord


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
