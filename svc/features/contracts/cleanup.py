"""Cleanup: bounded transactions that delete rows of one table, and how a feature gives retention its own.

A module of the kind `retention` has `PASSES`: functions of a `Sweep` that return tasks over tables whose keys do not
say the age of a row; and `PURGED_BY` where other rows belong to those that expire by their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from svc.identify.records import RETENTION_MS, RetentionPass
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import STEP_LOOKS, items_of_step

ROWS_OF_ONE = 5
"""Rows that belong to one row of a table, itself among them, unless its feature says otherwise."""


class CleanupStep(NamedTuple):
    """The result of one bounded transaction of a cleanup task."""

    deleted: int
    resume: tuple[Any, ...] | None
    """The key at which the next step begins; `None` = the task is done."""
    corrupt: CorruptionError | None = None
    """Of the first row that cannot be read: it stays, and the others go (decisions 17.5)."""


class CleanupTask(NamedTuple):
    """Rows of one table and organization that are to be deleted, in steps of one transaction each."""

    name: str
    step: Callable[[tuple[Any, ...], Transaction], CleanupStep]
    """Of the key to begin at and the transaction."""
    start: tuple[Any, ...]


class Sweep(NamedTuple):
    """One look of retention at an organization, by its number."""

    number: int
    now_ms: int
    visitor_days: int
    """Days without a visit after which a visitor is deleted."""
    made: RetentionPass
    """The last passes."""
    event_ms: int = RETENTION_MS
    """How long events are kept."""


Pass: TypeAlias = Callable[[Sweep], CleanupTask]


class Purge(NamedTuple):
    """How rows to which others belong are deleted."""

    row: Callable[[Transaction, int, bytes], object]
    """Of the organization's number and the second part of the key."""
    rows: int = ROWS_OF_ONE
    """Rows that belong to one row, itself among them."""


Act = Callable[[Transaction, Any, Any], bool]
"""Of a row's key and value: whether it has deleted or changed the row."""


def look(table: Table[Any], act: Act, start: tuple[Any, ...], transaction: Transaction) -> CleanupStep:
    """Act upon the next rows of the organization's table."""
    return act_upon(act, transaction, transaction.scan_past_corruption(table, start, (start[0] + 1,)))


def act_upon(act: Act, transaction: Transaction, of: Iterator[tuple[tuple[Any, ...], Any]]) -> CleanupStep:
    """Act upon the first of these rows that can be read; of another, the value is its `CorruptionError`."""
    acted, corrupt = 0, None
    for looked_at, (key, value) in enumerate(_some(of)):
        if isinstance(value, CorruptionError):
            corrupt = corrupt or value
        elif looked_at >= STEP_LOOKS or acted == items_of_step(ROWS_OF_ONE):
            return CleanupStep(acted, key, corrupt)
        else:
            acted += act(transaction, key, value)
    return CleanupStep(acted, None, corrupt)


def _some(of: Iterator[tuple[tuple[Any, ...], Any]]) -> list[tuple[tuple[Any, ...], Any]]:
    """Return `STEP_LOOKS` rows and the next one whose key is sound: the next step may begin there."""
    rows = list(islice(of, STEP_LOOKS))
    for row in of:
        rows.append(row)
        if not isinstance(row[1], CorruptionError):
            break
    return rows


def each_row(table: Table[Any], act: Act, number: int, name: str = "") -> CleanupTask:
    """Return the task that acts upon each row of an organization's table."""
    return CleanupTask(name or table.name, partial(look, table, act), (number,))
