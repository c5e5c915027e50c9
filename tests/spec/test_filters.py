"""Decisions 7.1: the filters of the list of events beside visitor and level, and cursors, through the whole stack."""

from __future__ import annotations

from typing import Any

import pytest

from svc.features.checks.invariants import violations
from svc.identify.queries import events
from svc.identify.records import RETENTION_MS
from svc.identify.tables import HOURS
from svc.kernel.values.timestamps import timestamp
from svc.kernel.work import slices
from tests.spec.automation import Automation
from tests.spec.responses import DRIVEN, assert_error, assert_invalid, visit
from tests.spec.test_events import HOUR_MS, get, listed, secret_key, visits
from tests.support.live import Live, report, succeeded


async def some(live: Live, environment: str = "development") -> dict[str, str]:
    """What -> request id of events that differ in everything that can be asked for."""
    _, public = live.issue(environment=environment)
    made: dict[str, str] = {}
    for name, given in {
        "plain": {},
        "tagged": {"tag": "order 1"},
        "driven": {"signals": report(1, **DRIVEN), "tag": "order 2"},
        "elsewhere": {"signals": report(2), "headers": {"x-forwarded-for": "2001:4860:4860:0::8888"}, "tag": "order 1"},
    }.items():
        live.clock.now_ms += 1000
        made[name] = succeeded(await visit(live, public, **given))["request_id"]
    return made


async def test_each_filter_shows_the_events_with_its_value(live: Live):
    made, secret = await some(live), secret_key(live)
    rows = {row["request_id"]: row for row in (await get(live, secret)).json()["rows"]}
    fired = {each["signal"] for each in rows[made["driven"]]["signals"]}
    assert fired
    assert rows[made["driven"]]["visitor_kind"] != "human"
    assert await listed(live, secret, tag="order 1") == [made["elsewhere"], made["tagged"]]
    assert await listed(live, secret, tag="order") == []
    assert await listed(live, secret, tag="Order 1") == []
    assert await listed(live, secret, ip_address="2001:4860:4860::8888") == [made["elsewhere"]]
    assert await listed(live, secret, ip_address="2001:4860:4860:0:0:0:0:8888") == [made["elsewhere"]]
    assert await listed(live, secret, kind="human") == [made["elsewhere"], made["tagged"], made["plain"]]
    for signal in fired:
        assert await listed(live, secret, signal=signal) == [made["driven"]]
    for name, row in ((name, rows[made[name]]) for name in made):
        country = row.get("country_code")
        if country is not None:
            assert made[name] in await listed(live, secret, country=country)
            assert made[name] in await listed(live, secret, country=country.lower())
    assert await listed(live, secret, country="ZZ") == []


async def test_combined_filters_show_the_events_that_have_all_values(live: Live):
    made, secret = await some(live), secret_key(live)
    rows = {row["request_id"]: row for row in (await get(live, secret)).json()["rows"]}
    tagged = rows[made["tagged"]]
    everything = {
        "tag": "order 1", "ip_address": tagged["ip_address"], "kind": "human", "visitor": tagged["visitor_id"],
        "level": "low",
    }  # fmt: skip
    assert await listed(live, secret, **everything) == [made["tagged"]]
    assert await listed(live, secret, tag="order 1", kind="human") == [made["elsewhere"], made["tagged"]]
    assert await listed(live, secret, tag="order 1", kind="human", page=2, limit=1) == [made["tagged"]]
    assert await listed(live, secret, tag="order 2", kind="human") == []
    for name, other in (("tag", "order 2"), ("level", "high"), ("kind", "ai_bot"), ("visitor", "0" * 20)):
        assert await listed(live, secret, **{**everything, name: other}) == []


@pytest.mark.slow(0.2)
async def test_a_filter_shows_nothing_of_another_organization_or_environment(live: Live):
    made = await some(live)
    await some(live, "staging")
    other = live.new_organization().number
    assert len(made) == 4
    for query in ({"tag": "order 1"}, {"kind": "human"}, {"tag": "order 1", "kind": "human"}):
        assert set(await listed(live, secret_key(live), **query)) <= set(made.values())
        assert len(await listed(live, secret_key(live, "staging"), **query)) == len(
            await listed(live, secret_key(live), **query)
        )
        assert await listed(live, secret_key(live, "production"), **query) == []
        assert await listed(live, secret_key(live, organization=other), **query) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tag", "x" * 1025), ("ip_address", "81.2.69"), ("country", "GBR"), ("signal", "no_such_signal"),
        ("kind", "robot"),
    ],
)  # fmt: skip
async def test_an_impossible_filter_value_is_refused(live: Live, name: str, value: str):
    assert_invalid(await get(live, secret_key(live), **{name: value}), name, "invalid_value", "query")


async def follow(live: Live, secret: str, **query: Any) -> list[list[str]]:
    """The request ids of all pages, from cursor to cursor."""
    pages: list[list[str]] = []
    cursor: dict[str, str] = {}
    while True:
        page = succeeded(await get(live, secret, **query, **cursor))
        assert (page["page"], page["page_size"]) == (1, query["limit"])
        pages.append([row["request_id"] for row in page["rows"]])
        if "next_cursor" not in page:
            return pages
        cursor = {"cursor": page["next_cursor"]}


@pytest.mark.parametrize("at_once", [1, 2, 7])
@pytest.mark.every_case
async def test_a_search_finds_the_same_however_few_keys_it_scans_per_turn(
    live: Live, monkeypatch: pytest.MonkeyPatch, at_once: int
):
    """A page that ends with its turn may lead to an empty one."""
    made, secret = await visits(live, 5, tag="cart"), secret_key(live)
    await visits(live, 3, tag="other")
    monkeypatch.setattr(events, "KEYS_OF_A_LOOK", at_once)
    monkeypatch.setattr(slices, "MAX_AT_ONCE", at_once)
    for query in ({"tag": "cart"}, {"tag": "cart", "kind": "human"}, {"tag": "cart", "level": "low"}):
        pages = await follow(live, secret, limit=2, **query)
        assert [page for page in pages if page] == [made[:2:-1], made[2:0:-1], made[:1]]
        assert len(pages) <= 4
    assert await listed(live, secret, limit=5, tag="cart", kind="human") == made[::-1]


@pytest.mark.slow(0.2)
async def test_a_cursor_leads_through_all_pages_whatever_arrives_meanwhile(live: Live):
    made, secret = await visits(live, 5, tag="cart"), secret_key(live)
    for query in ({}, {"tag": "cart"}, {"tag": "cart", "kind": "human"}, {"kind": "human", "level": "low"}):
        assert await follow(live, secret, limit=2, **query) == [made[:2:-1], made[2:0:-1], made[:1]]
        assert await follow(live, secret, limit=5, **query) == [made[::-1]], "the last page has no cursor"
    first = (await get(live, secret, limit=2, tag="cart")).json()
    later = await visits(live, 2, tag="cart")
    second = (await get(live, secret, limit=3, tag="cart", cursor=first["next_cursor"])).json()
    assert [row["request_id"] for row in second["rows"]] == made[2::-1]
    assert await listed(live, secret, limit=2) == later[::-1]
    deep = (await get(live, secret, limit=1, page=3)).json()
    assert await listed(live, secret, limit=1, cursor=deep["next_cursor"]) == [later[1], later[0], *made[::-1]][3:4]


async def test_a_cursor_keeps_the_window_of_its_first_page(live: Live):
    """The default window moves with the clock; what the first page promised is still shown."""
    made, secret = await visits(live, 4, apart_ms=HOUR_MS), secret_key(live)
    first = (await get(live, secret, limit=2)).json()
    live.clock.now_ms += 23 * HOUR_MS
    assert await listed(live, secret, limit=2, cursor=first["next_cursor"]) == made[1::-1]
    live.clock.now_ms += RETENTION_MS - 24 * HOUR_MS
    assert await listed(live, secret, limit=2, cursor=first["next_cursor"]) == [], "but nothing over 30 days old"


async def test_a_cursor_of_another_list_and_an_invalid_one_are_refused(live: Live, server_key: str):
    await visits(live, 3, tag="cart")
    cursor = (await get(live, server_key, limit=1, tag="cart")).json()["next_cursor"]
    start = timestamp(live.clock.now_ms - HOUR_MS)
    wrong = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    for query in (
        {"cursor": cursor},
        {"cursor": cursor, "tag": "order"},
        {"cursor": cursor, "tag": "cart", "kind": "human"},
        {"cursor": cursor, "tag": "cart", "from_": start},
        {"cursor": wrong, "tag": "cart"},
        {"cursor": "", "tag": "cart"},
    ):
        assert_invalid(await get(live, server_key, **query), "cursor", "invalid_cursor", "query")
    for other in (secret_key(live, "staging"), secret_key(live, organization=live.new_organization().number)):
        assert_invalid(await get(live, other, cursor=cursor, tag="cart"), "cursor", "invalid_cursor", "query")
    assert_invalid(await get(live, server_key, cursor=cursor, tag="cart", page=2), "page", "invalid_value", "query")
    assert_error(
        await get(live, server_key, cursor=cursor, tag="cart", level="none"),
        422,
        "invalid_window",
        ("level", "invalid_value", "query"),
    )
    assert len(await listed(live, secret_key(live), cursor=cursor, tag="cart")) == 2, "any key of the environment"


async def test_an_erased_visitor_is_in_no_filter_and_in_no_counter(live: Live):
    made, secret = await some(live), secret_key(live)
    rows = (await get(live, secret)).json()["rows"]
    for visitor_id in {row["visitor_id"] for row in rows}:
        assert (await Automation(live)("DELETE", f"/visitors/{visitor_id}")).status_code == 204
        with live.found.store.read() as snapshot:
            assert list(violations(snapshot)) == []
    assert len(made) == 4
    for query in ({"tag": "order 1"}, {"kind": "human"}, {"tag": "order 1", "kind": "human"}):
        assert await listed(live, secret, **query) == []
    assert live.count(HOURS) == 0
