"""How long `svc serve` takes from its start to the first 200 of `/readyz`, and where the time goes.

Three stores: empty, one with many rows of which none is due, and one with as many deliveries that are all due to ten
endpoints. Bytecode is compiled first, as by an installation; the pages of the stores are in the page cache.

    python -m bench.startup [--rows 1000000] [--rounds 5] [--imports]
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.outbox import DATA, EVENT, ROWS_A_COMMIT, Bench
from svc.domain.webhooks.envelope import seal
from svc.store.snapshot import Transaction
from svc.store.tables import WEBHOOK_EVENTS
from tests.support.process import ENVIRONMENT, PROGRAM

ENDPOINTS = 10
POLL_S = 0.005
LIMIT_S = 120
_IMPORT = re.compile(r"import time: +(\d+) \| +\d+ \| +([\w.]+)")
SHOWN = 12
"""Packages whose imports take longest."""


class Start(NamedTuple):
    """From the start of the process to its first 200."""

    seconds: float
    cpu_s: float
    """Of the process and of what it has started, which ran meanwhile."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="events of one store, due deliveries of the other")
    parser.add_argument("--rounds", type=int, default=5, help="starts of each, in turns")
    parser.add_argument("--imports", action="store_true", help="show what is imported before the first request")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        root = Path(directory)
        environment = {**ENVIRONMENT, "SVC_METRICS_BIND": "", "PYTHONPYCACHEPREFIX": str(root / "bytecode")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        homes = dict(_stores(root, options.rows))
        for home in homes.values():
            _start(home, environment)  # compiles, and reads the file once
        starts: dict[str, list[Start]] = {name: [] for name in homes}
        for _ in range(options.rounds):
            for name, home in homes.items():
                starts[name].append(_start(home, environment))
        for name, found in starts.items():
            size = (homes[name] / "store" / "data.mdb").stat().st_size / 1e9
            seconds = [start.seconds for start in found]
            cpu_s = statistics.median(start.cpu_s for start in found)
            print(
                f"{name:<28} {size:5.2f} GB   first 200 after {statistics.median(seconds):.2f} s "
                f"({min(seconds):.2f}-{max(seconds):.2f}), CPU {cpu_s:.2f} s"
            )
        if options.imports:
            _show_imports(environment)


def _stores(root: Path, rows: int) -> Iterator[tuple[str, Path]]:
    for name, is_due in (("empty", None), (f"{rows:,} events", False), (f"{rows:,} due deliveries", True)):
        home = root / name.partition(" ")[2].replace(" ", "-") if is_due is not None else root / name
        home.mkdir()
        bench = Bench(str(home))
        if is_due:
            for place in range(ENDPOINTS):
                queue, _ = bench.endpoint(f"r{place}")
                bench.fill(queue, rows // ENDPOINTS)
        elif is_due is not None:
            for begun in range(0, rows, ROWS_A_COMMIT):
                bench.do(partial(_events, bench, min(ROWS_A_COMMIT, rows - begun)))
        bench.found.store.close()
        yield name, home


def _events(bench: Bench, many: int, transaction: Transaction) -> None:
    now_ms = bench.world.now_ms()
    for _ in range(many):
        event_id = bench.world.request_id(now_ms)
        sealed = seal(event_id, EVENT, "live", "org_bench", DATA, now_ms)
        transaction.put(WEBHOOK_EVENTS, (1, event_id.bytes), sealed)


def _start(home: Path, environment: dict[str, str]) -> Start:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--data", str(home), "--bind", f"127.0.0.1:{port}"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not _is_ready(port):
            if process.poll() is not None or time.monotonic() - began > LIMIT_S:
                raise SystemExit(f"svc serve on {home} is not ready: status {process.returncode}")
            time.sleep(POLL_S)
        seconds = time.monotonic() - began
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Start(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _is_ready(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as asking:
            asking.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return asking.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def _show_imports(environment: dict[str, str]) -> None:
    """Milliseconds by package; measuring makes each import slower."""
    command = [sys.executable, "-X", "importtime", "-c", "import svc.cli.processes"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment}).stderr
    taken: dict[str, int] = {}
    for line in _IMPORT.findall(said):
        package = line[1].partition(".")[0]
        taken[package] = taken.get(package, 0) + int(line[0])
    print(f"imports: {sum(taken.values()) / 1000:,.0f} ms")
    for package in sorted(taken, key=taken.__getitem__, reverse=True)[:SHOWN]:
        print(f"  {package:<26} {taken[package] / 1000:7.1f} ms")


if __name__ == "__main__":
    main()
