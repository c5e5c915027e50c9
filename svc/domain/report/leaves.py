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

from svc.domain.report.values import digest, entries_of, is_unicode, scalar_text

MAX_VISITED = 1_024
"""Values looked at, whatever their number in the report."""
MAX_FOUND = 128
MAX_DEPTH = 6
MAX_KEY = 64
LONGEST_VALUE = 96
"""Longer values are hashed."""

# fmt: off
NOT_OF_THE_DEVICE = frozenset(
    {
        "client_token", "client_token_is_new", "collected_at", "nonce", "incognito", "developer_tools", "tier",
        "attestation", "botd", "components", "thumbmark", "fpscanner", "visitorId", "requestId", "confidence", "tag",
    }
)
# fmt: on
"""Members of a report that are about the visit, or that another collector put there."""

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


def leaves_of(members: Iterable[tuple[str, Any]]) -> list[str]:
    """The leaves under the given (key, value) pairs, at most `MAX_FOUND`, in no promised order."""
    walk = _Walk()
    for key, value in islice(members, MAX_VISITED):
        name = _steady_name(key) if len(key) <= MAX_KEY else _steady_name(key[:MAX_KEY])
        if name is not None:
            walk.visit(name, value, 1)
    return walk.found


@lru_cache(maxsize=4096)
def _steady_name(key: str) -> str | None:
    """The key, or `None` when it names what changes while the device stays the same: times, tokens, batteries."""
    if not is_unicode(key) or _VOLATILE.search(key.lower()) is not None or _IDENTIFIER.search(key) is not None:
        return None
    return key


class _Walk:
    __slots__ = ("found", "visited")

    def __init__(self) -> None:
        self.found: list[str] = []
        self.visited = 0

    def visit(self, path: str, value: Any, depth: int) -> None:
        self.visited += 1
        if self.visited > MAX_VISITED or len(self.found) >= MAX_FOUND:
            return
        kind = value.__class__
        if kind is str:
            if value and is_unicode(value):
                self.found.append(f"{path}={value if len(value) <= LONGEST_VALUE else digest(value)}")
        elif kind is dict and depth < MAX_DEPTH:
            self._visit_members(path, value, depth + 1)
        elif kind is list:
            # Without the position: a list that gained one entry stays near to what it was.
            entry_path = path + "[]"
            for inner in entries_of(value) if depth < MAX_DEPTH else ():
                self.visit(entry_path, inner, depth + 1)
        elif value is not None:
            shown = scalar_text(value)
            if shown is not None:
                self.found.append(f"{path}={shown}")

    def _visit_members(self, path: str, members: dict[str, Any], depth: int) -> None:
        for key, inner in islice(members.items(), MAX_VISITED):
            name = _steady_name(key) if len(key) <= MAX_KEY else _steady_name(key[:MAX_KEY])
            if name is not None:
                self.visit(f"{path}.{name}", inner, depth)
