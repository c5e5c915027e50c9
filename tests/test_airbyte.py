"""The source of `examples/airbyte`: it asks what the API has.

Airbyte's own program, where it is installed, reads changes with it, sync after sync.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
import trio
import yaml

from svc.features.feed.feed import HOLD_MS
from svc.world import World
from tests.spec.responses import visit
from tests.spec.test_changes import HOUR_MS, erase, update
from tests.support.live import live_service, report
from tests.support.process import Served

ROOT = Path(__file__).parents[1]
PROGRAM = "source-declarative-manifest"
TEXT = (ROOT / "examples" / "airbyte" / "manifest.yaml").read_text()
MANIFEST = yaml.safe_load(TEXT)
(STREAM,) = MANIFEST["streams"]
PATIENCE_S = 60


def test_the_connector_asks_for_what_the_api_has_and_hides_the_key():
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())
    operation, schemas = document["paths"]["/changes"]["get"], document["components"]["schemas"]
    retriever = STREAM["retriever"]
    assert retriever["requester"]["path"] == "/changes"
    assert retriever["requester"]["url_base"].endswith(document["servers"][0]["url"])
    parameters = {one["name"]: one["schema"] for one in operation["parameters"]}
    assert parameters["limit"]["maximum"] == int(retriever["requester"]["request_parameters"]["limit"])
    assert retriever["paginator"]["page_token_option"]["field_name"] in parameters
    page = schemas[operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]]
    strategy = retriever["paginator"]["pagination_strategy"]
    for name in ("next_cursor", "has_more"):
        assert name in page["required"]
        assert f"response['{name}']" in strategy["cursor_value"] + strategy["stop_condition"]
    assert retriever["record_selector"]["extractor"]["field_path"] == ["changes"]
    fields = schemas[page["properties"]["changes"]["items"]["$ref"].rpartition("/")[2]]["properties"]
    assert STREAM["schema_loader"]["schema"]["properties"].keys() == fields.keys()
    assert {STREAM["incremental_sync"]["cursor_field"], *STREAM["primary_key"]} <= fields.keys()
    asked = MANIFEST["spec"]["connection_specification"]["properties"]
    assert asked["secret_key"]["airbyte_secret"]
    assert "config['secret_key']" in retriever["requester"]["authenticator"]["api_token"]


async def populate(directory: Path) -> tuple[str, str, list[tuple[str, str]]]:
    """(public key, secret key, changes of some hours ago)."""
    now_ms = World.real().now_ms() - 5 * HOUR_MS
    async with live_service(directory, now_ms=now_ms) as live:
        public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
        made = [(await visit(live, public, report(device))).json() for device in (1, 2, 3)]
        await update(live, secret, made[0]["request_id"], label="fraud")
        gone = await live.client.get(f"/api/v1/events/{made[2]['request_id']}", headers={"x-api-key": secret})
        await erase(live, "visitor", gone.json()["visitor_id"])
        live.clock.now_ms += HOLD_MS
        page = (await live.client.get("/api/v1/changes", headers={"x-api-key": secret})).json()
        assert len(page["changes"]) == 4, "an erased event is only that"
        return public, secret, [(row["type"], row["request_id"]) for row in page["changes"]]


class Airbyte:
    """Its program with this source, as the platform runs it: a configuration, a catalog and the last state."""

    def __init__(self, folder: Path, port: int, key: str) -> None:
        self.folder = folder
        self.files: dict[str, str] = {}
        self.put("manifest-path", TEXT.replace('{limit: "200"}', '{limit: "2"}'))
        self.put("config", json.dumps({"url": f"http://127.0.0.1:{port}/", "secret_key": key}))
        stream = {"name": "changes", "json_schema": {}, "supported_sync_modes": ["full_refresh", "incremental"]}
        configured = {"stream": stream, "sync_mode": "incremental", "destination_sync_mode": "append_dedup"}
        self.put("catalog", json.dumps({"streams": [configured]}))

    def put(self, name: str, text: str) -> None:
        file = self.folder / f"{name}.yaml"
        file.write_text(text)
        self.files[name] = str(file)

    def run(self, command: str, *names: str) -> list[dict[str, Any]]:
        options = [part for name in ("manifest-path", "config", *names) for part in (f"--{name}", self.files[name])]
        done = subprocess.run(
            [PROGRAM, command, *options],
            env={**os.environ, "DO_NOT_TRACK": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    def sync(self) -> list[tuple[str, str]]:
        """What a destination gets; the state is that of the next sync."""
        said = self.run("read", "catalog", *(["state"] if "state" in self.files else []))
        self.put("state", json.dumps([one["state"] for one in said if one["type"] == "STATE"][-1:]))
        rows = [one["record"]["data"] for one in said if one["type"] == "RECORD"]
        assert all(("event" in row) == (row["type"] != "event.erased") for row in rows[-2:])
        return [(row["type"], row["request_id"]) for row in rows]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(PROGRAM) is None, reason="airbyte-cdk is not installed")
def test_a_sync_has_all_changes_and_the_next_one_those_that_are_new(tmp_path: Path):
    public, secret, old = trio.run(populate, tmp_path / "data")
    server = Served(tmp_path / "data")
    try:
        airbyte = Airbyte(tmp_path, server.port, secret)
        (status,) = [one["connectionStatus"] for one in airbyte.run("check") if one["type"] == "CONNECTION_STATUS"]
        assert status["status"] == "SUCCEEDED", status
        (catalog,) = [one["catalog"] for one in airbyte.run("discover") if one["type"] == "CATALOG"]
        assert [stream["name"] for stream in catalog["streams"]] == ["changes"]
        assert airbyte.sync() == old, "pages of two"
        first = visited(server.port, public, secret)
        assert airbyte.sync() == [*old, first], "of the two hours before the last change as well"
        assert airbyte.sync() == [first]
        airbyte.put("config", json.dumps({"url": f"http://127.0.0.1:{server.port}", "secret_key": public}))
        (status,) = [one["connectionStatus"] for one in airbyte.run("check") if one["type"] == "CONNECTION_STATUS"]
        assert status["status"] == "FAILED"
        assert "The key is not a secret key of this service." in status["message"]
    finally:
        assert server.terminate() == 0


def visited(port: int, public: str, secret: str) -> tuple[str, str]:
    """One event more, once its change is given out."""
    body = json.dumps({"sdk": {"platform": "web"}, "signals": report(9)})
    headers = {"content-type": "application/json", "origin": "https://shop.example", "x-api-key": public}
    request_id = asked(port, "POST", "/identify", body, headers)["request_id"]
    waiting = threading.Event()
    for _ in range(100):
        if request_id in json.dumps(asked(port, "GET", "/changes", None, {"x-api-key": secret})["changes"]):
            return "event.created", request_id
        waiting.wait(0.1)
    raise AssertionError("its change did not come")


def asked(port: int, method: str, path: str, body: str | None, headers: dict[str, str]) -> dict[str, Any]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    client.request(method, f"/api/v1{path}", body, headers)
    response = client.getresponse()
    found = json.loads(response.read())
    client.close()
    assert response.status == 200, found
    return found
