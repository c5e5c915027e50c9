"""Decisions 14.2: precision and recall of signals, groups, rules and levels, by the labels of events."""

from __future__ import annotations

from typing import Any

import pytest

from svc.features.labels.performance import wilson
from tests.spec.automation import Automation
from tests.spec.responses import HEADLESS, act, assert_error, assert_invalid
from tests.spec.test_accounts import patch
from tests.spec.test_labels import after
from tests.support.live import Live, succeeded

COUNTS = ("events", "labelled", "fraud", "legitimate")


class Shop:
    """An organization with keys of production, whose visitors are labeled."""

    def __init__(self, live: Live) -> None:
        self.live, self.admin = live, Automation(live)
        self.public, self.secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
        self.devices = 0

    async def visit(self, label: str | None = None, *, headless: bool = False, **fields: Any) -> dict[str, Any]:
        self.devices += 1
        headers = {"headers": HEADLESS} if headless else {}
        answer = await act(self.live, self.public, device=self.devices, **headers, **fields)
        if label is not None:
            assert (await patch(self.live, self.secret, answer, label=label)).status_code == 200
        return answer

    async def performance(self, query: str = "") -> dict[str, Any]:
        return succeeded(await self.admin("GET", f"/performance{query}"))


@pytest.fixture
async def shop(live: Live) -> Shop:
    return Shop(live)


def line(found: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(each for each in found if each["name"] == name)


def counts(of: dict[str, Any]) -> tuple[int, ...]:
    return tuple(of[name] for name in COUNTS)


@pytest.mark.slow(0.2)
async def test_precision_recall_and_intervals_follow_from_the_labels(shop: Shop):
    for label in ("fraud", "fraud", "fraud", "legitimate", None):
        await shop.visit(label, headless=True)
    for label in ("fraud", "legitimate", None, None):
        await shop.visit(label)
    found = await shop.performance()
    assert counts(found["total"]) == (9, 6, 4, 2)
    headless = line(found["signals"], "headless")
    assert counts(headless) == (5, 4, 3, 1)
    low, high = wilson(3, 4) or (0, 0)
    assert (headless["precision"], headless["recall"]) == (0.75, 0.75)
    assert (headless["precision_low"], headless["precision_high"]) == pytest.approx((low, high))
    assert (round(low, 4), round(high, 4)) == (0.3006, 0.9544), "by hand"
    assert counts(line(found["groups"], "bot")) == (5, 4, 3, 1)
    assert [each["name"] for each in found["levels"]] == ["low", "medium", "high"]
    assert [counts(each) for each in found["levels"]] == [(4, 2, 1, 1), (5, 4, 3, 1), (0, 0, 0, 0)], "not cumulative"
    assert line(found["levels"], "low")["precision"] == 0.5


async def test_what_has_no_label_is_null_and_never_legitimate(shop: Shop):
    await shop.visit(headless=True)
    found = await shop.performance()
    headless = line(found["signals"], "headless")
    assert counts(headless) == (1, 0, 0, 0)
    fractions = ("precision", "precision_low", "precision_high", "recall")
    assert [headless[name] for name in fractions] == [None] * 4
    await shop.visit("legitimate")
    headless = line((await shop.performance())["signals"], "headless")
    assert [headless[name] for name in fractions] == [None] * 4, "and no fraud to recall"
    await shop.visit("fraud")
    headless = line((await shop.performance())["signals"], "headless")
    assert [headless[name] for name in fractions] == [None, None, None, 0.0]


async def test_rules_have_their_id_and_count_what_they_decided_or_matched_in_shadow(shop: Shop):
    rules = [
        {"name": "Headless", "condition": '"headless" in signals', "action": "block"},
        {"name": "All", "condition": "true", "action": "review", "mode": "shadow"},
    ]
    saved = (await shop.admin("PUT", "/rules", {"revision": 0, "rules": rules})).json()
    await shop.visit("fraud", headless=True)
    await shop.visit("legitimate")
    found = (await shop.performance())["rules"]
    assert [(each["name"], each["rule_id"], *counts(each)) for each in found] == [
        ("Headless", saved["rules"][0]["id"], 1, 1, 1, 0),
        ("All", saved["rules"][1]["id"], 2, 2, 1, 1),
    ]
    kept = {name: saved["rules"][1][name] for name in ("id", "name", "condition", "action")}
    await shop.admin("PUT", "/rules", {"revision": 1, "rules": [kept]})
    found = (await shop.performance())["rules"]
    assert [each["name"] for each in found] == ["All", "Headless"], "a former rule by its last name"


def scored(found: dict[str, Any]) -> dict[tuple[int, int | None], tuple[int, int]]:
    """Where the labeled events are, by their scores."""
    some = [each for each in found["scores"] if each["fraud"] or each["legitimate"]]
    return {(each["from"], each["to"]): (each["fraud"], each["legitimate"]) for each in some}


async def test_scores_of_labeled_events_are_told_by_their_label(shop: Shop):
    headless = await shop.visit("fraud", headless=True)
    honest = await shop.visit("legitimate")
    await shop.visit("fraud")
    await shop.visit()
    assert (headless["suspect_score"], honest["suspect_score"]) == (30, 0)
    found = await shop.performance()
    assert scored(found) == {(0, 1): (1, 1), (30, 40): (1, 0)}
    bounds = [(each["from"], each["to"]) for each in found["scores"]]
    assert bounds[0][0] == 0
    assert bounds[-1][1] is None
    assert [end for _, end in bounds[:-1]] == [start for start, _ in bounds[1:]], "no score is left out"


async def test_a_window_that_was_read_before_shows_each_change_since(shop: Shop):
    """Sums of days are kept while their rows stay as they are."""
    query = "?from=2025-12-01T00:00:00Z"
    first = await shop.visit("fraud", headless=True)
    assert scored(await shop.performance(query)) == {(30, 40): (1, 0)}
    shop.live.clock.advance(hours=24 * 10)
    await shop.visit("legitimate")
    assert scored(await shop.performance(query)) == {(30, 40): (1, 0), (0, 1): (0, 1)}
    assert (await patch(shop.live, shop.secret, first, label="legitimate")).status_code == 200
    found = await shop.performance(query)
    assert scored(found) == {(30, 40): (0, 1), (0, 1): (0, 1)}
    assert counts(found["total"]) == (2, 2, 0, 2)
    assert (await patch(shop.live, shop.secret, first, label=None)).status_code == 200
    assert scored(await shop.performance(query)) == {(0, 1): (0, 1)}
    await shop.visit(headless=True)
    assert counts((await shop.performance(query))["total"]) == (3, 1, 0, 1)


async def test_live_is_production_and_test_the_rest(shop: Shop):
    live = shop.live
    await shop.visit("fraud")
    for environment in ("staging", "development"):
        answer = await act(live, live.issue(environment=environment)[1], device=7)
        await patch(live, live.issue("secret", environment)[1], answer, label="legitimate")
    assert counts((await shop.performance())["total"]) == (1, 1, 1, 0)
    assert counts((await shop.performance("?environment=test"))["total"]) == (2, 2, 0, 2)
    wrong = await shop.admin("GET", "/performance?environment=production")
    assert_invalid(wrong, "environment", "invalid_value", "query")


@pytest.mark.slow(0.3)
async def test_the_same_is_told_before_and_after_events_are_deleted(shop: Shop):
    await shop.visit("fraud", headless=True)
    shop.live.clock.advance(hours=30)
    await shop.visit("legitimate")
    query = "?from=2026-01-01T00:00:00Z&to=2026-01-03T00:00:00Z"
    before = await shop.performance(query)
    assert (before["from"], before["to"]) == ("2026-01-01T00:00:00.000Z", "2026-01-03T00:00:00.000Z")
    await after(shop.live, 29.5)
    assert await shop.performance(query) == before, "one is deleted"
    await after(shop.live, 100)
    assert await shop.performance(query) == before
    first = await shop.performance("?from=2026-01-01T05:00:00Z&to=2026-01-01T06:00:00Z")
    assert (first["from"], first["to"]) == ("2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"), "whole days"
    assert counts(first["total"]) == (1, 1, 1, 0)
    assert counts((await shop.performance())["total"]) == (0, 0, 0, 0), "the last 30 days"


async def test_counts_stay_when_a_visitor_is_erased(shop: Shop):
    answer = await shop.visit("fraud", headless=True)
    before = await shop.performance()
    assert (await shop.admin("DELETE", f"/visitors/{answer['visitor_id']}")).status_code == 204
    assert await shop.performance() == before


async def test_a_window_beyond_400_days_is_refused(shop: Shop):
    for query, parameter, issue in (
        ("?from=2024-11-26T00:00:00Z", "from", "out_of_range"),
        ("?from=2025-12-31T00:00:00Z&to=2025-12-31T00:00:00Z", "from", "out_of_range"),
        ("?from=yesterday", "from", "invalid_value"),
        ("?to=tomorrow", "to", "invalid_value"),
        ("?from=2025-01-01T00:00:00Z&to=2026-03-01T00:00:00Z", "to", "out_of_range"),
        ("?to=2024-01-01T00:00:00Z", "to", "out_of_range"),
        ("?from=2024-11-27T00:00:00Z&to=2026-01-01T00:00:00.001Z", "to", "out_of_range"),
    ):
        refused = await shop.admin("GET", f"/performance{query}")
        assert_error(refused, 422, "invalid_window", (parameter, issue, "query"))


async def test_400_days_are_one_window(shop: Shop):
    found = await shop.performance("?from=2024-11-27T00:00:00Z&to=2026-01-01T00:00:00Z")
    assert counts(found["total"]) == (0, 0, 0, 0)


async def test_a_label_of_the_console_counts_as_one_of_the_server(shop: Shop):
    """Decisions 14.1: of any environment, by a management key or a session."""
    answer = await shop.visit(headless=True)
    path = f"/events/{answer['request_id']}/label"
    labeled = await shop.admin("PUT", path, {"label": "fraud", "label_reason": "bot"})
    assert labeled.json() == {"request_id": answer["request_id"], "label": "fraud", "label_reason": "bot"}
    assert counts((await shop.performance())["total"]) == (1, 1, 1, 0)
    removed = await shop.admin("PUT", path, {"label": None})
    assert removed.json() == {"request_id": answer["request_id"], "label": None, "label_reason": None}
    wrong = await shop.admin("PUT", path, {"label": None, "label_reason": "bot"})
    assert_invalid(wrong, "label_reason", "invalid_value")
    assert_error(
        await shop.admin("PUT", "/events/x/label", {"label": None}),
        422,
        "invalid_request_id",
        ("request_id", "invalid_value", "path"),
    )
    unknown = await shop.admin("PUT", "/events/019b76da-a800-7000-8000-000000000000/label", {"label": "fraud"})
    assert_error(unknown, 404, "event_not_found")
