"""Endpoints, events and attempts as transactions: what they change, and what they refuse (decisions 8)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from svc.features.webhooks.content.envelope import identification_event_id
from svc.features.webhooks.jobs.cleanup import erase_identification, sweep_removed
from svc.features.webhooks.jobs.deliveries import (
    AttemptOutcome,
    AttemptRecord,
    enqueue,
    log_attempt,
)
from svc.features.webhooks.jobs.refusals import Notified, note_refusal, notify_refusals
from svc.features.webhooks.queries import (
    ClaimedDelivery,
    NoWork,
    Registered,
    find_endpoint,
    first_removed,
    next_delivery,
)
from svc.features.webhooks.records import AttemptCount, Delivery, DeliveryKey, Health
from svc.features.webhooks.retries import AttemptResult
from svc.features.webhooks.tables import (
    ATTEMPT_COUNTS,
    ATTEMPTS,
    DELIVERIES,
    DUE,
    ENDPOINT_HEALTH,
    ENDPOINTS,
    MANUAL,
    REFUSALS,
    REMOVED_ENDPOINTS,
    WEBHOOK_EVENTS,
)
from svc.kernel.store.schema.codec import Record
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import RefusedRequest
from tests.support.outbox import EVENT, OutboxWorld, outbox_world
from tests.support.worlds import EPOCH_MS

URL = "https://receiver.example/"


def attempt(
    world: OutboxWorld,
    queue: EndpointKey,
    *,
    code: int | None = 500,
    at_ms: int = EPOCH_MS,
    key: DeliveryKey | None = None,
) -> AttemptOutcome:
    """The queue's next delivery, tried now with this answer."""
    claim = world.read(partial(next_delivery, queue=queue, now_ms=at_ms, in_flight=()))
    assert isinstance(claim, ClaimedDelivery)
    assert key in (None, claim.key)
    return ended(world, queue, claim, code=code, at_ms=at_ms)


def ended(
    world: OutboxWorld, queue: EndpointKey, claim: ClaimedDelivery, *, code: int | None, at_ms: int = EPOCH_MS
) -> AttemptOutcome:
    error = None if code == 200 else "http_status"
    result = AttemptResult(claim.delivery.attempts + 1, claim.delivery.due_ms, at_ms, 12, code, error)
    made = AttemptRecord(world.world.request_id(at_ms), queue, claim.key, claim.endpoint, claim.event, result)
    return world.do(partial(log_attempt, made=made))


def status(world: OutboxWorld, registered: Registered) -> str:
    found = world.read(partial(find_endpoint, number=registered.queue.organization, endpoint_id=registered.endpoint.id))
    assert found is not None
    return found.endpoint.status


# Enqueueing


def test_without_a_subscriber_nothing_is_written(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        assert world.enqueue(number) == ()
        assert world.bodies(number) == {}


def test_the_same_fact_twice_in_a_millisecond_is_two_events(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        world.endpoint(number, URL)
        for _ in range(3):
            world.do(lambda txn: enqueue(txn, number, EVENT, "live", {"same": True}, EPOCH_MS))
        assert len(world.bodies(number)) == 3


def test_a_rolled_back_fact_leaves_no_event(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        queue = world.endpoint(number, URL).queue

        def fails(transaction: Transaction) -> None:
            enqueue(transaction, number, EVENT, "live", {}, EPOCH_MS)
            raise RuntimeError

        with pytest.raises(RuntimeError):
            world.do(fails)
        assert world.deliveries(queue) == []


# Attempts


def test_an_attempt_at_the_old_url_does_not_affect_the_new_one(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        world.enqueue(number)
        in_flight = world.read(partial(next_delivery, queue=endpoint.queue, now_ms=EPOCH_MS, in_flight=()))
        assert isinstance(in_flight, ClaimedDelivery)
        world.change(endpoint, url="https://new.example/")
        assert ended(world, endpoint.queue, in_flight, code=410).status == "failed", "that delivery is over"
        assert status(world, endpoint) == "active"
        assert world.read(lambda snapshot: snapshot.get(ENDPOINT_HEALTH, *endpoint.queue)) == Health()


@pytest.mark.parametrize("code", [200, 500, 410])
def test_an_attempt_that_is_handed_in_again_after_its_commit_counts_once(tmp_path: Path, code: int):
    """As where the database went away during the commit, and came back too late for anybody to say so."""
    with outbox_world(tmp_path) as world:
        number = world.organization()
        queue = world.endpoint(number, URL).queue
        world.enqueue(number)
        claim = world.read(partial(next_delivery, queue=queue, now_ms=EPOCH_MS, in_flight=()))
        assert isinstance(claim, ClaimedDelivery)
        result = AttemptResult(1, EPOCH_MS, EPOCH_MS, 12, code, None if code == 200 else "http_status")
        attempt_id = world.world.request_id(EPOCH_MS)
        made = AttemptRecord(attempt_id, queue, claim.key, claim.endpoint, claim.event, result)

        def contents() -> list[object]:
            tables = (ATTEMPTS, ATTEMPT_COUNTS, DELIVERIES, DUE, ENDPOINTS, ENDPOINT_HEALTH)
            return [world.read(lambda snapshot, table=table: list(snapshot.scan(table))) for table in tables]

        first, written = world.do(partial(log_attempt, made=made)), contents()
        assert world.do(partial(log_attempt, made=made)) == first
        assert contents() == written
        assert world.violations() == []


# Tests and redeliveries


# Removal and erasure


def test_a_removed_endpoint_is_deleted_in_steps_and_its_log_stays(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint, stays = world.endpoint(number, URL), world.endpoint(number, URL)
        for _ in range(25):
            world.enqueue(number)
        attempt(world, endpoint.queue)
        world.queue_test(endpoint)
        world.remove(endpoint)
        assert world.read(partial(next_delivery, queue=endpoint.queue, now_ms=EPOCH_MS, in_flight=())) == NoWork(None)
        steps = 0
        while (removed := world.read(first_removed)) is not None:
            world.do(partial(sweep_removed, queue=removed, limit=10))
            steps += 1
            assert world.violations() == []
        assert steps == 3
        left = {
            table.name: world.read(lambda snapshot, table=table: len(list(snapshot.scan(table, *endpoint.queue))))
            for table in (DELIVERIES, DUE, MANUAL, ATTEMPT_COUNTS, REMOVED_ENDPOINTS, ENDPOINTS, ENDPOINT_HEALTH)
        }
        assert set(left.values()) == {0}
        assert len(world.deliveries(stays.queue)) == 25
        assert len(world.attempts(number)) == 1


def test_an_attempt_that_ends_after_its_endpoint_was_removed_is_only_recorded(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        world.enqueue(number)
        claim = world.read(partial(next_delivery, queue=endpoint.queue, now_ms=EPOCH_MS, in_flight=()))
        assert isinstance(claim, ClaimedDelivery)
        result = AttemptResult(1, EPOCH_MS, EPOCH_MS, 12, None, "removed")
        made = AttemptRecord(
            world.world.request_id(EPOCH_MS), claim.queue, claim.key, claim.endpoint, claim.event, result
        )
        world.remove(endpoint)
        assert world.do(partial(log_attempt, made=made)) == AttemptOutcome("failed", None, failing=False)
        while (removed := world.read(first_removed)) is not None:
            world.do(partial(sweep_removed, queue=removed, limit=10))
        (logged,) = world.attempts(number)
        assert (logged.error, logged.status, logged.endpoint_id) == ("removed", "failed", endpoint.endpoint.id)


def test_erasing_an_identification_erases_its_events_and_their_deliveries(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        queue = world.endpoint(number, URL).queue
        request_id = world.world.request_id(EPOCH_MS)
        world.enqueue(number)
        event_id = identification_event_id("identification.completed", request_id)

        def fact(transaction: Transaction) -> None:
            (_, sealed) = next(transaction.scan(WEBHOOK_EVENTS, number))
            transaction.put(WEBHOOK_EVENTS, (number, event_id.bytes), sealed)
            transaction.put(DELIVERIES, (*queue, event_id.bytes, 0), Delivery("pending", 0, EPOCH_MS, EPOCH_MS))
            transaction.put(DUE, (*queue, EPOCH_MS, event_id.bytes, 0), b"")

        world.do(fact)
        assert len(world.deliveries(queue)) == 2
        world.do(partial(erase_identification, organization=number, request_id=request_id))
        assert len(world.deliveries(queue)) == 1
        assert str(event_id) not in world.bodies(number)


# Refusals


def test_refusals_are_notified_at_once_and_then_aggregated(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        queue = world.endpoint(number, URL, events=("identification.refused",)).queue

        def refuse(second: int) -> Notified:
            request = RefusedRequest(
                organization=number,
                key_id="key_x",
                code="no_credit",
                status=402,
                environment="production",
                request_id=world.world.request_id(EPOCH_MS).bytes,
                occurred_at_ms=EPOCH_MS + second * 1000,
                origin="https://shop.example",
                ip_address=None,
            )
            return world.do(partial(note_refusal, request=request))

        over_ms = EPOCH_MS + 60_000
        assert [refuse(second) for second in range(4)] == [Notified((queue,), over_ms), *[Notified((), over_ms)] * 3]
        tell = partial(notify_refusals, organization=number, name="key_x/no_credit")
        assert world.do(partial(tell, now_ms=over_ms)) == Notified((queue,), over_ms + 60_000)
        counts = sorted(json.loads(body)["data"]["count"] for body in world.bodies(number).values())
        assert counts == [1, 3]
        assert world.do(partial(tell, now_ms=over_ms + 60_000)) == Notified((), None)
        assert world.read(lambda snapshot: snapshot.count(REFUSALS)) == 0
        assert world.do(partial(tell, now_ms=over_ms + 60_000)) == Notified((), None)


# What `svc check` says


@pytest.mark.parametrize(
    ("breakage", "sentence"),
    [
        (lambda txn, queue, raw: txn.put(DUE, (*queue, 5, raw, 0), b""), "is scheduled and not open"),
        (
            lambda txn, queue, raw: txn.put(DELIVERIES, (*queue, raw, 0), Delivery("retrying", 1, 5, 7)),
            "is open and not scheduled",
        ),
        (
            lambda txn, queue, raw: txn.put(DELIVERIES, (*queue, raw, 0), Delivery("failed", 10, 5, 5)),
            "had 10 attempts",
        ),
        (lambda txn, queue, raw: txn.put(MANUAL, queue, DeliveryKey(b"x" * 16, "test")), "is busy with nothing"),
        (lambda txn, queue, _: txn.put(ATTEMPT_COUNTS, (*queue, 5), AttemptCount(1, 0)), "counts (1, 0) in minute 5"),
        (lambda txn, queue, raw: txn.delete(WEBHOOK_EVENTS, queue.organization, raw), "has no event to send"),
        (lambda txn, queue, _: txn.delete(ENDPOINTS, *queue), "leads to no endpoint"),
        (lambda txn, queue, _: txn.put(REMOVED_ENDPOINTS, queue, b""), "is there and removed"),
    ],
)
def test_inconsistencies_are_reported(
    tmp_path: Path, breakage: Callable[[Transaction, EndpointKey, bytes], Any], sentence: str
):
    world = OutboxWorld(tmp_path, 1)
    number = world.organization()
    queue = world.endpoint(number, URL).queue
    world.enqueue(number)
    ((key, _),) = world.deliveries(queue)
    assert world.violations() == []
    world.do(lambda txn: breakage(txn, queue, key.event_id))
    broken = world.violations()
    world.store.close()
    assert any(sentence in violation for violation in broken), broken


PINNED: list[tuple[Any, str]] = [
    (Health(2, 5, 9), "84020509f4"),
    (Delivery("retrying", 3, 5, 9), "8468726574727969" + "6e67030509"),
    (AttemptCount(3, 1), "820301"),
]


@pytest.mark.parametrize(("value", "body"), PINNED, ids=[type(value).__name__ for value, _ in PINNED])
def test_the_bytes_of_the_outbox_are_pinned(value: Any, body: str):
    record = Record(type(value))
    assert record.encode(value).hex() == body
    assert record.decode(record.encode(value)) == value


def test_an_attempt_is_read_as_written(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        queue = world.endpoint(number, URL).queue
        world.enqueue(number)
        attempt(world, queue, code=503)
        ((_, stored),) = world.read(lambda snapshot: list(snapshot.scan(ATTEMPTS, number)))
        assert ATTEMPTS.value.decode(ATTEMPTS.value.encode(stored)) == stored
        assert (stored.error, stored.response_code, stored.duration_ms) == ("http_status", 503, 12)
