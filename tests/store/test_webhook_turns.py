"""What is handed out of a queue, to whom, and what a removal or an erasure leaves alone (decisions 8.4-8.8)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from svc.features.webhooks.jobs.cleanup import purge_webhook_event
from svc.features.webhooks.jobs.deliveries import AttemptRecord, log_attempt
from svc.features.webhooks.jobs.endpoints import Issued, Queued, queue_redelivery, rotate_secret
from svc.features.webhooks.queries import (
    LEAP_AFTER,
    LEAPS,
    ClaimedDelivery,
    NoWork,
    Registered,
    attempts_in_a_day,
    first_removed,
    health,
    is_responding,
    next_delivery,
    queues_with_work,
)
from svc.features.webhooks.records import DeliveryKey, Health
from svc.features.webhooks.retries import AttemptResult
from svc.features.webhooks.tables import ATTEMPT_COUNTS, ENDPOINT_HEALTH, MANUAL
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.refusals import Refusal
from tests.support.outbox import OutboxWorld, outbox_world
from tests.support.worlds import EPOCH_MS

URL = "https://receiver.example/"
HOUR_MS = 3_600_000
FIVE_FAILURES = Health(failures=5, failing_since_ms=EPOCH_MS, last_attempt_at_ms=EPOCH_MS)


def claimed(
    world: OutboxWorld, queue: EndpointKey, now_ms: int = EPOCH_MS, *in_flight: DeliveryKey, backlogged: bool = False
):
    query = partial(next_delivery, queue=queue, now_ms=now_ms, in_flight=in_flight, backlogged=backlogged)
    return world.read(query)


def tried(world: OutboxWorld, claim: ClaimedDelivery, code: int, at_ms: int = EPOCH_MS) -> None:
    error = None if code == 200 else "http_status"
    result = AttemptResult(claim.delivery.attempts + 1, claim.delivery.due_ms, at_ms, 12, code, error)
    made = AttemptRecord(world.world.request_id(at_ms), claim.queue, claim.key, claim.endpoint, claim.event, result)
    world.do(partial(log_attempt, made=made))


def set_health(world: OutboxWorld, queue: EndpointKey, state: Health) -> None:
    world.do(lambda transaction: transaction.put(ENDPOINT_HEALTH, queue, state))


def queued_test(world: OutboxWorld, endpoint: Registered) -> Queued:
    queued = world.queue_test(endpoint)
    assert isinstance(queued, Queued)
    return queued


# What is handed out


def test_the_earliest_due_delivery_is_handed_out_and_those_in_flight_are_skipped(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        queue = world.endpoint(number, URL).queue
        assert claimed(world, queue) == NoWork(None)
        for _ in range(2):
            world.enqueue(number)
        assert claimed(world, queue, EPOCH_MS - 1) == NoWork(EPOCH_MS)
        first = claimed(world, queue, EPOCH_MS)
        assert isinstance(first, ClaimedDelivery)
        second = claimed(world, queue, EPOCH_MS, first.key)
        assert isinstance(second, ClaimedDelivery)
        assert second.key != first.key
        assert (first.failing, first.backlogged) == (False, False)
        assert claimed(world, queue, EPOCH_MS, first.key, second.key) == NoWork(None)


@pytest.mark.parametrize(("waiting", "backlogged"), [(100, False), (101, True)])
def test_more_than_a_hundred_due_deliveries_of_a_failing_endpoint_are_a_backlog(
    tmp_path: Path, waiting: int, backlogged: bool
):
    """Decisions 8.8."""
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        for _ in range(waiting):
            world.enqueue(number)
        healthy = claimed(world, endpoint.queue)
        assert isinstance(healthy, ClaimedDelivery)
        assert not healthy.backlogged, "an endpoint that responds has no backlog"
        known = claimed(world, endpoint.queue, backlogged=True)
        assert isinstance(known, ClaimedDelivery)
        assert not known.backlogged
        set_health(world, endpoint.queue, FIVE_FAILURES)
        failing = claimed(world, endpoint.queue)
        assert isinstance(failing, ClaimedDelivery)
        assert (failing.failing, failing.backlogged) == (True, backlogged)
        known = claimed(world, endpoint.queue, backlogged=True)
        assert isinstance(known, ClaimedDelivery)
        assert known.backlogged, "it is not counted again"
        queued_test(world, endpoint)
        asked_for = claimed(world, endpoint.queue, backlogged=True)
        assert isinstance(asked_for, ClaimedDelivery)
        assert (asked_for.key.kind, asked_for.failing, asked_for.backlogged) == ("test", True, False)


def test_deliveries_due_later_are_not_a_backlog(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        queue = world.endpoint(number, URL).queue
        for _ in range(101):
            world.enqueue(number)
        claim = claimed(world, queue)
        assert isinstance(claim, ClaimedDelivery)
        tried(world, claim, 500)
        set_health(world, queue, FIVE_FAILURES)
        rest = claimed(world, queue)
        assert isinstance(rest, ClaimedDelivery)
        assert not rest.backlogged, "a hundred are due, and one in five seconds"
        later = claimed(world, queue, EPOCH_MS + 10_000)
        assert isinstance(later, ClaimedDelivery)
        assert later.backlogged


def test_endpoint_queues_with_work_are_paged_with_their_earliest_due_time(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        numbers = [world.organization() for _ in range(2)]
        queues = [world.endpoint(number, URL).queue for number in numbers for _ in range(2)]
        idle = world.endpoint(numbers[0], URL, environment="test").queue
        for number in numbers:
            world.enqueue(number)
            world.enqueue(number)

        def page(after: EndpointKey, limit: int) -> list[tuple[EndpointKey, int]]:
            return world.read(partial(queues_with_work, after=after, limit=limit)).queues

        everything = [(queue, EPOCH_MS) for queue in queues]
        assert idle not in queues
        assert page(EndpointKey(0, 0), 99) == everything
        for limit in (1, 2, 3):
            assert page(EndpointKey(0, 0), limit) == everything[:limit]
            assert page(queues[0], limit) == everything[1 : 1 + limit]
        assert page(queues[-1], 99) == []
        assert page(EndpointKey(0, 0), 0) == []


@pytest.mark.slow(0.3)
def test_long_queues_are_skipped_and_the_next_call_continues(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        numbers = [world.organization() for _ in range(LEAPS + 4)]
        queues = [world.endpoint(number, URL).queue for number in numbers]
        for number in numbers:
            for _ in range(LEAP_AFTER + 2):
                world.enqueue(number)
        first = world.read(partial(queues_with_work, after=EndpointKey(0, 0), limit=99))
        assert [queue for queue, _ in first.queues] == queues[:LEAPS]
        assert first.has_more
        second = world.read(partial(queues_with_work, after=queues[LEAPS - 1], limit=99))
        assert [queue for queue, _ in second.queues] == queues[LEAPS:]
        assert not second.has_more


def test_an_endpoint_is_responding_unless_removed_paused_or_failing(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        endpoint = world.endpoint(world.organization(), URL)

        def responds() -> bool:
            return world.read(partial(is_responding, queue=endpoint.queue))

        assert responds()
        set_health(world, endpoint.queue, Health(failures=4))
        assert responds()
        set_health(world, endpoint.queue, Health(failures=5))
        assert not responds()
        set_health(world, endpoint.queue, Health())
        world.change(endpoint, paused=True)
        assert not responds()
        world.change(endpoint, paused=False)
        assert responds()
        assert world.read(first_removed) is None
        world.remove(endpoint)
        assert not responds()
        assert world.read(first_removed) is not None


# What is left alone


def test_another_description_or_the_same_url_does_not_reset_the_failures(tmp_path: Path):
    """Decisions 8.4: a changed URL and a resume are; the time of the last attempt stays, and what waits is owed."""
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        world.enqueue(number)
        claim = claimed(world, endpoint.queue)
        assert isinstance(claim, ClaimedDelivery)
        tried(world, claim, 410)

        def state() -> Health:
            return world.read(partial(health, queue=endpoint.queue))

        failing = Health(failures=1, failing_since_ms=EPOCH_MS, last_attempt_at_ms=EPOCH_MS, owed=True)
        assert state() == failing
        assert world.change(endpoint, description="mine", url=URL).endpoint.status == "failing"
        assert state() == failing
        assert world.change(endpoint, url=URL + "new").endpoint.status == "active"
        assert state() == Health(last_attempt_at_ms=EPOCH_MS, owed=True)


def test_erasing_the_event_of_an_ended_redelivery_keeps_a_queued_test(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        world.enqueue(number)
        ((key, _),) = world.deliveries(endpoint.queue)
        first = claimed(world, endpoint.queue)
        assert isinstance(first, ClaimedDelivery)
        tried(world, first, 200)
        job = partial(queue_redelivery, number=number, endpoint_id=endpoint.endpoint.id)
        world.do(partial(job, event_id=UUID(bytes=key.event_id), now_ms=EPOCH_MS))
        again = claimed(world, endpoint.queue)
        assert isinstance(again, ClaimedDelivery)
        tried(world, again, 200)
        queued = queued_test(world, endpoint)
        world.do(partial(purge_webhook_event, organization=number, event_id=key.event_id))
        waiting = DeliveryKey(queued.event_id.bytes, "test")
        assert world.read(lambda snapshot: snapshot.get(MANUAL, *endpoint.queue)) == waiting
        assert [left for left, _ in world.deliveries(endpoint.queue)] == [waiting]
        world.do(partial(purge_webhook_event, organization=number, event_id=waiting.event_id))
        assert world.read(lambda snapshot: snapshot.count(MANUAL)) == 0


def test_a_removed_endpoint_is_no_longer_counted(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        world.enqueue(number)
        claim = claimed(world, endpoint.queue)
        assert isinstance(claim, ClaimedDelivery)
        world.remove(endpoint)
        tried(world, claim, 200)
        assert len(world.attempts(number)) == 1
        assert world.read(lambda snapshot: snapshot.count(ATTEMPT_COUNTS)) == 0


def test_counts_cover_one_day_to_the_minute(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        queue = world.endpoint(number, URL).queue
        for code in (200, 410):
            world.enqueue(number)
            claim = claimed(world, queue)
            assert isinstance(claim, ClaimedDelivery)
            tried(world, claim, code)
        for later_ms, seen in ((0, (1, 1)), (24 * HOUR_MS + 59_999, (1, 1)), (24 * HOUR_MS + 60_000, (0, 0))):
            counted = world.read(partial(attempts_in_a_day, queue=queue, now_ms=EPOCH_MS + later_ms))
            assert (counted.delivered, counted.failed) == seen
        world.change(Registered(queue, claim.endpoint), paused=False)
        world.enqueue(number)
        again = claimed(world, queue)
        assert isinstance(again, ClaimedDelivery)
        tried(world, again, 200, EPOCH_MS + 24 * HOUR_MS)
        counted = world.read(partial(attempts_in_a_day, queue=queue, now_ms=EPOCH_MS + 24 * HOUR_MS))
        assert (counted.delivered, counted.failed) == (2, 1), "what is still shown is not forgotten"


def test_the_previous_secret_signs_for_the_requested_number_of_hours(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        job = partial(rotate_secret, number=number, endpoint_id=endpoint.endpoint.id, secrets_key=world.secrets_key)
        for hours, until_ms in ((5, EPOCH_MS + 5 * HOUR_MS), (168, EPOCH_MS + 168 * HOUR_MS), (0, None)):
            rotated = world.do(partial(job, overlap_hours=hours, now_ms=EPOCH_MS))
            assert isinstance(rotated, Issued)
            assert rotated.registered.endpoint.previous_secret_expires_at_ms == until_ms
        assert rotated.registered.endpoint.generation == 4


def test_an_automatic_delivery_that_ends_leaves_a_test_queued(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        world.enqueue(number)
        queued = queued_test(world, endpoint)
        asked = claimed(world, endpoint.queue)
        assert isinstance(asked, ClaimedDelivery)
        assert (asked.key.kind, asked.key.event_id) == ("test", queued.event_id.bytes)
        automatic = claimed(world, endpoint.queue, EPOCH_MS, asked.key)
        assert isinstance(automatic, ClaimedDelivery)
        assert automatic.key.kind == "auto"
        tried(world, automatic, 200)
        assert isinstance(world.queue_test(endpoint), Refusal)
        still = claimed(world, endpoint.queue)
        assert isinstance(still, ClaimedDelivery)
        assert still.key == asked.key
        tried(world, still, 200)
        assert claimed(world, endpoint.queue) == NoWork(None)


@pytest.mark.parametrize(("code", "status"), [(200, "delivered"), (500, "failed")])
def test_an_attempt_whose_event_was_erased_meanwhile_is_recorded_with_its_outcome(
    code: int, status: str, tmp_path: Path
):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        queue = world.endpoint(number, URL).queue
        world.enqueue(number)
        claim = claimed(world, queue)
        assert isinstance(claim, ClaimedDelivery)
        world.do(partial(purge_webhook_event, organization=number, event_id=claim.key.event_id))
        tried(world, claim, code)
        assert [(one.status, one.response_code) for one in world.attempts(number)] == [(status, code)]
        assert world.deliveries(queue) == []
