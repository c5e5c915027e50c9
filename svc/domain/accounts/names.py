"""How accounts and actions are named (decisions 11.1)."""

from __future__ import annotations

import re
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
