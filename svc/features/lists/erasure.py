"""Entries of lists that are of a visitor or an account."""

from __future__ import annotations

from svc.features.contracts.erased import Erased, Forgetting, Keys
from svc.features.lists.jobs import listed, purge_listed
from svc.features.lists.tables import LIST_ENTRIES, LIST_EXPIRIES, LISTED
from svc.identify.model import Subject
from svc.kernel.store.snapshot import Snapshot


def _is_listed(snapshot: Snapshot, number: int, subject: Subject, subject_id: str) -> bool:
    return any(listed(snapshot, number, subject, subject_id))


def _of_visitor(snapshot: Snapshot, number: int, _: int, raw_id: bytes) -> Keys:
    for raw_list, entry in listed(snapshot, number, "visitor", raw_id.decode()):
        yield LIST_ENTRIES, (number, raw_list, entry.value)
        yield LISTED, (number, entry.value)
        if entry.expires_at_ms is not None:
            yield LIST_EXPIRIES, (number, entry.expires_at_ms, raw_list, entry.value)


ERASED = {"purge_listed": Erased((LIST_ENTRIES, LIST_EXPIRIES, LISTED), of_visitor=_of_visitor)}
FORGET = Forgetting(is_known=_is_listed, at_once=purge_listed)
