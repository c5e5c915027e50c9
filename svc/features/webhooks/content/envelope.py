"""The envelope of an event, the event's id, and its signatures (interface 6, version 1; decisions 8.1).

An event's id is not drawn but derived, so that the same fact has the same event: a transaction that is made again makes
no second one, and the erasure of an identification finds its events without an index.

A signing secret is an HMAC of the installation's pepper, the endpoint's id and a generation, and is never stored: a
leaked database reveals none, and rotating is the next generation.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, NamedTuple
from uuid import UUID

import msgspec

from svc.features.webhooks.content.chat import chat_body
from svc.features.webhooks.records import Endpoint, EventType, WebhookEnvironment, WebhookEvent
from svc.kernel.net.trace_context import TraceContext
from svc.kernel.values.encodings import base62
from svc.kernel.values.fields import about
from svc.kernel.values.timestamps import timestamp

VERSION = 1

_encoder = msgspec.json.Encoder()


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a webhook (interface 6)."""

    id: Annotated[
        str,
        about("Id of the event, the same at every attempt: deduplicate by it.", "019b8d2f-3c40-7f3e-8a5c-1d2f4b6a8c90"),
    ]
    type: Annotated[EventType, about("Type of the event.", "webhook.test")]
    version: Annotated[int, about("Version of the envelope.", 1)] = VERSION
    organization_id: Annotated[str, about("Id of the organization.", "org_0qppzPLvL54VURDkQrfS")]
    environment: Annotated[
        WebhookEnvironment, about("`live` for production traffic, `test` for staging and development.", "live")
    ]
    created_at: Annotated[str, about("When the fact happened, not when it is delivered.", "2026-01-05T10:00:00.000Z")]
    data: Annotated[Any, about("What happened, by type.", {})]


def seal(
    event_id: UUID,
    event_type: EventType,
    environment: WebhookEnvironment,
    organization_id: str,
    data: Any,
    at_ms: int,
    trace: TraceContext | None = None,
) -> WebhookEvent:
    """Return an event with its envelope, in the bytes that are signed and sent (interface 6). `data`: a struct or a
    dict; `at_ms`: when the fact happened, in Unix ms; `trace`: the trace context of the request that caused it.
    """
    envelope = Envelope(
        id=str(event_id),
        type=event_type,
        organization_id=organization_id,
        environment=environment,
        created_at=timestamp(at_ms),
        data=data,
    )
    return WebhookEvent(event_type, environment, at_ms, _encoder.encode(envelope), trace)


def without_account(body: bytes) -> bytes:
    """Return the envelope of an event row or a review without the account and what follows from it (decisions 11.6)."""
    envelope = msgspec.json.decode(body)
    data: dict[str, Any] = envelope["data"]
    for name in ("account_id", "account_verified"):
        data.pop(name, None)
    data.get("velocity", {}).pop("account", None)
    return _encoder.encode(envelope)


def with_note(body: bytes, change: Callable[[str], str]) -> bytes:
    """Return the envelope of a review with another note, if it has one."""
    envelope = msgspec.json.decode(body)
    data: dict[str, Any] = envelope["data"]
    if "note" in data:
        data["note"] = change(data["note"])
    return _encoder.encode(envelope)


def derived_event_id(event_type: EventType, subject: bytes, at_ms: int) -> UUID:
    """Return a UUIDv7 (RFC 9562) of this time whose other 74 bits are a digest of the event type and of `subject`,
    which names the fact.
    """
    noise = int.from_bytes(hashlib.blake2b(event_type.encode() + b"\n" + subject, digest_size=10).digest())
    return UUID(
        int=(at_ms & 0xFFFF_FFFF_FFFF) << 80
        | 0x7 << 76
        | (noise >> 62 & 0xFFF) << 64
        | 0b10 << 62
        | noise & 0x3FFF_FFFF_FFFF_FFFF
    )


def identification_event_id(event_type: EventType, request_id: UUID) -> UUID:
    """Return the id of the event of this type that an identification causes; it has the time of the request id."""
    return derived_event_id(event_type, request_id.bytes, request_id.int >> 80)


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
    """Return the same key in the form of Standard Webhooks: `whsec_` and the base64 of its bytes (decisions 8.1)."""
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
