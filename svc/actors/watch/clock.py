"""Whether the wall clock may be believed when something is to be deleted or somebody blocked (decisions 17.3).

What may live here: the comparison of two clocks. Who reads them, and what waits, is `svc/actors/retention.py`.
"""

from __future__ import annotations

from svc.domain.events.hour_counts import HOUR_MS
from svc.domain.ids import DAY_MS
from svc.store.store import Store
from svc.store.transactions.retention import clock_confirmation
from svc.world import World

AHEAD_MS = DAY_MS
"""A wall clock that is further ahead of the monotonic one has jumped."""
BELIEVED_AFTER_S = 3_600.0
"""A clock that has jumped and is still there after this time is right."""
BEHIND_MS = HOUR_MS
"""A service does not start with a clock that is further behind the last write to its store."""


class ClockWatch:
    """Detects a wall clock that has jumped ahead, by comparing it with its earlier time plus the monotonic time that
    has passed. `expected_ms`: the least that a correct clock shows now (Unix ms): its own time, or that of the last
    write to the store.
    """

    def __init__(self, expected_ms: int, at_s: float) -> None:
        self._expected_ms, self._at_s = expected_ms, at_s
        self._ahead_since_s: float | None = None
        self._ahead_ms = 0.0
        """By how much it was ahead then."""
        self._confirmation: int | None = None

    def is_ahead(self, now_ms: int, at_s: float, confirmation: int = 0) -> bool:
        """Return whether the clock has jumped ahead, so that nothing may be deleted. `at_s`: the monotonic time; a
        `confirmation` that has changed since the last call means that an operator confirmed the clock.
        """
        confirmed = self._confirmation is not None and confirmation != self._confirmation
        self._confirmation = confirmation
        ahead_ms = now_ms - self._expected_ms - (at_s - self._at_s) * 1000
        if ahead_ms > AHEAD_MS and not confirmed:
            if self._ahead_since_s is None or abs(ahead_ms - self._ahead_ms) > AHEAD_MS:  # or it has jumped again
                self._ahead_since_s, self._ahead_ms = at_s, ahead_ms
            if at_s - self._ahead_since_s < BELIEVED_AFTER_S:
                return True
            ahead_ms = -1.0  # it stayed: from now on this is the time
        elif confirmed:
            ahead_ms = -1.0
        if ahead_ms < 0:
            self._expected_ms, self._at_s = now_ms, at_s
        self._ahead_since_s = None
        return False


def seconds_behind(now_ms: int, last_write_ms: int | None) -> float:
    """Return the seconds by which the clock is too far behind the last write to the store for a start; 0 if it is not,
    or nothing was ever written.
    """
    if last_write_ms is None or now_ms >= last_write_ms - BEHIND_MS:
        return 0.0
    return (last_write_ms - now_ms) / 1000


async def is_ahead(store: Store, world: World, watch: ClockWatch) -> bool:
    """Return whether the clock has jumped ahead, and no operator has confirmed it since."""
    confirmation = await store.query(clock_confirmation)
    return watch.is_ahead(world.now_ms(), world.elapsed_s(), confirmation)


STEP_MS = 1_000
"""A wall clock that goes back by less has not been set: it runs a little slower."""


class SteadyClock:
    """A clock in Unix milliseconds that is never set back (decisions 17.1).

    It shows the wall clock's time; after the wall clock was set back, it continues from its own time at the rate of the
    monotonic clock, so that nothing is delayed. It follows a wall clock that jumps ahead, since what is stored by that
    time is due then. Times that are scheduled by this clock and stored may be ahead of the wall clock as long as the
    process lives.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._ms, self._at_s = world.now_ms(), world.elapsed_s()

    def now_ms(self) -> int:
        """Return the present time in Unix ms."""
        at_s, wall_ms = self._world.elapsed_s(), self._world.now_ms()
        expected_ms = self._ms + (at_s - self._at_s) * 1000
        if wall_ms > expected_ms - STEP_MS:
            self._ms, self._at_s = wall_ms, at_s
            return wall_ms
        return int(expected_ms)
