"""Views in transactions: found, saved, and deleted with the member whose own they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from svc.features.contracts.cleanup import Pass, each_row
from svc.features.members.jobs import find_member
from svc.features.views.tables import MAX_OWN_VIEWS, MAX_SHARED_VIEWS, SAVED_VIEWS, View, raw_owner
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.ids import raw_ordered_id
from svc.kernel.values.refusals import Refusal

ViewKey: TypeAlias = tuple[int, bytes, bytes]
"""Organization, owner and view, as in the table."""


def keys_of(snapshot: Snapshot, number: int, member: str | None) -> list[ViewKey]:
    """Return the keys of the views of the organization and, unless `None`, of this member: no row is read."""
    owners = [raw_owner(owner) for owner in dict.fromkeys((None, member))]
    return [key for owner in owners for key in snapshot.keys_of(SAVED_VIEWS, number, owner)]


def views_at(snapshot: Snapshot, keys: Sequence[ViewKey]) -> Iterator[View | None]:
    """Yield the views with these keys; `None` for one that is gone."""
    return (snapshot.get(SAVED_VIEWS, *key) for key in keys)


def find_view(snapshot: Snapshot, number: int, view_id: str, member: str | None) -> tuple[ViewKey, View] | None:
    """Return a view of the organization, or of this member, by its id, and its key; `None` if there is none."""
    raw_id = raw_ordered_id("view", view_id)
    if raw_id is None:
        return None
    for owner in dict.fromkeys((None, member)):
        key = number, raw_owner(owner), raw_id
        found = snapshot.get(SAVED_VIEWS, *key)
        if found is not None:
            return key, found
    return None


def save_view(transaction: Transaction, number: int, view: View) -> View | Refusal:
    """Store a new view and return it. Refusals: `409 view_exists` where its owner has one of its name and screen, `409
    view_limit`.
    """
    owner = raw_owner(view.owner)
    there = list(transaction.keys_of(SAVED_VIEWS, number, owner))
    if len(there) >= (MAX_SHARED_VIEWS if view.owner is None else MAX_OWN_VIEWS):
        return Refusal("view_limit")
    if any(each and (each.name, each.screen) == (view.name, view.screen) for each in views_at(transaction, there)):
        return Refusal("view_exists")
    transaction.put(SAVED_VIEWS, (number, owner, raw_ordered_id("view", view.id)), view)
    return view


def _delete_ownerless(transaction: Transaction, key: tuple[Any, ...], view: View) -> bool:
    if view.owner is None or find_member(transaction, key[0], view.owner) is not None:
        return False
    return transaction.delete(SAVED_VIEWS, *key)


PASSES: tuple[Pass, ...] = (lambda sweep: each_row(SAVED_VIEWS, _delete_ownerless, sweep.number),)
