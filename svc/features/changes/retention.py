"""Notes of changes that are as old as events may be."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Any

from svc.features.contracts.cleanup import CleanupStep, CleanupTask, Sweep
from svc.identify.tables import EVENT_CHANGES
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import STEP_ROWS
from svc.kernel.values.fields import ENVIRONMENTS


def _expired(sweep: Sweep) -> CleanupTask:
    oldest_ms = max(sweep.now_ms - sweep.event_ms, 0)
    return CleanupTask(EVENT_CHANGES.name, partial(_delete, oldest_ms), (sweep.number, 0))


def _delete(oldest_ms: int, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    """Delete some expired notes of one environment. `start`: the organization and the environment."""
    number, environment = start
    keys = list(islice(transaction.scan_keys(EVENT_CHANGES, start, (*start, oldest_ms)), STEP_ROWS))
    for key in keys:
        transaction.delete(EVENT_CHANGES, *key)
    if len(keys) == STEP_ROWS:
        return CleanupStep(len(keys), start)
    is_last = environment + 1 == len(ENVIRONMENTS)
    return CleanupStep(len(keys), None if is_last else (number, environment + 1))


PASSES = (_expired,)
