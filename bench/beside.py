"""What honest clients wait for beside attackers: both, and the table that compares them.

Attackers have a process of their own. Those of this module ask over keep-alive connections, as often as they get
responses. Each attack is measured between two quiet spells; its figures are divided by the mean of theirs, so that
ratios hold on a machine that others use too. Attackers stop by themselves, also when this process is killed.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import selectors
import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import NamedTuple

from bench.load import Client
from bench.measures import memory_mib, p50_p99
from bench.reports import device_report
from bench.serving import Server

RATE = 10.0
"""Honest requests a second: so few that they wait for nobody but the attacker."""
GIVE_UP_S = 10.0


Attack = Callable[[int, Connection], None]
"""(port, where it says at its end how many responses a second it got by status). SIGTERM ends it."""


class Spell(NamedTuple):
    """What honest clients saw for a while."""

    p50_ms: float
    p99_ms: float
    cpu: float
    """Share of one core that the server took."""
    outcomes: Counter[str]


def request(method: str, path: str, key: str, body: bytes, chance: random.Random) -> bytes:
    """Public keys come from a page, all others from a server."""
    origin = "Origin: https://shop.example\r\n" if key.startswith("svc_pk") else ""
    address = f"81.2.{chance.randrange(200)}.{chance.randrange(1, 250)}"
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{origin}"
        + (f"X-Api-Key: {key}\r\nContent-Type: application/json\r\n" if key else "")
        + f"X-Forwarded-For: {address}\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) Firefox/139.0\r\n"
        + (f"Content-Length: {len(body)}\r\n" if method != "GET" else "")
        + "\r\n"
    ).encode() + body


def identification(key: str, chance: random.Random, tag: str = "") -> bytes:
    """Of one of 2,000 made-up devices."""
    content = {"sdk": {"platform": "web"}, "signals": device_report(chance.randrange(2_000))}
    body = json.dumps(content | ({"tag": tag} if tag else {})).encode()
    return request("POST", "/api/v1/identify", key, body, chance)


def asking(connections: Sequence[Sequence[bytes]]) -> Attack:
    """Connections that each ask any of their requests, after a 429 at once."""
    return partial(_ask, connections)


@contextmanager
def attacked(port: int, attack: Attack, settle_s: float = 2) -> Generator[dict[str, float]]:
    """An attack for the length of a block, which begins so long after it; its responses a second by status are there
    afterwards.
    """
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=attack, args=(port, theirs), daemon=True)
    process.start()
    rates: dict[str, float] = {}
    time.sleep(settle_s)
    try:
        yield rates
    finally:
        process.terminate()
        if ours.poll(15):
            rates |= ours.recv()
        process.kill()
        process.join()


def _ask(connections: Sequence[Sequence[bytes]], port: int, told: Connection) -> None:
    os.nice(5)
    chance, outcomes = random.Random(1), Counter[str]()
    selector = selectors.DefaultSelector()
    stopped: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    parent, began = os.getppid(), time.perf_counter()

    def connect(requests: Sequence[bytes]) -> None:
        client = Client(port, GIVE_UP_S)
        selector.register(client.socket, selectors.EVENT_READ, (client, requests))
        client.send(chance.choice(requests))

    for requests in connections:
        connect(requests)
    while not stopped and os.getppid() == parent:
        for key, _ in selector.select(timeout=0.05):
            client, requests = key.data
            try:
                status = client.receive()
                if status is not None:
                    outcomes[str(status)] += 1
                    client.send(chance.choice(requests))
            except OSError:
                outcomes["closed"] += 1
                selector.unregister(client.socket)
                client.socket.close()
                connect(requests)
    seconds = time.perf_counter() - began
    told.send({status: count / seconds for status, count in outcomes.items()})


def honest(server: Server, key: str, seconds: float, rate: float = RATE, *, fresh: bool = False) -> Spell:
    """So many requests a second, on four connections: kept ones, or `fresh` two for each request new, as visitors come.
    A kept one that the server has closed is opened again, as any client does.
    """
    chance = random.Random(7)
    clients = [Client(server.port, GIVE_UP_S) for _ in range(4)]
    times: list[float] = []
    outcomes: Counter[str] = Counter()
    began, cpu_s = time.perf_counter(), server.cpu_s()
    for number in range(int(seconds * rate)):
        if time.perf_counter() - began > 2 * seconds:
            break  # so slow that fewer requests have to do
        time.sleep(max(0.0, began + number / rate - time.perf_counter()))
        client, sent = clients[number % 4], identification(key, chance)
        asked = time.perf_counter()
        try:
            if fresh and number % 2:
                client.socket.close()
                client.connect()
            try:
                status = str(client.ask(sent))
            except ConnectionError:
                outcomes["asked again"] += 1
                client.send_again()
                status = str(client.answer())
        except OSError:
            status = "failed"
            client.connect()
        outcomes[status] += 1
        times.append(1000 * (time.perf_counter() - asked))
    cpu = (server.cpu_s() - cpu_s) / (time.perf_counter() - began)
    for client in clients:
        client.socket.close()
    return Spell(*p50_p99(times), cpu, outcomes)


def compare(
    server: Server, attacks: Mapping[str, Attack], measure: Callable[[], Spell], rounds: int, *, settle_s: float = 2
) -> None:
    """Print honest times beside each attack, and without. `settle_s`: from its beginning to the measuring."""
    measure()
    print(
        f"{'':22}{'quiet p50':>10}{'p99':>8}{'attacked':>10}{'p99':>8}{'p50 x':>8}{'p99 x':>8}"
        f"{'CPU':>7}{'fds':>6}{'MiB':>6}  attackers a second"
    )
    ratios: dict[str, list[tuple[float, float]]] = {}
    for _ in range(rounds):
        before = measure()
        for name, attack in attacks.items():
            with attacked(server.port, attack, settle_s) as rates:
                during = measure()
                descriptors, memory = server.descriptors(), memory_mib(server.process.pid)
            after = measure()
            p50, p99 = (before.p50_ms + after.p50_ms) / 2, (before.p99_ms + after.p99_ms) / 2
            ratios.setdefault(name, []).append((during.p50_ms / p50, during.p99_ms / p99))
            told = ", ".join(f"{rate:.0f} x {status}" for status, rate in sorted(rates.items()))
            other = {status: count for status, count in during.outcomes.items() if status != "200"}
            print(
                f"{name:22}{p50:10.1f}{p99:8.1f}{during.p50_ms:10.1f}{during.p99_ms:8.1f}{during.p50_ms / p50:8.2f}"
                f"{during.p99_ms / p99:8.2f}{during.cpu:7.0%}{descriptors:6}{memory:6.0f}  {told}"
                f"{f'; honest {other}' if other else ''}",
                flush=True,
            )
            before = after
    print(f"\nmedians of {rounds} rounds; load of the machine {os.getloadavg()[0]:.1f}")
    for name, pairs in ratios.items():
        p50, p99 = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:22}{p50:8.2f}{p99:8.2f}")
