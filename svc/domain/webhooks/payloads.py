"""What each type of event says in its `data` (decisions 8.10)."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from svc.domain.billing import BillingStatus, BlockedReason
from svc.domain.model import Environment, Level
from svc.domain.records import Event
from svc.domain.webhooks.envelope import timestamp


class TriggerRow(msgspec.Struct, frozen=True):
    """A signal group that fired."""

    signal: str
    weight: int
    confidence: Level


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """`identification.completed`: the event row of interface 2.3, and what identify answered of the visitor."""

    request_id: str
    visitor_id: str
    occurred_at: str
    state: str
    environment: Environment
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
    triggers: tuple[TriggerRow, ...]
    has_document: bool = True
    visitor_is_new: bool
    identifiable: bool
    visitor_confidence: int


class Suspect(Completed, frozen=True, kw_only=True):
    """`visitor.suspect`: the same, and the threshold that the score has reached."""

    suspect_threshold: int


class RefusedIdentification(msgspec.Struct, frozen=True, kw_only=True):
    """`identification.refused`: the first refusal of its kind, or how many there were since the event before."""

    request_id: str
    """Of the latest one, as are the fields below."""
    occurred_at: str
    code: str
    status: int
    environment: Environment
    key_id: str
    origin: str | UnsetType = UNSET
    ip_address: str | UnsetType = UNSET
    count: int


class BillingStatusChanged(msgspec.Struct, frozen=True, kw_only=True):
    """`billing.status_changed` (interface 6)."""

    previous_status: BillingStatus
    current_status: BillingStatus
    accepting_traffic: bool
    blocked_reason: BlockedReason | None


class DailySettled(msgspec.Struct, frozen=True, kw_only=True):
    """`usage.daily_settled`: one UTC day of production traffic."""

    date: str
    identifications: int
    identifiable: int
    unidentifiable: int
    free: int
    amount_micros: int
    balance_micros: int


class EndpointTest(msgspec.Struct, frozen=True):
    """`webhook.test`."""

    endpoint_id: str
    message: Literal["This is a test delivery."] = "This is a test delivery."


_AS_STORED = tuple(name for name in Completed.__struct_fields__ if name in Event.__struct_fields__)
_NULLABLE = frozenset({"suspect_score"})
"""Said as `null`, where all else that does not apply is left out (interface 2)."""


def completed(event: Event, request_id: UUID) -> Completed:
    """What `identification.completed` says of a stored event."""
    return Completed(**_row(event, request_id))


def suspect(event: Event, request_id: UUID, threshold: int) -> Suspect:
    """What `visitor.suspect` says of a stored event that reached this threshold."""
    return Suspect(**_row(event, request_id), suspect_threshold=threshold)


def _row(event: Event, request_id: UUID) -> dict[str, Any]:
    fields: dict[str, Any] = {name: getattr(event, name) for name in _AS_STORED}
    row = {name: UNSET if value is None and name not in _NULLABLE else value for name, value in fields.items()}
    row["request_id"] = str(request_id)
    row["occurred_at"] = timestamp(event.occurred_at_ms)
    row["triggers"] = tuple(TriggerRow(group.signal, group.weight, group.confidence) for group in event.triggers)
    return row
