"""Which rows are of a visitor or an account: what tables declare (`kernel/store/schema/table.py`), as keys to delete or
to show.

Rows that a key leads to need no line in any module; what finds others says their feature (`contracts/erased.py`), which
is looked up when it is asked for, since the erasure of one feature uses that of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from svc.features.contracts.erased import Erased, Forgetting
from svc.features.registry import FEATURES
from svc.features.reviews.queries import subject_stem
from svc.features.tables import TABLES
from svc.identify.model import Subject
from svc.kernel.store.schema.table import LEADS, ErasedBy, ErasedByKey, PolicyError, Table
from svc.kernel.store.snapshot import Snapshot, Transaction


def by_key(tables: Sequence[Table[Any]]) -> dict[str, tuple[Table[Any], ...]]:
    """Return, for each part of a key, the tables whose rows of one visitor it finds."""
    return {part: tuple(table for table in tables if table.personal == ErasedByKey(part)) for part in LEADS}


ERASED_BY_KEY = by_key(TABLES)


def rows_by(snapshot: Snapshot, number: int, part: str, *lead: Any) -> Iterator[tuple[Table[Any], tuple[Any, ...]]]:
    """Yield (table, key) of each possible row that this part of a key leads to. `lead`: the value of the part, and with
    `subject` the digest of its id.
    """
    for table in ERASED_BY_KEY[part]:
        yield from rows_in(snapshot, table, number, lead)


def rows_in(
    snapshot: Snapshot, table: Table[Any], number: int, lead: tuple[Any, ...]
) -> Iterator[tuple[Table[Any], tuple[Any, ...]]]:
    """Yield such rows of one table."""
    if 1 + len(lead) == len(table.key.parts):
        yield table, (number, *lead)
    else:
        yield from ((table, key) for key in snapshot.keys_of(table, number, *lead))


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


@cache
def forgetting() -> tuple[Forgetting, ...]:
    """Return how each feature forgets a visitor or an account."""
    modules = (module for feature in FEATURES for module in feature.modules("erasure"))
    return tuple(module.FORGET for module in modules if hasattr(module, "FORGET"))


@cache
def erased() -> dict[str, Erased]:
    """Return, by the name of the function, what it erases and what finds it. Raises as `refuse_unerased`."""
    modules = (module for feature in FEATURES for module in feature.modules("erasure"))
    found = {name: of for module in modules for name, of in module.ERASED.items()}
    refuse_unerased(TABLES, found)
    return found


def refuse_unerased(tables: Sequence[Table[Any]], known: dict[str, Erased]) -> None:
    """Raise `PolicyError` for a table that names a function which does not erase it."""
    for table in tables:
        personal = table.personal
        if isinstance(personal, ErasedBy):
            of = known.get(personal.function)
            if of is None or table not in of.tables:
                raise PolicyError(f"table {table.name}: {personal.function} does not erase it (ERASED of its feature)")
