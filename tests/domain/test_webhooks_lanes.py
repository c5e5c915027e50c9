"""Slots and turns: who may send next (decisions 8.8), without clock, store or network."""

from __future__ import annotations

from collections import Counter, deque

import msgspec
import pytest

from svc.domain.webhooks.lanes import (
    CROWD,
    ENDPOINT_SLOTS,
    FAILING_SLOTS,
    LONGEST_PROBE_MS,
    ORGANIZATION_SLOTS,
    OUTAGE_FAILURES,
    PROBE_MS,
    SLOTS,
    Lane,
    Lanes,
    Window,
    is_failing,
    learn,
)
from svc.domain.webhooks.records import DeliveryKey, Endpoint, Health, LaneKey
from svc.domain.webhooks.schedule import Result

ENDPOINT = Endpoint(
    id="whk_1",
    url="https://receiver.example/",
    description="",
    environment="live",
    events=("webhook.test",),
    created_at_ms=0,
    secret_last4="abcd",
)
OK = Result(1, 0, 0, 10, 200, None)


def failure(error: str = "http_status", code: int | None = 500) -> Result:
    return Result(1, 0, 0, 10, code, error)  # pyright: ignore[reportArgumentType]


def delivery(number: int) -> DeliveryKey:
    return DeliveryKey(number.to_bytes(16), "auto")


class Sender:
    """Starts whatever may start, out of lanes that never run dry."""

    def __init__(self) -> None:
        self.lanes: Lanes[None] = Lanes()
        self.sent = 0
        self.flying: deque[tuple[LaneKey, DeliveryKey]] = deque()

    def fill(self, now_ms: int = 0) -> Counter[LaneKey]:
        started: Counter[LaneKey] = Counter()
        while (lane := self.lanes.take(now_ms)) is not None:
            self.lanes.start(lane, delivery(self.sent), None)
            self.flying.append((lane.key, delivery(self.sent)))
            self.sent += 1
            started[lane.key] += 1
        return started

    def end_one(self, key: LaneKey) -> None:
        lane = self.lanes.find(key)
        assert lane is not None
        self.lanes.end(lane, next(iter(lane.in_flight)))


def test_an_endpoint_starts_with_two_slots_and_earns_up_to_eight():
    window = Window()
    seen = [window.slots]
    for _ in range(200):
        window = window.after(OK, healed=False)
        seen.append(window.slots)
    assert seen[:21] == [2] * 20 + [3]
    assert seen.index(8) == 120
    assert max(seen) == 8


@pytest.mark.parametrize(
    ("result", "slots"),
    [
        (failure("timeout", None), 4),
        (failure(code=503), 4),
        (failure(code=429), 4),
        (failure(code=404), 8),
        (failure("connect_error", None), 8),
    ],
)
def test_a_timeout_a_5xx_and_a_429_halve_the_window(result: Result, slots: int):
    assert Window(8).after(result, healed=False).slots == slots
    assert Window(1).after(failure("timeout", None), healed=False).slots == 1


def test_after_an_outage_the_window_opens_by_doubling():
    window, seen = Window(5), []
    for number in range(4):
        window = window.after(OK, healed=number == 0)
        seen.append(window.slots)
    assert seen == [2, 4, 8, 8]
    assert not window.opening


def test_lanes_take_turns_and_none_has_more_than_its_slots():
    sender = Sender()
    for number in range(1, 4):
        sender.lanes.offer(LaneKey(number, 1), 0)
    order = []
    while (lane := sender.lanes.take(0)) is not None:
        order.append(lane.key.organization)
        sender.lanes.start(lane, delivery(len(order)), None)
    assert order == [1, 2, 3, 1, 2, 3]
    sender.end_one(LaneKey(2, 1))
    assert sender.fill() == {LaneKey(2, 1): 1}


def test_an_organization_has_32_slots_and_all_have_256():
    sender = Sender()
    for endpoint in range(10):
        sender.lanes.offer(LaneKey(1, endpoint), 0)
        lane = sender.lanes.find(LaneKey(1, endpoint))
        assert lane is not None
        lane.window = Window(8)
    assert sender.fill().total() == ORGANIZATION_SLOTS
    sender.end_one(LaneKey(1, 3))
    assert sender.fill().total() == 1
    for number in range(2, 400):
        sender.lanes.offer(LaneKey(number, 1), 0)
    sender.fill()
    assert sender.lanes.in_flight == SLOTS


def test_failing_endpoints_have_one_slot_each_and_a_quarter_of_all():
    sender = Sender()
    for number in range(1, 200):
        sender.lanes.offer(LaneKey(number, 1), 0)
        lane = sender.lanes.find(LaneKey(number, 1))
        assert lane is not None
        lane.failing = True
    started = sender.fill()
    assert started.total() == FAILING_SLOTS
    assert set(started.values()) == {1}
    sender.lanes.offer(LaneKey(500, 1), 0)
    assert sender.fill() == {LaneKey(500, 1): 2}, "a healthy one is not in their line"
    sender.end_one(next(iter(started)))
    assert sender.fill().total() == 1


def test_nobody_is_forgotten_behind_two_limits_at_once():
    """Failing lanes of full organizations, and failing lanes of free ones behind them: all get their turn."""
    sender = Sender()
    for number in range(1, 60):
        for endpoint in range(10):
            sender.lanes.offer(LaneKey(number, endpoint), 0)
            lane = sender.lanes.find(LaneKey(number, endpoint))
            assert lane is not None
            lane.failing = endpoint % 2 == 0
            lane.window = Window(8)
    served: set[LaneKey] = set()
    for _ in range(4000):
        served |= set(sender.fill())
        key, oldest = sender.flying.popleft()
        lane = sender.lanes.find(key)
        assert lane is not None
        sender.lanes.end(lane, oldest)
    assert len(served) == 590


def test_a_lane_sleeps_until_it_is_due_and_an_earlier_offer_wakes_it():
    sender = Sender()
    sender.lanes.offer(LaneKey(1, 1), 500)
    assert sender.lanes.take(499) is None
    assert sender.lanes.wake_at_ms() == 500
    sender.lanes.offer(LaneKey(1, 1), 300)
    assert sender.lanes.wake_at_ms() == 300
    lane = sender.lanes.take(300)
    assert lane is not None
    sender.lanes.wait(lane, 900)
    assert (sender.lanes.take(899), sender.lanes.wake_at_ms()) == (None, 900)
    assert sender.lanes.take(900) is lane


def test_a_lane_with_nothing_to_do_and_nothing_to_remember_is_dropped():
    sender = Sender()
    sender.lanes.offer(LaneKey(1, 1), 0)
    lane = sender.lanes.take(0)
    assert lane is not None
    sender.lanes.start(lane, delivery(1), None)
    again = sender.lanes.take(0)
    assert again is lane
    sender.lanes.wait(again, None)
    assert sender.lanes.all() == [lane]
    sender.lanes.end(lane, delivery(1))
    assert sender.lanes.all() == []
    assert sender.lanes.take(10**15) is None


def test_probes_of_an_outage_come_at_growing_distances_and_a_success_ends_them():
    lane: Lane[None] = Lane(key=LaneKey(1, 1))
    waits = []
    for _ in range(9):
        learn(lane, failure(), 1000, failing=True)
        waits.append(lane.probe_at_ms - 1000)
    assert waits[:3] == [PROBE_MS, 2 * PROBE_MS, 4 * PROBE_MS]
    assert waits[-1] == 300_000
    assert lane.slots == 1
    learn(lane, OK, 1000, failing=False)
    assert (lane.probes, lane.probe_at_ms, lane.slots) == (0, 0, 2)


def test_the_limits_are_those_of_the_decisions():
    """Decisions 8.8."""
    assert (SLOTS, ORGANIZATION_SLOTS, FAILING_SLOTS, ENDPOINT_SLOTS) == (256, 32, 64, 8)
    assert (OUTAGE_FAILURES, CROWD, PROBE_MS, LONGEST_PROBE_MS) == (5, 100, 5_000, 300_000)


def test_a_lane_that_is_forgotten_while_it_sleeps_is_not_handed_out():
    sender = Sender()
    sender.lanes.offer(LaneKey(1, 1), 500)
    lane = sender.lanes.find(LaneKey(1, 1))
    assert lane is not None
    lane.window, lane.failing = Window(8), True
    assert sender.lanes.forget(LaneKey(1, 1)) is lane
    assert sender.lanes.all() == []
    assert sender.lanes.forget(LaneKey(1, 1)) is None
    assert sender.lanes.take(500) is None
    assert sender.lanes.wake_at_ms() is None


def test_a_lane_with_nothing_in_flight_is_dropped_when_nothing_waits():
    sender = Sender()
    sender.lanes.offer(LaneKey(1, 1), 0)
    lane = sender.lanes.take(0)
    assert lane is not None
    sender.lanes.wait(lane, None)
    assert sender.lanes.all() == []


def test_a_lane_whose_attempt_ends_is_not_handed_out_before_it_is_due():
    sender = Sender()
    sender.lanes.offer(LaneKey(1, 1), 0)
    lane = sender.lanes.take(0)
    assert lane is not None
    sender.lanes.start(lane, delivery(1), None)
    assert sender.lanes.take(0) is lane
    sender.lanes.wait(lane, 900)
    sender.lanes.end(lane, delivery(1))
    assert sender.lanes.take(899) is None
    assert sender.lanes.wake_at_ms() == 900
    assert sender.lanes.take(900) is lane


def test_a_lane_whose_turn_came_before_the_clock_was_set_back_waits_for_it_again():
    sender = Sender()
    sender.lanes.offer(LaneKey(1, 1), 500)
    lane = sender.lanes.take(500)
    assert lane is not None
    sender.lanes.again(lane)
    assert sender.lanes.take(400) is None
    assert sender.lanes.wake_at_ms() == 500
    assert sender.lanes.take(500) is lane


def test_a_slot_of_failing_endpoints_that_the_first_in_line_does_not_use_goes_to_the_next():
    sender = Sender()
    for number in range(1, FAILING_SLOTS + 3):
        sender.lanes.offer(LaneKey(number, 1), 0)
        lane = sender.lanes.find(LaneKey(number, 1))
        assert lane is not None
        lane.failing = True
    started = sender.fill()
    first, second = LaneKey(FAILING_SLOTS + 1, 1), LaneKey(FAILING_SLOTS + 2, 1)
    assert started.keys().isdisjoint({first, second})
    sender.lanes.forget(first)
    sender.end_one(LaneKey(1, 1))
    ended = sender.lanes.take(0)
    assert ended is not None
    assert ended.key == LaneKey(1, 1)
    sender.lanes.wait(ended, None)
    assert sender.fill() == {second: 1}


def test_an_endpoint_whose_attempts_end_early_gets_no_second_turn_for_it():
    """Where an organization is full, those that wait for a slot of it take turns."""
    sender = Sender()
    keys = [LaneKey(1, endpoint) for endpoint in range(10)]
    for key in keys:
        sender.lanes.offer(key, 0)
        lane = sender.lanes.find(key)
        assert lane is not None
        lane.window = Window(8)
    sender.fill()
    for _ in range(3):
        sender.end_one(keys[0])
        sender.fill()
    turns: Counter[LaneKey] = Counter()
    for place in range(30):
        sender.end_one(max(keys, key=lambda key: (len(sender.lanes.find(key).in_flight), key != keys[place % 10])))  # pyright: ignore[reportOptionalMemberAccess]
        turns += sender.fill()
    assert turns.total() == 30
    assert set(turns.values()) == {3}


def test_what_is_known_of_an_outage_is_counted_anew_after_each_attempt():
    lane: Lane[None] = Lane(key=LaneKey(1, 1), crowded=True)
    learn(lane, failure(), 1000, failing=True)
    assert (lane.crowded, lane.failing, lane.probes) == (False, True, 1)


@pytest.mark.parametrize(("failures", "failing"), [(4, False), (5, True)])
def test_five_failures_in_a_row_are_an_outage(failures: int, failing: bool):
    assert is_failing(ENDPOINT, Health(failures=failures)) is failing
    assert is_failing(msgspec.structs.replace(ENDPOINT, status="failing"), Health())
