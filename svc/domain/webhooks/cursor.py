"""Where the next page of the log of attempts begins: opaque to customers, and made by this service (decisions 8.6).

A cursor names the attempt that the page before ended with, so that attempts that are logged meanwhile move nothing:
the id, with an HMAC over it and the organization, base64url (24 bytes: no padding).
"""

from __future__ import annotations

import base64
import binascii
import hmac

_ID_LENGTH = 16
_MAC_LENGTH = 8
"""Bytes. What a forged cursor shows is another page of the same organization."""


def cursors_key(pepper: bytes) -> bytes:
    """The key of all cursors of one installation, derived from its pepper."""
    return hmac.digest(pepper, b"svc webhook delivery cursor 1", "sha256")


def write_cursor(key: bytes, organization: int, attempt_id: bytes) -> str:
    """The cursor of the page that follows this attempt. `key` comes from `cursors_key`."""
    return base64.urlsafe_b64encode(attempt_id + _mac(key, organization, attempt_id)).decode()


def read_cursor(key: bytes, organization: int, text: str) -> bytes | None:
    """The attempt id, or `None` for what was not made here for this organization."""
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    attempt_id, mac = raw[:_ID_LENGTH], raw[_ID_LENGTH:]
    return attempt_id if hmac.compare_digest(mac, _mac(key, organization, attempt_id)) else None


def _mac(key: bytes, organization: int, attempt_id: bytes) -> bytes:
    return hmac.digest(key, organization.to_bytes(4) + attempt_id, "sha256")[:_MAC_LENGTH]
