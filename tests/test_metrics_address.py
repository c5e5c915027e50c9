"""Where the program answers `GET /metrics` (decisions 9.2): on loopback, at an address that no two services share."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from svc.kernel.config import Config
from tests.support.ports import free_port
from tests.support.process import ENVIRONMENT, Served, run, run_json, start


def serving(served: Served) -> list[str]:
    """The addresses of the metrics, as the log says them."""
    return next(json.loads(line)["metrics"] for line in served.log if '"serving"' in line)


def test_by_default_metrics_are_reachable_from_this_machine_only():
    assert Config().metrics_bind == "127.0.0.1:9464"


@pytest.mark.slow
def test_a_port_in_use_is_reported_in_one_line_with_how_to_choose_another(tmp_path: Path):
    for name in ("a", "b"):
        run_json("org", "create", "shop", "--data", str(tmp_path / name))
    served = Served(tmp_path / "a")
    try:
        (taken,) = serving(served)
        assert httpx.get(f"http://{taken}/metrics").text.startswith("# HELP svc_http_requests_total ")
        other = ("serve", "--data", str(tmp_path / "b"), "--bind", "127.0.0.1:0", "--metrics-bind")
        refused = run(*other, taken, status=1).stderr
        problem = f"svc: cannot listen on {taken}: Address already in use"
        assert refused == f"{problem}; choose another with --metrics-bind or SVC_METRICS_BIND\n"
        assert run(*other, "nowhere", status=1).stderr.startswith("svc: --metrics-bind: 'nowhere' is not host:port.")
        development = ("dev", "--data", str(tmp_path / "c"))
        refused = run(*development, status=1, SVC_BIND="nowhere").stderr
        assert refused.startswith("svc: SVC_BIND: 'nowhere' is not host:port.")
        assert not (tmp_path / "c").exists()
    finally:
        assert served.terminate() == 0


@pytest.mark.slow
def test_an_empty_setting_disables_the_metrics_address(tmp_path: Path):
    run_json("org", "create", "shop", "--data", str(tmp_path))
    served = Served(tmp_path, SVC_METRICS_BIND="")
    try:
        assert serving(served) == []
    finally:
        assert served.terminate() == 0


@pytest.mark.slow
def test_a_development_service_takes_a_free_port_and_prints_it(tmp_path: Path):
    command = ("dev", "--data", tmp_path, "--bind", f"127.0.0.1:{free_port()}")
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "SVC_METRICS_BIND"}
    process = start(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    try:
        assert process.stdout is not None
        shown = next(line for line in process.stdout if line.startswith("Metrics: "))
        address = re.fullmatch(r"Metrics: (http://127\.0\.0\.1:\d+/metrics)\n", shown)
        assert address
        scraped = httpx.get(address[1]).text
        assert re.search(
            r'^svc_http_requests_total\{code="",route="identify",status="200"\} 2\.0$', scraped, re.MULTILINE
        )
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 0
