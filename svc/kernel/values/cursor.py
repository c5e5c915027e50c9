"""Where the next page of a list begins: opaque to customers, and made by this service (decisions 2.5 and 8.6).

A cursor names the row that the page before ended with, so that rows that are added meanwhile move nothing: what the row
is found by, with an HMAC over it, the list and the organization, base64url without padding.
"""

from __future__ import annotations

import hmac
from typing import Literal

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


def write_cursor(key: bytes, which: List, organization: int, row: bytes) -> str:
    """Return the cursor of the page that follows this row: opaque text, authenticated for this list and organization.
    `key` comes from `cursors_key`.
    """
    return seal(key, row, _MAC_LENGTH, _context(which, organization))


def read_cursor(key: bytes, which: List, organization: int, text: str) -> bytes | None:
    """Return the row that a cursor names, or `None` for text that was not made by `write_cursor` for this list and
    organization.
    """
    return unseal(key, text, _MAC_LENGTH, _context(which, organization))


def _context(which: List, organization: int) -> bytes:
    return which.encode() + b"\0" + organization.to_bytes(4)
