"""The check of a delivery's signature on the receiver's side.

It is written as docs/webhooks.md describes it for receivers, on purpose apart from the code that signs: each tests the
other.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Literal

TOLERANCE_S = 300
"""Between a delivery's timestamp and the receiver's clock (decisions 8.1)."""

SignatureVerdict = Literal["valid", "not signed", "wrong signature", "too old or too new"]


def verify_delivery(
    secrets: Sequence[str], signature: str | None, at: str | None, body: bytes, now_s: int
) -> SignatureVerdict:
    """Whether a delivery is authentic: signed with one of the secrets, and its timestamp within five minutes of `now_s`
    (decisions 8.1). `signature` and `at` are the headers, `None` where they are missing.
    """
    if signature is None or at is None or not is_count(at):
        return "not signed"
    signed = at.encode() + b"." + body
    given = [part.strip().encode(errors="replace") for part in signature.split(",")]
    expected = [b"sha256=" + hmac.digest(secret.encode(), signed, "sha256").hex().encode() for secret in secrets]
    if not any(hmac.compare_digest(one, other) for one in given for other in expected):
        return "wrong signature"
    return "valid" if abs(now_s - int(at)) <= TOLERANCE_S else "too old or too new"


def is_count(text: str) -> bool:
    """Whether a header is a number of at most twelve ASCII digits."""
    return text.isascii() and text.isdecimal() and len(text) <= 12
