"""Decisions 2.7: one line of the log for each request, and in it the reason of a 401, which its caller is not told."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio

from svc.http.traffic import UNKNOWN
from svc.identify.tables import EVENTS
from tests.spec.responses import visit
from tests.support.live import ORIGIN, Live, live_service, report
from tests.support.worlds import HeldThreads
from tests.test_docs import block


@pytest.fixture
def logged() -> Generator[list[Any]]:
    with structlog.testing.capture_logs() as lines:
        yield lines


def requests(lines: list[Any]) -> list[Any]:
    return [line for line in lines if line["event"].startswith(("request", "client closed request"))]


async def test_an_identification_is_logged_in_one_line_with_key_result_and_duration(live: Live, logged: list[Any]):
    key, secret = live.issue()
    response = await visit(live, secret, report(1))
    (line,) = requests(logged)
    assert isinstance(line.pop("duration_ms"), float)
    assert line == {
        "event": "request",
        "log_level": "info",
        "request_id": response.headers["x-request-id"],
        "operation": "identify",
        "status": 200,
        "organization": live.organization.id,
        "key_id": key.id,
    }


async def test_the_reason_of_a_401_is_in_the_log_line_and_not_in_the_response(live: Live, logged: list[Any]):
    key, public = live.issue(environment="production")
    response = await live.identify(public, origin="https://other.example")
    (line,) = requests(logged)
    assert (line["status"], line["code"], line["key_id"]) == (401, "unauthorized", key.id)
    assert line["reason"] == "the origin is not in the key's list: 'https://other.example'"
    assert "organization" not in line
    assert line["reason"] not in response.text
    shown = json.loads(block("monitoring.md", "json", "the origin is not"))
    made_up = {name: line[name] for name in ("request_id", "key_id", "duration_ms")}
    line["level"] = line.pop("log_level")
    assert shown | made_up == line | {"timestamp": shown["timestamp"]}, "the page shows another line"
    await live.client.post("/api/v1/identify", headers={"x-api-key": "svc_pk_nonsense"})
    assert requests(logged)[1]["reason"] == "not a key of this service, or mistyped"


async def test_every_kind_of_refusal_has_one_line_with_its_code(live: Live, key: str, logged: list[Any]):
    _, management = live.issue("management", role="developer")
    sent = {"x-api-key": key, "origin": ORIGIN, "content-type": "application/json"}
    own = f"/api/v1/management/organizations/{live.organization.id}"
    answers = [
        await live.client.get("/api/v1/nowhere?key=" + key),
        await live.client.delete("/api/v1/identify"),
        await live.client.post("/api/v1/identify", content="{", headers=sent),
        await live.client.post("/api/v1/identify", content="x" * (2 << 20), headers=sent),
        await live.client.get(f"{own}/proxy-credentials", headers={"x-api-key": management}),
    ]
    lines = requests(logged)
    assert [line["request_id"] for line in lines] == [answer.headers["x-request-id"] for answer in answers]
    assert [line["status"] for line in lines] == [answer.status_code for answer in answers] == [404, 405, 422, 413, 403]
    assert [line["code"] for line in lines] == [answer.json()["error"]["code"] for answer in answers]
    operations = [UNKNOWN, UNKNOWN, "identify", "identify", "listProxyKeys"]
    assert [line["operation"] for line in lines] == operations
    assert key not in json.dumps(lines)


async def test_an_internal_error_is_a_warning_beside_the_exception(live: Live, server_key: str, logged: list[Any]):
    request_id = (await live.identify(server_key, origin=None)).json()["request_id"]
    with live.corrupted(EVENTS):
        response = await live.client.get(f"/api/v1/events/{request_id}", headers={"x-api-key": server_key})
    assert response.status_code == 500
    request_id = response.headers["x-request-id"]
    told = [(line["event"], line["log_level"]) for line in logged if line.get("request_id") == request_id]
    assert told == [("request", "warning")]
    assert [line["log_level"] for line in logged if line["event"] == "corrupt row"] == ["error"]


@pytest.mark.slow
async def test_a_client_disconnect_is_logged_without_a_status(live: Live, threads: HeldThreads, logged: list[Any]):
    key, public = live.issue()
    threads.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(live.identify, public)
        while not threads.waiting:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    while not requests(logged):
        await trio.lowlevel.checkpoint()
    threads.release()
    (line,) = requests(logged)
    assert (line["event"], line["operation"], line["key_id"]) == ("client closed request", "identify", key.id)
    assert "status" not in line


@pytest.mark.parametrize(("setting", "statuses"), [("all", [200, 401]), ("refused", [401]), ("none", [])])
async def test_which_requests_are_logged_is_a_setting(
    directory: Path, logged: list[Any], setting: str, statuses: list[int]
):
    async with live_service(directory, log_requests=setting) as live:
        await live.client.get("/healthz")
        await live.client.get("/api/v1/events")
    assert [line["status"] for line in requests(logged)] == statuses
