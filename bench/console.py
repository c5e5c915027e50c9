"""What the routes of the console cost in a large store, and for how long each holds up everybody else.

One process serves the store that `bench.events` fills, and a client in a thread asks. Beside it a task does nothing but
let others run: the longest turn of the loop (block) is the longest that any other request had to wait.

    python -m bench.console [--events 100000] [--requests 50]
"""

from __future__ import annotations

import argparse
import http.client
import json
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
import trio

from bench.events import DAY_MS, AttemptRecord, fill
from bench.measures import quantile
from svc.cli.keys import issue_key
from svc.config import Config
from svc.domain.timestamps import timestamp
from svc.http.server.server import open_listeners
from svc.service import Service
from svc.serving import listen
from svc.store.directory import open_directory
from svc.world import World

CHANGE = {"platform": "web", "suspect_threshold": 25, "weights": {"headless": 5, "tor": 80}}


OWN_TURN_S = 0.000_15
"""Shorter turns are those of the watch itself."""


class Question(NamedTuple):
    """A request that is repeated."""

    name: str
    path: str
    body: dict[str, Any] | None = None


class Watch:
    """Measures how long the event loop computes for others, in CPU time: whatever else the machine does meanwhile."""

    def __init__(self) -> None:
        self.longest_s = self.all_s = 0.0

    def clear(self) -> None:
        self.longest_s = self.all_s = 0.0

    async def run(self) -> None:
        last = time.thread_time()
        while True:
            await trio.lowlevel.checkpoint()
            now = time.thread_time()
            if now - last > OWN_TURN_S:
                self.longest_s = max(self.longest_s, now - last)
                self.all_s += now - last
            last = now


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=50, help="of each kind")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        made = fill(Path(directory), options.events)
        print(f"{options.events:,} events made in {made.seconds:.0f} s\n")
        trio.run(serve, Path(directory), made, options.requests)


async def serve(directory: Path, made: AttemptRecord, requests: int) -> None:
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy)
    _, secret = issue_key(
        found, world, kind="management", environment=None, organization=1, name="b", region="us", role="developer"
    )
    config = msgspec.structs.replace(Config(), management_rate=0)
    shutdown = trio.Event()
    async with trio.open_nursery() as nursery:
        service = Service(config, world, found)
        run = partial(service.run, metrics=None)
        edge = await nursery.start(run, open_listeners(listen("127.0.0.1:0")), shutdown)
        watch = Watch()
        async with trio.open_nursery() as watching:
            watching.start_soon(watch.run)
            print(f"{'':30}{'p50 ms':>9}{'p99 ms':>9}{'CPU ms':>9}{'block ms':>10}{'bytes':>12}{'not 200':>9}")
            for question in questions(made, world.now_ms()):
                await ask(edge.addresses[0][1], secret, question, requests, watch)
            watching.cancel_scope.cancel()
        shutdown.set()
    found.store.close()


def questions(made: AttemptRecord, now_ms: int) -> list[Question]:
    month = {"from": timestamp(now_ms - 29 * DAY_MS)}
    busiest = made.visitors[0]

    def get(path: str, **query: Any) -> Question:
        return Question(" ".join((path, *query)), f"{path}?{urlencode(query)}")

    return [
        Question("nothing (healthz)", "/../../healthz"),
        get("/events"),
        get("/events", limit=200),
        get(f"/events/{made.request_ids[-1]}")._replace(name="one event"),
        get("/visitors", limit=200),
        get("/visitors", tag="account 0", limit=200),
        get("/visitors", ip_address="81.0.0.1", limit=200),
        get(f"/visitors/{busiest}")._replace(name="the busiest visitor"),
        get("/statistics"),
        get("/statistics", **month)._replace(name="/statistics of 29 days"),
        get("/statistics", **month, step="day")._replace(name="/statistics of 29 days, days"),
        get("/billing"),
        get("/audit"),
        Question("preview of 10,000", "/weights/preview", CHANGE),
    ]


async def ask(port: int, secret: str, question: Question, requests: int, watch: Watch) -> None:
    path = question.path.replace("/../..", "") if question.path.startswith("/..") else "/console/api" + question.path
    times: list[float] = []
    size = refused = 0
    if question.body is not None:
        requests = max(requests // 10, 3)
    for number in range(-3, requests):
        if number == 0:
            watch.clear()
        status, length, seconds = await trio.to_thread.run_sync(sent, port, secret, path, question.body)
        if number >= 0:
            times.append(1000 * seconds)
            size += length
            refused += status != 200
    times.sort()
    p50, p99 = quantile(times, 0.5), quantile(times, 0.99)
    cpu_ms, longest_ms = 1000 * watch.all_s / requests, 1000 * watch.longest_s
    print(
        f"{question.name:30}{p50:9.2f}{p99:9.2f}{cpu_ms:9.2f}{longest_ms:10.2f}{size / requests:12,.0f}{refused:9}",
        flush=True,
    )


def sent(port: int, secret: str, path: str, body: dict[str, Any] | None) -> tuple[int, int, float]:
    """Status, bytes and seconds of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    began = time.perf_counter()
    content = None if body is None else json.dumps(body)
    headers = {"x-api-key": secret, **({} if body is None else {"content-type": "application/json"})}
    connection.request("GET" if body is None else "POST", path, body=content, headers=headers)
    response = connection.getresponse()
    answer = response.read()
    seconds = time.perf_counter() - began
    connection.close()
    return response.status, len(answer), seconds


if __name__ == "__main__":
    main()
