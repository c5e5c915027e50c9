"""The table of views."""

from __future__ import annotations

from svc.features.views.views import View
from svc.kernel.store.schema.codec import Key, Record
from svc.kernel.store.schema.key_parts import ORDERED_ID, U32
from svc.kernel.store.schema.table import ErasedBy, Swept, Table

SAVED_VIEWS = Table(
    "saved_views",
    Key(organization=U32, view=ORDERED_ID),
    Record(View),
    Swept("when the member whose own it is has gone"),
    ErasedBy("forget_views"),
    since=9,
)
"""Those of an organization and its members, oldest first."""
