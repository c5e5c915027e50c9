"""Decisions 9.3: no cache keeps an answer to a request with a key, whatever the answer is."""

from __future__ import annotations

import re

import pytest

from svc.features.routes import API, ROUTES
from svc.http.pages.app import create_app, documentation, paths, site
from svc.http.route import Route
from tests.support.live import ORIGIN, Live

pytestmark = pytest.mark.any_store

KEYED = [route for route in ROUTES if route.kinds and not route.media_type]
"""But for the stream, which has no end: `test_console_stream.py`."""
OPEN = [route for route in ROUTES if not route.kinds]
PAGES = sorted({re.sub(r"\{\w+\}", "x", path) for path in paths(create_app(site, documentation, api=API))})


def path_of(route: Route, live: Live) -> str:
    path = route.under[0] + route.path.replace("{organization_id}", live.organization.id)
    return re.sub(r"\{\w+\}", "x", path)


@pytest.mark.slow
async def test_responses_of_a_route_that_takes_a_key_are_not_cached(live: Live):
    """Decisions 9.3: successes, refused bodies, unknown resources, wrong methods, other keys and none."""
    secrets = {kind: live.issue(kind, "production")[1] for kind in sorted({route.kinds[0] for route in KEYED})}
    for route in sorted(KEYED, key=lambda route: route.method == "DELETE"):
        other = secrets["secret" if route.kinds[0] == "management" else "management"]
        await assert_not_cached(live, route, secrets[route.kinds[0]], other)


async def assert_not_cached(live: Live, route: Route, secret: str, other: str) -> None:
    headers = {"origin": ORIGIN} if route.kinds[0] == "public" else {}
    path = path_of(route, live)
    answers = [
        await live.client.request(method, path, params=query, headers=headers | key, content=content)
        for method, key, query, content in (
            (route.method, {"x-api-key": secret}, None, b"{}"),
            (route.method, {"x-api-key": secret, "content-type": "application/json"}, None, b"{}"),
            (route.method, {"x-api-key": secret}, {"nonsense": "1"}, b""),
            ("TRACE", {"x-api-key": secret}, None, b""),
            (route.method, {"x-api-key": other}, None, b""),
            (route.method, {"x-api-key": "nonsense"}, None, b""),
            (route.method, {}, None, b""),
        )
    ]
    assert {401, 405} < {answer.status_code for answer in answers}, route.operation_id
    assert [answer.headers["cache-control"] for answer in answers] == ["no-store"] * len(answers), route.operation_id


async def test_responses_to_a_request_with_a_key_are_not_cached(live: Live, key: str):
    """Decisions 9.3: also where nobody asked for it, and where nothing is."""
    for method, path in {(route.method, path) for route in OPEN for path in (path_of(route, live), "/nowhere")}:
        answer = await live.client.request(method, path, headers={"x-api-key": key})
        assert answer.headers["cache-control"] == "no-store", (method, path)


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.slow(0.2)
async def test_a_page_is_the_same_with_any_key_and_not_cached_then(live: Live, path: str):
    """Decisions 9.3: pages have no key, and anybody who sends one is told nothing of it."""
    without = await live.client.get(path)
    for kind in ("public", "secret", "management"):
        _, secret = live.issue(kind, None if kind == "management" else "development")
        for key in (secret, secret[:-1], "nonsense"):
            answer = await live.client.get(path, headers={"x-api-key": key})
            assert answer.headers["cache-control"] == "no-store"
            assert answer.status_code == without.status_code
            if answer.status_code == 200:
                assert answer.content == without.content


async def test_responses_refused_before_there_is_a_request_are_not_cached(live: Live):
    """Decisions 9.3: the edge cannot know whether a key came with it."""
    answer = await live.raw(b"GET /api/v1/events HTTP/1.1\r\n\r\n")
    assert (answer.status_code, answer.headers["cache-control"]) == (400, "no-store")
