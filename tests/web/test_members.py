"""Two admins in headless Chromium against a real `svc dev`: what they change at once, what a member reads whose
password is refused, where the keyboard is while it sets up how it signs in, and how it names one of its organizations.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.chromium import browser
from tests.web.test_console import Console, console

pytestmark = pytest.mark.slow(15)
__all__ = ["console"]

TEAM = "Night shift"


@pytest.fixture(scope="module")
def members(console: Console) -> dict[str, Any]:
    """Ada and Bob are admins of one organization, and Ada is a viewer of another one."""

    def invited(organization_id: str, name: str, role: str) -> str:
        arguments = ("member", "invite", organization_id, f"{name.lower()}@shop.example", "--name", name)
        return console.command(*arguments, "--role", role, "--url", console.service)["invitation_url"]

    team, other = (console.command("org", "create", name)["organization_id"] for name in (TEAM, "Other"))
    urls = {"ada": invited(team, "Ada", "admin"), "bob": invited(team, "Bob", "admin")}
    configuration = {"service": console.service, "team": TEAM, "elsewhere": invited(other, "Ada", "viewer"), **urls}
    return json.loads(browser().run("members.mjs", json.dumps(configuration)))


def test_what_a_colleague_saved_since_the_screen_was_opened_stays(members: dict[str, Any]):
    assert members["origins"] == ["https://new.example", "https://mine.example"], (
        "a was taken out by one, b by the other"
    )
    thresholds = members["thresholds"]
    assert (thresholds["multi_account"], thresholds["account_sharing"]) == (4, 9)
    assert members["endpoint"] == {"description": "Slack", "events": ["visitor.suspect"], "filter": "score > 20"}


def test_a_password_that_is_refused_says_why(members: dict[str, Any]):
    assert "your own address or name. Choose another." in members["refused"]


def test_the_audit_screen_tells_members_apart_by_their_ids(members: dict[str, Any]):
    for name, member_id in members["ids"]:
        assert any(f"{name} {member_id}" in by for by in members["by"])


def test_the_keyboard_is_where_one_goes_on(members: dict[str, Any]):
    expected = {"password": "password", "cancel": "SUMMARY", "codes": "password", "code": "code"}
    assert (members["focus"], members["stale"]) == (expected, 0), "and no error of another form is shown"


def test_a_member_of_several_organizations_names_one(members: dict[str, Any]):
    assert TEAM in members["entered"]
    assert "totp" not in members["sent"], "what the audit log says of a sign-in without a code"


@pytest.mark.parametrize("name", ["codes", "signIn"])
def test_a_screen_has_no_finding_above_minor(members: dict[str, Any], name: str):
    assert {one["id"]: one["nodes"] for one in members["looks"][name] if one["impact"] != "minor"} == {}
