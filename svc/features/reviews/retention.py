"""Reviews that are closed for long enough."""

from __future__ import annotations

from functools import partial
from typing import Any

from svc.features.contracts.cleanup import CleanupStep, CleanupTask, Sweep
from svc.features.reviews.jobs import ROWS_OF_A_REVIEW, delete_old_reviews
from svc.features.reviews.tables import REVIEWS
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import items_of_step


def _pass_reviews(now_ms: int, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    (number,) = start
    most = items_of_step(ROWS_OF_A_REVIEW)
    deleted = delete_old_reviews(transaction, number, now_ms, most)
    return CleanupStep(deleted, start if deleted == most else None)


def _reviews(sweep: Sweep) -> CleanupTask:
    return CleanupTask(REVIEWS.name, partial(_pass_reviews, sweep.now_ms), (sweep.number,))


PASSES = (_reviews,)
