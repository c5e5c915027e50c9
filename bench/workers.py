"""One worker and two on the same load, in turn: requests per second, latency, CPU and size of commits.

    python -m bench.workers [--rounds 5] [--seconds 6] [--devices 2000] [--one-network] [--kill-every 1]

Many devices are mostly first visits. Each comes from a network of its own, unless `--one-network`: the visitors of one
network are on one list, and two workers that meet new ones of it at the same time do the work of one again.

With `--kill-every S` one of the workers, chosen by seed, is killed so often. Clients then send what was cut off again,
and its time runs from when it was first sent.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from bench.identify import prepare, report_body
from bench.load import CLIENTS, Measured, one_address, own_address, requests, run
from bench.measures import cpu_s
from tests.support.process import Served


class Row(NamedTuple):
    measured: Measured
    cpu_us: float
    """CPU of parent and workers for each request, in microseconds."""

    @property
    def rate(self) -> float:
        return self.measured.requests / self.measured.seconds


class Running:
    """A service with so many workers over a directory of its own."""

    def __init__(self, directory: Path, workers: int) -> None:
        self.api_key = prepare(str(directory))
        self.workers = workers
        began = time.perf_counter()
        self.server = Served(directory, SVC_WORKERS=str(workers), SVC_LOG_REQUESTS="none")
        self.server.wait_until_said("serving", workers)
        self.started_s = time.perf_counter() - began

    def pids(self) -> list[int]:
        return self.server.workers() if self.workers > 1 else [self.server.pid]

    def cpu_s(self) -> float:
        """Of all its processes, those included that have died."""
        of_workers = map(cpu_s, self.pids()) if self.workers > 1 else ()
        return cpu_s(self.server.pid, with_ended=True) + sum(of_workers)

    def memory(self) -> str:
        """RSS and PSS of each worker, in MB."""
        found: list[str] = []
        for pid in self.pids():
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
            kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
            found.append(f"{kib['Rss'] / 1024:.0f}/{kib['Pss'] / 1024:.0f}")
        return ", ".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=6, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of measurements")
    parser.add_argument("--devices", type=int, default=2000)
    parser.add_argument("--kill-every", type=float, metavar="S", help="kill one of two workers so often")
    parser.add_argument("--one-network", action="store_true", help="all devices have the same address")
    options = parser.parse_args()
    bodies = [report_body(number, token=False) for number in range(options.devices)]
    counts = (2,) if options.kill_every else (1, 2)
    print(f"{CLIENTS} clients, {options.devices} devices, {options.rounds} rounds of {options.seconds:g} s each\n")
    print(f"{'workers':>8}{'req/s':>8}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}{'refused':>9}")
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        services = [Running(Path(folder, str(workers)), workers) for workers in counts]
        rows: dict[int, list[Row]] = {workers: [] for workers in counts}
        for number in range(options.rounds + 1):
            for service in services:
                row = _measure(service, bodies, options.seconds if number else 2.0, number, options)
                if number:  # the first round warms caches up
                    rows[service.workers].append(row)
                    measured = row.measured
                    print(
                        f"{service.workers:8}{row.rate:8.0f}{measured.p50_ms:9.2f}{measured.p99_ms:9.2f}"
                        f"{row.cpu_us:9.0f}{measured.refused:9}"
                    )
        for service in services:
            _tell_of(service)
    if len(counts) > 1:
        pairs = list(zip(rows[1], rows[2], strict=True))
        rate = statistics.median(two.rate / one.rate for one, two in pairs)
        cpu = statistics.median(two.cpu_us / one.cpu_us for one, two in pairs)
        print(f"\ntwo workers: {rate:.2f} x the requests of one, each for {cpu:.2f} x the CPU")


def _measure(service: Running, bodies: list[bytes], seconds: float, seed: int, options: argparse.Namespace) -> Row:
    kill_every = options.kill_every
    make = requests(service.api_key, bodies, seed, one_address if options.one_network else own_address)
    before, over = service.cpu_s(), threading.Event()
    killer = threading.Thread(target=_kill, args=(service, random.Random(seed), kill_every, over))
    if kill_every is not None:
        killer.start()
    try:
        measured = run(service.server.port, make, seconds, patient=kill_every is not None)
    finally:
        over.set()
        if kill_every is not None:
            killer.join()
            service.server.wait_for_workers(service.workers)
    return Row(measured, 1e6 * (service.cpu_s() - before) / measured.requests)


def _kill(service: Running, chance: random.Random, every_s: float, over: threading.Event) -> None:
    while not over.wait(every_s):
        os.kill(chance.choice(service.pids()), signal.SIGKILL)


def _tell_of(service: Running) -> None:
    memory = service.memory()
    service.server.terminate()
    stopped = service.server.said("stopped")
    commits, jobs, repeated = (sum(line[name] for line in stopped) for name in ("commits", "jobs", "repeated"))
    per_commit, again = jobs / max(commits, 1), repeated / max(jobs, 1)
    print(
        f"\n{service.workers} workers: {per_commit:.1f} requests per commit, {again:.1%} ran again, started in "
        f"{service.started_s:.1f} s, RSS/PSS of each in MB: {memory}"
    )


if __name__ == "__main__":
    main()
