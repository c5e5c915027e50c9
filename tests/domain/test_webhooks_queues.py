"""Slots and turns: who may send next (decisions 8.8), without clock, store or network."""

from __future__ import annotations

from collections import Counter, deque

import msgspec
import pytest

from svc.features.webhooks.queues import (
    FAILING_SLOTS,
    MAX_PROBE_MS,
    ORGANIZATION_SLOTS,
    PROBE_MS,
    SLOTS,
    SLOW_SLOTS,
    ConcurrencyLimit,
    DeliveryScheduler,
    EndpointQueue,
    adjust_concurrency,
    is_failing,
    probe_after_ms,
)
from svc.features.webhooks.records import DeliveryKey, Endpoint, Health
from svc.features.webhooks.retries import AttemptResult
from svc.kernel.values.partitions import EndpointKey

ENDPOINT = Endpoint(
    id="whk_1",
    url="https://receiver.example/",
    description="",
    environment="live",
    events=("webhook.test",),
    created_at_ms=0,
    secret_last4="abcd",
)
HOUR_MS = 3_600_000
OK = AttemptResult(1, 0, 0, 10, 200, None)


def failure(error: str = "http_status", code: int | None = 500) -> AttemptResult:
    return AttemptResult(1, 0, 0, 10, code, error)  # pyright: ignore[reportArgumentType]


def delivery(number: int) -> DeliveryKey:
    return DeliveryKey(number.to_bytes(16), "auto")


class Sender:
    """Starts whatever may start, out of queues that never run dry."""

    def __init__(self) -> None:
        self.queues: DeliveryScheduler[None] = DeliveryScheduler()
        self.sent = 0
        self.flying: deque[tuple[EndpointKey, DeliveryKey]] = deque()

    def fill(self, now_ms: int = 0) -> Counter[EndpointKey]:
        started: Counter[EndpointKey] = Counter()
        while (queue := self.queues.take(now_ms)) is not None:
            self.queues.start(queue, delivery(self.sent), None)
            self.flying.append((queue.key, delivery(self.sent)))
            self.sent += 1
            started[queue.key] += 1
        return started

    def end_one(self, key: EndpointKey) -> None:
        queue = self.queues.find(key)
        assert queue is not None
        self.queues.end(queue, next(iter(queue.in_flight)))


def test_an_endpoint_starts_with_two_slots_and_earns_up_to_eight():
    window = ConcurrencyLimit()
    seen = [window.slots]
    for _ in range(200):
        window = window.after(OK, recovered=False)
        seen.append(window.slots)
    assert seen[:21] == [2] * 20 + [3]
    assert seen.index(8) == 120
    assert max(seen) == 8


@pytest.mark.parametrize(
    ("result", "slots"),
    [
        (failure("timeout", None), 4),
        (failure(code=500), 4),
        (failure(code=429), 4),
        (failure(code=404), 8),
        (failure("connect_error", None), 8),
    ],
)
def test_a_timeout_a_5xx_and_a_429_halve_the_concurrency_limit(result: AttemptResult, slots: int):
    assert ConcurrencyLimit(8).after(result, recovered=False).slots == slots
    assert ConcurrencyLimit(1).after(failure("timeout", None), recovered=False).slots == 1


def test_after_an_outage_the_concurrency_limit_doubles_with_each_success():
    window, seen = ConcurrencyLimit(5), []
    for number in range(4):
        window = window.after(OK, recovered=number == 0)
        seen.append(window.slots)
    assert seen == [2, 4, 8, 8]
    assert not window.opening


def test_endpoint_queues_take_turns_and_none_exceeds_its_slots():
    sender = Sender()
    for number in range(1, 4):
        sender.queues.offer(EndpointKey(number, 1), 0)
    order = []
    while (queue := sender.queues.take(0)) is not None:
        order.append(queue.key.organization)
        sender.queues.start(queue, delivery(len(order)), None)
    assert order == [1, 2, 3, 1, 2, 3]
    sender.end_one(EndpointKey(2, 1))
    assert sender.fill() == {EndpointKey(2, 1): 1}


def test_busy_endpoints_leave_slots_to_those_that_have_none():
    """A hundred of ten organizations, each of which has earned eight: the next sixteen get one at once."""
    sender = Sender()

    def offer(number: int, endpoints: int) -> None:
        for endpoint in range(endpoints):
            sender.queues.offer(key := EndpointKey(number, endpoint), 0)
            queue = sender.queues.find(key)
            assert queue is not None
            queue.limit = ConcurrencyLimit(8)

    for number in range(10):
        offer(number, 10)
    busy = sender.fill()
    assert (len(busy), set(busy.values())) == (100, {2, 3})
    for number in range(10, 26):
        offer(number, 1)
        assert EndpointKey(number, 0) in sender.fill()
    one = EndpointKey(3, 3)
    for _ in range(busy[one]):
        sender.end_one(one)
    assert set(sender.fill()) == {one}, "the end of what it had brings it back"


def test_an_organization_has_32_slots_and_all_organizations_together_256():
    sender = Sender()
    for endpoint in range(10):
        sender.queues.offer(EndpointKey(1, endpoint), 0)
        queue = sender.queues.find(EndpointKey(1, endpoint))
        assert queue is not None
        queue.limit = ConcurrencyLimit(8)
    assert sender.fill().total() == ORGANIZATION_SLOTS
    sender.end_one(EndpointKey(1, 3))
    assert sender.fill().total() == 1
    for number in range(2, 400):
        sender.queues.offer(EndpointKey(number, 1), 0)
    sender.fill()
    assert sender.queues.in_flight == SLOTS


def offered(end: int, state: str) -> Sender:
    """A sender with a delivery for each of the endpoints from 1 to before `end`, which are all in this state."""
    sender = Sender()
    for number in range(1, end):
        sender.queues.offer(EndpointKey(number, 1), 0)
        queue = sender.queues.find(EndpointKey(number, 1))
        assert queue is not None
        setattr(queue, state, True)
    return sender


def test_failing_endpoints_have_one_slot_each_and_a_quarter_of_all():
    sender = offered(200, "failing")
    started = sender.fill()
    assert started.total() == FAILING_SLOTS
    assert set(started.values()) == {1}
    sender.queues.offer(EndpointKey(500, 1), 0)
    assert sender.fill() == {EndpointKey(500, 1): 2}, "a healthy one is not in their line"
    sender.end_one(next(iter(started)))
    assert sender.fill().total() == 1


def test_slow_endpoints_leave_slots_to_others_however_many_they_are():
    sender = offered(300, "slow")
    started = sender.fill()
    assert started.total() == SLOW_SLOTS
    sender.queues.offer(EndpointKey(500, 1), 0)
    assert sender.fill()[EndpointKey(500, 1)] > 0, "a fast one is not in their line"
    waiting = {EndpointKey(number, 1) for number in range(1, 300)} - started.keys()
    for one in list(started)[: len(waiting)]:
        sender.end_one(one)
        assert sender.fill().keys() & waiting
    assert not waiting - {queue.key for queue in sender.queues.all() if queue.in_flight}


def test_no_queue_starves_behind_two_limits_at_once():
    """Failing queues of full organizations, and failing queues of free ones behind them: all get their turn."""
    sender = Sender()
    for number in range(1, 60):
        for endpoint in range(10):
            sender.queues.offer(EndpointKey(number, endpoint), 0)
            queue = sender.queues.find(EndpointKey(number, endpoint))
            assert queue is not None
            queue.failing = endpoint % 2 == 0
            queue.limit = ConcurrencyLimit(8)
    served: set[EndpointKey] = set()
    for _ in range(4000):
        served |= set(sender.fill())
        key, oldest = sender.flying.popleft()
        queue = sender.queues.find(key)
        assert queue is not None
        sender.queues.end(queue, oldest)
    assert len(served) == 590


def test_a_queue_sleeps_until_it_is_due_and_an_earlier_offer_wakes_it():
    sender = Sender()
    sender.queues.offer(EndpointKey(1, 1), 500)
    assert sender.queues.take(499) is None
    assert sender.queues.wake_at_ms() == 500
    sender.queues.offer(EndpointKey(1, 1), 300)
    assert sender.queues.wake_at_ms() == 300
    queue = sender.queues.take(300)
    assert queue is not None
    sender.queues.wait(queue, 900)
    assert (sender.queues.take(899), sender.queues.wake_at_ms()) == (None, 900)
    assert sender.queues.take(900) is queue


def test_an_idle_queue_without_state_is_dropped():
    sender = Sender()
    sender.queues.offer(EndpointKey(1, 1), 0)
    queue = sender.queues.take(0)
    assert queue is not None
    sender.queues.start(queue, delivery(1), None)
    again = sender.queues.take(0)
    assert again is queue
    sender.queues.wait(again, None)
    assert sender.queues.all() == [queue]
    sender.queues.end(queue, delivery(1))
    assert sender.queues.all() == []
    assert sender.queues.take(10**15) is None


def test_the_time_between_probes_follows_how_long_the_outage_has_lasted_and_a_success_ends_them():
    """Decisions 17.7: however many attempts have failed meanwhile."""
    queue: EndpointQueue[None] = EndpointQueue(key=EndpointKey(1, 1))
    lasted_ms = {0: 5_000, 20_000: 5_000, 60_000: 5_000, 600_000: 50_000, HOUR_MS: 300_000, 7 * HOUR_MS: 300_000}
    for outage_ms, wait_ms in lasted_ms.items():
        result = failure()._replace(started_ms=10**6 + outage_ms, duration_ms=0)
        for _ in range(50):
            adjust_concurrency(queue, result, 1000, failing=True, failing_since_ms=10**6)
            assert queue.probe_at_ms - 1000 == wait_ms
    assert queue.slots == 1
    adjust_concurrency(queue, OK, 1000, failing=False, failing_since_ms=None)
    assert (queue.probe_at_ms, queue.slots) == (0, 2)


@pytest.mark.parametrize("outage_ms", [-1, -(10**12), 10**15])
def test_a_clock_that_jumps_moves_no_probe_beyond_its_bounds(outage_ms: int):
    assert PROBE_MS <= probe_after_ms(outage_ms) <= MAX_PROBE_MS


def test_a_queue_removed_while_it_sleeps_is_not_handed_out():
    sender = Sender()
    sender.queues.offer(EndpointKey(1, 1), 500)
    queue = sender.queues.find(EndpointKey(1, 1))
    assert queue is not None
    queue.limit, queue.failing = ConcurrencyLimit(8), True
    assert sender.queues.remove(EndpointKey(1, 1)) is queue
    assert sender.queues.all() == []
    assert sender.queues.remove(EndpointKey(1, 1)) is None
    assert sender.queues.take(500) is None
    assert sender.queues.wake_at_ms() is None


def test_a_queue_with_nothing_in_flight_is_dropped_when_nothing_waits():
    sender = Sender()
    sender.queues.offer(EndpointKey(1, 1), 0)
    queue = sender.queues.take(0)
    assert queue is not None
    sender.queues.wait(queue, None)
    assert sender.queues.all() == []


def test_a_queue_whose_attempt_ends_is_not_handed_out_before_it_is_due():
    sender = Sender()
    sender.queues.offer(EndpointKey(1, 1), 0)
    queue = sender.queues.take(0)
    assert queue is not None
    sender.queues.start(queue, delivery(1), None)
    assert sender.queues.take(0) is queue
    sender.queues.wait(queue, 900)
    sender.queues.end(queue, delivery(1))
    assert sender.queues.take(899) is None
    assert sender.queues.wake_at_ms() == 900
    assert sender.queues.take(900) is queue


def test_a_queue_whose_turn_came_before_the_clock_was_set_back_waits_for_it_again():
    sender = Sender()
    sender.queues.offer(EndpointKey(1, 1), 500)
    queue = sender.queues.take(500)
    assert queue is not None
    sender.queues.again(queue)
    assert sender.queues.take(400) is None
    assert sender.queues.wake_at_ms() == 500
    assert sender.queues.take(500) is queue


def test_an_unused_slot_of_failing_endpoints_goes_to_the_next_in_line():
    sender = Sender()
    for number in range(1, FAILING_SLOTS + 3):
        sender.queues.offer(EndpointKey(number, 1), 0)
        queue = sender.queues.find(EndpointKey(number, 1))
        assert queue is not None
        queue.failing = True
    started = sender.fill()
    first, second = EndpointKey(FAILING_SLOTS + 1, 1), EndpointKey(FAILING_SLOTS + 2, 1)
    assert started.keys().isdisjoint({first, second})
    sender.queues.remove(first)
    sender.end_one(EndpointKey(1, 1))
    ended = sender.queues.take(0)
    assert ended is not None
    assert ended.key == EndpointKey(1, 1)
    sender.queues.wait(ended, None)
    assert sender.fill() == {second: 1}


def test_an_endpoint_whose_attempts_end_early_gets_no_second_turn():
    """Where an organization is full, those that wait for a slot of it take turns."""
    sender = Sender()
    keys = [EndpointKey(1, endpoint) for endpoint in range(10)]
    for key in keys:
        sender.queues.offer(key, 0)
        queue = sender.queues.find(key)
        assert queue is not None
        queue.limit = ConcurrencyLimit(8)
    sender.fill()
    for _ in range(3):
        sender.end_one(keys[0])
        sender.fill()
    turns: Counter[EndpointKey] = Counter()
    for place in range(30):
        sender.end_one(max(keys, key=lambda key: (len(sender.queues.find(key).in_flight), key != keys[place % 10])))  # pyright: ignore[reportOptionalMemberAccess]
        turns += sender.fill()
    assert turns.total() == 30
    assert set(turns.values()) == {3}


def test_the_outage_state_is_determined_again_after_each_attempt():
    queue: EndpointQueue[None] = EndpointQueue(key=EndpointKey(1, 1), backlogged=True)
    adjust_concurrency(queue, failure(), 1000, failing=True, failing_since_ms=0)
    assert (queue.backlogged, queue.failing) == (False, True)


@pytest.mark.parametrize(("failures", "failing"), [(4, False), (5, True)])
def test_five_failures_in_a_row_are_an_outage(failures: int, failing: bool):
    assert is_failing(ENDPOINT, Health(failures=failures)) is failing
    assert is_failing(msgspec.structs.replace(ENDPOINT, status="failing"), Health())
