"""What an identification costs beside the bare front that carries it, or beside another version of the service.

In one run and in turn: bare hypercorn + quart-trio answering the same body with a constant, and this service doing the
whole durable job (keys, admission, detection, matching, one transaction on disk, billing). 32 keep-alive clients, 70 %
of devices that came before, each in a network of its own, fresh idempotency keys. Reports are `small` ones of the web
SDK after gzip, or others of `bench.reports.Kind`. With `--beside DIRECTORY` the service of that checkout stands for the
bare front.

    python -m bench.identify [--report small|large|made-up] [--seconds 6] [--rounds 3] [--without-tokens]
                             [--organizations 1] [--beside DIRECTORY]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from bench.load import CLIENTS, Measured, own_address, requests, run
from bench.measures import cpu_times_s
from bench.reports import KINDS, Kind, device_report
from bench.sdk_visits import SdkVisits
from tests.support.process import PROGRAM

ENVIRONMENT = {**os.environ, "SVC_TRUSTED_PROXIES": "127.0.0.1/32", "SVC_METRICS_BIND": ""}
HERE = Path(__file__).parents[1]


class Row(NamedTuple):
    measured: Measured
    cpu_us: float
    """Server CPU per request, user and system."""
    user_us: float

    @property
    def rate(self) -> float:
        return self.measured.requests / self.measured.seconds


class Visits(NamedTuple):
    """Requests to measure with."""

    said: str
    """How large their bodies are, in words."""
    requests: Callable[[str, int, float], Callable[[], bytes]]
    """Of an API key, a seed, and the share of devices that came before."""

    @classmethod
    def of(cls, kind: Kind, devices: int, *, token: bool) -> Visits:
        """Of so many devices, with their client tokens or without."""
        if kind == "made-up":
            bodies = [report_body(number, token=token) for number in range(devices)]
            said = f"bodies of {statistics.mean(map(len, bodies)):.0f} bytes"
            return cls(said, lambda key, seed, share: requests(key, bodies, seed, own_address, share))
        sdk = SdkVisits(devices, kind, token=token)
        sent, read = sdk.body_bytes
        return cls(f"bodies of {sent:.0f} bytes, {read:.0f} after gzip is undone", sdk.returning)


class Server:
    """A server process, which may listen on a free port, and the CPU it used."""

    def __init__(self, *command: str, checkout: Path = HERE, port: int = 0) -> None:
        self.port = port
        # Not a pipe: one that nobody reads stops the server when it is full.
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  `stop` closes it
        self.process = subprocess.Popen(command, cwd=checkout, env=ENVIRONMENT, stderr=self._log)

    @classmethod
    def serving(cls, directory: str | Path, *options: str, checkout: Path = HERE) -> Server:
        """`svc serve` on a data directory, when it listens."""
        port = free_port()
        bind = ("--bind", f"127.0.0.1:{port}")
        server = cls(*PROGRAM, "serve", "--data", str(directory), *bind, *options, checkout=checkout, port=port)
        try:
            wait_for(port)
        except BaseException:
            server.process.kill()
            raise
        return server

    def cpu(self) -> tuple[float, float]:
        """(user, system) seconds so far."""
        user, system, *_ = cpu_times_s(self.process.pid)
        return user, system

    def stop(self) -> list[dict[str, Any]]:
        """End it; its log."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)
        with self._log:
            self._log.seek(0)
            return [json.loads(line) for line in self._log if line.startswith("{")]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--report", choices=KINDS, default="small")
    parser.add_argument("--seconds", type=float, default=6, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of measurements")
    parser.add_argument("--devices", type=int, default=6_000, help="that may come for the first time")
    parser.add_argument("--returning", type=float, default=0.7, help="share of devices that came before")
    parser.add_argument("--without-tokens", action="store_true", help="reports without a client token")
    parser.add_argument("--organizations", type=int, default=1, help="that send, each with devices of its own")
    parser.add_argument("--beside", type=Path, help="another checkout")
    options = parser.parse_args()
    visits = Visits.of(options.report, options.devices, token=not options.without_tokens)
    print(
        f"{CLIENTS} clients, {visits.said}, {options.returning:.0%} returns, "
        f"{options.rounds} rounds of {options.seconds:g} s each\n"
    )
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        other_name = "bare front" if options.beside is None else "other version"
        service, keys = _serve(f"{directory}/this", HERE, options.organizations)
        if options.beside is None:
            bare_port = free_port()
            other, other_keys = Server(sys.executable, "-m", "bench.bare", str(bare_port), port=bare_port), keys
            wait_for(bare_port)
        else:
            other, other_keys = _serve(f"{directory}/other", options.beside, options.organizations)
        rows: dict[str, list[Row]] = {other_name: [], "this service": []}
        print(f"{'':14}{'req/s':>8}{'p50 ms':>9}{'p99 ms':>9}{'CPU us':>9}{'user us':>9}{'refused':>9}")
        loads = [
            in_turn([visits.requests(key, 1, options.returning) for key in senders]) for senders in (other_keys, keys)
        ]
        for number in range(options.rounds + 1):
            for name, server, load in ((other_name, other, loads[0]), ("this service", service, loads[1])):
                row = _measure(server, load, options.seconds if number else min(2.0, options.seconds))
                if number:  # the first round warms caches up
                    rows[name].append(row)
                    print(_line(name, row))
        other.stop()
        log = service.stop()
    _summary(rows, log, other_name)


def _measure(server: Server, load: Callable[[], bytes], seconds: float) -> Row:
    user, system = server.cpu()
    measured = run(server.port, load, seconds)
    user_after, system_after = server.cpu()
    used = user_after - user
    return Row(measured, 1e6 * (used + system_after - system) / measured.requests, 1e6 * used / measured.requests)


def _summary(rows: dict[str, list[Row]], log: list[dict[str, Any]], other_name: str) -> None:
    pairs = list(zip(rows["this service"], rows[other_name], strict=True))
    rate = statistics.median(ours.rate / other.rate for ours, other in pairs)
    cpu = statistics.median(ours.cpu_us - other.cpu_us for ours, other in pairs)
    ratio = statistics.median(ours.cpu_us / other.cpu_us for ours, other in pairs)
    print(
        f"\nthis service answers {rate:.2f} x the requests of the {other_name}; "
        f"each costs {cpu:+.0f} us of CPU beside it, x {ratio:.3f}"
    )
    stopped = next((entry for entry in log if entry["event"] == "stopped"), None)
    if stopped is not None and stopped["commits"]:
        print(f"{stopped['jobs'] / stopped['commits']:.1f} requests per commit, {stopped['commits']} commits")


def _line(name: str, row: Row) -> str:
    measured = row.measured
    return (
        f"{name:14}{row.rate:8.0f}{measured.p50_ms:9.2f}{measured.p99_ms:9.2f}{row.cpu_us:9.0f}{row.user_us:9.0f}"
        f"{measured.refused:9}"
    )


def in_turn(loads: list[Callable[[], bytes]]) -> Callable[[], bytes]:
    """The requests of several senders, one of each after the other."""
    turns = cycle(loads)
    return lambda: next(turns)()  # noqa: PLW0108  another one each time


def _serve(directory: str, checkout: Path, organizations: int) -> tuple[Server, list[str]]:
    Path(directory).mkdir()
    keys = [prepare(directory, checkout) for _ in range(organizations)]
    return Server.serving(directory, checkout=checkout), keys


def prepare(directory: str, checkout: Path = HERE) -> str:
    """A production key of a new organization with enough credit, so that billing is part of the job, made by the
    service of this checkout.
    """
    organization = svc(
        "org", "create", "bench", "--credit-usd", "100000", "--rate-limit", "0", "--data", directory, checkout=checkout
    )
    issued = svc(
        "key", "issue", organization["organization_id"], "--kind", "public", "--environment", "production",
        "--origin", "https://shop.example", "--data", directory, checkout=checkout,
    )  # fmt: skip
    return issued["secret"]


def svc(*arguments: str, checkout: Path = HERE) -> Any:
    """What a command of the service prints as JSON."""
    done = subprocess.run(
        [*PROGRAM, *arguments, "--json"],
        check=True, capture_output=True, text=True, cwd=checkout, env=ENVIRONMENT,
    )  # fmt: skip
    return json.loads(done.stdout)


def report_body(number: int, *, token: bool) -> bytes:
    signals = device_report(number)
    if token:
        signals["client_token"] = f"{number:032x}"
    return json.dumps({"sdk": {"platform": "web", "version": "0.1.0"}, "signals": signals}).encode()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"nothing listens on port {port}")


if __name__ == "__main__":
    main()
