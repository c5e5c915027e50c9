"""The table of views."""

from __future__ import annotations

from svc.features.views.views import View
from svc.kernel.access.members import MEMBER_PREFIX
from svc.kernel.store.schema.codec import Key, KeyPart, Record
from svc.kernel.store.schema.key_parts import ORDERED_ID, U32
from svc.kernel.store.schema.table import NotPersonal, Swept, Table
from svc.kernel.values.ids import is_id

_SHARED = "shared"


def raw_owner(member_id: str | None) -> bytes:
    """Return the owner of views as it lies in keys: the 20 bytes of a member's id without its prefix, or as many zeros
    for the organization.
    """
    return bytes(20) if member_id is None else member_id.removeprefix(MEMBER_PREFIX).encode()


def _show_owner(raw: bytes) -> str:
    return MEMBER_PREFIX + raw.decode("ascii", "replace") if any(raw) else _SHARED


def _read_owner(text: str) -> bytes:
    if text != _SHARED and not is_id(MEMBER_PREFIX, text):
        raise ValueError(f"{text!r} is neither the id of a member nor {_SHARED!r}")
    return raw_owner(None if text == _SHARED else text)


SAVED_VIEWS = Table(
    "saved_views",
    Key(organization=U32, owner=KeyPart("20s", _show_owner, _read_owner), view=ORDERED_ID),
    Record(View),
    Swept("when the member whose own it is has gone"),
    NotPersonal("filters are the customer's own text; erasure deletes what names an id (`features/erasure/texts.py`)"),
    since=9,
)
"""Those of an organization (`shared`) and of each member, oldest first."""
