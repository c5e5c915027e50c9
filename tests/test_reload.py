"""SIGHUP: what a running service takes over, and what it says of the rest."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from svc.cli.serve.reload import WHILE_RUNNING
from svc.kernel.config import Config
from tests.support.certificates import Files
from tests.support.process import Served

pytestmark = pytest.mark.slow(5)

PATIENCE_S = 20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "svc.toml"


def reloaded(server: Served, event: str = "settings reloaded") -> dict[str, Any]:
    """Send SIGHUP and wait for the next line that says so."""
    before = len(server.log)
    os.kill(server.pid, signal.SIGHUP)
    return said(server, event, before)


def said(server: Served, event: str, since: int = 0) -> dict[str, Any]:
    waiting = threading.Event()
    for _ in range(PATIENCE_S * 20):
        for line in list(server.log)[since:]:
            if event in line and line.startswith("{"):
                return json.loads(line)
        waiting.wait(0.05)
    raise AssertionError(f"{event!r} is not in\n{''.join(server.log)}")


def ask(server: Served) -> None:
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    client.request("GET", "/healthz")
    client.getresponse().read()
    client.close()


def test_each_reloadable_setting_exists():
    assert set(WHILE_RUNNING) <= set(Config.__struct_fields__)


def test_reloadable_settings_change_and_the_others_are_named(data: Path, file: Path):
    file.write_text("log_requests = 'none'\n")
    server = Served(data, SVC_CONFIG=str(file))
    ask(server)
    file.write_text("log_requests = 'all'\nread_rate = 7\nbatch_limit = 5\nregion = 'eu'\n")
    line = reloaded(server)
    assert line["changed"] == ["log_requests", "read_rate"]
    assert said(server, "need a restart")["settings"] == ["region", "batch_limit"]
    ask(server)
    assert said(server, '"getHealth"')["status"] == 200
    assert sum('"event":"request"' in text for text in server.log) == 1
    assert server.terminate() == 0


def test_an_invalid_file_changes_nothing(data: Path, file: Path):
    file.write_text("")
    server = Served(data, SVC_CONFIG=str(file))
    file.write_text("log_requests = 'none'\nmap_gib = 'lots'\n")
    assert "map_gib" in reloaded(server, "settings reload failed")["because"]
    ask(server)
    assert said(server, '"event":"request"')
    assert server.terminate() == 0
    assert not any("settings reloaded" in text for text in server.log)


def test_the_log_format_changes_to_text(data: Path, file: Path):
    file.write_text("")
    server = Served(data, SVC_CONFIG=str(file))
    file.write_text("log_format = 'console'\n")
    os.kill(server.pid, signal.SIGHUP)
    waiting = threading.Event()
    for _ in range(PATIENCE_S * 20):
        if any("settings reloaded" in line for line in server.log):
            break
        waiting.wait(0.05)
    ask(server)
    assert server.terminate() == 0
    (line,) = [line for line in server.log if "/healthz" in line]
    assert line.split()[1:4] == ["GET", "/healthz", "200"]
    assert "\x1b" not in line


def test_a_network_file_is_loaded_without_waiting_for_the_interval(data: Path, file: Path):
    file.write_text("network_interval_s = 3600\n")
    server = Served(data, SVC_CONFIG=str(file))
    (data / "network").mkdir()
    (data / "network" / "broken.mmdb").write_bytes(b"nothing")
    assert reloaded(server, "network file rejected")["file"] == "broken.mmdb"
    assert server.terminate() == 0


def test_a_reload_does_not_turn_tls_on_but_replaces_a_certificate(data: Path, file: Path, tmp_path: Path):
    files = Files(tmp_path)
    tls = f"tls_certfile = '{files.certfile}'\ntls_keyfile = '{files.keyfile}'\n"
    file.write_text("")
    server = Served(data, SVC_CONFIG=str(file))
    file.write_text(tls)
    assert reloaded(server, "need a restart")["settings"] == ["tls_certfile", "tls_keyfile"]
    ask(server)
    assert server.terminate() == 0
    server = Served(data, SVC_CONFIG=str(file))
    other = tmp_path / "other"
    other.mkdir()
    moved = Files(other)
    file.write_text(f"tls_certfile = '{moved.certfile}'\ntls_keyfile = '{moved.keyfile}'\n")
    assert reloaded(server)["changed"] == ["tls_certfile", "tls_keyfile"]
    said(server, "certificate reloaded")
    assert server.terminate() == 0
