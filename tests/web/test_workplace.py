"""The console as a workplace, in a headless Chromium against a real `svc dev`: the walk of a developer who adds a rule,
and of an analyst who follows it up; by keyboard alone.
"""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest

from tests.support.chromium import browser
from tests.support.live import report, succeeded
from tests.support.proofs import BrowserKey
from tests.web.test_console import Console, console

pytestmark = pytest.mark.slow(30)
__all__ = ["console"]
LOCAL = "http://localhost:3000"


@pytest.fixture(scope="module")
def walk(console: Console) -> dict[str, Any]:
    made = console.command("org", "create", "New", "--credit-usd", "0")["organization_id"]
    of_development = ("--environment", "development")
    public = console.command("key", "issue", made, "--kind", "public", *of_development)["secret"]
    secret = console.command("key", "issue", made, "--kind", "secret", *of_development)["secret"]
    link = console.command("console", "link", made, "--url", console.service)["url"]
    configuration = {
        "fresh": {"link": link, "secret": secret},
        "service": console.service,
        "secret": console.keys["secret"],
        "management": console.keys["management"],
    }
    signed = [_signed(console, nonce) for nonce in ("a", "b")]
    seen = json.loads(browser().run("workplace.mjs", json.dumps(configuration)))
    return {**seen, "public": public, "signed": [*signed, _signed(console, "c")]}


def _signed(console: Console, nonce: str) -> dict[str, Any]:
    """The response to a browser that signs."""
    once = {"nonce": f"nonce-{nonce}-0123", "collected_at": int(1000 * time.time())}
    signals = BrowserKey().signed({**report(1), "client_token": "0" * 32, **once}, LOCAL)
    return succeeded(
        httpx.post(
            f"{console.service}/api/v1/identify",
            content=b'{"sdk":{"platform":"web"},"signals":%b}' % signals,
            headers={"x-api-key": console.keys["public"], "origin": LOCAL, "content-type": "application/json"},
        )
    )


def test_an_organization_without_events_sees_its_snippet_and_then_its_first_event(walk: dict[str, Any]):
    assert f'load({{ apiKey: "{walk["public"]}" }})' in walk["first"], "the whole key"
    assert "user-1" in walk["arrived"]
    assert "Identify a visitor" not in walk["arrived"]


def test_an_error_of_a_condition_is_shown_where_it_is(walk: dict[str, Any]):
    assert walk["fault"].startswith("Line 1, column 15: there is no variable or function 'visits'")
    assert walk["caret"] == 14


def test_names_are_completed(walk: dict[str, Any]):
    assert walk["condition"] == 'velocity.visitor.accounts["30d"] >= 2'


def test_a_rule_is_tried_on_past_events_before_it_is_saved(walk: dict[str, Any]):
    assert "in staging and development" in walk["preview"]
    assert "Second account" in walk["preview"]
    assert all(text in walk["preview"] for text in ("user-2", "sign_up", "low")), "examples are told apart"


def test_a_shadow_is_shown_and_decides_nothing(walk: dict[str, Any]):
    assert "No rule matched, so there is no decision." in walk["shadow"]
    assert "Second account" in walk["shadow"]


def test_an_active_rule_decides_and_the_event_says_why(walk: dict[str, Any]):
    assert walk["decided"]["decision"]["rule"] == "Second account"
    assert 'velocity.visitor.accounts["30d"] >= 2 here 4' in " ".join(walk["event"].split())


def test_what_a_rule_matched_is_a_list_in_both_modes_and_its_address_a_link(walk: dict[str, Any]):
    matches, rule_id = walk["matches"], walk["decided"]["decision"]["rule_id"]
    assert matches["decided"] == [walk["decided"]["request_id"]]
    assert matches["shadowed"] == [walk["shadowed"]]
    assert len(matches["all"]) > 2
    assert f"rule={rule_id}" in matches["address"]
    assert "environment=development" in matches["address"]


def test_the_history_says_what_was_changed(walk: dict[str, Any]):
    newest, second, first = walk["history"]
    assert "Revision 2" in newest
    assert "mode: shadow active" in newest.replace("\n", " ")
    assert "Second account added" in second
    assert "with which every organization starts" in first


def test_a_visitor_is_blocked_at_once_and_undone(walk: dict[str, Any]):
    assert walk["blocked"]["rule"] == "Blocked"
    assert walk["undone"]["rule"] == "Second account"
    assert "user-4" in walk["visitor"]


def test_a_block_that_no_rule_reads_is_not_called_one(walk: dict[str, Any]):
    """The rules screen warns of it before and after the save, and the page of a visitor says why nothing is blocked."""
    warning = "“\u2068Second account\u2069” is the only rule: no active rule reads blocked_visitors"
    assert warning in walk["warned"]
    assert any(warning in note for note in walk["savedWith"])
    unread = walk["unread"]
    assert "on blocked_visitors" in unread["standing"]
    assert "On the list blocked_visitors. No active rule reads it, so nothing is blocked. Rules" in unread["standing"]
    assert "from the next request on" not in unread["standing"]
    assert unread["decision"]["rule"] == "Second account"


def test_an_account_shows_what_it_is_linked_to(walk: dict[str, Any]):
    assert "2 visitors and 5 accounts, up to 2 steps away." in walk["account"]
    assert walk["nodes"] == 7


def test_chosen_events_go_into_a_list_which_decides_from_then_on(walk: dict[str, Any]):
    assert walk["refused"]["rule"] == "Blocked"
    assert walk["saved"] == ["Suspects"]
    assert walk["exported"] == 1 + 3 + 1, "a header, the two events and the one since, and the end"


def test_a_file_is_shown_before_its_entries_are_added(walk: dict[str, Any]):
    assert "'user-8;chargeback' has a semicolon" in walk["unclear"]
    assert "2 entries, separated by semicolons, with a header." in walk["read"]
    assert "chargeback" in walk["read"]
    assert "user-8 chargeback" in walk["imported"]


def test_reviews_are_worked_off_by_keyboard_and_the_next_one_opens_by_itself(walk: dict[str, Any]):
    assert "Second account" in walk["queue"]
    assert "1 of " in walk["queue"]
    assert "No open review in development" in walk["left"]
    assert "2 labeled" in " ".join(walk["performance"].split())
    assert "1 fraud" in " ".join(walk["performance"].split())


def test_an_event_is_labeled_and_a_visitor_noted(walk: dict[str, Any]):
    assert walk["decided"]["request_id"] in walk["labeled"]
    assert "Called: it is a farm." in walk["note"]


def test_too_few_labels_suggest_no_weights_and_the_screen_says_so(walk: dict[str, Any]):
    assert "A suggestion needs 50 of each" in walk["suggestion"]
    assert "of staging and development on web" in walk["suggestion"]
    assert "Try these" not in walk["suggestion"]


def test_a_member_is_invited_by_a_link_that_is_shown_once(walk: dict[str, Any]):
    assert "/console#svc_ci_" in walk["invitation"]
    assert "ada@shop.example" in walk["members"]
    assert "svc_ci_" not in walk["members"]


def test_keys_of_browsers_are_counted_and_then_revoked(walk: dict[str, Any]):
    """Decisions 18.2: after a script incident, by an admin."""
    assert "Revoke 1 key of 1 visitor?" in walk["counted"]
    assert "The visitors stay" in walk["counted"]
    assert [answer["proven"] for answer in walk["signed"]] == [False, True, False]
    assert len({answer["visitor_id"] for answer in walk["signed"]}) == 1
    assert walk["signed"][-1]["client_token_renew"] is True


def test_the_walk_violates_no_policy_and_shows_every_focus(walk: dict[str, Any]):
    assert (walk["violations"], walk["outside"]) == ([], [])
    statuses = {entry.split()[0] for entry in walk["failed"]}
    assert statuses <= {"401", "422", "429"}, "signed out, a wrong condition, and what is sent again a second later"
    assert [line for line in walk["console"] if not line.startswith("Failed to load resource")] == []
    assert set(walk["outlines"]) == {"solid"}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "browserkeys",
            "first",
            "rules",
            "rule",
            "event",
            "matches",
            "visitor",
            "warned",
            "unread",
            "account",
            "lists",
            "list",
            "import",
        ),
        *("reviews", "performance", "weights", "invitation"),
    ],
)
def test_a_screen_has_no_finding_above_minor(walk: dict[str, Any], name: str):
    found = walk["looks"][name]
    assert {one["id"]: one["nodes"] for one in found["axe"] if one["impact"] != "minor"} == {}
    assert found["overflows"] == []
