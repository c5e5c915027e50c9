"""A view: the filters of a list in the console, by a name."""

from __future__ import annotations

import re
from typing import Final

import msgspec

MAX_VIEWS: Final = 500
"""Of an organization, those of its members included."""
MAX_PARAMETERS: Final = 20
LONGEST_NAME: Final = 60
LONGEST_VALUE: Final = 1024
"""Characters, as of a tag."""


class View(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One view. Append fields with defaults, never move them."""

    id: str
    name: str
    screen: str
    query: tuple[tuple[str, str], ...]
    """Parameter -> value, as they stand in the address."""
    saved_at_ms: int
    owner: str | None = None
    """The member whose own view it is; `None` = the organization's."""
    saved_by: str | None = None
    """The member who saved it."""

    def names(self, text: str) -> bool:
        """Return whether the text, the id of a visitor or an account, is one of its values, or a word of its name."""
        is_value = any(value == text for _, value in self.query)
        return is_value or re.search(rf"(?<!\w){re.escape(text)}(?!\w)", self.name) is not None
