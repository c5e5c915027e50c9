"""`GET /console/api/events` and `/console/api/statistics`: the events of an environment, listed and counted."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import msgspec
import pytest

from svc.features.erasure import organizations as removal
from svc.features.events import console_routes
from svc.features.statistics import routes as statistics
from svc.identify.queries import events as queries
from svc.identify.queries.events import put_event
from svc.identify.recording.visitors import counted
from svc.identify.records import Event
from svc.identify.tables import EVENTS
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.jobs import holding, keep
from svc.kernel.values.ids import first_id
from svc.kernel.work import slices
from tests.spec.automation import Automation
from tests.spec.console import Console
from tests.spec.responses import DRIVEN, HEADLESS, TOO_LITTLE, assert_error, assert_invalid, visit
from tests.spec.subscriber import COMPLETED, Subscriber
from tests.support.live import ORIGIN, Live, report
from tests.support.receivers import DOWN
from tests.support.serving_postgresql import at_rest

HOUR_MS = 3_600_000


async def busy(live: Live, environment: str = "production") -> list[str]:
    """Visits of every kind, some hours apart; their request ids, newest first."""
    _, public = live.issue("public", environment)
    asked: list[dict[str, Any]] = [
        {},
        {"signals": report(2, **DRIVEN), "tag": "ada"},
        {"signals": TOO_LITTLE},
        {"signals": report(2), "tag": "bob"},
        {"headers": HEADLESS},
        {},
    ]
    ids: list[str] = []
    for given in asked:
        ids.append((await visit(live, public, given.pop("signals", None), **given)).json()["request_id"])
        live.clock.advance(hours=1.25)
    return ids[::-1]


@pytest.mark.slow(0.2)
async def test_events_are_those_of_the_server_api_in_that_environment(live: Live, console: Console):
    """The same rows, filters and cursors; `production` when nothing is said."""
    for environment in ("production", "staging"):
        ids = await busy(live, environment)
        _, secret = live.issue("secret", environment)
        for query in (
            {},
            {"level": "medium"},
            {"tag": "ada"},
            {"signal": "headless"},
            {"kind": "human", "level": "low"},
        ):
            read = await live.client.get("/api/v1/events", params=query | {"limit": 50}, headers={"x-api-key": secret})
            assert await console.seen("/events", environment=environment, limit=50, **query) == read.json()
        rows = (await console.seen("/events", environment=environment, limit=50))["rows"]
        assert [row["request_id"] for row in rows] == ids
    assert (await console.seen("/events"))["rows"][0]["environment"] == "production"
    assert (await console.seen("/events", environment="development"))["rows"] == []


async def test_pages_are_consecutive_and_a_cursor_belongs_to_its_environment(live: Live, console: Console):
    ids = await busy(live)
    found: list[str] = []
    query: dict[str, Any] = {}
    while True:
        page = await console.seen("/events", limit=4, **query)
        found += [row["request_id"] for row in page["rows"]]
        if "next_cursor" not in page:
            break
        query = {"cursor": page["next_cursor"]}
        response = await console.get("/events", environment="staging", limit=4, **query)
        assert_invalid(response, "cursor", "invalid_cursor", "query")
        stranger = Console(live, organization=live.new_organization())
        assert_invalid(await stranger.get("/events", limit=4, **query), "cursor", "invalid_cursor", "query")
    assert found == ids


@pytest.mark.parametrize(
    ("query", "field"),
    [({"environment": "live"}, "environment"), ({"limit": 0}, "limit"), ({"color": "red"}, "color")],
)
async def test_an_unknown_query_parameter_is_invalid(live: Live, query: dict[str, Any], field: str):
    for path in ("/events", "/visitors"):
        response = await Console(live).get(path, **query)
        assert (response.status_code, response.json()["error"]["details"][0]["field"]) == (422, field)


def counts_of(events: list[Event]) -> dict[str, Any]:
    """The counts of these events, by looking at each of them."""
    verdicts = [event.verdict for event in events]
    levels = Counter(verdict.suspect_level or "not_scored" for verdict in verdicts)
    fired = Counter(signal.signal for verdict in verdicts for signal in verdict.signals or ())
    return {
        "identifications": len(events),
        "levels": {name: levels[name] for name in ("low", "medium", "high", "not_scored")},
        "new": sum(verdict.identifiable and verdict.visitor_is_new for verdict in verdicts),
        "returning": sum(verdict.identifiable and not verdict.visitor_is_new for verdict in verdicts),
        "unidentifiable": sum(not verdict.identifiable for verdict in verdicts),
        "amount_micros": sum(event.price_micros for event in events),
        "signals": [
            {"signal": name, "count": count} for name, count in sorted(fired.items(), key=lambda one: (-one[1], one[0]))
        ],
        "kinds": dict(Counter(event.visitor_kind for event in events)),
        "decisions": dict(Counter(verdict.decision.action for verdict in verdicts if verdict.decision)),
    }


def without_places(counts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in counts.items() if name not in ("scores", "countries", "at")}


@pytest.mark.parametrize("step", ["hour", "day"])
@pytest.mark.every_case
async def test_statistics_equal_a_scan_of_every_event(live: Live, console: Console, step: str):
    live.clock.advance(hours=20)
    await busy(live)
    await busy(live, "staging")
    stored = [event for _, event in live.events() if event.environment == "production"]
    seen = await console.seen("/statistics", step=step)
    assert without_places(seen["totals"]) == counts_of(stored)
    length_ms = HOUR_MS * (1 if step == "hour" else 24)
    by_period = Counter(event.occurred_at_ms // length_ms for event in stored)
    assert len(by_period) == (6 if step == "hour" else 2)
    expected = [
        counts_of([event for event in stored if event.occurred_at_ms // length_ms == period])
        for period in sorted(by_period)
    ]
    of_window = {"scores", "signals", "countries"}  # whose entries were most of the 1.2 MB of 30 days by hours
    assert of_window <= seen["totals"].keys()
    assert not any(of_window & period.keys() for period in seen["periods"])
    for counts in expected:
        del counts["signals"]
    assert [without_places(period) for period in seen["periods"]] == expected
    assert [period["at"] for period in seen["periods"]] == sorted(period["at"] for period in seen["periods"])
    assert all(period["at"].endswith(":00:00.000Z") for period in seen["periods"])
    scores = Counter(event.verdict.suspect_score for event in stored)
    assert sum(count for _, count in seen["totals"]["scores"]) == scores.total()
    assert (seen["step"], seen["to"]) == (step, "2026-01-02T12:00:00.000Z")


async def test_the_window_is_whole_hours_and_at_most_thirty_days(live: Live, console: Console):
    await busy(live)
    asked = {"from_": "2026-01-01T01:30:00Z", "to": "2026-01-01T03:10:00Z"}
    seen = await console.seen("/statistics", **asked)
    assert (seen["from"], seen["to"]) == ("2026-01-01T01:00:00.000Z", "2026-01-01T04:00:00.000Z")
    assert [period["at"][11:13] for period in seen["periods"]] == ["01", "02", "03"]
    for wrong in (
        {"from_": "yesterday"},
        {"from_": asked["to"], "to": asked["from_"]},
        {"from_": "2025-01-01T00:00:00Z"},
    ):
        assert_error(
            await console.get("/statistics", **wrong),
            422,
            "invalid_window",
            ("from", "invalid_value" if wrong["from_"] == "yesterday" else "out_of_range", "query"),
        )
    for last in ("9999-12-31T23:00:01Z", "9999-12-31T23:59:59-23:59"):
        assert_error(await console.get("/statistics", to=last), 422, "invalid_window", ("to", "out_of_range", "query"))
    assert_invalid(await console.get("/statistics", step="week"), "step", "invalid_value", "query")


async def test_an_empty_organization_has_empty_statistics(live: Live):
    await busy(live)
    seen = await Console(live, organization=live.new_organization()).seen("/statistics")
    assert (seen["periods"], seen["totals"]["identifications"], seen["totals"]["kinds"]) == ([], 0, {})


async def test_erased_events_are_subtracted(live: Live, console: Console, admin: Automation):
    await busy(live)
    event = (await console.seen("/events", tag="bob"))["rows"][0]
    before = (await console.seen("/statistics"))["totals"]
    assert (await admin("DELETE", f"/visitors/{event['visitor_id']}")).status_code == 204
    after = (await console.seen("/statistics"))["totals"]
    assert after["identifications"] == before["identifications"] - 2
    assert (await console.seen("/events", tag="bob"))["rows"] == []


async def test_an_event_of_0_1_0_is_listed_and_counted_without_signals(live: Live, console: Console):
    _, public = live.issue(environment="staging")
    request_id = (await visit(live, public, report(**DRIVEN))).json()["request_id"]
    older = live.world.request_id(live.clock.now_ms)

    def age(transaction: Transaction) -> None:
        (_, event), *_ = transaction.scan(EVENTS, live.organization.number)
        verdict = msgspec.structs.replace(event.verdict, signals=None)
        put_event(
            transaction,
            live.organization.number,
            older,
            msgspec.structs.replace(event, verdict=verdict, has_document=False),
        )
        held = counted(transaction, live.organization.number)
        kept = holding(transaction, live.organization.number)
        keep(transaction, live.organization.number, msgspec.structs.replace(kept, events=held.events))

    assert live.found.store.write_now([age]) == [None]
    rows = (await console.seen("/events", environment="staging"))["rows"]
    assert [row["request_id"] for row in rows] == [str(older), request_id]
    assert ["signals" in row for row in rows] == [False, True]
    totals = (await console.seen("/statistics", environment="staging"))["totals"]
    assert totals["identifications"] == 2
    assert {"signal": "automation", "count": 1} in totals["signals"]
    assert (await console.seen(f"/events/{older}"))["event"]["triggers"] == rows[0]["triggers"]


async def test_decisions_are_counted_and_networks_are_those_of_the_newest_events(
    live: Live, management: str, console: Console, monkeypatch: pytest.MonkeyPatch
):
    rules = {"revision": 0, "rules": [{"name": "All", "condition": "true", "action": "review"}]}
    path = f"/api/v1/management/organizations/{live.organization.id}/rules"
    saved = await live.client.put(path, json=rules, headers={"x-api-key": management})
    assert saved.status_code == 200, saved.text
    await busy(live)
    assert (await console.seen("/statistics"))["totals"]["decisions"] == {"review": 6}
    seen = await console.seen("/networks")
    assert (seen["events"], seen["is_complete"]) == (6, True)
    assert all(set(one) <= {"asn", "asn_name", "events", "suspicious"} for one in seen["networks"])
    monkeypatch.setattr(statistics, "EVENTS_LOOKED_AT", 4)
    seen = await console.seen("/networks")
    assert (seen["events"], seen["is_complete"]) == (4, False)
    assert_error(
        await console.get("/networks", from_="2020-01-01T00:00:00Z"),
        422, "invalid_window", ("from", "out_of_range", "query"),
    )  # fmt: skip


async def test_a_list_says_how_many_events_it_has(live: Live, console: Console, monkeypatch: pytest.MonkeyPatch):
    """As many as its pages together, by each filter; beyond the bound, that there are more."""
    await busy(live)
    for query in (
        {},
        {"level": "medium"},
        {"tag": "ada"},
        {"kind": "human", "level": "low"},
        {"group": "bot"},
        {"group": "bot", "tag": "ada"},
        {"signal": "headless"},
        {"from_": "2026-01-01T02:00:00Z", "to": "2026-01-01T05:00:00Z"},
        {"decision": "block"},
    ):
        rows = (await console.seen("/events", limit=200, **query))["rows"]
        assert await console.seen("/events/count", **query) == {"count": len(rows), "is_exact": True}, query
    groups = [{one["signal"] for one in row["triggers"]} for row in (await console.seen("/events", limit=50))["rows"]]
    found = (await console.seen("/events", limit=50, group="bot"))["rows"]
    assert len(found) == sum("bot" in one for one in groups) > 1
    assert await console.seen("/events/count", environment="staging") == {"count": 0, "is_exact": True}
    monkeypatch.setattr(console_routes, "MAX_TOTAL", 4)
    assert await console.seen("/events/count") == {"count": 4, "is_exact": False}
    assert await console.seen("/events/count", tag="ada") == {"count": 1, "is_exact": True}


async def test_a_count_ends_where_it_has_looked_at_enough(live: Live, monkeypatch: pytest.MonkeyPatch):
    console = Console(live)
    await busy(live)
    monkeypatch.setattr(queries, "KEYS_OF_A_LOOK", 1)
    monkeypatch.setattr(slices, "MAX_AT_ONCE", 1)
    assert await console.seen("/events/count") == {"count": 6, "is_exact": True}
    monkeypatch.setattr(queries, "MAX_LOOKS", 2)
    seen = await console.seen("/events/count")
    assert seen["count"] < 6
    assert not seen["is_exact"]


async def test_a_count_refuses_what_a_list_refuses(console: Console):
    for query, field in (({"group": "none"}, "group"), ({"country": "GBR"}, "country"), ({"shadow": "true"}, "rule")):
        for path in ("/events", "/events/count"):
            issue = "required" if field == "rule" else "invalid_value"
            assert_invalid(await console.get(path, **query), field, issue, "query")
    for path in ("/events/count", "/actions"):
        refused = await console.get(path, from_="2020-01-01T00:00:00Z")
        assert_error(refused, 422, "invalid_window", ("from", "out_of_range", "query"))
        assert_invalid(await console.get(path, page=2), "page", "unknown_field", "query")


async def test_actions_are_counted_over_the_whole_window(live: Live, console: Console, monkeypatch: pytest.MonkeyPatch):
    """Also what a backend sets afterwards; those of another time or environment are not counted."""
    _, public = live.issue()
    _, secret = live.issue("secret")
    made: list[str] = []
    for action in ("log_in", "sign_up", "log_in", None, "log_in"):
        given = {} if action is None else {"action": action}
        made.append((await visit(live, public, **given)).json()["request_id"])
        live.clock.advance(hours=1)
    seen = await console.seen("/actions", environment="development")
    assert seen == {
        "actions": [{"action": "log_in", "count": 3}, {"action": "sign_up", "count": 1}],
        "is_complete": True,
    }
    changed = await live.client.patch(
        f"/api/v1/events/{made[3]}", json={"action": "sign_up"}, headers={"x-api-key": secret}
    )
    assert changed.status_code == 200, changed.text
    seen = await console.seen("/actions", environment="development", from_="2026-01-01T01:30:00Z")
    assert [(one["action"], one["count"]) for one in seen["actions"]] == [("log_in", 2), ("sign_up", 1)]
    assert await console.seen("/actions") == {"actions": [], "is_complete": True}
    monkeypatch.setattr(queries, "KEYS_OF_A_LOOK", 1)
    monkeypatch.setattr(slices, "MAX_AT_ONCE", 1)
    monkeypatch.setattr(statistics, "MAX_ACTION_LOOKS", 1)
    seen = await console.seen("/actions", environment="development")
    assert (seen["is_complete"], "since" in seen) == (False, True)


# `GET /console/api/events/{request_id}`: one event of any environment, its webhooks, and the visits beside it


HOSTILE = '<script>alert(1)</script>"&\u2028'
"""A tag that a page must show as text."""


async def identified(live: Live, secret: str, signals: Any = None, **given: Any) -> str:
    """The request id of a new identification."""
    return (await visit(live, secret, signals, **given)).json()["request_id"]


async def test_an_event_of_any_environment_is_shown_as_in_the_server_api(live: Live, console: Console):
    for environment in ("production", "staging", "development"):
        key, public = live.issue("public", environment)
        _, secret = live.issue("secret", environment)
        request_id = await identified(live, public, report(**DRIVEN), tag=HOSTILE)
        seen = await console.seen(f"/events/{request_id}")
        read = await live.client.get(f"/api/v1/events/{request_id}", headers={"x-api-key": secret})
        assert seen["event"] == read.json()
        assert seen["event"]["environment"] == environment
        assert seen["event"]["tag"] == HOSTILE
        assert seen["event"]["document"]["evidence"]["automation"]
        assert seen["key"] == {"id": key.id, "name": "test", "last4": public[-4:]}
        assert seen["deliveries"] == []


@pytest.mark.slow(0.2)
async def test_previous_and_next_events_of_the_visitor_are_within_its_environment(live: Live, console: Console):
    """Whatever their levels; also of one millisecond, and not of another visitor or environment."""
    _, public = live.issue()
    _, staging = live.issue("public", "staging")
    visits: list[str] = []
    for count in range(6):
        visits.append(await identified(live, public, report(**(DRIVEN if count % 2 else {}))))
        await identified(live, public, report(5))
        await identified(live, staging, report())
        if count != 2:
            live.clock.advance(seconds=60)
    beside = [await console.seen(f"/events/{request_id}") for request_id in visits]
    visitors = {seen["event"]["visitor_id"] for seen in beside}
    assert len(visitors) == 1
    assert [seen.get("previous") for seen in beside] == [None, *visits[:-1]]
    assert [seen.get("next") for seen in beside] == [*visits[1:], None]


async def test_the_oldest_readable_event_has_none_before_it(live: Live, key: str, console: Console):
    old = await identified(live, key)
    live.clock.advance(hours=1)
    new = await identified(live, key)
    live.clock.advance(hours=30 * 24 - 0.5)
    assert "previous" not in await console.seen(f"/events/{new}")
    assert_error(await console.get(f"/events/{old}"), 404, "event_not_found")


async def test_its_webhook_attempts_are_listed_newest_first(hooks: Subscriber):
    """Of both event types, every endpoint and every attempt; of no other event."""
    console = Console(hooks.live)
    await hooks.create(events=[COMPLETED, "visitor.suspect"])
    removed, _ = await hooks.create()
    other = await identified(hooks.live, hooks.production)
    await at_rest()
    hooks.receivers.respond_with(DOWN)
    request_id = await identified(hooks.live, hooks.production, report(2, **DRIVEN))
    await at_rest()
    assert len((await console.seen(f"/events/{request_id}"))["deliveries"]) == 3
    posts = [*hooks.receivers.take(), *await hooks.wait(seconds=10)]
    assert (await hooks("DELETE", f"/webhooks/{removed}")).status_code == 204
    deliveries = (await console.seen(f"/events/{request_id}"))["deliveries"]
    listed = await hooks.deliveries()
    about = {post.event["id"] for post in posts if post.event["data"]["request_id"] == request_id}
    assert deliveries == [row for row in listed if row["event_id"] in about]
    assert {(row["event"], row["attempt"]) for row in deliveries} == {
        (COMPLETED, 1),
        (COMPLETED, 2),
        ("visitor.suspect", 1),
        ("visitor.suspect", 2),
    }
    assert len(deliveries) == 6
    assert [row["id"] for row in deliveries] == sorted((row["id"] for row in deliveries), reverse=True)
    assert len((await console.seen(f"/events/{other}"))["deliveries"]) == 2


async def test_an_event_without_a_document_is_shown_without_it(live: Live):
    console, (_, public) = Console(live), live.issue(allowed_origins=(ORIGIN,))
    request_id = await identified(live, public, report(**DRIVEN))
    beyond = first_id(live.clock.now_ms + 2)
    live.found.store.write_now([partial(removal.drop_documents, number=live.organization.number, beyond=beyond)])
    event = (await console.seen(f"/events/{request_id}"))["event"]
    assert (event["has_document"], event["document"]) == (False, None)
    assert [fired["signal"] for fired in event["signals"]] == ["automation"]


async def test_a_path_that_is_not_a_request_id_is_invalid(live: Live):
    response = await Console(live).get("/events/latest")
    assert_error(response, 422, "invalid_request_id", ("request_id", "invalid_value", "path"))
