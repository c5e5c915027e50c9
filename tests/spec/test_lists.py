"""Decisions 12: lists, their entries and their limits; what rules see of them; and `svc list`."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from svc.features.checks.invariants import violations
from svc.features.inspection.subject_rows import SubjectRows
from svc.features.lists import jobs as transactions
from svc.features.lists.jobs import ROWS_OF_AN_ENTRY, NewEntry
from svc.features.lists.lists import FIRST_LISTS, MAX_AT_ONCE, MAX_ENTRIES
from svc.features.lists.queries import AskedLists, list_names, named_list
from svc.features.lists.tables import LIST_ENTRIES, LIST_EXPIRIES, LISTED, LISTS
from svc.features.retention.sweeper import sweep
from svc.kernel.store.group import Group
from svc.kernel.store.reading import ReadOnlyStore
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.steps import items_of_step
from svc.kernel.tenants.queries import organization
from tests.spec.automation import Automation
from tests.spec.commands import Run, run_beside
from tests.spec.responses import assert_error, assert_invalid, visit
from tests.support.counted_store import CountedReads
from tests.support.effort import effort
from tests.support.live import PUBLIC_ADDRESS, Live, report, succeeded

VISITOR = "0qppzPLvL54VURDkQrfS"
DAY_MS = 24 * 3600 * 1000
OVER = {"value": "a", "expires_at": "2026-01-01T00:00:00Z"}
TOMORROW = "2026-01-02T00:00:00.000Z"
"""A day after the service of a test begins."""


async def create(admin: Automation, name: str = "vip", kind: str = "account") -> str:
    """The id of a new list."""
    response = await admin("POST", "/lists", {"name": name, "kind": kind})
    assert response.status_code == 201, response.text
    return response.json()["id"]


async def add(admin: Automation, list_id: str, *values: str, **fields: Any) -> dict[str, int]:
    body = {"entries": [{"value": value, **fields} for value in values]}
    return succeeded(await admin("POST", f"/lists/{list_id}/entries", body))


async def page(admin: Automation, list_id: str, query: str = "") -> dict[str, Any]:
    return succeeded(await admin("GET", f"/lists/{list_id}/entries{query}"))


async def values_of(admin: Automation, list_id: str, query: str = "") -> list[str]:
    return [entry["value"] for entry in (await page(admin, list_id, query))["entries"]]


async def by_name(admin: Automation) -> dict[str, dict[str, Any]]:
    return {found["name"]: found for found in (await admin("GET", "/lists")).json()["lists"]}


def holds(live: Live, name: str, value: str | None, reads: Counter[str] | None = None) -> bool:
    """Whether a rule would find a value in a list, by the newest state of the store; `reads` gets what it reads."""
    number = live.organization.number
    with live.found.store.read() as snapshot:
        owner = organization(snapshot, number)
        counted = CountedReads(snapshot, Counter() if reads is None else reads)
        return AskedLists(counted, owner, lambda _: value, live.clock.now_ms)(name)


@contextmanager
def nothing_changed(live: Live) -> Generator[None]:
    before = live.contents()
    yield
    assert live.contents() == before


# 12.2: the six lists that every organization has


async def test_an_organization_has_six_lists_before_any_has_a_row(live: Live, admin: Automation):
    with nothing_changed(live):
        found = await by_name(admin)
        for each in found.values():
            assert (await admin("GET", f"/lists/{each['id']}")).json() == each
            assert await page(admin, each["id"]) == {"entries": []}
    assert {name: each["kind"] for name, each in found.items()} == FIRST_LISTS
    assert [*found] == sorted(FIRST_LISTS)
    assert len({each["id"] for each in found.values()}) == 6
    for each in found.values():
        assert set(each) == {"id", "name", "kind", "entries", "created_at", "updated_at"}
        assert each["entries"] == 0
        assert each["created_at"] == each["updated_at"] == "2026-01-01T00:00:00.000Z"
    with live.found.store.read() as snapshot:
        assert list_names(snapshot, live.organization.number) == FIRST_LISTS
        assert named_list(snapshot, live.organization.number, "blocked") is None
        assert named_list(snapshot, live.organization.number, "x" * 600) is None


async def test_the_six_lists_take_entries_and_are_neither_deleted_nor_renamed(live: Live, admin: Automation):
    listed = (await by_name(admin))["blocked_visitors"]["id"]
    assert await add(admin, listed, VISITOR) == {"added": 1, "replaced": 0}
    assert holds(live, "blocked_visitors", VISITOR)
    with nothing_changed(live):
        assert_error(await admin("DELETE", f"/lists/{listed}"), 409, "list_permanent")
        assert_error(await admin("PATCH", f"/lists/{listed}", {"name": "others"}), 409, "list_permanent")
        assert_error(await admin("POST", "/lists", {"name": "trusted_visitors", "kind": "tag"}), 409, "list_exists")
    assert (await admin("PATCH", f"/lists/{listed}", {"name": "blocked_visitors"})).status_code == 200
    assert (await by_name(admin))["blocked_visitors"]["id"] == listed


async def test_the_six_lists_of_another_organization_are_others(live: Live, admin: Automation):
    other = Automation(live, organization=live.new_organization())
    first, second = await by_name(admin), await by_name(other)
    assert {each["id"] for each in first.values()}.isdisjoint(each["id"] for each in second.values())
    await add(admin, first["blocked_accounts"]["id"], "a")
    assert (await by_name(other))["blocked_accounts"]["entries"] == 0


# 12.1: lists


@pytest.mark.slow(0.2)
async def test_a_list_is_made_renamed_and_deleted(live: Live, admin: Automation):
    made = (await admin("POST", "/lists", {"name": "vip", "kind": "account"})).json()
    assert made == {
        "id": made["id"],
        "name": "vip",
        "kind": "account",
        "entries": 0,
        "created_at": "2026-01-01T00:00:00.000Z",
        "updated_at": "2026-01-01T00:00:00.000Z",
    }
    assert len(made["id"]) == 24
    assert made["id"].startswith("lst_")
    await add(admin, made["id"], "a", "b")
    live.clock.advance(seconds=60)
    renamed = (await admin("PATCH", f"/lists/{made['id']}", {"name": "best"})).json()
    assert renamed == made | {"name": "best", "entries": 2, "updated_at": "2026-01-01T00:01:00.000Z"}
    assert (await admin("PATCH", f"/lists/{made['id']}", {})).json() == renamed
    assert set(await by_name(admin)) == {*FIRST_LISTS, "best"}
    assert holds(live, "best", "a")
    deleted = await admin("DELETE", f"/lists/{made['id']}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert_error(await admin("GET", f"/lists/{made['id']}"), 404, "not_found")
    assert [live.count(table) for table in (LISTS, LIST_ENTRIES)] == [0, 0]


async def test_a_list_of_another_form_is_refused(live: Live, admin: Automation):
    with nothing_changed(live):
        for fields, field, issue in (
            ({"name": "Vip"}, "name", "invalid_value"), ({"name": "1st"}, "name", "invalid_value"),
            ({"name": "a-b"}, "name", "invalid_value"), ({"name": "a" * 49}, "name", "invalid_value"),
            ({"name": "a\n"}, "name", "invalid_value"), ({"name": ""}, "name", "invalid_value"),
            ({"name": None}, "name", "wrong_type"), ({"kind": "agent"}, "kind", "invalid_value"),
            ({"note": "x"}, "note", "unknown_field"),
        ):  # fmt: skip
            assert_invalid(await admin("POST", "/lists", {"name": "vip", "kind": "tag"} | fields), field, issue)


async def test_a_name_is_taken_once(live: Live, admin: Automation):
    await create(admin, "a" + "_9" * 23 + "z")
    first, second = await create(admin, "first"), await create(admin, "second")
    with nothing_changed(live):
        assert_error(await admin("POST", "/lists", {"name": "first", "kind": "tag"}), 409, "list_exists")
        assert_error(await admin("PATCH", f"/lists/{second}", {"name": "first"}), 409, "list_exists")
        assert_error(await admin("PATCH", f"/lists/{first}", {"name": "trusted_accounts"}), 409, "list_exists")
        assert_invalid(await admin("PATCH", f"/lists/{first}", {"kind": "tag"}), "kind", "unknown_field")


@pytest.mark.slow(0.3)
async def test_an_organization_has_at_most_a_hundred_lists_the_six_included(live: Live, admin: Automation):
    for number in range(94):
        await create(admin, f"list_{number}")
    await add(admin, (await by_name(admin))["blocked_accounts"]["id"], "a")  # which has a row from now on
    assert len(await by_name(admin)) == 100
    with nothing_changed(live):
        assert_error(await admin("POST", "/lists", {"name": "another", "kind": "tag"}), 409, "list_limit")
    other = Automation(live, organization=live.new_organization())
    await create(other)


async def test_a_list_that_a_rule_names_is_neither_deleted_nor_renamed(live: Live, admin: Automation):
    """Decisions 12.2: in whatever mode, and in whichever ruleset."""
    named, free = await create(admin, "named"), await create(admin, "free")
    rule = {"name": "a", "condition": 'score > 1 && in_list("named")', "action": "block", "mode": "off"}
    saved = await admin("PUT", "/rules?environment=test", {"revision": 0, "rules": [rule]})
    assert saved.status_code == 200, saved.text
    with nothing_changed(live):
        assert_error(await admin("DELETE", f"/lists/{named}"), 409, "list_in_use")
        assert_error(await admin("PATCH", f"/lists/{named}", {"name": "other"}), 409, "list_in_use")
    assert (await admin("DELETE", f"/lists/{free}")).status_code == 204
    await admin("PUT", "/rules?environment=test", {"revision": 1, "rules": []})
    assert (await admin("DELETE", f"/lists/{named}")).status_code == 204


async def test_a_block_takes_effect_at_the_next_request(live: Live, public: str, admin: Automation):
    """Decisions 12.2, 13.3: the two rules of the start read the six lists, those of who is blocked first."""
    first = (await visit(live, public, report(1))).json()
    assert "decision" not in first
    trusted = (await by_name(admin))["trusted_addresses"]["id"]
    await add(admin, trusted, f"{PUBLIC_ADDRESS}/24")
    assert (await visit(live, public, report(1))).json()["decision"]["action"] == "allow"
    blocked = (await by_name(admin))["blocked_visitors"]["id"]
    await add(admin, blocked, first["visitor_id"])
    assert (await visit(live, public, report(1))).json()["decision"]["action"] == "block", "the first rule decides"


async def test_an_account_is_trusted_only_where_a_backend_says_who_it_is(live: Live, public: str, admin: Automation):
    """Decisions 13.3: sent by a secret key, or of a pair of visitor and account that was verified before."""
    _, secret = live.issue("secret", "production")
    await add(admin, (await by_name(admin))["trusted_accounts"]["id"], "vip-1")

    async def act(key: str, device: int, account: str | None = "vip-1") -> dict[str, Any]:
        named = {} if account is None else {"account_id": account}
        signals = report(device) | {"client_token": f"{device:032x}"}
        return succeeded(await visit(live, key, signals, **named))

    assert "decision" not in await act(public, 1), "anybody can write any account"
    headers = {"x-svc-visitor-ip": PUBLIC_ADDRESS, "x-api-key": secret}
    body = {"sdk": {}, "signals": report(2) | {"client_token": f"{2:032x}"}, "account_id": "vip-1"}
    sent = await live.client.post("/api/v1/identify", json=body, headers=headers)
    assert sent.json()["decision"]["action"] == "allow"
    assert (await act(public, 2))["decision"]["action"] == "allow", "the pair was verified"
    claimed = await act(public, 3)
    assert "decision" not in claimed, "another visitor's claim is a claim"
    path = f"/api/v1/events/{claimed['request_id']}"
    await live.client.patch(path, json={"account_id": "vip-1"}, headers={"x-api-key": secret})
    assert (await act(public, 3))["decision"]["action"] == "allow"
    await live.client.patch(path, json={"account_id": None}, headers={"x-api-key": secret})
    assert "decision" not in await act(public, 3)
    assert "decision" not in await act(public, 2, account=None)


async def test_a_blocked_visitor_does_not_become_trusted_by_naming_an_account(live: Live, admin: Automation):
    _, public = live.issue(environment="production")
    lists = await by_name(admin)
    first = (await visit(live, public, report(1))).json()
    await add(admin, lists["blocked_visitors"]["id"], first["visitor_id"])
    await add(admin, lists["trusted_accounts"]["id"], "vip-1")
    await add(admin, lists["trusted_addresses"]["id"], PUBLIC_ADDRESS)
    answer = (await visit(live, public, report(1), account_id="vip-1")).json()
    assert (answer["decision"]["action"], answer["decision"]["rule"]) == ("block", "Blocked")


async def test_a_visitor_is_trusted_only_without_a_token_conflict(live: Live, key: str, admin: Automation):
    first = (await visit(live, key, report(1))).json()
    await add(admin, (await by_name(admin))["trusted_visitors"]["id"], first["visitor_id"])
    assert (await visit(live, key, report(1))).json()["decision"]["action"] == "allow"
    stolen = report(1) | {"test": {"signals": ["token_conflict"]}}
    answer = (await visit(live, key, stolen)).json()
    assert answer["visitor_id"] == first["visitor_id"]
    assert "decision" not in answer


async def test_an_unknown_list_and_that_of_another_organization_are_not_there(live: Live, admin: Automation):
    other = Automation(live, organization=live.new_organization())
    foreign = await create(other)
    await add(other, foreign, "a")
    first = (await by_name(other))["blocked_accounts"]["id"]
    entry, value = {"entries": [{"value": "a"}]}, {"values": ["a"]}
    with nothing_changed(live):
        for list_id in (foreign, first, "lst_" + "A" * 20, "vip", "lst_%00"):
            for method, path, body in (
                ("GET", "", None), ("PATCH", "", {"name": "mine"}), ("PATCH", "", {}), ("DELETE", "", None),
                ("GET", "/entries", None), ("POST", "/entries", entry), ("DELETE", "/entries", value),
            ):  # fmt: skip
                assert_error(await admin(method, f"/lists/{list_id}{path}", body), 404, "not_found")
    assert await values_of(other, foreign) == ["a"]


# 12.1: entries


SPELLINGS = {
    "visitor": {VISITOR: VISITOR},
    "account": {"Ünser Kunde #1 ": "Ünser Kunde #1 ", "ü" * 256: "ü" * 256},
    "address": {
        "203.0.113.7": "203.0.113.7",
        "203.0.113.7/32": "203.0.113.7",
        "198.51.100.77/24": "198.51.100.0/24",
        "2001:DB8:0::1": "2001:db8::1",
        "2001:db8::1/128": "2001:db8::1",
        "2001:DB8:0:1::/32": "2001:db8::/32",
        "::ffff:192.0.2.1": "192.0.2.1",
        "::ffff:192.0.2.1/120": "192.0.2.0/24",
        "0.0.0.0/0": "0.0.0.0/0",
        "::/0": "::/0",
    },
    "country": {"gb": "GB", "De": "DE"},
    "asn": {"64500": "64500", "AS64501": "64501", "as0064502": "64502", "4294967295": "4294967295"},
    "origin": {
        "HTTPS://Shop.Example:443": "https://shop.example",
        "http://bücher.example": "http://xn--bcher-kva.example",
    },
    "tag": {"order 1234\n": "order 1234\n", "x" * 1024: "x" * 1024},
}
NO_VALUES = {
    "visitor": ("", "short", VISITOR + "0", VISITOR[:-1] + "_"),
    "account": ("", "x" * 257, "a\nb", "\x85"),
    "address": (
        "", "shop", "1.2.3", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/-1", "1.2.3.4/255.0.0.0", "1.2.3.4/8/8", " 1.2.3.4",
        "fe80::1%eth0", "fe80::%1/64", "::1/129", "\u0661.2.3.4", "1.2.3.4/\u0668",
    ),
    "country": ("", "G", "GBR", "G1", "ÄÖ"),
    "asn": ("", "AS", "0", "-1", "4294967296", "1.5", "AS 1", "9" * 5000),
    "origin": ("", "shop.example", "https://shop.example/", "*", "https://*.shop.example", "null"),
    "tag": ("", "x" * 1025),
}  # fmt: skip


@pytest.mark.parametrize("kind", SPELLINGS)
async def test_values_are_kept_in_one_spelling_and_others_refused(live: Live, admin: Automation, kind: str):
    made = await create(admin, "those", kind)
    sent, kept = list(SPELLINGS[kind]), list(SPELLINGS[kind].values())
    assert await add(admin, made, *sent) == {"added": len(set(kept)), "replaced": len(kept) - len(set(kept))}
    assert await values_of(admin, made) == sorted(set(kept), key=str.encode)
    assert await add(admin, made, *sent) == {"added": 0, "replaced": len(kept)}
    assert all(holds(live, "those", value) for value in kept if "/" not in value or kind != "address")
    wrong = NO_VALUES[kind]
    with nothing_changed(live):
        entries = [{"value": value} for value in (sent[0], *wrong)]
        assert_error(
            await admin("POST", f"/lists/{made}/entries", {"entries": entries}),
            422,
            "validation_error",
            *((f"entries[{index}].value", "invalid_value", "body") for index in range(1, len(entries))),
        )
        assert_error(
            await admin("DELETE", f"/lists/{made}/entries", {"values": [sent[0], *wrong]}),
            422,
            "validation_error",
            *((f"values[{index}]", "invalid_value", "body") for index in range(1, len(entries))),
        )
    assert not any(holds(live, "those", value) for value in wrong)
    assert (await admin("DELETE", f"/lists/{made}/entries", {"values": sent})).status_code == 204
    assert await values_of(admin, made) == []
    assert live.count(LIST_ENTRIES) == 0


async def test_an_entry_has_its_note_and_expiry_which_adding_it_again_replaces(live: Live, admin: Automation):
    made = await create(admin)
    await add(admin, made, "a")
    await add(admin, made, "b", note="chargeback", expires_at="2026-01-02T01:00:00+01:00")
    live.clock.advance(seconds=60)
    entry = {"value": "b", "note": "chargeback", "expires_at": TOMORROW, "created_at": "2026-01-01T00:00:00.000Z"}
    plain = {"value": "a", "note": "", "expires_at": None, "created_at": "2026-01-01T00:00:00.000Z"}
    assert (await page(admin, made))["entries"] == [plain, entry]
    body = {"entries": [{"value": "b"}, {"value": "c", "note": "x"}, {"value": "c", "note": "y" * 500}]}
    assert (await admin("POST", f"/lists/{made}/entries", body)).json() == {"added": 1, "replaced": 2}
    later = {"value": "c", "note": "y" * 500, "expires_at": None, "created_at": "2026-01-01T00:01:00.000Z"}
    assert (await page(admin, made))["entries"] == [plain, entry | {"note": "", "expires_at": None}, later]
    assert (await by_name(admin))["vip"] | {"id": made} == {
        "id": made,
        "name": "vip",
        "kind": "account",
        "entries": 3,
        "created_at": "2026-01-01T00:00:00.000Z",
        "updated_at": "2026-01-01T00:01:00.000Z",
    }


async def test_entries_of_another_form_are_refused(live: Live, admin: Automation):
    made = await create(admin)
    await add(admin, made, "a", note="before")
    with nothing_changed(live):
        for body, field, issue in (
            ({"entries": [{"value": "a", "note": "x" * 501}]}, "entries[0].note", "too_long"),
            ({"entries": [{"value": "a", "note": None}]}, "entries[0].note", "wrong_type"),
            ({"entries": [{"value": 7}]}, "entries[0].value", "wrong_type"),
            ({"entries": [{"note": "x"}]}, "entries[0].value", "required"),
            ({"entries": [{"value": "a", "id": "x"}]}, "entries[0].id", "unknown_field"),
            ({"entries": [{"value": "a", "expires_at": "tomorrow"}]}, "entries[0].expires_at", "invalid_value"),
            ({"entries": [{"value": "a", "expires_at": "2026-01-02T00:00:00"}]}, "entries[0].expires_at", "wrong_type"),
            ({"entries": [{"value": "b"}, OVER]}, "entries[1].expires_at", "out_of_range"),
            ({"entries": [{"value": str(number)} for number in range(MAX_AT_ONCE + 1)]}, "entries", "too_long"),
            ({}, "entries", "required"),
        ):  # fmt: skip
            assert_invalid(await admin("POST", f"/lists/{made}/entries", body), field, issue)


async def test_a_request_takes_at_most_a_thousand_entries_or_values(live: Live, admin: Automation):
    made, values = await create(admin), [f"user-{number}" for number in range(MAX_AT_ONCE)]
    assert await add(admin, made, *values) == {"added": MAX_AT_ONCE, "replaced": 0}
    with nothing_changed(live):
        too_many = await admin("DELETE", f"/lists/{made}/entries", {"values": [*values, "x"]})
        assert_invalid(too_many, "values", "too_long")
        assert_invalid(await admin("DELETE", f"/lists/{made}/entries", {}), "values", "required")
    assert (await admin("DELETE", f"/lists/{made}/entries", {"values": [*values[:-1], "x"]})).status_code == 204
    assert await values_of(admin, made) == values[-1:]


async def test_entries_are_listed_by_pages_and_found_by_their_beginning(live: Live, admin: Automation):
    made, other = await create(admin, "those", "tag"), await create(admin, "others", "tag")
    long = ["ü" * 400 + end for end in ("", "a", "b")]
    values = sorted([*(f"order {number:03}" for number in range(30)), "ORDER", "Ω", *long], key=str.encode)
    await add(admin, made, *values)
    await add(admin, other, *(f"order {number:03}" for number in range(30)))
    for beginning, limit in (("", 7), ("order 01", 3), ("order", 200), ("ü" * 300, 2), ("ü" * 400 + "a", 2), ("x", 5)):
        found: list[str] = []
        query = f"?limit={limit}&q={beginning}"
        while True:
            answer = await page(admin, made, query)
            assert len(answer["entries"]) <= limit
            found += [entry["value"] for entry in answer["entries"]]
            if "next_cursor" not in answer:
                break
            query = f"?limit={limit}&q={beginning}&cursor={answer['next_cursor']}"
        expected = [value for value in values if value.startswith(beginning)]
        assert (found if beginning.startswith("order") else sorted(found, key=str.encode)) == expected
    assert len(await values_of(admin, made)) == len(values)
    cursor = (await page(admin, made, "?limit=20"))["next_cursor"]
    assert await values_of(admin, made, f"?cursor={cursor}&q=ORDER") == []
    path = f"/lists/{other}/entries"
    for query, field, issue in (
        (f"?cursor={cursor}", "cursor", "invalid_cursor"), ("?cursor=x", "cursor", "invalid_cursor"),
        ("?limit=0", "limit", "out_of_range"), ("?limit=201", "limit", "out_of_range"),
        ("?value=x", "value", "unknown_field"), (f"?q={'x' * 1025}", "q", "too_long"),
    ):  # fmt: skip
        assert_invalid(await admin("GET", path + query), field, issue, "query")


@pytest.mark.parametrize(
    ("kind", "value", "typed"),
    [
        ("country", "GB", "g"), ("asn", "64500", "as64"), ("origin", "https://shop.example", "HTTPS://Sh"),
        ("address", "2001:db8::/32", "2001:DB8"),
    ],
)  # fmt: skip
async def test_a_beginning_is_typed_in_any_case(admin: Automation, kind: str, value: str, typed: str):
    made = await create(admin, "those", kind)
    await add(admin, made, value)
    assert await values_of(admin, made, f"?q={typed}") == [value]


async def test_an_entry_that_has_expired_is_none_any_more(live: Live, admin: Automation):
    made = await create(admin)
    await add(admin, made, "a", "b", expires_at=TOMORROW)
    await add(admin, made, "c")
    live.clock.advance(seconds=DAY_MS // 1000 - 1)
    assert (holds(live, "vip", "a"), await values_of(admin, made)) == (True, ["a", "b", "c"])
    live.clock.advance(seconds=1)
    assert (holds(live, "vip", "a"), await values_of(admin, made)) == (False, ["c"])
    assert (await by_name(admin))["vip"]["entries"] == 1
    assert (await admin("GET", f"/lists/{made}")).json()["entries"] == 1
    assert await add(admin, made, "a") == {"added": 1, "replaced": 0}
    assert holds(live, "vip", "a")
    entry = (await page(admin, made))["entries"][0]
    assert (entry["created_at"], entry["expires_at"]) == (TOMORROW, None)


@pytest.mark.slow(0.7)
async def test_expired_entries_are_deleted_by_retention_and_by_those_that_are_added(live: Live, admin: Automation):
    made, networks = await create(admin), await create(admin, "networks", "address")
    await add(admin, made, *(f"user-{number}" for number in range(600)), expires_at=TOMORROW)
    await add(admin, networks, "198.51.100.0/24", expires_at=TOMORROW)
    await add(admin, networks, "203.0.113.0/25")
    live.clock.now_ms += DAY_MS
    await add(admin, made, "a", "b")
    assert (live.count(LIST_ENTRIES), live.count(LIST_EXPIRIES)) == (600, 597)
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    with live.found.store.read() as snapshot:
        assert (snapshot.count(LIST_ENTRIES), snapshot.count(LIST_EXPIRIES)) == (3, 0)
        found = named_list(snapshot, live.organization.number, "networks")
    assert found is not None
    assert (found.entries, found.prefixes) == (1, ((4, 25, 1),))
    assert await values_of(admin, made) == ["a", "b"]


@pytest.mark.slow(effort(1, 20))
@pytest.mark.only_on("lmdb", "it takes minutes in a database, and is the same code")
async def test_an_organization_has_at_most_100_000_living_entries(
    live: Live, admin: Automation, monkeypatch: pytest.MonkeyPatch
):
    """The number is a constant, which `EFFORT=long` takes as it is."""
    assert MAX_ENTRIES == 100_000
    most = effort(1_000, MAX_ENTRIES)
    monkeypatch.setattr(transactions, "MAX_ENTRIES", most)
    first, second = await create(admin, "first"), await create(admin, "second")
    number, expires_at_ms = live.organization.number, live.clock.now_ms + DAY_MS
    for start in range(0, most - 2, 10_000):
        some = range(start, min(start + 10_000, most - 2))
        entries = [NewEntry(f"user-{at}", expires_at_ms=expires_at_ms if at < 3 else None) for at in some]
        live.found.store.write_now(
            [partial(transactions.add_entries, number=number, list_id=first, entries=entries, now_ms=live.clock.now_ms)]
        )
    await add(admin, second, "a")
    with nothing_changed(live):
        body = {"entries": [{"value": "b"}, {"value": "c"}]}
        assert_error(await admin("POST", f"/lists/{second}/entries", body), 409, "list_limit")
    assert await add(admin, second, "a", "b") == {"added": 1, "replaced": 1}
    live.clock.now_ms += DAY_MS
    assert (await by_name(admin))["first"]["entries"] == most - 5
    assert await add(admin, second, "c", "d", "e") == {"added": 3, "replaced": 0}
    with nothing_changed(live):
        assert_error(await admin("POST", f"/lists/{second}/entries", {"entries": [{"value": "f"}]}), 409, "list_limit")
    assert (await admin("DELETE", f"/lists/{first}")).status_code == 204
    assert live.count(LIST_ENTRIES) == 5


@pytest.mark.slow(0.5)
async def test_entries_of_a_list_whose_deletion_was_interrupted_are_deleted_by_retention(live: Live, admin: Automation):
    made, number = await create(admin), live.organization.number
    await add(admin, made, *(f"user-{at}" for at in range(items_of_step(ROWS_OF_AN_ENTRY))))
    await add(admin, made, "x", "y", expires_at=TOMORROW)
    begin = partial(transactions.delete_list, number=number, list_id=made)
    assert live.found.store.write_now([begin]) == [False]
    assert "vip" not in await by_name(admin)
    assert live.count(LIST_ENTRIES) == 2
    await add(admin, await create(admin), "z")
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    with live.found.store.read() as snapshot:
        assert [entry.value for _, entry in snapshot.scan(LIST_ENTRIES)] == ["z"]
        assert snapshot.count(LIST_EXPIRIES) == 0


# What rules see


async def test_an_address_is_in_a_list_where_one_of_its_networks_is(live: Live, admin: Automation):
    made = await create(admin, "networks", "address")
    await add(admin, made, "198.51.100.0/24", "203.0.113.7", "2001:db8::/32", "10.0.0.0/8")
    inside = ("198.51.100.255", "203.0.113.7", "2001:DB8:ffff::1", "10.9.8.7", "::ffff:10.1.1.1")
    outside = ("198.51.101.0", "203.0.113.6", "2001:db9::1", "11.0.0.0", "::a00:1", "shop", "", None)
    assert [holds(live, "networks", value) for value in inside] == [True] * 5
    assert [holds(live, "networks", value) for value in outside] == [False] * 8
    await admin("DELETE", f"/lists/{made}/entries", {"values": ["10.0.0.0/8", "198.51.100.7/24"]})
    assert [holds(live, "networks", value) for value in inside] == [False, True, True, False, False]


async def test_a_question_reads_no_row_of_an_empty_list_and_else_two_and_one_for_each_length_of_networks(
    live: Live, admin: Automation
):
    made = await create(admin)
    networks = (await by_name(admin))["blocked_addresses"]["id"]
    reads: Counter[str] = Counter()
    assert not holds(live, "vip", "user-1", reads)
    assert not holds(live, "blocked_addresses", "203.0.113.7", reads)
    assert not reads
    await add(admin, made, *(f"user-{number}" for number in range(100)))
    await add(
        admin, networks, *(f"198.51.{number}.0/24" for number in range(200)), "10.0.0.0/8", "::1", "2001:db8::/32"
    )
    for name, value, rows in (
        ("vip", None, 0), ("vip", "nobody", 1), ("vip", "user-1", 1), ("blocked_addresses", "203.0.113.7", 2),
        ("blocked_addresses", "2001:db9::1", 2), ("blocked_addresses", "shop", 0),
    ):  # fmt: skip
        reads.clear()
        holds(live, name, value, reads)
        assert reads == Counter(filled_lists=1, listed=rows)


async def test_lists_of_one_kind_share_a_row_of_a_value(live: Live, admin: Automation):
    """However many lists rules name; a list of another kind that has the same text is not asked for it."""
    named = {kind: await create(admin, f"some_{kind}", kind) for kind in ("account", "tag")}
    more = [await create(admin, f"vip_{at}") for at in range(5)]
    await add(admin, more[1], "user-1")
    await add(admin, more[3], "user-1", expires_at=TOMORROW)
    await add(admin, more[4], "user-2")
    await add(admin, named["account"], "user-3")
    await add(admin, named["tag"], "user-1")
    reads: Counter[str] = Counter()
    number = live.organization.number

    def lists_of_user(name: str) -> list[str]:
        with live.found.store.read() as snapshot:
            assert list(violations(snapshot)) == []
            counted, values = CountedReads(snapshot, reads), {"account": name}
            asked = AskedLists(counted, organization(snapshot, number), values.get, live.clock.now_ms)
            return [found for found in asked_for if asked(found)]

    asked_for = [*(f"vip_{at}" for at in range(5)), "some_account", "some_tag", "unknown"]
    assert lists_of_user("user-1") == ["vip_1", "vip_3"]
    assert reads == Counter(filled_lists=1, listed=1)
    live.clock.now_ms += DAY_MS
    assert lists_of_user("user-1") == ["vip_1"]
    assert (await admin("DELETE", f"/lists/{more[1]}")).status_code == 204
    assert lists_of_user("user-1") == []
    await add(admin, more[3], "user-1")
    assert lists_of_user("user-1") == ["vip_3"]
    assert (await admin("DELETE", "/accounts/user-1")).status_code == 204
    assert lists_of_user("user-1") == []
    assert lists_of_user("user-3") == ["some_account"]


@pytest.mark.slow(0.4)
async def test_a_list_counts_from_the_next_request_on_wherever_it_was_changed(live: Live, admin: Automation):
    """Commands are processes of their own, as other workers are."""
    organization = live.organization.id
    listed = (await by_name(admin))["blocked_accounts"]["id"]
    await add(admin, listed, "a")
    assert holds(live, "blocked_accounts", "a")
    shown = await run_beside("list", "export", organization, "blocked_accounts", *live.options)
    assert shown.out == "value,note,expires_at\na,,\n"
    file = Path(str(live.found.directory)) / "entries.csv"
    file.write_text("b\n")
    assert (await run_beside("list", "import", organization, "blocked_accounts", file, *live.options)).status == 0
    assert holds(live, "blocked_accounts", "b")
    assert await values_of(admin, listed) == ["a", "b"]
    assert (await admin("DELETE", f"/lists/{listed}/entries", {"values": ["a"]})).status_code == 204
    assert not holds(live, "blocked_accounts", "a")


async def test_an_erased_visitor_is_in_no_list(live: Live, admin: Automation):
    """Decisions 7.6: anybody who is known only by a list is erased as well."""
    visitor = (await visit(live, live.issue()[1], report())).json()["visitor_id"]
    first, made = (await by_name(admin))["blocked_visitors"]["id"], await create(admin, "those", "visitor")
    accounts = await create(admin, "accounts")
    await add(admin, first, visitor, VISITOR)
    await add(admin, made, visitor, VISITOR, note="seen twice", expires_at=TOMORROW)
    await add(admin, accounts, visitor)
    other = Automation(live, organization=live.new_organization())
    await add(other, (await by_name(other))["blocked_visitors"]["id"], VISITOR)
    for erased in (visitor, VISITOR):
        assert (await admin("DELETE", f"/visitors/{erased}")).status_code == 204
        assert_error(await admin("DELETE", f"/visitors/{erased}"), 404, "not_found")
        assert (holds(live, "blocked_visitors", erased), holds(live, "those", erased)) == (False, False)
    assert {name: each["entries"] for name, each in (await by_name(admin)).items() if each["entries"]} == {
        "accounts": 1
    }
    assert (await by_name(other))["blocked_visitors"]["entries"] == 1


async def test_the_audit_log_counts_entries_and_names_none(live: Live, admin: Automation):
    made = await create(admin)
    await add(admin, made, "user-8271", "b", note="chargeback")
    await admin("DELETE", f"/lists/{made}/entries", {"values": ["user-8271"]})
    found = (await live.client.get("/console/api/audit", headers={"x-api-key": admin.secret})).json()["records"]
    assert [(row["action"], row["subject"], row["change"]) for row in found[:3]] == [
        ("removeListEntries", made, {"values": 1}),
        ("addListEntries", made, {"entries": 2}),
        ("createList", made, {"name": "vip", "kind": "account"}),
    ]


async def test_lists_are_served_to_the_console_too(live: Live, admin: Automation):
    path = f"/console/api/management/organizations/{live.organization.id}/lists"
    found = await live.client.get(path, headers={"x-api-key": admin.secret})
    assert {each["name"] for each in found.json()["lists"]} == set(FIRST_LISTS)


# Decisions 10 and 12.1: `svc list`


@pytest.fixture
def org(run: Run) -> str:
    return run("org", "create", "Shop", "--json").json["organization_id"]


def test_lists_are_created_listed_and_deleted(run: Run, org: str):
    made = run("list", "create", org, "vip", "--kind", "account", "--json").json
    assert (made["name"], made["kind"], made["entries"]) == ("vip", "account", 0)
    listed = run("list", "list", org, "--json").json["lists"]
    assert [each["name"] for each in listed] == sorted([*FIRST_LISTS, "vip"])
    assert made in listed
    assert "blocked_addresses  address" in run("list", "list", org).out
    run("list", "create", org, "vip", "--kind", "tag").assert_refused("vip", "of this name")
    run("list", "create", org, "V I P", "--kind", "tag").assert_refused("'V I P'", "lower-case")
    run("list", "create", org, "vip", "--kind", "agent").assert_usage()
    run("list", "delete", org, "vip").assert_refused("--yes")
    run("list", "delete", org, "trusted_visitors", "--yes").assert_refused("trusted_visitors", "six")
    deleted = run("list", "delete", org, "vip", "--yes", "--json").json
    assert (deleted["id"], deleted["status"]) == (made["id"], "deleted")
    run("list", "delete", org, "vip", "--yes").assert_refused("no list 'vip'", f"svc list list {org}")
    run("list", "export", org, "vip").assert_refused("no list 'vip'")


def test_entries_are_imported_and_exported_as_csv(run: Run, org: str, tmp_path: Path):
    run("list", "create", org, "orders", "--kind", "tag")
    file, again = tmp_path / "in.csv", tmp_path / "again.csv"
    file.write_text(
        'value,note,expires_at\r\n"a ""b"", c",=1+1,\r\n\r\nplain\r\n"two\nlines",x,2099-01-01T00:00:00+01:00\r\n',
        encoding="utf-8-sig",
        newline="",
    )
    assert run("list", "import", org, "orders", file, "--json").json | {"id": ""} == {
        "id": "",
        "name": "orders",
        "added": 3,
        "replaced": 0,
    }
    exported = run("list", "export", org, "orders").out
    assert exported == (
        'value,note,expires_at\n"a ""b"", c",\'=1+1,\nplain,,\n"two\nlines",x,2098-12-31T23:00:00.000Z\n'
    )
    again.write_text(exported)
    assert run("list", "import", org, "orders", again, "--json").json["replaced"] == 3
    assert run("list", "export", org, "orders").out == exported
    assert run("list", "export", org, "orders", "--json").json["entries"][0]["note"] == "=1+1"
    assert run("list", "export", org, "orders", "--json").json["entries"][1] == {
        "value": "plain",
        "note": "",
        "expires_at": None,
    }


@pytest.mark.parametrize(
    ("lines", "number", "says"),
    [
        (["10.0.0.0/8", "shop"], 2, "'shop' is not a value of a list of kind address"),
        (["value,note,expires_at", "10.0.0.0/8", "10.0.0.1,x,tomorrow"], 3, "'tomorrow' is not a time"),
        (["10.0.0.1", "10.0.0.2,,2020-01-01T00:00:00Z"], 2, "2020-01-01T00:00:00Z is in the past"),
        (['10.0.0.1,"two', 'lines"', "10.0.0.2," + "x" * 501], 3, "more than 500"),
        (["10.0.0.1,a,,b"], 1, "4 columns"),
        (["10.0.0.1", '"10.0.0.2'], 2, "unexpected end"),
        (["10.0.0.1", "value,note,expires_at"], 2, "a header that is not the first line"),
    ],
)
def test_a_bad_line_names_its_number_and_changes_nothing(
    run: Run, org: str, tmp_path: Path, lines: list[str], number: int, says: str
):
    file = tmp_path / "in.csv"
    file.write_text("\n".join(lines))
    run("list", "import", org, "blocked_addresses", file).assert_refused(f"line {number}:", says, "nothing was added")
    assert run("list", "export", org, "blocked_addresses", "--json").json["entries"] == []
    file.write_bytes(b"10.0.0.1\n\xff\n")
    run("list", "import", org, "blocked_addresses", file).assert_refused("UTF-8 text (line 2)")


FILES = {
    "semicolons": ("value;note;expires_at\nuser-1;chargeback;2099-01-05T10:00:00Z\nuser-2;;\n", ["user-1", "user-2"]),
    "tabs": ("Value\tNote\nuser-1\tchargeback\n", ["user-1"]),
    "another_case": ("Value,Note,Expires_At\nuser-1,chargeback\n", ["user-1"]),
    "blanks": ("value, note, expires_at\nuser-1, chargeback\n", ["user-1"]),
    "another_order": ("note,value\nchargeback,user-1\n", ["user-1"]),
    "quoted": ('"Value";"Note"\n"user;1";"x"\n', ["user;1"]),
    "no_header": ("user-1,chargeback\n", ["user-1"]),
}


@pytest.mark.parametrize("name", FILES)
def test_separator_and_header_of_a_file_are_found(run: Run, org: str, tmp_path: Path, name: str):
    """A dry run says how the file is read, and adds nothing."""
    text, values = FILES[name]
    file = tmp_path / "in.csv"
    file.write_text(text)
    dry = run("list", "import", org, "blocked_accounts", file, "--dry-run", "--json").json
    assert [row["value"] for row in dry["first"]] == values
    assert dry["entries"] == len(values)
    assert run("list", "export", org, "blocked_accounts", "--json").json["entries"] == []
    assert run("audit", "--action", "svc list import", "--json").json["records"] == []
    run("list", "import", org, "blocked_accounts", file, "--json")
    entries = run("list", "export", org, "blocked_accounts", "--json").json["entries"]
    assert sorted(entry["value"] for entry in entries) == values
    if name != "quoted":
        assert entries[0]["note"] == "chargeback"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("user-1;chargeback\n", "'user-1;chargeback' has a semicolon"),
        ("value\nuser-1\tchargeback\n", "line 2:"),
        ("Value;Reason\nuser-1;chargeback\n", "'reason' is not a column"),
        ("User ID\nuser-1\n", "it looks like a header"),
        ("value,note\nuser-1,x\nvalue,note\n", "line 3: a header that is not the first line"),
    ],
)
def test_a_file_that_is_not_clear_is_refused_and_adds_nothing(run: Run, org: str, tmp_path: Path, text: str, says: str):
    file = tmp_path / "in.csv"
    file.write_text(text)
    for options in ((), ("--dry-run",), ("--yes",)):
        run("list", "import", org, "blocked_accounts", file, *options).assert_refused(says, "nothing was added")
    assert run("list", "export", org, "blocked_accounts", "--json").json["entries"] == []


@pytest.mark.parametrize("value", ["1.23457E+15", "1,23457E+15", "1E+15"])
def test_an_import_warns_of_ids_that_a_spreadsheet_has_shortened(run: Run, org: str, tmp_path: Path, value: str):
    """They may be right, and are what an export has then."""
    file = tmp_path / "in.csv"
    file.write_text(f'value;note\nuser-1;x\n{value};x\n"{value}";y\n')
    for options in (("--dry-run",), ("--json",)):
        ran = run("list", "import", org, "blocked_accounts", file, *options)
        assert ran.status == 0
        assert "Warning: 2 of 3 values look like long numbers" in ran.err
        assert f"such as {value} (line 3)" in ran.err
    file.write_text("value\n1E5\n12345678901234567890\n1.2E+1x\n")
    assert "spreadsheet" not in run("list", "import", org, "blocked_accounts", file).err


def test_a_separator_may_be_named(run: Run, org: str, tmp_path: Path):
    file = tmp_path / "in.csv"
    file.write_text("user-1;chargeback\n")
    for separator, value in (("semicolon", "user-1"), ("comma", "user-1;chargeback")):
        run("list", "import", org, "blocked_accounts", file, "--separator", separator)
        entries = run("list", "export", org, "blocked_accounts", "--json").json["entries"]
        assert value in [entry["value"] for entry in entries]


@pytest.mark.parametrize(("answer", "added"), [("y\n", 6), ("n\n", 0)])
def test_on_a_terminal_the_first_entries_are_shown_before_they_are_added(
    run: Run, org: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, added: int
):
    file = tmp_path / "in.csv"
    file.write_text("value;note\n" + "".join(f"user-{number};x\n" for number in range(6)))
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    ran = run("list", "import", org, "blocked_accounts", file)
    assert "separator  semicolon" in ran.out
    assert "user-4" in ran.out
    assert "user-5" not in ran.out
    assert "This adds 6 entries to blocked_accounts." in ran.err
    assert len(run("list", "export", org, "blocked_accounts", "--json").json["entries"]) == added
    assert ran.status == (0 if added else 1)
    silent = run("list", "import", org, "blocked_accounts", file, "--yes")
    assert (silent.status, "separator" in silent.out) == (0, False)


class Terminal(io.StringIO):
    """Somebody who answers."""

    name = "<stdin>"

    def isatty(self) -> bool:
        return True


@pytest.mark.slow(0.3)
def test_a_large_file_is_imported_whole_or_not_at_all(run: Run, org: str, tmp_path: Path):
    run("list", "create", org, "vip", "--kind", "account")
    file = tmp_path / "in.csv"
    file.write_text("".join(f"user-{number}\n" for number in range(2 * MAX_AT_ONCE + 1)))
    assert run("list", "import", org, "vip", file, "--json").json["added"] == 2 * MAX_AT_ONCE + 1
    file.write_text("".join(f"other-{number}\n" for number in range(MAX_ENTRIES - 2 * MAX_AT_ONCE)))
    run("list", "import", org, "vip", file).assert_refused("at most 100,000 entries", "nothing was added")
    listed = run("list", "list", org, "--json").json["lists"]
    assert {each["name"]: each["entries"] for each in listed}["vip"] == 2 * MAX_AT_ONCE + 1
    records = run("audit", "--action", "svc list import", "--json").json["records"]
    assert [record["change"] for record in records] == [{"entries": 2 * MAX_AT_ONCE + 1}]


async def test_an_account_that_is_erased_leaves_all_lists(live: Live, admin: Automation):
    """Decisions 11.6: also where nothing but a list knows it."""
    own = await create(admin, "vip", "account")
    await add(admin, own, "user-1", "user-2")
    assert (await admin("DELETE", "/accounts/user-1")).status_code == 204
    assert [entry["value"] for entry in (await admin("GET", f"/lists/{own}/entries")).json()["entries"]] == ["user-2"]
    assert_error(await admin("DELETE", "/accounts/user-1"), 404, "not_found")


# Which lists have entries, by the organization's row


def named(live: Live) -> list[str]:
    """The lists that have entries by the row, after a check of the store."""
    with live.found.store.read() as snapshot:
        assert list(violations(snapshot)) == []
        return [*organization(snapshot, live.organization.number).filled_lists]


@pytest.mark.slow(0.5)
async def test_the_organization_names_the_lists_that_have_entries(live: Live, admin: Automation):
    """Whatever fills or empties them."""
    made, blocked = await create(admin), (await by_name(admin))["blocked_visitors"]["id"]
    assert named(live) == []
    await add(admin, made, "user-1", "user-2")
    await add(admin, blocked, VISITOR)
    assert named(live) == ["blocked_visitors", "vip"]
    assert (await admin("PATCH", f"/lists/{made}", {"name": "best"})).status_code == 200
    assert named(live) == ["best", "blocked_visitors"]
    await admin("DELETE", f"/lists/{made}/entries", {"values": ["user-1"]})
    assert named(live) == ["best", "blocked_visitors"]
    assert (await admin("DELETE", f"/visitors/{VISITOR}")).status_code == 204
    assert named(live) == ["best"]
    await admin("DELETE", f"/lists/{made}/entries", {"values": ["user-2"]})
    assert named(live) == []
    await add(admin, made, "user-1", expires_at=TOMORROW)
    live.clock.now_ms += DAY_MS
    assert named(live) == ["best"], "what has expired and is stored counts"
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    assert named(live) == []
    await add(admin, made, "user-1")
    assert (await admin("DELETE", f"/lists/{made}")).status_code == 204
    assert named(live) == []
    assert not holds(live, "best", "user-1")


async def test_a_list_whose_deletion_is_interrupted_is_named_no_more(live: Live, admin: Automation):
    made, number = await create(admin), live.organization.number
    await add(admin, made, *(f"user-{at}" for at in range(items_of_step(ROWS_OF_AN_ENTRY) + 1)))
    assert live.found.store.write_now([partial(transactions.delete_list, number=number, list_id=made)]) == [False]
    assert named(live) == []
    again = await create(admin)
    assert not holds(live, "vip", "user-0")
    await add(admin, again, "user-1")
    assert named(live) == ["vip"]
    assert [holds(live, "vip", f"user-{at}") for at in range(3)] == [False, True, False]


async def test_an_entry_that_comes_between_the_phases_of_a_group_is_seen(live: Live, admin: Automation):
    """The first entry of a list, which the snapshot of the first phase does not name."""
    number, store = live.organization.number, live.found.store
    made = await create(admin)

    def asked(transaction: Transaction) -> bool:
        owner = organization(transaction, number)
        return AskedLists(transaction, owner, lambda _: "user-1", live.clock.now_ms)("vip")

    group = Group([asked])
    with store.read() as snapshot:
        assert group.run(snapshot.reader).outcomes == [False]
    await add(admin, made, "user-1")
    settled = store.engine.write(group.settle)
    assert (settled.outcomes, settled.repeated) == ([True], [0])


async def test_the_entries_of_some_visitors_and_accounts_are_read_at_once(live: Live):
    admin = Automation(live)
    lists = {each["name"]: each["id"] for each in (await admin("GET", "/lists")).json()["lists"]}
    for name, value in (("blocked_accounts", "a"), ("trusted_accounts", "b"), ("blocked_visitors", "0" * 20)):
        given = {"entries": [{"value": value, "note": name}]}
        assert (await admin("POST", f"/lists/{lists[name]}/entries", given)).status_code == 200
    path, key = "/console/api/standing", {"x-api-key": admin.secret}
    asked = {"visitors": ["0" * 20, "1" * 20], "accounts": ["a", "b", "c"]}
    seen = (await live.client.post(path, json=asked, headers=key)).json()["entries"]
    assert sorted((each["list"], each["list_id"], each["entry"]["value"], each["entry"]["note"]) for each in seen) == [
        ("blocked_accounts", lists["blocked_accounts"], "a", "blocked_accounts"),
        ("blocked_visitors", lists["blocked_visitors"], "0" * 20, "blocked_visitors"),
        ("trusted_accounts", lists["trusted_accounts"], "b", "trusted_accounts"),
    ]
    assert (await live.client.post(path, json={}, headers=key)).json() == {"entries": []}
    vip = (await admin("POST", "/lists", {"name": "vip", "kind": "account"})).json()["id"]
    for value, expires_at in (("a", None), ("c", "2026-01-05T09:00:00Z")):
        given = {"entries": [{"value": value, "expires_at": expires_at}]}
        assert (await admin("POST", f"/lists/{vip}/entries", given)).status_code == 200
    live.clock.advance(hours=24 * 30)
    admin = Automation(live)
    for list_id, values in ((vip, ["a"]), (lists["trusted_accounts"], ["b"]), (lists["blocked_addresses"], [])):
        seen = (await live.client.post(path, json={**asked, "list_id": list_id}, headers=key)).json()["entries"]
        assert [(each["list_id"], each["entry"]["value"]) for each in seen] == [(list_id, value) for value in values]
    unknown = await live.client.post(path, json={**asked, "list_id": "lst_x"}, headers=key)
    assert_invalid(unknown, "list_id", "invalid_value")
    assert_invalid(await live.client.post(path, json={"accounts": ["a"] * 101}, headers=key), "accounts", "too_long")


async def test_a_list_says_how_many_entries_begin_so(live: Live, admin: Automation):
    made = (await admin("POST", "/lists", {"name": "vip", "kind": "account"})).json()["id"]
    for value, expires_at in (("user-1", None), ("user-2", None), ("anna", None), ("user-3", "2026-01-01T00:00:01Z")):
        given = {"entries": [{"value": value, "expires_at": expires_at}]}
        assert (await admin("POST", f"/lists/{made}/entries", given)).status_code == 200
    live.clock.advance(seconds=2)
    path, key = f"/console/api/lists/{made}/count", {"x-api-key": admin.secret}
    for query, count in (("", 3), ("?q=user-", 2), ("?q=x", 0)):
        assert (await live.client.get(path + query, headers=key)).json() == {"count": count, "is_exact": True}
    assert_error(await live.client.get(path.replace(made, "lst_x"), headers=key), 404, "not_found")


@pytest.mark.parametrize("account", ["user-8271", "ü" * 200, "日" * 256], ids=["short", "cut", "beyond a key"])
async def test_the_export_of_an_account_has_its_entries_however_long_its_id_is(
    live: Live, admin: Automation, account: str
):
    """Keys of entries have the beginning of a long value, and a digest."""
    await add(admin, await create(admin), account, expires_at=TOMORROW)
    exported = SubjectRows(cast("ReadOnlyStore", live.found.store), live.organization.number, "account", account)
    rows = {row.table.name: row.value for row in exported.of_subject()}
    assert {LIST_ENTRIES.name, LISTED.name, LIST_EXPIRIES.name} <= rows.keys()
    assert rows[LIST_ENTRIES.name].value == account
