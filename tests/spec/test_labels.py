"""Decisions 14.1: labels, what they are judged by, and how long that is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc.features.checks.invariants import violations
from svc.features.labels.queries import find_outcome
from svc.features.labels.tables import NUMBERED_ACCOUNTS, OUTCOME_DAYS, OUTCOMES, SUBJECT_LABELS
from svc.features.retention.sweeper import Progress, sweep
from svc.identify.tables import EVENTS
from tests.spec.responses import HEADLESS, TOO_LITTLE, act, assert_error, assert_invalid, visit
from tests.spec.test_accounts import event_of, patch
from tests.support.live import Live, report, succeeded

FRAUD = {"label": "fraud", "label_reason": "chargeback"}


async def subject(live: Live, secret: str, path: str) -> dict[str, Any]:
    return succeeded(await live.client.get(f"/api/v1/{path}", headers={"x-api-key": secret}))


async def after(live: Live, days: float) -> None:
    """So many days pass, and retention does its work."""
    live.clock.advance(hours=24 * days)
    progress = Progress()
    await sweep(live.found.store, live.clock.now_ms, 365, progress, with_passes=True)
    assert not progress.failed


def faults(live: Live) -> list[str]:
    with live.found.store.read() as snapshot:
        return list(violations(snapshot))


# 14.1: updateEvent


@pytest.mark.slow(0.2)
async def test_a_label_and_its_reason_are_set_changed_and_removed(live: Live, public: str, secret: str):
    answer = await act(live, public)
    assert {"label", "label_reason"} & set(await event_of(live, secret, answer)) == set()
    for fields, expected in (
        (FRAUD, ("fraud", "chargeback")),
        ({"label_reason": "spam"}, ("fraud", "spam")),
        ({"action": "log_in"}, ("fraud", "spam")),
        ({"label": "fraud"}, ("fraud", "spam")),
        ({"label_reason": None}, ("fraud", None)),
        ({"label": "legitimate", "label_reason": "other"}, ("legitimate", "other")),
        ({"label": "fraud"}, ("fraud", None)),
        (FRAUD, ("fraud", "chargeback")),
        ({"label": None}, (None, None)),
    ):
        changed = await patch(live, secret, answer, **fields)
        assert changed.status_code == 200, changed.text
        event = await event_of(live, secret, answer)
        assert changed.json() == event
        assert (event.get("label"), event.get("label_reason")) == expected, fields
        assert faults(live) == []


async def test_another_label_or_a_reason_without_one_is_refused(live: Live, public: str, secret: str):
    answer = await act(live, public)
    before = live.contents()
    for fields, field, issue in (
        ({"label_reason": "spam"}, "label_reason", "invalid_value"),
        ({"label": None, "label_reason": "spam"}, "label_reason", "invalid_value"),
        ({"label": "bad"}, "label", "invalid_value"),
        ({"label": 1}, "label", "wrong_type"),
        ({"label": "fraud", "label_reason": "because"}, "label_reason", "invalid_value"),
        ({"labels": "fraud"}, "labels", "unknown_field"),
    ):
        assert_invalid(await patch(live, secret, answer, **fields), field, issue)
        assert live.contents() == before


async def test_events_are_listed_by_label(live: Live, public: str, secret: str):
    first, second = await act(live, public), await act(live, public, device=2)
    await patch(live, secret, first, label="fraud")
    await patch(live, secret, second, label="legitimate")
    await patch(live, secret, second, label="fraud")
    for label, expected in (("fraud", [second, first]), ("legitimate", [])):
        found = await live.client.get("/api/v1/events", params={"label": label}, headers={"x-api-key": secret})
        assert [row["request_id"] for row in found.json()["rows"]] == [each["request_id"] for each in expected]
    wrong = await live.client.get("/api/v1/events", params={"label": "bad"}, headers={"x-api-key": secret})
    assert_invalid(wrong, "label", "invalid_value", "query")


async def test_visitors_and_accounts_count_their_labels_by_kind_of_environment(live: Live, public: str, secret: str):
    answers = [await act(live, public, "a", device=1), await act(live, public, "a", device=2)]
    for answer, label in zip(answers, ("fraud", "legitimate"), strict=True):
        await patch(live, secret, answer, label=label)
    assert (await subject(live, secret, "accounts/a"))["labels"] == {"fraud": 1, "legitimate": 1}
    visitor = f"visitors/{answers[0]['visitor_id']}"
    assert (await subject(live, secret, visitor))["labels"] == {"fraud": 1, "legitimate": 0}
    await patch(live, secret, answers[0], account_id="b")
    assert (await subject(live, secret, "accounts/a"))["labels"] == {"fraud": 0, "legitimate": 1}
    assert (await subject(live, secret, "accounts/b"))["labels"] == {"fraud": 1, "legitimate": 0}
    assert faults(live) == []
    staging, staging_secret = live.issue(environment="staging")[1], live.issue("secret", "staging")[1]
    await act(live, staging, "a", device=1)
    assert (await subject(live, staging_secret, "accounts/a"))["labels"] == {"fraud": 0, "legitimate": 0}


async def test_a_visitor_that_is_not_identifiable_has_the_label_of_its_event(live: Live, public: str, secret: str):
    answer = (await visit(live, public, TOO_LITTLE)).json()
    assert answer["identifiable"] is False
    await patch(live, secret, answer, label="fraud")
    found = await subject(live, secret, f"visitors/{answer['visitor_id']}")
    assert found["labels"] == {"fraud": 1, "legitimate": 0}
    await after(live, 31)


@pytest.mark.slow(0.3)
async def test_rules_see_the_labels_of_visitor_and_account(live: Live, public: str, secret: str):
    """Decisions 13.4."""
    headers = {"x-api-key": live.issue("management")[1]}
    rules = [
        {"name": "Visitor", "condition": '"fraud" in labels.visitor', "action": "block"},
        {"name": "Account", "condition": "size(labels.account) == 2", "action": "challenge"},
    ]
    path = f"/api/v1/management/organizations/{live.organization.id}/rules"
    saved = await live.client.put(path, json={"revision": 0, "rules": rules}, headers=headers)
    assert saved.status_code == 200, saved.text
    first = await act(live, public, "a")
    assert "decision" not in first
    await patch(live, secret, first, label="fraud")
    assert (await act(live, public))["decision"]["rule"] == "Visitor"
    second = await act(live, public, "a", device=2)
    assert "decision" not in second
    await patch(live, secret, second, label="legitimate")
    assert (await act(live, public, "a", device=3))["decision"]["rule"] == "Account"


# 14.1: for 400 days


@pytest.mark.slow(0.4)
async def test_a_label_may_be_set_for_400_days_and_is_answered_alone_once_the_event_is_gone(
    live: Live, public: str, secret: str
):
    answer = await act(live, public, "a", headers=HEADLESS)
    other = live.issue("secret", "staging")[1]
    live.clock.advance(hours=24 * 30, seconds=1)
    early = await patch(live, secret, answer, **FRAUD)
    assert early.status_code == 200, "it is not readable any more, and not deleted yet"
    assert early.json() == {"request_id": answer["request_id"], **FRAUD}
    await after(live, 1)
    assert EVENTS.name in live.contents()
    assert live.contents()[EVENTS.name] == []
    late = await patch(live, secret, answer, label_reason="account_takeover")
    assert late.json() == {"request_id": answer["request_id"], "label": "fraud", "label_reason": "account_takeover"}
    removed = await patch(live, secret, answer, label=None)
    assert removed.json() == {"request_id": answer["request_id"], "label": None, "label_reason": None}
    assert_invalid(await patch(live, secret, answer, label_reason="spam"), "label_reason", "invalid_value")
    for fields in ({"account_id": "b"}, {"label": "fraud", "tag": "x"}, {}):
        assert_error(await patch(live, secret, answer, **fields), 404, "event_not_found")
    assert_error(await patch(live, other, answer, **FRAUD), 404, "event_not_found")
    assert (await patch(live, secret, answer, **FRAUD)).status_code == 200
    assert faults(live) == []
    await after(live, 368.9)
    assert (await patch(live, secret, answer, label="legitimate")).status_code == 200
    await after(live, 0.2)
    assert_error(await patch(live, secret, answer, **FRAUD), 404, "event_not_found")
    await after(live, 3)
    kept = live.contents()
    for table in (OUTCOMES, OUTCOME_DAYS, SUBJECT_LABELS, NUMBERED_ACCOUNTS):
        assert kept[table.name] == [], table.name


async def test_a_label_is_refused_after_400_days_though_nothing_was_deleted_yet(live: Live, public: str, secret: str):
    """Of an event that is stored and of one whose outcome alone is kept, to the millisecond."""
    kept = await act(live, public)
    await after(live, 31)
    assert live.contents()[EVENTS.name] == []
    stored = await act(live, public)
    for answer, days in ((kept, 400 - 31), (stored, 31)):
        live.clock.advance(hours=24 * days)
        assert (await patch(live, secret, answer, **FRAUD)).status_code == 200
        live.clock.advance(seconds=0.001)
        assert_error(await patch(live, secret, answer, label=None), 404, "event_not_found")
        live.clock.advance(seconds=-0.001)


async def test_an_outcome_has_what_a_label_is_judged_by_and_neither_report_nor_address(
    live: Live, public: str, secret: str
):
    answer = await act(live, public, "a", headers=HEADLESS, tag="order 1234")
    event = await event_of(live, secret, answer)
    await after(live, 31)
    ((_, segment),) = live.contents()[OUTCOMES.name]
    (outcome,) = segment.outcomes
    facts = outcome.facts
    assert (facts.score, facts.level) == (event["suspect_score"], event["suspect_level"])
    assert set(facts.signals) == {each["signal"] for each in event["signals"]} != set()
    assert (facts.environment, facts.platform, facts.decision) == ("production", "web", None)
    assert outcome.visitor
    assert outcome.account
    stored = OUTCOMES.value.encode(segment)
    for text in ("81.2.69.160", "order 1234", answer["visitor_id"]):
        assert text.encode() not in stored


@pytest.mark.slow(0.7)
async def test_outcomes_of_many_days_and_orders_are_found_again(live: Live, public: str, secret: str):
    answers: list[dict[str, Any]] = []
    for device in range(12):
        answers.append(await act(live, public, f"account {device}", device=device))
        live.clock.advance(hours=7)
    await patch(live, secret, answers[5], **FRAUD)
    for _ in range(8):
        await after(live, 4.1)
        assert faults(live) == []
    for place, answer in enumerate(answers):
        found = await patch(live, secret, answer, label="legitimate" if place % 2 else "fraud")
        assert found.json()["request_id"] == answer["request_id"]
        assert faults(live) == []


# 14.1: erasure


async def test_the_erasure_of_a_visitor_takes_its_ids_out_and_counts_stay(live: Live, public: str, secret: str):
    admin = {"x-api-key": live.issue("management")[1]}
    answer = await act(live, public, "a")
    await patch(live, secret, answer, **FRAUD)
    await act(live, public, "a", device=2)
    path = f"/api/v1/management/organizations/{live.organization.id}/visitors/{answer['visitor_id']}"
    assert (await live.client.delete(path, headers=admin)).status_code == 204
    assert faults(live) == []
    contents = live.contents()
    ((_, segment),) = contents[OUTCOMES.name]
    assert [(each.visitor, each.facts.label) for each in segment.outcomes] == [(0, "fraud")]
    ((_, counts),) = contents[OUTCOME_DAYS.name]
    assert (counts.fraud.events, counts.archived.events) == (1, 1)
    assert (await subject(live, secret, "accounts/a"))["labels"] == {"fraud": 1, "legitimate": 0}
    assert (await patch(live, secret, answer, label="legitimate")).json()["label"] == "legitimate"
    assert (await subject(live, secret, "accounts/a"))["labels"] == {"fraud": 0, "legitimate": 1}


@pytest.mark.parametrize("days", [0, 31])
@pytest.mark.slow(0.6)
async def test_the_erasure_of_an_account_takes_its_id_out_and_counts_stay(
    live: Live, public: str, secret: str, days: int
):
    admin = {"x-api-key": live.issue("management")[1]}
    answer = await act(live, public, "the account/1")
    await patch(live, secret, answer, **FRAUD)
    await after(live, days)
    path = f"/api/v1/management/organizations/{live.organization.id}/accounts/the%20account%2F1"
    assert (await live.client.delete(path, headers=admin)).status_code == 204
    assert faults(live) == []
    contents = live.contents()
    assert contents[NUMBERED_ACCOUNTS.name] == []
    (((_, _, subject_index, _), counts),) = contents[SUBJECT_LABELS.name]
    assert (subject_index, counts.fraud) == (0, 1), "the visitor's"
    await after(live, 31)
    assert faults(live) == []
    assert (await patch(live, secret, answer, label="legitimate")).status_code == 200
    assert faults(live) == []
    with live.found.store.read() as snapshot:
        found = find_outcome(snapshot, live.organization.number, bytes.fromhex(answer["request_id"].replace("-", "")))
    assert found is not None
    assert found.outcome.facts.label == "legitimate"
    assert "the account" not in json.dumps({name: repr(rows) for name, rows in contents.items() if name != "audit"})
    assert_error(await live.client.delete(path, headers=admin), 404, "not_found")


async def test_labels_of_a_report_that_named_nobody_are_counted_too(live: Live, public: str, secret: str):
    answer = (await visit(live, public, report(3))).json()
    await patch(live, secret, answer, label="legitimate")
    ((_, counts),) = live.contents()[OUTCOME_DAYS.name]
    assert (counts.legitimate.events, counts.legitimate.levels) == (1, {"low": 1})
