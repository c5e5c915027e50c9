"""When a delivery is tried again, and when it ends (decisions 8.2, 8.3); what an attempt says of its endpoint
(decisions 8.4).

Nine attempts in about seven hours. The jitter is not drawn but follows from the delivery itself, so that a run can be
repeated, and deliveries that failed together do not come back together.

The states of endpoints and deliveries are tables. An endpoint that fails is never disabled: it keeps receiving, loses
nothing, and recovers by its first 2xx.
"""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple, get_args

import msgspec

from svc.features.webhooks.records import (
    AttemptError,
    AttemptStatus,
    DeliveryKey,
    DeliveryKind,
    DeliveryState,
    EndpointStatus,
    Health,
)
from svc.kernel.values.partitions import EndpointKey

STEPS_MS = tuple(1000 * seconds for seconds in (5, 30, 120, 600, 1800, 3600, 7200, 11700))
"""From one scheduled time to the next."""
MAX_ATTEMPTS = len(STEPS_MS) + 1
JITTER = 0.1
GONE = 410
LONGEST_WAIT_MS = round(2 * (1 + JITTER) * STEPS_MS[-1])
"""No delivery waits for longer than this: the last step, doubled by a `Retry-After`."""
_HEEDED = frozenset({429, 503})
"""Statuses of responses whose `Retry-After` counts."""


class AttemptResult(NamedTuple):
    """The outcome of one attempt, when it was scheduled and when it was made. Times are Unix milliseconds."""

    attempt: int
    """1, 2, ..."""
    scheduled_ms: int
    started_ms: int
    """By the wall clock."""
    duration_ms: int
    response_code: int | None
    error: AttemptError | None
    retry_after_s: int | None = None
    late_ms: int | None = None
    """How long after its scheduled time it was made, by the clock that schedules go by; `None` = by the wall clock."""


class AttemptVerdict(NamedTuple):
    """What an attempt means for its delivery: delivered, to be tried again, or failed."""

    status: AttemptStatus
    due_ms: int | None
    """When the next attempt is due; `None` when none will follow."""


def classify_result(result: AttemptResult, queue: EndpointKey, delivery: DeliveryKey) -> AttemptVerdict:
    """Return what an attempt makes of its delivery: delivered, to be tried again, or failed for good (decisions 8.2,
    8.3). Tests and redeliveries are one attempt each (decisions 8.5).
    """
    if result.error is None:
        return AttemptVerdict("delivered", None)
    last = delivery.kind != "auto" or result.attempt >= MAX_ATTEMPTS
    if last or result.response_code == GONE or result.error == "removed":
        return AttemptVerdict("failed", None)
    return AttemptVerdict("retrying", _next_ms(result, queue, delivery))


def _next_ms(result: AttemptResult, queue: EndpointKey, delivery: DeliveryKey) -> int:
    """Return when to try again, counted from the scheduled time so that slow failures do not stretch the schedule. A
    delivery that waited longer than the step, behind a pause or an outage, counts from its attempt: all of its attempts
    would otherwise be due at once.
    """
    step = jittered(STEPS_MS[result.attempt - 1], queue, delivery, result.attempt)
    late_ms = result.started_ms - result.scheduled_ms if result.late_ms is None else result.late_ms
    began_ms = result.scheduled_ms + late_ms
    due_ms = (began_ms if late_ms > step else result.scheduled_ms) + step
    if result.retry_after_s is None or result.response_code not in _HEEDED:
        return due_ms
    ended_ms = began_ms + result.duration_ms
    return max(due_ms, ended_ms + min(result.retry_after_s * 1000, 2 * step))


def latest_due_ms(attempts: int, queue: EndpointKey, delivery: DeliveryKey, now_ms: int) -> int:
    """Return the latest time at which a delivery with this number of attempts may be due, for a sender that begins now
    (decisions 17.1).
    """
    if not attempts:
        return now_ms
    return now_ms + jittered(STEPS_MS[min(attempts, len(STEPS_MS)) - 1], queue, delivery, attempts)


def jittered(step_ms: int, queue: EndpointKey, delivery: DeliveryKey, attempt: int) -> int:
    """Return the delay in milliseconds, shifted by at most 10 % to either side; equal for equal arguments.

    The mean of two even draws, which keeps the sum of the steps closer to seven hours than one draw would: both long
    steps at the same end of their range, which happens once in a few hundred deliveries, then hardly ever happens.
    """
    seed = b"%d %d %d " % (queue.organization, queue.endpoint, attempt) + delivery.event_id
    draws = hashlib.blake2b(seed, digest_size=8).digest()
    even = (int.from_bytes(draws[:4]) + int.from_bytes(draws[4:])) / 2**32 - 1
    return round(step_ms * (1 + JITTER * even))


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
    """Return the endpoint's health after an attempt, and what that means for its status.

    `broken`: five failed attempts in a row over at least ten minutes, or a delivery that ended `failed`, as by a 410.
    Of tests and redeliveries only a success counts. An attempt that was ended by a pause or a removal says nothing of
    the receiver.
    """
    if result.error in ("paused", "removed"):
        return health, None
    if verdict.status == "delivered":
        return Health(last_attempt_at_ms=result.started_ms, owed=health.owed), "delivered"
    if kind != "auto":
        return msgspec.structs.replace(health, last_attempt_at_ms=result.started_ms), None
    since_ms = result.started_ms if health.failing_since_ms is None else health.failing_since_ms
    failed = msgspec.structs.replace(
        health,
        failures=health.failures + 1,
        failing_since_ms=min(since_ms, result.started_ms),
        last_attempt_at_ms=result.started_ms,
    )
    is_outage = failed.failures >= FAILURES_TO_FAIL
    broken = verdict.status == "failed" or (is_outage and result.started_ms - since_ms >= FAILING_AFTER_MS)
    return msgspec.structs.replace(failed, owed=health.owed or is_outage or broken), "broken" if broken else None
