"""Views of the console: filters that people keep by a name, for themselves or for their organization."""

from __future__ import annotations

from typing import Any

import pytest

from svc.features.retention.sweeper import sweep
from svc.features.views import jobs
from svc.features.views.tables import SAVED_VIEWS
from tests.spec.automation import Automation
from tests.spec.console_browser import Browser
from tests.spec.people import came_in
from tests.spec.responses import assert_error, visit
from tests.support.live import Live

pytestmark = pytest.mark.usefixtures("engine")

VIEWS = "/console/api/views"
GIVEN: dict[str, Any] = {"name": "Sign-ups by VPN", "screen": "events", "query": {"group": "vpn", "window": "7d"}}


async def names(browser: Browser) -> list[str]:
    return [view["name"] for view in (await browser("GET", VIEWS)).json()["views"]]


async def test_a_view_is_the_organizations_or_ones_own_and_has_an_address(live: Live):
    ada, bob, viewer = [await came_in(live, role) for role in ("analyst", "developer", "viewer")]
    shared = await ada("POST", VIEWS, {**GIVEN, "is_shared": True})
    assert shared.status_code == 201, shared.text
    view = shared.json()
    assert view == {**GIVEN, "is_shared": True, **{name: view[name] for name in ("id", "saved_at", "saved_by")}}
    own = await ada("POST", VIEWS, {**GIVEN, "name": "Mine"})
    assert (own.status_code, own.json()["is_shared"]) == (201, False)
    assert await names(ada) == ["Mine", "Sign-ups by VPN"]
    assert await names(bob) == await names(viewer) == ["Sign-ups by VPN"]
    assert (await bob("GET", f"{VIEWS}/{view['id']}")).json() == view
    assert_error(await bob("GET", f"{VIEWS}/{own.json()['id']}"), 404, "not_found")
    assert_error(await bob("DELETE", f"{VIEWS}/{own.json()['id']}"), 404, "not_found")
    assert_error(await viewer("DELETE", f"{VIEWS}/{view['id']}"), 403, "insufficient_role")
    assert_error(await viewer("POST", VIEWS, {**GIVEN, "name": "Ours", "is_shared": True}), 403, "insufficient_role")
    assert (await viewer("POST", VIEWS, GIVEN)).status_code == 201, "one of its own, of the same name"
    for path in ("view_x", f"view_{'0' * 20}", f"rev_{'0' * 20}"):
        assert_error(await ada("GET", f"{VIEWS}/{path}"), 404, "not_found")
    assert (await bob("DELETE", f"{VIEWS}/{view['id']}")).status_code == 204
    assert await names(ada) == ["Mine"]


async def test_what_is_no_view_is_refused(live: Live, monkeypatch: pytest.MonkeyPatch):
    ada = await came_in(live, "analyst")
    assert (await ada("POST", VIEWS, GIVEN)).status_code == 201
    assert_error(await ada("POST", VIEWS, GIVEN), 409, "view_exists")
    assert (await ada("POST", VIEWS, {**GIVEN, "screen": "visitors"})).status_code == 201
    wrong: list[dict[str, Any]] = [
        {"name": ""},
        {"name": "x" * 61},
        {"screen": "../x"},
        {"query": {"a b": "x"}},
        {"query": {"tag": "x" * 1025}},
        {"query": {f"p{'x' * at}": "x" for at in range(21)}},
        {"query": {"tag": 1}},
    ]
    for fields in wrong:
        refused = await ada("POST", VIEWS, {**GIVEN, "name": "Other", **fields})
        assert refused.status_code == 422, (fields, refused.text)
        (field,) = fields
        assert refused.json()["error"]["details"][0]["field"].startswith(field) or field == "query", refused.text
    monkeypatch.setattr(jobs, "MAX_VIEWS", 2)
    assert_error(await ada("POST", VIEWS, {**GIVEN, "name": "Third"}), 409, "view_limit")


async def test_a_management_key_has_views_of_the_organization_alone(live: Live):
    key = {"x-api-key": Automation(live).secret}
    refused = await live.client.post(VIEWS, json=GIVEN, headers=key)
    assert_error(refused, 422, "validation_error", ("is_shared", "invalid_value", "body"))
    made = await live.client.post(VIEWS, json={**GIVEN, "is_shared": True}, headers=key)
    assert (made.status_code, "saved_by" in made.json()) == (201, False)
    records = repr(live.contents()["audit"])
    assert made.json()["id"] in records
    assert GIVEN["name"] not in records


async def test_views_go_with_their_member_and_with_whom_they_name(live: Live):
    ada, admin = await came_in(live, "analyst"), Automation(live)
    _, public = live.issue()
    seen = (await visit(live, public, account_id="user-1")).json()
    for name, query in (("a", {"account_id": "user-1"}), ("of user-1", {}), ("of user-10", {"account_id": "user-10"})):
        given = {"name": name, "screen": "events", "query": query, "is_shared": True}
        assert (await ada("POST", VIEWS, given)).status_code == 201
    assert (await ada("POST", VIEWS, {**GIVEN, "query": {"visitor": seen["visitor_id"]}})).status_code == 201
    assert (await admin("DELETE", "/accounts/user-1")).status_code == 204
    assert await names(ada) == ["Sign-ups by VPN", "of user-10"]
    assert (await admin("DELETE", f"/visitors/{seen['visitor_id']}")).status_code == 204
    assert await names(ada) == ["of user-10"]
    own = (await ada("POST", VIEWS, GIVEN)).json()
    assert (await admin("DELETE", f"/members/{own['saved_by']}")).status_code == 204
    await sweep(live.found.store, live.clock.now_ms, 365)
    with live.found.store.read() as snapshot:
        assert [view.name for _, view in snapshot.scan(SAVED_VIEWS)] == ["of user-10"]
