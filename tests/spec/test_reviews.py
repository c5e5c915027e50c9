"""Decisions 14.4 and 14.5: reviews and notes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from svc.features.reviews.reviews import MAX_NOTIFIED
from svc.features.reviews.tables import NOTES, OPEN_CASES, OPEN_REVIEWS, REVIEWS, SUBJECT_REVIEWS
from svc.features.webhooks.tables import WEBHOOK_EVENTS
from svc.http import listing
from svc.kernel.store.steps import STEP_ROWS
from tests.spec.automation import Automation
from tests.spec.people import add_member, came_in
from tests.spec.responses import act, assert_error, assert_invalid
from tests.spec.subscriber import Subscriber
from tests.spec.test_accounts import event_of
from tests.spec.test_labels import after, faults
from tests.support.live import Live, succeeded
from tests.support.serving_postgresql import at_rest

ALL = [{"name": "All", "condition": "true", "action": "review"}]
NOBODY = "mem_" + "0" * 20


class Shop:
    """An organization whose rule `All` reviews everything."""

    def __init__(self, live: Live) -> None:
        self.live, self.admin = live, Automation(live)
        self.public, self.secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]

    async def review_all(self) -> None:
        assert (await self.admin("PUT", "/rules", {"revision": 0, "rules": ALL})).status_code == 200

    async def visit(self, account: str | None = None, device: int = 1) -> dict[str, Any]:
        """A second later, so that reviews are in order."""
        self.live.clock.advance(seconds=1)
        return await act(self.live, self.public, account, device)

    async def reviews(self, query: str = "") -> list[dict[str, Any]]:
        return succeeded(await self.admin("GET", f"/reviews{query}"))["reviews"]

    async def open(self, answer: dict[str, Any]) -> httpx.Response:
        return await self.admin("POST", "/reviews", {"request_id": answer["request_id"]})

    async def close(self, review: dict[str, Any], **fields: Any) -> httpx.Response:
        return await self.admin("POST", f"/reviews/{review['id']}/close", fields)

    async def reopen(self, review: dict[str, Any]) -> httpx.Response:
        return await self.admin("POST", f"/reviews/{review['id']}/reopen")


@pytest.fixture
async def shop(live: Live) -> Shop:
    return Shop(live)


# 14.4: opened by a rule


async def test_a_decision_review_opens_one_review_for_each_visitor_and_account(shop: Shop):
    await shop.review_all()
    first = await shop.visit("a")
    await shop.visit("a")
    other_account = await shop.visit("b")
    without = await shop.visit()
    await shop.visit()
    other = await shop.visit("a", device=2)
    found = await shop.reviews()
    assert [each["request_id"] for each in found] == [
        answer["request_id"] for answer in (other, without, other_account, first)
    ]
    rule = (await shop.admin("GET", "/rules")).json()["rules"][0]
    oldest = found[-1]
    assert oldest == {
        "id": oldest["id"],
        "state": "open",
        "environment": "production",
        "request_id": first["request_id"],
        "visitor_id": first["visitor_id"],
        "account_id": "a",
        "suspect_score": first["suspect_score"],
        "suspect_level": first["suspect_level"],
        "rule_id": rule["id"],
        "rule": "All",
        "opened_at": "2026-01-01T00:00:01.000Z",
        "assignee": None,
    }
    assert "account_id" not in found[1]


async def test_other_decisions_and_shadows_open_none_and_environments_are_apart(shop: Shop):
    rules = [{"name": "Shadow", "condition": "true", "action": "review", "mode": "shadow"}]
    rules.append({"name": "Block", "condition": "true", "action": "block"})
    await shop.admin("PUT", "/rules", {"revision": 0, "rules": rules})
    await shop.admin("PUT", "/rules?environment=test", {"revision": 0, "rules": ALL})
    await shop.visit("a")
    assert await shop.reviews() == []
    staging, development = (shop.live.issue(environment=name)[1] for name in ("staging", "development"))
    answer = await act(shop.live, staging, "a")
    await act(shop.live, development, "a")
    assert [each["request_id"] for each in await shop.reviews()] == [answer["request_id"]]


# 14.4: by hand


async def test_a_review_is_opened_by_hand_or_the_open_one_is_returned(shop: Shop):
    answer = await shop.visit("a")
    opened = await shop.open(answer)
    assert opened.status_code == 201
    review = opened.json()["review"]
    assert {"rule", "rule_id"} & set(review) == set()
    assert (await shop.admin("GET", f"/reviews/{review['id']}")).json() == opened.json()
    again = await shop.open(await shop.visit("a"))
    assert (again.status_code, again.json()) == (200, opened.json())
    assert (await shop.open(await shop.visit("b"))).status_code == 201
    assert (await shop.close(review, label="legitimate")).status_code == 200
    third = await shop.open(answer)
    assert third.status_code == 201
    assert third.json()["review"]["id"] != review["id"]


async def test_a_review_of_no_readable_event_is_refused(shop: Shop):
    answer = await shop.visit("a")
    before = shop.live.contents()
    unknown = {"request_id": "019b76da-a800-7000-8000-000000000000"}
    assert_error(await shop.open(unknown), 404, "event_not_found")
    assert_invalid(await shop.open({"request_id": "x"}), "request_id", "invalid_value")
    assert shop.live.contents() == before
    shop.live.clock.advance(hours=24 * 30, seconds=1)
    assert_error(await shop.open(answer), 404, "event_not_found")
    for path in ("/reviews/rev_" + "0" * 20, "/reviews/x"):
        assert_error(await shop.admin("GET", path), 404, "not_found")


# 14.4: list, assign, close


@pytest.mark.slow(0.2)
async def test_reviews_are_listed_by_state_and_assignee_in_pages(shop: Shop):
    answers = [await shop.visit("a", device) for device in range(5)]
    opened: list[dict[str, Any]] = []
    for answer in answers:
        shop.live.clock.advance(seconds=1)
        opened.append((await shop.open(answer)).json()["review"])
    await shop.close(opened[1], label="fraud")
    member = add_member(shop.live, "analyst").id
    assert (await shop.admin("PATCH", f"/reviews/{opened[3]['id']}", {"assignee": member})).status_code == 200
    ids = [review["id"] for review in reversed(opened)]
    for query, expected in (
        ("", ids),
        ("?state=open", [ids[0], ids[1], ids[2], ids[4]]),
        ("?state=closed", [ids[3]]),
        (f"?assignee={member}", [ids[1]]),
        ("?assignee=none", [ids[0], ids[2], ids[3], ids[4]]),
        ("?state=open&assignee=none", [ids[0], ids[2], ids[4]]),
        ("?assignee=nobody", []),
    ):
        assert [each["id"] for each in await shop.reviews(query)] == expected, query
    seen: list[str] = []
    query = "?state=open&limit=3"
    while query:
        page = (await shop.admin("GET", f"/reviews{query}")).json()
        seen += [each["id"] for each in page["reviews"]]
        query = f"?state=open&limit=3&cursor={page['next_cursor']}" if "next_cursor" in page else ""
        cursor = page.get("next_cursor", "")
        if cursor:
            foreign = await shop.admin("GET", f"/reviews?state=closed&cursor={cursor}")
            assert_invalid(foreign, "cursor", "invalid_cursor", "query")
    assert seen == [ids[0], ids[1], ids[2], ids[4]]
    assert_invalid(await shop.admin("GET", "/reviews?state=done"), "state", "invalid_value", "query")


async def test_a_review_is_assigned_to_a_member_and_to_nobody(shop: Shop):
    review = (await shop.open(await shop.visit("a"))).json()["review"]
    path = f"/reviews/{review['id']}"
    for assignee in (add_member(shop.live, "analyst").id, None):
        assigned = await shop.admin("PATCH", path, {"assignee": assignee})
        assert assigned.json() == {"review": {**review, "assignee": assignee}}
    assert (await shop.admin("PATCH", path, {})).json() == {"review": review}
    assert_invalid(await shop.admin("PATCH", path, {"assignee": "Eve"}), "assignee", "invalid_value")


async def test_an_assignee_is_a_member_of_the_organization(shop: Shop):
    review = (await shop.open(await shop.visit("a"))).json()["review"]
    path = f"/reviews/{review['id']}"
    removed, elsewhere = (
        add_member(shop.live, "analyst"),
        add_member(shop.live, organization=shop.live.new_organization()),
    )
    assert (await shop.admin("DELETE", f"/members/{removed.id}")).status_code == 204
    before = shop.live.contents()
    for nobody in (NOBODY, removed.id, elsewhere.id):
        assert_invalid(await shop.admin("PATCH", path, {"assignee": nobody}), "assignee", "invalid_value")
    assert_error(await shop.admin("PATCH", f"/reviews/rev_{'0' * 20}", {"assignee": NOBODY}), 404, "not_found")
    assert shop.live.contents() == before


@pytest.mark.slow(0.2)
async def test_the_console_names_the_members_to_everybody_and_says_who_judges(shop: Shop):
    """15.1: a viewer reads; the addresses are for admins."""
    ada, bob = add_member(shop.live, "analyst", name="Ada"), add_member(shop.live, "developer", name="Bob")
    eve = add_member(shop.live, "analyst", name="Eve", status="suspended")
    browser = await came_in(shop.live, "viewer", name="Vic")
    people = (await browser("GET", "/console/api/people")).json()["people"]
    found = {each["name"]: (each["id"], each["judges"]) for each in people}
    assert found.pop("Vic")[1] is False
    assert found == {"Ada": (ada.id, True), "Bob": (bob.id, True), "Eve": (eve.id, False)}
    assert {key for each in people for key in each} == {"id", "name", "judges"}


async def test_closing_labels_the_event_of_the_review_alone_and_is_final(shop: Shop):
    await shop.review_all()
    first, second = await shop.visit("a"), await shop.visit("a")
    (review,) = await shop.reviews()
    shop.live.clock.advance(seconds=3598)
    closed = await shop.close(review, label="fraud", label_reason="multi_account", note="Same card.")
    assert closed.json()["review"] == {
        **review,
        "state": "closed",
        "closed_at": "2026-01-01T01:00:00.000Z",
        "label": "fraud",
        "label_reason": "multi_account",
        "note": "Same card.",
    }
    event = await event_of(shop.live, shop.secret, first)
    assert (event["label"], event["label_reason"]) == ("fraud", "multi_account")
    assert "label" not in await event_of(shop.live, shop.secret, second)
    before = shop.live.contents()
    for response in (
        await shop.close(review, label="legitimate"),
        await shop.admin("PATCH", f"/reviews/{review['id']}", {"assignee": None}),
    ):
        assert_error(response, 409, "review_closed")
    assert shop.live.contents() == before
    assert faults(shop.live) == []
    await shop.visit("a")
    assert len(await shop.reviews("?state=open")) == 1, "another one is opened"


@pytest.mark.parametrize(
    ("fields", "field", "issue"),
    [
        ({}, "label", "required"),
        ({"label": None}, "label", "wrong_type"),
        ({"label": "bad"}, "label", "invalid_value"),
        ({"label": "fraud", "label_reason": "x"}, "label_reason", "invalid_value"),
        ({"label": "fraud", "note": "x" * 2001}, "note", "too_long"),
    ],
)
async def test_a_review_is_not_closed_by_anything_else(shop: Shop, fields: dict[str, Any], field: str, issue: str):
    review = (await shop.open(await shop.visit("a"))).json()["review"]
    before = shop.live.contents()
    assert_invalid(await shop.close(review, **fields), field, issue)
    assert_error(await shop.close({"id": "rev_x"}, label="fraud"), 404, "not_found")
    assert shop.live.contents() == before


async def test_a_review_may_be_closed_when_its_event_is_not_readable_any_more(shop: Shop):
    review = (await shop.open(await shop.visit("a"))).json()["review"]
    await after(shop.live, 40)
    assert (await shop.close(review, label="fraud")).status_code == 200
    total = (await shop.admin("GET", "/performance?from=2026-01-01T00:00:00Z")).json()["total"]
    assert (total["events"], total["fraud"]) == (1, 1)
    assert faults(shop.live) == []
    await after(shop.live, 361)
    assert await shop.reviews() == [], "400 days after it was opened"
    for table in (REVIEWS, OPEN_REVIEWS, OPEN_CASES, SUBJECT_REVIEWS):
        assert shop.live.contents()[table.name] == []


async def test_a_list_of_reviews_says_how_many_it_has(shop: Shop, monkeypatch: pytest.MonkeyPatch):
    await shop.review_all()
    for account in ("a", "b", "c"):
        await shop.visit(account)
    (review, *_) = await shop.reviews()
    await shop.close(review, label="fraud")
    path, key = "/console/api/reviews/count", {"x-api-key": shop.admin.secret}
    counts = {"": 3, "?state=open": 2, "?state=closed": 1, f"?assignee={NOBODY}": 0, "?assignee=none": 3}
    counts |= {"?state=open&environment=production": 2, "?environment=staging": 0}
    for query, count in counts.items():
        seen = (await shop.live.client.get(path + query, headers=key)).json()
        assert seen == {"count": count, "is_exact": True}, query
    monkeypatch.setattr(listing, "MAX_LOOKED_AT", 2)
    assert (await shop.live.client.get(path, headers=key)).json() == {"count": 2, "is_exact": False}
    assert_invalid(await shop.live.client.get(path + "?state=lost", headers=key), "state", "invalid_value", "query")


async def test_the_queue_of_an_environment_begins_with_the_review_that_waits_longest(shop: Shop):
    """However many others there are, of another environment or assigned to somebody else."""
    await shop.review_all()
    await shop.admin("PUT", "/rules?environment=test", {"revision": 0, "rules": ALL})
    staging = shop.live.issue(environment="staging")[1]
    answers = [await shop.visit(account) for account in ("a", "b", "c", "d")]
    for account in ("e", "f"):
        await act(shop.live, staging, account)
    member = add_member(shop.live, "analyst").id
    newest, *_, closed = [one for one in await shop.reviews("?state=open") if one["environment"] == "production"]
    await shop.close(closed, label="fraud")
    succeeded(await shop.admin("PATCH", f"/reviews/{newest['id']}", {"assignee": member}))
    key = {"x-api-key": shop.admin.secret}

    async def queue(**query: str) -> list[str]:
        found = list[str]()
        while True:
            page = succeeded(await shop.live.client.get("/console/api/reviews", headers=key, params=query))
            found += [review["request_id"] for review in page["reviews"]]
            if "next_cursor" not in page:
                return found
            query["cursor"] = page["next_cursor"]

    waiting = [answer["request_id"] for answer in answers[1:]]
    assert await queue(limit="1") == await queue() == waiting
    assert await queue(assignee=member) == waiting[-1:]
    assert await queue(assignee="none") == waiting[:-1]
    assert len(await queue(environment="staging")) == 2
    assert await queue(environment="development") == []


# 15.5: opened again


async def test_a_closed_review_is_opened_again_and_its_label_stays_until_the_next_close(shop: Shop):
    await shop.review_all()
    answer = await shop.visit("a")
    (review,) = await shop.reviews()
    assert_error(await shop.reopen(review), 409, "review_open")
    closed = (await shop.close(review, label="fraud", label_reason="bot", note="Same card.")).json()["review"]
    shop.live.clock.advance(seconds=9)
    again = await shop.reopen(review)
    assert again.status_code == 200, again.text
    del closed["closed_at"]
    assert again.json()["review"] == {**closed, "state": "open", "reopened_at": "2026-01-01T00:00:10.000Z"}
    assert await shop.reviews("?state=open") == [again.json()["review"]]
    assert (await event_of(shop.live, shop.secret, answer))["label"] == "fraud"
    assert faults(shop.live) == []
    await shop.visit("a")
    assert len(await shop.reviews()) == 1, "it is the open one of its visitor and account"
    assert (await shop.close(review, label="legitimate")).status_code == 200
    event = await event_of(shop.live, shop.secret, answer)
    assert (event["label"], event.get("label_reason")) == ("legitimate", None)
    (ended,) = await shop.reviews("?state=closed")
    assert (ended["label"], "note" in ended, ended["reopened_at"]) == ("legitimate", False, "2026-01-01T00:00:10.000Z")


async def test_a_review_is_not_opened_again_beside_another_one_nor_any_number_of_times(shop: Shop):
    await shop.review_all()
    await shop.visit("a")
    (review,) = await shop.reviews()
    await shop.close(review, label="fraud")
    await shop.visit("a")
    before = shop.live.contents()
    assert_error(await shop.reopen(review), 409, "review_open")
    assert_error(await shop.reopen({"id": "rev_x"}), 404, "not_found")
    assert shop.live.contents() == before
    (other,) = await shop.reviews("?state=open")
    await shop.close(other, label="fraud")
    for _ in range(MAX_NOTIFIED // 2):
        assert (await shop.reopen(review)).status_code == 200
        shop.live.clock.advance(hours=1)
        assert (await shop.close(review, label="fraud")).status_code == 200
    refused = await shop.reopen(review)
    assert_error(refused, 429, "rate_limited")
    assert faults(shop.live) == []
    wait_s = int(refused.headers["retry-after"])
    assert 0 <= 24 * 3600 * 30 - MAX_NOTIFIED // 2 * 3600 - wait_s < 60, "until its first closing is 30 days ago"
    shop.live.clock.advance(seconds=wait_s - 1)
    shop.admin = Automation(shop.live)
    assert_error(await shop.reopen(review), 429, "rate_limited")
    shop.live.clock.advance(seconds=1)
    assert (await shop.reopen(review)).status_code == 200


async def test_who_opened_a_review_again_is_told_and_webhooks_of_every_round_are_erased(hooks: Subscriber):
    shop = Shop(hooks.live)
    endpoint, _ = await hooks.create(events=["review.opened", "review.closed"])
    await shop.review_all()
    answer = await shop.visit("a")
    (review,) = await shop.reviews()
    analyst = await came_in(hooks.live, "analyst")
    path = f"/console/api/management/organizations/{hooks.live.organization.id}/reviews/{review['id']}"
    for _ in range(2):
        hooks.live.clock.advance(seconds=1)
        assert (await analyst("POST", f"{path}/close", {"label": "fraud"})).status_code == 200
        hooks.live.clock.advance(seconds=1)
        reopened = await analyst("POST", f"{path}/reopen")
        assert reopened.status_code == 200, reopened.text
    assert reopened.json()["review"]["reopened_by"].startswith("mem_")
    await at_rest()
    sent = sorted(each["type"] for each in told(hooks))
    assert sent == ["review.closed"] * 2 + ["review.opened"] * 3
    assert (await hooks.patch(endpoint, paused=True)).status_code == 200
    assert len(hooks.live.contents()[WEBHOOK_EVENTS.name]) == 5
    assert (await shop.admin("DELETE", f"/visitors/{answer['visitor_id']}")).status_code == 204
    assert hooks.live.contents()[WEBHOOK_EVENTS.name] == []
    assert faults(hooks.live) == []


# 14.4: webhooks


def told(subscriber: Subscriber) -> list[dict[str, Any]]:
    return [post.event for post in subscriber.receivers.take()]


async def test_review_opened_and_closed_are_webhooks_whose_data_is_the_review(hooks: Subscriber):
    shop = Shop(hooks.live)
    await hooks.create(events=["review.opened", "review.closed"])
    await hooks.create(events=["review.opened"], environment="test")
    await shop.review_all()
    await shop.visit("a")
    await shop.visit("a")
    await at_rest()
    (opened,) = told(hooks)
    (review,) = await shop.reviews()
    assert (opened["type"], opened["environment"]) == ("review.opened", "live")
    assert opened["data"] == review
    await shop.close(review, label="legitimate", note="A family.")
    await at_rest()
    (closed,) = told(hooks)
    assert closed["type"] == "review.closed"
    assert closed["data"] == (await shop.reviews())[0]
    assert closed["data"]["note"] == "A family."
    by_hand = (await shop.open(await act(hooks.live, shop.public, "b", 2))).json()["review"]
    await at_rest()
    (post,) = told(hooks)
    assert post["data"] == by_hand


# 14.4: erasure


async def test_the_erasure_of_a_visitor_deletes_its_reviews_and_what_webhooks_would_tell(hooks: Subscriber):
    shop = Shop(hooks.live)
    endpoint, _ = await hooks.create(events=["review.opened", "review.closed"])
    await shop.review_all()
    answer, other = await shop.visit("a"), await shop.visit("a", device=2)
    review = (await shop.reviews())[1]
    await shop.close(review, label="fraud")
    await at_rest()
    assert (await hooks.patch(endpoint, paused=True)).status_code == 200
    assert len(hooks.live.contents()[WEBHOOK_EVENTS.name]) == 3
    assert (await shop.admin("DELETE", f"/visitors/{answer['visitor_id']}")).status_code == 204
    assert [each["visitor_id"] for each in await shop.reviews()] == [other["visitor_id"]]
    assert len(hooks.live.contents()[WEBHOOK_EVENTS.name]) == 1
    assert faults(hooks.live) == []


@pytest.mark.slow
async def test_an_account_with_more_reviews_than_a_step_takes_is_erased_when_the_response_comes(shop: Shop):
    """14.4, 11.6: a rule opens the next review once one is closed."""
    await shop.review_all()
    for _ in range(STEP_ROWS // 6):
        await shop.visit("user/1")
        (review,) = await shop.reviews("?state=open")
        assert (await shop.close(review, label="fraud")).status_code == 200
    assert (await shop.admin("DELETE", "/accounts/user%2F1")).status_code == 204
    assert "user/1" not in repr({name: rows for name, rows in shop.live.contents().items() if name != "audit"})
    assert len(await shop.reviews("?state=closed&limit=200")) == STEP_ROWS // 6


async def test_the_erasure_of_an_account_takes_it_out_of_reviews_and_webhooks(hooks: Subscriber):
    shop = Shop(hooks.live)
    await hooks.create(events=["review.opened", "review.closed"])
    await shop.review_all()
    for account in ("the account", None):
        await shop.visit(account)
    await shop.visit("the account", device=2)
    found = await shop.reviews()
    await shop.close(found[2], label="fraud")
    await shop.visit("the account")
    await at_rest()
    assert (await shop.admin("DELETE", f"/accounts/{quote('the account')}")).status_code == 204
    left = await shop.reviews()
    assert not any("account_id" in each for each in left)
    assert len(left) == 3, "the second open one of a visitor without an account is gone"
    contents = {name: repr(rows) for name, rows in shop.live.contents().items() if name != "audit"}
    assert "the account" not in json.dumps(contents)
    assert faults(hooks.live) == []


# 14.5: notes


@pytest.mark.parametrize("whom", ["visitors", "accounts"])
async def test_notes_are_written_listed_and_deleted(shop: Shop, whom: str):
    answer = await shop.visit("the/account")
    subject_id = answer["visitor_id"] if whom == "visitors" else "the%2Faccount"
    path = f"/{whom}/{subject_id}/notes"
    written: list[dict[str, Any]] = []
    for text in ("first", "x" * 2000):
        shop.live.clock.advance(seconds=1)
        made = await shop.admin("POST", path, {"text": text})
        assert made.status_code == 201, made.text
        written.insert(0, made.json())
    assert written[1] == {"id": written[1]["id"], "text": "first", "created_at": "2026-01-01T00:00:02.000Z"}
    assert (await shop.admin("GET", path)).json() == {"notes": written}
    seen = await shop.live.client.get(f"/api/v1/{whom}/{subject_id}", headers={"x-api-key": shop.secret})
    assert seen.json()["notes_count"] == 2
    assert (await shop.admin("DELETE", f"{path}/{written[0]['id']}")).status_code == 204
    assert_error(await shop.admin("DELETE", f"{path}/{written[0]['id']}"), 404, "not_found")
    assert_error(await shop.admin("DELETE", f"{path}/x"), 404, "not_found")
    assert (await shop.admin("GET", path)).json() == {"notes": [written[1]]}
    await after(shop.live, 401)
    assert shop.live.contents()[NOTES.name] == []


async def test_a_note_is_about_somebody_known_and_has_a_text(shop: Shop):
    answer = await shop.visit("a")
    before = shop.live.contents()
    for path in (f"/visitors/{'A' * 20}/notes", "/visitors/x/notes", "/accounts/b/notes"):
        assert_error(await shop.admin("POST", path, {"text": "x"}), 404, "not_found")
        assert_error(await shop.admin("GET", path), 404, "not_found")
    path = f"/visitors/{answer['visitor_id']}/notes"
    for body, field, issue in (
        ({}, "text", "required"), ({"text": "x" * 2001}, "text", "too_long"), ({"text": ""}, "text", "invalid_value"),
        ({"text": None}, "text", "wrong_type"), ({"text": "x", "author": "y"}, "author", "unknown_field"),
    ):  # fmt: skip
        assert_invalid(await shop.admin("POST", path, body), field, issue)
    assert shop.live.contents() == before


@pytest.mark.slow(0.3)
async def test_the_101st_note_is_refused(shop: Shop):
    path = f"/visitors/{(await shop.visit())['visitor_id']}/notes"
    for number in range(100):
        shop.live.clock.advance(seconds=1)
        assert (await shop.admin("POST", path, {"text": f"note {number}"})).status_code == 201
    assert_error(await shop.admin("POST", path, {"text": "one more"}), 409, "note_limit")
    listed = (await shop.admin("GET", path)).json()["notes"]
    assert [each["text"] for each in listed] == [f"note {number}" for number in reversed(range(100))]
    assert (await shop.admin("DELETE", f"{path}/{listed[5]['id']}")).status_code == 204
    assert (await shop.admin("POST", path, {"text": "one more"})).status_code == 201


@pytest.mark.parametrize("whom", ["visitors", "accounts"])
async def test_erasure_deletes_notes_and_the_audit_log_names_nobody(shop: Shop, whom: str):
    answer = await shop.visit("the account")
    subject_id = answer["visitor_id"] if whom == "visitors" else "the%20account"
    made = await shop.admin("POST", f"/{whom}/{subject_id}/notes", {"text": "what was said"})
    records = repr(shop.live.contents()["audit"])
    assert made.json()["id"] in records
    for text in (answer["visitor_id"], "the account", "what was said"):
        assert text not in records
    assert (await shop.admin("DELETE", f"/{whom}/{subject_id}")).status_code == 204
    assert shop.live.contents()[NOTES.name] == []
    assert_error(await shop.admin("GET", f"/{whom}/{subject_id}/notes"), 404, "not_found")


async def test_what_was_written_at_the_end_of_a_review_is_not_in_the_audit_log(shop: Shop):
    review = (await shop.open(await shop.visit("a"))).json()["review"]
    await shop.close(review, label="fraud", note="what was said")
    records = repr(shop.live.contents()["audit"])
    assert review["id"] in records
    assert "what was said" not in records
