"""Decisions 17.3: the time that schedules go by whatever the wall clock does, and which clock is believed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.values.ids import DAY_MS
from svc.kernel.work.clock import (
    AHEAD_MS,
    BEHIND_MS,
    BELIEVED_AFTER_S,
    STEP_MS,
    ClockWatch,
    ServiceClock,
    SteadyClock,
    seconds_behind,
)
from tests.support.worlds import EPOCH_MS, SettableClock, settable_world


def test_the_steady_clock_is_the_wall_clock_until_that_is_set_back():
    wall = SettableClock()
    clock = SteadyClock(settable_world(wall))
    wall.advance(seconds=5)
    assert clock.now_ms() == wall.now_ms
    wall.now_ms += 86_400_000
    assert clock.now_ms() == wall.now_ms, "one that jumps ahead is followed"
    before_ms = clock.now_ms()
    wall.now_ms = EPOCH_MS
    wall.advance(seconds=7)
    assert clock.now_ms() == before_ms + 7_000


@given(st.lists(st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 10**6)), max_size=50))
def test_the_steady_clock_goes_at_least_as_fast_as_the_monotonic_one(steps: list[tuple[int, int]]):
    wall = SettableClock()
    clock = SteadyClock(settable_world(wall))
    for set_by_ms, passed_ms in steps:
        before_ms = clock.now_ms()
        wall.now_ms += set_by_ms
        wall.advance(seconds=passed_ms / 1000)
        assert clock.now_ms() >= before_ms + passed_ms - STEP_MS


class Machine:
    """A wall clock that can be set, beside a monotonic one, and a store that counts its commits."""

    def __init__(self) -> None:
        self.wall_ms, self.at_s, self.commits = EPOCH_MS, 1_000.0, 0

    def clock(self, memory: list[float] | None = None, written_ms: int | None = None) -> ServiceClock:
        return ServiceClock(
            lambda: self.wall_ms, lambda: self.at_s, memory, written_ms=written_ms, commits=lambda: self.commits
        )

    def passes(self, seconds: float) -> None:
        self.at_s += seconds
        self.wall_ms += int(1000 * seconds)


YEAR_MS = 365 * 86_400_000


def test_a_clock_that_is_set_back_right_after_the_first_write_is_not_followed():
    """Decisions 17.3: nobody has looked at the clock between the write and the step."""
    machine = Machine()
    clock = machine.clock()
    clock.now_ms()
    machine.commits = 1
    machine.wall_ms -= YEAR_MS
    machine.at_s += 0.5
    assert (clock.now_ms(), clock.behind_s()) == (EPOCH_MS + 500, YEAR_MS / 1000)
    machine.wall_ms += YEAR_MS
    machine.passes(1)
    assert (clock.now_ms(), clock.behind_s()) == (machine.wall_ms, 0)


def test_a_clock_that_is_set_back_before_this_process_wrote_is_measured_by_the_last_write_before():
    machine = Machine()
    clock = machine.clock(written_ms=EPOCH_MS - 60_000)
    machine.passes(30)
    machine.wall_ms -= YEAR_MS
    assert clock.behind_s() > 364 * 86_400
    assert clock.now_ms() == EPOCH_MS + 30_000


def test_without_any_write_a_clock_that_is_set_back_is_followed():
    machine = Machine()
    clock = machine.clock()
    clock.now_ms()
    machine.wall_ms -= YEAR_MS
    assert (clock.now_ms(), clock.behind_s()) == (machine.wall_ms, 0)


def test_a_start_with_a_clock_that_was_confirmed_goes_by_it():
    """The last write was made by a clock that was ahead: who started the service has said so."""
    machine = Machine()
    clock = machine.clock(written_ms=EPOCH_MS + YEAR_MS)
    assert (clock.now_ms(), clock.behind_s()) == (EPOCH_MS, 0)


def test_a_worker_that_takes_the_place_of_another_knows_its_last_write():
    machine, memory = Machine(), [0.0, 0.0]
    first = machine.clock(memory)
    first.now_ms()
    machine.commits = 1
    machine.passes(1)
    first.now_ms()
    machine.commits = 0
    second = machine.clock(memory)
    machine.wall_ms -= YEAR_MS
    assert second.behind_s() > 0


# Decisions 17.3: which clock is believed


START_MS = 1_790_000_000_000


def test_a_clock_that_runs_with_the_monotonic_one_is_believed_for_years():
    watch = ClockWatch(START_MS, 5.0)
    for day in range(1000):
        assert not watch.is_ahead(START_MS + day * DAY_MS, 5.0 + day * 86_400)


@pytest.mark.parametrize(("ahead_ms", "held"), [(AHEAD_MS, False), (AHEAD_MS + 1, True), (400 * DAY_MS, True)])
def test_a_jump_of_more_than_a_day_is_held_for_an_hour_and_then_believed(ahead_ms: int, held: bool):
    watch = ClockWatch(START_MS, 0.0)
    assert watch.is_ahead(START_MS + ahead_ms, 0.0) is held
    later_s = BELIEVED_AFTER_S - 1
    assert watch.is_ahead(START_MS + ahead_ms + int(later_s * 1000), later_s) is held
    assert not watch.is_ahead(START_MS + ahead_ms + int(BELIEVED_AFTER_S * 1000), BELIEVED_AFTER_S)
    assert not watch.is_ahead(START_MS + ahead_ms + DAY_MS, 86_400.0), "it is the time now"
    assert watch.is_ahead(START_MS + 2 * ahead_ms + 2 * DAY_MS, 86_401.0), "and the next jump is another"


def test_a_clock_that_comes_back_is_believed_at_once_and_a_second_jump_waits_its_own_hour():
    watch = ClockWatch(START_MS, 0.0)
    assert watch.is_ahead(START_MS + 40 * DAY_MS, 60.0)
    assert not watch.is_ahead(START_MS + 120_000, 120.0)
    assert watch.is_ahead(START_MS + 40 * DAY_MS, 180.0)
    assert watch.is_ahead(START_MS + 40 * DAY_MS + 3_000_000, 180.0 + BELIEVED_AFTER_S - 1)


def test_a_clock_that_was_set_back_is_the_measure_of_the_next_jump():
    watch = ClockWatch(START_MS, 0.0)
    assert not watch.is_ahead(START_MS - 400 * DAY_MS, 60.0)
    assert watch.is_ahead(START_MS, 120.0), "right again, which nobody knows: an hour, or the operator"
    assert not watch.is_ahead(START_MS, 130.0, confirmation=1)
    assert not watch.is_ahead(START_MS + 10_000, 140.0, confirmation=1)


def test_a_start_more_than_a_day_after_the_last_write_is_held():
    watch = ClockWatch(START_MS, 0.0)
    assert watch.is_ahead(START_MS + 3 * DAY_MS, 0.0)


def test_how_far_behind_the_last_write_a_start_is():
    assert seconds_behind(START_MS, None) == 0
    assert seconds_behind(START_MS, START_MS + BEHIND_MS) == 0
    assert seconds_behind(START_MS, START_MS + BEHIND_MS + 1000) == 3601


def test_a_clock_that_jumps_again_while_it_is_not_believed_begins_another_hour():
    """Held after a start since nobody knew that it was right: the hour says nothing of what it shows then."""
    watch = ClockWatch(START_MS - 400 * DAY_MS, 0.0)
    assert watch.is_ahead(START_MS, 0.0)
    late_s = BELIEVED_AFTER_S - 600
    assert watch.is_ahead(START_MS + 400 * DAY_MS, late_s)
    assert watch.is_ahead(START_MS + 400 * DAY_MS + 900_000, late_s + 900), "an hour after the start"
    assert watch.is_ahead(START_MS + 1_800_000, late_s + 1_800), "right again, and another jump"
    assert not watch.is_ahead(START_MS + 1_800_000 + 3_600_000, late_s + 1_800 + BELIEVED_AFTER_S)
