"""Views that name a visitor or an account."""

from __future__ import annotations

from svc.features.contracts.erased import Erased, Forgetting, Keys
from svc.features.views.jobs import forget_views, naming
from svc.features.views.tables import SAVED_VIEWS
from svc.kernel.store.snapshot import Snapshot


def _of_visitor(snapshot: Snapshot, number: int, _: int, raw_id: bytes) -> Keys:
    return ((SAVED_VIEWS, (number, view)) for view in naming(snapshot, number, raw_id.decode()))


ERASED = {"forget_views": Erased((SAVED_VIEWS,), of_visitor=_of_visitor)}
FORGET = Forgetting(at_once=forget_views)
