"""The states of endpoints and deliveries as tables, and what an attempt says of an endpoint (decisions 8.4).

An endpoint that fails is never disabled: it keeps receiving, loses nothing, and recovers by its first 2xx.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from svc.domain.webhooks.records import AttemptStatus, DeliveryKind, DeliveryState, EndpointStatus, Health
from svc.domain.webhooks.schedule import GONE, AttemptResult, AttemptVerdict

EndpointTrigger = Literal["paused", "resumed", "url_changed", "delivered", "broken"]

_SENT_TO: dict[EndpointTrigger, EndpointStatus] = {
    "paused": "paused",
    "resumed": "active",
    "url_changed": "active",
    "delivered": "active",
    "broken": "failing",
}

ENDPOINT_TRANSITIONS: dict[EndpointStatus, dict[EndpointTrigger, EndpointStatus]] = {
    "active": _SENT_TO,
    "failing": _SENT_TO,
    "paused": {**dict.fromkeys(get_args(EndpointTrigger), "paused"), "resumed": "active"},
}
"""status -> what happened -> the status then. What is in flight when an endpoint is paused changes nothing."""

DELIVERY_TRANSITIONS: dict[DeliveryState, dict[AttemptStatus, DeliveryState]] = {
    "pending": {"delivered": "delivered", "retrying": "retrying", "failed": "failed"},
    "retrying": {"delivered": "delivered", "retrying": "retrying", "failed": "failed"},
    "delivered": {},
    "failed": {},
}
"""state -> an attempt's status -> the state then. What has ended stays as it is."""

FAILURES_TO_FAIL = 5
FAILING_AFTER_MS = 600_000


def after_attempt(
    health: Health, result: AttemptResult, verdict: AttemptVerdict, kind: DeliveryKind
) -> tuple[Health, EndpointTrigger | None]:
    """The endpoint's health after an attempt, and what that means for its status.

    `broken`: five failed attempts in a row over at least ten minutes, a delivery that ended `failed`, or a 410. Of
    tests and redeliveries only a success counts. An attempt that was ended by a pause or a removal says nothing of the
    receiver.
    """
    if result.error in ("paused", "removed"):
        return health, None
    if verdict.status == "delivered":
        return Health(last_attempt_at_ms=result.started_ms), "delivered"
    if kind != "auto":
        return msgspec.structs.replace(health, last_attempt_at_ms=result.started_ms), None
    since_ms = result.started_ms if health.failing_since_ms is None else health.failing_since_ms
    failed = msgspec.structs.replace(
        health,
        failures=health.failures + 1,
        failing_since_ms=min(since_ms, result.started_ms),
        last_attempt_at_ms=result.started_ms,
    )
    lasting = failed.failures >= FAILURES_TO_FAIL and result.started_ms - since_ms >= FAILING_AFTER_MS
    broken = lasting or verdict.status == "failed" or result.response_code == GONE
    return failed, "broken" if broken else None
