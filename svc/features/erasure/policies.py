"""Which rows are of a visitor: what tables declare (`kernel/store/schema/table.py`), as keys to delete or to show.

Rows that a key leads to need no line here, and a table whose rows are found otherwise does not load without one in
`BY_FUNCTION`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from svc.features.labels.tables import ACCOUNT_NUMBERS, NUMBERED_ACCOUNTS, SUBJECT_LABELS
from svc.features.lists.tables import LIST_ENTRIES, LIST_EXPIRIES, LIST_MARKS
from svc.features.reviews.queries import subject_stem
from svc.features.reviews.reviews import Subject
from svc.features.reviews.tables import OPEN_CASES, OPEN_REVIEWS, REVIEWS, SUBJECT_REVIEWS
from svc.features.tables import TABLES
from svc.features.webhooks.tables import DELIVERIES, DUE, MANUAL, WEBHOOK_EVENTS
from svc.identify.tables.accounts import ACCOUNTS, VELOCITY
from svc.identify.tables.attestation import ATTESTED_KEYS, VISITOR_KEYS
from svc.identify.tables.events import EVENT_SEGMENTS, EVENT_TAIL, HOURS, LATE_EVENTS
from svc.identify.tables.proofs import BROWSER_KEYS
from svc.identify.tables.visitors import ADDRESS_HISTORY, BLOCKS, REPORT_FINGERPRINTS
from svc.kernel.store.schema.table import LEADS, ErasedBy, ErasedByKey, PolicyError, Table
from svc.kernel.store.snapshot import Snapshot, Transaction

BY_FUNCTION: dict[str, tuple[Table[Any], ...]] = {
    "unindex": (EVENT_TAIL, EVENT_SEGMENTS, LATE_EVENTS),
    "uncount": (HOURS,),
    "purge_velocity": (VELOCITY,),
    "leave_accounts": (ACCOUNTS,),
    "purge_report": (ADDRESS_HISTORY, REPORT_FINGERPRINTS),
    "leave_blocks": (BLOCKS,),
    "purge_listed": (LIST_ENTRIES, LIST_EXPIRIES, LIST_MARKS),
    "purge_browser_keys": (BROWSER_KEYS,),
    "purge_attested_keys": (ATTESTED_KEYS, VISITOR_KEYS),
    "forget_labels": (SUBJECT_LABELS, ACCOUNT_NUMBERS, NUMBERED_ACCOUNTS),
    "forget_reviews": (REVIEWS, OPEN_REVIEWS, OPEN_CASES, SUBJECT_REVIEWS),
    "erase_identification": (WEBHOOK_EVENTS, DELIVERIES, DUE, MANUAL),
}
"""Function -> the tables of which it erases what is of a visitor."""


def by_key(tables: Sequence[Table[Any]]) -> dict[str, tuple[Table[Any], ...]]:
    """Return, for each part of a key, the tables whose rows of one visitor it finds. Raises `PolicyError` for a table
    that names a function which does not erase it.
    """
    for table in tables:
        if isinstance(table.personal, ErasedBy) and table not in BY_FUNCTION.get(table.personal.function, ()):
            raise PolicyError(f"table {table.name}: {table.personal.function} does not erase it (policies.BY_FUNCTION)")
    return {part: tuple(table for table in tables if table.personal == ErasedByKey(part)) for part in LEADS}


ERASED_BY_KEY = by_key(TABLES)


def stems(snapshot: Snapshot, table: Table[Any], number: int) -> Iterator[tuple[int, ...]]:
    """Yield the key parts before the visitor, in a table that a key leads to: the organization, and where a period
    follows, each period that has any row.
    """
    _, second, *_ = table.key.parts.values()
    if not second.period_ms:
        yield (number,)
        return
    after = -1
    while (found := next(snapshot.scan(table, number, start=(number, after + 1)), None)) is not None:
        after = found[0][1]
        yield number, after


def rows_by(snapshot: Snapshot, number: int, part: str, *lead: Any) -> Iterator[tuple[Table[Any], tuple[Any, ...]]]:
    """Yield (table, key) of each possible row that this part of a key leads to. `lead`: the value of the part, and with
    `subject` the digest of its id.
    """
    for table in ERASED_BY_KEY[part]:
        for stem in stems(snapshot, table, number):
            if len(stem) + len(lead) == len(table.key.parts):
                yield table, (*stem, *lead)
            else:
                yield from ((table, key) for key, _ in snapshot.scan(table, *stem, *lead))


def purge(transaction: Transaction, number: int, part: str, *lead: Any) -> bool:
    """Delete the rows of `rows_by`; return whether there were any."""
    rows = list(rows_by(transaction, number, part, *lead))
    return sum(transaction.delete(table, *key) for table, key in rows) > 0


def rows_by_subject(
    snapshot: Snapshot, number: int, subject: Subject, subject_id: str
) -> Iterator[tuple[Table[Any], tuple[Any, ...]]]:
    """Yield (table, key) of each possible row that the id of a visitor or an account leads to by its digest."""
    return rows_by(snapshot, number, "subject", *subject_stem(number, subject, subject_id))


def purge_subject(transaction: Transaction, number: int, subject: Subject, subject_id: str) -> bool:
    """Delete the rows of `rows_by_subject`; return whether there were any."""
    return purge(transaction, number, "subject", *subject_stem(number, subject, subject_id))
