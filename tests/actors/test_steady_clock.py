"""The time that schedules go by, whatever the wall clock does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.work.watch.clock import STEP_MS, SteadyClock
from tests.support.worlds import EPOCH_MS, SettableClock, settable_world


def test_it_is_the_wall_clock_until_that_is_set_back():
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
def test_it_goes_at_least_as_fast_as_the_monotonic_clock(steps: list[tuple[int, int]]):
    wall = SettableClock()
    clock = SteadyClock(settable_world(wall))
    for set_by_ms, passed_ms in steps:
        before_ms = clock.now_ms()
        wall.now_ms += set_by_ms
        wall.advance(seconds=passed_ms / 1000)
        assert clock.now_ms() >= before_ms + passed_ms - STEP_MS
