"""Ids that are kept in keys: what their bytes say of time, and what a visitor id looks like.

UUIDv7 (RFC 9562, 5.7) begins with 48 bits of Unix milliseconds, so that a table keyed by them is a table by time.
"""

from __future__ import annotations

import re

DAY_MS = 24 * 3600 * 1000

_VISITOR_ID = re.compile(r"[0-9A-Za-z]{20}", re.ASCII)


def first_id(at_ms: int) -> bytes:
    """16 bytes that are not above any UUIDv7 made in this millisecond or later, and above every earlier one."""
    return (max(at_ms, 0) << 80).to_bytes(16)


def made_at_ms(raw_id: bytes) -> int:
    """Unix milliseconds at which a UUIDv7 was made: its first 48 bits."""
    return int.from_bytes(raw_id[:6])


def is_visitor_id(text: str) -> bool:
    """Whether the text has the form of a visitor id: 20 letters and digits (decisions 1.1)."""
    return _VISITOR_ID.fullmatch(text) is not None
