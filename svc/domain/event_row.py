"""What an identification came to, as everybody outside reads it: the answer of identify, an event of the server API and
of `svc replay`, and the body of a webhook.

What may live here: the step from the stored record to the words of interface 2.2 and 2.3, so that it is taken once. A
field of the verdict is added to `records.Event`, to `VerdictBody` and to `verdict`, and is then in all of them.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from svc.domain.model import Level, State
from svc.domain.records import Event
from svc.domain.timestamps import timestamp


class TriggerBody(msgspec.Struct, frozen=True):
    """A signal that fired."""

    signal: str
    group: str
    weight: int
    confidence: Level


class EventTriggerBody(msgspec.Struct, frozen=True):
    """A group of signals, of which at least one fired."""

    signal: str
    weight: int
    confidence: Level


class VerdictBody(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that the answer of identify (interface 2.2) and an event (2.3, decisions 7.1) have in common."""

    request_id: str
    visitor_id: str
    visitor_is_new: bool
    identifiable: bool
    visitor_confidence: int
    state: State
    reason: str | UnsetType = UNSET
    suspect_level: Level | UnsetType = UNSET


class EventBody(VerdictBody, frozen=True, kw_only=True):
    """Interface 2.3 and decisions 7.1: a stored identification, `document` left to the single read."""

    occurred_at: str
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
    triggers: tuple[EventTriggerBody, ...]
    signals: tuple[TriggerBody, ...] | UnsetType = UNSET
    has_document: bool


def verdict(event: Event, request_id: UUID) -> dict[str, Any]:
    """The fields of `VerdictBody`, for the bodies that extend it."""
    return {
        "request_id": str(request_id),
        "visitor_id": event.visitor_id,
        "visitor_is_new": event.visitor_is_new,
        "identifiable": event.identifiable,
        "visitor_confidence": event.visitor_confidence,
        "state": event.state,
        "reason": present(event.reason),
        "suspect_level": present(event.suspect_level),
    }


def event_row(event: Event, request_id: UUID) -> EventBody:
    """A stored event as a row of the interface. What 0.1.0 did not store is left out."""
    return EventBody(
        **verdict(event, request_id),
        occurred_at=timestamp(event.occurred_at_ms),
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
        triggers=tuple(EventTriggerBody(group.signal, group.weight, group.confidence) for group in event.triggers),
        signals=UNSET if event.signals is None else signal_rows(event),
        has_document=event.has_document,
    )


def signal_rows(event: Event) -> tuple[TriggerBody, ...]:
    """The signals that fired, heaviest first; empty also where they are not known."""
    return tuple(
        TriggerBody(fired.signal, fired.group, fired.weight, fired.confidence) for fired in event.signals or ()
    )


def present(value: Any) -> Any:
    """What does not apply is left out of a body, not `null` (interface 2)."""
    return UNSET if value is None else value
