"""Months of virtual time at a constant rate: the real transaction, the real sweeper, a clock that is set.

Devices come back and now and then a new one comes; each visit is a report of some kilobytes, a part of them with a
deferred report, an `Idempotency-Key` or a challenge. The sweeper runs each virtual hour, as it would each minute.

    python -m bench.retention [--days 90] [--visits-an-hour 4]
"""

from __future__ import annotations

import logging
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from uuid import UUID

import structlog
import trio

from bench.reports import device_report, identified, submitted
from bench.usage import read_options
from svc.features.events.change_jobs import supplement
from svc.features.organizations.jobs import create_organization
from svc.features.retention.jobs import PASS_INTERVAL_MS
from svc.features.retention.sweeper import sweep
from svc.identify.events.archive import deflate
from svc.identify.identification import Submission
from svc.identify.matching import Statistics
from svc.identify.model import RequestFacts
from svc.identify.recording.proofs import issue_challenge
from svc.identify.records import DeferredReport
from svc.identify.tables import EVENTS
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.jobs import add_credit
from svc.kernel.values.ids import DAY_MS
from svc.world import World
from tests.support.worlds import Everywhere

EPOCH_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z, when virtual time begins."""
HOUR_MS = 3_600_000


class Day(NamedTuple):
    """What the store is like at the end of a day."""

    day: int
    used_bytes: int
    """The file, its free pages included."""
    events: int


class Months:
    """One organization's traffic. `visits_an_hour` identifications, every hour of every day."""

    def __init__(
        self,
        directory: Path,
        *,
        visits_an_hour: int,
        devices: int = 200,
        durable: bool = False,
        seed: int = 1,
        map_bytes: int = 1 << 30,
    ) -> None:
        self._chance = random.Random(seed)
        self.at_ms = EPOCH_MS
        self._world = World(lambda: self.at_ms, self._chance.randbytes, self._commit)
        self.steps_ms: list[float] = []
        """How long each commit of the sweeper took."""
        self._statistics = Statistics()
        self._visits_an_hour = visits_an_hour
        self._devices = devices
        self._visits = 0
        self.found: Opened = open_directory(
            directory, self._world.run_sync, self._world.entropy, durable=durable, map_bytes=map_bytes
        )
        self.found.store.write_now([prepare])

    async def run(
        self, days: int, *, visitor_days: int = 365, look: Callable[[Snapshot, int], None] = lambda _, __: None
    ) -> list[Day]:
        """Live through so many days; `look` at the store and the time after each day's last sweep."""
        told: list[Day] = []
        for day in range(days):
            for hour in range(24):
                for visit in range(self._visits_an_hour):
                    self.at_ms = EPOCH_MS + day * DAY_MS + hour * HOUR_MS + visit * HOUR_MS // self._visits_an_hour
                    self.visit()
                self.at_ms = EPOCH_MS + day * DAY_MS + (hour + 1) * HOUR_MS
                with_passes = (hour + 1) * HOUR_MS % PASS_INTERVAL_MS == 0
                await sweep(self.found.store, self.at_ms, visitor_days, with_passes=with_passes)
            with self.found.store.read() as snapshot:
                look(snapshot, self.at_ms)
                events = snapshot.count(EVENTS)
            told.append(Day(day + 1, self.found.store.statistics().used_bytes, events))
        return told

    def visit(self) -> None:
        """One identification at the present time, and what now and then comes with it."""
        submission = self._submission()
        identified(self.found.store, [submission], Everywhere(), self._statistics)
        jobs: list[Callable[[Transaction], Any]] = []
        if self._visits % 4 == 0:
            jobs.append(
                partial(
                    supplement, number=1, request_id=submission.request_id, report=deferred(self._chance, self.at_ms)
                )
            )
        if self._visits % 8 == 0:
            challenge = self._world.entropy(32)
            jobs.append(
                partial(issue_challenge, number=1, key_id="key_x", challenge=challenge, now_ms=submission.at_ms)
            )
        outcomes = self.found.store.write_now(jobs)
        assert not any(isinstance(outcome, Exception) for outcome in outcomes), outcomes

    async def _commit(self, function: Callable[[], Any], /, **_: Any) -> Any:
        await trio.lowlevel.checkpoint()
        began = time.perf_counter()
        outcome = function()
        self.steps_ms.append((time.perf_counter() - began) * 1000)
        return outcome

    def _submission(self) -> Submission:
        self._visits += 1
        is_new = self._chance.random() < 0.02
        device = self._visits + self._devices if is_new else self._chance.randrange(self._devices)
        signals = {
            **device_report(device),
            "client_token": f"{device:032x}",
            "nonce": self._chance.randbytes(8).hex(),
            "more": random.Random(device).randbytes(50 + device % 1_500).hex(),
        }
        return submitted(
            self._world,
            signals,
            RequestFacts(ip=f"81.2.{device % 200}.{device % 250}"),
            sdk_version="1.0",
            origin="https://shop.example",
            tag=f"order {self._visits}",
            idempotency=self._chance.randbytes(16) if self._visits % 2 else None,
        )


def deferred(chance: random.Random, at_ms: int) -> DeferredReport:
    """One of 300 bytes that do not compress."""
    signals = deflate(chance.randbytes(300))
    own = {"digest": chance.randbytes(16), "received_at_ms": at_ms}
    return DeferredReport(signals=signals, sdk_platform="web", sdk_version="1.0", **own)


def prepare(transaction: Transaction) -> None:
    create_organization(transaction, organization_id="org_x", name="x", now_ms=EPOCH_MS, rate_limit_per_s=0)
    add_credit(transaction, 1, entry_id=UUID(int=0), micros=10**12, now_ms=EPOCH_MS, note="")


def main() -> None:
    options = read_options(__doc__)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with TemporaryDirectory(prefix="svc-bench-") as directory:
        months = Months(Path(directory), visits_an_hour=options.visits_an_hour, durable=True)
        days = trio.run(partial(months.run, options.days))
        months.found.store.close()
    print("day   events   file MB   of day 31")
    steady = days[min(30, len(days) - 1)].used_bytes
    for day, used_bytes, events in days:
        if day % 5 == 0 or day == 31:
            print(f"{day:3}   {events:6}   {used_bytes / 1e6:7.2f}   {used_bytes / steady:9.3f}")
    steps = statistics.quantiles(months.steps_ms, n=100)
    print(
        f"\n{len(months.steps_ms)} commits of the sweeper, ms: median {steps[49]:.2f}, p99 {steps[98]:.2f}, "
        f"longest {max(months.steps_ms):.2f}"
    )


if __name__ == "__main__":
    main()
