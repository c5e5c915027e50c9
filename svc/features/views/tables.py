"""A view: the filters of a list in the console, by a name; and the table of them."""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal

import msgspec

from svc.identify.model import Subject
from svc.kernel.access.members import MEMBER_PREFIX
from svc.kernel.store.schema.codec import Key, KeyPart, Record
from svc.kernel.store.schema.key_parts import ORDERED_ID, U32
from svc.kernel.store.schema.table import NotPersonal, Swept, Table
from svc.kernel.values.fields import is_visible
from svc.kernel.values.ids import is_id

MAX_OWN_VIEWS: Final = 50
"""Of one member."""
MAX_SHARED_VIEWS: Final = 200
"""Of an organization."""
MAX_PARAMETERS: Final = 20
LONGEST_NAME: Final = 60
LONGEST_VALUE: Final = 1024
"""Characters, as of a tag."""
MAX_QUERY_BYTES: Final = 4096
"""Of a view's parameters and values together, in UTF-8."""

SURE_LENGTH: Final = 6
"""Characters from which on a word of a name is taken for the id of an account."""
_HOLD_IDS: Final[dict[Subject, frozenset[str]]] = {
    "visitor": frozenset({"visitor", "q", "tag"}),
    "account": frozenset({"account_id", "q", "tag"}),
}
"""Parameters of the screens in which an id may stand; the others are of fixed words, numbers and addresses."""

ViewScreen = Literal["live", "events", "visitors", "accounts"]
"""A screen of the console with filters that can be saved."""


class View(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One view. Append fields with defaults, never move them."""

    id: str
    name: str
    screen: ViewScreen
    query: tuple[tuple[str, str], ...]
    """Parameter -> value, as they stand in the address."""
    saved_at_ms: int
    owner: str | None = None
    """The member whose own view it is; `None` = the organization's."""
    saved_by: str | None = None
    """The member who saved it."""

    def names(self, subject: Subject, subject_id: str) -> bool:
        """Return whether the view names a visitor or an account: its id is a word of a parameter that may hold ids, or
        of the name of the view. There an account's id may be any word (`high`, `7d`), so unless it is the whole name it
        counts from `SURE_LENGTH` characters on, with a digit or an `@` among them.
        """
        word = re.compile(rf"(?<![\w-]){re.escape(subject_id)}(?![\w-])")
        if any(parameter in _HOLD_IDS[subject] and word.search(value) for parameter, value in self.query):
            return True
        is_sure = subject == "visitor" or (len(subject_id) >= SURE_LENGTH and re.search(r"[\d@]", subject_id))
        return bool(word.search(self.name)) if is_sure else self.name.strip() == subject_id


def is_name(text: str) -> bool:
    """Return whether a view may be called so: it is not blank, and each character is one that people see."""
    return is_visible(text) and not any(unicodedata.category(each) in _UNSEEN for each in text)


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control and format characters, halves of characters, and separators of lines."""


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
