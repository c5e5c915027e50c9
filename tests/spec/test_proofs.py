"""Proofs of reports over HTTP (docs/adr/0084): what is verified, and what the event says of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc.identify.keys.proof import WINDOW_MS
from tests.spec.responses import BROWSER, visit
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, report, succeeded
from tests.support.proofs import BrowserKey, compact, send

KEY = BrowserKey()
TOKEN = "0123456789abcdef0123456789abcdef"
OTHER_ORIGIN = "https://pay.example"


def signals(live: Live, nonce: str = "n-000001", **changes: Any) -> dict[str, Any]:
    return report(client_token=TOKEN, nonce=nonce, collected_at=live.clock.now_ms, **changes)


async def proof_of(live: Live, request_id: str) -> str | None:
    """What the event says of the proof; `None` where it says nothing."""
    _, secret = live.issue("secret")
    event = (await live.client.get(f"/api/v1/events/{request_id}", headers={"x-api-key": secret})).json()
    return event["document"]["linkage"].get("proof")


async def proof_of_visit(live: Live, key: str, body: bytes, headers: dict[str, str] = BROWSER, **given: Any) -> Any:
    return await proof_of(live, succeeded(await send(live, key, body, headers, **given))["request_id"])


async def test_a_report_that_its_browser_signed_is_known_as_such(live: Live):
    key = live.issue()[1]
    assert await proof_of_visit(live, key, KEY.signed(signals(live))) == "valid"


async def test_a_report_without_a_proof_is_identified_and_nothing_is_said_of_one(live: Live):
    key = live.issue()[1]
    answer = (await visit(live, key, signals(live))).json()
    assert answer["proven"] is False
    assert await proof_of(live, answer["request_id"]) is None


async def test_the_origin_that_is_signed_is_the_origin_of_the_request(live: Live):
    key = live.issue(allowed_origins=(ORIGIN, OTHER_ORIGIN))[1]
    assert await proof_of_visit(live, key, KEY.signed(signals(live)), origin=OTHER_ORIGIN) == "signature"
    body = KEY.signed(signals(live, "n-000002"), OTHER_ORIGIN)
    assert await proof_of_visit(live, key, body, origin=OTHER_ORIGIN) == "valid"


async def test_a_proxy_forwards_the_origin_and_the_proof_holds(live: Live):
    """Decisions 2.9: the origin is the visitor's, not that of the proxy's own request."""
    _, proxy = live.issue("proxy")
    forwarded = {
        "x-svc-visitor-ip": PUBLIC_ADDRESS,
        "x-svc-visitor-origin": ORIGIN,
        "x-svc-public-key": live.issue()[1],
    }
    assert await proof_of_visit(live, proxy, KEY.signed(signals(live)), forwarded, origin=None) == "valid"
    server = live.issue("secret")[1]
    from_a_server = KEY.signed(signals(live, "n-000002"))
    assert await proof_of_visit(live, server, from_a_server, {}, origin=None) == "no_origin"


async def test_a_proxy_that_reserializes_the_json_costs_the_proof(live: Live):
    key = live.issue()[1]
    signed = KEY.signed(signals(live))
    assert await proof_of_visit(live, key, json.dumps(json.loads(signed)).encode()) == "signature"


async def test_a_clock_that_is_wrong_by_a_week_proves(live: Live):
    key = live.issue()[1]
    for nonce, wrong_ms, found in (
        ("n-000001", WINDOW_MS, "valid"),
        ("n-000002", -WINDOW_MS, "valid"),
        ("n-000003", WINDOW_MS + 1, "time"),
        ("n-000004", -WINDOW_MS - 1, "time"),
    ):
        body = KEY.signed({**signals(live, nonce), "collected_at": live.clock.now_ms + wrong_ms})
        assert await proof_of_visit(live, key, body) == found


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"client_proof": "A" * 86}, "malformed"),
        ({"client_key": "A" * 87, "client_proof": "A" * 86}, "malformed"),
        ({"client_key": 7, "client_proof": ["A"]}, None),
        ({"client_key": "é" * 87, "client_proof": "\u0000" * 86}, "malformed"),
        ({"client_key": "A" * 900_000}, None),
    ],
)
async def test_no_key_and_no_proof_fails_an_identification(live: Live, members: dict[str, Any], found: str | None):
    key = live.issue()[1]
    assert await proof_of_visit(live, key, compact({**signals(live), **members})) == found


async def test_a_deferred_report_needs_no_proof(live: Live):
    """Its token was given to the client that made the identification, in the response; and it changes nothing."""
    key = live.issue()[1]
    answer = (await send(live, key, KEY.signed(signals(live)), BROWSER)).json()
    body = {"token": answer["deferred_token"], "sdk": {"platform": "web"}, "signals": {"tier": "deferred"}}
    path = f"/api/v1/events/{answer['request_id']}/supplement"
    response = await live.client.post(path, json=body, headers={"x-api-key": key, "origin": ORIGIN})
    assert response.status_code == 202


async def test_key_and_proof_are_of_no_weight_in_matching_without_a_token(live: Live):
    """They differ from visit to visit and say nothing of the device: the report is the one that was seen before."""
    key = live.issue()[1]
    first = (await send(live, key, KEY.signed(signals(live)), BROWSER)).json()
    bare = report(nonce="n-000002", collected_at=live.clock.now_ms)
    again = (await visit(live, key, bare)).json()
    assert (again["visitor_id"], again["visitor_confidence"]) == (first["visitor_id"], 89)


async def test_a_refused_request_uses_no_nonce(live: Live):
    """Decisions 4: what is over the limit is not even assessed, so that the retry of the same bytes proves."""
    key = live.issue(organization=live.new_organization(rate_limit=1).number)[1]
    bodies = [KEY.signed(signals(live, f"n-{turn:06d}")) for turn in range(2)]
    assert [(await send(live, key, body, BROWSER)).status_code for body in bodies] == [200, 429]
    live.clock.advance(seconds=2)
    answer = succeeded(await send(live, key, bodies[1], BROWSER))
    assert "triggers" not in answer
