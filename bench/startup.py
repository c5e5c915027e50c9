"""How long `svc serve` takes from its start to the first 200 of `/readyz`, and where the time goes.

Four stores: empty, one with many events of webhooks of which none is due, one with as many deliveries that are all due
to ten endpoints, and one with as many visitors and their blocks. Bytecode is compiled first, as by an installation; the
pages of the stores are in the page cache. Beside each start: the memory of the process when it is ready.

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

import msgspec

from bench.measures import memory_mib
from bench.reports import device_report, submission_of
from svc.domain.identification import assess
from svc.domain.matching import Recognition, block_keys
from svc.domain.matching.features import Features
from svc.domain.matching.visitor import first_record
from svc.domain.webhooks.envelope import seal
from svc.store.snapshot import Transaction
from svc.store.tables import WEBHOOK_EVENTS
from svc.store.transactions.identification import VisitorIndex
from svc.world import World
from tests.support.due import DATA, EVENT, ORGANIZATION_ID, Due
from tests.support.process import ENVIRONMENT, PROGRAM

ENDPOINTS = 10
ROWS_A_COMMIT = 20_000
WORLD = World.real()
KINDS_OF_DEVICES = 500
"""That differ in more than their network, token and a rare attribute."""
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
    memory_mb: float
    """Resident at its first 200, the pages of the store that it has touched among it."""


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
            _, cpu_s, memory_mb = map(statistics.median, zip(*found, strict=True))
            print(
                f"{name:<28} {size:5.2f} GB   first 200 after {statistics.median(seconds):.2f} s "
                f"({min(seconds):.2f}-{max(seconds):.2f}), CPU {cpu_s:.2f} s, {memory_mb:.0f} MB"
            )
        if options.imports:
            _show_imports(environment)


def _stores(root: Path, rows: int) -> Iterator[tuple[str, Path]]:
    for name, fill in (
        ("empty", _fill_nothing),
        (f"{rows:,} events", _fill_events),
        (f"{rows:,} due deliveries", _fill_deliveries),
        (f"{rows:,} visitors", _fill_visitors),
    ):
        home = root / name.replace(" ", "-")
        home.mkdir()
        fill(home, rows)
        yield name, home


def _fill_nothing(home: Path, _: int) -> None:
    Due(home, [])


def _fill_deliveries(home: Path, rows: int) -> None:
    Due(home, [f"https://r{place}.example/" for place in range(ENDPOINTS)]).fill(rows // ENDPOINTS)


def _fill_events(home: Path, rows: int) -> None:
    due = Due(home, [])
    for begun in range(0, rows, ROWS_A_COMMIT):
        due.do(partial(_events, min(ROWS_A_COMMIT, rows - begun)))


def _fill_visitors(home: Path, rows: int) -> None:
    due = Due(home, [])
    kinds = [
        assess(submission_of(WORLD, 1, device, device_report(device)), None).features
        for device in range(KINDS_OF_DEVICES)
    ]
    for begun in range(0, rows, ROWS_A_COMMIT):
        due.do(partial(_visitors, kinds, range(begun, min(begun + ROWS_A_COMMIT, rows))))


def _visitors(kinds: list[Features], devices: range, transaction: Transaction) -> None:
    now_ms = WORLD.now_ms()
    for device in devices:
        features = msgspec.structs.replace(
            kinds[device % len(kinds)], token=2 * device + 2, exact=device + 1, near_network=device + 1
        )
        new = Recognition(
            visitor=first_record(features, now_ms), postings=tuple((key, 1.0) for key in block_keys(features))
        )
        index = VisitorIndex(transaction, 1)
        for key, _ in new.postings:
            index.block(key)
        index.apply(new, f"{device:020}")


def _events(many: int, transaction: Transaction) -> None:
    now_ms = WORLD.now_ms()
    for _ in range(many):
        event_id = WORLD.request_id(now_ms)
        sealed = seal(event_id, EVENT, "live", ORGANIZATION_ID, DATA, now_ms)
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
        memory_mb = memory_mib(process.pid)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Start(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, memory_mb)


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
