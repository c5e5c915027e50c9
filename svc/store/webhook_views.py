"""Read queries of the outbox: endpoints, what is due, and what an attempt needs. They change nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple

from svc.domain.webhooks.lanes import CROWD, is_failing
from svc.domain.webhooks.records import (
    DELIVERY_KINDS,
    WEBHOOK_ENVIRONMENTS,
    Attempt,
    AttemptCount,
    Delivery,
    DeliveryKey,
    Endpoint,
    EventType,
    Health,
    LaneKey,
    WebhookEnvironment,
    WebhookEvent,
)
from svc.store.snapshot import Snapshot
from svc.store.tables import (
    ATTEMPT_COUNTS,
    ATTEMPTS,
    ATTEMPTS_BY_ENVIRONMENT,
    DELIVERIES,
    DUE,
    ENDPOINT_HEALTH,
    ENDPOINTS,
    MANUAL,
    REMOVED_ENDPOINTS,
    WEBHOOK_EVENTS,
)

MINUTES_PER_DAY = 24 * 60


class Registered(NamedTuple):
    """An endpoint and its number in the store."""

    lane: LaneKey
    endpoint: Endpoint


class Claim(NamedTuple):
    """A delivery whose turn it is, with all that an attempt needs."""

    lane: LaneKey
    key: DeliveryKey
    delivery: Delivery
    endpoint: Endpoint
    event: WebhookEvent
    failing: bool
    crowded: bool
    """The endpoint fails, and more deliveries are due than it should be tried with."""


class Failed(NamedTuple):
    """What one piece of the log says of deliveries that ended `failed`."""

    event_ids: list[bytes]
    """In the order of the attempts that were their last."""
    resume: bytes | None
    """The attempt id at which the next piece begins; `None` = that was the end of the log."""


class Nothing(NamedTuple):
    """Nothing to send in this lane now."""

    due_ms: int | None
    """When there will be; `None` = not before somebody says so."""


def endpoints_of(snapshot: Snapshot, number: int) -> list[Registered]:
    """All endpoints of an organization, oldest first: at most ten."""
    return [Registered(LaneKey(number, endpoint), found) for (_, endpoint), found in snapshot.scan(ENDPOINTS, number)]


def endpoint_anywhere(snapshot: Snapshot, endpoint_id: str) -> Registered | None:
    """An endpoint of any organization by its id: for the operator. Reads every endpoint there is."""
    rows = snapshot.scan(ENDPOINTS)
    return next((Registered(LaneKey(*key), found) for key, found in rows if found.id == endpoint_id), None)


def find_endpoint(snapshot: Snapshot, number: int, endpoint_id: str) -> Registered | None:
    """An endpoint of the organization by its id, which may be any text."""
    return next((found for found in endpoints_of(snapshot, number) if found.endpoint.id == endpoint_id), None)


def subscribers(
    snapshot: Snapshot, number: int, environment: WebhookEnvironment, event_type: EventType
) -> list[Registered]:
    """The endpoints to which an event goes: subscribed, of its environment, and not paused (decisions 8.4)."""
    return [found for found in endpoints_of(snapshot, number) if subscribes(found.endpoint, environment, event_type)]


def subscribes(endpoint: Endpoint, environment: WebhookEnvironment, event_type: EventType) -> bool:
    return endpoint.environment == environment and endpoint.status != "paused" and event_type in endpoint.events


def health(snapshot: Snapshot, lane: LaneKey) -> Health:
    return snapshot.get(ENDPOINT_HEALTH, *lane) or Health()


def attempts_in_a_day(snapshot: Snapshot, lane: LaneKey, now_ms: int) -> AttemptCount:
    """What `delivered_24h` and `failed_24h` show: the sum of at most 1,441 rows."""
    start = (*lane, now_ms // 60_000 - MINUTES_PER_DAY)
    counts = [count for _, count in snapshot.scan(ATTEMPT_COUNTS, *lane, start=start)]
    return AttemptCount(sum(count.delivered for count in counts), sum(count.failed for count in counts))


def lanes_with_work(snapshot: Snapshot, after: LaneKey, limit: int) -> list[tuple[LaneKey, int]]:
    """(lane, when its first delivery is due) of the next lanes that have any: one seek each, however long they are."""
    found: list[tuple[LaneKey, int]] = []
    start = (after.organization, after.endpoint + 1)
    while len(found) < limit:
        row = next(snapshot.scan(DUE, start=start), None)
        if row is None:
            break
        (organization, endpoint, due_ms, *_), _ = row
        found.append((LaneKey(organization, endpoint), due_ms))
        start = (organization, endpoint + 1)
    return found


def has_removed(snapshot: Snapshot) -> bool:
    """Whether a removed endpoint has left rows behind."""
    return next(snapshot.scan(REMOVED_ENDPOINTS), None) is not None


def is_answering(snapshot: Snapshot, lane: LaneKey) -> bool:
    """Whether there is an endpoint that takes what is sent, as far as is known: neither paused nor failing."""
    endpoint = snapshot.get(ENDPOINTS, *lane)
    return endpoint is not None and endpoint.status != "paused" and not is_failing(endpoint, health(snapshot, lane))


def next_delivery(
    snapshot: Snapshot, lane: LaneKey, now_ms: int, in_flight: Collection[DeliveryKey], *, crowded: bool = False
) -> Claim | Nothing:
    """The delivery of this lane that is to be sent next: a test or redelivery before the longest due.

    Of a paused endpoint only a test or redelivery is handed out, so that it can be ended. `crowded`: that a crowd waits
    is known already, so that it is not counted again.
    """
    endpoint = snapshot.get(ENDPOINTS, *lane)
    if endpoint is None:
        return Nothing(None)
    manual = manual_delivery(snapshot, lane)
    if manual is not None and manual not in in_flight:
        return _claim(snapshot, lane, manual, endpoint)
    if endpoint.status == "paused":
        return Nothing(None)
    for due_ms, key in due_deliveries(snapshot, lane):
        if key in in_flight:
            continue
        if due_ms > now_ms:
            return Nothing(due_ms)
        claim = _claim(snapshot, lane, key, endpoint)
        return claim._replace(crowded=claim.failing and (crowded or _is_crowded(snapshot, lane, now_ms)))
    return Nothing(None)


def due_deliveries(snapshot: Snapshot, lane: LaneKey) -> Iterator[tuple[int, DeliveryKey]]:
    """(when it is due, which delivery), the first due first."""
    for (_, _, due_ms, event_id, place), _ in snapshot.scan(DUE, *lane):
        yield due_ms, DeliveryKey(event_id, DELIVERY_KINDS[place])


def manual_delivery(snapshot: Snapshot, lane: LaneKey) -> DeliveryKey | None:
    """The test or redelivery that is queued."""
    return snapshot.get(MANUAL, *lane)


def attempts_page(
    snapshot: Snapshot, number: int, environment: WebhookEnvironment | None, *, since: bytes, before: bytes, limit: int
) -> list[tuple[bytes, Attempt]]:
    """(attempt id, attempt), newest first, of ids from `since` and below `before`; of all environments if `None`."""
    if environment is None:
        keys = snapshot.keys_down(ATTEMPTS, (number, since), (number, before))
    else:
        place = WEBHOOK_ENVIRONMENTS.index(environment)
        keys = snapshot.keys_down(ATTEMPTS_BY_ENVIRONMENT, (number, place, since), (number, place, before))
    ids = (attempt_id for *_, attempt_id in islice(keys, limit))
    rows = ((attempt_id, snapshot.get(ATTEMPTS, number, attempt_id)) for attempt_id in ids)
    return [(attempt_id, attempt) for attempt_id, attempt in rows if attempt is not None]


def failed_in(snapshot: Snapshot, lane: LaneKey, window: range, start: bytes, limit: int) -> Failed:
    """The events of which the last attempt failed in this window (Unix ms), as up to `limit` rows of the log say.

    The log is the organization's, in the order of attempt ids. Those run ahead of the time of the attempt where the
    clock was set back, and never behind: the first id of the window is the `start`, the end of the log its end.
    """
    rows = list(islice(snapshot.scan(ATTEMPTS, lane.organization, start=(lane.organization, start)), limit + 1))
    found = [
        attempt.event_id
        for _, attempt in rows[:limit]
        if attempt.endpoint == lane.endpoint and attempt.status == "failed" and attempt.occurred_at_ms in window
    ]
    following = [attempt_id for (_, attempt_id), _ in rows[limit:]]
    return Failed(found, following[0] if following else None)


def _claim(snapshot: Snapshot, lane: LaneKey, key: DeliveryKey, endpoint: Endpoint) -> Claim:
    delivery = snapshot.get(DELIVERIES, *lane, key.event_id, key.place)
    event = snapshot.get(WEBHOOK_EVENTS, lane.organization, key.event_id)
    assert delivery is not None and event is not None, "a due row without its delivery or its event"  # noqa: PT018
    failing = is_failing(endpoint, health(snapshot, lane))
    return Claim(lane, key, delivery, endpoint, event, failing, crowded=False)


def _is_crowded(snapshot: Snapshot, lane: LaneKey, now_ms: int) -> bool:
    last = next(islice(due_deliveries(snapshot, lane), CROWD, None), None)
    return last is not None and last[0] <= now_ms
