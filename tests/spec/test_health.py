"""Interface 4.3 and decisions 9.1: is the process up, and can it serve."""

from __future__ import annotations

import math
import os
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pytest
import structlog
import trio

import svc
from svc.identify.network_data.lookup import BuiltInRanges
from svc.kernel.limits import lasting
from tests.spec.responses import assert_error, nothing_stored, visit
from tests.spec.subscriber import URL, Subscriber
from tests.support.live import Live, live_service
from tests.support.receivers import DOWN

PLACES = ("", "/api/v1")


@pytest.mark.parametrize("place", PLACES)
async def test_health_is_public_and_reports_the_version(live: Live, place: str):
    """Decisions 9.1: under `/api/v1` and at the root, without a key, never cached."""
    for headers in ({}, {"x-api-key": "nonsense"}, {"origin": "https://other.example"}):
        response = await live.client.get(f"{place}/healthz", headers=headers)
        assert response.status_code == 200
        assert response.json() == {"status": "ok", "version": svc.__version__}
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("place", PLACES)
async def test_readiness_names_its_checks(live: Live, place: str):
    """Decisions 9.1."""
    response = await live.client.get(f"{place}/readyz")
    answer = response.json()
    assert (response.status_code, answer["status"]) == (200, "ready")
    assert set(answer) == {"status", "checks"}
    assert set(answer["checks"]) == {"store", "webhooks", "network_data"}
    assert (answer["checks"]["store"], answer["checks"]["webhooks"]) == ("ok", "ok")
    assert answer["checks"]["network_data"] in ("ok", "stale")
    assert response.headers["cache-control"] == "no-store"


async def test_a_head_request_gets_the_same_headers_without_a_body(live: Live):
    """Decisions 1.7: HEAD is GET without its body (RFC 9110, 9.3.2)."""
    for path in ("/healthz", "/readyz", "/api/v1/healthz"):
        whole, head = await live.client.get(path), await live.client.head(path)
        assert (head.status_code, head.content) == (200, b"")
        for name in ("content-type", "content-length", "cache-control"):
            assert head.headers[name] == whole.headers[name]


@pytest.mark.served(network_builtin=False)
async def test_missing_network_data_does_not_fail_readiness(live: Live):
    """Decisions 9.1."""
    response = await live.client.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (200, "ready")
    assert response.json()["checks"]["network_data"] == "missing"


async def test_old_network_data_is_stale_and_does_not_fail_readiness(directory: Path):
    """Decisions 9.1: older than the setting says."""
    built_at = datetime.combine(BuiltInRanges().built_at, time(), UTC)
    for days, expected in ((30, "ok"), (31, "stale")):
        now_ms = round((built_at + timedelta(days=days)).timestamp() * 1000)
        async with live_service(directory, now_ms=now_ms, network_stale_days=30) as live:
            response = await live.client.get("/readyz")
            assert (response.status_code, response.json()["status"]) == (200, "ready")
            assert response.json()["checks"]["network_data"] == expected


async def webhooks(hooks: Subscriber) -> str:
    """The check, on an answer that is ready whatever it says."""
    response = await hooks.live.client.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (200, "ready")
    return response.json()["checks"]["webhooks"]


async def test_webhooks_are_behind_while_a_sendable_one_is_a_minute_late(hooks: Subscriber):
    """Decisions 9.1, which says what it never fails; here it is also what it means."""
    await hooks.create()
    hooks.receivers.hold(URL)
    await hooks.happen(3)  # two are on their way, one waits
    await hooks.wait(seconds=59)
    assert await webhooks(hooks) == "ok"
    await hooks.wait(seconds=16)
    assert await webhooks(hooks) == "behind"
    await hooks.receivers.release(URL)
    await hooks.wait(seconds=16)
    assert await webhooks(hooks) == "ok"


@pytest.mark.parametrize("why", ["paused", "failing"])
async def test_deliveries_waiting_for_a_receiver_do_not_count_as_behind(hooks: Subscriber, why: str):
    """Decisions 8.4: a paused or failing endpoint's deliveries wait for as long as it takes."""
    endpoint_id, _ = await hooks.create()
    hooks.receivers.respond_with(DOWN)
    if why == "paused":
        await hooks.happen()
        await hooks.patch(endpoint_id, paused=True)
    else:
        await hooks.happen(5)
    await hooks.wait(seconds=590)
    assert await webhooks(hooks) == "ok"


async def test_webhooks_are_behind_when_no_outbox_runs(hooks: Subscriber):
    """Decisions 9.1: without an outbox at work, nothing is known to be in time."""
    hooks.live.clock.advance(seconds=61)
    assert hooks.live.service.outbox.is_behind(), "it has had no chance to look"
    await hooks.wait()
    assert await webhooks(hooks) == "ok"


@pytest.mark.served(map_bytes=3 << 19)
async def test_a_store_that_cannot_write_is_unavailable_until_a_write_fits(live: Live, key: str):
    """Interface 7, decisions 9.1: `503` with `status` `unavailable`; identify is `503 service_unavailable`."""
    full = {"noise": os.urandom(300_000).hex()}
    with_key = {"idempotency-key": "a"}
    while (response := await visit(live, key, full, headers=with_key)).status_code == 200:
        with_key = {"idempotency-key": with_key["idempotency-key"] + "a"}
    with nothing_stored(live):
        assert_error(response, 503, "service_unavailable")
        assert "svc-balance-micros" in response.headers
        for place in PLACES:
            ready = await live.client.get(f"{place}/readyz")
            assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
            assert ready.json()["checks"]["store"] != "ok"
            assert ready.headers["cache-control"] == "no-store"
        assert (await live.client.get("/healthz")).status_code == 200
    answer = (await visit(live, key, {"timezone": "UTC"}, headers=with_key)).json()
    assert "duplicate" not in answer
    assert (await live.client.get("/readyz")).status_code == 200


@pytest.mark.served(map_bytes=3 << 19, metrics=True)
async def test_a_full_store_is_one_line_of_the_log_however_many_requests_it_stops(
    live: Live, key: str, monkeypatch: pytest.MonkeyPatch
):
    """A line when it begins, with the reason, and one with the count when it is over."""
    monkeypatch.setattr(lasting, "QUIET_S", math.inf)
    with structlog.testing.capture_logs() as logs:
        while (await visit(live, key, {"noise": os.urandom(300_000).hex()})).status_code == 200:
            pass
        for _ in range(9):
            assert_error(await visit(live, key, {"noise": os.urandom(300_000).hex()}), 503, "service_unavailable")
        monkeypatch.setattr(lasting, "QUIET_S", 0.0)
        with trio.fail_after(10):
            while logs[-1]["event"] != "the store is available again":  # noqa: ASYNC110  of a log line
                await trio.sleep(0.05)
    told = [line for line in logs if "store" in line["event"] and line["event"] != "request"]
    assert [line["event"] for line in told] == ["store full, write rejected", "the store is available again"]
    assert told[0]["doing"] == "identify"
    assert "full" in told[0]["reason"] or "map_gib" in told[0]["reason"]
    assert told[1]["times"] == {"identify": 10}
