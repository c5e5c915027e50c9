"""Accounts and visitors in the console: lists by when they were seen and by counts, one account, links, and search."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest

from svc.features.accounts import console_routes as subjects
from svc.features.accounts import link_routes as links
from svc.features.accounts.queries import NEWEST, Sought, SubjectScan
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.work import slices
from tests.spec.console import NOBODY, UNKNOWN, Console
from tests.spec.responses import HEADLESS, TOO_LITTLE, act, assert_error, assert_invalid
from tests.support.live import Live

ELSEWHERE = {"x-forwarded-for": "95.194.3.4"}


async def came(live: Live, public: str, account: str | None = None, device: int = 1, **given: Any) -> dict[str, Any]:
    answer = await act(live, public, account, device, **given)
    live.clock.advance(seconds=60)
    return answer


async def shop(live: Live, public: str) -> tuple[str, str, str]:
    """A farm with three accounts, a family that shares one, and somebody without; visitor ids of these devices."""
    for account in ("acc-1", "acc-2", "acc-3"):
        farm = await came(live, public, account)
    family = await came(live, public, "family", 2, headers=ELSEWHERE)
    await came(live, public, "family", 3)
    await came(live, public, "acc-3", 3)
    nobody = await came(live, public, device=4)
    return farm["visitor_id"], family["visitor_id"], nobody["visitor_id"]


# Lists


async def test_visitors_are_listed_with_their_counts_and_last_event(live: Live, public: str):
    farm, family, nobody = await shop(live, public)
    seen = await Console(live).seen("/seen-visitors")
    ids = [row["visitor_id"] for row in seen["visitors"]]
    assert (ids[0], ids[-1]) == (nobody, farm)
    row = next(row for row in seen["visitors"] if row["visitor_id"] == farm)
    assert row["velocity"]["accounts"]["30d"] == 3
    assert row["last_event"]["account_id"] == "acc-3"
    assert row["last_event"]["visitor_id"] == farm
    assert "looked_at" not in seen
    assert family in ids


async def test_an_account_is_listed_at_its_last_event_though_that_was_fetched_last(live: Live, public: str):
    """A database runs a scan over missing rows first: whom it saw there, it has not looked at yet."""
    (older, newer) = [(await came(live, public, "acc", 1))["request_id"] for _ in range(2)]
    sought = Sought("account", live.organization.number, "live", live.clock.now_ms, 0)
    scan = SubjectScan(sought, is_first=True)

    class Fetched(Snapshot):
        def get(self, table: Table[Any], *key: Any) -> Any:
            return None if key[-1] == UUID(newer).bytes else super().get(table, *key)

    with live.found.store.read() as snapshot:
        guessed = [each for _, each in scan(Fetched(snapshot.reader), NEWEST, 10) if each is not None]
        seen = [each for _, each in scan(snapshot, NEWEST, 10) if each is not None]
    assert [str(each.last.request_id) for each in guessed] == [older]
    assert [str(each.last.request_id) for each in seen] == [newer]


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("path", "name", "sort", "first"),
    [
        ("/seen-visitors", "visitors", "accounts", "acc-3"),
        ("/seen-visitors", "visitors", "events", "acc-3"),
        ("/seen-accounts", "accounts", "visitors", "acc-3"),
        ("/seen-accounts", "accounts", "addresses", "family"),
    ],
)
async def test_a_list_is_sorted_by_a_count(live: Live, public: str, path: str, name: str, sort: str, first: str):
    await shop(live, public)
    seen = await Console(live).seen(path, sort=sort)
    rows = seen[name]
    counts = [row["velocity"][sort]["30d"] for row in rows]
    assert counts == sorted(counts, reverse=True)
    assert rows[0].get("account_id", rows[0]["last_event"].get("account_id")) == first
    assert seen["looked_at"] == {"subjects": 4, "is_complete": True, "since": seen["looked_at"]["since"]}
    assert rows[0]["level"] == "low"
    limited = await Console(live).seen(path, sort=sort, limit=1)
    assert limited[name] == rows[:1]


async def test_a_sorted_list_has_those_at_a_level(live: Live, public: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(subjects, "LEVELS_AT_ONCE", 2)
    for device in range(1, 6):
        odd: dict[str, Any] = {"headers": HEADLESS} if device % 2 else {}
        level = (await came(live, public, f"user-{device}", device, **odd))["suspect_level"]
    seen = await Console(live).seen("/seen-accounts", sort="events", level=level)
    assert [row["account_id"] for row in seen["accounts"]] == ["user-5", "user-3", "user-1"]
    assert {row["level"] for row in seen["accounts"]} == {level} != {"low"}
    assert seen["looked_at"]["subjects"] == 3


@pytest.mark.slow(0.2)
async def test_a_sorted_list_ends_after_its_first_ones(live: Live, console: Console, public: str):
    """It says how many there are, and has no cursor; nor does one of another order lead on."""
    await shop(live, public)
    whole = await console.seen("/seen-accounts", sort="events")
    first = await console.seen("/seen-accounts", sort="events", limit=1)
    assert first == {"accounts": whole["accounts"][:1], "looked_at": whole["looked_at"]}
    assert whole["looked_at"]["subjects"] == len(whole["accounts"]) == 4
    cursor = (await console.seen("/seen-accounts", limit=1))["next_cursor"]
    refused = await console.get("/seen-accounts", sort="events", environment="production", cursor=cursor)
    assert_invalid(refused, "cursor", "invalid_cursor", location="query")


async def test_a_list_is_sorted_by_the_last_score(live: Live, public: str):
    await came(live, public, device=1)
    driven = await came(live, public, device=2, headers=HEADLESS)
    await came(live, public, device=3)
    rows = (await Console(live).seen("/seen-visitors", sort="score"))["visitors"]
    assert rows[0]["visitor_id"] == driven["visitor_id"]
    scores = [row["last_event"]["suspect_score"] for row in rows]
    assert scores == sorted(scores, reverse=True)


async def test_a_sorted_list_says_how_far_it_looked(live: Live, public: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(subjects, "EVENTS_SORTED", 2)
    monkeypatch.setattr(slices, "MAX_AT_ONCE", 2)
    for device in range(1, 5):
        await came(live, public, f"user-{device}", device)
    seen = await Console(live).seen("/seen-accounts", sort="events")
    assert seen["looked_at"] == {"subjects": 2, "is_complete": False, "since": "2026-01-01T00:02:00.000Z"}
    assert {row["account_id"] for row in seen["accounts"]} == {"user-4", "user-3"}


@pytest.mark.slow(0.2)
async def test_filters_of_the_server_api_hold_here_and_pages_follow_one_another(live: Live, public: str):
    await shop(live, public)
    console = Console(live)
    found = await console.seen("/seen-visitors", min_accounts=3)
    assert [row["velocity"]["accounts"]["30d"] for row in found["visitors"]] == [3]
    assert [row["account_id"] for row in (await console.seen("/seen-accounts", q="acc-"))["accounts"]] == [
        "acc-3", "acc-2", "acc-1",
    ]  # fmt: skip
    ids: list[str] = []
    query: dict[str, str] = {}
    while True:
        page = await console.seen("/seen-accounts", limit=1, **query)
        ids += [row["account_id"] for row in page["accounts"]]
        if "next_cursor" not in page:
            break
        query = {"cursor": page["next_cursor"]}
    assert ids == ["acc-3", "family", "acc-2", "acc-1"]
    assert (await console.seen("/seen-accounts", environment="staging"))["accounts"] == []


async def test_visitors_from_a_network_are_listed(live: Live, console: Console, public: str):
    await shop(live, public)
    family = await console.seen("/seen-accounts", network="95.194.1.1/16")
    assert [row["account_id"] for row in family["accounts"]] == ["family"]
    assert family["accounts"][0]["last_event"]["ip_address"] == "95.194.3.4", "its last event from there"
    pages = await console.seen("/seen-accounts", network="0.0.0.0/0", limit=2)
    rest = await console.seen("/seen-accounts", network="0.0.0.0/0", limit=2, cursor=pages["next_cursor"])
    ids = [row["account_id"] for page in (pages, rest) for row in page["accounts"]]
    assert ids == ["acc-3", "family", "acc-2", "acc-1"]


@pytest.mark.slow(0.2)
async def test_what_cannot_be_asked_is_invalid(console: Console):
    for path, query, field, issue in (
        ("/seen-visitors", {"sort": "visitors"}, "sort", "invalid_value"),
        ("/seen-accounts", {"sort": "accounts"}, "sort", "invalid_value"),
        ("/seen-accounts", {"sort": "size"}, "sort", "invalid_value"),
        ("/seen-accounts", {"sort": "events", "cursor": "x"}, "cursor", "invalid_cursor"),
        ("/seen-accounts", {"cursor": "x"}, "cursor", "invalid_cursor"),
        ("/seen-accounts", {"network": "here"}, "network", "invalid_value"),
        ("/seen-accounts", {"country": "GBR"}, "country", "invalid_value"),
        ("/seen-accounts", {"min_visitors": 65}, "min_visitors", "out_of_range"),
        ("/links", {}, "visitor", "required"),
        ("/links", {"visitor": NOBODY, "account": "a"}, "visitor", "invalid_value"),
        ("/links", {"visitor": "x"}, "visitor", "invalid_value"),
        ("/search", {}, "q", "required"),
    ):
        assert_invalid(await console.get(path, **query), field, issue, "query")


# One account


@pytest.mark.slow(0.2)
async def test_an_account_is_read_with_its_events_and_what_changed(live: Live, public: str):
    await shop(live, public)
    account = await Console(live).seen("/accounts/family")
    assert account["event_count"] == 2
    assert [event["account_id"] for event in account["events"]] == ["family", "family"]
    assert len(account["visitors"]) == 2
    assert account["velocity"]["visitors"]["30d"] == 2
    assert all("changes" in event or event["visitor_is_new"] for event in account["events"])
    assert_error(await Console(live).get("/accounts/nobody"), 404, "not_found")
    assert_error(await Console(live).get("/accounts/family", environment="staging"), 404, "not_found")
    name = "user/1 ü"
    await act(live, public, name)
    assert (await Console(live).seen("/accounts/" + quote(name, safe="")))["account_id"] == name


# Links


async def test_links_are_followed_from_accounts_to_visitors_and_back(live: Live, console: Console, public: str):
    farm, family, _ = await shop(live, public)
    seen = await console.seen("/links", visitor=farm)
    steps = {(node["kind"], node["id"]): node["steps"] for node in seen["nodes"]}
    assert steps[("visitor", farm)] == 0
    assert {each for each, step in steps.items() if step == 1} == {("account", f"acc-{n}") for n in (1, 2, 3)}
    assert [kind for (kind, _), step in steps.items() if step == 2] == ["visitor"]
    assert steps["account", "family"] == 3, "an account of a linked visitor"
    assert len(seen["links"]) == 6
    assert seen["is_complete"] is True
    around = await console.seen("/links", account="family")
    assert {(node["kind"], node["steps"]) for node in around["nodes"]} >= {
        ("account", 0), ("visitor", 1), ("account", 2),
    }  # fmt: skip
    assert around["links"][0].keys() == {"visitor_id", "account_id", "events", "first_seen_at", "last_seen_at"}
    assert family in {node["id"] for node in around["nodes"]}
    alone = await console.seen("/links", account="nobody")
    assert (len(alone["nodes"]), alone["links"]) == (1, [])


@pytest.mark.slow(0.3)
async def test_a_ring_is_whole_from_whichever_of_it_one_begins(
    live: Live, console: Console, public: str, monkeypatch: pytest.MonkeyPatch
):
    """Twelve accounts on three devices, which share one account from device to device."""
    devices: list[str] = []
    for device in range(3):
        for account in range(4 * device, 4 * device + 5):
            seen = await came(live, public, f"ring-{account % 12}", 10 + device)
        devices.append(seen["visitor_id"])
    ring = {("account", f"ring-{number}") for number in range(12)} | {("visitor", device) for device in devices}
    for query in ({"visitor": devices[0]}, {"account": "ring-0"}, {"account": "ring-6"}):
        found = await console.seen("/links", **query)
        assert {(node["kind"], node["id"]) for node in found["nodes"]} == ring, query
        assert max(node["steps"] for node in found["nodes"]) <= 4
        assert len({(link["visitor_id"], link["account_id"]) for link in found["links"]}) == 15
        assert found["is_complete"] is True
    monkeypatch.setattr(links, "MAX_EVENTS", 3)
    assert (await console.seen("/links", account="ring-6"))["is_complete"] is False


async def test_links_end_at_a_bound_and_say_so(live: Live, public: str, monkeypatch: pytest.MonkeyPatch):
    await shop(live, public)
    await act(live, public, "family", signals=TOO_LITTLE)
    monkeypatch.setattr(links, "MAX_NODES", 2)
    seen = await Console(live).seen("/links", account="acc-3")
    assert (len(seen["nodes"]), seen["is_complete"]) == (2, False)
    monkeypatch.setattr(links, "MAX_NODES", 100)
    monkeypatch.setattr(links, "MAX_LINKS", 1)
    seen = await Console(live).seen("/links", account="acc-3")
    assert (len(seen["links"]), seen["is_complete"]) == (1, False)


# Search


async def test_a_search_gives_as_many_accounts_as_it_says(live: Live, public: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(links, "MAX_FOUND", 2)
    for account in ("acc", "acc-1", "acc-2", "acc-3"):
        await came(live, public, account)
    console = Console(live)
    assert (await console.seen("/search", q="acc-"))["accounts"] == ["acc-3", "acc-2"]
    assert (await console.seen("/search", q="acc"))["accounts"] == ["acc", "acc-3", "acc-2"], "the very one besides"


@pytest.mark.slow(0.2)
async def test_a_search_finds_what_a_text_may_mean(live: Live, console: Console, public: str):
    farm, family, _ = await shop(live, public)
    last = await came(live, public, "acc-9", 5, tag="order 7")
    assert (await console.seen("/search", q=last["request_id"]))["event"]["request_id"] == last["request_id"]
    assert (await console.seen("/search", q=farm[:8] + "…"))["visitors"] == [farm], "as tables show it"
    assert (await console.seen("/search", q=family))["visitors"] == [family]
    assert (await console.seen("/search", q="acc-"))["accounts"] == ["acc-9", "acc-3", "acc-2", "acc-1"]
    assert (await console.seen("/search", q="acc-1"))["accounts"] == ["acc-1"]
    assert (await console.seen("/search", q=" order 7 "))["tag"] is True
    assert (await console.seen("/search", q="95.194.3.4/16"))["network"] == "95.194.0.0/16"
    assert (await console.seen("/search", q="2001:DB8::1"))["network"] == "2001:db8::1"
    assert await console.seen("/search", q="nothing of it") == {"visitors": [], "accounts": [], "tag": False}
    assert "event" not in await console.seen("/search", q=UNKNOWN)
    stranger = Console(live, organization=live.new_organization())
    for text in (last["request_id"], farm, "acc-1", "order 7"):
        assert await stranger.seen("/search", q=text) == {"visitors": [], "accounts": [], "tag": False}
