"""A service under measurement: its process, organizations with keys, and the bodies that are sent to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from bench.measures import cpu_s, family, p50_p99
from bench.reports import device_report
from tests.support.process import PROGRAM

ENVIRONMENT = {**os.environ, "SVC_TRUSTED_PROXIES": "127.0.0.1/32", "SVC_METRICS_BIND": ""}
HERE = Path(__file__).parents[1]
PAGE = ("--kind", "public", "--environment", "production", "--origin", "https://shop.example")
"""Options of `svc key issue`, of a key that pages use."""


class Server:
    """A server process that listens, and the CPU that it and its children used. `with` ends it."""

    def __init__(self, *command: str, port: int, checkout: Path = HERE, **environment: str) -> None:
        self.port = port
        # Not a pipe: one that nobody reads stops the server when it is full.
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  `stop` closes it
        self.process = subprocess.Popen(
            command, cwd=checkout, env={**ENVIRONMENT, **environment}, stdout=subprocess.DEVNULL, stderr=self._log
        )
        self._await()

    @classmethod
    def serving(cls, directory: str | Path, *options: str, checkout: Path = HERE, **environment: str) -> Server:
        """`svc serve` on a data directory."""
        port = free_port()
        command = (*PROGRAM, "serve", "--data", str(directory), "--bind", f"127.0.0.1:{port}", *options)
        return cls(*command, port=port, checkout=checkout, **environment)

    def _await(self) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        self.process.kill()
        raise SystemExit(f"nothing listens on port {self.port}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def cpu_s(self) -> float:
        """Seconds so far."""
        return sum(map(cpu_s, family(self.process.pid)))

    def descriptors(self) -> int:
        """That the server has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def stop(self) -> list[dict[str, Any]]:
        """End it; its log."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)
        with self._log:
            self._log.seek(0)
            return [json.loads(line) for line in self._log if line.startswith("{")]


def svc(*arguments: str, checkout: Path = HERE) -> Any:
    """What a command of the service prints as JSON."""
    command = [*PROGRAM, *arguments, "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=checkout, env=ENVIRONMENT)
    return json.loads(done.stdout)


def organization(directory: str | Path, name: str = "bench", *, limited: bool = False, checkout: Path = HERE) -> str:
    """The id of a new one, with enough credit that billing is part of the job. `limited`: with the rate limit that all
    have.
    """
    more = () if limited else ("--rate-limit", "0")
    created = svc("org", "create", name, "--credit-usd", "100000", *more, "--data", str(directory), checkout=checkout)
    return created["organization_id"]


def issue(directory: str | Path, of: str, *options: str, checkout: Path = HERE) -> str:
    """A new key of an organization."""
    issued = svc("key", "issue", of, "--name", "bench", *options, "--data", str(directory), checkout=checkout)
    return issued["secret"]


def prepare(directory: str | Path, checkout: Path = HERE) -> str:
    """A production key of a new organization, made by the service of this checkout."""
    return issue(directory, organization(directory, checkout=checkout), *PAGE, checkout=checkout)


def report_body(number: int, *, token: bool) -> bytes:
    """Of an identification of a made-up device."""
    signals = device_report(number)
    if token:
        signals["client_token"] = f"{number:032x}"
    return json.dumps({"sdk": {"platform": "web", "version": "0.1.0"}, "signals": signals}).encode()


def timed(
    server: Server, questions: Mapping[str, Callable[[], str]], get: Callable[[str], tuple[int, bytes]], times: int
) -> None:
    """Ask each question so often, one after the other, and print how long that took; `get` returns status and body. The
    first ones warm caches up.
    """
    columns = f"{'p50 ms':>8}{'p99 ms':>8}{'CPU ms':>8}{'bytes':>10}{'cursor':>8}{'not 200':>9}"
    print(f"\n{'':30}{columns}")
    for name, question in questions.items():
        taken: list[float] = []
        size = further = refused = 0
        spent = 0.0
        for number in range(-5, times):
            if number == 0:
                spent = server.cpu_s()
            asked, began = question(), time.perf_counter()
            status, body = get(asked)
            if number >= 0:
                taken.append(1000 * (time.perf_counter() - began))
                size += len(body)
                further += b'"next_cursor"' in body or b'"is_complete":false' in body
                refused += status != 200
        p50, p99 = p50_p99(taken)
        cpu_ms = 1000 * (server.cpu_s() - spent) / times
        shares = f"{size / times:10,.0f}{further / times:8.0%}{refused:9}"
        print(f"{name:30}{p50:8.2f}{p99:8.2f}{cpu_ms:8.2f}{shares}", flush=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
