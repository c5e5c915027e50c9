"""Signatures of webhooks: their secrets, and what one attempt sends (interface 6, decisions 8.1).

Secrets are derived and never stored: a secret is an HMAC of the installation's pepper, the endpoint's id and a
generation. A leaked database reveals none, and rotating is the next generation. A secret is shown once, when it comes
into force.
"""

from __future__ import annotations

import base64
import hmac
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from svc.features.webhooks.content.chat_forms import chat_body
from svc.features.webhooks.records import Endpoint, WebhookEvent
from svc.kernel.values.encodings import base62

PREFIX = "svc_whsec_"
STANDARD_PREFIX = "whsec_"
USER_AGENT = "Svc-Webhooks/1.0"
UNSIGNED = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
"""Headers of a message for a chat."""

_LENGTH = 43
"""Base62 characters of 256 bits."""


def secrets_key(pepper: bytes) -> bytes:
    """Return the key from which all signing secrets of one installation are derived. 32 bytes."""
    return hmac.digest(pepper, b"svc webhook secrets 1", "sha256")


@lru_cache(maxsize=1024)
def signing_secret(key: bytes, endpoint_id: str, generation: int) -> str:
    """Return the secret of one generation of an endpoint: `svc_whsec_` and 43 base62 characters (decisions 8.1). `key`
    comes from `secrets_key`; equal arguments give the same secret.
    """
    digest = hmac.digest(key, f"{endpoint_id}\n{generation}".encode(), "sha256")
    return PREFIX + base62(int.from_bytes(digest), _LENGTH)


def standard_secret(secret: str) -> str:
    """Return the same key in the form that libraries of Standard Webhooks take: `whsec_` and the base64 of its bytes
    (decisions 8.1).
    """
    return STANDARD_PREFIX + base64.b64encode(secret.encode()).decode()


def secrets_in_force(key: bytes, endpoint: Endpoint, now_ms: int) -> tuple[str, ...]:
    """Return the secrets that sign at `now_ms`, the newest first: one, or two while a rotation lasts (decisions 8.1).
    `key`: see `secrets_key`.
    """
    current = signing_secret(key, endpoint.id, endpoint.generation)
    until = endpoint.previous_secret_expires_at_ms
    if until is None or now_ms >= until:
        return (current,)
    return current, signing_secret(key, endpoint.id, endpoint.generation - 1)


def signed_headers(event_id: UUID, event: WebhookEvent, secrets: tuple[str, ...], now_s: int) -> dict[str, str]:
    """Return the headers of one attempt, signed for the second `now_s` (Unix time). Besides the service's own they
    include those of Standard Webhooks (standardwebhooks.com, 1.0), so that its libraries, given `standard_secret`,
    verify deliveries too.
    """
    at = str(now_s)
    keys = [secret.encode() for secret in secrets]
    own = [hmac.digest(key, at.encode() + b"." + event.body, "sha256").hex() for key in keys]
    signed = f"{event_id}.{at}.".encode() + event.body
    standard = [base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys]
    return {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "X-Svc-Event-ID": str(event_id),
        "X-Svc-Event-Type": event.type,
        "X-Svc-Timestamp": at,
        "X-Svc-Signature": ",".join(f"sha256={digest}" for digest in own),
        "webhook-id": str(event_id),
        "webhook-timestamp": at,
        "webhook-signature": " ".join(f"v1,{digest}" for digest in standard),
    }


class AttemptRequest(NamedTuple):
    """Body and headers of one POST."""

    body: bytes
    headers: dict[str, str]


def attempt_request(
    endpoint: Endpoint, event_id: bytes, event: WebhookEvent, secrets_key: bytes, public_url: str | None, now_ms: int
) -> AttemptRequest:
    """Return the POST request of an attempt: for a JSON endpoint the stored envelope, signed for this second; for a
    chat its message, unsigned. `event_id`: 16 bytes; `secrets_key`: see the function of that name. Both forms have the
    trace headers of the request that caused the event.
    """
    trace = {} if event.trace is None else event.trace.headers
    if endpoint.format == "json":
        secrets = secrets_in_force(secrets_key, endpoint, now_ms)
        signed = signed_headers(UUID(bytes=event_id), event, secrets, now_ms // 1000)
        return AttemptRequest(event.body, signed | trace)
    return AttemptRequest(chat_body(endpoint.format, event.body, public_url), UNSIGNED | trace)
