"""Decisions 17.3: which clock is believed."""

from __future__ import annotations

import pytest

from svc.kernel.values.ids import DAY_MS
from svc.kernel.work.clock import AHEAD_MS, BEHIND_MS, BELIEVED_AFTER_S, ClockWatch, seconds_behind

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
