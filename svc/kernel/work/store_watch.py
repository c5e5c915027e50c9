"""What watches a store and its process: corrupt rows, lost stores, stale readers and event-loop lag.

A corrupt row fails the work for its own organization, and nothing else (decisions 17.5): an actor that works for all
organizations calls `CorruptRows.note` after a `CorruptionError`, and goes on with the next. Each fault is logged once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, Protocol

import structlog
import trio

from svc.kernel.limits.lasting import SAY_S
from svc.kernel.store import operations
from svc.kernel.store.engine import EngineError, StoreFullError, UnavailableError
from svc.kernel.store.installation import clock_confirmation
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.store import Store
from svc.kernel.values.histogram import WAIT_S, Histogram, HistogramStatistics
from svc.kernel.values.timestamps import timestamp
from svc.kernel.work.clock import ServiceClock

log = structlog.get_logger()


MAX_LOGGED = 10_000
"""Faults that are remembered; of a store with more, some are logged again."""


class CorruptRows:
    """The corrupt rows that were found since the start."""

    def __init__(self, texts: set[str] | None = None) -> None:
        """Collect in `texts` what is wrong with each row, for `MAX_LOGGED` of them."""
        self.found: Counter[str] = Counter()
        """How often corruption was found, by operation."""
        self._texts: set[str] = set() if texts is None else texts

    def note(self, doing: str, organization: int | None, error: CorruptionError) -> None:
        """Count a corrupt row that was met while `doing` something for an organization; log it the first time."""
        self.found[doing] += 1
        if str(error) not in self._texts:
            if len(self._texts) < MAX_LOGGED:
                self._texts.add(str(error))
            log.error("corrupt row", doing=doing, organization=organization, because=error.line)


INTERVAL_S = 1.0
STALLED_S = 10.0
"""A commit that takes longer has stalled; a leader that is silent for longer is blocked."""
PROBE_S = 5.0
"""After this long without a commit, an empty one is made: it takes the lock and does not sync."""
IDLE_S = 60.0
"""After this long without a commit, a write is tried: nothing else shows that a disk hangs or a table is locked."""


class Pulse(Protocol):
    """The heartbeats of all processes that serve the store; see `svc.workers.pulse.PulseBoard`."""

    def beat(self, index: int, now_s: float, commit_since_s: float | None) -> None:
        """Note that this process's loop runs."""

    def mark_leader(self, index: int, now_s: float) -> None:
        """Note that this process is the leader from now on."""

    def oldest_commit_s(self, now_s: float) -> float:
        """Return the age in seconds of the oldest commit that is under way."""
        ...

    def leader_silent_s(self, now_s: float) -> float:
        """Return the seconds since the leader's last heartbeat."""
        ...

    def silences_s(self, now_s: float) -> list[float]:
        """Return the seconds since the last heartbeat of each process."""
        ...


StoreState = Literal["ok", "failing", "stalled", "lost", "unreachable"]


class StoreWatch:
    """Watches the store for one process, and the clock by which it is written. `index`: the index of its worker; `date`
    is called with the time of the last write (Unix ms) where the machine's clock is not believed.
    """

    def __init__(
        self, store: Store, clock: ServiceClock, pulse: Pulse, index: int, date: Callable[[int], None] = lambda _: None
    ) -> None:
        self._store, self._clock, self._pulse, self._index, self._date = store, clock, pulse, index, date
        self._logged: StoreState = "ok"
        self._said_s = 0.0
        self._confirmation: int | None = None

    def state(self) -> StoreState:
        """Return the state of the store: `lost` if its file is not what was committed, `stalled` if a commit of any
        process takes longer than `STALLED_S`, `failing` if writes were tried for so long and none was stored,
        `unreachable` while the clock is far behind the last write, else `ok`.
        """
        if self._store.lost() is not None:
            return "lost"
        if self.oldest_commit_s() > STALLED_S:
            return "stalled"
        if self._store.health.is_failing():
            return "failing"
        return "unreachable" if self._clock.behind_s() else "ok"

    def may_commit(self) -> bool:
        """Return whether `state` is `ok`, without a system call: the file was last looked at within `INTERVAL_S`."""
        return (
            self._logged != "lost"
            and self.oldest_commit_s() <= STALLED_S
            and not self._store.health.is_failing()
            and not self._clock.behind_s()
        )

    def oldest_commit_s(self) -> float:
        """Return the age in seconds of the oldest commit that is under way in any process; 0 if there is none."""
        now_s = self._store.elapsed_s()
        since_s = self._store.commit_since_s
        return max(0.0 if since_s is None else now_s - since_s, self._pulse.oldest_commit_s(now_s))

    def is_leader_silent(self) -> bool:
        """Return whether the process that sends webhooks is blocked."""
        return self._pulse.leader_silent_s(self._store.elapsed_s()) > STALLED_S

    def silences_s(self) -> list[float]:
        """Return the seconds for which the loop of each process has not run."""
        return self._pulse.silences_s(self._store.elapsed_s())

    async def run(self) -> None:
        """Send a heartbeat every `INTERVAL_S` until cancelled; log changes of the state and ends of outages once."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._probe)
            nursery.start_soon(self._try_write)
            nursery.start_soon(self._note_commits)
            while True:
                self._pulse.beat(self._index, self._store.elapsed_s(), self._store.commit_since_s)
                await self.look_at_clock()
                state = self.state()
                self._log(state)
                if state == "ok" and not self._store.is_full:
                    self._store.outage.settle()
                await trio.sleep(INTERVAL_S)

    def _log(self, state: StoreState) -> None:
        now_s = self._store.elapsed_s()
        if state == self._logged and (state == "ok" or now_s - self._said_s < SAY_S):
            return
        self._logged, self._said_s = state, now_s
        if state == "lost":
            step = "put the file back or restore a backup, then restart the service"
            log.critical("the store's file is lost: nothing is stored", because=self._store.lost(), next_step=step)
        elif state == "stalled":
            age_s = round(self.oldest_commit_s(), 1)
            because = self._store.engine.why_stalled()
            log.critical("the store is stalled: a commit has not finished", seconds=age_s, because=because)
        elif state == "failing":
            health = self._store.health
            tried_s = round(health.unproven_s(), 1)
            log.critical("writes fail: nothing is stored", tried_s=tried_s, because=health.because)
        elif state == "unreachable":
            step = "set the clock, or run `svc retention confirm` if it is right"
            behind_s = round(self._clock.behind_s())
            log.critical("the clock is behind the last write: nothing is stored", seconds=behind_s, next_step=step)
        else:
            log.info("the store commits again")

    async def look_at_clock(self) -> None:
        """Note the time though nobody asks for it, and whether an operator confirmed a clock that is in doubt."""
        self._clock.now_ms()
        if not self._clock.is_doubted():
            self._confirmation = None
            return
        self._date(self._clock.now_ms())
        with suppress(EngineError):  # asked again in a second
            confirmation = await self._store.query(clock_confirmation)
            if self._confirmation is not None and confirmation != self._confirmation:
                self._clock.believe()
            self._confirmation = confirmation

    async def _probe(self) -> None:
        commits = -1
        while True:
            await trio.sleep(PROBE_S)
            if self._store.commits == commits and self._store.commit_since_s is None and self._store.lost() is None:
                try:
                    await self._store.probe()
                except (EngineError, StoreFullError) as error:
                    self._store.outage.stopped("probe", error)
            commits = self._store.commits

    async def _try_write(self) -> None:
        """Write each second after a write that failed, so that it is known when writes are stored again, and after
        `IDLE_S` without a commit.
        """
        store = self._store
        commits, since_s = store.commits, store.elapsed_s()
        while True:
            await trio.sleep(INTERVAL_S)
            if store.commits != commits:
                commits, since_s = store.commits, store.elapsed_s()
            is_idle = store.elapsed_s() - since_s >= IDLE_S
            if (is_idle or store.needs_trial_write) and store.lost() is None:
                with suppress(UnavailableError, StoreFullError):  # the health of the store has noted it
                    await store.try_write()
                since_s = store.elapsed_s()

    async def _note_commits(self) -> None:
        """Record commits beside the store, so that the next start and `svc check` detect an older file in its place."""
        while True:
            await trio.sleep(INTERVAL_S)
            with suppress(OSError):  # without it less is known, and nothing is lost
                await self._store.note_commit()


MAINTENANCE_INTERVAL_S = 60.0
BEHIND_MS = 60_000
"""If commits were not copied for this long, the follower is not running, or cannot write."""


async def maintain(store: Store, now_ms: Callable[[], int]) -> None:
    """Free the reader slots of processes that died, every `MAINTENANCE_INTERVAL_S` until cancelled: a forgotten reader
    makes the file grow without limit. Log if the follower of the operation log is behind or was cut off.
    """
    while True:
        await trio.sleep(MAINTENANCE_INTERVAL_S)
        freed = store.engine.clear_stale_readers()
        if freed:
            log.info("cleared stale readers", slots=freed)
        await _log_follower(store, now_ms())


async def _log_follower(store: Store, now_ms: int) -> None:
    following, behind_ms = await store.query(
        lambda snapshot: (operations.follower(snapshot), operations.behind_ms(snapshot, now_ms))
    )
    if following is None:
        return
    if following.lost_at_ms is not None:
        since, because = timestamp(following.lost_at_ms), following.lost_because
        log.error("nothing is being backed up: the follower was cut off", since=since, because=because)
    elif behind_ms >= BEHIND_MS:
        folder = following.destination
        log.warning("the backup is behind: is its follower running?", seconds=behind_ms // 1000, folder=folder)


LAG_INTERVAL_S = 0.1


class EventLoopLag:
    """Measures how late the event loop wakes a task that is due, as all others beside it."""

    def __init__(self) -> None:
        self._lag_s = Histogram(WAIT_S)

    async def run(self) -> None:
        """Measure every `LAG_INTERVAL_S` until cancelled."""
        while True:
            due = trio.current_time() + LAG_INTERVAL_S
            await trio.sleep_until(due)
            self._lag_s.observe(trio.current_time() - due)

    def statistics(self) -> HistogramStatistics:
        """Return the histogram of the lag since the start, in seconds."""
        return self._lag_s.statistics()
