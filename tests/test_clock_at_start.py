"""Decisions 17.3, with real processes: a start with a clock that is behind the last write to the store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from svc.world import wall_clock_ms
from tests.support.ports import free_port
from tests.support.postgresql import Cluster
from tests.support.process import ENVIRONMENT, run, run_json, start
from tests.test_workers import get

BEHIND_S = 400 * 86_400
WAITING = "cannot serve yet, every request gets 503"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A store that was last written to in the future: by a clock that ran ahead, or before this one fell behind."""
    run_json("org", "create", "shop", "--data", str(tmp_path / "data"))
    file = tmp_path / "data" / "store" / "data.mdb"
    future_s = wall_clock_ms() / 1000 + BEHIND_S
    os.utime(file, (future_s, future_s))
    return tmp_path / "data"


def lines(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stderr is not None
    return (json.loads(line) for line in process.stderr)


def until(said: Iterator[dict[str, Any]], event: str) -> dict[str, Any]:
    return next(line for line in said if line["event"] == event)


def serving(data: Path, port: int, workers: str) -> subprocess.Popen[str]:
    settings = {**ENVIRONMENT, "SVC_WORKERS": workers}
    return start("serve", "--data", data, "--bind", f"127.0.0.1:{port}", stderr=subprocess.PIPE, env=settings)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_service_answers_503_and_says_why_until_the_operator_says_that_the_clock_is_right(data: Path, workers: str):
    port = free_port()
    with serving(data, port, workers) as process:
        try:
            said = lines(process)
            because = until(said, WAITING)["because"]
            assert "before the last write to the store" in because
            assert "svc retention confirm" in because
            status, body = get(port, "/readyz")
            assert (status, json.loads(body)["status"]) == (503, "unavailable")
            assert get(port, "/api/v1/healthz")[0] == 200
            status, body = get(port, "/api/v1/events")
            assert (status, json.loads(body)["error"]["code"]) == (503, "service_unavailable")
            run("retention", "confirm", "--data", str(data))
            until(said, "serving")
            assert get(port, "/readyz")[0] == 200
        finally:
            process.send_signal(signal.SIGTERM)
        for _ in said:
            pass
        assert process.wait(timeout=30) == 0


@pytest.mark.slow
def test_sigterm_ends_a_service_that_waits_with_status_0(data: Path):
    with serving(data, free_port(), "1") as process:
        until(lines(process), WAITING)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert process.returncode == 0


@pytest.mark.slow
def test_a_clock_that_is_an_hour_behind_serves_at_once(data: Path):
    file = data / "store" / "data.mdb"
    future_s = wall_clock_ms() / 1000 + 3_590
    os.utime(file, (future_s, future_s))
    with serving(data, free_port(), "1") as process:
        first = next(line["event"] for line in lines(process) if line["event"] in ("serving", WAITING))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert (first, process.returncode) == ("serving", 0)


@pytest.mark.slow
def test_a_node_waits_for_a_database_that_starts_after_it(cluster: Cluster, database: str, tmp_path: Path):
    """Behind a port on which nobody listens yet."""
    url = str(cluster.url(database))
    run("org", "create", "shop", "--data", str(tmp_path / "data"), SVC_STORE=url)
    port, relay_port = free_port(), free_port()
    away = url.replace(str(cluster.port), str(relay_port))
    settings = {**ENVIRONMENT, "SVC_STORE": away}
    command = ("serve", "--data", tmp_path / "data", "--bind", f"127.0.0.1:{port}")
    with start(*command, stderr=subprocess.PIPE, env=settings) as process:
        try:
            said = lines(process)
            assert "does not respond" in until(said, WAITING)["because"]
            status, body = get(port, "/readyz")
            assert (status, json.loads(body)["checks"]["store"]) == (503, "unreachable")
            with relayed(relay_port, cluster.port):
                until(said, "serving")
                assert get(port, "/readyz")[0] == 200
                process.send_signal(signal.SIGTERM)
                for _ in said:
                    pass
                assert process.wait(timeout=30) == 0
        finally:
            process.kill()


@contextmanager
def relayed(port: int, to: int) -> Iterator[None]:
    """What connects to a port reaches another one."""
    code = (
        "import sys, trio\n"
        "async def pump(a, b):\n"
        "    async for data in a: await b.send_all(data)\n"
        "async def relay(one):\n"
        "    async with await trio.open_tcp_stream('127.0.0.1', int(sys.argv[2])) as other, trio.open_nursery() as n:\n"
        "        n.start_soon(pump, one, other); await pump(other, one); n.cancel_scope.cancel()\n"
        "trio.run(trio.serve_tcp, relay, int(sys.argv[1]))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(port), str(to)], stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()
