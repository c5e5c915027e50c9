"""What each type of event says in its `data` (decisions 8.10); `identification.completed` says the event row."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from svc.domain.billing import BillingStatus, BlockedReason
from svc.domain.event_row import EventBody, event_row
from svc.domain.model import Environment
from svc.domain.records import Event


class Suspect(EventBody, frozen=True, kw_only=True):
    """`visitor.suspect`: the event row of interface 2.3, and the threshold that the score has reached."""

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
    """As it was sent, where the request was refused for it."""
    ip_address: str | UnsetType = UNSET
    """Of the visitor; of the sender where the key itself was refused."""
    reason: str | UnsetType = UNSET
    """Why the key was refused; the caller of a production or staging key does not see it."""
    count: int


class BillingStatusChanged(msgspec.Struct, frozen=True, kw_only=True):
    """The `data` of `billing.status_changed` (interface 6)."""

    previous_status: BillingStatus
    current_status: BillingStatus
    accepting_traffic: bool
    blocked_reason: BlockedReason | None


class DailySettled(msgspec.Struct, frozen=True, kw_only=True):
    """The `data` of `usage.daily_settled`: one UTC day of production traffic (decisions 8.10)."""

    date: str
    identifications: int
    identifiable: int
    unidentifiable: int
    free: int
    amount_micros: int
    balance_micros: int


class EndpointTest(msgspec.Struct, frozen=True):
    """The `data` of `webhook.test` (decisions 8.10)."""

    endpoint_id: str
    message: Literal["This is a test delivery."] = "This is a test delivery."


def suspect(event: Event, request_id: UUID, threshold: int) -> Suspect:
    """The `data` of `visitor.suspect` for a stored event that reached this threshold (decisions 8.10)."""
    return Suspect(**msgspec.structs.asdict(event_row(event, request_id)), suspect_threshold=threshold)
