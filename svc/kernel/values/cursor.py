"""Where the next page of a list begins: opaque to customers, and made by this service (decisions 2.5 and 8.6).

A cursor names the row that the page before ended with, so that rows that are added meanwhile move nothing: what the row
is found by, with an HMAC over it, the list and the organization, base64url without padding.
"""

from __future__ import annotations

import hmac
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import msgspec

from svc.kernel.values.encodings import seal, unseal

List = Literal[
    "deliveries",
    "sdk_keys",
    "proxy_keys",
    "events",
    "feed",
    "visitors",
    "audit",
    "seen_accounts",
    "seen_visitors",
    "list_entries",
    "reviews",
]
"""The list that a cursor belongs to: it is refused by any other."""

_MAC_LENGTH = 8
"""Bytes. What a forged cursor shows is another page of the same organization."""


def cursors_key(pepper: bytes) -> bytes:
    """Return the 32-byte key of all cursors of one installation, derived from its pepper."""
    return hmac.digest(pepper, b"svc cursor 1", "sha256")


class Cursors(NamedTuple):
    """The cursors of one list of one organization. They are bound to what the list shows: none of another list, of
    another organization or of other filters is valid here.
    """

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
