"""The API reference in a headless Chromium against a real `svc dev`: tried with development keys, samples pasted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc.features.routes import API
from svc.http.route import BASE, Route
from tests.support.chromium import browser, built, node
from tests.support.development import development_service

pytestmark = pytest.mark.slow(60)

LOOKS = ("signed out", "tried", "light", "dark", "phone")
LANGUAGES = {"curl", "JavaScript", "Python"}
SHOWN = tuple(route for route in API if BASE in route.under)
"""The operations of the reference: those of the console have a document of their own (decisions 9.2)."""
MADE_UP = {
    "request_id", "proxy_credential_id", "key_id", "webhook_id", "visitor_id", "account_id", "list_id", "review_id",
    "note_id", "member_id", "proposal_id", "view_id",
}  # fmt: skip
"""Parameters whose value in a sample is an example, of which the service knows nothing."""
WITH_MADE_UP_BODY = {
    "supplementEvent": 422,
    "createWebhook": 422,
    "updateWebhook": 422,
    "createList": 409,
    "saveRules": 409,
    "openReview": 404,
    "inviteMember": 409,
}
"""Operation -> its status where a token or a host that resolves is left to fill in, or where it was done before in
another language.
"""


@pytest.fixture(scope="module")
def keys() -> dict[str, str]:
    return {}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, str]) -> Iterator[str]:
    built()
    rate = {"SVC_MANAGEMENT_RATE": "0"}  # samples follow each other faster than a person
    with development_service(tmp_path_factory.mktemp("service") / "data", **rate) as running:
        keys |= {f"SVC_{kind.upper()}_KEY": key for kind, key in running.keys.items()}
        yield running.url


@pytest.fixture(scope="module")
def used(service: str, keys: dict[str, str]) -> dict[str, Any]:
    """What `web/browsers/reference.mjs` found."""
    with pytest.MonkeyPatch.context() as patch:
        for name, key in keys.items():
            patch.setenv(name, key)
        return json.loads(browser().run("reference.mjs", service))


def test_management_operations_are_tried_with_a_management_key(used: dict[str, Any]):
    assert used["tried"] == {"listSdkKeys": "200", "issueProxyKey": "201"}
    assert (used["violations"], used["console"], used["failed"], used["outside"]) == ([], [], [], [])


def test_an_operation_is_found_by_search_and_opened_by_keyboard(used: dict[str, Any]):
    assert used["found"] == ["rotateWebhookSecret"]
    assert used["focused"].endswith("rotateWebhookSecret")


def test_every_webhook_is_shown(used: dict[str, Any]):
    assert "visitor.suspect" in used["webhooks"]
    assert len(used["webhooks"]) == 8


@pytest.mark.parametrize("look", LOOKS)
def test_the_page_and_opened_operations_have_no_axe_finding_above_minor(used: dict[str, Any], look: str):
    found = used["looks"][look]
    above_minor = {one["id"]: one["nodes"] for one in found["axe"] if one["impact"] != "minor"}
    assert (above_minor, found["overflows"]) == ({}, [])


@pytest.mark.parametrize("look", LOOKS)
def test_the_page_shows_every_operation(used: dict[str, Any], look: str):
    """None is hidden or below the end of the page: the renderer has elements of its own, which our styles may meet."""
    found = used["looks"][look]
    assert (found["unseen"], found["clipped"]) == ([], False)


def test_the_page_follows_the_color_scheme_of_the_system_and_fits_a_phone(used: dict[str, Any]):
    brightness = {name: sum(found["background"]) / 3 for name, found in used["looks"].items()}
    assert brightness["dark"] < 64
    assert min(brightness["light"], brightness["phone"]) > 192
    assert used["looks"]["phone"]["beyond"] == []


def test_every_operation_has_samples_and_a_shown_one_is_the_same(used: dict[str, Any], keys: dict[str, str]):
    assert set(used["samples"]) == {route.operation_id for route in SHOWN}
    assert {frozenset(samples) for samples in used["samples"].values()} == {frozenset(LANGUAGES)}
    assert used["shown"] == used["samples"]["listSdkKeys"]
    assert keys["SVC_PUBLIC_KEY"] in used["withKey"], "a key that was entered is part of the sample"


def environment(keys: dict[str, str], folder: Path) -> dict[str, str]:
    (folder / ".curlrc").write_text('silent\nmax-time = 3\nwrite-out = "\\n%{http_code}"\n')
    return {**os.environ, **keys, "CURL_HOME": str(folder), "SVC_SESSION": "none"}


def statuses_of_curl(samples: dict[str, str], variables: dict[str, str]) -> dict[str, int]:
    def status(sample: str) -> int:
        command = ["bash", "-c", sample]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=20, check=False)
        return int(done.stdout.rpartition("\n")[2])

    return {name: status(sample) for name, sample in samples.items()}


RUNNERS = {
    "JavaScript": """
import { readFileSync, writeFileSync } from "node:fs";
const statuses = {}, names = JSON.parse(readFileSync("names.json"));
const asWritten = globalThis.fetch;
let name;
globalThis.fetch = async (url, options) => {
  const response = await asWritten(url, { ...options, signal: AbortSignal.timeout(3000) });
  statuses[name] = response.status;
  return response;
};
for (name of names) {
  await import(`./${name}.mjs`).catch((error) => { if (error.name !== "TimeoutError") throw error; });
}
writeFileSync("statuses.json", JSON.stringify(statuses));
""",
    "Python": """
import json, pathlib, urllib.error, urllib.request
statuses, as_written = {}, urllib.request.urlopen
def urlopen(request):
    try:
        response = as_written(request, timeout=3)
    except urllib.error.HTTPError as error:
        statuses[name] = error.code
        raise
    statuses[name] = response.status
    return response
urllib.request.urlopen = urlopen
for name in json.loads(pathlib.Path("names.json").read_text()):
    try:
        exec(compile(pathlib.Path(name + ".py").read_text(), name, "exec"), {})
    except (urllib.error.HTTPError, TimeoutError):
        pass
pathlib.Path("statuses.json").write_text(json.dumps(statuses))
""",
}
"""Programs that run each sample as it stands and note the status of its response. They end a stream after 3 s,
and go on after a sample that stops at a refusal, as Python's does.
"""


def statuses_of(language: str, samples: dict[str, str], folder: Path, variables: dict[str, str]) -> dict[str, int]:
    program, ending = (str(node().node), "mjs") if language == "JavaScript" else (sys.executable, "py")
    (folder / "names.json").write_text(json.dumps(list(samples)))
    for name, sample in samples.items():
        (folder / f"{name}.{ending}").write_text(sample)
    (folder / f"all.{ending}").write_text(RUNNERS[language])
    command = [program, f"all.{ending}"]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads((folder / "statuses.json").read_text())


def fitting(route: Route) -> set[int]:
    """The statuses that a sample may get which is sent as it stands."""
    expected = {route.status, *(status for status, _ in route.other_responses)}
    if MADE_UP & set(re.findall(r"{(\w+)}", route.path)):
        expected |= {404}
    return expected | {WITH_MADE_UP_BODY.get(route.operation_id, route.status)}


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_sample_works_as_pasted(used: dict[str, Any], keys: dict[str, str], tmp_path: Path, language: str):
    samples = {route.operation_id: used["samples"][route.operation_id][language] for route in SHOWN}
    variables = environment(keys, tmp_path)
    if language == "curl":
        statuses = statuses_of_curl(samples, variables)
    else:
        statuses = statuses_of(language, samples, tmp_path, variables)
    unexpected = {
        route.operation_id: statuses.get(route.operation_id)
        for route in SHOWN
        if statuses.get(route.operation_id) not in fitting(route)
    }
    assert unexpected == {}


@pytest.mark.parametrize("operation", ["listEvents", "identify", "listSdkKeys", "issueSdkKey"])
def test_a_sample_in_another_language_prints_the_response(
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
