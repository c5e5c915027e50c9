"""Numbers and bytes as text: base62, base64, and texts that only their maker can have written.

What may live here: the spellings that keys, tokens, cursors and attestations share.
"""

from __future__ import annotations

import base64
import hmac
from typing import Any

LETTERS_AND_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""The digits of base62, in the order of ASCII."""


def base62(number: int, length: int) -> str:
    """Return the lowest `length` digits of a number from 0 on, the highest of them first."""
    characters: list[str] = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        characters.append(LETTERS_AND_DIGITS[digit])
    return "".join(reversed(characters))


def base64url(content: bytes) -> str:
    """Return base64 for URLs, without padding (RFC 4648, 5)."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def from_base64(text: Any, most: int) -> bytes | None:
    """Return at most `most` bytes (give or take two) of standard base64 with padding; `None` for any other
    JSON value.
    """
    if type(text) is not str or len(text) > (most + 2) // 3 * 4:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


def seal(key: bytes, content: bytes, mac_bytes: int, context: bytes = b"") -> str:
    """Return, as `base64url`, `content` with the first `mac_bytes` of an HMAC-SHA256 over `context` and `content`.
    Anybody can read it; only holders of the key can make it. The same context is needed to open it.
    """
    return base64url(content + _mac(key, context + content, mac_bytes))


def unseal(key: bytes, text: str, mac_bytes: int, context: bytes = b"") -> bytes | None:
    """Return the content of a text that `seal` made with the same arguments; `None` for any other text, including
    another encoding of the same bytes.
    """
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    content, mac = raw[:-mac_bytes], raw[-mac_bytes:]
    genuine = base64url(raw) == text and hmac.compare_digest(mac, _mac(key, context + content, mac_bytes))
    return content if genuine else None


def _mac(key: bytes, signed: bytes, length: int) -> bytes:
    return hmac.digest(key, signed, "sha256")[:length]
