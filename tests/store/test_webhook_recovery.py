"""What is sent again after an outage, and what is not (decisions 8.2, 8.4)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from uuid import UUID

from svc.features.webhooks.jobs.cleanup import purge_webhook_event
from svc.features.webhooks.jobs.deliveries import AttemptRecord, log_attempt, recover_deliveries
from svc.features.webhooks.jobs.endpoints import queue_redelivery
from svc.features.webhooks.queries import (
    ClaimedDelivery,
    NoWork,
    Registered,
    endpoint_anywhere,
    failed_in,
    next_delivery,
)
from svc.features.webhooks.records import HISTORY_MS, Delivery, DeliveryKey
from svc.features.webhooks.retries import AttemptResult
from svc.kernel.values.ids import DAY_MS, first_id
from svc.kernel.values.partitions import EndpointKey
from tests.support.outbox import OutboxWorld, outbox_world
from tests.support.worlds import EPOCH_MS

URL = "https://receiver.example/"
EVER = range(EPOCH_MS - DAY_MS, EPOCH_MS + DAY_MS)


def attempt(world: OutboxWorld, queue: EndpointKey, code: int, at_ms: int = EPOCH_MS) -> DeliveryKey:
    """The queue's next delivery, tried now and answered so: a 410 fails it at once."""
    claim = world.read(partial(next_delivery, queue=queue, now_ms=max(at_ms, EPOCH_MS), in_flight=()))
    assert isinstance(claim, ClaimedDelivery)
    error = None if code == 200 else "http_status"
    result = AttemptResult(claim.delivery.attempts + 1, claim.delivery.due_ms, at_ms, 12, code, error)
    made = AttemptRecord(world.world.request_id(at_ms), queue, claim.key, claim.endpoint, claim.event, result)
    world.do(partial(log_attempt, made=made))
    return claim.key


def fail(world: OutboxWorld, endpoint: Registered, count: int = 1, at_ms: int = EPOCH_MS) -> list[bytes]:
    """So many events of which the delivery to this endpoint, the only one, ends `failed` at this time."""
    keys: list[DeliveryKey] = []
    for _ in range(count):
        world.enqueue(endpoint.queue.organization)
        keys.append(attempt(world, endpoint.queue, 410, at_ms))
    return [key.event_id for key in keys]


def recover(
    world: OutboxWorld, endpoint: Registered, window: range = EVER, *, now_ms: int = EPOCH_MS, limit: int = 512
) -> int:
    """As the command line does it."""
    recovered, start = 0, first_id(window.start)
    while start is not None:
        query = partial(failed_in, queue=endpoint.queue, window=window, start=start, limit=limit)
        failed = world.read(query)
        job = partial(recover_deliveries, queue=endpoint.queue, event_ids=failed.event_ids, now_ms=now_ms)
        recovered += world.do(job)
        start = failed.resume
    return recovered


def test_a_dead_letter_is_sent_again_with_the_same_bytes_and_all_its_attempts(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        world.enqueue(number)
        for place in range(9):
            attempt(world, endpoint.queue, 500, EPOCH_MS + place * 3_600_000 * 4)
        assert world.states(endpoint.queue) == ["failed"]
        bodies, later = world.bodies(number), EPOCH_MS + 2 * DAY_MS
        assert recover(world, endpoint, range(EPOCH_MS, later), now_ms=later) == 1
        ((key, delivery),) = world.deliveries(endpoint.queue)
        assert (key.kind, delivery) == ("auto", Delivery("pending", 0, later, later))
        claim = world.read(partial(next_delivery, queue=endpoint.queue, now_ms=later, in_flight=()))
        assert isinstance(claim, ClaimedDelivery)
        assert {str(UUID(bytes=claim.key.event_id)): claim.event.body} == bodies == world.bodies(number)
        attempt(world, endpoint.queue, 200, later)
        logged = [(one.attempt, one.status) for one in world.attempts(number)]
        assert logged == [(n, "retrying") for n in range(1, 9)] + [(9, "failed"), (1, "delivered")]


def test_recovering_twice_queues_nothing_twice(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        endpoint = world.endpoint(world.organization(), URL)
        fail(world, endpoint, 3)
        assert [recover(world, endpoint), recover(world, endpoint)] == [3, 0]
        assert world.states(endpoint.queue) == ["pending"] * 3
        attempt(world, endpoint.queue, 200)
        assert recover(world, endpoint) == 0
        attempt(world, endpoint.queue, 410)
        assert recover(world, endpoint) == 1, "one that failed once more can be recovered once more"


def test_a_step_reads_a_part_of_the_log_and_the_parts_are_complete(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        endpoint = world.endpoint(world.organization(), URL)
        event_ids = fail(world, endpoint, 7)
        start = first_id(EVER.start)
        first = world.read(partial(failed_in, queue=endpoint.queue, window=EVER, start=start, limit=3))
        assert first.event_ids == event_ids[:3]
        assert first.resume is not None
        exact = world.read(partial(failed_in, queue=endpoint.queue, window=EVER, start=start, limit=7))
        assert exact == (event_ids, None)
        assert recover(world, endpoint, limit=3) == 7


def test_pending_and_delivered_events_are_not_recovered(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        for code in (200, 500):
            world.enqueue(number)
            attempt(world, endpoint.queue, code)
        before = world.deliveries(endpoint.queue)
        assert recover(world, endpoint) == 0
        assert world.deliveries(endpoint.queue) == before


def test_an_event_delivered_by_a_redelivery_is_not_recovered(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        for code, recovered in ((200, 0), (500, 1)):
            (event_id,) = fail(world, endpoint)
            job = partial(queue_redelivery, number=number, endpoint_id=endpoint.endpoint.id, now_ms=EPOCH_MS)
            world.do(partial(job, event_id=UUID(bytes=event_id)))
            assert attempt(world, endpoint.queue, code).kind == "redelivery"
            assert recover(world, endpoint) == recovered


def test_a_failed_redelivery_of_a_delivered_event_is_not_recovered(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        world.enqueue(number)
        event_id = attempt(world, endpoint.queue, 200).event_id
        job = partial(queue_redelivery, number=number, endpoint_id=endpoint.endpoint.id, now_ms=EPOCH_MS)
        world.do(partial(job, event_id=UUID(bytes=event_id)))
        attempt(world, endpoint.queue, 500)
        assert recover(world, endpoint) == 0
        assert world.states(endpoint.queue) == ["delivered", "failed"]


def test_only_failures_in_the_window_are_recovered(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        endpoint = world.endpoint(world.organization(), URL)
        event_ids = [fail(world, endpoint, at_ms=EPOCH_MS + minute * 60_000)[0] for minute in range(4)]
        window = range(EPOCH_MS + 60_000, EPOCH_MS + 180_000)
        assert recover(world, endpoint, window) == 2
        states = {key.event_id: delivery.state for key, delivery in world.deliveries(endpoint.queue)}
        assert [states[event_id] for event_id in event_ids] == ["failed", "pending", "pending", "failed"]


def test_a_failure_is_found_by_its_time_even_if_ids_are_ahead_of_a_clock_set_back(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        endpoint = world.endpoint(world.organization(), URL)
        fail(world, endpoint, at_ms=EPOCH_MS)
        fail(world, endpoint, at_ms=EPOCH_MS - 3_600_000)
        assert recover(world, endpoint, range(EPOCH_MS - 3_600_000, EPOCH_MS)) == 1


def test_other_endpoints_and_organizations_are_not_affected(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint, other = world.endpoint(number, URL), world.endpoint(number, "https://other.example/")
        elsewhere = world.endpoint(world.organization(), URL)
        world.enqueue(number)
        for one in (endpoint, other):
            attempt(world, one.queue, 410)
        fail(world, elsewhere)
        assert recover(world, endpoint) == 1
        assert world.states(other.queue) == world.states(elsewhere.queue) == ["failed"]
        found = world.read(partial(endpoint_anywhere, endpoint_id=elsewhere.endpoint.id))
        assert found is not None
        assert found.queue == elsewhere.queue


def test_an_erased_event_or_one_older_than_30_days_is_not_recovered(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        number = world.organization()
        endpoint = world.endpoint(number, URL)
        erased, _ = fail(world, endpoint, 2)
        world.do(partial(purge_webhook_event, organization=number, event_id=erased))
        assert recover(world, endpoint, now_ms=EPOCH_MS + HISTORY_MS + 1) == 0
        assert recover(world, endpoint, now_ms=EPOCH_MS + HISTORY_MS) == 1


def test_recovered_deliveries_of_a_paused_endpoint_wait_and_a_removed_one_has_none(tmp_path: Path):
    with outbox_world(tmp_path) as world:
        endpoint = world.endpoint(world.organization(), URL)
        event_ids = fail(world, endpoint, 2)
        world.change(endpoint, paused=True)
        job = partial(recover_deliveries, queue=endpoint.queue, now_ms=EPOCH_MS)
        assert world.do(partial(job, event_ids=event_ids[:1])) == 1
        query = partial(next_delivery, queue=endpoint.queue, now_ms=EPOCH_MS, in_flight=())
        assert world.read(query) == NoWork(None)
        world.change(endpoint, paused=False)
        assert isinstance(world.read(query), ClaimedDelivery)
        world.remove(endpoint)
        assert world.do(partial(job, event_ids=event_ids[1:])) == 0
