"""The time that schedules go by within one process."""

from __future__ import annotations

from svc.world import World

STEP_MS = 1_000
"""A wall clock that goes back by less has not been set: it runs a little slower."""


class SteadyClock:
    """Unix milliseconds of a wall clock that nobody sets back (decisions 17.1).

    It is the wall clock's time, and after that was set back as much more than before as the monotonic clock says: so
    nothing is put off. A clock that jumps ahead is followed, since what is stored by its time is due then. What is
    scheduled by this clock and stored may lie ahead of the wall clock for as long as the process lives.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._ms, self._at_s = world.now_ms(), world.elapsed_s()

    def now_ms(self) -> int:
        """The time now."""
        at_s, wall_ms = self._world.elapsed_s(), self._world.now_ms()
        expected_ms = self._ms + (at_s - self._at_s) * 1000
        if wall_ms > expected_ms - STEP_MS:
            self._ms, self._at_s = wall_ms, at_s
            return wall_ms
        return int(expected_ms)
