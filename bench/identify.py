"""What an identification costs beside the bare front that carries it, and beside other ways to serve it.

In one run and in turn, in rounds: FastAPI with PostgreSQL (`bench/peer`, which does less) with one process and with as
many as the service has workers; bare hypercorn + quart-trio, which answers with a constant; an earlier checkout of this
service; and this one, doing the whole durable job (keys, admission, detection, matching, one transaction on disk,
billing), with each number of workers. 32 keep-alive clients, 70 % of devices that came before, each in a network of its
own, fresh idempotency keys. Reports are `small` ones of the web SDK after gzip, or others of `bench.reports.Kind`. Each
server runs alone, for each measurement on a store of its own.

`--profile full` adds this service with the full profile (`bench.profile`), on made-up reports: each names an account
and is signed as it is sent, and three receivers in another process take deliveries over TLS. CPU is the service's, its
deliveries included.

    python -m bench.identify [--workers 1...] [--peer PYTHON] [--before DIR] [--report small|large|made-up]
        [--profile bare|full] [--seconds 6.0] [--rounds 3] [--devices 5000] [--returning 0.7] [--without-tokens]
        [--one-network]

Many workers: `--workers 1 2`. `--without-tokens`: reports without a client token, not for the peer. `--one-network`:
made-up reports from one address (ADR 217). The peer needs a Python with its libraries, and the programs of PostgreSQL:

    python3 -m venv /tmp/peer && /tmp/peer/bin/pip install -r bench/peer/requirements.txt

Other programs make every figure worse, and not by as much; the load average at the end says whether there were any.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, NamedTuple

from bench.far_side import command_of, urls_of
from bench.load import CLIENTS, head, one_address, own_address, requests, run, senders
from bench.measures import cpu_s, family, memory_mib
from bench.profile import FEATURES, FILTERS, install
from bench.reports import Kind, device_report
from bench.sdk_visits import SdkVisits
from bench.serving import HERE, Server, free_port, prepare, report_body
from bench.usage import read_options
from svc.identify.keys.proof import Subject
from svc.kernel.store.directory import open_directory
from svc.world import World
from tests.support.postgresql import Cluster
from tests.support.proofs import BrowserKey, compact

API_KEY = "peer-key"
DATABASE = ("shared_buffers=128MB", "max_wal_size=1GB")
"""As PostgreSQL comes."""
ONE_WORKER = "1 worker"
FULL = "1 worker, full profile"
PAGE_ORIGIN = "https://shop.example"


class Running(NamedTuple):
    """A server under load."""

    server: Server
    api_key: str
    beside: Callable[[], float] = lambda: 0.0
    """Seconds of CPU that others have used for it."""
    is_full: bool = False
    """Whether it has the full profile, and is sent what shows it."""

    def cpu_s(self) -> float:
        return self.server.cpu_s() + self.beside()


class Row(NamedTuple):
    """One measurement, or the medians of several."""

    rate: float
    """Requests per second."""
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """Of all processes of the server, user and system, per request."""
    a_commit: float
    """Requests for each commit; not a number where the server does not say."""
    again: float
    """Share of the jobs that ran again."""
    refused: float
    """Responses other than 200."""
    mib: float
    """Memory of all its processes, those pages included that they share."""

    def __str__(self) -> str:
        a_commit, again = ("", "") if math.isnan(self.a_commit) else (f"{self.a_commit:.1f}", f"{self.again:.1%}")
        times = f"{self.rate:8.0f}{self.p50_ms:9.2f}{self.p99_ms:9.2f}{self.cpu_us:9.0f}"
        return f"{times}{a_commit:>10}{again:>8}{self.refused:9.0f}{self.mib:8.0f}"


Start = Callable[[ExitStack, Path], Running]
"""Starts a server in a directory until the stack is closed."""


class Visits(NamedTuple):
    """Requests to measure with."""

    said: str
    """How large their bodies are, in words."""
    requests: Callable[[str, int, float], Callable[[], bytes]]
    """Of an API key, a seed, and the share of devices that came before."""

    @classmethod
    def of(cls, kind: Kind, devices: int, *, token: bool, one_network: bool = False) -> Visits:
        """Of so many devices, with their client tokens or without."""
        if kind == "made-up" or one_network:
            address = one_address if one_network else own_address
            bodies = [report_body(number, token=token) for number in range(devices)]
            said = f"bodies of {statistics.mean(map(len, bodies)):.0f} bytes"
            return cls(said, lambda key, seed, share: requests(key, bodies, seed, address, share))
        sdk = SdkVisits(devices, kind, token=token)
        sent, read = sdk.body_bytes
        return cls(f"bodies of {sent:.0f} bytes, {read:.0f} after gzip is undone", sdk.returning)


def main() -> None:
    given = read_options(__doc__)
    if given.profile == "full" and given.report != "made-up":
        raise SystemExit("--profile full needs --report made-up: its reports are signed as they are sent")
    visits = Visits.of(given.report, given.devices, token=not given.without_tokens, one_network=given.one_network)
    print(
        f"{CLIENTS} clients, {visits.said}, {given.returning:.0%} returns, "
        f"{given.rounds} rounds of {given.seconds:g} s each\n"
    )
    print(f"{'':24}{'req/s':>8}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}", end="")
    print(f"{'a commit':>10}{'again':>8}{'refused':>9}{'MiB':>8}")
    servers = _servers(given)
    rows: dict[str, list[Row]] = {name: [] for name in servers}
    for number in range(given.rounds):
        for name, start in servers.items():
            rows[name].append(_measure(start, visits, given, seed=number))
            print(f"{name:24}{rows[name][-1]}", flush=True)
    _summary(rows)
    print(f"\nload average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, the load of this run included")


def _peers(processes: int) -> str:
    return f"FastAPI, {processes} process{'es' if processes > 1 else ''}"


def _servers(given: argparse.Namespace) -> dict[str, Start]:
    servers: dict[str, Start] = {}
    workers: list[int] = given.workers or [1]
    if given.peer:
        servers |= {_peers(count): partial(_peer, given.peer, count) for count in sorted({1, *workers})}
    servers["bare front"] = _bare
    if given.before:
        servers["the version before"] = partial(_service, given.before, 1)
    servers |= {f"{count} worker{'s' * (count > 1)}": partial(_service, HERE, count) for count in workers}
    return servers | ({FULL: _full} if given.profile == "full" else {})


def _measure(start: Start, visits: Visits, given: argparse.Namespace, seed: int) -> Row:
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory, ExitStack() as stack:
        running = start(stack, Path(directory))
        server = running.server
        stack.callback(server.process.kill)
        make = (partial(full_requests, given.devices) if running.is_full else visits.requests)(
            running.api_key, seed, given.returning
        )
        run(server.port, make, min(2.0, given.seconds))  # warms caches up
        before = running.cpu_s()
        found = run(server.port, make, given.seconds)
        cpu_us = 1e6 * (running.cpu_s() - before) / found.requests
        mib = sum(map(memory_mib, family(server.process.pid)))
        said = [entry for entry in server.stop() if entry.get("event") == "stopped"]
    commits, jobs, repeated = (sum(entry.get(name, 0) for entry in said) for name in ("commits", "jobs", "repeated"))
    a_commit = jobs / commits if commits else math.nan
    rate = found.requests / found.seconds
    return Row(rate, found.p50_ms, found.p99_ms, cpu_us, a_commit, repeated / max(jobs, 1), found.refused, mib)


def _bare(_: ExitStack, __: Path) -> Running:
    port = free_port()
    return Running(Server(sys.executable, "-m", "bench.bare", str(port), port=port), API_KEY)


def _peer(python: str, processes: int, stack: ExitStack, _: Path) -> Running:
    cluster = Cluster(*DATABASE, durable=True)
    stack.callback(cluster.close)
    name = stack.enter_context(cluster.database())
    digest = hashlib.sha256(API_KEY.encode()).hexdigest()
    schema = (HERE / "bench/peer/schema.sql").read_text()
    cluster.execute(f"{schema}; insert into keys values ('\\x{digest}', 1)", database=name)
    port, dsn = free_port(), f"postgresql://svc@127.0.0.1:{cluster.port}/{name}"
    more = ("--port", str(port), "--workers", str(processes), "--log-level", "warning", "--no-access-log")
    server = Server(python, "-m", "uvicorn", "bench.peer.app:app", *more, port=port, DSN=dsn)
    return Running(server, API_KEY, lambda: sum(map(cpu_s, family(cluster.pid))))


def _service(checkout: Path, workers: int, _: ExitStack, directory: Path) -> Running:
    api_key = prepare(directory / "data", checkout)
    many = ("--workers", str(workers)) if workers > 1 else ()
    return Running(Server.serving(directory / "data", *many, checkout=checkout), api_key)


def _full(stack: ExitStack, directory: Path) -> Running:
    data, world = directory / "data", World.real()
    api_key = prepare(data)
    command = command_of(directory, ["healthy"] * len(FILTERS))
    receivers = stack.enter_context(Popen(command, cwd=HERE, stdin=PIPE, stdout=PIPE))
    stack.callback(receivers.kill)
    assert receivers.stdout is not None
    urls = urls_of(json.loads(receivers.stdout.readline()))
    found = open_directory(data, world.run_sync, world.entropy)
    job = partial(install, number=1, features=FEATURES, now_ms=world.now_ms(), hooks=urls)
    found.store.write_one_now(job)
    found.store.close()
    authority = str(directory / "ca.pem")
    server = Server.serving(data, SVC_WEBHOOK_ALLOW_NETWORKS="127.0.0.0/8", SVC_WEBHOOK_CA_FILE=authority)
    return Running(server, api_key, is_full=True)


def full_requests(devices: int, api_key: str, seed: int, share: float) -> Callable[[], bytes]:
    """As of `bench.load.requests`, of a device's account at a log-in, signed by the key of its browser."""
    chance = random.Random(seed)
    sender = senders(chance, devices, share)

    @cache
    def browser(number: int) -> tuple[BrowserKey, dict[str, Any], Subject]:
        signals = {**device_report(number), "client_token": f"{number:032x}"}
        return BrowserKey(number), signals, Subject(account_id=f"user-{number}", action="log_in")

    def make() -> bytes:
        number = sender()
        key, signals, subject = browser(number)
        fresh = {"nonce": f"{chance.getrandbits(128):032x}", "collected_at": time.time_ns() // 1_000_000}
        named = {"account_id": subject.account_id, "action": subject.action}
        about = compact({"sdk": {"platform": "web", "version": "0.1.0"}, **named})
        body = about[:-1] + b',"signals":' + key.signed(signals | fresh, PAGE_ORIGIN, subject) + b"}"
        return head(api_key, own_address(number), len(body)) + b"%032x\r\n\r\n" % chance.getrandbits(128) + body

    return make


def _summary(rows: dict[str, list[Row]]) -> None:
    print("\nmedians:")
    for name, measured in rows.items():
        print(f"{name:24}{_medians(measured)}")
    reference, *others = rows
    pairs = [(name, reference) for name in others]
    several = [name for name in others if name.endswith(" workers")]
    pairs += [(name, ONE_WORKER) for name in (*several, FULL) if {name, ONE_WORKER} <= rows.keys()]
    pairs += [(name, peers) for name in several if (peers := _peers(int(name.split()[0]))) in rows]
    print("\nmedians of the ratios within a round:")
    for name, beside in pairs:
        ratio = _medians([_ratios(ours, theirs) for ours, theirs in zip(rows[name], rows[beside], strict=True)])
        more = statistics.median(
            ours.cpu_us - theirs.cpu_us for ours, theirs in zip(rows[name], rows[beside], strict=True)
        )
        print(
            f"{name} beside {beside}: {ratio.rate:.2f} x requests, {ratio.p50_ms:.2f} x p50, {ratio.p99_ms:.2f} x p99, "
            f"{ratio.cpu_us:.2f} x CPU a request ({more:+.0f} us)"
        )


def _ratios(ours: Row, theirs: Row) -> Row:
    return Row(*(one / other if other else math.nan for one, other in zip(ours, theirs, strict=True)))


def _medians(rows: list[Row]) -> Row:
    columns: Any = zip(*rows, strict=True)
    return Row(*map(statistics.median, columns))


if __name__ == "__main__":
    main()
