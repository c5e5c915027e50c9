"""Decisions 15.1: rules that decide nothing are the analyst's, too, and what else somebody would have is proposed."""

from __future__ import annotations

from typing import Any

import pytest

from svc.features.rules.checking import MAX_DRAFTED_RULES
from svc.features.rules.ruleset import MAX_PROPOSALS, MAX_RULES
from svc.features.rules.tables import RULE_PROPOSALS
from tests.spec.automation import Automation
from tests.spec.commands import run_beside
from tests.spec.console_browser import Browser
from tests.spec.people import came_in
from tests.spec.responses import assert_error, assert_invalid
from tests.spec.test_labels import after
from tests.support.live import Live, succeeded

SHADOW = {"name": "Seen", "condition": "score >= 50", "action": "review", "mode": "shadow"}
ACTIVE = {"name": "Known", "condition": "score >= 60", "action": "block"}


class Person:
    """A member in the console."""

    def __init__(self, live: Live, browser: Browser) -> None:
        self._browser = browser
        self._path = f"/console/api/management/organizations/{live.organization.id}"

    async def __call__(self, method: str, path: str, body: Any = None) -> Any:
        return await self._browser(method, self._path + path, body)


async def member(live: Live, role: str) -> Person:
    return Person(live, await came_in(live, role))


async def rules_of(person: Any) -> dict[str, Any]:
    return (await person("GET", "/rules")).json()


async def save(person: Any, *rules: dict[str, Any]) -> Any:
    revision = (await rules_of(person))["revision"]
    return await person("PUT", "/rules", {"revision": revision, "rules": rules})


@pytest.mark.parametrize("role", ["analyst", "developer"])
async def test_an_analyst_saves_rules_that_decide_nothing_and_no_others(live: Live, role: str):
    admin, analyst = Automation(live), await member(live, role)
    assert (await save(admin, ACTIVE, ACTIVE | {"name": "Second"})).status_code == 200
    first, second = (await rules_of(admin))["rules"]
    answer = succeeded(await save(analyst, first, SHADOW, second, SHADOW | {"name": "Off", "mode": "off"}))
    _, shadow, _, off = answer["rules"]
    for wrong in (
        (second, first),
        (first,),
        (first, second, ACTIVE | {"name": "Third"}),
        (first, second, {**shadow, "mode": "active"}),
        ({**first, "condition": "score >= 1"}, second),
        ({**first, "action": "allow"}, second),
        ({**first, "mode": "off"}, second),
        ({**first, "name": "Renamed"}, second),
    ):
        before = live.contents()["rulesets"]
        assert_error(await save(analyst, *wrong), 403, "insufficient_role")
        assert live.contents()["rulesets"] == before
    moved = await save(analyst, shadow, first, {**off, "condition": "score >= 2"}, second)
    assert moved.status_code == 200, moved.text
    assert (await save(analyst, first, second)).status_code == 200
    assert_error(await analyst("PUT", "/rules", {"revision": 1, "rules": []}), 409, "revision_conflict")
    history = (await admin("GET", "/rules")).json()
    assert [rule["mode"] for rule in history["rules"]] == ["active", "active"]
    assert_error(await save(await member(live, "viewer"), first, second), 403, "insufficient_role")


async def test_an_admin_can_always_add_rules_to_those_of_an_analyst(live: Live):
    admin, analyst = Automation(live), await member(live, "analyst")
    first, second = (await rules_of(admin))["rules"]
    off = [SHADOW | {"name": f"Off {at}", "mode": "off"} for at in range(MAX_RULES)]
    assert (await save(analyst, first, second, *off[: MAX_DRAFTED_RULES - 2])).status_code == 200
    refused = await save(analyst, first, second, *off[: MAX_DRAFTED_RULES - 1])
    assert_invalid(refused, "rules", "too_long")
    assert "80 rules" in refused.json()["error"]["message"]
    assert (await save(admin, first, second, *off[: MAX_RULES - 2])).status_code == 200
    saved = (await rules_of(admin))["rules"]
    assert (await save(analyst, *saved[:-1], saved[-1] | {"note": "changed"})).status_code == 200, "not one more"

    costly = [SHADOW | {"name": f"Costly {at}", "condition": f'tag.matches("x{at}.*[a-f]+y")'} for at in range(20)]
    count = 1
    while (refused := await save(analyst, first, second, *costly[:count])).status_code == 200:
        count += 1
    assert count > 2
    assert_invalid(refused, "rules", "too_expensive")
    assert "1.6 ms" in refused.json()["error"]["message"]
    assert (await save(admin, first, second, *costly[:count])).status_code == 200
    rules = (await rules_of(admin))["rules"]
    assert (await save(analyst, *rules[:-1], rules[-1] | {"note": "changed"})).status_code == 200, "no dearer"
    assert (await save(analyst, *rules[:-1])).status_code == 200


async def test_a_proposal_waits_for_an_admin_and_is_dismissed_by_one_or_by_its_author(live: Live):
    admin, analyst, other = Automation(live), await member(live, "analyst"), await member(live, "analyst")
    given = {"revision": 0, "rules": [ACTIVE], "note": "Quiet for a week."}
    made = await analyst("POST", "/rule-proposals", given)
    assert made.status_code == 201, made.text
    proposal = made.json()
    assert proposal["author"].startswith("mem_")
    assert (proposal["revision"], proposal["note"]) == (0, "Quiet for a week.")
    assert [rule["name"] for rule in proposal["rules"]] == ["Known"]
    assert (await admin("GET", "/rule-proposals")).json() == {"proposals": [proposal]}
    assert (await admin("GET", "/rule-proposals?environment=test")).json() == {"proposals": []}
    assert [rule["name"] for rule in (await rules_of(admin))["rules"]] == ["Blocked", "Trusted"], "nothing is in force"
    path = f"/rule-proposals/{proposal['id']}"
    assert_error(await other("DELETE", path), 403, "insufficient_role")
    for no_path in (
        path + "?environment=test",
        *(path.replace("prop_", before) for before in ("note_", "rev_", "view_")),
    ):
        assert_error(await admin("DELETE", no_path), 404, "not_found")
    assert (await analyst("DELETE", path)).status_code == 204
    assert_error(await admin("DELETE", path), 404, "not_found")
    by_key = (await admin("POST", "/rule-proposals", {"revision": 0, "rules": []})).json()
    assert "author" not in by_key
    assert_error(await analyst("DELETE", f"/rule-proposals/{by_key['id']}"), 403, "insufficient_role")
    assert (await admin("DELETE", f"/rule-proposals/{by_key['id']}")).status_code == 204
    assert_error(await admin("DELETE", "/rule-proposals/x"), 404, "not_found")


async def test_a_proposal_can_be_saved_as_it_is_read(live: Live):
    """Rules in force keep their ids; a save makes those that are new, and those that were deleted meanwhile."""
    admin, analyst = Automation(live), await member(live, "analyst")
    blocked, trusted = (await rules_of(admin))["rules"]
    given = {"revision": 0, "rules": [blocked, ACTIVE, trusted, SHADOW]}
    made = (await analyst("POST", "/rule-proposals", given)).json()
    assert ["id" in rule for rule in made["rules"]] == [True, False, True, False]
    assert (await save(admin, blocked)).status_code == 200
    (listed,) = (await admin("GET", "/rule-proposals")).json()["proposals"]
    (shown,) = (await run_beside("rule", "proposals", live.organization.id, "--json", *live.options)).json["proposals"]
    for proposal in (listed, shown):
        answer = succeeded(await save(admin, *proposal["rules"]))
        assert [rule["name"] for rule in answer["rules"]] == ["Blocked", "Known", "Trusted", "Seen"]
        assert answer["rules"][0]["id"] == blocked["id"]


async def test_a_proposal_is_refused_as_a_save_is_and_beyond_twenty(live: Live, admin: Automation):
    faults: list[tuple[dict[str, Any], str, str]] = [
        ({"revision": 0, "rules": [ACTIVE | {"condition": "nothing >"}]}, "rules[0].condition", "invalid_condition"),
        ({"revision": 0, "rules": [ACTIVE | {"id": "rul_" + "0" * 20}]}, "rules[0].id", "invalid_value"),
        ({"revision": 0, "rules": [], "note": "x" * 501}, "note", "too_long"),
        ({"revision": -1, "rules": []}, "revision", "out_of_range"),
        ({"revision": 1, "rules": []}, "revision", "out_of_range"),
        ({"rules": []}, "revision", "required"),
    ]
    for wrong, field, issue in faults:
        assert_invalid(await admin("POST", "/rule-proposals", wrong), field, issue)
    for _ in range(MAX_PROPOSALS):
        live.clock.advance(seconds=1)
        assert (await admin("POST", "/rule-proposals", {"revision": 0, "rules": [ACTIVE]})).status_code == 201
    assert_error(await admin("POST", "/rule-proposals", {"revision": 0, "rules": []}), 409, "proposal_limit")
    test = await admin("POST", "/rule-proposals?environment=test", {"revision": 0, "rules": []})
    assert test.status_code == 201, "each kind of environment has its own"
    await after(live, 91)
    assert live.contents()[RULE_PROPOSALS.name] == []


async def test_proposals_are_listed_on_the_command_line_beside_the_service(live: Live):
    given = {"revision": 0, "rules": [ACTIVE], "note": "Quiet for a week."}
    made = (await Automation(live)("POST", "/rule-proposals", given)).json()
    (shown,) = (await run_beside("rule", "proposals", live.organization.id, "--json", *live.options)).json["proposals"]
    assert (shown["id"], shown["note"], shown["author"]) == (made["id"], "Quiet for a week.", None)
    assert [rule["name"] for rule in shown["rules"]] == ["Known"]
    said = await run_beside("rule", "proposals", live.organization.id, *live.options)
    assert "Quiet for a week." in said.out
    of_test = await run_beside(
        "rule", "proposals", live.organization.id, "--environment", "test", "--json", *live.options
    )
    assert of_test.json == {"proposals": []}


async def test_the_history_names_who_saved_on_the_command_line_too(live: Live):
    analyst, admin = await member(live, "analyst"), Automation(live)
    first, second = (await rules_of(admin))["rules"]
    assert (await save(analyst, first, second, SHADOW)).status_code == 200
    assert (await save(admin, first, second)).status_code == 200
    history = (await run_beside("rule", "history", live.organization.id, "--json", *live.options)).json["revisions"]
    assert [row["name"] for row in history] == [admin.key.name, "Ada", None]
    assert "Ada" in (await run_beside("rule", "history", live.organization.id, *live.options)).out
