"""Stores of earlier versions, made of one of the present version."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from svc.features.schema import SCHEMA
from svc.features.upgrade.velocity_jobs import (
    ADDRESS_HISTORY,
    FORMER_ACCOUNTS,
    VELOCITY,
    VISITOR_HISTORY,
    FormerAccount,
    FormerAddressDay,
    FormerVisitorDay,
)
from svc.identify.history.activity import VisitorActivity
from svc.identify.tables import ACCOUNTS, ADDRESSES, RETENTION_PASSES, VISITORS
from svc.identify.velocity.counts import KINDS, LONGEST_S, SUBJECTS, VelocityRow
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.tables import META


def with_former_tables(store: Path, *jobs: Callable[[Transaction], None], map_bytes: int = 64 << 20) -> None:
    """Run jobs in one transaction of a store in which the tables of earlier versions are open, too."""

    def group(writer: Any) -> None:
        for job in jobs:
            job(Transaction(writer))

    engine = LmdbEngine.open(store, map_bytes=map_bytes, durable=False, check_row=SCHEMA.check_row)
    with closing(engine):
        engine.open_tables([*SCHEMA.names, *SCHEMA.former_tables], create=True)
        engine.write(group, may_use_reserve=True)


def to_version_8(transaction: Transaction) -> None:
    """Give velocity and days back to tables of their own."""

    def put(number: int, period: int, kind: str, subject: str, subject_id: int, row: VelocityRow) -> None:
        if row.last_s:
            key = (number, period, KINDS.index(kind), SUBJECTS.index(subject), subject_id)  # pyright: ignore[reportArgumentType]
            transaction.put(VELOCITY, key, row)

    def day(table: Any, kind: type[Any], key: tuple[int, int, int], history: Any) -> None:
        if history.day:
            transaction.put(table, key, kind(*(getattr(history, name) for name in kind.__struct_fields__)))

    for (number, visitor), record in list(transaction.scan(VISITORS)):
        activity = VisitorActivity.unpack(record.activity)
        for kind in KINDS:
            row = activity.row(kind)
            put(number, row.last_s // LONGEST_S, kind, "visitor", visitor, row)
        day(VISITOR_HISTORY, FormerVisitorDay, (number, activity.history.day, visitor), activity.history)
        transaction.put(VISITORS, (number, visitor), msgspec.structs.replace(record, activity=b""))
    for (number, kind, account), record in list(transaction.scan(ACCOUNTS)):
        row = record.activity
        put(number, row.last_s // LONGEST_S, KINDS[kind], "account", account, row)
        former = FormerAccount(record.first_s, record.last_s, record.visitors)
        transaction.put(FORMER_ACCOUNTS, (number, kind, account), former)
    for key, activity in list(transaction.scan(ADDRESSES)):
        number, period, address = key
        for kind in KINDS:
            put(number, period, kind, "address", address, activity.row(kind))
        day(ADDRESS_HISTORY, FormerAddressDay, (number, activity.history.day, address), activity.history)
        transaction.delete(ADDRESSES, *key)
    _forget_what_passes_note(transaction)
    transaction.put(META, ("version",), 8)


def _forget_what_passes_note(transaction: Transaction) -> None:
    for key, made in list(transaction.scan(RETENTION_PASSES)):
        transaction.put(RETENTION_PASSES, key, msgspec.structs.replace(made, counts_from_s=0))
