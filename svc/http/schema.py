"""Request and response bodies as structs: what the interface's tables say, as types.

Unknown fields are refused in requests. A field that may be left out is `UNSET`, which is not `null`. Responses leave
out what does not apply.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.domain.model import Level, State
from svc.domain.records import Event
from svc.domain.refusals import Refusal

Name64 = Annotated[str, Meta(min_length=1, max_length=64)]
Tag = Annotated[str, Meta(max_length=1024)]


class Sdk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The collecting SDK (interface 2.1)."""

    platform: Name64 | UnsetType = UNSET
    version: Name64 | UnsetType = UNSET


class IdentifyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Interface 2.1. `signals` stays as it was sent, so that it can be archived byte for byte."""

    sdk: Sdk
    signals: msgspec.Raw
    tag: Tag | UnsetType = UNSET


class TriggerBody(msgspec.Struct, frozen=True):
    signal: str
    group: str
    weight: int
    confidence: Level


class IdentifyAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Interface 2.2. A duplicate is `request_id` and `duplicate` alone."""

    request_id: str
    deferred_token: str | UnsetType = UNSET
    duplicate: Literal[True] | UnsetType = UNSET
    visitor_id: str | UnsetType = UNSET
    visitor_is_new: bool | UnsetType = UNSET
    identifiable: bool | UnsetType = UNSET
    visitor_confidence: int | UnsetType = UNSET
    state: State | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    suspect_score: int | UnsetType = UNSET
    suspect_level: Level | UnsetType = UNSET
    triggers: tuple[TriggerBody, ...] | UnsetType = UNSET


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
        origin=_present(event.origin),
        tag=_present(event.tag),
        ip_address=event.ip_address,
        country_code=_present(event.country_code),
        country_name=_present(event.country_name),
        asn=_present(event.asn),
        asn_name=_present(event.asn_name),
        anonymity_network=_present(event.anonymity_network),
        agent=_present(event.agent),
        agent_version=_present(event.agent_version),
        os=_present(event.os),
        device_kind=_present(event.device_kind),
        visitor_kind=event.visitor_kind,
        suspect_score=event.suspect_score,
        suspect_level=UNSET if event.suspect_level is None else event.suspect_level,
        triggers=tuple(EventTriggerBody(group.signal, group.weight, group.confidence) for group in event.triggers),
        has_document=True,
    )


class HealthBody(msgspec.Struct, frozen=True):
    status: Literal["ok"]
    version: str


class ReadinessChecks(msgspec.Struct, frozen=True):
    store: Literal["ok", "full"]
    webhooks: Literal["off"]
    """This version delivers none."""
    network_data: Literal["ok", "missing", "stale"]


class ReadinessBody(msgspec.Struct, frozen=True):
    """Decisions 9.1. `network_data` never fails readiness."""

    status: Literal["ready", "unavailable"]
    checks: ReadinessChecks


class DetailBody(msgspec.Struct, frozen=True):
    field: str
    issue: str
    location: str


class Fault(msgspec.Struct, frozen=True):
    code: str
    message: str
    status: int
    details: tuple[DetailBody, ...] | UnsetType = UNSET


class ErrorBody(msgspec.Struct, frozen=True):
    """Interface 2.12."""

    error: Fault
    request_id: str


def error_body(refusal: Refusal, request_id: str) -> ErrorBody:
    details = tuple(DetailBody(detail.field, detail.issue, detail.location) for detail in refusal.details)
    return ErrorBody(Fault(refusal.code, refusal.message, refusal.status, details or UNSET), request_id)


def timestamp(at_ms: int) -> str:
    """RFC 3339 UTC with milliseconds and `Z` (decisions 1.2)."""
    seconds, milliseconds = divmod(at_ms, 1000)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds:03}Z"


def _present(value: str | None) -> str | UnsetType:
    return UNSET if value is None else value
