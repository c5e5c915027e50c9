"""Decisions 12.2, 13.1: whether an entry of a list decides anything, as the console says it, and as saves warn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from svc.features.rules.ruleset import FIRST
from svc.kernel.values.timestamps import timestamp
from tests.spec.automation import Automation
from tests.spec.commands import run_beside
from tests.spec.console import Console
from tests.spec.responses import assert_invalid, visit
from tests.support.live import Live, succeeded

ASKED = 'in_list("blocked_visitors") || in_list("blocked_accounts")'
NO_READER = "no active rule reads blocked_visitors, blocked_accounts or blocked_addresses, so these lists block nobody"


def rule(name: str, condition: str, action: str, mode: str = "active") -> dict[str, Any]:
    return {"name": name, "condition": condition, "action": action, "mode": mode}


BLOCKED = rule("Blocked", ASKED, "block")
BOTS = rule("Bots", '"bot" in groups', "block")
OFFICE = rule("Office", 'environment == "production"', "allow")
RULESETS: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "read": ([BLOCKED], "always", ""),
    "read_below_another_block": ([BOTS, BLOCKED], "always", ""),
    "no_rules": ([], "never", "No active rule reads it, so nothing is blocked."),
    "not_read": ([BOTS], "never", "No active rule reads it, so nothing is blocked."),
    "in_shadow": (
        [BLOCKED | {"mode": "shadow"}],
        "never",
        'Only rule "Blocked" reads it, in mode shadow, so nothing is blocked.',
    ),
    "off": ([BLOCKED | {"mode": "off"}], "never", 'Only rule "Blocked" reads it, in mode off, so nothing is blocked.'),
    "decided_otherwise": (
        [BLOCKED | {"action": "review"}],
        "never",
        'Rule "Blocked" reads it and decides review, so nothing is blocked.',
    ),
    "allowed_above": (
        [OFFICE, BLOCKED],
        "sometimes",
        'Rule "Office" is above rule "Blocked" and may decide allow first.',
    ),
    "read_beside_other_terms": (
        [BLOCKED | {"condition": f'"bot" in groups || {ASKED} || tag == "test"'}],
        "always",
        "",
    ),
    "with_more_terms": (
        [BLOCKED | {"condition": f'({ASKED}) && action == "checkout"'}],
        "sometimes",
        'Rule "Blocked" decides block only if the rest of its condition is true.',
    ),
}


class Desk:
    """Somebody at the console of an organization, and its automation."""

    def __init__(self, live: Live) -> None:
        self.live, self.console, self.admin = live, Console(live), Automation(live)

    async def save(self, rules: list[dict[str, Any]], environment: str = "live") -> dict[str, Any]:
        path = f"/rules?environment={environment}"
        revision = (await self.admin("GET", path)).json()["revision"]
        return succeeded(await self.admin("PUT", path, {"revision": revision, "rules": rules}))

    async def effects(self, environment: str = "live") -> dict[str, tuple[str, str]]:
        found = await self.console.seen("/standing", environment=environment)
        return {one["name"]: (one["effect"], one.get("reason", "")) for one in found["lists"]}


@pytest.fixture
async def desk(live: Live) -> Desk:
    return Desk(live)


@pytest.mark.parametrize("name", RULESETS)
async def test_what_is_said_of_a_block_is_what_the_next_request_comes_to(desk: Desk, name: str):
    """`always` is always blocked, `never` is not; what is in between depends on the event."""
    rules, effect, reason = RULESETS[name]
    await desk.save(rules)
    assert (await desk.effects())["blocked_visitors"] == (effect, reason)
    public = desk.live.issue(environment="production")[1]
    visitor_id = (await visit(desk.live, public)).json()["visitor_id"]
    lists = (await desk.admin("GET", "/lists")).json()["lists"]
    list_id = next(one["id"] for one in lists if one["name"] == "blocked_visitors")
    added = await desk.admin("POST", f"/lists/{list_id}/entries", {"entries": [{"value": visitor_id}]})
    assert added.status_code == 200, added.text
    decided = (await visit(desk.live, public)).json().get("decision", {}).get("action")
    assert (decided == "block") == (effect == "always")


async def test_a_new_organization_is_told_what_its_first_rules_do(desk: Desk):
    """The first of the two rules always decides, the other one unless it does."""
    first, second = FIRST.rules
    for environment in ("live", "test"):
        found = await desk.effects(environment)
        assert list(found) == [
            *("blocked_visitors", "blocked_accounts", "blocked_addresses"),
            *("trusted_visitors", "trusted_accounts", "trusted_addresses"),
        ]
        for name, (effect, reason) in found.items():
            if name.startswith(first.name.lower()):
                assert (effect, reason) == ("always", "")
            else:
                expected = f'Rule "{first.name}" is above rule "{second.name}" and may decide {first.action} first.'
                assert (effect, reason) == ("sometimes", expected)


async def test_each_kind_of_environment_has_rules_of_its_own(desk: Desk):
    await desk.save([BOTS], "test")
    assert (await desk.effects("test"))["trusted_accounts"] == (
        "never",
        "No active rule reads it, so nothing is trusted.",
    )
    assert (await desk.effects("live"))["trusted_accounts"][0] != "never"


async def test_the_entries_of_a_value_are_told_with_the_lists(desk: Desk):
    """In its one spelling; what has expired is none."""
    lists = {one["name"]: one["id"] for one in (await desk.admin("GET", "/lists")).json()["lists"]}
    soon = timestamp(desk.live.clock.now_ms + 1000)
    for name, entry in (
        ("blocked_addresses", {"value": "198.51.100.0/24", "note": "a note"}),
        ("trusted_addresses", {"value": "198.51.100.0/24", "expires_at": soon}),
        ("blocked_accounts", {"value": "198.51.100.0/24"}),
    ):
        await desk.admin("POST", f"/lists/{lists[name]}/entries", {"entries": [entry]})

    async def entries(**query: str) -> dict[str, Any]:
        found = (await desk.console.seen("/standing", **query))["lists"]
        assert {one["name"]: one["id"] for one in found}.items() <= lists.items()
        return {one["name"]: one["entry"]["note"] for one in found if "entry" in one}

    assert await entries(kind="address", value="198.51.100.7/24") == {
        "blocked_addresses": "a note",
        "trusted_addresses": "",
    }
    assert await entries(kind="account", value="198.51.100.0/24") == {"blocked_accounts": ""}
    assert len(await entries(value="198.51.100.0/24")) == 3
    assert await entries(kind="visitor", value="198.51.100.0/24") == await entries() == {}
    desk.live.clock.now_ms += 1000
    assert await entries(kind="address", value="198.51.100.0/24") == {"blocked_addresses": "a note"}
    assert_invalid(await desk.console.get("/standing", kind="country"), "kind", "invalid_value", "query")


@pytest.mark.parametrize(
    ("rules", "warning"),
    [
        ([], f"rules[] is empty: {NO_READER}"),
        ([BOTS], f"rules[0] is the only rule: {NO_READER}"),
        ([BOTS, BLOCKED | {"mode": "shadow"}, OFFICE], f"rules[0] to rules[2]: {NO_READER}"),
        ([BOTS, BLOCKED], None),
    ],
)
async def test_a_save_and_a_preview_warn_of_rules_that_ask_no_blocked_list(
    desk: Desk, rules: list[dict[str, Any]], warning: str | None
):
    saved = await desk.save(rules)
    assert saved.get("warnings") == (None if warning is None else [warning])
    preview = await desk.admin("POST", "/rules/preview", {"rules": rules})
    assert preview.json().get("warnings") == saved.get("warnings")
    assert "warnings" not in (await desk.admin("GET", "/rules")).json()


@pytest.mark.slow(0.2)
async def test_an_import_into_a_list_that_no_rule_reads_says_so(desk: Desk, tmp_path: Path):
    file = tmp_path / "in.csv"
    file.write_text("value\nuser-1\n")
    await desk.save([BOTS], "test")
    for name, warned in (("blocked_accounts", "blocked"), ("trusted_accounts", "trusted")):
        ran = await run_beside("list", "import", desk.live.organization.id, name, str(file), *desk.live.options)
        assert ran.status == 0
        assert ran.err == f"Warning: {name} (test): No active rule reads it, so nothing is {warned}.\n"


@pytest.mark.slow(0.2)
async def test_the_command_line_warns_and_saves(desk: Desk, tmp_path: Path):
    file = tmp_path / "rules.json"
    for revision, (rules, warnings) in enumerate(
        [([BOTS], f"Warning: rules[0] is the only rule: {NO_READER}.\n"), ([BLOCKED], "")]
    ):
        file.write_text(json.dumps({"revision": revision, "rules": rules}))
        ran = await run_beside("rule", "set", desk.live.organization.id, str(file), *desk.live.options)
        assert (ran.status, ran.err) == (0, warnings)
        assert f"Revision {revision + 1} is in force" in ran.out
