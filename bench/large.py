"""What an identification costs over HTTP on a large store, beside one on a nearly empty store in the same run.

Both stores have the same devices, which return once each with their tokens, and get the same first visits between them.
The large one is filled in bulk as by `bench.pages` (9 minutes and 8 GB as it stands); both then serve by turns. 32
keep-alive clients, reports of 1.8 kB, 70 % returns. Figures: responses a second, times, CPU of the server, and what it
wrote.

    python -m bench.large [--visitors 1000000] [--events 10000000] [--seconds 5] [--rounds 6] [--scratch DIR]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import deque
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.identify import Server, svc
from bench.load import CLIENTS, head, run
from bench.measures import written_bytes
from bench.page_visits import FIRST_NEW, ORGANIZATION_ID, Visits

RETURNING = 0.7
DEVICES = 30_000
"""In both stores: more than return in one run."""
MOST_A_SECOND = 1_500
"""Responses that are possible."""
WARM_S = 10.0
"""Of the round before the first, in which most of the file is mapped into the server."""
AGO_MS = 60_000
"""Before now, the bulk ends."""


class Row(NamedTuple):
    """One measurement; times in milliseconds."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    written_kb: float
    """For each response, as the server handed it to the kernel."""


class Store:
    """A store that is served, and the visits that come to it."""

    def __init__(self, directory: Path, visitors: int, events: int) -> None:
        end_ms = time.time_ns() // 1_000_000 - AGO_MS
        self._visits = Visits(directory, visitors, events, DEVICES, seed=1, in_time=True, end_ms=end_ms)
        self._visits.found.store.close()
        data = ("--data", str(directory))
        origin = ("--origin", "https://shop.example")
        issued = svc("key", "issue", ORGANIZATION_ID, "--kind", "public", "--environment", "production", *origin, *data)
        self._key = issued["secret"]
        self._chance = random.Random(2)
        self._devices = list(range(DEVICES))
        self._chance.shuffle(self._devices)
        self._next_device = FIRST_NEW
        self._made: deque[bytes] = deque()
        self.server = Server.serving(directory)

    def settle(self) -> None:
        """Wait until what a start does in the background is done: it uses no CPU for three seconds."""
        quiet, used_s = 0, sum(self.server.cpu())
        while quiet < 3:
            time.sleep(1)
            used_s, before_s = sum(self.server.cpu()), used_s
            quiet = quiet + 1 if used_s - before_s < 0.05 else 0

    def measured(self, seconds: float) -> Row:
        """One round."""
        while len(self._made) < MOST_A_SECOND * seconds:  # beforehand, so that the client is fast
            self._made.append(self._request())
        pid = self.server.process.pid
        cpu_s, written = sum(self.server.cpu()), written_bytes(pid)
        result = run(self.server.port, self._made.popleft, seconds)
        if result.refused:
            raise SystemExit(f"{result.refused} responses were not 200")
        spent_us = 1e6 * (sum(self.server.cpu()) - cpu_s) / result.requests
        kb = (written_bytes(pid) - written) / result.requests / 1000
        return Row(result.requests / result.seconds, result.p50_ms, result.p99_ms, spent_us, kb)

    def _request(self) -> bytes:
        if self._chance.random() < RETURNING:
            device = self._devices.pop()
        else:
            device, self._next_device = self._next_device, self._next_device + 1
        visit = self._visits.submission(device, time.time_ns() // 1_000_000)
        body = json.dumps({"sdk": {"platform": "web", "version": "0.2.0"}, "signals": visit.signals}).encode()
        return head(self._key, visit.facts.ip, len(body)) + b"%s\r\n\r\n" % visit.request_id.hex.encode() + body


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--visitors", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=6, help="pairs of measurements")
    parser.add_argument("--scratch", type=Path, help="an empty folder for the stores, on the disk to be measured")
    options = parser.parse_args()
    print(
        f"{CLIENTS} clients, {RETURNING:.0%} returns, {options.rounds} rounds of {options.seconds:g} s each", flush=True
    )
    with tempfile.TemporaryDirectory(prefix="svc-bench-", dir=options.scratch) as directory:
        stores = {
            "nearly empty": Store(Path(directory) / "small", DEVICES, DEVICES),
            "large": Store(Path(directory) / "large", options.visitors, options.events),
        }
        rows: dict[str, list[Row]] = {name: [] for name in stores}
        print(f"{'':14}{'req/s':>8}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}{'kB':>8}")
        for store in stores.values():
            store.settle()
        for number in range(options.rounds + 1):
            for name, store in stores.items():
                row = store.measured(options.seconds if number else WARM_S)
                if number:
                    rows[name].append(row)
                    print(_line(name, row), flush=True)
        for store in stores.values():
            store.server.stop()
    pairs = list(zip(rows["large"], rows["nearly empty"], strict=True))
    print("large beside nearly empty, medians of the ratios:")
    for place, name in enumerate(Row._fields):
        print(f"  {name} x {median(large[place] / small[place] for large, small in pairs):.3f}")


def _line(name: str, row: Row) -> str:
    return f"{name:14}{row.rate:8.0f}{row.p50_ms:9.2f}{row.p99_ms:9.2f}{row.cpu_us:9.0f}{row.written_kb:8.1f}"


if __name__ == "__main__":
    main()
