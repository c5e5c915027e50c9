"""Views in transactions: saved, deleted, and forgotten with whom they name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from svc.features.views.tables import SAVED_VIEWS
from svc.features.views.views import MAX_VIEWS, View
from svc.identify.model import Subject
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.ordered_ids import raw_ordered_id
from svc.kernel.values.refusals import Refusal


def views_of(snapshot: Snapshot, number: int) -> Iterator[tuple[bytes, View]]:
    """Yield (20 bytes of its id, view) of all views of an organization and its members, oldest first."""
    rows = islice(snapshot.scan(SAVED_VIEWS, number), MAX_VIEWS)
    return ((raw_id, view) for (_, raw_id), view in rows)


def find_view(snapshot: Snapshot, number: int, view_id: str, member: str | None) -> View | None:
    """Return a view of the organization, or of this member, by its id; `None` if there is none."""
    raw_id = raw_ordered_id(view_id) if view_id.startswith("view_") else None
    found = None if raw_id is None else snapshot.get(SAVED_VIEWS, number, raw_id)
    return found if found is not None and found.owner in (None, member) else None


def save_view(transaction: Transaction, number: int, view: View) -> View | Refusal:
    """Store a new view and return it. Refusals: `409 view_exists` where its owner has one of its name and screen, `409
    view_limit`.
    """
    there = [found for _, found in views_of(transaction, number)]
    if any((each.name, each.screen, each.owner) == (view.name, view.screen, view.owner) for each in there):
        return Refusal("view_exists")
    if len(there) >= MAX_VIEWS:
        return Refusal("view_limit")
    transaction.put(SAVED_VIEWS, (number, raw_ordered_id(view.id)), view)
    return view


def naming(snapshot: Snapshot, number: int, subject_id: str) -> Iterator[bytes]:
    """Yield the ids (20 bytes) of the views in which the id of a visitor or an account stands."""
    return (raw_id for raw_id, view in views_of(snapshot, number) if view.names(subject_id))


def forget_views(transaction: Transaction, number: int, _: Subject, subject_id: str) -> bool:
    """Delete the views that name a visitor or an account; return whether there were any."""
    gone = list(naming(transaction, number, subject_id))
    for raw_id in gone:
        transaction.delete(SAVED_VIEWS, number, raw_id)
    return bool(gone)
