"""Decisions 13 in the console: why an event was decided as it was, revisions of a ruleset, and what an editor needs."""

from __future__ import annotations

from typing import Any

from svc.identify.records import RETENTION_MS
from tests.spec.console import UNKNOWN, Console
from tests.spec.console_browser import API
from tests.spec.people import came_in
from tests.spec.responses import act, assert_error
from tests.support.live import Live, succeeded

SECOND = {
    "name": "Second account",
    "condition": 'velocity.visitor.accounts["30d"] >= 2 && !visitor.is_new',
    "action": "review",
}
LATER = {"name": "Later", "condition": "score >= 0 || action == 'buy'", "action": "block", "mode": "shadow"}
NEVER = {"name": "Never", "condition": "score > 1000", "action": "challenge", "mode": "off"}


async def save(live: Live, *rules: dict[str, Any], revision: int = 0) -> dict[str, Any]:
    _, admin = live.issue("management")
    answer = succeeded(
        await live.client.put(
            f"/api/v1/management/organizations/{live.organization.id}/rules",
            json={"revision": revision, "rules": rules},
            headers={"x-api-key": admin},
        )
    )
    live.clock.advance(seconds=1)
    return answer


async def test_an_event_says_which_rule_decided_and_why_term_by_term(live: Live, console: Console):
    saved = await save(live, SECOND, LATER, NEVER)
    public = live.issue(environment="production")[1]
    await act(live, public, "a")
    answer = await act(live, public, "b")
    seen = await console.seen(f"/events/{answer['request_id']}/rules")
    assert (seen["revision"], seen["is_in_force"]) == (1, True)
    assert seen["decision"]["rule"] == "Second account"
    second, later, never = seen["rules"]
    assert [second["rule_id"], later["rule_id"]] == [rule["id"] for rule in saved["rules"][:2]]
    assert [(rule["mode"], rule["matches"]) for rule in seen["rules"]] == [
        ("active", True), ("shadow", True), ("off", False),
    ]  # fmt: skip
    assert second["terms"][0] | {"text": ""} == {"depth": 0, "kind": "all", "text": "", "result": True}
    assert second["terms"][1] == {
        "depth": 1,
        "kind": "term",
        "text": 'velocity.visitor.accounts["30d"] >= 2',
        "result": True,
        "operator": ">=",
        "left": {"text": 'velocity.visitor.accounts["30d"]', "value": "2"},
        "right": {"text": "2"},
    }
    assert [term["kind"] for term in second["terms"]] == ["all", "term", "not", "term"]
    assert [term.get("absent") for term in later["terms"]] == [None, None, ["action"]]
    assert "terms" not in never
    asked = await console.seen(f"/events/{answer['request_id']}/rules", rule_id=never["rule_id"])
    assert asked["rules"][2]["terms"][0]["left"]["value"] == "0"


async def test_an_event_is_explained_by_the_rules_of_its_time(live: Live, console: Console):
    public = live.issue(environment="production")[1]
    first = await act(live, public, "a")
    live.clock.advance(seconds=1)
    await save(live, SECOND)
    await save(live, NEVER, revision=1)
    seen = await console.seen(f"/events/{first['request_id']}/rules")
    assert (seen["revision"], seen["is_in_force"], "saved_at" in seen) == (0, False, False)
    assert [rule["name"] for rule in seen["rules"]] == ["Blocked", "Trusted"]
    assert "decision" not in seen
    second = await act(live, public, "b")
    assert (await console.seen(f"/events/{second['request_id']}/rules"))["revision"] == 2
    staging = await act(live, live.issue(environment="staging")[1], "b")
    seen = await console.seen(f"/events/{staging['request_id']}/rules")
    assert seen["revision"] == 0, "staging has rules of its own"


async def test_revisions_are_listed_newest_first_with_who_saved_them(live: Live, console: Console):
    await save(live, SECOND)
    await save(live, SECOND, LATER, revision=1)
    page = await console.seen("/rules/history", limit=2)
    assert [each["revision"] for each in page["revisions"]] == [2, 1]
    assert page["next_before"] == 1
    assert page["revisions"][0]["saved_at"] == "2026-01-01T00:00:01.000Z"
    assert page["revisions"][0]["saved_by"].keys() == {"id", "name"}
    assert [rule["name"] for rule in page["revisions"][0]["rules"]] == ["Second account", "Later"]
    rest = await console.seen("/rules/history", limit=2, before=1)
    assert [each["revision"] for each in rest["revisions"]] == [0]
    assert rest.keys() == {"revisions"}
    assert [each["revision"] for each in (await console.seen("/rules/history", environment="test"))["revisions"]] == [0]


async def test_examples_of_a_preview_are_told_apart(live: Live, console: Console):
    """Of any environment, in the order of the preview; those that are gone, or of others, are left out."""
    public = live.issue(environment="production")[1]
    first = await act(live, public, "a", action="log_in")
    live.clock.advance(seconds=1)
    staging = await act(live, live.issue(environment="staging")[1])
    stranger = Console(live, organization=live.new_organization())
    answer = await console.post(
        "/rules/examples", {"request_ids": [staging["request_id"], UNKNOWN, first["request_id"].upper()]}
    )
    assert answer.status_code == 200, answer.text
    bare, full = answer.json()["rows"]
    assert full == {
        "request_id": first["request_id"],
        "occurred_at": "2026-01-01T00:00:00.000Z",
        "suspect_score": first["suspect_score"],
        "suspect_level": "low",
        "account_id": "a",
        "action": "log_in",
    }
    assert bare.keys() == full.keys() - {"account_id", "action"}
    assert bare["request_id"] == staging["request_id"]
    foreign = await stranger.post("/rules/examples", {"request_ids": [first["request_id"]]})
    assert foreign.json() == {"rows": []}
    live.clock.now_ms += RETENTION_MS
    assert (await console.post("/rules/examples", {"request_ids": [first["request_id"]]})).json() == {"rows": []}


async def test_examples_are_500_at_most_and_ids(console: Console):
    assert (await console.post("/rules/examples", {"request_ids": [UNKNOWN] * 500})).json() == {"rows": []}
    for request_ids, fault in (
        ([UNKNOWN] * 501, ("request_ids", "too_long", "body")),
        ([UNKNOWN, "first"], ("request_ids[1]", "invalid_value", "body")),
        ([7], ("request_ids[0]", "wrong_type", "body")),
        (None, ("request_ids", "wrong_type", "body")),
    ):
        assert_error(
            await console.post("/rules/examples", {"request_ids": request_ids}), 422, "validation_error", fault
        )


async def test_rules_are_checked_without_looking_at_an_event(console: Console):
    assert (await console.post("/rules/check", {"rules": [SECOND, LATER]})).status_code == 204
    wrong = await console.post("/rules/check", {"rules": [SECOND | {"condition": "score >\n= visits"}]})
    error = assert_error(wrong, 422, "validation_error", ("rules[0].condition", "invalid_condition", "body"))
    assert error is None or error
    assert "rules[0].condition: line 2, column 1" in wrong.json()["error"]["message"]


async def test_the_language_of_conditions_is_listed_for_an_editor(live: Live):
    seen = await Console(live).seen("/rules/language")
    types = {each["name"]: each["type"] for each in seen["variables"]}
    assert types["score"] == "int"
    assert types["velocity.visitor.accounts"] == "map(string, int)"
    assert {"name": "blocked_visitors", "kind": "visitor"} in seen["lists"]
    assert 'present("account.id")' in seen["functions"]


async def test_a_revision_says_the_name_of_the_member_who_saved_it(live: Live):
    """15.1: `updated_by_user_id` and its kin hold a member's id; people read names."""
    browser = await came_in(live, "admin", name="Ada Byron")
    path = f"{API}/management/organizations/{live.organization.id}/rules?environment=live"
    saved = await browser("PUT", path, {"revision": 0, "rules": [SECOND]})
    assert saved.status_code == 200, saved.text
    (revision, _) = (await browser("GET", f"{API}/rules/history?environment=live")).json()["revisions"]
    assert revision["saved_by"]["name"] == "Ada Byron"
    assert revision["saved_by"]["id"].startswith("mem_")
