"""A consumer of the feed that is killed beside writers, on two workers and on two nodes (ADR 130).

    python -m bench.feed [--kills 200] [--seed 1] [--nodes]
    python -m bench.feed --cost [--rounds 6]

`tests/crash/test_feed_kill.py` is the short form. `--cost` prints what an identification takes of the
service's CPU while nobody reads the feed and while a consumer follows it, in turn, and what reading all of it takes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

from bench.measures import cpu_s
from tests.support.feed_kills import FeedKills, Outcome
from tests.support.postgresql import Cluster
from tests.support.process import Served, run_json

PAUSE_S = 0.05
RATE, SECONDS, WAIT_S = 100, 10, 1.0
"""Of `--cost`: identifications a second, how long a round is, and how long a consumer waits at the end of the feed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", action="store_true", help="two nodes on PostgreSQL")
    parser.add_argument("--cost", action="store_true", help="measure CPU, and kill nobody")
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    if options.cost:
        with tempfile.TemporaryDirectory(prefix="svc-bench-") as name:
            cost(Path(name) / "data", options.rounds)
        return
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as name:
        killed = _on_nodes if options.nodes else _on_workers
        outcome = killed(Path(name) / "data", options.kills, options.seed)
    print(outcome._replace(faults=outcome.faults[:10]))
    raise SystemExit(bool(outcome.faults))


def _on_workers(data: Path, kills: int, seed: int) -> Outcome:
    run_json("org", "create", "first", "--data", str(data))
    server = Served(data, SVC_WORKERS="2")
    workers = server.workers()
    try:
        server.wait_until_said("serving", 2)
        return FeedKills(data, [server.port], seed, PAUSE_S).run(kills)
    finally:
        server.kill_all(workers)


def _on_nodes(data: Path, kills: int, seed: int) -> Outcome:
    cluster = Cluster()
    try:
        with cluster.database() as database:
            url = str(cluster.url(database))
            run_json("org", "create", "first", "--data", str(data), SVC_STORE=url)
            nodes = [Served(data, SVC_STORE=url) for _ in range(2)]
            try:
                return FeedKills(data, [node.port for node in nodes], seed, PAUSE_S, SVC_STORE=url).run(kills)
            finally:
                for node in nodes:
                    node.kill()
    finally:
        cluster.close()


def cost(data: Path, rounds: int) -> None:
    run_json("org", "create", "first", "--data", str(data))
    server = Served(data, SVC_LOG_REQUESTS="none", SVC_READ_RATE="0")
    try:
        load = FeedKills(data, [server.port], 1, PAUSE_S)
        connection = HTTPConnection("127.0.0.1", server.port)
        used: list[list[float]] = [[], []]
        cursor = ""
        for turn in range(2 * rounds + 2):
            follows = (turn + turn // 2) % 2
            for page in _pages(server.port, load.secret, cursor):
                cursor = page.cursor
            ended = threading.Event()
            consumer = threading.Thread(target=_follow, args=(server.port, load.secret, cursor, ended))
            if follows:
                consumer.start()
            cpu = cpu_s(server.pid)
            for number in _paced(RATE * SECONDS):
                assert load.identify(number, connection)
            if turn > 1:  # the first two fill caches
                used[follows].append(1e6 * (cpu_s(server.pid) - cpu) / (RATE * SECONDS))
            ended.set()
            if follows:
                consumer.join()
        without, following = map(statistics.median, used)
        more = statistics.median(one - other for other, one in zip(*used, strict=True))
        print(f"identify: {without:.0f} us of CPU, {following:.0f} with a consumer, {more:+.0f} (medians)")
        time.sleep(3)
        cpu, began = cpu_s(server.pid), time.perf_counter()
        events = sum(len(page) for page in _pages(server.port, load.secret, ""))
        took = cpu_s(server.pid) - cpu, time.perf_counter() - began
        print(f"the feed: {events:,} events, {1e6 * took[0] / events:.0f} ms of CPU per 1,000, {took[1]:.1f} s")
    finally:
        server.kill_all(())


def _paced(count: int) -> Iterator[int]:
    began = time.perf_counter()
    for number in range(count):
        time.sleep(max(0.0, began + number / RATE - time.perf_counter()))
        yield number


def _follow(port: int, secret: str, cursor: str, ended: threading.Event) -> None:
    """As the documentation says: at the end of the feed it waits for a second."""
    while not ended.is_set():
        for page in _pages(port, secret, cursor):
            cursor = page.cursor
        ended.wait(WAIT_S)


class _Page(list[str]):
    """Ids of events, and the cursor behind them."""

    cursor = ""


def _pages(port: int, secret: str, cursor: str) -> Iterator[_Page]:
    connection = HTTPConnection("127.0.0.1", port)
    while True:
        query = {"order": "oldest", "limit": 200, **({"after": cursor} if cursor else {})}
        connection.request("GET", "/api/v1/events?" + urlencode(query), headers={"x-api-key": secret})
        body = json.loads(connection.getresponse().read())
        page = _Page(row["request_id"] for row in body["rows"])
        page.cursor = cursor = body["next_cursor"]
        yield page
        if not body["has_more"]:
            return


if __name__ == "__main__":
    main()
