"""Decisions 7.6 and 11.6: the id of who was erased is in no note that people wrote, and rules that name it are told."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest

from svc.features.erasure.accounts import erase_account
from svc.features.erasure.tables import TEXT_ERASURES
from svc.features.lists.jobs import NewEntry, add_entries
from svc.features.lists.queries import named_list
from svc.features.retention.sweeper import sweep
from svc.kernel.store.steps import STEP_LOOKS, STEP_ROWS
from tests.spec.automation import Automation
from tests.spec.commands import run_beside
from tests.spec.responses import visit
from tests.support.live import PUBLIC_ADDRESS, Live, report, succeeded

ACCOUNT = "customer_4711"
HOOK = {
    "url": f"https://{PUBLIC_ADDRESS}/hook",
    "environment": "test",
    "events": ["review.closed"],
    "description": "of nobody",
}


async def identified(live: Live, public: str, device: int = 1, **given: Any) -> str:
    return succeeded(await visit(live, public, report(device), **given))["visitor_id"]


async def list_id(admin: Automation, name: str) -> str:
    return next(one["id"] for one in (await admin("GET", "/lists")).json()["lists"] if one["name"] == name)


async def notes_of(admin: Automation, list_id: str) -> dict[str, str]:
    entries = (await admin("GET", f"/lists/{list_id}/entries?limit=200")).json()["entries"]
    return {entry["value"]: entry["note"] for entry in entries}


async def test_11_6_an_erased_id_leaves_the_notes_of_other_entries_and_subjects(live: Live):
    admin, (_, public) = Automation(live), live.issue()
    visitor_id = await identified(live, public, account_id=ACCOUNT)
    blocked = await list_id(admin, "blocked_visitors")
    notes = [f"seen with {ACCOUNT}, and {ACCOUNT}.", f"{ACCOUNT}0 is another", "nobody"]
    values = [visitor_id, "B" * 20, "C" * 20]
    entries = [{"value": value, "note": note} for value, note in zip(values, notes, strict=True)]
    assert (await admin("POST", f"/lists/{blocked}/entries", {"entries": entries})).status_code == 200
    accounts = await list_id(admin, "blocked_accounts")
    entries = [{"value": "other", "note": f"used {visitor_id}"}]
    assert (await admin("POST", f"/lists/{accounts}/entries", {"entries": entries})).status_code == 200
    note = {"text": f"{ACCOUNT} called about {visitor_id}"}
    assert (await admin("POST", f"/visitors/{visitor_id}/notes", note)).status_code == 201
    proposal = {"revision": 0, "rules": [], "note": f"as {ACCOUNT} is {visitor_id}"}
    assert (await admin("POST", "/rule-proposals", proposal)).status_code == 201
    other = succeeded(await visit(live, public, report(2)))["request_id"]
    review = (await admin("POST", "/reviews", {"request_id": other})).json()["review"]["id"]
    closing = {"label": "fraud", "note": f"the same person as {ACCOUNT}, {visitor_id}"}
    assert (await admin("POST", f"/reviews/{review}/close", closing)).status_code == 200

    assert (await admin("DELETE", f"/accounts/{ACCOUNT}")).status_code == 204
    assert await notes_of(admin, blocked) == dict(
        zip(values, ["seen with [erased], and [erased].", f"{ACCOUNT}0 is another", "nobody"], strict=True)
    )
    (kept,) = (await admin("GET", f"/visitors/{visitor_id}/notes")).json()["notes"]
    assert kept["text"] == f"[erased] called about {visitor_id}"
    (kept,) = (await admin("GET", "/rule-proposals")).json()["proposals"]
    assert kept["note"] == f"as [erased] is {visitor_id}"
    (kept,) = (await admin("GET", "/reviews")).json()["reviews"]
    assert kept["note"] == f"the same person as [erased], {visitor_id}"

    assert (await admin("DELETE", f"/visitors/{visitor_id}")).status_code == 204
    assert await notes_of(admin, accounts) == {"other": "used [erased]"}
    (kept,) = (await admin("GET", "/rule-proposals")).json()["proposals"]
    assert kept["note"] == "as [erased] is [erased]"
    (kept,) = (await admin("GET", "/reviews")).json()["reviews"]
    assert kept["note"] == "the same person as [erased], [erased]"
    assert live.count(TEXT_ERASURES) == 0


async def test_11_6_an_erased_id_leaves_what_was_written_when_reviews_were_closed(live: Live):
    admin, (_, public) = Automation(live), live.issue()
    assert (await admin("POST", "/webhooks", HOOK)).status_code == 201
    await identified(live, public, account_id=ACCOUNT)
    event = succeeded(await visit(live, public, report(2), account_id="other"))
    review = (await admin("POST", "/reviews", {"request_id": event["request_id"]})).json()["review"]["id"]
    for text in (f"{ACCOUNT} again", f"so is {ACCOUNT}0"):
        closing = {"label": "fraud", "note": text}
        assert (await admin("POST", f"/reviews/{review}/close", closing)).status_code == 200
        live.clock.advance(seconds=1)
        assert (await admin("POST", f"/reviews/{review}/reopen", {})).status_code == 200

    assert (await admin("DELETE", f"/accounts/{ACCOUNT}")).status_code == 204
    kept = [msgspec.json.decode(one.body)["data"] for _, one in live.contents()["webhook_events"]]
    assert sorted(one["note"] for one in kept) == ["[erased] again", f"so is {ACCOUNT}0"]
    assert {one["account_id"] for one in kept} == {"other"}
    assert (await admin("GET", f"/reviews/{review}")).json()["review"]["note"] == f"so is {ACCOUNT}0"


@pytest.mark.slow
async def test_11_6_many_notes_take_steps_and_an_interruption_is_completed(live: Live):
    admin, (_, public), number = Automation(live), live.issue(), live.organization.number
    await identified(live, public, account_id=ACCOUNT)
    tags = (await admin("POST", "/lists", {"name": "tags", "kind": "tag"})).json()["id"]
    count = STEP_LOOKS + 50
    named = range(3 * STEP_ROWS // 4)
    entries = [NewEntry(f"t{at:05d}", f"of {ACCOUNT}" if at in named else "nobody") for at in range(count)]

    def add(transaction: Any) -> None:
        found = named_list(transaction, number, "tags")
        add_entries(transaction, number, found.id, entries, live.clock.now_ms)  # pyright: ignore[reportOptionalMemberAccess]

    live.found.store.write_now([add])
    step = partial(erase_account, number=number, account_id=ACCOUNT, now_ms=live.clock.now_ms)
    assert live.found.store.write_now([step]) == [False]
    assert live.count(TEXT_ERASURES) == 1
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=False)
    assert live.count(TEXT_ERASURES) == 0
    notes = await notes_of(admin, tags)
    assert list(notes.values()) == ["of [erased]"] * 200, "the first page"
    assert ACCOUNT not in repr(live.contents()["list_entries"])


@pytest.mark.slow
async def test_11_6_the_command_tells_which_rules_webhooks_and_lists_name_who_was_erased(live: Live):
    admin, (_, public) = Automation(live), live.issue()
    await identified(live, public, account_id=ACCOUNT)
    await admin("POST", "/lists", {"name": f"friends_of_{ACCOUNT}", "kind": "tag"})
    revision = (await admin("GET", "/rules?environment=live")).json()["revision"]
    rule = {"name": "the customer", "condition": f'account.id == "{ACCOUNT}"', "action": "review"}
    saved = await admin("PUT", "/rules?environment=live", {"revision": revision, "rules": [rule]})
    assert saved.status_code == 200, saved.text
    for revision, rules in enumerate(([rule], [rule | {"note": "as before"}], [])):
        body = {"revision": revision, "rules": rules}
        assert (await admin("PUT", "/rules?environment=test", body)).status_code == 200
    described, filtered, _ = [
        (await admin("POST", "/webhooks", HOOK | given)).json()["endpoint"]["id"]
        for given in ({"description": f"about {ACCOUNT}"}, {"filter": rule["condition"]}, {})
    ]
    proposed = await admin("POST", "/rule-proposals", {"revision": 0, "rules": [rule | {"name": "proposed"}]})
    org = live.organization.id
    erased = (await run_beside("account", "erase", org, ACCOUNT, "--yes", *live.options, "--json")).json
    made = f"rule 'proposed' of {proposed.json()['id']} of live"
    webhooks = f"webhook {described}", f"webhook {filtered}"
    replaced = "rule 'the customer' of the history of test"
    where = ["rule 'the customer' of live", made, replaced, *webhooks, f"list 'friends_of_{ACCOUNT}'"]
    assert erased == {"organization_id": org, "account_id": ACCOUNT, "status": "erased", "remains_in": where}
