"""Numbers and bytes as text: base62, base64, and texts that only their maker can have written.

What may live here: the spellings that keys, tokens, cursors and attestations share.
"""

from __future__ import annotations

import base64
import hmac
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import msgspec

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
    """Return at most `most` bytes (give or take two) of standard base64 with padding; `None` for all else."""
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
    """Return what `seal` made a text of with the same arguments; `None` for any other text or encoding."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    content, mac = raw[:-mac_bytes], raw[-mac_bytes:]
    genuine = base64url(raw) == text and hmac.compare_digest(mac, _mac(key, context + content, mac_bytes))
    return content if genuine else None


def _mac(key: bytes, signed: bytes, length: int) -> bytes:
    return hmac.digest(key, signed, "sha256")[:length]


List = Literal[
    "deliveries",
    "sdk_keys",
    "proxy_keys",
    "events",
    "feed",
    "changes",
    "visitors",
    "audit",
    "seen_accounts",
    "seen_visitors",
    "list_entries",
    "reviews",
    "open_reviews",
]
"""The list that a cursor belongs to: it is refused by any other."""

_MAC_LENGTH = 8
"""Bytes. What a forged cursor shows is another page of the same organization."""


def cursors_key(pepper: bytes) -> bytes:
    """Return the 32-byte key of all cursors of one installation, derived from its pepper."""
    return hmac.digest(pepper, b"svc cursor 1", "sha256")


class Cursors(NamedTuple):
    """The cursors of one list of one organization with some filters: none of any other is valid here."""

    key: bytes
    """As of `cursors_key`."""
    which: List
    organization: int
    bound: bytes = b""
    """Stands for the filters: see `bound_to`."""

    def write(self, row: bytes) -> str:
        """Return the cursor of the page that follows this row: opaque text, authenticated."""
        return seal(self.key, self.bound + row, _MAC_LENGTH, self._context)

    def read(self, text: str) -> bytes | None:
        """Return the row that a cursor names, or `None` for text that these cursors did not write."""
        row = unseal(self.key, text, _MAC_LENGTH, self._context)
        return row.removeprefix(self.bound) if row is not None and row.startswith(self.bound) else None

    @property
    def _context(self) -> bytes:
        return self.which.encode() + b"\0" + self.organization.to_bytes(4)


def bound_to(*filters: Any, size: int = 16) -> bytes:
    """Return so many bytes that stand for filters, which are values that msgspec encodes."""
    return blake2b(msgspec.json.encode(filters, order="deterministic"), digest_size=size).digest()
