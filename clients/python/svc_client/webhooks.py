"""Webhooks: the check of a delivery, and what it holds."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from svc_client.errors import WebhookError
from svc_client.json_text import parsed, whole

TOLERANCE_S = 300
MAX_DIGITS = 12
"""Of a timestamp: Python raises `ValueError` for a number of thousands of them."""
VERSION = 1


class WebhookEvent(TypedDict):
    """What a delivery says."""

    id: str
    """The same on every attempt: skip those that you know."""
    type: str
    """Such as `identification.completed`."""
    version: int
    organization_id: str
    environment: str
    """`live` or `test`."""
    created_at: str
    """When the fact happened, RFC 3339 in UTC."""
    data: dict[str, Any]
    """Of `identification.completed` and `visitor.suspect`, an event as `list_events` has it."""


def verify_webhook(
    body: bytes, headers: Mapping[str, str | None], secrets: str | Sequence[str], *, now: float | None = None
) -> WebhookEvent:
    """The event of an authentic delivery; raises `WebhookError` for any other.

    `body` is the exact bytes that arrived, `headers` those of the request in any case of letters. `secrets` is the
    endpoint's signing secret, or several while you rotate. `now` is the Unix time in seconds.
    """
    known = [secrets] if isinstance(secrets, str) else list(secrets)
    sent = {name.lower(): value for name, value in headers.items()}
    timestamp, signature = sent.get("x-svc-timestamp") or "", sent.get("x-svc-signature") or ""
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= MAX_DIGITS):
        raise WebhookError("the delivery has no timestamp")
    if abs((time.time() if now is None else now) - int(timestamp)) > TOLERANCE_S:
        raise WebhookError(f"the delivery was signed more than {TOLERANCE_S} seconds from now")
    parts = [part.strip().encode(errors="replace") for part in signature.split(",")]
    expected = [_signature(secret.strip(), timestamp, body) for secret in known if secret.strip()]
    if not any(hmac.compare_digest(one, part) for one in expected for part in parts):
        raise WebhookError("the signature is by none of the secrets")
    try:
        event = parsed(body)
    except ValueError as error:
        raise WebhookError("the body is not an event") from error
    if not _has_form(event):
        raise WebhookError(f"the body is not an event of version {VERSION}")
    return cast("WebhookEvent", event)


def _has_form(event: object) -> bool:
    if not isinstance(event, dict):
        return False
    fields = cast("dict[str, Any]", event)
    texts = all(isinstance(fields.get(name), str) and fields[name] for name in ("id", "type"))
    return texts and whole(fields.get("version")) == VERSION and isinstance(fields.get("data"), dict)


def _signature(secret: str, timestamp: str, body: bytes) -> bytes:
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"sha256={digest}".encode()
