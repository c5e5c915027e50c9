"""Which time a service stores, and whether the wall clock may be believed when something is to be deleted or somebody
blocked (decisions 17.1 to 17.3, ADR 185).

What may live here: comparisons of the wall clock with the monotonic one. Who waits for what is
`svc/features/retention/sweeper.py` and `store.py` beside this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from svc.kernel.store.installation import clock_confirmation
from svc.kernel.store.store import Store
from svc.kernel.values.ids import DAY_MS, HOUR_MS
from svc.world import World

AHEAD_MS = DAY_MS
"""A wall clock that is further ahead of the monotonic one has jumped."""
BELIEVED_AFTER_S = 3_600.0
"""A clock that has jumped and is still there after this time is right."""
BEHIND_MS = HOUR_MS
"""A service does not serve with a clock that is further behind the last write to its store."""
LEAD_MS = HOUR_MS
"""No time is stored that is further ahead of the steady clock."""


class ClockMemory(Protocol):
    """What workers share, in Unix ms, 0 = unknown: when the monotonic clock was zero, as believed; the last write."""

    def __getitem__(self, index: int, /) -> float: ...

    def __setitem__(self, index: int, value: float, /) -> None: ...


class ServiceClock:
    """The clock by which a service dates what it stores: the wall clock, as far as the monotonic one bears it out.

    A step ahead of more than `LEAD_MS` counts when it has stayed for `BELIEVED_AFTER_S`, or an operator has confirmed
    it: until then the time goes on steadily. One back is followed, unless the clock is then more than `BEHIND_MS`
    behind the last write: then the time goes on steadily as well, and nothing may be stored (`behind_s`).
    """

    def __init__(
        self,
        wall_ms: Callable[[], int],
        elapsed_s: Callable[[], float],
        memory: ClockMemory | None = None,
        *,
        written_ms: int | None = None,
        commits: Callable[[], int] = lambda: 0,
    ) -> None:
        """`written_ms`: when a correct clock last wrote to the store. `commits()`: those of this process."""
        self._wall_ms, self._elapsed_s, self._commits = wall_ms, elapsed_s, commits
        self._memory: ClockMemory = [0.0, 0.0] if memory is None else memory
        self._given_ms = wall_ms()
        self._memory[0] = self._memory[0] or self._given_ms - 1000 * elapsed_s()
        self._memory[1] = self._memory[1] or min(written_ms or 0, self._given_ms)
        self._noted = 0
        self._ahead_since_s: float | None = None
        self._ahead_ms = 0.0
        """By how much it was ahead then."""

    def now_ms(self) -> int:
        """Return the time to store, in Unix ms."""
        commits = self._commits()
        if commits != self._noted:  # commits have times that were given before, whatever the clock shows now
            self._noted, self._memory[1] = commits, max(self._memory[1], self._given_ms)
        wall_ms, at_s = self._wall_ms(), self._elapsed_s()
        ahead_ms = wall_ms - (self._memory[0] + 1000 * at_s)
        self._given_ms = wall_ms if self._is_believed(wall_ms, at_s, ahead_ms) else round(wall_ms - ahead_ms)
        return self._given_ms

    def _is_believed(self, wall_ms: int, at_s: float, ahead_ms: float) -> bool:
        if ahead_ms > 0:
            if self._ahead_since_s is None or abs(ahead_ms - self._ahead_ms) > LEAD_MS:  # or it has jumped again
                self._ahead_since_s, self._ahead_ms = at_s, ahead_ms
            if at_s - self._ahead_since_s < BELIEVED_AFTER_S:
                return ahead_ms <= LEAD_MS
        elif self._memory[1] - wall_ms > BEHIND_MS:
            return False
        self._believe(wall_ms, at_s)
        return True

    def behind_s(self) -> float:
        """Return the seconds by which the wall clock is behind the last write, if that is too far; else 0."""
        return seconds_behind(self._wall_ms(), int(self._memory[1]) or None)

    def is_doubted(self) -> bool:
        """Return whether the time to store is not that of the wall clock."""
        return abs(self._wall_ms() - self.now_ms()) > LEAD_MS or self.behind_s() > 0

    def believe(self) -> None:
        """Take the wall clock for the right time from now on."""
        self._believe(self._wall_ms(), self._elapsed_s())

    def _believe(self, wall_ms: int, at_s: float) -> None:
        self._memory[0] = wall_ms - 1000 * at_s
        self._memory[1] = min(self._memory[1], wall_ms + BEHIND_MS)
        self._ahead_since_s = None


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
            ahead_ms = -1.0  # the lead has lasted: it is the right time from now on
        elif confirmed:
            ahead_ms = -1.0
        if ahead_ms < 0:
            self._expected_ms, self._at_s = now_ms, at_s
        self._ahead_since_s = None
        return False


def seconds_behind(now_ms: int, last_write_ms: int | None) -> float:
    """Return the seconds by which the clock is too far behind the last write to start; 0 if it is not."""
    if last_write_ms is None or now_ms >= last_write_ms - BEHIND_MS:
        return 0.0
    return (last_write_ms - now_ms) / 1000


async def is_ahead(store: Store, world: World, watch: ClockWatch) -> bool:
    """Return whether the clock has jumped ahead, and no operator has confirmed it since; or whether the time by which
    rows would be deleted is still ahead of a clock that was set back meanwhile.
    """
    confirmation = await store.query(clock_confirmation)
    is_ahead = watch.is_ahead(world.wall_ms(), world.elapsed_s(), confirmation)
    return is_ahead or world.now_ms() - world.wall_ms() > LEAD_MS


STEP_MS = 1_000
"""A wall clock that goes back by less has not been set: it runs a little slower."""


class SteadyClock:
    """A clock in Unix milliseconds that is never set back (decisions 17.1). Where the wall clock is, it goes on at the
    rate of the monotonic clock, so that nothing is delayed. It follows a jump ahead, since what is stored by that time
    is due then. Its times may be ahead of the wall clock as long as the process lives.
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
