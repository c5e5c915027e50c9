"""Decisions 11.3, 11.5 and 11.6: reads of accounts and visitors, the settings of an organization, and the erasure of
an account.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from svc.features.accounts import queries as subjects
from svc.features.accounts import routes as account_reads
from svc.features.checks.invariants import violations
from svc.features.erasure.accounts import LEAVING_ROWS, erase_account
from svc.features.retention.sweeper import sweep
from svc.features.webhooks.tables import WEBHOOK_EVENTS
from svc.identify.history.activity import VisitorActivity
from svc.identify.tables import ACCOUNT_ERASURES, ACCOUNTS, ADDRESSES, VISITORS
from svc.identify.velocity.counts import account_digest
from svc.kernel.store.steps import items_of_step
from svc.kernel.work import slices
from svc.world import World
from tests.spec.commands import run_beside
from tests.spec.console import Console
from tests.spec.responses import DRIVEN, IDENTIFY, PROGRAM, TOO_LITTLE, act, assert_error, assert_invalid, visit
from tests.spec.subscriber import Subscriber
from tests.support.live import Live, live_service, report, succeeded
from tests.support.mmdb_writer import Tree

NONE = {"1h": 0, "24h": 0, "30d": 0}
ONE = {"1h": 1, "24h": 1, "30d": 1}


async def get(live: Live, secret: str, path: str, **query: Any) -> httpx.Response:
    return await live.client.get(f"/api/v1/{path}", params=query, headers={"x-api-key": secret})


async def read(live: Live, secret: str, path: str, **query: Any) -> dict[str, Any]:
    return succeeded(await get(live, secret, path, **query))


async def test_an_account_with_a_row_of_counts_is_not_counted_again(live: Live, monkeypatch: pytest.MonkeyPatch):
    """Its 2,000 events were, in one step of .15 s, and the counts thrown away."""
    (_, public), (_, secret) = live.issue(environment="production"), live.issue("secret", environment="production")
    visitor_id = (await act(live, public, "acc"))["visitor_id"]
    monkeypatch.setattr(account_reads, "_row_of_events", None)
    for path in ("accounts/acc", f"visitors/{visitor_id}"):
        assert (await read(live, secret, path))["velocity"]["events"] == ONE


async def pages(live: Live, secret: str, name: str, **query: Any) -> list[list[str]]:
    """The ids on each page of a list."""
    found: list[list[str]] = []
    cursor: dict[str, str] = {}
    while True:
        page = await read(live, secret, name, **query, **cursor)
        found.append([row[f"{name[:-1]}_id"] for row in page[name]])
        if "next_cursor" not in page:
            return found
        cursor = {"cursor": page["next_cursor"]}


async def listed(live: Live, secret: str, name: str, **query: Any) -> list[str]:
    return [each for page in await pages(live, secret, name, **query) for each in page]


# One account, one visitor


@pytest.mark.slow(0.6)
async def test_an_account_is_read_with_its_visitors_and_velocity(live: Live, public: str, secret: str):
    first = await act(live, public, "user/1 ü")
    live.clock.advance(hours=2)
    second = await act(live, public, "user/1 ü", device=2)
    live.clock.advance(hours=1)
    await act(live, public, "user/1 ü")
    await act(live, public, "other", device=3)
    account = await read(live, secret, "accounts/" + quote("user/1 ü", safe=""))
    assert account["account_id"] == "user/1 ü"
    assert (account["first_seen_at"], account["last_seen_at"]) == (
        "2026-01-01T00:00:00.000Z", "2026-01-01T03:00:00.000Z",
    )  # fmt: skip
    assert account["velocity"]["events"] == {"1h": 1, "24h": 3, "30d": 3}
    assert account["velocity"]["visitors"] == {"1h": 1, "24h": 2, "30d": 2}
    assert account["visitors"] == [
        {
            "visitor_id": first["visitor_id"],
            "confidence": 100,
            "first_seen_at": "2026-01-01T00:00:00.000Z",
            "last_seen_at": "2026-01-01T03:00:00.000Z",
        },
        {
            "visitor_id": second["visitor_id"],
            "confidence": 0,
            "first_seen_at": "2026-01-01T02:00:00.000Z",
            "last_seen_at": "2026-01-01T02:00:00.000Z",
        },
    ]
    assert [each["ip_address"] for each in account["addresses"]] == ["81.2.69.160"]
    assert (account["labels"], account["notes_count"]) == ({"fraud": 0, "legitimate": 0}, 0)
    assert isinstance(account["countries"], list)


async def test_when_somebody_was_first_seen_is_the_same_wherever_it_is_said(live: Live, public: str, secret: str):
    """To the second, which is what records keep. A read said the millisecond, a list with two events in a second that
    of the second one, and the console of a visitor the later time after a clock was set back.
    """
    console = Console(live)
    live.clock.advance(seconds=5.25)
    await act(live, public, "a")
    live.clock.advance(seconds=0.5)
    visitor_id = (await act(live, public, "a"))["visitor_id"]

    async def said() -> set[str]:
        found = [(await read(live, secret, name))[name][0] for name in ("accounts", "visitors")]
        found += [await read(live, secret, path) for path in ("accounts/a", f"visitors/{visitor_id}")]
        listed, shown = [await console.seen(path) for path in ("/visitors", f"/visitors/{visitor_id}")]
        return {row["first_seen_at"] for row in found} | {listed["visitors"][0]["first_seen"], shown["first_seen"]}

    assert await said() == {"2026-01-01T00:00:05.000Z"}
    live.clock.advance(seconds=-4)
    await act(live, public, "a")
    assert await said() == {"2026-01-01T00:00:01.000Z"}


async def test_an_account_was_first_seen_on_its_first_day_however_long_ago(live: Live, public: str, secret: str):
    """Decisions 11.5: as `account.age_days` has it."""
    await act(live, public, "a")
    live.clock.advance(hours=24 * 100)
    await act(live, public, "a")
    assert (await read(live, secret, "accounts/a"))["first_seen_at"] == "2026-01-01T00:00:00.000Z"
    (row,) = (await read(live, secret, "accounts"))["accounts"]
    assert row["first_seen_at"] == "2026-01-01T00:00:00.000Z"


async def test_a_visitor_is_read_with_its_accounts_and_velocity(live: Live, public: str, secret: str):
    await act(live, public, "a")
    live.clock.advance(seconds=60)
    answer = await act(live, public, "b")
    await act(live, public)
    visitor = await read(live, secret, f"visitors/{answer['visitor_id']}")
    assert [account["account_id"] for account in visitor["accounts"]] == ["b", "a"]
    assert visitor["accounts"][1]["last_seen_at"] == visitor["first_seen_at"] == "2026-01-01T00:00:00.000Z"
    assert visitor["velocity"]["events"]["1h"] == 3
    assert visitor["velocity"]["accounts"] == {"1h": 2, "24h": 2, "30d": 2}
    assert (visitor["labels"], visitor["notes_count"]) == ({"fraud": 0, "legitimate": 0}, 0)


async def test_a_visitor_that_is_not_identifiable_is_read_and_not_listed(live: Live, public: str, secret: str):
    response = await visit(live, public, TOO_LITTLE, account_id="a")
    visitor = await read(live, secret, f"visitors/{response.json()['visitor_id']}")
    assert visitor["velocity"]["events"] == visitor["velocity"]["accounts"] == ONE
    assert [account["account_id"] for account in visitor["accounts"]] == ["a"]
    account = await read(live, secret, "accounts/a")
    assert (account["visitors"], account["velocity"]["visitors"]) == ([], NONE)
    assert await listed(live, secret, "visitors") == []
    assert await listed(live, secret, "accounts") == ["a"]


@pytest.mark.slow(0.4)
async def test_at_most_a_hundred_visitors_of_an_account_are_shown(live: Live, public: str, secret: str):
    for device in range(1, 104):
        last = await act(live, public, "a", device=device)
        live.clock.advance(seconds=1)
    account = await read(live, secret, "accounts/a")
    assert len(account["visitors"]) == 100
    assert account["visitors"][0]["visitor_id"] == last["visitor_id"]
    assert account["velocity"]["visitors"]["1h"] == 64


async def test_who_is_unknown_is_not_found(live: Live, public: str, secret: str):
    answer = await act(live, public, "a")
    for path in ("accounts/b", "accounts/a%0A", "accounts/" + "x" * 257, "visitors/" + "0" * 20, "visitors/x"):
        assert_error(await get(live, secret, path), 404, "not_found")
    _, neighbor = live.issue("secret", "production", organization=live.new_organization().number)
    for path in ("accounts/a", f"visitors/{answer['visitor_id']}"):
        assert_error(await get(live, neighbor, path), 404, "not_found")
        assert_error(await get(live, public, path), 401, "unauthorized")
        assert_error(await get(live, live.issue("management")[1], path), 401, "unauthorized")
    live.clock.advance(hours=31 * 24)
    for path in ("accounts/a", f"visitors/{answer['visitor_id']}"):
        assert_error(await get(live, secret, path), 404, "not_found")


@pytest.mark.slow(0.2)
async def test_staging_and_development_are_read_together_and_production_apart(live: Live, public: str, secret: str):
    _, staging = live.issue(environment="staging")
    _, development = live.issue(environment="development")
    test_keys = [live.issue("secret", environment)[1] for environment in ("staging", "development")]
    for key, account in ((staging, "a"), (development, "b"), (staging, "c"), (public, "p"), (development, "a")):
        last = await act(live, key, account)
        live.clock.advance(seconds=30)
    for key in test_keys:
        assert await pages(live, key, "accounts", limit=2) == [["a", "c"], ["b"]]
        assert (await read(live, key, "accounts/a"))["velocity"]["events"]["1h"] == 2
        assert_error(await get(live, key, "accounts/p"), 404, "not_found")
        visitor = await read(live, key, f"visitors/{last['visitor_id']}")
        assert [account["account_id"] for account in visitor["accounts"]] == ["a", "c", "b"]
    assert await listed(live, secret, "accounts") == ["p"]
    assert_error(await get(live, secret, "accounts/a"), 404, "not_found")
    assert (await read(live, secret, f"visitors/{last['visitor_id']}"))["velocity"]["events"]["1h"] == 1


# Lists


@pytest.mark.slow(0.2)
async def test_accounts_are_listed_by_when_they_were_last_seen_each_once(live: Live, public: str, secret: str):
    for number, account in enumerate("abcadbeac"):
        await act(live, public, account, device=1 + number % 2)
        await act(live, public)
        live.clock.advance(seconds=60)
    assert await pages(live, secret, "accounts") == [["c", "a", "e", "b", "d"]]
    assert await pages(live, secret, "accounts", limit=2) == [["c", "a"], ["e", "b"], ["d"]]
    assert await pages(live, secret, "accounts", limit=5) == [["c", "a", "e", "b", "d"]]
    row = (await read(live, secret, "accounts"))["accounts"][1]
    assert (row["first_seen_at"], row["last_seen_at"]) == ("2026-01-01T00:00:00.000Z", "2026-01-01T00:07:00.000Z")
    assert row["velocity"]["events"]["1h"] == 3


async def test_events_of_one_second_list_each_account_once(live: Live, public: str, secret: str):
    for account in "abcabdca":
        await act(live, public, account)
    whole = await pages(live, secret, "accounts")
    assert sorted(whole[0]) == ["a", "b", "c", "d"]
    single = await pages(live, secret, "accounts", limit=1)
    assert [each for page in single for each in page] == whole[0]


async def test_visitors_are_listed_by_when_they_were_last_seen(live: Live, public: str, secret: str):
    seen: list[str] = []
    for device in (1, 2, 3, 1):
        seen.append((await act(live, public, "a", device=device))["visitor_id"])
        live.clock.advance(seconds=60)
    for limit in (1, 2, 50):
        assert await listed(live, secret, "visitors", limit=limit) == [seen[3], seen[2], seen[1]]
    row = (await read(live, secret, "visitors"))["visitors"][0]
    assert row["velocity"]["events"]["1h"] == 2


async def test_an_account_that_is_seen_between_two_pages_is_not_listed_twice(live: Live, public: str, secret: str):
    for account in "abcd":
        await act(live, public, account)
        live.clock.advance(seconds=60)
    page = await read(live, secret, "accounts", limit=2)
    assert [row["account_id"] for row in page["accounts"]] == ["d", "c"]
    await act(live, public, "d")
    await act(live, public, "a")
    rest = await read(live, secret, "accounts", limit=2, cursor=page["next_cursor"])
    assert [row["account_id"] for row in rest["accounts"]] == ["b"]


@pytest.mark.parametrize("name", ["accounts", "visitors"])
async def test_whose_newest_event_is_a_replay_is_listed_once(live: Live, public: str, secret: str, name: str):
    """Its row does not know of that event, and was asked whether there is a newer one."""
    seen: list[str] = []
    for device, account in enumerate("abac"):
        signals = {"nonce": f"the nonce of {account}"}
        answer = await act(live, public, account, device=device % 2 + device // 3, signals=signals)
        seen.append(account if name == "accounts" else answer["visitor_id"])
        live.clock.advance(seconds=60)
    assert live.events()[2][1].verdict.signals[0].signal == "replayed"
    for limit in (1, 2, 50):
        assert await listed(live, secret, name, limit=limit) == [seen[3], seen[2], seen[1]]


async def test_an_account_whose_last_event_was_given_to_another_keeps_its_place(live: Live, public: str, secret: str):
    answers = []
    for account in "abab":
        answers.append(await act(live, public, account))
        live.clock.advance(seconds=60)
    for answer in answers[2:]:
        path = f"/api/v1/events/{answer['request_id']}"
        changed = await live.client.patch(path, json={"account_id": "c"}, headers={"x-api-key": secret})
        assert changed.status_code == 200
    for limit in (1, 50):
        assert await listed(live, secret, "accounts", limit=limit) == ["c", "b", "a"]
    account = await read(live, secret, "accounts/a")
    assert account["first_seen_at"] == account["last_seen_at"] == "2026-01-01T00:00:00.000Z"


async def test_lists_are_filtered(live: Live, public: str, secret: str):
    for account, device in (("user-1", 1), ("user-2", 1), ("user-2", 2), ("guest", 3), ("user-3", 1)):
        await act(live, public, account, device=device)
        live.clock.advance(seconds=60)
    assert await listed(live, secret, "accounts", q="user-") == ["user-3", "user-2", "user-1"]
    assert await listed(live, secret, "accounts", q="User") == []
    assert await listed(live, secret, "accounts", min_visitors=2) == ["user-2"]
    assert await listed(live, secret, "accounts", min_visitors=1, q="g") == ["guest"]
    visitors = await listed(live, secret, "visitors")
    assert await listed(live, secret, "visitors", min_accounts=3) == visitors[:1]
    assert await listed(live, secret, "visitors", q=visitors[1][:5]) == [visitors[1]]
    assert await listed(live, secret, "visitors", country="DE") == []


async def test_countries_are_listed_and_shown(directory: Path):
    folder, tree = directory / "network", Tree()
    folder.mkdir()
    for first, code in (("81.2.69.160", "GB"), ("93.184.216.0", "DE")):
        at = int.from_bytes(map(int, first.split(".")))
        tree.add(at, at + 15, {"country_code": code})
    (folder / "country.mmdb").write_bytes(tree.content("a test", 1_767_225_600))
    async with live_service(directory, network_directory=str(folder)) as live:
        public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
        await act(live, public, "a")
        await act(live, public, "b", device=2)
        live.clock.advance(seconds=60)
        await act(live, public, "a", headers={"x-forwarded-for": "93.184.216.7"})
        assert await listed(live, secret, "accounts", country="gb") == ["a", "b"]
        assert await listed(live, secret, "accounts", country="DE") == ["a"]
        assert await listed(live, secret, "accounts", country="FR") == []
        account = await read(live, secret, "accounts/a")
        assert [country["country_code"] for country in account["countries"]] == ["DE", "GB"]
        assert [(address["ip_address"], address["country_code"]) for address in account["addresses"]] == [
            ("93.184.216.7", "DE"), ("81.2.69.160", "GB"),
        ]  # fmt: skip
        assert account["velocity"]["countries"] == {"1h": 2, "24h": 2, "30d": 2}


async def test_the_level_of_a_list_is_the_highest_within_24_hours(live: Live, public: str, secret: str):
    management = live.issue("management")[1]
    path = f"/api/v1/management/organizations/{live.organization.id}/risk-weights/web"
    body = {"suspect_threshold": 20, "weights": {"automation": 40, "bot_user_agent": 20}}
    assert (await live.client.put(path, json=body, headers={"x-api-key": management})).status_code == 200
    levels = [
        (await act(live, public, "bad", signals=DRIVEN))["suspect_level"],
        (await act(live, public, "bad"))["suspect_level"],
        (await act(live, public, "fair", device=2, headers=PROGRAM))["suspect_level"],
        (await act(live, public, "good", device=3))["suspect_level"],
    ]
    assert levels[0] == "high"
    by_level: dict[str, set[str]] = {"high": {"bad"}, "medium": set(), "low": set()}
    by_level[levels[2]].add("fair")
    by_level[levels[3]].add("good")
    for level, accounts in by_level.items():
        assert set(await listed(live, secret, "accounts", level=level)) == accounts
    rows = {row["account_id"]: row["level"] for row in (await read(live, secret, "accounts"))["accounts"]}
    assert rows == {"bad": "high", "fair": levels[2], "good": levels[3]}
    live.clock.advance(hours=25)
    await act(live, public, "bad")
    assert await listed(live, secret, "accounts", level="high") == []
    assert await listed(live, secret, "accounts", level="low") == ["bad"]
    assert "level" not in (await read(live, secret, "accounts", q="good"))["accounts"][0]


async def test_a_level_is_found_whatever_the_number_of_events_in_a_day(
    live: Live, public: str, secret: str, monkeypatch: pytest.MonkeyPatch
):
    """With more than are read one by one the index says whether there is one at a level."""
    levels: list[str] = []
    for number in range(6):
        driven: dict[str, Any] = {"signals": DRIVEN} if number == 1 else {}
        levels.append((await act(live, public, "busy", **driven))["suspect_level"])
        live.clock.advance(seconds=60)
    assert levels == ["low", levels[1], "low", "low", "low", "low"] != 6 * ["low"]
    await act(live, public, "other", device=2)
    for most in (1, 5, 6, 100):
        monkeypatch.setattr(subjects, "MAX_OF_A_DAY", most)
        rows = {row["account_id"]: row["level"] for row in (await read(live, secret, "accounts"))["accounts"]}
        assert rows == {"busy": levels[1], "other": "low"}


@pytest.mark.slow(0.3)
async def test_pages_of_a_level_follow_one_another(
    live: Live, public: str, secret: str, monkeypatch: pytest.MonkeyPatch
):
    """However many are looked at together, and wherever a page ends: one that found few of them has a cursor too."""
    levels: list[str] = []
    for device in range(1, 8):
        driven: dict[str, Any] = {"signals": DRIVEN} if device in (1, 4, 5) else {}
        levels.append((await act(live, public, f"user-{device}", device=device, **driven))["suspect_level"])
        live.clock.advance(seconds=60)
    assert levels.count(levels[0]) == 3
    for at_once, most in ((1, 2), (2, 3), (3, 100), (100, 100)):
        monkeypatch.setattr(account_reads, "LEVELS_AT_ONCE", at_once)
        monkeypatch.setattr(account_reads, "MAX_EVENTS_BY_LEVEL", most)
        for limit in (1, 2, 3, 50):
            found = await pages(live, secret, "accounts", level=levels[0], limit=limit)
            assert [account for page in found for account in page] == ["user-5", "user-4", "user-1"]
            assert max(map(len, found)) <= limit


@pytest.mark.slow(0.2)
async def test_a_list_goes_on_through_pages_that_look_at_few_events(
    live: Live, public: str, secret: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(account_reads, "MAX_EVENTS", 4)
    monkeypatch.setattr(slices, "MAX_AT_ONCE", 2)
    for account in "xaaaaaabbbbbbyaz":
        await act(live, public, account)
        live.clock.advance(seconds=20)
    found = await pages(live, secret, "accounts")
    assert [each for page in found for each in page] == ["z", "a", "y", "b", "x"]
    assert [] in await pages(live, secret, "accounts", q="x")
    assert await listed(live, secret, "accounts", q="x") == ["x"]


@pytest.mark.slow(0.3)
async def test_a_query_of_another_form_is_refused(live: Live, secret: str):
    for name, query, field, issue in (
        ("accounts", {"limit": 0}, "limit", "out_of_range"), ("accounts", {"limit": 201}, "limit", "out_of_range"),
        ("accounts", {"min_visitors": 65}, "min_visitors", "out_of_range"),
        ("accounts", {"min_visitors": "x"}, "min_visitors", "wrong_type"),
        ("accounts", {"min_accounts": 2}, "min_accounts", "unknown_field"),
        ("visitors", {"min_accounts": 0}, "min_accounts", "out_of_range"),
        ("visitors", {"country": "GBR"}, "country", "invalid_value"),
        ("visitors", {"level": "worst"}, "level", "invalid_value"),
        ("visitors", {"q": "x" * 257}, "q", "too_long"), ("visitors", {"label": "fraud"}, "label", "unknown_field"),
        ("accounts", {"cursor": "x"}, "cursor", "invalid_cursor"),
    ):  # fmt: skip
        assert_invalid(await get(live, secret, name, **query), field, issue, "query")


async def test_a_cursor_belongs_to_its_list_its_filters_and_its_environments(live: Live, public: str, secret: str):
    await act(live, public, "a")
    await act(live, public, "b", device=2)
    _, other = live.issue("secret", "staging")
    for name, another in (("accounts", "visitors"), ("visitors", "accounts")):
        cursor = (await read(live, secret, name, limit=1))["next_cursor"]
        assert (await get(live, secret, name, limit=2, cursor=cursor)).status_code == 200
        for key, of, query in ((secret, another, {}), (secret, name, {"q": "a"}), (other, name, {})):
            assert_invalid(await get(live, key, of, cursor=cursor, **query), "cursor", "invalid_cursor", "query")


async def test_the_longest_account_is_found_by_its_path(live: Live, secret: str):
    account = "\U0001d51e" * 256
    response = await live.client.post(
        IDENTIFY,
        json={"sdk": {}, "signals": report(), "account_id": account},
        headers={"x-api-key": secret, "x-svc-visitor-ip": "81.2.69.160"},
    )
    assert response.status_code == 200, response.text
    assert (await read(live, secret, "accounts/" + quote(account, safe="")))["account_id"] == account


# Settings


DEFAULTS = {"multi_account": 3, "account_testing_visitor": 5, "account_testing_address": 20, "account_sharing": 6}


async def settings(live: Live, key: str, method: str = "GET", **fields: Any) -> httpx.Response:
    path = f"/api/v1/management/organizations/{live.organization.id}/settings"
    sent = {} if method == "GET" else {"json": fields}
    return await live.client.request(method, path, headers={"x-api-key": key}, **sent)


async def test_settings_are_read_and_changed_one_by_one(live: Live, management: str):
    of_operator = {"rate_limit_per_s": 0, "event_retention_days": 30}
    expected = {"decision_in_response": True, "account_thresholds": DEFAULTS, **of_operator}
    assert (await settings(live, management)).json() == expected
    changed = await settings(live, management, "PATCH", account_thresholds={"account_sharing": 64})
    expected |= {"account_thresholds": DEFAULTS | {"account_sharing": 64}}
    assert (changed.status_code, changed.json()) == (200, expected)
    changed = await settings(
        live, management, "PATCH", decision_in_response=False, account_thresholds={"multi_account": 1}
    )
    expected = {
        "decision_in_response": False,
        "account_thresholds": DEFAULTS | {"account_sharing": 64, "multi_account": 1},
        **of_operator,
    }
    assert changed.json() == expected
    assert (await settings(live, management, "PATCH")).json() == (await settings(live, management)).json() == expected


@pytest.mark.parametrize("name", ["rate_limit_per_s", "event_retention_days"])
async def test_what_the_operator_sets_is_read_and_not_changed(live: Live, management: str, name: str):
    """Decisions 16.1: retention is the node's."""
    assert_invalid(await settings(live, management, "PATCH", **{name: 60}), name, "unknown_field")


@pytest.mark.parametrize(
    ("fields", "field", "issue"),
    [
        *(
            ({"account_thresholds": {name: value}}, f"account_thresholds.{name}", "out_of_range")
            for name in DEFAULTS
            for value in (0, 65)
        ),
        ({"account_thresholds": {"other": 1}}, "account_thresholds.other", "unknown_field"),
        ({"account_thresholds": None}, "account_thresholds", "wrong_type"),
        ({"decision_in_response": None}, "decision_in_response", "wrong_type"),
        ({"decision_in_response": 1}, "decision_in_response", "wrong_type"),
        ({"account_thresholds": {"multi_account": 1.5}}, "account_thresholds.multi_account", "wrong_type"),
    ],
)
async def test_settings_of_another_form_are_refused(live: Live, fields: dict[str, Any], field: str, issue: str):
    _, admin = live.issue("management")
    assert_invalid(await settings(live, admin, "PATCH", **fields), field, issue)
    assert (await settings(live, admin)).json()["account_thresholds"] == DEFAULTS


async def test_a_changed_threshold_counts_at_the_next_request(live: Live, management: str, public: str, secret: str):
    async def fires(account: str) -> bool:
        event = await read(live, secret, "events/" + (await act(live, public, account))["request_id"])
        return "multi_account" in {signal["signal"] for signal in event["signals"]}

    assert not await fires("a")
    assert not await fires("b")
    assert (await settings(live, management, "PATCH", account_thresholds={"multi_account": 2})).status_code == 200
    assert await fires("b")
    assert (await settings(live, management, "PATCH", account_thresholds={"multi_account": 4})).status_code == 200
    assert not await fires("c")
    assert await fires("d")


async def test_a_change_of_settings_is_audited(live: Live, management: str):
    asked = {"account_thresholds": {"multi_account": 2}}
    response = await settings(live, management, "PATCH", **asked)
    audit = await live.client.get("/console/api/audit", headers={"x-api-key": management})
    record = audit.json()["records"][0]
    assert (record["action"], record["subject"], record["change"]) == ("updateSettings", live.organization.id, asked)
    assert record["id"] == response.headers["x-request-id"]


# Erasure


async def erase(live: Live, key: str, account: str) -> httpx.Response:
    path = f"/api/v1/management/organizations/{live.organization.id}/accounts/{quote(account, safe='')}"
    return await live.client.delete(path, headers={"x-api-key": key})


def digests_in_rows(live: Live, account: str) -> int:
    """In how much velocity an account is, its own included."""
    digest, contents = account_digest(live.organization.number, account), live.contents()
    activities = [VisitorActivity.unpack(record.activity) for _, record in contents[VISITORS.name]]
    activities += [activity for _, activity in contents[ADDRESSES.name]]
    rows = [row for activity in activities for row in (activity.live, activity.test)]
    own = sum(key[-1] == digest for key, _ in contents[ACCOUNTS.name])
    return own + sum(any(digest in seen.ids for seen in row.others) for row in rows)


async def test_an_erased_account_is_gone_and_its_events_stay(live: Live, management: str, public: str, secret: str):
    _, staging = live.issue(environment="staging")
    answers = [await act(live, public, "user/1", device=device, action="log_in") for device in (1, 1, 2)]
    await act(live, staging, "user/1")
    await act(live, public, "other")
    assert digests_in_rows(live, "user/1") == 2 + 4 + 1
    assert (await erase(live, management, "user/1")).status_code == 204
    assert digests_in_rows(live, "user/1") == 0
    assert digests_in_rows(live, "other") == 3
    assert [name for name, rows in live.contents().items() if "user/1" in repr(rows)] == ["audit"]
    assert_error(await get(live, secret, "accounts/user%2F1"), 404, "not_found")
    assert await listed(live, secret, "accounts") == ["other"]
    assert (await read(live, secret, "events", account_id="user/1"))["rows"] == []
    for answer in answers:
        event = await read(live, secret, f"events/{answer['request_id']}")
        assert {"account_id", "account_verified"} & set(event) == set()
        assert (event["action"], set(event["velocity"])) == ("log_in", {"visitor", "address"})
    visitor = await read(live, secret, f"visitors/{answers[0]['visitor_id']}")
    assert [account["account_id"] for account in visitor["accounts"]] == ["other"]
    assert visitor["velocity"]["accounts"] == ONE
    assert visitor["velocity"]["events"]["1h"] == 3
    assert_error(await erase(live, management, "user/1"), 404, "not_found")
    again = await act(live, public, "user/1")
    event = await read(live, secret, f"events/{again['request_id']}")
    assert event["velocity"]["account"]["events"] == ONE


async def test_an_unknown_account_is_not_erased_and_only_an_admin_erases(live: Live, public: str):
    await act(live, public, "a")
    admin, developer = (live.issue("management", role=role)[1] for role in ("admin", "developer"))
    _, other = live.issue("management", organization=live.new_organization().number)
    before = live.contents()
    for account in ("b", "x" * 257, "a\n"):
        assert_error(await erase(live, admin, account), 404, "not_found")
    assert_error(await erase(live, developer, "a"), 403, "insufficient_role")
    assert_error(await erase(live, other, "a"), 404, "not_found")
    after = live.contents()
    for name in ("events", "visitors", "accounts", "addresses", "event_tail", "audit"):
        assert after[name] == before[name]


async def test_the_webhooks_of_an_erased_account_do_not_name_it(hooks: Subscriber):
    live = hooks.live
    await hooks.create(environment="live", events=["identification.completed"])
    public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]
    _, admin = live.issue("management")
    erased, moved = await act(live, public, "user-1"), await act(live, public, "user-2")
    path = f"/api/v1/events/{moved['request_id']}"
    patched = await live.client.patch(path, json={"account_id": "user-3"}, headers={"x-api-key": secret})
    assert patched.status_code == 200
    assert (await erase(live, admin, "user-1")).status_code == 204
    bodies = {
        body["data"]["request_id"]: body["data"]
        for body in (json.loads(event.body) for _, event in live.contents()[WEBHOOK_EVENTS.name])
    }
    assert set(bodies) == {erased["request_id"], moved["request_id"]}
    for data in bodies.values():
        assert {"account_id", "account_verified"} & set(data) == set()
        assert set(data["velocity"]) == {"visitor", "address"}
        assert data["visitor_id"] == erased["visitor_id"]


@pytest.mark.slow
async def test_an_interrupted_erasure_of_an_account_is_completed_by_the_sweeper(live: Live, public: str, secret: str):
    number = live.organization.number
    for _ in range(items_of_step(LEAVING_ROWS) + 5):
        await act(live, public, "user-1")
    step = partial(erase_account, number=number, account_id="user-1", now_ms=live.clock.now_ms)
    assert live.found.store.write_now([step]) == [False]
    assert len((await read(live, secret, "events", account_id="user-1", limit=200))["rows"]) == 5
    with live.found.store.read() as snapshot:
        assert list(violations(snapshot)) == []
        assert snapshot.count(ACCOUNT_ERASURES) == 1
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=False)
    with live.found.store.read() as snapshot:
        assert snapshot.count(ACCOUNT_ERASURES) == 0
        assert list(violations(snapshot)) == []
    assert digests_in_rows(live, "user-1") == 0
    assert len(live.events()) == items_of_step(LEAVING_ROWS) + 5
    assert "user-1" not in repr(live.contents())


# The command line


@pytest.mark.slow(1.5)
async def test_the_operator_lists_shows_and_erases_accounts_while_the_service_runs(directory: Path):
    async with live_service(directory, now_ms=World.real().now_ms() - 60_000) as live:
        org, options = live.organization.id, live.options
        _, public = live.issue(environment="staging")
        answers = [
            await act(live, public, account, device=device) for account, device in (("a b", 1), ("a b", 2), ("c", 1))
        ]
        staging = ("--environment", "staging", *options)
        listed = (await run_beside("account", "list", org, *staging, "--limit", "1", "--json")).json
        assert (len(listed["accounts"]), listed["more"]) == (1, True)
        rows = (await run_beside("account", "list", org, *staging)).out.splitlines()
        assert len(rows) == 3
        assert rows[0].split() == ["account_id", "first_seen_at", "last_seen_at", "level", "events_24h", "visitors_30d"]
        assert (await run_beside("account", "list", org, *options)).out == "no accounts\n"
        shown = (await run_beside("account", "show", org, "a b", *staging, "--json")).json
        assert {each["visitor_id"] for each in shown["visitors"]} == {each["visitor_id"] for each in answers[:2]}
        assert shown["velocity"]["events"] == {"1h": 2, "24h": 2, "30d": 2}
        assert answers[0]["visitor_id"] in (await run_beside("account", "show", org, "a b", *staging)).out
        (await run_beside("account", "show", org, "a b", *options)).assert_refused("a b", "svc account list")
        erased = (await run_beside("account", "erase", org, "a b", "--yes", *options, "--json")).json
        assert erased == {"organization_id": org, "account_id": "a b", "status": "erased"}
        assert {event.account_id for _, event in live.events()} == {None, "c"}
        (await run_beside("account", "erase", org, "a b", "--yes", *options)).assert_refused("a b", "svc account list")
