"""The envelope of an event, and the event's id (interface 6, version 1).

An event's id is not drawn but derived, so that the same fact has the same event: a transaction that is made again makes
no second one, and the erasure of an identification finds its events without an index.
"""

from __future__ import annotations

import hashlib
from typing import Any
from uuid import UUID

import msgspec

from svc.domain.timestamps import timestamp
from svc.domain.webhooks.records import EventType, WebhookEnvironment, WebhookEvent

VERSION = 1

_encoder = msgspec.json.Encoder()


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a webhook (interface 6)."""

    id: str
    type: EventType
    version: int = VERSION
    organization_id: str
    environment: WebhookEnvironment
    created_at: str
    """When the fact happened."""
    data: Any


def seal(
    event_id: UUID,
    event_type: EventType,
    environment: WebhookEnvironment,
    organization_id: str,
    data: Any,
    at_ms: int,
) -> WebhookEvent:
    """An event with its envelope in the bytes that are signed and sent (interface 6). `data` is a struct or a dict,
    `at_ms` when the fact happened.
    """
    envelope = Envelope(
        id=str(event_id),
        type=event_type,
        organization_id=organization_id,
        environment=environment,
        created_at=timestamp(at_ms),
        data=data,
    )
    return WebhookEvent(event_type, environment, at_ms, _encoder.encode(envelope))


def derived_event_id(event_type: EventType, subject: bytes, at_ms: int) -> UUID:
    """A UUIDv7 (RFC 9562) of this time whose other 74 bits are a digest of the type and of the fact's own name."""
    noise = int.from_bytes(hashlib.blake2b(event_type.encode() + b"\n" + subject, digest_size=10).digest())
    return UUID(
        int=(at_ms & 0xFFFF_FFFF_FFFF) << 80
        | 0x7 << 76
        | (noise >> 62 & 0xFFF) << 64
        | 0b10 << 62
        | noise & 0x3FFF_FFFF_FFFF_FFFF
    )


def identification_event_id(event_type: EventType, request_id: UUID) -> UUID:
    """The id of the event of this type that an identification gives rise to; it carries the time of the request id."""
    return derived_event_id(event_type, request_id.bytes, request_id.int >> 80)
