"""A team in headless Chromium against a real `svc dev`: what an analyst may save and what it proposes, filters that all
of an organization have, and a ring of accounts that is blocked, labeled and listed as a whole.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.chromium import browser
from tests.web.test_console import VISITOR_ADDRESS, Console, console

pytestmark = pytest.mark.slow(20)
__all__ = ["console"]

SAMPLE = json.loads((Path(__file__).parents[2] / "svc/identify/samples/first_visit.json").read_bytes())


def identify(console: Console, secret: str, account: str, device: int) -> None:
    headers = {
        "x-api-key": secret,
        "x-svc-visitor-ip": VISITOR_ADDRESS,
        "x-svc-visitor-user-agent": SAMPLE["user_agent"],
        "x-svc-visitor-origin": "https://shop.example",
    }
    signals = json.loads(json.dumps(SAMPLE["signals"]))
    signals["client_token"] = f"the browser {device}"
    for image in ("geometry", "text"):
        signals["components"]["canvas"]["value"][image] += f"device {device}"
    signals["components"]["audio"]["value"] += device
    signals["components"]["screenResolution"]["value"] = [1200 + 80 * device, 800]
    signals["components"]["hardwareConcurrency"]["value"] = 2 + 2 * device
    body = {
        "sdk": {"platform": "web", "version": "0.1.0"},
        "signals": signals,
        "account_id": account,
        "action": "sign_up",
    }
    response = httpx.post(f"{console.service}/api/v1/identify", headers=headers, json=body)
    assert response.is_success, response.text


@pytest.fixture(scope="module")
def team(console: Console) -> dict[str, Any]:
    """Twelve accounts on three devices, each of which shares one with the next."""
    made = console.command("org", "create", "Team", "--credit-usd", "0", "--rate-limit", "0")["organization_id"]
    secret = console.command("key", "issue", made, "--kind", "secret", "--environment", "development")["secret"]
    for device in range(3):
        for number in range(4 * device, 4 * device + 5):
            identify(console, secret, f"ring-{number % 12}", device + 1)
    urls = {
        role: console.command(
            "member", "invite", made, f"{name}@shop.example", "--name", name, "--role", role, "--url", console.service
        )["invitation_url"]
        for role, name in (("analyst", "Ada"), ("admin", "Bob"))
    }
    configuration = {"service": console.service, "account": "ring-0", **urls}
    return json.loads(browser().run("team.mjs", json.dumps(configuration)))


def test_escape_closes_what_is_on_top_and_a_draft_is_not_dropped_unasked(team: dict[str, Any]):
    assert team["kept"] == ["Ring", "velo"]


def test_an_analyst_saves_a_rule_in_shadow_mode_and_proposes_to_activate_it(team: dict[str, Any]):
    assert team["shadow"][-1] == ["Ring", "shadow"]
    assert "You may save rules in the modes shadow and off" in team["note"]
    assert "Propose …" in team["offered"]
    assert "Save" not in team["offered"]


def test_nothing_is_offered_that_is_refused(team: dict[str, Any]):
    assert team["restore"]
    assert team["makes"]


def test_a_role_that_was_changed_is_that_of_an_open_screen(team: dict[str, Any]):
    assert not team["grants"], "once she comes back to it"
    assert "does not allow this" in team["refused"]
    assert team["takes"], "once it is refused"


def test_an_admin_sees_the_proposal_first_and_saves_it(team: dict[str, Any]):
    assert team["first"] == "A proposal"
    assert "Ada" in team["proposal"]
    assert "Quiet for a week." in team["proposal"]
    assert team["active"][-1] == ["Ring", "active"]
    assert team["left"] == []


def test_the_history_names_who_saved(team: dict[str, Any]):
    newest, second, _ = team["names"]
    assert "by Bob" in newest
    assert "by Ada" in second


def test_filters_are_everybodys_and_have_an_address(team: dict[str, Any]):
    (view,) = team["views"]
    assert (view["name"], view["is_shared"]) == ("Sign-ups", True)
    assert view["query"] == {"window": "7d", "action": "sign_up"}
    assert "action=sign_up" in team["arrived"]
    assert "window=7d" in team["arrived"]
    assert "15 events" in team["total"]


def test_a_ring_is_blocked_labeled_and_listed_as_a_whole_and_undone(team: dict[str, Any]):
    assert team["nodes"] == 15
    assert Counter(team["blocked"]) == {"blocked_visitors": 3, "blocked_accounts": 12}
    assert Counter(team["listed"]) == {"trusted_accounts": 12}
    assert team["unblocked"] == team["unlisted"] == []
    assert (team["labeled"], team["unlabeled"]) == (15, 0)


@pytest.mark.parametrize("name", ["asks", "saving", "saved", "ring", "blocking", "proposal"])
def test_a_screen_has_no_finding_above_minor(team: dict[str, Any], name: str):
    found = team["looks"][name]
    assert {one["id"]: one["nodes"] for one in found["axe"] if one["impact"] != "minor"} == {}
    assert found["overflows"] == []


def test_the_walk_violates_no_policy(team: dict[str, Any]):
    assert (team["violations"], team["outside"]) == ([], [])
    assert {entry.split()[0] for entry in team["failed"]} <= {"401", "403", "422", "429"}
