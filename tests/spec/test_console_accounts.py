"""`GET /console/api/billing` and `/console/api/audit`: the account and the audit log as an organization sees them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from svc.features.billing.settler import settle_all
from svc.http import listing
from svc.kernel.access.audit import Actor, AuditRecord
from svc.kernel.access.tables import AUDIT
from svc.kernel.tenants import jobs as ledger
from svc.kernel.work import slices
from tests.spec.automation import Automation
from tests.spec.console import Console
from tests.spec.responses import TOO_LITTLE, assert_invalid, visit
from tests.support.live import Live, report

NOTHING = {"identifications": 0, "identifiable": 0, "unidentifiable": 0, "free": 0, "amount_micros": 0}
BUSY = {"identifications": 4, "identifiable": 2, "unidentifiable": 1, "free": 1, "amount_micros": 6_500}


async def a_day(live: Live) -> None:
    """Of each price some, and one outside production, which costs nothing."""
    _, public = live.issue(environment="production")
    _, staging = live.issue(environment="staging")
    for signals in (report(), report(), TOO_LITTLE):
        await visit(live, public, signals)
    await visit(live, public, headers={"x-forwarded-for": "10.1.2.3"})
    await visit(live, staging)


def credit(live: Live, micros: int, note: str) -> None:
    now_ms = live.clock.now_ms
    job = partial(
        ledger.add_credit,
        number=live.organization.number,
        entry_id=live.world.request_id(now_ms),
        micros=micros,
        now_ms=now_ms,
        note=note,
    )
    live.found.store.write_now([job])


@pytest.mark.slow(0.2)
async def test_a_new_organization_has_an_empty_account(live: Live):
    organization = live.new_organization(credit_usd=0)
    assert await Console(live, organization=organization).seen("/billing") == {
        "status": "free",
        "refused": "no_credit",
        "balance_micros": 0,
        "credit_limit_micros": 0,
        "today": NOTHING,
        "days": [],
        "entries": [],
        "changes": [],
    }


async def test_today_equals_the_ledger_and_becomes_a_settled_day(live: Live, console: Console):
    """Decisions 5.1 and 5.4."""
    await a_day(live)
    seen = await console.seen("/billing")
    assert (seen["today"], seen["days"], seen["balance_micros"]) == (BUSY, [], 10_000_000 - 6_500)
    live.clock.advance(hours=24, seconds=301)
    ended = {"date": "2026-01-01", "balance_micros": 10_000_000 - 6_500, **BUSY}
    seen = await console.seen("/billing")
    assert (seen["today"], seen["days"]) == (NOTHING, [{**ended, "is_settled": False}])
    await settle_all(live.found.store, live.world, live.service.relay.due)
    await a_day(live)
    seen = await console.seen("/billing")
    assert seen["today"] == BUSY
    assert seen["days"] == [{**ended, "is_settled": True}]
    assert seen["balance_micros"] == 10_000_000 - 13_000


async def test_erasing_a_visitor_refunds_nothing(live: Live):
    """What was charged stays charged, and the credit lasts for as long as before."""
    admin, console, (_, public) = Automation(live), Console(live), live.issue(environment="production")
    visitor_id = (await visit(live, public)).json()["visitor_id"]
    before = await console.seen("/billing")
    assert (await admin("DELETE", f"/visitors/{visitor_id}")).status_code == 204
    assert "credit_days" in before
    assert await console.seen("/billing") == before


@pytest.mark.slow(0.2)
async def test_credits_are_listed_newest_first_whatever_charges_lie_between_them(live: Live, console: Console):
    await a_day(live)
    live.clock.advance(seconds=1)
    credit(live, 5_000_000, "invoice 7")
    await a_day(live)
    live.clock.advance(seconds=1)
    credit(live, -1_000_000, "taken back")
    entries = (await console.seen("/billing"))["entries"]
    assert entries[:2] == [
        {"at": "2026-01-01T00:00:02.000Z", "amount_micros": -1_000_000, "note": "taken back"},
        {"at": "2026-01-01T00:00:01.000Z", "amount_micros": 5_000_000, "note": "invoice 7"},
    ]
    assert [entry["amount_micros"] for entry in entries[2:]] == [10_000_000]
    for number in range(120):
        credit(live, number, "more")
    assert [entry["amount_micros"] for entry in (await console.seen("/billing"))["entries"]] == list(
        reversed(range(20, 120))
    )


async def test_a_blocked_account_shows_its_reason_and_time(live: Live, console: Console):
    for status in ("active", "past_due", "blocked"):
        live.clock.advance(seconds=1)
        live.set_billing_status(status)
    seen = await console.seen("/billing")
    assert (seen["status"], seen["blocked_reason"]) == ("blocked", "operator")
    assert [(change["previous"], change["current"], change.get("blocked_reason")) for change in seen["changes"]] == [
        ("past_due", "blocked", "operator"),
        ("active", "past_due", None),
        ("free", "active", None),
    ]
    assert seen["changes"][0] | {"note": ""} == {
        "at": "2026-01-01T00:00:03.000Z",
        "previous": "past_due",
        "current": "blocked",
        "blocked_reason": "operator",
        "by": "operator",
        "note": "",
    }


async def changed(automation: Automation, count: int) -> list[str]:
    """So many changes by a key; their ids, newest first."""
    made = [await automation("POST", "/sdk-keys", {"name": "shop", "environment": "staging"}) for _ in range(count)]
    return [answer.headers["x-request-id"] for answer in reversed(made)]


async def pages(console: Console, **query: Any) -> list[list[dict[str, Any]]]:
    """Every page, by the cursors."""
    found, cursor = [], {}
    while True:
        page = await console.seen("/audit", **query, **cursor)
        found.append(page["records"])
        if "next_cursor" not in page:
            return found
        cursor = {"cursor": page["next_cursor"]}


async def test_a_change_is_listed_with_its_author_and_the_requested_values(live: Live):
    admin, console = Automation(live), Console(live)
    asked = {"name": "shop", "environment": "staging"}
    response = await admin("POST", "/sdk-keys", asked, x_forwarded_for="203.0.113.7")
    newest = (await console.seen("/audit"))["records"][0]
    change = newest.pop("change")
    assert newest == {
        "id": response.headers["x-request-id"],
        "at": "2026-01-01T00:00:00.000Z",
        "action": "issueSdkKey",
        "subject": response.json()["key"]["id"],
        "actor": {
            "kind": "management_key",
            "id": admin.key.id,
            "name": "test",
            "role": "admin",
            "place": "203.0.113.7",
        },
    }
    assert change | asked == change
    assert response.json()["secret"] not in str(change)


async def test_operator_changes_are_listed_without_the_machine_name(live: Live):
    record = AuditRecord(
        at_ms=live.clock.now_ms,
        actor=Actor(kind="command_line", id="ada", name="root", role=None, place="host.internal pts/0"),
        action="svc org credit",
        organization=live.organization.number,
        subject=live.organization.id,
        change={"credit_usd": 5},
    )
    record_id = live.world.request_id(live.clock.now_ms)
    live.found.store.write_now([lambda txn: txn.put(AUDIT, (live.organization.number, record_id.bytes), record)])
    (seen,) = (await Console(live).seen("/audit", action="svc org credit"))["records"]
    assert seen["actor"] == {"kind": "command_line", "id": "ada"}
    assert (seen["subject"], seen["change"]) == (live.organization.id, {"credit_usd": 5})


@pytest.mark.parametrize("limit", [1, 3, 7, 200])
@pytest.mark.every_case
async def test_pages_contain_every_change_once_newest_first(live: Live, limit: int):
    ids = await changed(Automation(live), 7)
    found = await pages(Console(live), limit=limit, action="issueSdkKey")
    assert [record["id"] for page in found for record in page] == ids
    assert all(len(page) == limit for page in found[:-1])


@pytest.mark.slow
async def test_a_filter_finds_its_changes_among_all_others(live: Live, monkeypatch: pytest.MonkeyPatch):
    """By id or name of who made them, and by what was done; also where a page looks at few of them."""
    one, other, console = Automation(live), Automation(live), Console(live)
    ids = [await changed(automation, 30) for automation in (one, other, one)]
    monkeypatch.setattr(slices, "MAX_AT_ONCE", 4)
    monkeypatch.setattr(listing, "MAX_LOOKED_AT", 8)
    for automation, expected in ((one, ids[2] + ids[0]), (other, ids[1])):
        found = await pages(console, actor=automation.key.id, action="issueSdkKey")
        assert [record["id"] for page in found for record in page] == expected
    assert [record for page in await pages(console, actor="nobody") for record in page] == []
    assert [record for page in await pages(console, action="eraseVisitor") for record in page] == []


@pytest.mark.parametrize("limit", [1, 2, 200])
async def test_changes_are_filtered_by_the_time_they_were_made(live: Live, limit: int):
    """The start belongs to the window and the end does not, also beyond a cursor."""
    admin, console = Automation(live), Console(live)
    ids: list[str] = []
    for _ in range(5):
        ids = await changed(admin, 1) + ids
        live.clock.advance(seconds=60)
    for window, expected in (
        ({"from_": "2026-01-01T00:01:00Z"}, ids[:4]),
        ({"to": "2026-01-01T00:01:00Z"}, ids[4:]),
        ({"from_": "2026-01-01T00:01:00.000+00:00", "to": "2026-01-01T01:03:00+01:00"}, ids[2:4]),
        ({"from_": "2025-01-01T00:00:00Z", "to": "9999-12-31T23:59:59Z"}, ids),
        ({"from_": "2026-01-01T00:04:00.001Z"}, []),
    ):
        found = await pages(console, limit=limit, action="issueSdkKey", **window)
        assert [record["id"] for page in found for record in page] == expected


@pytest.mark.parametrize(
    ("query", "field", "issue"),
    [
        ({"from_": "yesterday"}, "from", "invalid_value"),
        ({"to": "2026-01-01"}, "to", "invalid_value"),
        ({"from_": "2026-01-02T00:00:00Z", "to": "2026-01-02T00:00:00Z"}, "from", "out_of_range"),
    ],
)
async def test_a_window_of_changes_that_cannot_be_is_refused(live: Live, query: dict[str, str], field: str, issue: str):
    assert_invalid(await Console(live).get("/audit", **query), field, issue, "query")


@pytest.mark.parametrize(("name", "value"), [("limit", 0), ("limit", 201), ("page", 1), ("organization", "org_x")])
async def test_an_unknown_query_parameter_is_refused(live: Live, name: str, value: object):
    response = await Console(live).get("/audit", **{name: value})
    assert (response.status_code, response.json()["error"]["code"]) == (422, "validation_error")
    assert response.json()["error"]["details"][0]["field"] == name
