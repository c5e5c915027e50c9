"""Outcomes that have expired, and numbers of accounts that none names any more."""

from __future__ import annotations

from functools import partial

from svc.features.contracts.cleanup import CleanupTask, Purge, Sweep, each_row
from svc.features.labels.jobs import delete_unnamed_account, purge_outcomes
from svc.features.labels.tables import NUMBERED_ACCOUNTS, OUTCOMES

ROWS_OF_A_SEGMENT = 250
"""Of outcomes: most are of those that are labeled."""


def _account_numbers(sweep: Sweep) -> CleanupTask:
    return each_row(NUMBERED_ACCOUNTS, partial(delete_unnamed_account, sweep.now_ms), sweep.number)


PASSES = (_account_numbers,)
PURGED_BY = {OUTCOMES.name: Purge(purge_outcomes, ROWS_OF_A_SEGMENT)}
