"""An analyst's morning in a headless Chromium against a real `svc dev`, by keyboard alone: sign in as a member, a queue
of thirty reviews, a label, an export, a note, a blocked network.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.chromium import browser
from tests.web.test_console import VISITOR_ADDRESS, Console, console

pytestmark = pytest.mark.slow(12)
__all__ = ["console"]

ACCOUNTS = [f"user-{number}" for number in range(30)]
FRAUD = ACCOUNTS[::3]
NOTED = ACCOUNTS[::5]
NETWORK = "81.2.69.0/24"
EMAIL = "ada@shop.example"
SAMPLE = json.loads((Path(__file__).parents[2] / "svc/identify/samples/first_visit.json").read_bytes())
RULE = {"name": "New", "condition": 'action == "sign_up"', "action": "review"}


class Shop:
    """An organization of its own, whose rule sends every sign-up to a person."""

    def __init__(self, console: Console) -> None:
        self._console = console
        options = ("--credit-usd", "0", "--rate-limit", "0")
        self.id = console.command("org", "create", "Morning", *options)["organization_id"]
        self._secret = self._key("secret", "--environment", "development")
        self._management = self._key("management")
        kept = ("id", "name", "condition", "action")
        first = self.manage("GET", "rules?environment=test")["rules"]
        rules = [*({field: rule[field] for field in kept} for rule in first), RULE]
        self.manage("PUT", "rules?environment=test", {"revision": 0, "rules": rules})

    def _key(self, kind: str, *options: str) -> str:
        return self._console.command("key", "issue", self.id, "--kind", kind, *options)["secret"]

    def manage(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        url = f"{self._console.service}/api/v1/management/organizations/{self.id}/{path}"
        response = httpx.request(method, url, headers={"x-api-key": self._management}, json=body)
        assert response.is_success, response.text
        return response.json()

    def identify(self, account: str, action: str, user_agent: str | None = None) -> dict[str, Any]:
        headers = {
            "x-api-key": self._secret,
            "x-svc-visitor-ip": VISITOR_ADDRESS,
            "x-svc-visitor-user-agent": user_agent or SAMPLE["user_agent"],
            "x-svc-visitor-origin": "https://shop.example",
        }
        body = {
            "sdk": {"platform": "web", "version": "0.1.0"},
            "signals": {**SAMPLE["signals"], "client_token": f"the browser of {account}"},
            "account_id": account,
            "action": action,
        }
        response = httpx.post(f"{self._console.service}/api/v1/identify", headers=headers, json=body)
        assert response.is_success, response.text
        return response.json()


@pytest.fixture(scope="module")
def shop(console: Console) -> Shop:
    made = Shop(console)
    for account in ACCOUNTS:
        made.identify(account, "sign_up")
    made.identify("user-late", "log_in")
    return made


@pytest.fixture(scope="module")
def morning(console: Console, shop: Shop) -> dict[str, Any]:
    options = ("--name", "Ada", "--role", "analyst", "--url", console.service)
    invited = console.command("member", "invite", shop.id, EMAIL, *options)
    configuration = {
        "service": console.service,
        "invitation": invited["invitation_url"],
        "email": EMAIL,
        "fraud": FRAUD,
        "noted": NOTED,
        "network": NETWORK,
    }
    return json.loads(browser().run("morning.mjs", json.dumps(configuration)))


@pytest.fixture(scope="module")
def closed(shop: Shop, morning: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Reviews by their accounts."""
    assert morning["open"] == len(ACCOUNTS)
    return {review["account_id"]: review for review in morning["first"]}


def test_thirty_reviews_are_closed_as_they_were_judged_by_their_member(closed: dict[str, dict[str, Any]]):
    labels = {account: review["label"] for account, review in closed.items()}
    assert labels == {account: "fraud" if account in FRAUD else "legitimate" for account in ACCOUNTS}
    (member,) = {review["closed_by"] for review in closed.values()}
    assert member.startswith("mem_")


def test_a_note_that_is_typed_first_is_kept_with_its_review_alone(closed: dict[str, dict[str, Any]]):
    notes = {account: review["note"] for account, review in closed.items() if review.get("note")}
    assert notes == {account: f"fox: {account} called" for account in NOTED}


def test_a_review_takes_one_key_and_a_note_two_more(morning: dict[str, Any]):
    assert morning["keys"] == len(ACCOUNTS) + 2 * len(NOTED)


def test_keys_that_are_typed_without_waiting_are_taken_back_and_judge_again(morning: dict[str, Any]):
    """Three undos open the last three again, in their order; `fff` closes each of them, and a reason has a key."""
    last = {review["id"] for review in morning["first"][:3]}
    assert {review["id"] for review in morning["undone"]} == last
    assert all(review["state"] == "open" and review["reopened_at"] for review in morning["undone"])
    assert {review["label"] for review in morning["typed"] if review["id"] in last} == {"fraud"}
    assert len(morning["typed"]) == len(ACCOUNTS)
    judged = {review["id"]: (review["label"], review.get("label_reason")) for review in morning["reasons"]}
    oldest, second, newest = (review["id"] for review in reversed(morning["undone"]))
    assert judged[second] == ("legitimate", "chargeback")
    assert sorted([judged[oldest], judged[newest]], key=str) == [("fraud", "account_takeover"), ("fraud", None)]


def test_the_next_thirty_are_opened_again_and_judged_by_thirty_keys_at_once(morning: dict[str, Any]):
    thirty = morning["thirty"]
    assert len(thirty["open"]) == len(ACCOUNTS)
    labels = {review["id"]: review["label"] for review in thirty["closed"]}
    assert [labels[review_id] for review_id in thirty["open"]] == ["fraud", "legitimate"] * (len(ACCOUNTS) // 2)
    assert morning["leftQueued"] == "0"


def test_a_block_and_an_assignment_are_undone_by_a_key(morning: dict[str, Any]):
    (review,) = morning["taken"]
    assert morning["blockedWhile"] == [review["visitor_id"]]
    assert morning["blockedAfter"] == []
    assert review["assignee"].startswith("mem_")
    assert (morning["given"]["assignee"], morning["given"]["label"]) == (None, "legitimate")


def test_closed_reviews_and_the_queue_have_no_finding(morning: dict[str, Any]):
    for name in ("closedLook", "queueLook"):
        assert {one["id"]: one["nodes"] for one in morning[name] if one["impact"] != "minor"} == {}


def test_events_are_exported_and_a_visitor_is_noted(morning: dict[str, Any]):
    assert morning["exported"].startswith("text/csv")
    assert "Called: it is a farm." in morning["note"]
    assert "by you" in morning["note"]


@pytest.mark.usefixtures("morning")
def test_the_network_is_blocked_from_the_next_request_on(shop: Shop):
    decision = shop.identify("user-next", "log_in")["decision"]
    assert (decision["action"], decision["rule"]) == ("block", "Blocked")


def test_the_morning_violates_no_policy_and_shows_every_focus(morning: dict[str, Any]):
    assert (morning["violations"], morning["outside"]) == ([], [])
    assert {entry.split()[0] for entry in morning["failed"]} <= {"401", "429"}, "signed out, and faster than a person"
    assert set(morning["outlines"]) == {"solid"}
    assert {one["id"]: one["nodes"] for one in morning["axe"] if one["impact"] != "minor"} == {}
