"""What this service does beside the usual way to build one, in one run on one machine.

In turn, in rounds: FastAPI with PostgreSQL (`bench/peer`, which does less) with one and two processes, bare hypercorn +
quart-trio, an earlier checkout of this service, and this one with one and two workers. 32 keep-alive clients, `small`
reports of the web SDK after gzip (or others of `bench.reports.Kind`) with a client token, 70 % of devices that came
before, each in a network of its own, a production key, fresh idempotency keys. Each server runs alone, for each
measurement on a store of its own.

Other programs make every figure worse, and not by as much; the load average at the end says whether there were any.

    python3 -m venv /tmp/peer && /tmp/peer/bin/pip install -r bench/peer/requirements.txt
    python -m bench.compare --peer /tmp/peer/bin/python --before ../earlier [--report small|large|made-up]
                            [--seconds 6] [--rounds 5]

Without `--peer` or `--before` those are left out. Needs the programs of PostgreSQL for the peer.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.identify import ENVIRONMENT, Visits, free_port, prepare, wait_for
from bench.load import CLIENTS, run
from bench.measures import TICKS_PER_S
from bench.peer.database import database
from bench.reports import KINDS
from tests.support.process import PROGRAM

API_KEY = "peer-key"
ONE_WORKER = "1 worker"


class Running(NamedTuple):
    """A server under load."""

    port: int
    api_key: str
    roots: tuple[int, ...]
    """Process ids: their CPU and that of their descendants is the server's."""


class Row(NamedTuple):
    """One measurement, or the medians of several."""

    rate: float
    """Requests per second."""
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """Of all processes of the server, user and system, per request."""
    a_commit: float
    """Requests for each commit; not a number where the server does not say."""
    refused: float
    """Responses other than 200."""


Start = Callable[[ExitStack, Path], tuple[Running, Callable[[], list[dict[str, Any]]]]]
"""Starts a server in a directory until the stack is closed; what is returned beside it reads its log afterwards."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", help="a Python with bench/peer/requirements.txt")
    parser.add_argument("--before", type=Path, help="an earlier checkout of this service")
    parser.add_argument("--report", choices=KINDS, default="small")
    parser.add_argument("--workers", type=int, default=2, help="of the last measurement")
    parser.add_argument("--seconds", type=float, default=6, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--devices", type=int, default=5_000, help="that may come for the first time")
    parser.add_argument("--returning", type=float, default=0.7, help="share of devices that came before")
    parser.add_argument(
        "--without-tokens", action="store_true", help="reports without a client token; not for the peer"
    )
    options = parser.parse_args()
    visits = Visits.of(options.report, options.devices, token=not options.without_tokens)
    servers = _servers(options)
    print(
        f"{CLIENTS} clients, {visits.said}, {options.returning:.0%} returns, "
        f"{options.rounds} rounds of {options.seconds:g} s each\n"
    )
    print(f"{'':24}{'req/s':>8}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}{'a commit':>10}{'refused':>9}")
    rows: dict[str, list[Row]] = {name: [] for name in servers}
    for number in range(options.rounds):
        for name, start in servers.items():
            row = _measure(start, visits, options, seed=number)
            rows[name].append(row)
            print(_line(name, row), flush=True)
    _summary(rows)
    print(f"\nload average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, the load of this run included")


def _servers(options: argparse.Namespace) -> dict[str, Start]:
    servers: dict[str, Start] = {}
    if options.peer:
        servers["FastAPI, 1 process"] = partial(_peer, options.peer, 1)
        servers["FastAPI, 2 processes"] = partial(_peer, options.peer, 2)
    servers["bare front"] = _bare
    if options.before:
        servers["the version before"] = partial(_service, options.before, 1)
    servers[ONE_WORKER] = partial(_service, Path.cwd(), 1)
    if options.workers > 1:
        servers[f"{options.workers} workers"] = partial(_service, Path.cwd(), options.workers)
    return servers


def _measure(start: Start, visits: Visits, options: argparse.Namespace, seed: int) -> Row:
    with tempfile.TemporaryDirectory(prefix="svc-compare-") as directory, ExitStack() as stack:
        running, log = start(stack, Path(directory))
        make = visits.requests(running.api_key, seed, options.returning)
        run(running.port, make, min(2.0, options.seconds))  # warms caches up
        before = _cpu_s(running.roots)
        found = run(running.port, make, options.seconds)
        cpu_us = 1e6 * (_cpu_s(running.roots) - before) / found.requests
        stack.close()
        rate = found.requests / found.seconds
        return Row(rate, found.p50_ms, found.p99_ms, cpu_us, _a_commit(log()), found.refused)


def _a_commit(log: list[dict[str, Any]]) -> float:
    stopped = [entry for entry in log if entry.get("event") == "stopped"]
    commits = sum(entry["commits"] for entry in stopped)
    return sum(entry["jobs"] for entry in stopped) / commits if commits else math.nan


def _bare(stack: ExitStack, directory: Path) -> tuple[Running, Callable[[], list[dict[str, Any]]]]:
    port = free_port()
    pid, log = stack.enter_context(_process(directory, [sys.executable, "-m", "bench.bare", str(port)], Path.cwd()))
    wait_for(port)
    return Running(port, API_KEY, (pid,)), log


def _peer(
    python: str, processes: int, stack: ExitStack, directory: Path
) -> tuple[Running, Callable[[], list[dict[str, Any]]]]:
    digest = hashlib.sha256(API_KEY.encode()).digest()
    kept = stack.enter_context(database(directory / "postgres", free_port(), digest))
    port = free_port()
    options = ["--port", str(port), "--workers", str(processes), "--log-level", "warning", "--no-access-log"]
    command = [python, "-m", "uvicorn", "bench.peer.app:app", *options]
    pid, log = stack.enter_context(_process(directory, command, Path.cwd(), DSN=kept.dsn))
    wait_for(port)
    return Running(port, API_KEY, (pid, kept.pid)), log


def _service(
    checkout: Path, workers: int, stack: ExitStack, directory: Path
) -> tuple[Running, Callable[[], list[dict[str, Any]]]]:
    data = str(directory / "data")
    api_key = prepare(data, checkout)
    port = free_port()
    many = ["--workers", str(workers)] if workers > 1 else []
    command = [*PROGRAM, "serve", "--data", data, "--bind", f"127.0.0.1:{port}", *many]
    pid, log = stack.enter_context(_process(directory, command, checkout))
    wait_for(port)
    return Running(port, api_key, (pid,)), log


@contextmanager
def _process(
    directory: Path, command: list[str], cwd: Path, **environment: str
) -> Generator[tuple[int, Callable[[], list[dict[str, Any]]]]]:
    path = directory / "log"
    with path.open("w") as file:  # not a pipe: one that nobody reads stops the server when it is full
        process = subprocess.Popen(
            command, cwd=cwd, env={**ENVIRONMENT, **environment}, stdout=subprocess.DEVNULL, stderr=file
        )
        try:
            yield process.pid, lambda: [json.loads(line) for line in path.read_text().splitlines() if line[:1] == "{"]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


def _cpu_s(roots: tuple[int, ...]) -> float:
    """CPU seconds so far of these processes and their living descendants."""
    used: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(entry.name)
        children.setdefault(int(fields[1]), []).append(pid)
        used[pid] = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
    total, left = 0.0, list(roots)
    while left:
        pid = left.pop()
        total += used.get(pid, 0.0)
        left += children.get(pid, [])
    return total


def _line(name: str, row: Row) -> str:
    a_commit = "" if math.isnan(row.a_commit) else f"{row.a_commit:.1f}"
    times = f"{row.p50_ms:9.2f}{row.p99_ms:9.2f}{row.cpu_us:9.0f}"
    return f"{name:24}{row.rate:8.0f}{times}{a_commit:>10}{row.refused:9.0f}"


def _summary(rows: dict[str, list[Row]]) -> None:
    print("\nmedians:")
    for name, measured in rows.items():
        print(_line(name, _medians(measured)))
    reference, *others = rows
    pairs = [(name, reference) for name in others]
    pairs += [(name, ONE_WORKER) for name in others if name.endswith(" workers") and reference != ONE_WORKER]
    print("\nmedians of the ratios within a round:")
    for name, beside in pairs:
        ratio = _medians([_ratios(ours, theirs) for ours, theirs in zip(rows[name], rows[beside], strict=True)])
        print(
            f"{name} beside {beside}: {ratio.rate:.2f} x requests, {ratio.p99_ms:.2f} x p99, "
            f"{ratio.cpu_us:.2f} x CPU a request"
        )


def _ratios(ours: Row, theirs: Row) -> Row:
    return Row(*(one / other if other else math.nan for one, other in zip(ours, theirs, strict=True)))


def _medians(rows: list[Row]) -> Row:
    return Row(*map(statistics.median, zip(*rows, strict=True)))


if __name__ == "__main__":
    main()
