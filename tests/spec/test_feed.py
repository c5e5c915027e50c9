"""The feed of events, which interface 4.2 and decisions 7.1 are extended by (interface 9.2): each event once, oldest
first, and none behind a cursor that was given out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from svc.features.feed.feed import HOLD_MS, NOT_WITH_ORDER
from svc.features.retention.sweeper import sweep
from svc.identify.events.listing import FILTERS
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.timestamps import timestamp
from tests.spec.automation import Automation
from tests.spec.commands import run_beside
from tests.spec.responses import assert_error, assert_invalid, visit
from tests.spec.test_events import EVENTS, get, secret_key, visits
from tests.support.live import Live, live_service, succeeded

HOUR_MS = 3_600_000
EVEN, ODD = "81.2.69.160", "81.2.69.161"


async def feed(live: Live, key: str, **query: Any) -> tuple[list[str], str]:
    """Request ids of a page of the feed, and its cursor."""
    body = succeeded(await get(live, key, order="oldest", **query))
    assert (body["page"], body["page_size"]) == (1, query.get("limit", 10))
    return [row["request_id"] for row in body["rows"]], body["next_cursor"]


async def whole_feed(live: Live, key: str, **query: Any) -> list[str]:
    """All that there is now."""
    found: list[str] = []
    while True:
        body = (await get(live, key, order="oldest", **query)).json()
        found += [row["request_id"] for row in body["rows"]]
        if not body["has_more"]:
            return found
        query.pop("from_", None)
        query["after"] = body["next_cursor"]


@pytest.mark.slow(0.2)
async def test_the_feed_has_each_event_once_oldest_first_and_a_cursor_at_its_end(live: Live):
    made, secret = await visits(live, 7), secret_key(live)
    live.clock.now_ms += HOLD_MS
    newest = (await get(live, secret, limit=200)).json()["rows"]
    response = await get(live, secret, order="oldest", limit=200)
    assert response.json()["rows"] == newest[::-1], "rows are those of the list"
    for limit in (1, 3, 7, 200):
        assert await whole_feed(live, secret, limit=limit) == made
    _, cursor = await feed(live, secret, limit=200)
    assert await feed(live, secret, after=cursor) == ([], cursor)
    more = await visits(live, 2)
    live.clock.now_ms += HOLD_MS
    page, cursor = await feed(live, secret, after=cursor)
    assert page == more
    assert (await get(live, secret, order="newest", limit=1)).json()["rows"][0]["request_id"] == more[-1]


async def test_an_event_is_held_back_for_two_seconds(live: Live):
    (made,), secret = await visits(live, 1), secret_key(live)
    live.clock.now_ms += HOLD_MS - 1
    assert (await feed(live, secret))[0] == []
    live.clock.now_ms += 1
    assert (await feed(live, secret))[0] == [made]


async def test_what_is_stored_by_a_clock_that_is_behind_comes_behind_the_cursor_that_was_given_out(live: Live):
    made, secret = await visits(live, 3), secret_key(live)
    live.clock.now_ms += HOLD_MS
    first, cursor = await feed(live, secret)
    live.clock.now_ms -= HOUR_MS
    late = await visits(live, 3)
    second, cursor = await feed(live, secret, after=cursor, limit=2)
    third, cursor = await feed(live, secret, after=cursor)
    assert (first, second + third) == (made, late)
    assert await whole_feed(live, secret) == made + late, "as for anybody who reads it later"
    assert await whole_feed(live, secret, limit=1) == made + late


async def test_an_event_by_a_clock_that_is_far_ahead_is_not_held_back_until_then(live: Live, server_key: str):
    live.clock.now_ms += HOUR_MS
    ahead = await visits(live, 1)
    live.clock.now_ms -= HOUR_MS
    assert (await feed(live, server_key))[0] == ahead


async def test_the_feed_is_of_the_environment_and_the_organization_of_the_key(live: Live):
    made = await visits(live, 1)
    other = live.new_organization().number
    live.clock.now_ms += HOLD_MS
    _, cursor = await feed(live, secret_key(live))
    for key in (secret_key(live, "staging"), secret_key(live, organization=other)):
        assert (await feed(live, key))[0] == []
        assert_invalid(await get(live, key, order="oldest", after=cursor), "after", "invalid_cursor", "query")
    assert (await feed(live, secret_key(live)))[0] == made, "any key of the environment"


async def test_a_cursor_goes_on_with_any_filters(live: Live, server_key: str, key: str):
    made: list[str] = []
    for number in range(6):
        here = {"x-forwarded-for": EVEN if number % 2 == 0 else ODD}
        answer = await visit(live, key, headers=here, account_id="user-1")
        made.append(answer.json()["request_id"])
        live.clock.now_ms += 1000
    live.clock.now_ms += HOLD_MS
    assert await whole_feed(live, server_key, ip_address=EVEN, limit=2) == made[::2]
    page, cursor = await feed(live, server_key, ip_address=EVEN, limit=1)
    assert page == made[:1]
    assert (await feed(live, server_key, after=cursor, ip_address=ODD, kind="human"))[0] == made[1::2]
    assert (await feed(live, server_key, after=cursor))[0] == made[1:]


async def test_what_a_feed_does_not_have_is_refused(live: Live, server_key: str):
    await visits(live, 1)
    _, cursor = await feed(live, server_key)
    now = timestamp(live.clock.now_ms)
    wrong_here: dict[str, dict[str, Any]] = {
        "page": {"page": 1},
        "cursor": {"cursor": cursor},
        "to": {"to": now},
        "from": {"from_": now, "after": cursor},
    }
    for field, query in wrong_here.items():
        assert_invalid(await get(live, server_key, order="oldest", **query), field, "invalid_value", "query")
    assert_invalid(await get(live, server_key, after=cursor), "after", "invalid_value", "query")
    assert_invalid(await get(live, server_key, order="newest", after=cursor), "after", "invalid_value", "query")
    assert_invalid(await get(live, server_key, order="upwards"), "order", "invalid_value", "query")
    assert_invalid(await get(live, server_key, cursor=cursor), "cursor", "invalid_cursor", "query")
    list_cursor = (await get(live, server_key, limit=1, order="newest")).json().get("next_cursor", "")
    for wrong in ("", "A" * 44, cursor[:-2], list_cursor):
        assert_invalid(await get(live, server_key, order="oldest", after=wrong), "after", "invalid_cursor", "query")
    for start, issue in (("then", "invalid_value"), (timestamp(live.clock.now_ms + 1), "out_of_range")):
        refused = await get(live, server_key, order="oldest", from_=start)
        assert_error(refused, 422, "invalid_window", ("from", issue, "query"))
    refused = await get(live, server_key, order="oldest", level="none")
    assert_error(refused, 422, "invalid_window", ("level", "invalid_value", "query"))
    assert_invalid(await get(live, server_key, order="oldest", limit=201), "limit", "out_of_range", "query")


@pytest.mark.parametrize("name", ["account_id", "action", "tag", "label"])
async def test_a_feed_takes_no_filter_on_what_an_event_may_get_later(live: Live, server_key: str, name: str):
    """Decisions 19. A sign-up whose account is set after it was given out is in the list of the account, and would
    never come in a feed of it.
    """
    values = {"account_id": "user-1", "action": "log_in", "tag": "order 1", "label": "fraud"}
    sign_up = (await visit(live, live.issue()[1], action="sign_up")).json()["request_id"]
    live.clock.now_ms += HOLD_MS
    page, cursor = await feed(live, server_key)
    assert page == [sign_up]
    changed = await live.client.patch(f"{EVENTS}/{sign_up}", json=values, headers={"x-api-key": server_key})
    assert changed.status_code == 200, changed.text
    assert [row["request_id"] for row in (await get(live, server_key, **{name: values[name]})).json()["rows"]] == [
        sign_up
    ]
    for behind in ({}, {"after": cursor}):
        for value in (values[name], "\x00" * 2000):
            refused = await get(live, server_key, order="oldest", **behind, **{name: value})
            assert_invalid(refused, name, "not_with_order", "query")


def test_every_filter_of_lists_works_in_a_feed_or_is_refused_by_name():
    """A new filter is to be put on one side: whether an event may get it after it was given out."""
    works = {"visitor", "level", "ip_address", "country", "signal", "kind", "asn", "decision", "group"}
    assert works.isdisjoint(NOT_WITH_ORDER)
    assert set(FILTERS) <= works | set(NOT_WITH_ORDER)


@pytest.mark.slow(1.5)
async def test_no_command_that_reads_the_feed_takes_such_a_filter(live: Live, tmp_path: Path):
    organization = live.organization.id
    for option, value in (("--account", "a"), ("--action", "b"), ("--tag", "c"), ("--label", "fraud")):
        for command in (
            ("events", "tail", organization, "--no-follow"),
            ("export", "events", organization, "--hourly", tmp_path),
        ):
            ran = await run_beside(*command, option, value, *live.options)
            ran.assert_usage()
            assert f"has no {option}" in ran.err


async def test_a_feed_from_a_time_on(live: Live):
    made, secret = await visits(live, 4, apart_ms=HOUR_MS), secret_key(live)
    start = timestamp(live.clock.now_ms - HOUR_MS)
    live.clock.now_ms += HOLD_MS
    assert await whole_feed(live, secret, from_=start, limit=1) == made[2:]
    page, cursor = await feed(live, secret, from_=timestamp(live.clock.now_ms))
    more = await visits(live, 1)
    live.clock.now_ms += HOLD_MS
    assert (page, (await feed(live, secret, after=cursor))[0]) == ([], more)


async def test_an_update_does_not_bring_an_event_again_and_an_erased_one_is_gone(live: Live):
    made, secret = await visits(live, 3), secret_key(live)
    live.clock.now_ms += HOLD_MS
    page, cursor = await feed(live, secret, limit=1)
    headers = {"x-api-key": secret}
    for request_id in made[:2]:
        changed = await live.client.patch(f"{EVENTS}/{request_id}", json={"account_id": "user-9"}, headers=headers)
        assert changed.status_code == 200
    response = await get(live, secret, order="oldest", after=cursor)
    assert page == made[:1]
    assert [(row["request_id"], row.get("account_id")) for row in response.json()["rows"]] == [
        (made[1], "user-9"),
        (made[2], None),
    ]
    visitors = {row["visitor_id"] for row in response.json()["rows"]}
    for visitor_id in visitors:
        assert (await Automation(live)("DELETE", f"/visitors/{visitor_id}")).status_code == 204
    rest, _ = await feed(live, secret, after=cursor)
    assert rest == []


async def test_a_cursor_that_is_older_than_retention_goes_on_with_the_oldest_event(live: Live):
    old, secret = await visits(live, 2), secret_key(live)
    live.clock.now_ms += HOLD_MS
    page, cursor = await feed(live, secret, limit=1)
    live.clock.now_ms += 31 * DAY_MS
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    new = await visits(live, 2)
    live.clock.now_ms += HOLD_MS
    assert page == old[:1]
    assert (await feed(live, secret, after=cursor))[0] == new
    assert await whole_feed(live, secret) == new


async def test_a_clock_that_retention_does_not_believe_hides_nothing_from_a_cursor(live: Live):
    """17.3. What a page passed over would be there again when the clock is right, behind the cursor."""
    old, secret = await visits(live, 3), secret_key(live)
    live.clock.now_ms += HOLD_MS
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    _, cursor = await feed(live, secret, limit=1)
    live.clock.now_ms += 400 * DAY_MS
    assert (await feed(live, secret, after=cursor))[0] == old[1:]


async def test_the_lists_of_the_console_have_no_feed(live: Live, server_key: str):
    response = await live.client.get("/console/api/events?order=oldest", headers={"x-api-key": server_key})
    assert response.status_code in (401, 422)


@pytest.mark.slow(0.2)
async def test_cursors_outlive_a_restart(directory: Path):
    async with live_service(directory) as live:
        made, secret = await visits(live, 3), secret_key(live)
        live.clock.now_ms += HOLD_MS
        _, cursor = await feed(live, secret, limit=1)
        now_ms = live.clock.now_ms
    async with live_service(directory) as live:
        live.clock.now_ms = now_ms
        assert (await feed(live, secret, after=cursor))[0] == made[1:]
