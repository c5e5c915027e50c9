"""How accounts and actions are named (decisions 11.1)."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

ACCOUNT_ID_FORM: Final = r"^[^\u0000-\u001f\u007f-\u009f]{1,256}$(?!\n)"
"""1 to 256 characters, none of them a control character. ECMA-262 and Python read it alike: in Python alone, `$` would
match before a last line feed, too.
"""
ACTION_FORM: Final = r"^[a-z][a-z0-9_.-]{0,63}$(?!\n)"
ACCOUNT_ID: Final = re.compile(ACCOUNT_ID_FORM)
ACTION: Final = re.compile(ACTION_FORM)
SIGN_UP: Final = "sign_up"
"""The action of an event that opens an account: without an account it counts as one of its own (decisions 11.2)."""


def folded(account_id: str) -> str:
    """Return what is left of an id without what people do not see: case, width, blanks and invisible characters. Ids
    are compared as they are; this is for pointing out those that look alike.
    """
    seen = unicodedata.normalize("NFKC", account_id).casefold()
    return "".join(one for one in seen if not one.isspace() and not _is_invisible(one))


def _is_invisible(one: str) -> bool:
    return unicodedata.category(one) == "Cf" or one in _FILLERS or "\ufe00" <= one <= "\ufe0f"


_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5"
"""Shown as nothing, and of no category that says so."""
