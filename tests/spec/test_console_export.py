"""Decisions 16.3: the events that a view shows as a file, and the entries of a list as one."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from svc.features.exports import console_routes as export
from svc.features.exports.lines import FILE_COLUMNS
from svc.features.lists.command import read_csv
from svc.http.exchange import LOOK_EVERY_S
from svc.kernel.work import slices
from tests.spec.console import Console
from tests.spec.console_browser import API, SESSION, signed_in
from tests.spec.people import came_in
from tests.spec.responses import HEADLESS, act, assert_error, assert_invalid
from tests.spec.test_console_stream import Watching
from tests.support.live import Live

Ending = Callable[[], Awaitable[object]]
"""Ends a session or key."""


async def busy(live: Live, visits: int = 5) -> str:
    """A key of production with some visits, each some hours after the one before."""
    public = live.issue(environment="production")[1]
    for number in range(visits):
        headers = HEADLESS if number == 1 else {}
        await act(live, public, f"user-{number % 2}", device=number + 1, headers=headers, tag="=1+1")
        live.clock.advance(hours=2)
    return public


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


async def test_a_file_has_the_events_of_the_list_newest_first(live: Live, console: Console):
    await busy(live)
    listed = (await console.seen("/events", limit=200))["rows"]
    lines = await console.get("/events/export", format="jsonl")
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in lines.text.splitlines()] == listed
    table = await console.get("/events/export")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert table.headers["content-disposition"] == 'attachment; filename="events-production-2026-01-01.csv"'
    assert table.headers["cache-control"] == "no-store"
    rows = rows_of(table.text)
    assert tuple(rows[0]) == FILE_COLUMNS
    assert [row["request_id"] for row in rows] == [row["request_id"] for row in listed]
    assert {row["tag"] for row in rows} == {"'=1+1"}, "no spreadsheet evaluates it"


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"account_id": "user-1"}, 2),
        ({"account_id": "user-0", "from_": "2026-01-01T01:00:00Z"}, 2),
        ({"signal": "headless"}, 1),
        ({"environment": "staging"}, 0),
        ({"to": "2026-01-01T01:00:00Z", "from_": "2026-01-01T00:00:00Z"}, 1),
    ],
)
async def test_a_file_keeps_to_the_filters_and_the_window(live: Live, query: dict[str, Any], count: int):
    await busy(live)
    assert len(rows_of((await Console(live).get("/events/export", **query)).text)) == count


async def test_a_file_is_complete_however_its_events_lie_in_the_index(live: Live, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slices, "MAX_AT_ONCE", 1)
    await busy(live, 7)
    console = Console(live)
    rows = rows_of((await console.get("/events/export")).text)
    assert len({row["request_id"] for row in rows}) == 7
    assert [row["occurred_at"] for row in rows] == sorted((row["occurred_at"] for row in rows), reverse=True)
    assert len(rows_of((await console.get("/events/export", account_id="user-0", level="low")).text)) == 4


async def test_too_many_events_are_refused_before_the_first_byte(live: Live, monkeypatch: pytest.MonkeyPatch):
    await busy(live)
    console = Console(live)
    monkeypatch.setattr(export, "MAX_ROWS", 4)
    refused = await console.get("/events/export")
    assert_invalid(refused, "from", "out_of_range", "query")
    assert "events would be exported" in refused.json()["error"]["message"]
    assert len(rows_of((await console.get("/events/export", account_id="user-0")).text)) == 3, "counted by the index"
    assert len(rows_of((await console.get("/events/export", signal="headless")).text)) == 1
    monkeypatch.setattr(export, "MAX_ROWS", 5)
    assert len(rows_of((await console.get("/events/export")).text)) == 5


async def test_what_the_list_refuses_is_refused_here(console: Console):
    wrong = await console.get("/events/export", level="red")
    assert_error(wrong, 422, "invalid_window", ("level", "invalid_value", "query"))
    early = await console.get("/events/export", from_="2020-01-01T00:00:00Z")
    assert_error(early, 422, "invalid_window", ("from", "out_of_range", "query"))
    assert_invalid(await console.get("/events/export", country="GBR"), "country", "invalid_value", "query")
    assert_invalid(await console.get("/events/export", format="xlsx"), "format", "invalid_value", "query")
    assert_invalid(await console.get("/events/export", page=1), "page", "unknown_field", "query")


async def test_the_entries_of_a_list_are_exported_as_they_are_imported(live: Live, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slices, "MAX_AT_ONCE", 2)
    console = Console(live)
    lists = (await console.seen(f"/management/organizations/{live.organization.id}/lists"))["lists"]
    accounts = next(one for one in lists if one["name"] == "blocked_accounts")
    path = f"/management/organizations/{live.organization.id}/lists/{accounts['id']}/entries"
    entries = [{"value": f"user-{number}", "note": '=1, "quoted"'} for number in range(4)]
    entries[0]["expires_at"] = "2026-01-01T01:00:00Z"
    entries[1]["expires_at"] = "2026-02-01T00:00:00Z"
    assert (await console.post(path, {"entries": entries})).status_code == 200
    live.clock.advance(hours=2)
    exported = await console.get(f"/lists/{accounts['id']}/export")
    assert exported.headers["content-disposition"] == 'attachment; filename="blocked_accounts.csv"'
    assert [list(row.values()) for row in rows_of(exported.text)] == [
        ["user-1", '\'=1, "quoted"', "2026-02-01T00:00:00.000Z"],
        ["user-2", '\'=1, "quoted"', ""],
        ["user-3", '\'=1, "quoted"', ""],
    ]
    assert_error(await console.get("/lists/lst_00000000000000000000/export"), 404, "not_found")


async def test_an_exported_list_has_every_value_that_may_be_in_one(live: Live):
    console, under = Console(live), f"/management/organizations/{live.organization.id}/lists"
    made = await console.post(under, {"name": "orders", "kind": "tag"})
    path = f"/lists/{made.json()['id']}"
    values = sorted([" x", "x ", "\u3000", "'=1", "' x'", "\uff1d1", "a;=1", "two\nlines", "a\0b\u2028c", "\\n"])
    await console.post(f"{under}{path.removeprefix('/lists')}/entries", {"entries": [{"value": one} for one in values]})
    exported = await console.get(f"{path}/export")
    _, entries = read_csv(exported.content, "tag", 0)
    assert [entry.value for entry in entries] == values


async def removed(live: Live) -> tuple[str, Ending]:
    """A member who is removed."""
    browser, admin = await came_in(live), await signed_in(live)
    member_id = (await browser("GET", SESSION)).json()["member"]["id"]
    path = f"{API}/management/organizations/{live.organization.id}/members/{member_id}"
    return f"cookie: svc-console={browser.cookie}", lambda: admin("DELETE", path)


async def signed_out(live: Live) -> tuple[str, Ending]:
    """Somebody who signs out."""
    browser = await signed_in(live)
    return f"cookie: svc-console={browser.cookie}", lambda: browser("DELETE", SESSION)


async def revoked(live: Live) -> tuple[str, Ending]:
    """A management key that is revoked."""
    console = Console(live)

    async def revoke() -> None:
        live.revoke(console.key)

    return f"x-api-key: {console.secret}", revoke


@pytest.mark.parametrize("path", ["/events/export", "/lists/{}/export"])
@pytest.mark.parametrize("who", [removed, signed_out, revoked])
async def test_a_download_ends_without_its_end_when_its_session_or_key_has(
    live: Live, path: str, who: Callable[[Live], Awaitable[tuple[str, Ending]]]
):
    await busy(live, 1)
    console, under = Console(live), f"/management/organizations/{live.organization.id}/lists"
    tags = (await console.post(under, {"name": "orders", "kind": "tag"})).json()["id"]
    await console.post(f"{under}/{tags}/entries", {"entries": [{"value": "order-1"}]})
    credential, end = await who(live)
    head = f"GET {API}{path.format(tags)} HTTP/1.1\r\nhost: 127.0.0.1:{live.port}\r\n{credential}\r\n\r\n"
    long_reads = live.service.services.limits.long_reads
    async with await trio.open_tcp_stream("127.0.0.1", live.port) as stream:
        with trio.fail_after(30):
            download = Watching(stream)
            async with long_reads.turn(live.organization.number).held():
                await download.open(head)
                assert (await download.part() or "").count("\n") == 1, "the names of the columns"
                await end()
                live.clock.advance(seconds=LOOK_EVERY_S)
            with pytest.raises((EOFError, trio.BrokenResourceError)):
                await download.part()
