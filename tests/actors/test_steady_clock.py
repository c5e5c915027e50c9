"""The time that schedules go by, whatever the wall clock does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.work.clock import STEP_MS, ServiceClock, SteadyClock
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
