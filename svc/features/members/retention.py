"""Sessions, links and invitations that are over."""

from __future__ import annotations

from functools import partial
from typing import Any

from svc.features.contracts.cleanup import CleanupTask, Sweep, each_row
from svc.kernel.access.jobs import SIGN_IN_TABLES, SignIn, end, holder
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Transaction


def _delete_sign_in(
    table: Table[Any], now_ms: int, transaction: Transaction, key: tuple[int, bytes], signed: SignIn
) -> bool:
    return holder(transaction, key[0], signed, now_ms) is None and end(transaction, table, *key, now_ms)


def _sign_in(table: Table[Any], sweep: Sweep) -> CleanupTask:
    return each_row(table, partial(_delete_sign_in, table, sweep.now_ms), sweep.number)


PASSES = tuple(partial(_sign_in, table) for table in SIGN_IN_TABLES)
