"""Brands of User-Agent Client Hints, from a report or from a header.

What may live here: what a list of brands means. A browser mixes in one invented brand (GREASE) so that nobody relies
on the list's exact content, and shuffles the order.
"""

from __future__ import annotations

import re
from typing import Any

from svc.domain.report.values import entries_of, members, text

MAX_BRANDS = 16
_GREASE = re.compile(r"[\W_]*Not[\W_]?A[\W_]?Brand[\W_]*")


def is_grease(brand: str) -> bool:
    """Whether the brand is the invented one, such as `Not;A=Brand` (W3C UA Client Hints, 6.2)."""
    return _GREASE.fullmatch(brand) is not None


def invented_brand(value: Any) -> str | None:
    """The GREASE entry of a list of `{brand, version}` objects or of bare names."""
    for entry in entries_of(value)[:MAX_BRANDS]:
        brand = text(entry if type(entry) is str else members(entry).get("brand"), 64)
        if brand is not None and is_grease(brand):
            return brand
    return None


def brand_list(value: Any) -> tuple[tuple[str, str], ...]:
    """(brand, version) pairs of a list of `{brand, version}` objects or of bare names, sorted; a version may be ""."""
    found: list[tuple[str, str]] = []
    for entry in entries_of(value)[:MAX_BRANDS]:
        if type(entry) is str:
            brand, version = text(entry, 64), ""
        else:
            fields = members(entry)
            brand, version = text(fields.get("brand"), 64), text(fields.get("version"), 64) or ""
        if brand is not None and not is_grease(brand):
            found.append((brand, version))
    return tuple(sorted(found))
