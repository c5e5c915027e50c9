"""Views of members who have gone."""

from __future__ import annotations

from typing import Any

from svc.features.contracts.cleanup import CleanupTask, Sweep, each_row
from svc.features.members.jobs import find_member
from svc.features.views.tables import SAVED_VIEWS
from svc.features.views.views import View
from svc.kernel.store.snapshot import Transaction


def _delete_ownerless(transaction: Transaction, key: tuple[Any, ...], view: View) -> bool:
    if view.owner is None or find_member(transaction, key[0], view.owner) is not None:
        return False
    return transaction.delete(SAVED_VIEWS, *key)


def _views(sweep: Sweep) -> CleanupTask:
    return each_row(SAVED_VIEWS, _delete_ownerless, sweep.number)


PASSES = (_views,)
