"""Versions of the store. All migrations that a store needs are one transaction; a newer store is refused.

A migration is a function of the transaction, never changed once released. Version 0 is an empty directory. A version
that only adds tables needs none: each says in which version it came (`Table.since`). Whatever changes a table is a new
version with a migration, even a field with a default, for which it has nothing to do: an older program would read the
new rows and write them back without that field. What each version's tables were is kept in `tests/store/released`,
with a store of each version that was released.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from svc.features.lists.jobs import mark_filled_lists, note_listed
from svc.features.upgrade import velocity_jobs
from svc.features.webhooks.queries import attempt_index_keys
from svc.features.webhooks.tables import ATTEMPTS
from svc.identify.indexing.jobs import rebuild_indexes
from svc.identify.matching.statistics import rows_of_format_2
from svc.identify.queries.learned import PRODUCTION, SHARED
from svc.identify.recording.visitors import counted
from svc.identify.tables import STATISTICS
from svc.kernel.access.jobs import counted_keys
from svc.kernel.store.installation import derive_region
from svc.kernel.store.schema.codec import Key, Opaque
from svc.kernel.store.schema.key_parts import U32
from svc.kernel.store.schema.table import Migration, Table
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.billing import Usage, counters
from svc.kernel.tenants.jobs import keep
from svc.kernel.tenants.tables import CREDITS, LEDGER, ORGANIZATIONS
from svc.kernel.values.ids import DAY_MS

_FORMER_INDEXES = ("events_by_level", "events_by_visitor", "events_by_facet")
_FORMER_VELOCITY = tuple(table.name for table in velocity_jobs.TABLES)
FORMER_TABLES = (*_FORMER_INDEXES, "list_marks", *_FORMER_VELOCITY)
"""Of earlier versions, and empty since: while a store is upgraded they are open, too. A name is never reused."""
OLDEST = 1
"""The oldest version of the store that the migrations start from."""


def _second_version(transaction: Transaction) -> None:
    """Version 2: the tables of 0.2.0. Count what organizations hold of the store, their active keys and today's usage;
    index credits and attempts. Version 7 makes the indexes and counters of events.
    """
    for (number,), _ in transaction.scan(ORGANIZATIONS):
        active = counted_keys(transaction, number)
        day = _index_ledger(transaction, number)
        keep(transaction, number, msgspec.structs.replace(counted(transaction, number), active_keys=active, **day))
        _index_attempts(transaction, number)
    derive_region(transaction)
    _split_statistics(transaction)


def _third_version(transaction: Transaction) -> None:
    """Version 3: events are indexed by segments. Clear the former indexes, whose tables stay empty; version 7 makes the
    segments.
    """
    _clear(transaction, *_FORMER_INDEXES)


def _seventh_version(transaction: Transaction) -> None:
    """Version 7: find events by the rule that decided them and by rules that matched in shadow mode; give accounts
    records; count a sign-up without an account as one of its own. All come from events and velocity rows. Events are
    read once for the indexes of versions 3, 6 and 7: an upgrade is one transaction.
    """
    rebuild_indexes(transaction)
    velocity_jobs.build_records(transaction)


def _eighth_version(transaction: Transaction) -> None:
    """Version 8: lists and their entries have no second row (ADR 197). Clear the existing ones."""
    _clear(transaction, "list_marks")


def _ninth_version(transaction: Transaction) -> None:
    """Version 9: an organization's row says which of its lists have entries (ADR 212), and a value which lists have it
    (ADR 218); velocity and days are in the rows of visitors, accounts and addresses (ADR 216). Move them, and clear
    their former tables.
    """
    for (number,) in list(transaction.scan_keys(ORGANIZATIONS, (0,))):
        mark_filled_lists(transaction, number)
        note_listed(transaction, number)
    velocity_jobs.move(transaction)
    _clear(transaction, *_FORMER_VELOCITY)


def _clear(transaction: Transaction, *names: str) -> None:
    for name in names:
        with suppress(KeyError):  # of a store that never had it
            transaction.writer.clear(name)


def _index_ledger(transaction: Transaction, number: int) -> dict[str, int]:
    """Index the credits. Return fields of `Holding`: the last day with identifications, and its numbers."""
    today, usage = 0, Usage()
    for (_, entry_id), entry in transaction.scan(LEDGER, number):
        if entry.kind == "credit":
            transaction.put(CREDITS, (number, entry_id), b"")
            continue
        day = entry.at_ms // DAY_MS
        if day != today:
            today, usage = day, Usage()
        usage += counters((entry,))
    return {
        "day": today,
        "identifiable": usage.identifiable,
        "unidentifiable": usage.unidentifiable,
        "free": usage.free,
    }


def _index_attempts(transaction: Transaction, number: int) -> None:
    for (_, attempt_id), attempt in transaction.scan(ATTEMPTS, number):
        for table, key in attempt_index_keys(number, attempt_id, attempt):
            transaction.put(table, key, b"")


def _split_statistics(transaction: Transaction) -> None:
    """Split the one row of statistics per organization of version 1; its classes become those of production."""
    statistics = Table(STATISTICS.name, Key(organization=U32), Opaque(), STATISTICS.keep, STATISTICS.personal)
    for (organization,) in list(transaction.scan_keys_reverse(statistics, (0,), (0xFFFFFFFF,))):
        raw = transaction.get(statistics, organization)
        if raw is None:
            continue
        transaction.delete(statistics, organization)
        with suppress(msgspec.DecodeError):  # what cannot be read is learned again
            rows = rows_of_format_2(raw)
            if rows is not None:
                for family, row in {SHARED: rows.shared, **rows.classes}.items():
                    transaction.put(STATISTICS, (organization, PRODUCTION, family), row)


MIGRATIONS: dict[int, Migration] = {
    2: _second_version,
    3: _third_version,
    7: _seventh_version,
    8: _eighth_version,
    9: _ninth_version,
}
"""By the version that each leads to. Versions 4, 5 and 6 add tables, and convert nothing: a visitor's record is read in
the form before version 5 too, and version 7 indexes events by the networks of version 6.
"""
