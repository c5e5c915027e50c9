"""Ids that sort by the time at which they were made: a prefix and 20 letters and digits, of which 8 are the time."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

from svc.kernel.values.encodings import LETTERS_AND_DIGITS, base62

_TIME_DIGITS: Final = 8
_REST: Final = 12
_RAW = re.compile(r"[0-9A-Za-z]{20}", re.ASCII)


def ordered_id(prefix: str, at_ms: int, entropy: bytes) -> str:
    """Return a prefix and 20 letters and digits, of which 8 are the time: ids of one prefix sort by it."""
    rest = base62(int.from_bytes(blake2b(entropy, digest_size=16).digest()), _REST)
    return f"{prefix}_{base62(at_ms, _TIME_DIGITS)}{rest}"


def raw_ordered_id(prefix: str, text: str) -> bytes | None:
    """Return the 20 bytes of such an id with this prefix, as they stand in keys; `None` for any other text."""
    before, _, rest = text.partition("_")
    return rest.encode() if before == prefix and _RAW.fullmatch(rest) else None


def ordered_id_ms(raw_id: bytes) -> int:
    """Return the time in the 20 bytes of such an id, in Unix milliseconds."""
    at_ms = 0
    for letter in raw_id[:_TIME_DIGITS].decode():
        at_ms = at_ms * len(LETTERS_AND_DIGITS) + LETTERS_AND_DIGITS.index(letter)
    return at_ms


def first_ordered_id(at_ms: int) -> bytes:
    """Return 20 bytes that are above every such id of earlier milliseconds, and above none of this one or later."""
    return (base62(max(at_ms, 0), _TIME_DIGITS) + "0" * _REST).encode()
