"""Which rows are of a visitor: what tables declare (`schema/table.py`), as keys to delete or to show.

Rows that a key leads to need no line here, and a table whose rows are found otherwise does not load without one in
`BY_FUNCTION`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from svc.store.schema.table import LEADS, ErasedBy, ErasedByKey, PolicyError
from svc.store.schema.tables import (
    ACCOUNT_NUMBERS,
    ADDRESS_HISTORY,
    ATTESTED_KEYS,
    BLOCKS,
    DELIVERIES,
    DUE,
    EVENT_SEGMENTS,
    EVENT_TAIL,
    HOURS,
    LIST_ENTRIES,
    LIST_EXPIRIES,
    LIST_MARKS,
    MANUAL,
    NOTES,
    NUMBERED_ACCOUNTS,
    OPEN_CASES,
    OPEN_REVIEWS,
    REPORT_FINGERPRINTS,
    REVIEWS,
    SUBJECT_LABELS,
    SUBJECT_REVIEWS,
    TABLES,
    VELOCITY,
    VISITOR_KEYS,
    WEBHOOK_EVENTS,
    Table,
)
from svc.store.snapshot import Snapshot

BY_FUNCTION: dict[str, tuple[Table[Any], ...]] = {
    "unindex": (EVENT_TAIL, EVENT_SEGMENTS),
    "uncount": (HOURS,),
    "purge_velocity": (VELOCITY,),
    "purge_report": (ADDRESS_HISTORY, REPORT_FINGERPRINTS),
    "leave_blocks": (BLOCKS,),
    "purge_listed": (LIST_ENTRIES, LIST_EXPIRIES, LIST_MARKS),
    "purge_attested_keys": (ATTESTED_KEYS, VISITOR_KEYS),
    "forget_labels": (SUBJECT_LABELS, ACCOUNT_NUMBERS, NUMBERED_ACCOUNTS),
    "forget_reviews": (REVIEWS, OPEN_REVIEWS, OPEN_CASES, SUBJECT_REVIEWS),
    "forget_notes": (NOTES,),
    "erase_identification": (WEBHOOK_EVENTS, DELIVERIES, DUE, MANUAL),
}
"""Function -> the tables of which it erases what is of a visitor."""


def by_key(tables: Sequence[Table[Any]]) -> dict[str, tuple[Table[Any], ...]]:
    """Part of a key -> the tables whose rows of one visitor it finds. Raises `PolicyError` for a table that names a
    function which does not erase it.
    """
    for table in tables:
        if isinstance(table.personal, ErasedBy) and table not in BY_FUNCTION.get(table.personal.function, ()):
            raise PolicyError(f"table {table.name}: {table.personal.function} does not erase it (policies.BY_FUNCTION)")
    return {part: tuple(table for table in tables if table.personal == ErasedByKey(part)) for part in LEADS}


ERASED_BY_KEY = by_key(TABLES)


def stems(snapshot: Snapshot, table: Table[Any], number: int) -> Iterator[tuple[int, ...]]:
    """What stands before the visitor in the keys of a table that is found by its number: the organization, and each
    period of which there is any row.
    """
    if len(table.key.parts) == 2:
        yield (number,)
        return
    after = -1
    while (found := next(snapshot.scan(table, number, start=(number, after + 1)), None)) is not None:
        (_, after, _), _ = found
        yield number, after
