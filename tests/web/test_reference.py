"""The API reference in a headless Chromium against a real `svc dev`: tried with development keys, samples pasted."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc.http.routes import API
from tests.support.chromium import browser, built, node
from tests.support.process import ENVIRONMENT, PROGRAM, read_until

pytestmark = pytest.mark.slow(60)

LANGUAGES = {"curl", "JavaScript", "Python"}
MADE_UP = {"request_id", "proxy_credential_id", "key_id", "webhook_id", "visitor_id"}
"""Parameters whose value in a sample is an example, of which the service knows nothing."""
WITH_MADE_UP_BODY = {
    "supplementEvent": 422,
    "createWebhook": 422,
    "updateWebhook": 422,
    "signIn": 401,
    "readSession": 401,
    "signOut": 401,
}
"""Operation -> its status where a token, a host that resolves or a session is left to fill in."""


@pytest.fixture(scope="module")
def keys() -> dict[str, str]:
    return {}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, str]) -> Iterator[str]:
    built()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        bind = f"127.0.0.1:{free.getsockname()[1]}"
    data: Path = tmp_path_factory.mktemp("service") / "data"
    command = [*PROGRAM, "dev", "--data", str(data), "--bind", bind]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT)
    try:
        shown = read_until(process, "Ctrl-C")
        for kind, key in re.findall(r"^  (public|secret|management) +(svc_\S+)$", shown, re.MULTILINE):
            keys[f"SVC_{kind.upper()}_KEY"] = key
        yield f"http://{bind}"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


@pytest.fixture(scope="module")
def used(service: str, keys: dict[str, str]) -> dict[str, Any]:
    """What `web/browsers/reference.mjs` found."""
    with pytest.MonkeyPatch.context() as patch:
        for name, key in keys.items():
            patch.setenv(name, key)
        return json.loads(browser().run("reference.mjs", service))


def test_management_operations_are_tried_with_a_management_key(used: dict[str, Any]):
    assert used["tried"] == {
        "listSdkKeys": "200",
        "listRiskSignals": "200",
        "issueProxyKey": "201",
        "streamEvents": "200",
    }
    assert (used["violations"], used["console"], used["failed"], used["outside"]) == ([], [], [], [])


def test_an_operation_is_found_by_words_and_opened_by_keyboard(used: dict[str, Any]):
    assert used["found"] == ["rotateWebhookSecret"]
    assert used["focused"].endswith("rotateWebhookSecret")


def test_every_webhook_is_shown(used: dict[str, Any]):
    assert "visitor.suspect" in used["webhooks"]
    assert len(used["webhooks"]) == 6


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_opened_operations_have_no_serious_finding_of_axe(used: dict[str, Any], look: str):
    found = used["looks"][look]
    serious = {one["id"]: one["nodes"] for one in found["axe"] if one["impact"] in ("serious", "critical")}
    assert (serious, found["overflows"]) == ({}, [])


def test_every_operation_has_samples_and_a_shown_one_is_the_same(used: dict[str, Any], keys: dict[str, str]):
    assert set(used["samples"]) == {route.operation_id for route in API}
    assert {frozenset(samples) for samples in used["samples"].values()} == {frozenset(LANGUAGES)}
    assert used["shown"] == used["samples"]["listSdkKeys"]
    assert keys["SVC_PUBLIC_KEY"] in used["withKey"], "a key that was entered is part of the sample"


def environment(keys: dict[str, str], folder: Path) -> dict[str, str]:
    (folder / ".curlrc").write_text('silent\nmax-time = 3\nwrite-out = "\\n%{http_code}"\n')
    return {**os.environ, **keys, "CURL_HOME": str(folder), "SVC_SESSION": "none"}


def test_every_curl_sample_works_as_it_is_pasted(used: dict[str, Any], keys: dict[str, str], tmp_path: Path):
    unexpected: dict[str, tuple[str, str]] = {}
    for route in API:
        sample = used["samples"][route.operation_id]["curl"]
        done = subprocess.run(
            ["bash", "-c", sample],
            env=environment(keys, tmp_path),
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        status = done.stdout.rpartition("\n")[2]
        expected = {route.status, *(status for status, _ in route.other_answers)}
        if MADE_UP & set(re.findall(r"{(\w+)}", route.path)):
            expected |= {404}
        expected |= {WITH_MADE_UP_BODY.get(route.operation_id, route.status)}
        if int(status or 0) not in expected:
            unexpected[route.operation_id] = (status, done.stdout[-300:])
    assert unexpected == {}


@pytest.mark.parametrize("operation", ["listEvents", "identify", "listSdkKeys", "issueSdkKey"])
def test_a_sample_in_another_language_works_as_it_is_pasted(
    used: dict[str, Any], keys: dict[str, str], tmp_path: Path, operation: str
):
    status = str(next(route.status for route in API if route.operation_id == operation))
    for language, program, name in (("JavaScript", str(node().node), "one.mjs"), ("Python", sys.executable, "one.py")):
        (tmp_path / name).write_text(used["samples"][operation][language])
        done = subprocess.run(
            [program, str(tmp_path / name)],
            env=environment(keys, tmp_path),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.stdout.startswith(f"{status} {{"), (language, done.stdout, done.stderr)
