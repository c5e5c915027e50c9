"""What this service does beside the usual way to build one, in one run on one machine.

In turn, in rounds: FastAPI with PostgreSQL (`bench/peer`, which does less) with one and two processes, bare hypercorn +
quart-trio, an earlier checkout of this service, and this one with one and two workers. 32 keep-alive clients, 2 kB
reports, fresh idempotency keys; each server runs alone, on a store of its own that the rounds fill.

    python3 -m venv /tmp/peer && /tmp/peer/bin/pip install -r bench/peer/requirements.txt
    python -m bench.compare --peer /tmp/peer/bin/python --before ../earlier [--seconds 6] [--rounds 5]

Without `--peer` or `--before` those are left out. Needs the programs of PostgreSQL for the peer.
"""

from __future__ import annotations

import argparse
import hashlib
import json
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

from bench.identify import ENVIRONMENT, TICKS_PER_S, free_port, prepare, report_body, wait_for
from bench.load import CLIENTS, Measured, requests, run
from bench.peer.database import database

API_KEY = "peer-key"
SVC = ("-c", "import svc.cli; svc.cli.main()")
REFERENCE = "FastAPI, 1 process"


class Running(NamedTuple):
    """A server under load."""

    port: int
    api_key: str
    roots: tuple[int, ...]
    """Process ids: their CPU and that of their descendants is the server's."""


class Row(NamedTuple):
    """One measurement."""

    measured: Measured
    cpu_us: float
    """Of all processes of the server, user and system, per request."""

    @property
    def rate(self) -> float:
        return self.measured.requests / self.measured.seconds


Start = Callable[[ExitStack, Path], tuple[Running, Callable[[], list[dict[str, Any]]]]]
"""Starts a server in a directory until the stack is closed; what is returned beside it reads its log afterwards."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peer", help="a Python with bench/peer/requirements.txt")
    parser.add_argument("--before", type=Path, help="an earlier checkout of this service")
    parser.add_argument("--workers", type=int, default=2, help="of the last measurement")
    parser.add_argument("--seconds", type=float, default=6, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--devices", type=int, default=150, help="many: mostly first visits; few: mostly returns")
    parser.add_argument(
        "--without-tokens", action="store_true", help="reports without a client token; not for the peer"
    )
    options = parser.parse_args()
    has_token = not options.without_tokens
    bodies = [report_body(number, token=has_token) for number in range(options.devices)]
    servers = _servers(options)
    print(f"{CLIENTS} clients, bodies of {statistics.mean(map(len, bodies)):.0f} bytes, {options.rounds} rounds\n")
    print(f"{'':24}{'req/s':>8}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}{'refused':>9}{'a commit':>10}")
    rows: dict[str, list[Row]] = {name: [] for name in servers}
    for number in range(options.rounds):
        for name, start in servers.items():
            row, log = _measure(start, bodies, options.seconds, seed=number)
            rows[name].append(row)
            print(_line(name, row, log), flush=True)
    _summary(rows)


def _servers(options: argparse.Namespace) -> dict[str, Start]:
    servers: dict[str, Start] = {}
    if options.peer:
        servers[REFERENCE] = partial(_peer, options.peer, 1)
        servers["FastAPI, 2 processes"] = partial(_peer, options.peer, 2)
    servers["bare front"] = _bare
    if options.before:
        servers["the version before"] = partial(_service, options.before, 1)
    servers["1 worker"] = partial(_service, Path.cwd(), 1)
    if options.workers > 1:
        servers[f"{options.workers} workers"] = partial(_service, Path.cwd(), options.workers)
    return servers


def _measure(start: Start, bodies: list[bytes], seconds: float, seed: int) -> tuple[Row, list[dict[str, Any]]]:
    with tempfile.TemporaryDirectory(prefix="svc-compare-") as directory, ExitStack() as stack:
        running, log = start(stack, Path(directory))
        run(running.port, requests(running.api_key, bodies, seed=1_000 + seed), min(2.0, seconds))  # warms caches up
        before = _cpu_s(running.roots)
        measured = run(running.port, requests(running.api_key, bodies, seed), seconds)
        row = Row(measured, 1e6 * (_cpu_s(running.roots) - before) / measured.requests)
        stack.close()
        return row, log()


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
    command = [sys.executable, *SVC, "serve", "--data", data, "--bind", f"127.0.0.1:{port}", *many]
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


def _line(name: str, row: Row, log: list[dict[str, Any]]) -> str:
    measured = row.measured
    stopped = [entry for entry in log if entry.get("event") == "stopped" and entry.get("commits")]
    jobs, commits = sum(entry["jobs"] for entry in stopped), sum(entry["commits"] for entry in stopped)
    group = f"{jobs / commits:10.1f}" if commits else f"{'':>10}"
    times = f"{measured.p50_ms:9.2f}{measured.p99_ms:9.2f}{row.cpu_us:9.0f}"
    return f"{name:24}{row.rate:8.0f}{times}{measured.refused:9}{group}"


def _summary(rows: dict[str, list[Row]]) -> None:
    first = next(iter(rows))
    print(f"\nmedians, and the median of the ratios to {first!r} in the same round:")
    for name, measured in rows.items():
        ratio = statistics.median(one.rate / other.rate for one, other in zip(measured, rows[first], strict=True))
        tail = statistics.median(
            one.measured.p99_ms / other.measured.p99_ms for one, other in zip(measured, rows[first], strict=True)
        )
        print(
            f"{name:24}{statistics.median(one.rate for one in measured):8.0f}"
            f"{statistics.median(one.measured.p50_ms for one in measured):9.2f}"
            f"{statistics.median(one.measured.p99_ms for one in measured):9.2f}"
            f"{statistics.median(one.cpu_us for one in measured):9.0f}   {ratio:.2f} x requests, {tail:.2f} x p99"
        )


if __name__ == "__main__":
    main()
