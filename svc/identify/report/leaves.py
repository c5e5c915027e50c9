"""What no attribute claims, as `path=value` leaves, for near comparison.

What may live here: the bounded walk over unknown parts of a report, and the names of values that change by the minute
and so say nothing of the device.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from typing import Any

from svc.identify.report.values import digest, entries_of, is_unicode, members, scalar_text

MAX_VISITED = 1_024
"""Values looked at, whatever their number in the report."""
MAX_FOUND = 128
MAX_DEPTH = 6
MAX_KEY = 64
LONGEST_VALUE = 96
"""Longer values are hashed."""

_VOLATILE = re.compile(
    r"""
      time(?!zone) | date(?!timelocale) | duration | elapsed | latency | (?:^|_)now$
    | nonce | random | uuid | guid | session(?!storage) | token | cookie(?!s?enabled) | fingerprint$
    | battery | charging | online | visib | focus | connection | network | rtt$ | downlink | (?:^|_)ip(?:$|_)
    | heap | quota | usage | scroll | mouse | cursor | (?:inner|outer|client|page)(?:width|height)
    | orientation | referrer | url$ | href | location | version | useragent | history
    """,
    re.VERBOSE,
)
_IDENTIFIER = re.compile(r"(?:^|_)(?:id|ids|ID)$|[a-z]I[dD]$")


def leaves_of(pairs: Iterable[tuple[str, Any]]) -> list[str]:
    """Return the leaves under (name, JSON value) pairs as `path=value`, at most `MAX_FOUND`, in no promised order."""
    walk = _Walk()
    walk.visit_members("", pairs, 1)
    return walk.found


@lru_cache(maxsize=4096)
def _steady_name(key: str) -> str | None:
    """Return the key; `None` if it names what changes while the device stays the same: times, tokens, batteries."""
    if not is_unicode(key) or _VOLATILE.search(key.lower()) is not None or _IDENTIFIER.search(key) is not None:
        return None
    return key


class _Walk:
    __slots__ = ("found", "left")

    def __init__(self) -> None:
        self.found: list[str] = []
        self.left = MAX_VISITED

    def visit_members(self, prefix: str, pairs: Iterable[tuple[str, Any]], depth: int) -> None:
        for key, value in islice(pairs, MAX_VISITED):
            name = _steady_name(key if len(key) <= MAX_KEY else key[:MAX_KEY])
            if name is not None and not self._visit(prefix + name, value, depth):
                return

    def _visit(self, path: str, value: Any, depth: int) -> bool:
        """Add a value's leaves; return whether more may be added."""
        self.left -= 1
        found = self.found
        if self.left < 0 or len(found) >= MAX_FOUND:
            return False
        kind = value.__class__
        if kind is str and 0 < len(value) <= LONGEST_VALUE and value.isascii():
            found.append(f"{path}={value}")
        elif kind is dict or kind is list:
            if depth < MAX_DEPTH:
                self._visit_inside(path, value, depth + 1)
        elif value is not None:
            shown = scalar_text(value)
            if shown is not None:
                found.append(f"{path}={shown if kind is not str or len(shown) <= LONGEST_VALUE else digest(shown)}")
        return True

    def _visit_inside(self, path: str, value: Any, depth: int) -> None:
        if type(value) is dict:
            self.visit_members(path + ".", members(value).items(), depth)
            return
        # Without the position: a list that gained one entry stays near to what it was.
        for inner in entries_of(value):
            if not self._visit(path + "[]", inner, depth):
                return
