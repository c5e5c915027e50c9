"""What a service that runs for long uses more of: memory, descriptors, threads, CPU of an identification, and its file.

A real service with LMDB and a steady load: identifications of devices of which most return, and a consumer of the feed
that asks every second. Every quarter of a minute everything is read; slopes are by least squares over the second half.
In an hour all devices have come by then.

    python -m bench.soak [--minutes 60.0] [--rate 50] [--devices 3000]
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from statistics import linear_regression
from typing import NamedTuple
from urllib.parse import urlencode

from bench.load import Client, own_address, requests
from bench.measures import cpu_s, memory_mib, quantile
from bench.serving import PAGE, issue, organization, report_body
from bench.usage import read_options
from tests.support.process import Served

SAMPLE_S = 15.0


class Sample(NamedTuple):
    """What is so at one moment; sizes in MiB."""

    at_s: float
    identified: int
    cpu_s: float
    memory: float
    mapped: float
    descriptors: int
    threads: int
    file: float


def sample(at_s: float, identified: int, pid: int, file: Path) -> Sample:
    descriptors, threads = (len(list(Path(f"/proc/{pid}/{folder}").iterdir())) for folder in ("fd", "task"))
    return Sample(
        at_s,
        identified,
        cpu_s(pid),
        memory_mib(pid, mapped=False),
        memory_mib(pid),
        descriptors,
        threads,
        file.stat().st_size / 2**20,
    )


class Consumer(threading.Thread):
    """Reads the feed from its beginning, asks every second at its end, and counts."""

    def __init__(self, port: int, secret: str) -> None:
        super().__init__(daemon=True)
        self._port, self._secret = port, secret
        self.ended, self.read = threading.Event(), 0

    def run(self) -> None:
        connection, query = HTTPConnection("127.0.0.1", self._port), {"order": "oldest", "limit": 200}
        while True:
            connection.request("GET", "/api/v1/events?" + urlencode(query), headers={"x-api-key": self._secret})
            body = json.loads(connection.getresponse().read())
            self.read += len(body["rows"])
            query["after"] = body["next_cursor"]
            if not body["has_more"] and self.ended.wait(1.0):
                return


def slopes(samples: Sequence[Sample]) -> dict[str, float]:
    """By the hour, of the second half."""
    half = samples[len(samples) // 2 :]
    hours = [one.at_s / 3600 for one in half]
    found = {
        name: linear_regression(hours, [float(getattr(one, name)) for one in half]).slope
        for name in ("memory", "mapped", "descriptors", "threads", "file")
    }
    spans = list(pairwise(half))
    each = [1e6 * (after.cpu_s - before.cpu_s) / (after.identified - before.identified) for before, after in spans]
    return found | {"cpu_us": linear_regression(hours[1:], each).slope}


def main() -> None:
    arguments = read_options(__doc__)
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as scratch:
        _soak(Path(scratch) / "data", arguments.minutes, arguments.rate, arguments.devices)


def _soak(data: Path, minutes: float, rate: int, devices: int) -> None:
    of = organization(data)
    public, secret = issue(data, of, *PAGE), issue(data, of, "--kind", "secret", "--environment", "production")
    make = requests(public, [report_body(number, token=False) for number in range(devices)], 1, own_address, 0.9)
    server = Served(data, SVC_LOG_REQUESTS="none", SVC_READ_RATE="0")
    consumer = Consumer(server.port, secret)
    consumer.start()
    client, samples, times, refused = Client(server.port), list[Sample](), list[float](), 0
    began = time.monotonic()
    try:
        while (at_s := time.monotonic() - began) < 60 * minutes:
            if at_s >= SAMPLE_S * len(samples):
                samples.append(sample(at_s, len(times), server.pid, data / "store" / "data.mdb"))
            time.sleep(max(0.0, began + len(times) / rate - time.monotonic()))
            sent_at = time.perf_counter()
            refused += client.ask(make()) != 200
            times.append(time.perf_counter() - sent_at)
        time.sleep(5)  # the feed is closed two seconds behind
        consumer.ended.set()
        consumer.join(30)
        assert server.terminate() == 0
    finally:
        if server.runs():
            server.kill()
    print(
        f"{len(times):,} identifications in {minutes:g} minutes, {refused} refused; {consumer.read:,} read by the feed"
    )
    ordered = sorted(times)
    print(f"p50 {1000 * quantile(ordered, 0.5):.1f} ms, p99 {1000 * quantile(ordered, 0.99):.1f} ms")
    print("\n| | after a quarter | at the end | slope an hour |\n| --- | ---: | ---: | ---: |")
    quarter, end, found = samples[len(samples) // 4], samples[-1], slopes(samples)
    names = {"memory": "memory, MiB", "mapped": "with the pages of the file, MiB", "descriptors": "descriptors",
             "threads": "threads", "file": "file, MiB"}  # fmt: skip
    for name, title in names.items():
        print(f"| {title} | {getattr(quarter, name):.1f} | {getattr(end, name):.1f} | {found[name]:+.2f} |")
    cpu_us = 1e6 * (end.cpu_s - quarter.cpu_s) / (end.identified - quarter.identified)
    print(f"| CPU of an identification, µs | | {cpu_us:.0f} | {found['cpu_us']:+.0f} |")


if __name__ == "__main__":
    main()
