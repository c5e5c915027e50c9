"""Reviews that are closed for long enough."""

from __future__ import annotations

from functools import partial
from typing import Any

from svc.features.contracts.cleanup import EVENTS_A_STEP, CleanupStep, CleanupTask, Sweep
from svc.features.reviews.jobs import delete_old_reviews
from svc.features.reviews.tables import REVIEWS
from svc.kernel.store.snapshot import Transaction


def _pass_reviews(now_ms: int, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    (number,) = start
    deleted = delete_old_reviews(transaction, number, now_ms, EVENTS_A_STEP)
    return CleanupStep(deleted, start if deleted == EVENTS_A_STEP else None)


def _reviews(sweep: Sweep) -> CleanupTask:
    return CleanupTask(REVIEWS.name, partial(_pass_reviews, sweep.now_ms), (sweep.number,))


PASSES = (_reviews,)
