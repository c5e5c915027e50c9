"""What the live stream of the console costs beside identifications, and that a viewer who does not read slows nobody.

One server on loopback, an open-loop load of identifications at a fixed rate, and in turn: no viewer, viewers that read,
viewers that do not. The server's CPU is that of its process; latencies are from the time at which a request was due.

    python -m bench.console_stream [--rate 500] [--viewers 20] [--seconds 10] [--rounds 2]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import selectors
import socket
import tempfile
import time
from collections import deque
from typing import Any, NamedTuple

from bench.identify import Server, prepare, report_body, svc
from bench.load import CLIENTS, requests
from bench.measures import quantile

KINDS = ("no viewer", "reading", "not reading")


class Round(NamedTuple):
    """One measurement."""

    answered: int
    refused: int
    cpu_us: float
    """Of the server, for each identification."""
    p50_ms: float
    p99_ms: float
    shown: int
    """Identifications that viewers were shown, all together."""
    missed: int
    """And that they were told they had missed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rate", type=int, default=500, help="identifications a second")
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    bodies = [report_body(number, token=True) for number in range(500)]
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        public = prepare(directory)
        (organization,) = svc("org", "list", "--data", directory)["organizations"]
        management = svc("key", "issue", organization["organization_id"], "--kind", "management", "--data", directory)[
            "secret"
        ]
        server = Server.serving(directory)
        try:
            paced(server.port, public, bodies, options.rate, 3.0, seed=0)
            print(
                f"{'':14}{'answered':>10}{'refused':>9}{'CPU us':>9}{'p50 ms':>9}{'p99 ms':>9}{'shown':>10}"
                f"{'missed':>9}"
            )
            for number in range(1, options.rounds + 1):
                for place, kind in enumerate(KINDS):
                    one = measured(server, public, management, bodies, kind, options, 10 * number + place)
                    print(
                        f"{kind:14}{one.answered:10,}{one.refused:9}{one.cpu_us:9.0f}{one.p50_ms:9.2f}{one.p99_ms:9.2f}"
                        f"{one.shown:10,}{one.missed:9,}",
                        flush=True,
                    )
        finally:
            server.stop()


def measured(
    server: Server, public: str, management: str, bodies: list[bytes], kind: str, options: Any, seed: int
) -> Round:
    """One round with viewers of one kind."""
    context = multiprocessing.get_context("spawn")
    ready, stop = context.Event(), context.Event()
    counts = context.Queue()
    count = 0 if kind == KINDS[0] else options.viewers
    watching = context.Process(
        target=watch, args=(server.port, management, count, kind == "reading", ready, stop, counts), daemon=True
    )
    watching.start()
    ready.wait()
    before = sum(server.cpu())
    latencies, refused = paced(server.port, public, bodies, options.rate, options.seconds, seed)
    used = sum(server.cpu()) - before
    stop.set()
    shown, missed = counts.get()
    watching.join()
    latencies.sort()
    return Round(
        answered=len(latencies),
        refused=refused,
        cpu_us=1e6 * used / len(latencies),
        p50_ms=1e3 * quantile(latencies, 0.5),
        p99_ms=1e3 * quantile(latencies, 0.99),
        shown=shown,
        missed=missed,
    )


def paced(port: int, key: str, bodies: list[bytes], rate: int, seconds: float, seed: int) -> tuple[list[float], int]:
    """Send identifications at a fixed rate, whatever the answers do; latencies in seconds, and how many were not
    answered 200.
    """
    make, selector = requests(key, bodies, seed), selectors.DefaultSelector()
    idle: deque[socket.socket] = deque()
    for _ in range(CLIENTS):
        one = socket.create_connection(("127.0.0.1", port))
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(one, selectors.EVENT_READ)
        idle.append(one)
    due: deque[float] = deque()
    asked: dict[socket.socket, float] = {}
    latencies: list[float] = []
    refused, made, most = 0, 0, int(rate * seconds)
    began = time.perf_counter()
    while len(latencies) < most:
        now = time.perf_counter()
        while made < most and began + made / rate <= now:
            due.append(began + made / rate)
            made += 1
        while due and idle:
            one = idle.popleft()
            asked[one] = due.popleft()
            one.sendall(make())
        wait = 0.1 if made >= most else max(0.0, began + made / rate - time.perf_counter())
        for chosen, _ in selector.select(min(wait, 0.1)):
            one: Any = chosen.fileobj
            head = one.recv(65_536)  # an answer comes in one piece
            latencies.append(time.perf_counter() - asked.pop(one))
            refused += not head.startswith(b"HTTP/1.1 200")
            idle.append(one)
    for one in (*idle, *asked):
        one.close()
    return latencies, refused


def watch(port: int, key: str, count: int, reads: bool, ready: Any, stop: Any, counts: Any) -> None:
    """In a process of its own: open streams, read them or not until told to stop, and count what came."""
    selector = selectors.DefaultSelector()
    request = f"GET /console/api/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {key}\r\n\r\n".encode()
    tails: dict[Any, bytes] = {}
    for _ in range(count):
        one = socket.socket()
        if not reads:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", port))
        one.sendall(request)
        head = one.recv(4096)
        if not head.startswith(b"HTTP/1.1 200"):
            raise ConnectionError(head.decode())
        tails[one] = b""
        if reads:
            selector.register(one, selectors.EVENT_READ)
    ready.set()
    shown = missed = 0
    while not stop.is_set():
        if not reads or not count:
            stop.wait()
            break
        for chosen, _ in selector.select(0.1):
            one: Any = chosen.fileobj
            data = tails[one] + one.recv(1 << 20)
            whole, _, tails[one] = data.rpartition(b"\n\n")
            shown += whole.count(b"event: identification")
            missed += sum(json.loads(found)["count"] for found in re.findall(rb"event: missed\ndata: (.*)", whole))
    counts.put((shown, missed))


if __name__ == "__main__":
    main()
