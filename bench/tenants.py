"""What an honest organization waits for while another one, or a stranger, asks as often as it can.

One real `svc serve` on loopback. A second process attacks it over keep-alive connections, a third one identifies
visitors of the honest organization at a steady rate. Each attack is measured between two quiet spells; its figures are
divided by the mean of theirs, so that ratios hold on a machine that others use too.

    python -m bench.tenants [--seconds 6] [--rounds 3] [--only unknown,docs] [--program svc]

It stops by itself, and so do its attackers, also when it is killed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import selectors
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

from bench.identify import ENVIRONMENT, free_port, wait_for
from bench.load import Client
from bench.measures import quantile
from bench.reports import device_report
from tests.support.process import PROGRAM

RATE = 10.0
"""Honest requests a second: so few that they wait for nobody but the attacker."""
CONNECTIONS = 32
LARGE_TAG = "t" * 1_000
ROWS = 200
"""Large events of the attacker, for lists that are as long as they may be."""
PREPARE_RATE = 20
"""A second: under the quarter that one address and one environment may use."""
GIVE_UP_S = 10.0


class Attack(NamedTuple):
    name: str
    key: str
    """Which of the attacker's keys."""
    method: str
    path: str
    body: str = ""
    """`report`, `key`, `empty`; nothing without one."""
    connections: int = CONNECTIONS


ATTACKS = (
    Attack("events of 200 rows", "development secret", "GET", "/api/v1/events?limit=200"),
    Attack("identify, no limit", "unlimited public", "POST", "/api/v1/identify", "report", 256),
    Attack("identify, limited", "public", "POST", "/api/v1/identify", "report"),
    Attack("list of keys", "management", "GET", "/api/v1/management/organizations/{org}/sdk-keys", "", 8),
    Attack("events, empty page", "secret", "GET", "/api/v1/events?limit=50"),
    Attack("issue keys", "developer", "POST", "/api/v1/management/organizations/{org}/sdk-keys", "key"),
    Attack("unknown path", "", "GET", "/nowhere"),
    Attack("bundle of /docs", "", "GET", "/docs/api/swagger-ui-bundle.js"),
    Attack("openapi.json", "", "GET", "/api/v1/openapi.json"),
    Attack("wrong key", "wrong", "POST", "/api/v1/identify", "report"),
    Attack("challenge", "public", "POST", "/api/v1/attestation/challenge", "empty"),
)


class Spell(NamedTuple):
    """What honest clients saw for a while."""

    p50_ms: float
    p99_ms: float
    outcomes: dict[str, int]


class Target(NamedTuple):
    """One service and the keys to it."""

    port: int
    honest_key: str
    organization: str
    keys: dict[str, str]


# Both clients


def written(attack: Attack, target: Target, chance: random.Random) -> bytes:
    body = {"report": report, "key": key_body, "empty": lambda _: b"", "": lambda _: b""}[attack.body](chance)
    key = target.keys.get(attack.key, "")
    return request(attack.method, attack.path.replace("{org}", target.organization), key, body, chance)


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


def report(chance: random.Random, tag: str = "") -> bytes:
    content: dict[str, Any] = {"sdk": {"platform": "web"}, "signals": device_report(chance.randrange(2_000))}
    return json.dumps(content | ({"tag": tag} if tag else {})).encode()


def key_body(_: random.Random) -> bytes:
    origins = [f"https://shop{number}.example" for number in range(100)]
    return json.dumps({"name": "n", "environment": "production", "allowed_origins": origins}).encode()


# The attacker's process


def attack_forever(attack: Attack, target: Target) -> None:
    """Each connection asks again as soon as it is answered, until the parent is gone; counts on standard output."""
    os.nice(5)
    chance = random.Random(1)
    requests = [written(attack, target, chance) for _ in range(50)]
    selector = selectors.DefaultSelector()
    outcomes: Counter[str] = Counter()
    stopped: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    parent, began = os.getppid(), time.perf_counter()

    def connect() -> None:
        client = Client(target.port, GIVE_UP_S)
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.send(chance.choice(requests))

    for _ in range(attack.connections):
        connect()
    while not stopped and os.getppid() == parent:
        for key, _ in selector.select(timeout=0.1):
            client: Client = key.data
            try:
                status = client.receive()
                if status is not None:
                    outcomes[str(status)] += 1
                    client.send(chance.choice(requests))
            except OSError:
                outcomes["closed"] += 1
                selector.unregister(client.socket)
                client.socket.close()
                connect()
    seconds = time.perf_counter() - began
    print(json.dumps({status: count / seconds for status, count in outcomes.items()}), flush=True)


class Running:
    """An attack for the length of a block; `rates` are its responses a second by status, afterwards."""

    def __init__(self, attack: Attack, target: Target) -> None:
        self._command = [sys.executable, "-m", "bench.tenants", "--attack", attack.name]
        self._target = target
        self.rates: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(self._target._asdict()) + "\n")
        self._process.stdin.flush()
        time.sleep(2)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)  # it stops by itself, too, when this process ends
        try:
            out, _ = self._process.communicate(timeout=15)
            self.rates = json.loads(out)
        except (subprocess.TimeoutExpired, json.JSONDecodeError):
            self._process.kill()
            self._process.wait()


# The honest


def honest(target: Target, seconds: float) -> Spell:
    """One request every tenth of a second, each on one of four kept connections."""
    chance = random.Random(7)
    clients = [Client(target.port, GIVE_UP_S) for _ in range(4)]
    times: list[float] = []
    outcomes: Counter[str] = Counter()
    began = time.perf_counter()
    for number in range(int(seconds * RATE)):
        if time.perf_counter() - began > 2 * seconds:
            break  # so slow that fewer requests have to do
        time.sleep(max(0.0, began + number / RATE - time.perf_counter()))
        asked = time.perf_counter()
        body = report(chance)
        try:
            asking = request("POST", "/api/v1/identify", target.honest_key, body, chance)
            status = str(clients[number % 4].ask(asking))
        except OSError:
            status = "failed"
            clients[number % 4] = Client(target.port, GIVE_UP_S)
        outcomes[status] += 1
        times.append(time.perf_counter() - asked)
    for client in clients:
        client.socket.close()
    times.sort()
    return Spell(1000 * quantile(times, 0.5), 1000 * quantile(times, 0.99), dict(outcomes))


# The run


def prepare(program: Callable[..., Any], port: int, serve: Callable[[], None]) -> Target:
    """Organizations and keys; the service; large events and as many keys as the attacker can have."""
    good = program("org", "create", "honest", "--credit-usd", "100000")["organization_id"]
    bad = program("org", "create", "attacker", "--credit-usd", "100000")["organization_id"]
    unlimited = program("org", "create", "unlimited", "--credit-usd", "100000", "--rate-limit", "0")["organization_id"]

    def issue(org: str, kind: str, environment: str = "production", role: str = "admin") -> str:
        more = ["--role", role] if kind == "management" else ["--environment", environment]
        more += ["--origin", "https://shop.example"] if kind == "public" else []
        return program("key", "issue", org, "--kind", kind, "--name", "bench", *more)["secret"]

    keys = {
        "public": issue(bad, "public"),
        "secret": issue(bad, "secret", "staging"),
        "development secret": issue(bad, "secret", "development"),
        "management": issue(bad, "management"),
        "developer": issue(bad, "management", role="developer"),
        "unlimited public": issue(unlimited, "public"),
        "wrong": issue(good, "public")[:-1] + "!",
    }
    target = Target(port, issue(good, "public"), bad, keys)
    serve()
    chance = random.Random(3)
    client = Client(port, GIVE_UP_S)
    began = time.perf_counter()
    for number in range(ROWS):
        time.sleep(max(0.0, began + number / PREPARE_RATE - time.perf_counter()))
        sent = request("POST", "/api/v1/identify", keys["development secret"], report(chance, LARGE_TAG), chance)
        client.ask(sent.replace(b"X-Forwarded-For", b"X-Svc-Visitor-Ip"))
    issuing = next(attack for attack in ATTACKS if attack.name == "issue keys")
    for _ in range(ROWS):
        client.ask(written(issuing, target, chance))
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=6, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="words of the attacks to run, with commas between them")
    parser.add_argument("--program", default="", help="another `svc` to measure")
    parser.add_argument("--attack", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack is not None:
        attack = next(attack for attack in ATTACKS if attack.name == options.attack)
        attack_forever(attack, Target(**json.loads(sys.stdin.readline())))
        return
    chosen = [one for one in ATTACKS if any(word in one.name for word in options.only.split(","))]
    svc = [options.program] if options.program else PROGRAM
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        port = free_port()

        def program(*arguments: str) -> Any:
            command = [*svc, *arguments, "--data", directory, "--json"]
            return json.loads(subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT).stdout)

        processes: list[subprocess.Popen[bytes]] = []

        def serve() -> None:
            command = [*svc, "serve", "--data", directory, "--bind", f"127.0.0.1:{port}"]
            with (Path(directory) / "log").open("wb") as log:
                processes.append(subprocess.Popen(command, env=ENVIRONMENT, stderr=log))
            wait_for(port)

        try:
            table(prepare(program, port, serve), chosen, options)
        finally:
            for process in processes:
                process.terminate()
                process.wait(20)


def table(target: Target, attacks: list[Attack], options: argparse.Namespace) -> None:
    honest(target, 2)
    print(f"{'':20}{'quiet p50':>10}{'p99':>8}{'attacked':>10}{'p99':>8}{'p50 x':>8}{'p99 x':>8}  attacker a second")
    ratios: dict[str, list[tuple[float, float]]] = {}
    for _ in range(options.rounds):
        before = honest(target, options.seconds)
        for attack in attacks:
            with Running(attack, target) as running:
                during = honest(target, options.seconds)
            after = honest(target, options.seconds)
            p50 = (before.p50_ms + after.p50_ms) / 2
            p99 = (before.p99_ms + after.p99_ms) / 2
            ratios.setdefault(attack.name, []).append((during.p50_ms / p50, during.p99_ms / p99))
            rates = ", ".join(f"{rate:.0f} x {status}" for status, rate in sorted(running.rates.items()))
            other = {status: count for status, count in during.outcomes.items() if status != "200"}
            print(
                f"{attack.name:20}{p50:10.1f}{p99:8.1f}{during.p50_ms:10.1f}{during.p99_ms:8.1f}"
                f"{during.p50_ms / p50:8.2f}{during.p99_ms / p99:8.2f}  {rates}{f'; honest {other}' if other else ''}",
                flush=True,
            )
            before = after
    print(f"\nmedians of {options.rounds} rounds; load of the machine {os.getloadavg()[0]:.1f}")
    for name, pairs in ratios.items():
        p50, p99 = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:20}{p50:8.2f}{p99:8.2f}")


if __name__ == "__main__":
    main()
