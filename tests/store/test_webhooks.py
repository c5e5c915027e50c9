"""Endpoints, events and attempts as transactions: what they change, and what they refuse (decisions 8)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from svc.domain.refusals import Refusal, invalid
from svc.domain.webhooks.envelope import identification_event_id, secrets_in_force
from svc.domain.webhooks.records import (
    Attempt,
    AttemptCount,
    Delivery,
    DeliveryKey,
    EndpointKey,
    Health,
)
from svc.domain.webhooks.refused import RefusedRequest
from svc.domain.webhooks.schedule import AttemptResult
from svc.store.schema.codec import Record
from svc.store.schema.tables import (
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
from svc.store.snapshot import Transaction
from svc.store.transactions.webhooks.deliveries import (
    AttemptOutcome,
    AttemptRecord,
    Notified,
    enqueue,
    erase_identification,
    log_attempt,
    note_refusal,
    notify_refusals,
    sweep_removed,
)
from svc.store.transactions.webhooks.endpoints import (
    EndpointChange,
    Issued,
    Queued,
    change_endpoint,
    queue_redelivery,
    queue_test,
    remove_endpoint,
    rotate_secret,
)
from svc.store.views.webhooks import (
    ClaimedDelivery,
    NoWork,
    Registered,
    attempts_in_a_day,
    attempts_page,
    find_endpoint,
    first_removed,
    next_delivery,
)
from tests.support.outbox import EVENT, OutboxWorld, outbox_world
from tests.support.worlds import EPOCH_MS

DAY_MS = 86_400_000
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


# Endpoints


def test_an_organization_has_at_most_ten_endpoints(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number, other = world.organization(), world.organization()
        issued = [world.issue(number, URL) for _ in range(10)]
        assert all(isinstance(one, Issued) for one in issued)
        assert world.issue(number, URL) == Refusal("webhook_limit")
        assert isinstance(world.issue(other, URL), Issued)
        first = issued[0]
        assert isinstance(first, Issued)
        world.remove(first.registered)
        again = world.issue(number, URL)
        assert isinstance(again, Issued)
        assert again.registered.queue == EndpointKey(number, 11), "numbers are never given twice"


def test_a_secret_is_shown_once_and_never_stored(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        issued = world.issue(world.organization(), URL)
        assert isinstance(issued, Issued)
        assert issued.registered.endpoint.secret_last4 == issued.secret[-4:]
        stored = (tmp_path / "store" / "data.mdb").read_bytes()
        assert issued.secret.encode() not in stored
        assert issued.secret.removeprefix("svc_whsec_").encode() not in stored


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"events": ("visitor.seen",)}, invalid("events", "unknown_event_type")),
        ({"events": ("billing.status_changed",), "environment": "test"}, invalid("events", "requires_live")),
    ],
)
def test_events_invalid_for_an_endpoint_are_refused(tmp_path: Path, fields: dict[str, Any], refusal: Refusal):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        assert world.issue(number, URL, **fields) == refusal
        endpoint = world.endpoint(number, URL, events=("billing.status_changed",))
        change = EndpointChange(environment="test")
        job = partial(change_endpoint, number=number, endpoint_id=endpoint.endpoint.id, change=change)
        assert world.do(job) == invalid("events", "requires_live")
        assert world.read(partial(find_endpoint, number=number, endpoint_id=endpoint.endpoint.id)) == endpoint


def test_a_change_affects_only_the_named_fields(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        endpoint = world.endpoint(world.organization(), URL)
        changed = world.change(endpoint, description="mine", events=("webhook.test", EVENT, EVENT))
        assert changed.endpoint.description == "mine"
        assert changed.endpoint.events == (EVENT, "webhook.test")
        assert (changed.endpoint.url, changed.endpoint.status) == (URL, "active")


def test_an_endpoint_of_another_organization_is_not_found(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number, other = world.organization(), world.organization()
        endpoint_id = world.endpoint(number, URL).endpoint.id
        event_id = world.world.request_id(EPOCH_MS)
        jobs: list[Callable[[Transaction], Any]] = [
            lambda txn: change_endpoint(txn, other, endpoint_id, EndpointChange(description="x")),
            lambda txn: remove_endpoint(txn, other, endpoint_id),
            lambda txn: rotate_secret(
                txn, other, endpoint_id, overlap_hours=1, secrets_key=world.secrets_key, now_ms=EPOCH_MS
            ),
            lambda txn: queue_test(txn, other, endpoint_id, event_id=event_id, now_ms=EPOCH_MS),
            lambda txn: queue_redelivery(txn, other, endpoint_id, event_id=event_id, now_ms=EPOCH_MS),
        ]
        assert [world.do(job) for job in jobs] == [Refusal("not_found")] * 5


def test_after_a_rotation_both_secrets_sign_and_a_second_rotation_replaces_the_older(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        issued = world.issue(number, URL)
        assert isinstance(issued, Issued)

        def rotate(hours: int) -> Issued:
            rotated = world.do(
                partial(
                    rotate_secret,
                    number=number,
                    endpoint_id=issued.registered.endpoint.id,
                    overlap_hours=hours,
                    secrets_key=world.secrets_key,
                    now_ms=EPOCH_MS,
                )
            )
            assert isinstance(rotated, Issued)
            return rotated

        def in_force(at_ms: int) -> tuple[str, ...]:
            found = world.read(partial(find_endpoint, number=number, endpoint_id=issued.registered.endpoint.id))
            assert found is not None
            return secrets_in_force(world.secrets_key, found.endpoint, at_ms)

        second = rotate(24)
        assert in_force(EPOCH_MS) == (second.secret, issued.secret)
        assert in_force(EPOCH_MS + DAY_MS) == (second.secret,)
        third = rotate(168)
        assert in_force(EPOCH_MS + DAY_MS) == (third.secret, second.secret)
        fourth = rotate(0)
        assert in_force(EPOCH_MS) == (fourth.secret,)
        assert fourth.registered.endpoint.previous_secret_expires_at_ms is None
        for hours in (-1, 169):
            job = partial(
                rotate_secret, number=number, endpoint_id="whk_x", overlap_hours=hours, secrets_key=b"", now_ms=0
            )
            assert world.do(job) == invalid("previous_secret_valid_hours", "out_of_range")


# Enqueueing


def test_an_event_goes_to_active_subscribers_in_its_environment(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        live, test, other = (
            world.endpoint(number, URL),
            world.endpoint(number, URL, environment="test"),
            world.endpoint(number, URL, events=("webhook.test",)),
        )
        paused = world.change(world.endpoint(number, URL), paused=True)
        assert world.enqueue(number, "live") == (live.queue,)
        assert world.enqueue(number, "test") == (test.queue,)
        assert [len(world.deliveries(one.queue)) for one in (live, test, other, paused)] == [1, 1, 0, 0]
        (said,) = [json.loads(body) for body in world.bodies(number).values() if b'"live"' in body]
        assert (said["type"], said["environment"], said["data"]) == (EVENT, "live", {"fact": 1})


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


def test_a_failed_attempt_is_rescheduled_and_a_delivered_one_is_not(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        queue = world.endpoint(number, URL).queue
        world.enqueue(number)
        logged = attempt(world, queue)
        assert logged.status == "retrying"
        assert logged.due_ms is not None
        assert world.violations() == []
        waiting = world.read(partial(next_delivery, queue=queue, now_ms=logged.due_ms - 1, in_flight=()))
        assert waiting == NoWork(logged.due_ms)
        assert attempt(world, queue, code=200, at_ms=logged.due_ms) == AttemptOutcome("delivered", None, failing=False)
        assert world.states(queue) == ["delivered"]
        assert world.read(lambda snapshot: snapshot.count(DUE)) == 0
        assert [(one.status, one.attempt) for one in world.attempts(number)] == [("retrying", 1), ("delivered", 2)]


def test_the_ninth_failure_ends_a_delivery_and_the_endpoint_recovers_with_the_next_2xx(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        world.enqueue(number)
        at_ms, logged = EPOCH_MS, []
        for _ in range(9):
            logged.append(attempt(world, endpoint.queue, at_ms=at_ms))
            at_ms = logged[-1].due_ms or at_ms
        assert [one.status for one in logged] == ["retrying"] * 8 + ["failed"]
        assert status(world, endpoint) == "failing"
        assert world.states(endpoint.queue) == ["failed"]
        world.enqueue(number)
        attempt(world, endpoint.queue, code=200, at_ms=at_ms)
        assert status(world, endpoint) == "active"


def test_a_410_ends_the_delivery_and_a_changed_url_or_a_resume_recovers_the_endpoint(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        for change in ({"url": "https://new.example/"}, {"paused": False}):
            world.enqueue(number)
            assert attempt(world, endpoint.queue, code=410).status == "failed"
            assert status(world, endpoint) == "failing"
            world.change(endpoint, **change)
            assert status(world, endpoint) == "active"
            health = world.read(lambda snapshot: snapshot.get(ENDPOINT_HEALTH, *endpoint.queue))
            assert health == Health(last_attempt_at_ms=EPOCH_MS), "when it was last tried is still known"


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


def test_counters_are_the_sum_of_a_day_and_older_minutes_are_dropped(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        queue = world.endpoint(number, URL).queue
        for minute in range(4):
            world.enqueue(number)
            attempt(world, queue, code=200 if minute % 2 else 410, at_ms=EPOCH_MS + minute * 60_000)
        now_ms = EPOCH_MS + 180_000

        def counted(at_ms: int) -> AttemptCount:
            return world.read(partial(attempts_in_a_day, queue=queue, now_ms=at_ms))

        assert counted(now_ms) == AttemptCount(2, 2)
        assert counted(EPOCH_MS + DAY_MS + 60_000) == AttemptCount(2, 1)
        assert counted(now_ms + 2 * DAY_MS) == AttemptCount(0, 0)
        world.enqueue(number)
        attempt(world, queue, code=200, at_ms=now_ms + 2 * DAY_MS)
        assert world.read(lambda snapshot: snapshot.count(ATTEMPT_COUNTS)) == 3, "two old rows for one new"


def test_attempts_are_listed_newest_first_by_environment(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number, other = world.organization(), world.organization()
        for owner in (number, other):
            for environment in ("live", "test"):
                queue = world.endpoint(owner, URL, environment=environment).queue
                for second in range(3):
                    world.enqueue(owner, environment)
                    attempt(world, queue, code=200, at_ms=EPOCH_MS + second * 1000)

        def page(environment: Any, before: bytes = b"\xff" * 16, limit: int = 9) -> list[tuple[bytes, Attempt]]:
            asked = {"since": bytes(16), "before": before, "limit": limit}
            return world.read(lambda snapshot: attempts_page(snapshot, number, environment, **asked))

        everything = page(None)
        assert len(everything) == 6
        assert [attempt_id for attempt_id, _ in everything] == sorted((i for i, _ in everything), reverse=True)
        assert [one.environment for _, one in page("test")] == ["test"] * 3
        first = page(None, limit=4)
        assert first + page(None, before=first[-1][0]) == everything


# Tests and redeliveries


def queued_test(world: OutboxWorld, endpoint: Registered, at_ms: int = EPOCH_MS) -> Queued | Refusal:
    event_id = world.world.request_id(at_ms)
    job = partial(queue_test, number=endpoint.queue.organization, endpoint_id=endpoint.endpoint.id)
    return world.do(partial(job, event_id=event_id, now_ms=at_ms))


def queued_redelivery(
    world: OutboxWorld, endpoint: Registered, event_id: UUID, at_ms: int = EPOCH_MS
) -> Queued | Refusal:
    job = partial(queue_redelivery, number=endpoint.queue.organization, endpoint_id=endpoint.endpoint.id)
    return world.do(partial(job, event_id=event_id, now_ms=at_ms))


def test_one_test_at_a_time_goes_first_and_is_not_retried(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL, events=(EVENT,))
        world.enqueue(number)
        queued = queued_test(world, endpoint, EPOCH_MS + 5)
        assert isinstance(queued, Queued)
        assert queued_test(world, endpoint) == Refusal("webhook_busy")
        key = DeliveryKey(queued.event_id.bytes, "test")
        assert attempt(world, endpoint.queue, key=key).status == "failed"
        said = json.loads(world.bodies(number)[str(queued.event_id)])
        assert (said["type"], said["data"]["endpoint_id"]) == ("webhook.test", endpoint.endpoint.id)
        assert isinstance(queued_test(world, endpoint), Queued), "busy no more"


def test_a_paused_endpoint_takes_no_test_and_a_queued_one_is_ended(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        world.enqueue(number)
        queued = queued_test(world, endpoint)
        assert isinstance(queued, Queued)
        world.change(endpoint, paused=True)
        assert queued_test(world, endpoint) == Refusal("webhook_paused")
        claim = world.read(partial(next_delivery, queue=endpoint.queue, now_ms=EPOCH_MS, in_flight=()))
        assert isinstance(claim, ClaimedDelivery)
        assert claim.key == DeliveryKey(queued.event_id.bytes, "test")
        rest = world.read(partial(next_delivery, queue=endpoint.queue, now_ms=EPOCH_MS, in_flight=(claim.key,)))
        assert rest == NoWork(None), "what was queued before waits for the resume"


def test_a_redelivery_requires_an_event_received_by_this_endpoint_in_the_last_30_days(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        one, other = world.endpoint(number, URL), world.endpoint(number, URL, environment="test")
        world.enqueue(number)
        ((key, _),) = world.deliveries(one.queue)
        event_id = UUID(bytes=key.event_id)
        attempt(world, one.queue, code=200)
        not_found = Refusal("not_found")
        assert queued_redelivery(world, other, event_id) == not_found
        assert queued_redelivery(world, one, world.world.request_id(EPOCH_MS)) == not_found
        assert queued_redelivery(world, one, event_id, EPOCH_MS + 30 * DAY_MS + 1) == not_found
        for _ in range(2):
            assert queued_redelivery(world, one, event_id) == Queued(one.queue, event_id)
            assert queued_redelivery(world, one, event_id) == Refusal("webhook_busy")
            again = DeliveryKey(key.event_id, "redelivery")
            assert attempt(world, one.queue, code=200, key=again).status == "delivered"
            assert world.violations() == []
        assert len(world.bodies(number)) == 1, "the same event, the same bytes"


# Removal and erasure


def test_a_removed_endpoint_is_deleted_in_steps_and_its_log_stays(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint, stays = world.endpoint(number, URL), world.endpoint(number, URL)
        for _ in range(25):
            world.enqueue(number)
        attempt(world, endpoint.queue)
        queued_test(world, endpoint)
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
    (Health(2, 5, 9), "83020509"),
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
