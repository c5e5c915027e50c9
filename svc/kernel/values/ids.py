"""Ids: what their bytes say of time, and the forms that they have as text.

UUIDv7 (RFC 9562, 5.7) begins with 48 bits of Unix milliseconds, so that a table keyed by them is a table by time.
Ordered ids, a prefix and 20 letters and digits of which 8 are the time, sort by it as text.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

from svc.kernel.values.encodings import LETTERS_AND_DIGITS, base62

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MAX_LEAD_MS = HOUR_MS
"""How far a stored time may be ahead of the clock (decisions 17.1, 17.2). A clock that is further behind it was ahead
when the time was stored, and is right now.
"""

_UUID_V7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.ASCII)
_LETTERS = re.compile(r"[0-9A-Za-z]{20}", re.ASCII)
_TIME_DIGITS: Final = 8
_REST: Final = 12


def end_of_now(now_ms: int) -> int:
    """Return the end, exclusive, of a window until now (Unix ms), with what a clock ahead of this one's dated."""
    return now_ms + MAX_LEAD_MS + 1


def first_id(at_ms: int) -> bytes:
    """Return 16 bytes that are not above any UUIDv7 made in this millisecond or later, and above every earlier one."""
    return (max(at_ms, 0) << 80).to_bytes(16)


def made_at_ms(raw_id: bytes) -> int:
    """Return the Unix milliseconds in a UUIDv7 of 16 bytes, its first 48 bits; other bytes give a number as well."""
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


def is_id(prefix: str, text: str) -> bool:
    """Return whether text is this prefix, such as `org_`, and 20 letters and digits (decisions 1.1)."""
    return text.startswith(prefix) and _LETTERS.fullmatch(text, len(prefix)) is not None


def is_visitor_id(text: str) -> bool:
    """Return whether text has the form of a visitor id: 20 letters and digits (decisions 1.1)."""
    return _LETTERS.fullmatch(text) is not None


def ordered_id(prefix: str, at_ms: int, entropy: bytes) -> str:
    """Return a prefix and 20 letters and digits, of which 8 are the time: ids of one prefix sort by it."""
    rest = base62(int.from_bytes(blake2b(entropy, digest_size=16).digest()), _REST)
    return f"{prefix}_{base62(at_ms, _TIME_DIGITS)}{rest}"


def raw_ordered_id(prefix: str, text: str) -> bytes | None:
    """Return the 20 bytes of such an id with this prefix, as they stand in keys; `None` for any other text."""
    before, _, rest = text.partition("_")
    return rest.encode() if before == prefix and _LETTERS.fullmatch(rest) else None


def ordered_id_ms(raw_id: bytes) -> int:
    """Return the time in the 20 bytes of such an id, in Unix milliseconds."""
    at_ms = 0
    for letter in raw_id[:_TIME_DIGITS].decode():
        at_ms = at_ms * len(LETTERS_AND_DIGITS) + LETTERS_AND_DIGITS.index(letter)
    return at_ms


def first_ordered_id(at_ms: int) -> bytes:
    """Return 20 bytes that are above every such id of earlier milliseconds, and above none of this one or later."""
    return (base62(max(at_ms, 0), _TIME_DIGITS) + "0" * _REST).encode()
