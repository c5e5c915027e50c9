"""Several processes that identify over one store: how often they conflict, and how long each holds the writer's lock.

Each process assesses visits and commits them in groups, as a worker of the service does without HTTP: while one group
is on its way to the disk, the next is assessed. All write for one organization, the worst case, or each for its own.
In the end the store is checked: every sum is what its rows add up to.

    python -m bench.writers [--processes 2] [--groups 60] [--organizations 1] [--new 0] [--numbers-at-once 32] [--json]

`--new`: share of the visits that are a device's first; the others come from devices that were all there before.
`--numbers-at-once`: as of `VisitorNumbers`, 1 for none in advance.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import trio

from bench.reports import device_report, submission_of
from svc.features.checks.invariants import violations
from svc.features.identification.pipeline.visitor_index import ClassKey, Frequencies
from svc.features.identification.transaction import Recorded, identify
from svc.features.keys.command import issue_key
from svc.features.organizations.command import create_organization
from svc.identify.history.visitor_numbers import TAKEN_AT_ONCE, VisitorNumbers
from svc.identify.identification import Assessment, Submission, assess
from svc.identify.network_data.lookup import BuiltInRanges
from svc.identify.queries.learned import PRODUCTION
from svc.kernel.config import Config
from svc.kernel.store.directory import open_directory
from svc.kernel.store.engine import Engine, Writer
from svc.world import World
from tests.support.writes import writes

GROUP = 22
"""Identifications per commit, as measured with 32 clients."""
DEVICES = 660
"""Which have been here before."""
LOOKS = 1_000_003
"""Different devices that reports are made up for."""


class Timed:
    """An engine that notes how long each write waits for the lock and holds it, commit included, in seconds."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self.waited: list[float] = []
        self.held: list[float] = []
        self.put: list[float] = []
        """The part of `held` before the commit."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, group: Callable[[Writer], Any], /, **options: Any) -> Any:
        asked = time.perf_counter()

        def inside(writer: Writer) -> Any:
            got = time.perf_counter()
            self.waited.append(got - asked)
            try:
                return group(writer)
            finally:
                self.put.append(time.perf_counter() - got)
                self.held.append(-got)

        result = self._inner.write(inside, **options)
        self.held[-1] += time.perf_counter()
        return result


class Process:
    """One of the processes: visits of its organization, assessed and committed."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._world = World.real()
        self._found = open_directory(Path(options.worker), self._world.run_sync, self._world.entropy)
        self._timed = Timed(self._found.store.engine)
        self._found.store.engine = self._timed  # pyright: ignore[reportAttributeAccessIssue]  it does what the engine does
        self._frequencies = Frequencies(self._found.store)
        self._numbers = VisitorNumbers(options.numbers_at_once)
        self._options = options
        self._chance = random.Random(options.number)
        self._next_device = DEVICES + options.number * (LOOKS // options.processes)
        self._introduced = iter(range(options.number, DEVICES, options.processes))

    async def run(self) -> dict[str, Any]:
        """Introduce a share of the devices, wait for a line on standard input, then measure."""
        await self._groups(DEVICES // GROUP // self._options.processes + 1)
        print("ready", flush=True)
        sys.stdin.readline()
        for times in (self._timed.waited, self._timed.held, self._timed.put):
            times.clear()
        before = self._found.store.statistics()
        began, cpu = time.perf_counter(), time.process_time()
        await self._groups(self._options.groups)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        done = self._found.store.statistics()
        self._found.store.close()
        jobs = done.jobs - before.jobs
        return {
            "jobs": jobs,
            "again": getattr(done, "repeated", 0) - getattr(before, "repeated", 0),
            "seconds": seconds,
            "cpu_us": 1e6 * cpu / jobs,
            "waited_ms": _median_ms(self._timed.waited),
            "put_ms": _median_ms(self._timed.put),
            "held_ms": _median_ms(self._timed.held),
        }

    async def _groups(self, count: int) -> None:
        send, receive = trio.open_memory_channel[list[Assessment]](0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._assess, count, send)
            async for assessments in receive:
                await self._record(assessments)

    async def _assess(self, count: int, send: trio.MemorySendChannel[list[Assessment]]) -> None:
        async with send:
            for _ in range(count):
                group: list[Assessment] = []
                for _ in range(GROUP):
                    group.append(assess(self._visit(), BuiltInRanges()))
                    await trio.lowlevel.checkpoint()
                await send.send(group)

    async def _record(self, assessments: list[Assessment]) -> None:
        keys = [ClassKey(one.submission.organization, PRODUCTION, one.features.family) for one in assessments]
        handed_out = self._numbers.hand_out(key.organization for key in keys)
        jobs = [
            partial(
                identify, assessment=assessment, statistics=await self._frequencies.of(key), next_number=next_number
            )
            for key, assessment, next_number in zip(keys, assessments, handed_out, strict=True)
        ]
        outcomes = await self._found.store.write(writes(jobs), urgent=True)
        for key, next_number, recorded in zip(keys, handed_out, outcomes, strict=True):
            assert isinstance(recorded, Recorded), recorded
            await self._frequencies.learn(key, recorded)
            self._numbers.give_back(key.organization, next_number, recorded.new_number)

    def _visit(self) -> Submission:
        options = self._options
        device = next(self._introduced, None)
        if device is None:
            device = self._chance.randrange(DEVICES)
        if self._chance.random() < options.new:
            self._next_device += 1
            device = self._next_device
        organization = 1 + options.number % options.organizations
        return submission_of(self._world, organization, device, device_report(device % LOOKS))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """What each process measured, all at the same time, and what is wrong with the store in the end."""
    world = World.real()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        found = open_directory(Path(directory), world.run_sync, world.entropy)
        for number in range(options.organizations):
            organization = create_organization(found, world, f"bench {number}", credit=10**12, rate_limit=0)
            issue_key(
                found, world, organization=organization.number, region=Config().region, kind="public", name="bench",
                environment="production", allowed_origins=(),
            )  # fmt: skip
        found.store.close()
        rows = _run(options, directory)
        found = open_directory(Path(directory), world.run_sync, world.entropy)
        with found.store.read() as snapshot:
            wrong = list(violations(snapshot))
        found.store.close()
    return {"processes": rows, "violations": wrong}


def _run(options: argparse.Namespace, directory: str) -> list[dict[str, Any]]:
    common = ["--processes", str(options.processes)]
    common += [
        "--groups",
        str(options.groups),
        "--organizations",
        str(options.organizations),
        "--new",
        str(options.new),
        "--numbers-at-once",
        str(options.numbers_at_once),
    ]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.writers", "--worker", directory, "--number", str(number), *common],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(options.processes)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", "a process did not come up"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [json.loads(process.communicate(timeout=600)[0]) for process in processes]


def _median_ms(times: list[float]) -> float:
    return 1e3 * sorted(times)[len(times) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--groups", type=int, default=60, help=f"of {GROUP} identifications, by each process")
    parser.add_argument("--organizations", type=int, default=1)
    parser.add_argument("--new", type=float, default=0.0, help="share of first visits")
    parser.add_argument("--numbers-at-once", type=int, default=TAKEN_AT_ONCE, help="visitor numbers taken together")
    parser.add_argument("--json", action="store_true", help="every process, as JSON")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(trio.run(Process(options).run)))
        return
    found = measure(options)
    if options.json:
        print(json.dumps(found))
        return
    rows = found["processes"]
    jobs = sum(row["jobs"] for row in rows)
    print(f"{jobs / max(row['seconds'] for row in rows):.0f} identifications/s, ", end="")
    print(f"{sum(row['again'] for row in rows) / jobs:.1%} ran again")
    for row in rows:
        print("  ".join(f"{name} {row[name]:.2f}" for name in ("cpu_us", "waited_ms", "put_ms", "held_ms")))
    print("violations:", found["violations"] or "none")


if __name__ == "__main__":
    main()
