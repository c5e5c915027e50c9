"""Entries of lists that have expired, or whose list was deleted."""

from __future__ import annotations

from functools import partial
from typing import Any

from svc.features.contracts.cleanup import CleanupStep, CleanupTask, Sweep
from svc.features.lists.jobs import ROWS_OF_AN_ENTRY, delete_expired, delete_stray
from svc.features.lists.tables import LIST_ENTRIES
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import items_of_step


def _pass_list_entries(now_ms: int, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    """Those that have expired, which are one range of expiries; then those whose list was deleted."""
    (number,) = start
    most = items_of_step(ROWS_OF_AN_ENTRY)
    deleted = delete_expired(transaction, number, now_ms, most) or delete_stray(transaction, number, most)
    return CleanupStep(deleted, start if deleted else None)


def _entries(sweep: Sweep) -> CleanupTask:
    return CleanupTask(LIST_ENTRIES.name, partial(_pass_list_entries, sweep.now_ms), (sweep.number,))


PASSES = (_entries,)
