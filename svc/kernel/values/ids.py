"""Ids that are kept in keys: what their bytes say of time, and what a visitor id looks like.

UUIDv7 (RFC 9562, 5.7) begins with 48 bits of Unix milliseconds, so that a table keyed by them is a table by time.
"""

from __future__ import annotations

import re

DAY_MS = 24 * 3600 * 1000
MAX_LEAD_MS = 3_600_000
"""How far a stored time may be ahead of the clock (decisions 17.1, 17.2). A clock that is further behind it was ahead
when the time was stored, and is right now.
"""

_UUID_V7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.ASCII)
_VISITOR_ID = re.compile(r"[0-9A-Za-z]{20}", re.ASCII)
_ORGANIZATION_ID = re.compile(r"org_[0-9A-Za-z]{20}", re.ASCII)
_RULE_ID = re.compile(r"rul_[0-9A-Za-z]{20}", re.ASCII)
_WEBHOOK_ID = re.compile(r"whk_[0-9A-Za-z]{20}", re.ASCII)


def end_of_now(now_ms: int) -> int:
    """Return the end, exclusive, of a window that goes on until now (Unix ms): what another node has stored a moment
    ago, by a clock that is ahead of this one's, is in it.
    """
    return now_ms + MAX_LEAD_MS + 1


def first_id(at_ms: int) -> bytes:
    """Return 16 bytes that are not above any UUIDv7 made in this millisecond or later, and above every earlier one."""
    return (max(at_ms, 0) << 80).to_bytes(16)


def made_at_ms(raw_id: bytes) -> int:
    """Return the Unix milliseconds in a UUIDv7 of 16 bytes: its first 48 bits (RFC 9562, 5.7). Other bytes give a
    number as well.
    """
    return int.from_bytes(raw_id[:6])


def ordered_digest(text: str, digest: bytes) -> bytes:
    """Return the 16-byte `digest` of a caller's text in the form for keys. For a UUIDv7 in its usual form, it begins
    with the 6 bytes of the id's time, followed by 10 of the digest: rows of one moment are adjacent, instead of each on
    a page of its own (ADR 45). It depends only on the text.
    """
    return bytes.fromhex(text[:8] + text[9:13]) + digest[:10] if _UUID_V7.fullmatch(text) else digest


def time_of_uuid(text: str) -> int | None:
    """Return the Unix milliseconds in a UUIDv7 in its usual form (RFC 9562, 5.7); `None` for any other text."""
    return int(text[:8] + text[9:13], 16) if _UUID_V7.fullmatch(text) else None


def is_organization_id(text: str) -> bool:
    """Return whether text has the form of the id of an organization (decisions 1.1)."""
    return _ORGANIZATION_ID.fullmatch(text) is not None


def is_webhook_id(text: str) -> bool:
    """Return whether text has the form of the id of a webhook endpoint (decisions 1.1)."""
    return _WEBHOOK_ID.fullmatch(text) is not None


def is_rule_id(text: str) -> bool:
    """Return whether text has the form of the id of a rule (decisions 1.1, 13.1)."""
    return _RULE_ID.fullmatch(text) is not None


def is_visitor_id(text: str) -> bool:
    """Return whether the text has the form of a visitor id: 20 letters and digits (decisions 1.1)."""
    return _VISITOR_ID.fullmatch(text) is not None


HOUR_MS = 3_600_000


def is_list_id(text: str) -> bool:
    """Return whether text has the form of the id of a list."""
    return _LIST_ID.fullmatch(text) is not None


_LIST_ID = re.compile(r"lst_[0-9A-Za-z]{20}", re.ASCII)
