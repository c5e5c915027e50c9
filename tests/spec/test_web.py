"""Decisions 9.3: the start page, the SDK and the page `/try`, as browsers ask for them."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from svc.features.retention.sweeper import Progress, sweep
from svc.features.try_page.routes import MAX_VISITS, TryKeyError
from svc.http.pages import app as pages
from svc.identify.records import Event
from svc.identify.scoring.signals import CATALOG
from tests.spec.responses import BROWSER, DRIVEN, assert_error, assert_invalid, visit
from tests.support.live import ORIGIN, Live, live_service, report

HTML = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
"""What a browser sends when a person opens a page."""
built = pytest.mark.skipif(pages.sdk_version() is None, reason="the web pages are not built (`make web`)")


TOKEN = {"client_token": "the browser that tries the page"}
ANOTHER = {"client_token": "the browser of somebody else"}


class Trying(NamedTuple):
    """A service whose page `/try` is turned on."""

    live: Live
    key: str
    secret: str
    """A secret key of the same organization."""

    async def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        sent = {"x-api-key": self.key, "origin": ORIGIN, **BROWSER, **headers}
        return await self.live.client.post(path, json=body, headers=sent)

    async def visited(
        self, signals: dict[str, Any] | None = None, token: dict[str, Any] = TOKEN
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """(response of an identification, what the page asks with)."""
        answer = (await visit(self.live, self.key, (signals or report()) | token)).json()
        return answer, {"request_id": answer["request_id"], "token": answer["deferred_token"]}


@pytest.fixture
async def trying(directory: Path) -> AsyncGenerator[Trying, None]:
    directory = directory / "trying"
    async with live_service(directory) as before:
        _, key = before.issue()
        _, secret = before.issue("secret")
        organization = before.organization
    async with live_service(directory, try_key=key) as live:
        live.organization = organization
        yield Trying(live, key, secret)


async def test_the_start_page_links_onward_and_uses_no_other_host(live: Live, trying: Trying):
    off, on = await live.client.get("/", headers=HTML), await trying.live.client.get("/", headers=HTML)
    for page in (off, on):
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert 'href="docs/"' in page.text
        assert 'href="docs/api"' in page.text
    assert 'href="try"' not in off.text
    assert ('href="try"' in on.text) == (pages.sdk_version() is not None)
    style = await live.client.get("/pages/home.css")
    assert (style.status_code, style.headers["content-type"]) == (200, "text/css; charset=utf-8")


async def test_the_page_is_off_unless_the_operator_turns_it_on(live: Live):
    page = await live.client.get("/try", headers=HTML)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "try_key" in page.text
    message = assert_error(await live.client.get("/try"), 404, "not_found")
    assert "try_key" in message
    assert_error(await live.client.get("/try/config.json"), 404, "not_found")


@pytest.mark.parametrize(
    ("kind", "environment"), [("public", "production"), ("secret", "development"), ("proxy", "development")]
)
async def test_the_page_accepts_only_a_public_development_key(directory: Path, kind: str, environment: str):
    async with live_service(directory) as live:
        _, secret = live.issue(kind, environment)
    with pytest.RaisesGroup(pytest.RaisesExc(TryKeyError, match="public development key alone")):
        async with live_service(directory, try_key=secret):
            pass


async def test_the_page_rejects_a_revoked_or_unknown_key(directory: Path):
    async with live_service(directory) as live:
        key, secret = live.issue()
        live.revoke(key)
    for wrong in (secret, "svc_pk_us_development_nothing"):
        with pytest.RaisesGroup(pytest.RaisesExc(TryKeyError, match="no such key")):
            async with live_service(directory, try_key=wrong):
                pass


@built
async def test_the_page_and_its_files_are_served_under_a_strict_policy(trying: Trying):
    client = trying.live.client
    page = await client.get("/try", headers=HTML)
    assert page.status_code == 200
    assert "//" not in page.text.replace("<!doctype html>", ""), "no other host"
    for name in ("try.js", "try.css"):
        assert f"pages/{name}" in page.text
        assert (await client.get(f"/pages/{name}")).status_code == 200
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in page.headers["content-security-policy"]
    assert (await client.get("/try/config.json")).json() == {"api_key": trying.key}


async def test_the_pages_have_texts_for_every_signal_and_its_evidence(trying: Trying):
    texts = (await trying.live.client.get("/pages/texts.json")).json()
    assert set(texts["signals"]) == set(CATALOG)
    _, asked = await trying.visited(report() | DRIVEN)
    document = (await trying.post("/try/event", asked)).json()["event"]["document"]
    assert {name for names in document["evidence"].values() for name in names} <= set(texts["evidence"])
    assert document["linkage"]["outcome"] in texts["linkage"]


@pytest.mark.parametrize("environment", ["development", "production"])
async def test_responses_to_development_keys_include_the_server_time(live: Live, environment: str):
    _, key = live.issue(environment=environment)
    response = await visit(live, key)
    timing = response.headers.get("server-timing", "")
    assert bool(re.fullmatch(r"svc;dur=\d+\.\d", timing)) is (environment == "development")


@pytest.mark.parametrize("name", ["try.html", "..%2Fsdk%2Fsvc.js", "nothing.js", "home.html", "swagger-ui.css"])
async def test_only_files_of_the_pages_are_served(trying: Trying, name: str):
    assert_error(await trying.live.client.get(f"/pages/{name}"), 404, "not_found")


async def test_an_identification_is_explained_to_the_browser_that_made_it(trying: Trying):
    _, first = await trying.visited()
    answer, asked = await trying.visited(report() | DRIVEN)
    explained = (await trying.post("/try/event", asked)).json()
    read = await trying.live.client.get(f"/api/v1/events/{answer['request_id']}", headers={"x-api-key": trying.secret})
    assert explained["event"] == read.json()
    assert explained["event"]["document"]["evidence"]["automation"] == ["webdriver"]
    assert [row["request_id"] for row in explained["visits"]] == [answer["request_id"], first["request_id"]]


@pytest.mark.slow(0.2)
async def test_at_most_two_dozen_visits_are_shown(trying: Trying):
    for _ in range(MAX_VISITS + 1):
        answer, asked = await trying.visited()
    explained = (await trying.post("/try/event", asked)).json()
    assert len(explained["visits"]) == MAX_VISITS
    assert explained["visits"][0]["request_id"] == answer["request_id"]


@pytest.mark.parametrize("path", ["/try/event", "/try/forget"])
async def test_a_browser_can_neither_read_nor_erase_the_visits_of_another(trying: Trying, path: str):
    answer, asked = await trying.visited()
    other, _ = await trying.visited(report(2), ANOTHER)
    _, another_key = trying.live.issue()
    before = trying.live.contents()
    assert_error(
        await trying.post(path, asked | {"request_id": other["request_id"]}),
        422, "invalid_supplement", ("token", "invalid_value", "body"),
    )  # fmt: skip
    assert_error(
        await trying.post(path, asked | {"token": "x"}), 422, "invalid_supplement", ("token", "invalid_value", "body")
    )
    assert_invalid(await trying.post(path, asked | {"request_id": "1"}), "request_id", "invalid_value")
    elsewhere = await trying.post(path, asked, origin="http://localhost:3000")
    assert_error(elsewhere, 422, "invalid_supplement", ("token", "invalid_value", "body"))
    assert_error(await trying.post(path, asked, origin="https://other.example"), 401, "unauthorized")
    assert_invalid(await trying.post(path, {"request_id": answer["request_id"]}), "token", "required")
    assert_error(await trying.post(path, asked, **{"x-api-key": another_key}), 404, "not_found")
    assert trying.live.contents() == before


async def test_a_browser_may_erase_its_own_visitor(trying: Trying):
    _, first = await trying.visited()
    answer, asked = await trying.visited()
    other, _ = await trying.visited(report(2), ANOTHER)
    gone = await trying.post("/try/forget", asked)
    assert (gone.status_code, gone.content) == (204, b"")
    left: list[tuple[str, Event]] = trying.live.events()
    assert [request_id for request_id, _ in left] == [other["request_id"]]
    assert_error(await trying.post("/try/event", first), 404, "event_not_found")
    again, _ = await trying.visited()
    assert again["visitor_is_new"]
    assert again["visitor_id"] != answer["visitor_id"]


@pytest.mark.parametrize("key", ["the page's", "another"])
async def test_a_device_that_is_known_by_its_likeness_shows_and_erases_nothing_of_its_neighbor(
    trying: Trying, key: str
):
    """Decisions 9.3: two laptops of one model behind one address send one report; what the other made stays its own."""
    _, own_site = trying.live.issue()
    used = trying.key if key == "the page's" else own_site
    neighbor = (await visit(trying.live, used, report(), tag="order 4711")).json()
    answer, asked = await trying.visited(token={})
    assert answer["visitor_id"] == neighbor["visitor_id"]
    before = trying.live.contents()
    shown = (await trying.post("/try/event", asked)).json()
    assert [row["request_id"] for row in shown["visits"]] == [answer["request_id"]]
    refused = await trying.post("/try/forget", asked)
    assert "not by a token of this browser" in assert_error(refused, 403, "insufficient_role")
    assert trying.live.contents() == before


async def test_visits_with_other_keys_are_neither_shown_nor_erased_by_the_page(trying: Trying):
    """Decisions 9.3: the token leads to the visitor, and the page to what its own key made."""
    _, own_site = trying.live.issue()
    first, _ = await trying.visited()
    await visit(trying.live, own_site, report() | TOKEN, tag="order 4711")
    last, asked = await trying.visited()
    shown = (await trying.post("/try/event", asked)).json()
    assert [row["request_id"] for row in shown["visits"]] == [last["request_id"], first["request_id"]]
    refused = await trying.post("/try/forget", asked)
    assert "with other keys too" in assert_error(refused, 403, "insufficient_role")
    assert len(trying.live.events()) == 3


async def test_the_page_needs_a_key_for_the_web(directory: Path):
    """Decisions 2.7: what a page sends is scored as `web`, which the key must have."""
    async with live_service(directory) as live:
        _, secret = live.issue(platforms=("ios",))
    with pytest.RaisesGroup(pytest.RaisesExc(TryKeyError, match="none of the key's platforms")):
        async with live_service(directory, try_key=secret):
            pass


@pytest.mark.parametrize("environment", ["production", "staging"])
async def test_the_page_erases_no_visitor_with_events_outside_development(trying: Trying, environment: str):
    """A visitor has one id in all environments: else a browser that looks like it could have its production events
    erased, and a fraudster its own.
    """
    _, page_key = trying.live.issue("public", environment)
    elsewhere = (await visit(trying.live, page_key, report() | TOKEN)).json()
    answer, asked = await trying.visited()
    assert answer["visitor_id"] == elsewhere["visitor_id"]
    before = trying.live.contents()
    refused = await trying.post("/try/forget", asked)
    assert_error(refused, 403, "insufficient_role")
    assert "eraseVisitor" in refused.json()["error"]["message"]
    assert trying.live.contents() == before
    shown = (await trying.post("/try/event", asked)).json()
    assert [row["request_id"] for row in shown["visits"]] == [answer["request_id"]]


async def test_the_page_erases_no_visitor_that_may_have_had_events_outside_development(trying: Trying):
    """Events are kept for 30 days, its id for a year: a fraudster could wait, and become somebody else."""
    _, page_key = trying.live.issue("public", "production")
    elsewhere = (await visit(trying.live, page_key, report() | TOKEN)).json()
    trying.live.clock.advance(hours=24 * 31)
    now_ms = trying.live.clock.now_ms
    await sweep(trying.live.found.store, now_ms, 365, Progress(now_ms), with_passes=True)
    assert trying.live.events() == []
    answer, asked = await trying.visited()
    assert answer["visitor_id"] == elsewhere["visitor_id"]
    refused = await trying.post("/try/forget", asked)
    assert_error(refused, 403, "insufficient_role")
    assert "eraseVisitor" in refused.json()["error"]["message"]
    assert not (await visit(trying.live, page_key)).json()["visitor_is_new"]


@built
async def test_the_sdk_is_served_to_pages_of_every_origin(live: Live):
    for name in ("svc.js", "svc.esm.js", "svc.worker.js"):
        newest = await live.client.get(f"/sdk/v1/{name}", headers={"origin": "https://shop.example"})
        pinned = await live.client.get(f"/sdk/{pages.sdk_version()}/{name}")
        assert newest.content == pinned.content
        assert newest.headers["content-type"] == "text/javascript; charset=utf-8"
        assert newest.headers["access-control-allow-origin"] == "*"
        assert newest.headers["cross-origin-resource-policy"] == "cross-origin"
        assert newest.headers["cross-origin-embedder-policy"] == "require-corp", "for the worker of an isolated page"
        assert newest.headers["cache-control"] == "public, max-age=3600"
        assert pinned.headers["cache-control"] == "public, max-age=31536000, immutable"
        known = await live.client.get(f"/sdk/v1/{name}", headers={"if-none-match": newest.headers["etag"]})
        assert (known.status_code, known.content) == (304, b"")


@built
async def test_a_missing_version_of_the_sdk_redirects_to_the_newest(live: Live):
    """So that pages which name one go on after an upgrade."""
    moved = await live.client.get("/sdk/0.0.1/svc.js")
    assert (moved.status_code, moved.headers["location"]) == (307, "../v1/svc.js")
    assert (moved.headers["cache-control"], moved.headers["access-control-allow-origin"]) == ("no-cache", "*")
    followed = await live.client.get("/sdk/0.0.1/svc.js", follow_redirects=True)
    assert followed.content == (await live.client.get("/sdk/v1/svc.js")).content


BROWSED = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


async def test_an_unknown_path_is_a_page_with_the_way_home_in_browsers(live: Live):
    """And the error of every route for programs, also for those that send the headers of a browser with their key."""
    for path, root in (
        ("/nothing", ""), ("/console/", "../"), ("/a/b/c", "../../"), ("/pages/nothing.js", "../"),
        ("/sdk/v9/svc.js", "../../"), ("/console/api/nothing", "../../"), ("/%22%3E%3Cscript%3E", ""),
    ):  # fmt: skip
        page = await live.client.get(path, headers=BROWSED)
        assert page.status_code == 404
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        assert page.headers["cache-control"] == "no-store"
        assert page.headers.get_list("x-content-type-options") == ["nosniff"]
        assert page.headers["x-request-id"]
        assert "script" not in page.text
        for target in (f"{root}.", f"{root}console", f"{root}docs/", f"{root}pages/home.css"):
            assert f'href="{target}"' in page.text
        assert str(page.url.join(f"{root}.").path) == "/"
        for headers in ({}, {"accept": "*/*"}, BROWSED | {"x-api-key": "svc_sk_x"}):
            assert_error(await live.client.get(path, headers=headers), 404, "not_found")
        head = await live.client.head(path, headers=BROWSED)
        assert (head.status_code, head.headers["content-length"]) == (404, str(len(page.content)))


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/events/"])
async def test_an_unknown_path_of_the_api_is_its_error_to_browsers_too(live: Live, path: str):
    """Interface 7, decisions 1.7: some clients accept HTML before anything else, and expect the error body."""
    for method in ("GET", "POST"):
        assert_error(await live.client.request(method, path, headers=BROWSED), 404, "not_found")


async def test_a_resource_that_is_not_there_stays_an_error_of_the_api(live: Live, server_key: str):
    """A page is for what has no route; an event that does not exist is the answer of one."""
    path = "/api/v1/events/019b76da-a800-7000-8000-000000000000"
    for headers, status, code in ((BROWSED, 401, "unauthorized"), ({"x-api-key": server_key}, 404, "event_not_found")):
        assert_error(await live.client.get(path, headers=headers), status, code)


@built
@pytest.mark.parametrize(
    "path", ["v1/nothing.js", "0.0.1/nothing.js", "v2/svc.js", "newest/svc.js", "v1/..%2Fpages%2Ftry.html"]
)
async def test_nothing_else_is_served_beside_the_sdk(live: Live, path: str):
    assert_error(await live.client.get(f"/sdk/{path}"), 404, "not_found")


async def test_without_the_web_build_the_service_shows_how_to_build_it(
    trying: Trying, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    empty = pages.Folder(tmp_path / "nothing")
    monkeypatch.setattr(pages, "PAGES", empty)
    monkeypatch.setattr(pages, "SDK", empty)
    for path in ("/try", "/sdk/v1/svc.js"):
        assert "make web" in assert_error(await trying.live.client.get(path), 404, "not_found")
    assert "make web" in (await trying.live.client.get("/try", headers=HTML)).text
