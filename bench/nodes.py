"""Nodes on one PostgreSQL under load: rate, latency, and what an identification costs each side.

It starts a database with fsync, 1 to 3 nodes (`svc serve`) and, for a delay, a process between them (`bench.delay`),
and ends them all. Clients send visits of the web SDK over connections that they keep, each its next one when it has its
response. Every device has visited once before the measurement begins. Each cell has a new database.

    python -m bench.nodes [--quick] [--seconds S] [--devices N] [--nodes N...] [--organizations N...] [--delay MS...]

`--quick` tries the cells with few requests; the others choose some of them, and may be repeated. The delay is the round
trip to the database, beside what loopback takes; what it came to is measured, and printed.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import signal
import statistics
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec

from bench.delay import Delay, Late
from bench.load import Measured, run
from bench.measures import cpu_s, family
from bench.sdk_visits import SdkVisits
from bench.serving import prepare
from bench.usage import read_options
from svc.features.keys.command import issue_key
from svc.features.organizations.command import create_organization
from svc.kernel.config import Config
from svc.kernel.store.directory import open_directory
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.wire import Statement, Wire
from svc.kernel.store.postgresql.engine import UNLIMITED
from svc.world import World
from tests.support.postgresql import Cluster
from tests.support.process import Served

CLIENTS, MANY_CLIENTS = 32, 128
"""Of each node."""
DELAYS_MS = (0.0, 0.5, 2.0)
MANY = 32
"""Organizations."""
PINGS = 200
WITHIN_S = 1800
"""However many cells there are."""
DATABASE = ("shared_buffers=512MB", "max_wal_size=4GB", "log_checkpoints=off")
_SAMPLE = re.compile(r"^(svc_(?:database|store)_[^ ]+) ([^ ]+)$", re.MULTILINE)


class Cell(msgspec.Struct, frozen=True):
    """What is measured together. Without nodes, `workers` on LMDB."""

    nodes: int
    organizations: int
    delay_ms: float
    clients: int
    """In all."""
    workers: int = 0


class Sizes(NamedTuple):
    """How much is measured."""

    seconds: float
    devices: int


FULL, QUICK = Sizes(6.0, 2_000), Sizes(0.5, 64)


def cells() -> list[Cell]:
    """All of them: LMDB, then each delay with 1 to 3 nodes, one client, and many clients of one organization."""
    found = [Cell(0, 1, 0.0, workers * CLIENTS, workers) for workers in (1, 2)]
    for delay in DELAYS_MS:
        found += [Cell(nodes, some, delay, nodes * CLIENTS) for some in (1, MANY) for nodes in (1, 2, 3)]
        found += [Cell(1, 1, delay, 1), Cell(2, 1, delay, 2 * MANY_CLIENTS)]
    return found


class Bench:
    """What cells share: the database server, the visits and the delays. `close` ends what it has started."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._visits = SdkVisits(sizes.devices)
        self._world = World.real()
        self._cluster = Cluster(*DATABASE, durable=True)
        self._delays: dict[float, Delay] = {}
        self.late: dict[float, Late] = {}
        """By delay, when closed: by how much bytes came later than they should have."""

    def described(self) -> str:
        """What the database is."""
        ((version, fsync),) = self._cluster.execute(
            "select current_setting('server_version'), current_setting('fsync')"
        )
        return f"PostgreSQL {version}, fsync {fsync}, data in {self._cluster.directory.parent}; {os.cpu_count()} cores"

    def close(self) -> None:
        for delay_ms, delay in self._delays.items():
            delay.close()
            self.late[delay_ms] = delay.late
        self._delays.clear()
        self._cluster.close()

    def measure(self, cell: Cell) -> dict[str, Any]:
        """Start what a cell needs, load it, and end it."""
        with tempfile.TemporaryDirectory(prefix="svc-bench-") as name, ExitStack() as stack:
            if cell.workers:
                api_key = prepare(name)
                server = Served(Path(name), SVC_WORKERS=str(cell.workers), SVC_LOG_REQUESTS="none")
                stack.callback(server.kill_all, ())
                server.wait_until_said("serving", cell.workers)
                return self._loaded(cell, [api_key], [server], lambda: sum(map(cpu_s, family(server.pid))), None, 0.0)
            database = stack.enter_context(self._cluster.database())
            keys = self._organizations(Path(name), self._cluster.url(database), cell.organizations)
            delay = self._delay(cell.delay_ms, database) if cell.delay_ms else None
            url = self._cluster.url(database, None if delay is None else delay.port)
            nodes = stack.enter_context(_served(Path(name), url, cell.nodes))
            return self._loaded(
                cell, keys, nodes, lambda: sum(cpu_s(node.pid) for node in nodes), delay, round_trip_ms(url)
            )

    def _delay(self, delay_ms: float, database: str) -> Delay:
        """What the process itself takes is part of the delay."""
        if delay_ms not in self._delays:
            direct = round_trip_ms(self._cluster.url(database))
            idle = Delay(self._cluster.port, 0.0)
            own_ms = round_trip_ms(self._cluster.url(database, idle.port)) - direct
            idle.close()
            self._delays[delay_ms] = Delay(self._cluster.port, max(0.0, delay_ms - own_ms))
        return self._delays[delay_ms]

    def _organizations(self, directory: Path, url: StoreUrl, count: int) -> list[str]:
        """A production key of each, with enough credit, so that billing is part of the job."""
        world = self._world
        found = open_directory(directory, world.run_sync, world.entropy, database=url)
        keys: list[str] = []
        with closing(found.store):
            for number in range(count):
                one = create_organization(found, world, f"bench {number}", credit=10**12, rate_limit=0)
                _, key = issue_key(
                    found, world, organization=one.number, region=Config().region, kind="public", name="bench",
                    environment="production", platforms=("web",), allowed_origins=("https://shop.example",),
                )  # fmt: skip
                keys.append(key)
        return keys

    def _loaded(
        self,
        cell: Cell,
        keys: Sequence[str],
        servers: Sequence[Served],
        service_cpu_s: Callable[[], float],
        delay: Delay | None,
        trip_ms: float,
    ) -> dict[str, Any]:
        load = partial(run, [server.port for server in servers], clients=cell.clients)
        visits, devices = self._visits, self._sizes.devices
        first = load(visits.in_order(keys, 1), 60.0, most=devices, clients=min(cell.clients, devices // 2))
        make = visits.by_chance(keys, 2)
        before, used_before = _counted(servers), self._used(service_cpu_s, delay)
        measured = load(make, self._sizes.seconds)
        used = [after - then for after, then in zip(self._used(service_cpu_s, delay), used_before, strict=True)]
        counted = _counted(servers)
        counted.subtract(before)
        return _row(cell, measured, first.refused, used, counted, trip_ms)

    def _used(self, service_cpu_s: Callable[[], float], delay: Delay | None) -> list[float]:
        """Seconds of CPU so far of the service, the database, the load and the delay."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        return [
            service_cpu_s(),
            server_cpu_of(self._cluster),
            own.ru_utime + own.ru_stime,
            0.0 if delay is None else cpu_s(delay.pid),
        ]


def server_cpu_of(cluster: Cluster) -> float:
    """Seconds that the server and its sessions have used, those that have ended included."""
    return cpu_s(cluster.pid, with_ended=True) + sum(map(cpu_s, family(cluster.pid)[1:]))


FORMATS = {
    "nodes": "", "organizations": "", "delay ms": "g", "clients": "", "rate/s": ",.0f", "p50 ms": ".1f",
    "p99 ms": ".1f", "node ms": ".2f", "database ms": ".2f", "load ms": ".2f", "delay's ms": ".2f", "cores": ".2f",
    "inside": ".1f", "ping ms": ".2f", "group": ".1f", "trips": ".2f", "runs": ".2f", "retries": ".0f",
    "wait ms": ".1f", "commit ms": ".1f", "errors": "",
}  # fmt: skip
"""Column -> how its figure is shown."""


def _row(
    cell: Cell, measured: Measured, refused: int, used: Sequence[float], counted: Counter[str], trip_ms: float
) -> dict[str, Any]:
    """What a cell came to.

    From `node ms` on: CPU of each identification, in milliseconds. `cores`: that all of these kept busy. `inside`:
    requests on their way on average, by rate and latency, which are the clients if both are right. `group`:
    identifications in one; `trips` its round trips; `runs` those of a job. `wait ms`: until a group had its turn, and
    from then until it was on disk `commit ms`, on average.
    """
    made, rate = max(1, measured.requests), measured.requests / measured.seconds
    groups = counted["svc_database_groups_total"] or counted["svc_store_commits_total"]
    jobs = counted["svc_store_jobs_total"]
    figures = (
        str(cell.nodes) if cell.nodes else f"LMDB, {cell.workers}",
        cell.organizations,
        cell.delay_ms,
        cell.clients,
        rate,
        measured.p50_ms,
        measured.p99_ms,
        *(1000 * seconds / made for seconds in used),
        sum(used) / measured.seconds,
        rate * measured.mean_ms / 1000,
        trip_ms,
        jobs / max(1, groups),
        counted['svc_database_round_trips_total{of="groups"}'] / max(1, groups),
        counted["svc_database_job_runs_total"] / max(1, jobs),
        sum(count for name, count in counted.items() if name.startswith("svc_database_retries")),
        _mean_ms(counted, "svc_store_wait_seconds"),
        _mean_ms(counted, "svc_store_commit_duration_seconds"),
        measured.refused + refused,
    )
    return dict(zip(FORMATS, figures, strict=True))


def _mean_ms(counted: Counter[str], histogram: str) -> float:
    return 1000 * counted[f"{histogram}_sum"] / max(1, counted[f"{histogram}_count"])


@contextmanager
def _served(directory: Path, url: StoreUrl, count: int) -> Generator[list[Served]]:
    """So many nodes, started at the same time."""
    nodes: list[Served] = []

    def start(_: int) -> None:
        nodes.append(Served(directory, SVC_STORE=str(url), SVC_LOG_REQUESTS="none"))

    try:
        with ThreadPoolExecutor(count) as threads:
            list(threads.map(start, range(count)))
        yield nodes
    finally:
        for node in nodes:
            node.kill_all(())


def round_trip_ms(url: StoreUrl) -> float:
    """Of a statement that does nothing, median."""
    wire = Wire.connect_now(url, UNLIMITED)
    times: list[float] = []
    for _ in range(PINGS):
        began = time.perf_counter()
        wire.exchange_now([Statement(b"select 1")])
        times.append(time.perf_counter() - began)
    wire.close()
    return 1000 * statistics.median(times)


def _counted(servers: Sequence[Served]) -> Counter[str]:
    """What the metrics of the servers say about their stores, added up; of workers, one that responds says all."""
    counted: Counter[str] = Counter()
    for server in servers:
        address = server.said("serving")[0]["metrics"][0]
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as response:
            for name, value in _SAMPLE.findall(response.read().decode()):
                counted[name] += float(value)  # pyright: ignore[reportArgumentType]  a Counter adds up any numbers
    return counted


def main() -> None:
    options = read_options(__doc__)
    sizes = QUICK if options.quick else FULL
    sizes = Sizes(options.seconds or sizes.seconds, options.devices or sizes.devices)
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, _end)
    signal.alarm(WITHIN_S)
    _measure_all(Bench(sizes), _chosen(options))


def _measure_all(bench: Bench, chosen: Sequence[Cell]) -> None:
    """Prints each row when it is there."""
    try:
        print(bench.described(), end="\n\n")
        print("| " + " | ".join(FORMATS) + " |\n" + "|---:" * len(FORMATS) + "|", flush=True)
        for cell in chosen:
            row = bench.measure(cell)
            print("| " + " | ".join(format(row[name], form) for name, form in FORMATS.items()) + " |", flush=True)
    finally:
        bench.close()
    for delay_ms, late in bench.late.items():
        times = f"p50 {late.p50_ms:.2f}, p99 {late.p99_ms:.2f} ms"
        print(f"delay of {delay_ms:g} ms: {late.passed:,} passed on, late by {times}")


def _chosen(options: argparse.Namespace) -> list[Cell]:
    asked = (options.nodes, options.organizations, options.delay)
    return [
        cell
        for cell in cells()
        if all(not some or one in some for one, some in zip(msgspec.structs.astuple(cell), asked, strict=False))
    ]


def _end(number: int, _: object) -> NoReturn:
    raise SystemExit(f"ended by {signal.Signals(number).name}")


if __name__ == "__main__":
    main()
