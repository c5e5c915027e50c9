"""One run: the whole service, its machine, its clients and receivers through a plan, and then a quiet phase.

    outcome = simulate(make_plan(7, SHORT), directory)

Everything is drawn from the plan's seed, so the same plan gives the same trace, byte for byte. After each step every
rule of the store is checked; at the end everything must have drained, and what was answered is held against what is
there (`model.py`).
"""

from __future__ import annotations

import hashlib
import logging
import random
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import structlog
import trio
import trio.testing

from svc.features.checks.invariants import RULES, violations
from svc.features.tables import TABLES
from svc.features.webhooks.tables import DUE
from svc.kernel.work import leader, store_watch
from tests.sim import final_check
from tests.sim.acts import Acts
from tests.sim.internet import Internet, Post, Receipt
from tests.sim.machine import DiskError, Machine, Sabotage, leaves
from tests.sim.model import Seen
from tests.sim.plan import HOUR_S, QUIET_HOURS, Jump, Plan, Scale, make_plan
from tests.sim.remembering import Remembering, Rows
from tests.support.simulation import seeded_scheduling

SOUND = Sabotage()
OFTEN_S, LOOKS_S = leader.INTERVAL_S, 60.0
"""Between two attempts of a worker to become the leader: while one may die, and when none does."""
BEAT_S = store_watch.STALLED_S / 2
"""Between two beats of the watch over the store: a commit that one of them has seen must be over at the next, long
before it counts as stalled. Each second, with a commit each five, they took a third of a simulation, and nothing hangs.
"""
DEATHS_S = 5.0
"""For so long after a step processes die of it."""


class Outcome(NamedTuple):
    trace: str
    """Digest of all that happened."""
    violations: list[str]
    counts: dict[str, int]
    """What there was of it: a run in which nothing happens shows nothing."""


def simulate(
    plan: Plan, directory: Path, *, sabotage: Sabotage = SOUND, tell: Callable[[str], None] | None = None
) -> Outcome:
    """Run a plan in an empty directory. `sabotage` breaks the service on purpose, `tell` hears the trace."""
    run = Simulation(plan, directory, sabotage, tell)
    try:
        with (
            seeded_scheduling(plan.seed),
            _heard(run.hear),
            patch.object(leader, "INTERVAL_S", OFTEN_S),
            patch.object(store_watch, "INTERVAL_S", BEAT_S),
            patch.object(store_watch, "PROBE_S", LOOKS_S),
        ):
            trio.run(run.run, clock=trio.testing.MockClock(autojump_threshold=0))
    except Exception as error:  # noqa: BLE001  a run that breaks off has failed, and others may follow it
        run.violations += [f"the run broke off: {''.join(traceback.format_exception(leaf))}" for leaf in leaves(error)]
    return Outcome(run.digest.hexdigest(), run.violations, run.counts())


def run_seed(
    seed: int, scale: Scale, workers: int = 1, tell: Callable[[str], None] | None = None
) -> tuple[int, Outcome]:
    """A seed's plan, in a directory of its own."""
    with tempfile.TemporaryDirectory() as directory:
        return seed, simulate(make_plan(seed, scale, workers), Path(directory), tell=tell)


class Simulation:
    def __init__(self, plan: Plan, directory: Path, sabotage: Sabotage, tell: Callable[[str], None] | None) -> None:
        self.plan = plan
        self.violations: list[str] = []
        self.digest = hashlib.blake2b(digest_size=8)
        self.seen: list[Seen] = []
        self._tell = tell
        self.internet = Internet(random.Random(f"internet {plan.seed}"), self._arrived)
        chance = random.Random(f"machine {plan.seed}")
        self.machine = Machine(directory, chance, self.internet, sabotage, plan.workers)
        self.acts = Acts(plan, self.machine, self.internet, self.trace)
        self._checked_life = 0
        self._rows: Rows = {}

    async def run(self) -> None:
        """To the end, or to the first violation."""
        async with trio.open_nursery() as nursery:
            self.internet.nursery = nursery
            nursery.start_soon(self.machine.run)
            await self.machine.up.wait()
            self.acts.open_shops()
            async with trio.open_nursery() as clients:
                self.acts.nursery = clients
                await self._take_steps()
                self.acts.calm_down()
                leader.INTERVAL_S = LOOKS_S
                clients.cancel_scope.deadline = trio.current_time() + (0 if self.violations else QUIET_HOURS * HOUR_S)
            if clients.cancel_scope.cancelled_caught and not self.violations:
                self.violations.append("somebody waits for an answer until the end")
            await self._drain()
            if not self.violations:
                self.violations += await final_check.find_violations(self)
            self.machine.stop()
            nursery.cancel_scope.deadline = trio.current_time() + 60
        self._close()

    def trace(self, line: str) -> None:
        """One more thing that happened."""
        line = f"{trio.current_time():.6f} {line}"
        self.digest.update(line.encode() + b"\n")
        if self._tell is not None:
            self._tell(line)

    def check(self) -> None:
        """The rules that hold at every moment."""
        self.violations += self.machine.faults + self.internet.illegal_dials
        self.machine.faults, self.internet.illegal_dials = [], []
        if not self.machine.up.is_set():
            return
        changed = sorted(self.machine.changed)
        self.machine.changed.clear()
        with self.machine.store.read() as fresh:
            snapshot = Remembering(fresh.reader, self._rows)
            self.violations += self.acts.lost(snapshot)
            if self.machine.lives != self._checked_life:
                self._checked_life = self.machine.lives
                self.violations += violations(snapshot)
                return
            for number in changed:
                for rule in RULES.values():
                    self.violations += rule(snapshot, number)

    def hear(self, logged: str, error: BaseException | None) -> None:
        """Whatever the service calls an error is one, unless the disk broke, or a clock was set back that was taken for
        right at a start (decisions 17.3).
        """
        if logged.startswith("the clock is behind the last write") and self._was_set_back:
            return
        if error is None or not all(isinstance(leaf, DiskError) for leaf in leaves(error)):
            self.violations.append(f"logged at {trio.current_time():.3f}: {logged} {error!r}")

    @property
    def _was_set_back(self) -> bool:
        return any(isinstance(step, Jump) and step.at <= trio.current_time() for step in self.plan.steps)

    def counts(self) -> dict[str, int]:
        changes = sum(len(follower.got) for follower in self.acts.following.followers.values())
        return self.acts.counts() | {"posts": len(self.seen), "lives": self.machine.lives, "changes": changes}

    async def _take_steps(self) -> None:
        for step in self.plan.steps:
            await self._rest(step.at)
            self.check()
            if self.violations:
                return
            self.trace(f"{step}")
            self.acts.take(step)
            self.acts.following.wake(self.acts.nursery)
        await trio.sleep(1)  # what the last ones do has begun

    async def _rest(self, until_s: float) -> None:
        """Until the next step. A worker tries to become the leader as often as outside while one may die: soon after a
        step. Four times a second in all the hours between took most of the time of a simulation.
        """
        leader.INTERVAL_S = OFTEN_S
        await trio.sleep_until(min(until_s, trio.current_time() + DEATHS_S))
        left_s = until_s - trio.current_time()
        looks = ceil(left_s / LOOKS_S)  # of which the last one is at the step
        leader.INTERVAL_S = max(OFTEN_S, left_s / looks) if looks > 0 else OFTEN_S
        await trio.sleep_until(until_s)

    async def _drain(self) -> None:
        """Without faults everything ends."""
        for seconds in (0.2, 2, 60, *[HOUR_S / 6] * 6 * QUIET_HOURS):
            if self.violations:
                return
            await trio.sleep(seconds)
            await self.machine.up.wait()
            self.check()
            with self.machine.store.read() as snapshot:
                if seconds > 60 and snapshot.count(DUE) == 0:  # not before those who look once a minute have looked
                    return
        self.violations.append(f"after {QUIET_HOURS} quiet hours there is still something to send")

    def _arrived(self, post: Post, receipt: Receipt) -> None:
        listening = self.acts.hooks.listening[post.path]
        one = Seen(trio.current_time(), self.machine.now_ms(), post, listening, receipt)
        self.seen.append(one)
        self.trace(f"{post.host}{post.path} {one.event_id} {post.headers['x-svc-signature']}")

    def _close(self) -> None:
        """What the store holds in the end belongs to the trace."""
        with self.machine.store.read() as snapshot:
            for table in TABLES:
                for row in snapshot.scan(table):
                    self.trace(f"{table.name} {row}")
        self.machine.store.close()


@contextmanager
def _heard(hear: Callable[[str, BaseException | None], None]) -> Generator[None]:
    """The log of the service, as far as it tells of errors."""

    def processor(_: Any, method: str, event: dict[str, Any]) -> Any:
        if method in ("error", "exception", "critical"):
            error = event.get("exc_info")
            hear(str(event["event"]), error if isinstance(error, BaseException) else sys.exc_info()[1])
        raise structlog.DropEvent

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            hear(record.getMessage(), record.exc_info[1] if record.exc_info else None)

    handler = Handler(logging.ERROR)
    edge = logging.getLogger("svc")
    edge.addHandler(handler)
    edge.propagate, before = False, edge.propagate
    structlog.configure(processors=[processor], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.reset_defaults()
        edge.removeHandler(handler)
        edge.propagate = before
