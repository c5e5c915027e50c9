"""Entries of lists that have expired, or whose list was deleted."""

from __future__ import annotations

from functools import partial
from typing import Any

from svc.features.contracts.cleanup import ROWS_A_STEP, CleanupStep, CleanupTask, Sweep
from svc.features.lists.jobs import delete_expired, delete_stray
from svc.features.lists.tables import LIST_ENTRIES
from svc.kernel.store.snapshot import Transaction


def _pass_list_entries(now_ms: int, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    """Those that have expired, which are one range of expiries; then those whose list was deleted."""
    (number,) = start
    deleted = delete_expired(transaction, number, now_ms, ROWS_A_STEP) or delete_stray(transaction, number, ROWS_A_STEP)
    return CleanupStep(deleted, start if deleted else None)


def _entries(sweep: Sweep) -> CleanupTask:
    return CleanupTask(LIST_ENTRIES.name, partial(_pass_list_entries, sweep.now_ms), (sweep.number,))


PASSES = (_entries,)
