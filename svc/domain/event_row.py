"""An event as everybody outside sees it: a row of the server API, of `svc replay`, and the body of a webhook.

What may live here: the step from the stored record to the row of interface 2.3, so that it is said once.
"""

from __future__ import annotations

from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from svc.domain.model import Level, State
from svc.domain.records import Event
from svc.domain.timestamps import timestamp


class EventTriggerBody(msgspec.Struct, frozen=True):
    signal: str
    weight: int
    confidence: Level


class EventBody(msgspec.Struct, frozen=True, kw_only=True):
    """Interface 2.3: a stored identification, `document` left to the single read."""

    request_id: str
    visitor_id: str
    occurred_at: str
    state: State
    environment: str
    platform: str
    sdk_platform: str
    sdk_version: str
    origin: str | UnsetType = UNSET
    tag: str | UnsetType = UNSET
    ip_address: str
    country_code: str | UnsetType = UNSET
    country_name: str | UnsetType = UNSET
    asn: str | UnsetType = UNSET
    asn_name: str | UnsetType = UNSET
    anonymity_network: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    agent_version: str | UnsetType = UNSET
    os: str | UnsetType = UNSET
    device_kind: str | UnsetType = UNSET
    visitor_kind: str | UnsetType = UNSET
    suspect_score: int | None
    suspect_level: Level | UnsetType = UNSET
    triggers: tuple[EventTriggerBody, ...]
    has_document: bool


def event_row(event: Event, request_id: UUID) -> EventBody:
    """A stored event as a row of the interface."""
    return EventBody(
        request_id=str(request_id),
        visitor_id=event.visitor_id,
        occurred_at=timestamp(event.occurred_at_ms),
        state=event.state,
        environment=event.environment,
        platform=event.platform,
        sdk_platform=event.sdk_platform,
        sdk_version=event.sdk_version,
        origin=present(event.origin),
        tag=present(event.tag),
        ip_address=event.ip_address,
        country_code=present(event.country_code),
        country_name=present(event.country_name),
        asn=present(event.asn),
        asn_name=present(event.asn_name),
        anonymity_network=present(event.anonymity_network),
        agent=present(event.agent),
        agent_version=present(event.agent_version),
        os=present(event.os),
        device_kind=present(event.device_kind),
        visitor_kind=event.visitor_kind,
        suspect_score=event.suspect_score,
        suspect_level=UNSET if event.suspect_level is None else event.suspect_level,
        triggers=tuple(EventTriggerBody(group.signal, group.weight, group.confidence) for group in event.triggers),
        has_document=True,
    )


def present(value: str | None) -> str | UnsetType:
    """What does not apply is left out of a body, not `null` (interface 2)."""
    return UNSET if value is None else value
