"""Views of the console: filters that people keep by a name, for themselves or for their organization."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from svc.features.retention.sweeper import sweep
from svc.features.views.jobs import save_view
from svc.features.views.tables import MAX_OWN_VIEWS, MAX_SHARED_VIEWS, SAVED_VIEWS, View
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.ids import ordered_id
from tests.features.counting import Counting
from tests.spec.automation import Automation
from tests.spec.console_browser import Browser
from tests.spec.people import came_in
from tests.spec.responses import assert_error, assert_invalid, visit
from tests.support.engines import opening
from tests.support.live import Live, live_service

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


async def test_what_is_no_view_is_refused(live: Live):
    ada = await came_in(live, "analyst")
    assert (await ada("POST", VIEWS, GIVEN)).status_code == 201
    assert_error(await ada("POST", VIEWS, GIVEN), 409, "view_exists")
    assert (await ada("POST", VIEWS, {**GIVEN, "screen": "visitors"})).status_code == 201
    wrong: list[dict[str, Any]] = [
        *({"name": name} for name in ("", "x" * 61, " ", "\n", "a\0b", "\u202eb", "a\u200b", "a\u2028b")),
        *({"screen": screen} for screen in ("../x", "zzz", "rules")),
        {"query": {"a b": "x"}},
        {"query": {"tag": "x" * 1025}},
        {"query": {"tag": "x\n"}},
        {"query": {f"p{'x' * at}": "x" for at in range(21)}},
        {"query": {"tag": 1}},
        {"query": {f"p{'x' * at}": "é" * 1024 for at in range(2)}},
    ]
    for fields in wrong:
        refused = await ada("POST", VIEWS, {**GIVEN, "name": "Other", **fields})
        assert refused.status_code == 422, (fields, refused.text)
        (field,) = fields
        assert refused.json()["error"]["details"][0]["field"].startswith(field) or field == "query", refused.text


async def test_views_are_listed_by_screen(live: Live):
    ada = await came_in(live, "analyst")
    for screen in ("events", "visitors"):
        assert (await ada("POST", VIEWS, {**GIVEN, "name": screen, "screen": screen})).status_code == 201
    listed = (await ada("GET", f"{VIEWS}?screen=visitors")).json()["views"]
    assert [view["name"] for view in listed] == ["visitors"]
    assert_invalid(await ada("GET", f"{VIEWS}?screen=zzz"), "screen", "invalid_value", "query")


LARGEST = tuple((f"p{'x' * at}", "é" * 100) for at in range(20))


def save(live: Live, owner: str | None, count: int) -> None:
    """As many views of a member, or of the organization, as large as they may be."""

    def job(transaction: Transaction) -> None:
        for at in range(count):
            view = View(
                id=ordered_id("view", live.clock.now_ms, live.world.entropy(16)),
                name=f"view {at}",
                screen="events",
                query=LARGEST,
                saved_at_ms=live.clock.now_ms,
                owner=owner,
            )
            assert save_view(transaction, live.organization.number, view) == view

    live.found.store.write_one_now(job)


@pytest.mark.only_on("lmdb", "rows are counted there")
async def test_who_saves_as_many_as_it_may_leaves_others_theirs(tmp_path: Path, engine: str):
    counted: list[Counting] = []

    def count(inner: Any) -> Any:
        counted.append(Counting(inner))
        return counted[-1]

    async with live_service(tmp_path / "data", open_engine=opening(count)) as live:
        viewer, admin = await came_in(live, "viewer"), await came_in(live, "admin")
        own = (await viewer("POST", VIEWS, GIVEN)).json()
        save(live, own["saved_by"], MAX_OWN_VIEWS - 1)
        assert_error(await viewer("POST", VIEWS, {**GIVEN, "name": "More"}), 409, "view_limit")
        assert (await admin("POST", VIEWS, {**GIVEN, "is_shared": True})).status_code == 201
        save(live, None, MAX_SHARED_VIEWS - 1)
        assert_error(await admin("POST", VIEWS, {**GIVEN, "name": "More", "is_shared": True}), 409, "view_limit")
        (engine_,) = counted
        engine_.forget()
        listed = await viewer("GET", VIEWS)
        assert len(listed.json()["views"]) == MAX_OWN_VIEWS + MAX_SHARED_VIEWS
        assert len(listed.content) < 1_200_000
        assert engine_.read_rows["saved_views"] == 2 * (MAX_OWN_VIEWS + MAX_SHARED_VIEWS)
        engine_.forget()
        assert (await admin("POST", VIEWS, {**GIVEN, "name": "Mine"})).status_code == 201
        assert sum(commit["saved_views"] for commit in engine_.read_in_commits) == 0, "of others"
        assert (await viewer("DELETE", f"{VIEWS}/{own['id']}")).status_code == 204
        assert (await viewer("POST", VIEWS, GIVEN)).status_code == 201


async def test_a_management_key_has_views_of_the_organization_alone(live: Live):
    key = {"x-api-key": Automation(live).secret}
    assert_invalid(await live.client.post(VIEWS, json=GIVEN, headers=key), "is_shared", "invalid_value")
    made = await live.client.post(VIEWS, json={**GIVEN, "is_shared": True}, headers=key)
    assert (made.status_code, "saved_by" in made.json()) == (201, False)
    records = repr(live.contents()["audit"])
    assert made.json()["id"] in records
    assert GIVEN["name"] not in records


async def test_views_go_with_their_member(live: Live):
    ada, admin = await came_in(live, "analyst"), Automation(live)
    assert (await ada("POST", VIEWS, {**GIVEN, "name": "Ours", "is_shared": True})).status_code == 201
    own = (await ada("POST", VIEWS, GIVEN)).json()
    assert (await admin("DELETE", f"/members/{own['saved_by']}")).status_code == 204
    await sweep(live.found.store, live.clock.now_ms, 365)
    with live.found.store.read() as snapshot:
        assert [view.name for _, view in snapshot.scan(SAVED_VIEWS)] == ["Ours"]


STAY: tuple[tuple[str, dict[str, str]], ...] = (
    ("Seven days", {"window": "7d"}),
    ("Level", {"level": "high", "account_id": "user-10"}),
    ("Sign-ups by VPN", {"group": "vpn"}),
    ("Top 30 countries, high", {"country": "GB"}),
    ("Another", {"account_id": "user-1-2", "tag": "user-11"}),
)


@pytest.mark.parametrize("account", ["7d", "high", "VPN", "vpn", "30", "GB"])
async def test_a_view_stays_when_a_word_of_it_that_is_no_id_equals_an_erased_account(live: Live, account: str):
    ada, admin = await came_in(live, "analyst"), Automation(live)
    _, public = live.issue()
    await visit(live, public, account_id=account)
    for name, query in STAY:
        given = {"name": name, "screen": "events", "query": query}
        assert (await ada("POST", VIEWS, given)).status_code == 201
    assert (await admin("DELETE", f"/accounts/{account}")).status_code == 204
    assert await names(ada) == sorted(name for name, _ in STAY)


async def test_views_are_deleted_with_the_visitor_or_account_that_they_name(live: Live, key: str):
    ada, admin = await came_in(live, "analyst"), Automation(live)
    seen = (await visit(live, key, account_id="user-1")).json()
    visitor = seen["visitor_id"]
    gone: list[tuple[str, dict[str, str]]] = [
        ("a", {"account_id": "user-1"}),
        ("b", {"q": " user-1 "}),
        ("c", {"q": "user-1,user-2"}),
        ("d", {"tag": "order of user-1"}),
        ("of user-1", {}),
    ]
    of_visitor: list[tuple[str, dict[str, str]]] = [("e", {"visitor": visitor}), (f"See {visitor}", {})]
    for number, (name, query) in enumerate((*gone, *of_visitor, *STAY)):
        given = {"name": name, "screen": "events", "query": query, "is_shared": number % 2 == 0}
        assert (await ada("POST", VIEWS, given)).status_code == 201
    assert (await admin("DELETE", "/accounts/user-1")).status_code == 204
    assert await names(ada) == sorted(name for name, _ in (*of_visitor, *STAY))
    assert (await admin("DELETE", f"/visitors/{visitor}")).status_code == 204
    assert await names(ada) == sorted(name for name, _ in STAY)
