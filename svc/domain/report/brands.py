"""Brands of User-Agent Client Hints, from a report or from a header.

What may live here: what a list of brands means. A browser mixes in one invented brand (GREASE) so that nobody relies
on the list's exact content, and shuffles the order.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from svc.domain.report.values import entries_of, members, text

MAX_BRANDS = 16
_GREASE = re.compile(r"[\W_]*Not[\W_]?A[\W_]?Brand[\W_]*")


@lru_cache(maxsize=1024)
def is_grease(brand: str) -> bool:
    """Whether the brand is the invented one that browsers add, such as `Not;A=Brand` (W3C UA Client Hints, 6.2)."""
    return _GREASE.fullmatch(brand) is not None


def read_brands(value: Any) -> tuple[tuple[tuple[str, str], ...], str | None]:
    """(brand, version) pairs, sorted, and the invented brand, of a list of `{brand, version}` objects or of bare names.

    Of the list 16 entries are read, texts of at most 64 characters; a version may be "".
    """
    found: list[tuple[str, str]] = []
    invented: str | None = None
    for entry in entries_of(value)[:MAX_BRANDS]:
        fields = members(entry)
        brand = text(entry if type(entry) is str else fields.get("brand"), 64)
        if brand is None:
            continue
        if not is_grease(brand):
            found.append((brand, text(fields.get("version"), 64) or ""))
        elif invented is None:
            invented = brand
    return tuple(sorted(found)), invented
