"""Decisions 13.1: what a rule matched is a list: `rule` and `shadow` of the lists of events, and of exports."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import random
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio
from svc_client import AsyncClient

from svc.features.checks.invariants import violations
from svc.features.retention.sweeper import sweep
from svc.identify.index.queries import Scope
from svc.identify.indexing.jobs import step
from svc.identify.model import Decision, ShadowMatch
from svc.identify.queries.events import put_event
from svc.identify.recording.visitors import counted
from svc.identify.records import RETENTION_MS
from svc.identify.tables import EVENT_SEGMENTS, EVENT_TAIL
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store
from svc.kernel.tenants.jobs import keep
from svc.kernel.values.fields import ENVIRONMENTS
from svc.world import World
from tests.spec.automation import Automation
from tests.spec.commands import Run
from tests.spec.console import Console
from tests.spec.responses import act, assert_invalid
from tests.spec.test_events import get, listed, secret_key
from tests.spec.test_filters import follow
from tests.spec.test_parquet import parquet_rows
from tests.spec.test_rules import Shop
from tests.store.test_events import event
from tests.support.live import Live, live_service, succeeded
from tests.support.worlds import EPOCH_MS

OF_A = {"name": "Of a", "condition": 'account.id == "a"', "action": "review"}
OF_ANY = {"name": "Of any", "condition": 'present("account.id")', "action": "block", "mode": "shadow"}
UNKNOWN = "rul_" + "0" * 20
FORMS = ("jsonl", "csv", *(["parquet"] if importlib.util.find_spec("pyarrow") else []))


@pytest.fixture
async def shop(live: Live) -> Shop:
    public, secret = live.issue(environment="production")[1], secret_key(live, "production")
    return Shop(live, public, secret, live.issue("management")[1])


async def decided(shop: Shop) -> tuple[str, str, list[str]]:
    """Ids of the rules `OF_A` and `OF_ANY`; and the request ids of events of the accounts a, a, b and of none, oldest
    first.
    """
    answer = succeeded(await shop.save(OF_A, OF_ANY))
    made: list[str] = []
    for account in ("a", "a", "b", None):
        shop.live.clock.now_ms += 1000
        made.append((await act(shop.live, shop.public, account))["request_id"])
    of_a, of_any = (rule["id"] for rule in answer["rules"])
    return of_a, of_any, made


def index(store: Store, number: int = 1) -> None:
    """Put what is old enough into segments."""

    def job(transaction: Transaction) -> None:
        for environment in range(len(ENVIRONMENTS)):
            while step(transaction, Scope(number, environment), 2**63):
                pass

    assert store.write_now([job]) == [None]


async def test_events_are_listed_by_the_rule_that_decided_them(shop: Shop):
    of_a, of_any, made = await decided(shop)
    assert await listed(shop.live, shop.secret, rule=of_a) == [made[1], made[0]]
    assert await listed(shop.live, shop.secret, rule=of_a, shadow="false") == [made[1], made[0]]
    assert await listed(shop.live, shop.secret, rule=of_any) == [], "in shadow mode it decides nothing"
    assert await listed(shop.live, shop.secret, rule=UNKNOWN) == []


async def test_events_are_listed_by_a_rule_that_matched_in_shadow_mode(shop: Shop):
    of_a, of_any, made = await decided(shop)
    assert await listed(shop.live, shop.secret, rule=of_any, shadow="true") == [made[2], made[1], made[0]]
    assert await listed(shop.live, shop.secret, rule=of_a, shadow="true") == [], "it decided them"
    assert await listed(shop.live, shop.secret, rule=UNKNOWN, shadow="true") == []


async def test_a_count_of_a_rule_is_as_many_events_as_its_list_has(shop: Shop):
    await decided(shop)
    for rule in (await shop.rules())["rules"]:
        query = {"rule": rule["id"]} | ({"shadow": "true"} if rule["mode"] == "shadow" else {})
        assert len(await listed(shop.live, shop.secret, **query)) == rule["counts"]["matched_24h"] > 0


async def test_a_count_of_a_rule_is_of_the_hours_of_its_list(shop: Shop):
    """Those of the console begin on a full hour: 24 hours of at least as much, 30 days of no more than can be listed.
    An event of the last 24 hours was left out, and one of before the 30 days was not.
    """
    (rule,) = succeeded(await shop.save(OF_A))["rules"]
    for _ in range(3):
        shop.live.clock.advance(hours=0.5)
        await act(shop.live, shop.public, "a")
    console = Console(shop.live)

    async def listed_since(at: str) -> int:
        return (await console.seen("/events/count", environment="production", rule=rule["id"], from_=at))["count"]

    shop.live.clock.advance(hours=23.25)  # 00:45 of the next day
    counts = (await shop.rules())["rules"][0]["counts"]
    assert (counts["matched_24h"], counts["matched_30d"]) == (await listed_since("2026-01-01T00:00:00Z"), 3) == (3, 3)
    shop.live.clock.advance(hours=29 * 24)
    counts = (await shop.rules())["rules"][0]["counts"]
    assert (counts["matched_24h"], counts["matched_30d"]) == (0, await listed_since("2026-01-01T01:00:00Z")) == (0, 2)


async def test_a_rule_that_was_deleted_or_changed_its_mode_keeps_its_list(shop: Shop):
    of_a, of_any, made = await decided(shop)
    assert (await shop.save(OF_ANY | {"id": of_any, "mode": "active"})).status_code == 200
    answer = await act(shop.live, shop.public, "c")
    assert await listed(shop.live, shop.secret, rule=of_a) == [made[1], made[0]]
    assert await listed(shop.live, shop.secret, rule=of_any) == [answer["request_id"]]
    assert await listed(shop.live, shop.secret, rule=of_any, shadow="true") == [made[2], made[1], made[0]]


@pytest.mark.slow(0.4)
async def test_a_rule_is_combined_with_other_filters_and_followed_by_cursors(shop: Shop):
    of_a, of_any, made = await decided(shop)
    for _ in range(2):  # in the tail, and in segments
        assert await listed(shop.live, shop.secret, rule=of_a, action="log_in") == []
        assert await listed(shop.live, shop.secret, rule=of_any, shadow="true", account_id="b") == [made[2]]
        assert await listed(shop.live, shop.secret, rule=of_any, shadow="true", decision="review") == made[1::-1]
        assert await follow(shop.live, shop.secret, limit=1, rule=of_a) == [[made[1]], [made[0]]]
        pages = await follow(shop.live, shop.secret, limit=2, rule=of_any, shadow="true")
        assert pages == [[made[2], made[1]], [made[0]]]
        made += [(await act(shop.live, shop.public))["request_id"] for _ in range(64 - len(made))]
        index(shop.live.found.store)
    assert shop.live.count(EVENT_SEGMENTS)
    first = (await get(shop.live, shop.secret, limit=1, rule=of_a)).json()["next_cursor"]
    for other in ({}, {"rule": of_any}, {"rule": of_a, "shadow": "true"}):
        assert_invalid(await get(shop.live, shop.secret, cursor=first, **other), "cursor", "invalid_cursor", "query")


async def test_a_rule_that_is_no_id_is_refused(shop: Shop):
    for rule in ("", "a", "Of a", "rul_", "rul_" + "0" * 19, "rul_" + "0" * 21, "RUL_" + "0" * 20, "rul_" + "é" * 20):
        for shadow in ({}, {"shadow": "true"}):
            assert_invalid(await get(shop.live, shop.secret, rule=rule, **shadow), "rule", "invalid_value", "query")


async def test_shadow_needs_a_rule_and_is_a_boolean(shop: Shop):
    assert_invalid(await get(shop.live, shop.secret, shadow="true"), "rule", "required", "query")
    assert_invalid(await get(shop.live, shop.secret, rule=UNKNOWN, shadow="perhaps"), "shadow", "wrong_type", "query")
    console = Console(shop.live)
    for path in ("/events", "/events/export", "/stream"):
        assert_invalid(await console.get(path, shadow="true"), "rule", "required", "query")
        assert_invalid(await console.get(path, rule="a"), "rule", "invalid_value", "query")


async def test_the_feed_has_no_rule(shop: Shop):
    """Decisions 19."""
    of_a, _, _ = await decided(shop)
    for shadow in ({}, {"shadow": "true"}):
        refused = await get(shop.live, shop.secret, order="oldest", rule=of_a, **shadow)
        assert refused.status_code == 422
        assert [detail["field"] for detail in refused.json()["error"]["details"]] == ["rule"]


async def test_the_console_lists_and_exports_by_rule(shop: Shop):
    of_a, of_any, made = await decided(shop)
    console = Console(shop.live)
    for query, expected in (
        ({"rule": of_a}, made[1::-1]),
        ({"rule": of_any, "shadow": "true"}, made[2::-1]),
        ({"rule": UNKNOWN}, []),
    ):
        rows = (await console.seen("/events", **query))["rows"]
        assert [row["request_id"] for row in rows] == expected
        table = (await console.get("/events/export", **query)).text
        assert [row["request_id"] for row in csv.DictReader(io.StringIO(table))] == expected
        text = (await console.get("/events/export", format="jsonl", **query)).text
        assert [json.loads(line)["request_id"] for line in text.splitlines()] == expected


async def test_the_library_lists_by_rule(shop: Shop):
    of_a, of_any, made = await decided(shop)
    async with AsyncClient(shop.live.url, shop.secret) as client:
        assert [row["request_id"] async for row in client.iterate_events(rule=of_a, limit=1)] == made[1::-1]
        found = await client.list_events(rule=of_any, shadow=True, account_id="b")
    assert [row["request_id"] for row in found["rows"]] == made[2:3]


@pytest.mark.slow(0.2)
async def test_a_rule_of_another_organization_lists_nothing(shop: Shop):
    """Also where both have an event that a rule with this id decided, as those of the start."""
    of_a, of_any, _ = await decided(shop)
    other = shop.live.new_organization()
    stranger = secret_key(shop.live, "production", organization=other.number)
    console = Console(shop.live, organization=other)
    for query in ({"rule": of_a}, {"rule": of_any, "shadow": "true"}):
        assert await listed(shop.live, stranger, **query) == []
        assert (await console.seen("/events", **query))["rows"] == []
        assert (await console.get("/events/export", format="jsonl", **query)).text == ""
        assert await listed(shop.live, secret_key(shop.live, "staging"), **query) == [], "nor in another environment"


async def test_erased_events_are_in_no_list_of_a_rule(shop: Shop):
    of_a, of_any, made = await decided(shop)
    visitor_id = (await get(shop.live, shop.secret, rule=of_a)).json()["rows"][0]["visitor_id"]
    admin = Automation(shop.live)
    assert (await admin("DELETE", "/accounts/b")).status_code == 204
    assert await listed(shop.live, shop.secret, rule=of_any, shadow="true") == made[2::-1], "without their account"
    assert (await admin("DELETE", f"/visitors/{visitor_id}")).status_code == 204
    for query in ({"rule": of_a}, {"rule": of_any, "shadow": "true"}):
        assert await listed(shop.live, shop.secret, **query) == []
    with shop.live.found.store.read() as snapshot:
        assert list(violations(snapshot)) == []


async def test_retention_takes_events_out_of_the_list_of_a_rule(shop: Shop):
    of_a, of_any, _ = await decided(shop)
    shop.live.clock.now_ms += RETENTION_MS + 5000
    store = shop.live.found.store
    await sweep(store, shop.live.clock.now_ms, 365)
    for query in ({"rule": of_a}, {"rule": of_any, "shadow": "true"}):
        assert await listed(shop.live, shop.secret, **query) == []
    with store.read() as snapshot:
        assert snapshot.count(EVENT_TAIL) == 0
        assert list(violations(snapshot)) == []


MANY = 20_000
EVERY = 4_000
"""One event in so many is decided by one rule and matched by another."""


def fill(store: Store, number: int) -> list[str]:
    """`MANY` events of development, which need no ledger; the request ids of those that rules matched, oldest first."""
    chance = random.Random(31)
    others: dict[str, Any] = {
        "environment": "development",
        "signals": (),
        "has_document": False,
        "shadow": (ShadowMatch("rul_" + "1" * 20, "Common", "block"),),
    }
    rare = others | {
        "decision": Decision("review", "rul_" + "2" * 20, "Rare"),
        "shadow": (*others["shadow"], ShadowMatch("rul_" + "3" * 20, "Rare shadow", "block")),
    }
    made: list[str] = []

    def job(transaction: Transaction) -> None:
        for at in range(MANY):
            request_id = UUID(int=at + 1)
            is_rare = at % EVERY == 0
            put_event(transaction, number, request_id, event(chance, EPOCH_MS + at, **(rare if is_rare else others)))
            if is_rare:
                made.append(str(request_id))
        keep(transaction, number, counted(transaction, number))

    assert store.write_now([job]) == [None]
    return made


PATIENCE_S = 60
"""Of the client: a busy database takes seconds for a page that looks at 20,000 keys."""


@pytest.mark.slow(4)
async def test_among_20_000_events_a_page_of_a_rule_is_bounded_work_and_the_pages_are_all(live: Live, server_key: str):
    """Decisions 13.1, 7.1: where all are in the tail, and in segments; no more than 20,000 keys are looked at, and no
    more than 250 between two turns.
    """
    live.client.timeout = PATIENCE_S
    live.clock.now_ms += MANY
    made = fill(live.found.store, live.organization.number)
    for is_indexed in (False, True):
        if is_indexed:
            index(live.found.store, live.organization.number)
        for query in ({"rule": "rul_" + "2" * 20}, {"rule": "rul_" + "3" * 20, "shadow": "true"}):
            pages = await follow(live, server_key, limit=10, **query)
            assert [row for page in pages for row in page] == made[::-1], query
            assert len(pages) <= (1 if is_indexed else 2)
        common = {"rule": "rul_" + "1" * 20, "shadow": "true"}
        assert len(await listed(live, server_key, limit=200, **common)) == 200
        assert await listed(live, server_key, rule=UNKNOWN) == []
    file = await Console(live).get("/events/export", environment="development", format="jsonl", **common)
    assert file.text.count("\n") == MANY


async def left_behind(directory: Path) -> tuple[str, str, str, list[str]]:
    """What a service leaves: organization, `decided`."""
    async with live_service(directory, now_ms=World.real().now_ms() - 3_600_000) as live:
        public, secret = live.issue(environment="production")[1], secret_key(live, "production")
        made = await decided(Shop(live, public, secret, live.issue("management")[1]))
        return live.organization.id, *made


@pytest.mark.slow(0.6)
def test_commands_list_and_export_by_rule(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    organization, of_a, of_any, made = trio.run(left_behind, tmp_path / "data")
    monkeypatch.setenv("SVC_DATA", str(tmp_path / "data"))
    for options, expected in (
        (("--rule", of_a), made[:2]),
        (("--rule", of_any), []),
        (("--rule", of_any, "--shadow"), made[:3]),
        (("--rule", of_any, "--shadow", "--account", "b"), made[2:3]),
        (("--rule", UNKNOWN), []),
    ):
        rows = run("events", "list", organization, *options, "--json").json["events"]
        assert [row["request_id"] for row in rows] == expected[::-1]
        for form in FORMS:
            file = tmp_path / f"events.{form}"
            assert run("export", "events", organization, *options, "--format", form, "--output", file).status == 0
            assert exported(file, form) == expected
    for wrong in (("--shadow",), ("--rule", "Of a"), ("--rule", "rul_1", "--shadow")):
        run("events", "list", organization, *wrong).assert_usage()
        run("export", "events", organization, *wrong).assert_usage()
    run("events", "tail", organization, "--rule", of_a, "--no-follow").assert_usage()
    for shadow in ((), ("--shadow",)):
        run("export", "events", organization, "--hourly", tmp_path / "hours", "--rule", of_a, *shadow).assert_usage()


def exported(file: Path, form: str) -> list[str]:
    """The request ids in a file."""
    if form == "parquet":
        return [row["request_id"] for row in parquet_rows(file)]
    text = file.read_text()
    rows = map(json.loads, text.splitlines()) if form == "jsonl" else csv.DictReader(io.StringIO(text))
    return [row["request_id"] for row in rows]
