"""Ways through the console in a headless Chromium against a real `svc dev`: back into a long list, to the environment
of what is shown, on from a search; and whether the longest texts fit, in the colors of a system and on paper as well.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.support.chromium import browser
from tests.support.live import report, succeeded
from tests.web.test_console import VISITOR_ADDRESS, Console, console

pytestmark = pytest.mark.slow(12)
__all__ = ["console"]
EVENTS = 59
ADDRESS = f"{'m' * 64}@{'d' * 60}.{'e' * 60}.example"
RULE = {"name": "R" * 60, "condition": f'action == "{"a" * 64}"', "action": "review"}
LONG = {"account_id": "W" * 128, "action": "a" * 64, "tag": "T" * 128}


@pytest.fixture(scope="module")
def ways(console: Console) -> dict[str, Any]:
    made = console.command("org", "create", "Ways", "--credit-usd", "0", "--rate-limit", "0")["organization_id"]
    keys = {
        environment: console.command("key", "issue", made, "--kind", "secret", "--environment", environment)["secret"]
        for environment in ("development", "staging")
    }

    def identify(environment: str, device: int, **about: str) -> dict[str, Any]:
        headers = {
            "x-api-key": keys[environment],
            "x-svc-visitor-ip": VISITOR_ADDRESS,
            "x-svc-visitor-user-agent": "Mozilla/5.0 HeadlessChrome/137.0.0.0",
        }
        body = {"sdk": {"platform": "web"}, "signals": report(device), **about}
        return succeeded(httpx.post(f"{console.service}/api/v1/identify", headers=headers, json=body))

    management = console.command("key", "issue", made, "--kind", "management")["secret"]
    saved = httpx.put(
        f"{console.service}/api/v1/management/organizations/{made}/rules?environment=test",
        headers={"x-api-key": management},
        json={"revision": 0, "rules": [RULE]},
    )
    assert saved.is_success, saved.text
    elsewhere = identify("staging", 1, account_id="user-1", tag="order 1")["request_id"]
    for number in range(EVENTS):
        identify("development", 1, account_id=f"user-{number}")
    long = identify("development", 2, **LONG)
    console.command(
        "member", "invite", made, ADDRESS, "--name", "N" * 100, "--role", "viewer", "--url", console.service
    )
    link = console.command("console", "link", made, "--url", console.service)["url"]
    configuration = {"service": console.service, "link": link, "long": long, "elsewhere": elsewhere}
    return json.loads(browser().run("ways.mjs", json.dumps(configuration)))


def test_back_goes_on_in_the_list_where_it_was_left(ways: dict[str, Any]):
    top, followed = ways["left"]
    assert top > 0
    assert ways["top"] == 0
    assert ways["returned"] == [pytest.approx(top, abs=1), followed], (
        "the second page, too, and the row that was opened"
    )


def test_a_list_that_is_opened_anew_begins_at_its_top_with_one_page(ways: dict[str, Any]):
    assert ways["anew"] == 0


def test_the_links_of_an_event_lead_to_its_environment_whichever_one_the_address_names(ways: dict[str, Any]):
    assert any(link.startswith("#/accounts/user-1?") for link in ways["elsewhere"])
    assert [link for link in ways["elsewhere"] if "environment=staging" not in link] == []


def test_a_search_that_finds_a_few_or_nothing_leads_to_the_whole_list(ways: dict[str, Any]):
    assert len([link for link in ways["search"] if link.startswith("#/accounts/user-")]) < EVENTS
    assert "#/accounts?environment=development&q=user-" in ways["search"]
    assert "#/accounts?environment=development&q=nobody" in ways["nothing"]


def test_the_longest_texts_fit_their_windows(ways: dict[str, Any]):
    assert [name for name, wide in ways["overflows"].items() if wide] == []
    assert len(ways["overflows"]) == 10


def test_counts_have_their_windows_at_any_width(ways: dict[str, Any]):
    assert ways["heads"] == [["Last hour", "Day", "30 days"]] * 2


def test_a_key_that_is_held_down_removes_nothing(ways: dict[str, Any]):
    assert ways["members"] == 1
    assert ways["dialog"] == [0, "Cancel"], "the dialog breaks the longest address"


def test_what_a_color_alone_says_stays_in_the_colors_of_a_system_and_on_paper(ways: dict[str, Any]):
    segment, background = ways["forced"]
    assert segment != background
    assert ways["paper"] == "exact"


def test_the_walk_violates_no_policy(ways: dict[str, Any]):
    assert (ways["violations"], ways["outside"]) == ([], [])
    assert {entry.split()[0] for entry in ways["failed"]} <= {"401", "429"}, (
        "before the sign-in, and faster than a person"
    )
    assert set(ways["outlines"]) <= {"solid"}
