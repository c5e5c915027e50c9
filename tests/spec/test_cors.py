"""Decisions 3.11, interface 2.2 (headers readable from a browser): what pages of other origins may do."""

from __future__ import annotations

import httpx
import pytest

from tests.spec.responses import IDENTIFY, assert_error, assert_request_id, body_of, nothing_stored, post, visit
from tests.support.live import ORIGIN, Live

pytestmark = pytest.mark.any_store

ASKED = {"access-control-request-method": "POST", "access-control-request-headers": "x-api-key,content-type"}
CORS = "access-control-"


def words(header: str) -> set[str]:
    return {word.strip().lower() for word in header.split(",")}


def cors_headers(response: httpx.Response) -> set[str]:
    return {name for name in response.headers if name.startswith(CORS)}


@pytest.mark.parametrize("origin", [ORIGIN, "https://never-seen.example", "http://localhost:3000", "null"])
async def test_a_preflight_gets_a_response_for_any_origin_without_a_key(live: Live, origin: str):
    """Decisions 3.11: `204`, methods, headers, 7200 seconds."""
    with nothing_stored(live):
        response = await live.client.options(IDENTIFY, headers={"origin": origin, **ASKED})
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["access-control-allow-origin"] == origin
    assert words(response.headers["access-control-allow-methods"]) == {"post"}
    assert words(response.headers["access-control-allow-headers"]) == {
        "x-api-key", "idempotency-key", "content-type", "content-encoding", "x-svc-sdk-platform", "x-svc-replay",
        "traceparent", "tracestate", "baggage", "sentry-trace",
    }  # fmt: skip
    assert response.headers["access-control-max-age"] == "7200"
    assert "origin" in words(response.headers["vary"])
    assert "access-control-allow-credentials" not in response.headers
    assert_request_id(response.headers["x-request-id"])


async def test_a_preflight_never_checks_a_key_or_a_query(live: Live):
    """Decisions 3.11: browsers send neither; a wrong one changes nothing."""
    headers = {"origin": ORIGIN, "x-api-key": "nonsense", **ASKED}
    assert (await live.client.options(IDENTIFY, headers=headers)).status_code == 204


@pytest.mark.slow(0.2)
async def test_a_response_echoes_its_origin_and_exposes_its_headers(live: Live, key: str):
    """Decisions 3.11, interface 2.2."""
    response = await visit(live, key)
    assert response.headers["access-control-allow-origin"] == ORIGIN
    assert response.headers["vary"] == "Origin"
    assert words(response.headers["access-control-expose-headers"]) == {
        "svc-balance-micros", "ratelimit-limit", "ratelimit-remaining", "retry-after", "x-request-id",
    }  # fmt: skip


async def test_errors_can_be_read_by_the_page_too(live: Live, key: str):
    """Decisions 3.11: "errors included", a refused origin among them."""
    organization = live.new_organization(credit_usd=0, rate_limit=1)
    _, limited = live.issue(organization=organization.number)
    _, poor = live.issue(environment="production", organization=live.new_organization(credit_usd=0).number)
    await visit(live, limited)
    responses = {
        401: await visit(live, "nonsense"),
        402: await visit(live, poor),
        405: await live.client.put(IDENTIFY, headers={"origin": ORIGIN}),
        413: await post(live, key, b" " * (2 << 20)),
        415: await post(live, key, body_of(), content_type="text/plain"),
        422: await visit(live, key, sdk=5),
        429: await visit(live, limited),
    }
    for status, response in responses.items():
        assert response.status_code == status
        assert response.headers["access-control-allow-origin"] == ORIGIN
        assert response.headers["vary"] == "Origin"
        assert "x-request-id" in words(response.headers["access-control-expose-headers"])
    refused = await visit(live, key, origin="https://other.example")
    assert_error(refused, 401, "unauthorized")
    assert refused.headers["access-control-allow-origin"] == "https://other.example"


async def test_a_response_to_a_non_browser_has_no_cors_headers(live: Live, server_key: str):
    """Decisions 3.11: there is no origin to echo."""
    response = await visit(live, server_key, origin=None)
    assert response.status_code == 200
    assert cors_headers(response) == set()


async def test_no_other_path_has_cors_headers(live: Live):
    """Decisions 3.11: "no CORS elsewhere"."""
    for path in ("/healthz", "/readyz", "/api/v1/healthz", "/nowhere", "/api/v1/events"):
        for method in ("GET", "OPTIONS"):
            response = await live.client.request(method, path, headers={"origin": ORIGIN, **ASKED})
            assert cors_headers(response) == set()
