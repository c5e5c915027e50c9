"""`GET /console/api/visitors` and `/console/api/visitors/{visitor_id}`: who was here, with what, and how it changed."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from svc.features.erasure import organizations as removal
from svc.features.visitors import routes as endpoints
from svc.identify.index.queries import Scope
from svc.identify.indexing import jobs as indexing
from svc.identify.queries import visitors as visitor_views
from svc.kernel.values.ids import first_id
from svc.kernel.values.timestamps import timestamp
from svc.kernel.work import slices
from tests.spec.automation import Automation
from tests.spec.console import NOBODY, Console
from tests.spec.responses import TOO_LITTLE, assert_error, assert_invalid, visit
from tests.support.live import PUBLIC_ADDRESS, Live, report

ELSEWHERE = {"x-forwarded-for": "81.2.69.161"}


async def came(live: Live, public: str, device: int = 1, **given: Any) -> str:
    """One visit of a device; the visitor's id. A minute passes."""
    visitor_id = (await visit(live, public, given.pop("signals", None) or report(device), **given)).json()["visitor_id"]
    live.clock.advance(seconds=60)
    return visitor_id


async def pages(console: Console, **query: Any) -> list[list[dict[str, Any]]]:
    found: list[list[dict[str, Any]]] = []
    cursor: dict[str, str] = {}
    while True:
        page = await console.seen("/visitors", **query, **cursor)
        found.append(page["visitors"])
        if "next_cursor" not in page:
            return found
        cursor = {"cursor": page["next_cursor"]}


@pytest.mark.parametrize("limit", [1, 2, 5, 200])
@pytest.mark.every_case
async def test_visitors_are_listed_newest_first(live: Live, limit: int):
    """Of every environment where none is named: a visitor is the organization's (decisions 3.5)."""
    ids = [
        await came(live, live.issue("public", one)[1], device)
        for device, one in enumerate(("production", "staging") * 2)
    ]
    found = await pages(Console(live), limit=limit)
    assert [visitor["visitor_id"] for page in found for visitor in page] == ids[::-1]
    assert all(len(page) == limit for page in found[:-1])
    assert found[0][0] == {
        "visitor_id": ids[-1],
        "first_seen": "2026-01-01T00:03:00.000Z",
        "last_seen": "2026-01-01T00:03:00.000Z",
        "events": 1,
    }


@pytest.mark.parametrize(("limit", "at_once", "a_page"), [(1, 4, 1000), (2, 1, 2), (3, 4, 4), (200, 4, 1000)])
@pytest.mark.slow(0.2)
async def test_visitors_of_an_environment_are_those_with_events_in_it(
    live: Live, console: Console, monkeypatch: pytest.MonkeyPatch, limit: int, at_once: int, a_page: int
):
    """Also where one page looks at few visitors; and one that came to two environments is in both."""
    monkeypatch.setattr(slices, "MAX_AT_ONCE", at_once)
    monkeypatch.setattr(endpoints, "MAX_VISITORS", a_page)
    production, staging = live.issue("public", "production")[1], live.issue("public", "staging")[1]
    ids = [await came(live, staging if device % 3 else production, device) for device in range(1, 10)]
    assert await came(live, production, 4) == ids[3]
    for environment, devices in (("production", (9, 6, 4, 3)), ("staging", (8, 7, 5, 4, 2, 1)), ("development", ())):
        found = await pages(console, environment=environment, limit=limit)
        assert [visitor["visitor_id"] for page in found for visitor in page] == [ids[device - 1] for device in devices]
        assert all(len(page) <= limit for page in found)
    live.clock.advance(hours=30 * 24)
    assert not any(await pages(console, environment="production", limit=limit))
    assert sum(map(len, await pages(console))) == 9


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [visitor_views.KEYS_OF_A_LOOK, 7])
async def test_each_list_and_the_page_count_every_event_of_a_visitor(
    live: Live, console: Console, monkeypatch: pytest.MonkeyPatch, at_once: int
):
    """Also forty within 47 seconds, of which the record of the visitor counts one; in the index's tail, in its
    segments, in several environments. What is older than 30 days is not counted.
    """
    monkeypatch.setattr(visitor_views, "KEYS_OF_A_LOOK", at_once)
    public = live.issue("public", "production")[1]
    staging = live.issue("public", "staging")[1]
    await came(live, public, 2)
    visitor_id = ""
    for place in range(40):
        visitor_id = (await visit(live, public, report(1), tag=f"account-{place}")).json()["visitor_id"]
        live.clock.now_ms += 1205
        if place == 20:
            index_everything(live, monkeypatch)
    last = timestamp(live.clock.now_ms - 1205)
    await visit(live, staging, report(3))
    for query in ({}, {"environment": "production"}, {"tag": "account-7"}, {"ip_address": PUBLIC_ADDRESS}):
        found = [row for page in await pages(console, **query) for row in page if row["visitor_id"] == visitor_id]
        assert [(row["events"], row["last_seen"]) for row in found] == [(40, last)], query
    seen = await console.seen(f"/visitors/{visitor_id}")
    assert (seen["event_count"], seen["environment_event_count"], seen["last_seen"]) == (40, 40, last)
    assert (await visit(live, staging, report(1))).json()["visitor_id"] == visitor_id
    seen = await console.seen(f"/visitors/{visitor_id}", environment="staging")
    assert (seen["event_count"], seen["environment_event_count"]) == (41, 1)
    live.clock.advance(hours=30 * 24)
    assert {row["events"] for row in (await console.seen("/visitors"))["visitors"]} == {0, 1}


def index_everything(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the indexer does, in steps that are smaller."""
    monkeypatch.setattr(indexing, "EVENTS_A_SMALL", 5)
    monkeypatch.setattr(indexing, "SMALL_IN_LARGE", 2)
    job = partial(indexing.step, scope=Scope(live.organization.number, 0), before_ms=live.clock.now_ms + 1)
    outcomes: list[Any] = [True]
    while outcomes[-1] is True:
        outcomes += live.found.store.write_now([job])
    assert outcomes.count(True) > 5
    assert outcomes[-1] is False


@pytest.mark.parametrize("limit", [1, 3, 200])
@pytest.mark.every_case
async def test_visitors_seen_with_a_tag_or_at_an_address_are_found(live: Live, console: Console, limit: int):
    """In one environment. A row says the same of a visitor as without a filter, and how many events have what was asked
    for.
    """
    _, public = live.issue(environment="production")
    _, staging = live.issue(environment="staging")
    shared = [await came(live, public, device, tag="ada") for device in range(1, 8)]
    await came(live, public, 1, tag="ada", headers=ELSEWHERE)
    await came(live, public, 1, tag="bob", headers=ELSEWHERE)
    await came(live, staging, 9, tag="ada")
    for query, ids, matching in (
        ({"tag": "ada"}, shared, 2),
        ({"ip_address": PUBLIC_ADDRESS}, shared, 1),
        ({"ip_address": "::ffff:81.2.69.161"}, shared[:1], 2),
        ({"tag": "bob"}, shared[:1], 1),
        ({"tag": "nobody"}, [], 0),
    ):
        found = [visitor for page in await pages(console, limit=limit, **query) for visitor in page]
        assert [visitor["visitor_id"] for visitor in found] == sorted(ids)
        if ids:
            row = next(visitor for visitor in found if visitor["visitor_id"] == shared[0])
            assert row == {
                "visitor_id": shared[0],
                "first_seen": at(0),
                "last_seen": at(8),
                "events": 3,
                "matching_events": matching,
            }


async def test_a_cursor_belongs_to_its_list_filter_environment_and_organization(live: Live, console: Console):
    _, public = live.issue(environment="production")
    for device in (1, 2, 3):
        await came(live, public, device, tag="ada")
    plain = (await console.seen("/visitors", limit=1))["next_cursor"]
    tagged = (await console.seen("/visitors", limit=1, tag="ada"))["next_cursor"]
    stranger = Console(live, organization=live.new_organization())
    for who, query in (
        (console, {"cursor": tagged}),
        (console, {"cursor": plain, "tag": "ada"}),
        (console, {"cursor": plain, "environment": "production"}),
        (console, {"cursor": tagged, "tag": "bob"}),
        (console, {"cursor": tagged, "tag": "ada", "environment": "staging"}),
        (console, {"cursor": ""}),
        (console, {"cursor": "AAAA"}),
        (stranger, {"cursor": plain}),
    ):
        assert_invalid(await who.get("/visitors", **query), "cursor", "invalid_cursor", "query")


@pytest.mark.parametrize(
    ("query", "field", "issue"),
    [
        ({"ip_address": "here"}, "ip_address", "invalid_value"),
        ({"ip_address": PUBLIC_ADDRESS, "tag": "ada"}, "ip_address", "invalid_value"),
        ({"tag": "a" * 1025}, "tag", "too_long"),
    ],
)
async def test_an_invalid_filter_is_refused(live: Live, query: dict[str, str], field: str, issue: str):
    assert_invalid(await Console(live).get("/visitors", **query), field, issue, "query")


async def test_a_visitor_is_shown_with_its_tags_addresses_and_changes(live: Live, public: str, console: Console):
    _, staging = live.issue(environment="staging")
    visitor_id = await came(live, public, tag="ada")
    await came(live, public, tag="bob", headers=ELSEWHERE)
    grown = report(screen={"width": 1920, "height": 1080, "colorDepth": 24, "devicePixelRatio": 1.25})
    assert await came(live, public, signals=grown, tag="ada") == visitor_id
    assert await came(live, staging, tag="cyd") == visitor_id
    await came(live, public, 5, tag="eve")
    seen = await console.seen(f"/visitors/{visitor_id}")
    listed = (await console.seen("/events", visitor=visitor_id))["rows"]
    assert [{k: v for k, v in row.items() if k != "changes"} for row in seen["events"]] == listed
    newest, again, first = seen["events"]
    assert "changes" not in first
    assert again["changes"] == []
    assert "screen" in " ".join(newest["changes"])
    assert seen["tags"] == [
        {"tag": "ada", "first_seen": at(0), "last_seen": at(2), "events": 2},
        {"tag": "bob", "first_seen": at(1), "last_seen": at(1), "events": 1},
    ]
    assert [(row["ip_address"], row["first_seen"], row["last_seen"], row["events"]) for row in seen["addresses"]] == [
        (PUBLIC_ADDRESS, at(0), at(2), 2),
        ("81.2.69.161", at(1), at(1), 1),
    ]
    assert (seen["visitor_id"], seen["first_seen"], seen["identifiable"]) == (visitor_id, at(0), True)
    assert (seen["last_seen"], seen["event_count"], seen["environment_event_count"]) == (at(3), 4, 3)
    assert "next_cursor" not in seen
    elsewhere = await console.seen(f"/visitors/{visitor_id}", environment="staging")
    assert [row["tag"] for row in elsewhere["events"]] == ["cyd"]
    assert (await console.seen(f"/visitors/{visitor_id}", environment="development"))["events"] == []


def at(minutes: int) -> str:
    return f"2026-01-01T00:{minutes:02}:00.000Z"


@pytest.mark.slow
async def test_events_after_the_newest_fifty_are_listed_with_its_cursor(live: Live, public: str, console: Console):
    ids = [await came(live, public) for _ in range(53)]
    assert len(set(ids)) == 1
    seen = await console.seen(f"/visitors/{ids[0]}")
    behind = await console.seen("/events", visitor=ids[0], cursor=seen["next_cursor"])
    shown = [row["request_id"] for row in seen["events"] + behind["rows"]]
    assert shown == [request_id for request_id, _ in reversed(live.events())]
    assert (len(seen["events"]), seen["addresses"][0]["events"]) == (50, 53)


async def test_an_unidentifiable_visitor_is_shown_from_its_event(live: Live, public: str):
    visitor_id = await came(live, public, signals=TOO_LITTLE)
    seen = await Console(live).seen(f"/visitors/{visitor_id}")
    assert (seen["identifiable"], seen["event_count"], seen["first_seen"], seen["last_seen"]) == (
        False,
        1,
        at(0),
        at(0),
    )
    assert len(seen["events"]) == 1


async def test_an_unknown_an_erased_and_a_foreign_visitor_are_not_found(live: Live, public: str, console: Console):
    stranger = Console(live, "admin", live.new_organization())
    visitor_id = await came(live, public, tag="ada")
    for who, asked in ((stranger, visitor_id), (console, NOBODY), (console, "me"), (console, "%00" * 20)):
        assert_error(await who.get(f"/visitors/{asked}"), 404, "not_found")
    assert await stranger.seen("/visitors") == {"visitors": []}
    assert await stranger.seen("/visitors", tag="ada") == {"visitors": []}
    assert (await Automation(live)("DELETE", f"/visitors/{visitor_id}")).status_code == 204
    assert_error(await console.get(f"/visitors/{visitor_id}"), 404, "not_found")
    assert await console.seen("/visitors") == {"visitors": []}
    assert await console.seen("/visitors", tag="ada") == {"visitors": []}


async def test_without_documents_the_timeline_shows_no_changes(live: Live, public: str):
    visitor_id = await came(live, public)
    await came(live, public)
    beyond = first_id(live.clock.now_ms + 2)
    live.found.store.write_now([partial(removal.drop_documents, number=live.organization.number, beyond=beyond)])
    seen = await Console(live).seen(f"/visitors/{visitor_id}")
    assert [("changes" in row, row["has_document"]) for row in seen["events"]] == [(False, False)] * 2
