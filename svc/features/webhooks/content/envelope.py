"""The envelope of an event, and the event's id (interface 6, version 1).

An event's id is not drawn but derived, so that the same fact has the same event: a transaction that is made again makes
no second one, and the erasure of an identification finds its events without an index.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any
from uuid import UUID

import msgspec

from svc.features.webhooks.records import EventType, WebhookEnvironment, WebhookEvent
from svc.kernel.net.trace_context import TraceContext
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
    """Return the envelope of an event row or a review without the account and the values that it determines (decisions
    11.6).
    """
    envelope = msgspec.json.decode(body)
    data: dict[str, Any] = envelope["data"]
    for name in ("account_id", "account_verified"):
        data.pop(name, None)
    data.get("velocity", {}).pop("account", None)
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
