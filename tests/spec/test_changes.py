"""Decisions 19: changes of events, each once, in an order behind which nothing comes."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from svc.features.exports.event_files import FORMS
from svc.features.feed.feed import HOLD_MS
from svc.features.labels.jobs import LabelChange, label_request
from svc.features.retention.jobs import end_pass
from svc.features.retention.sweeper import sweep
from svc.identify.tables import EVENT_CHANGES, EVENTS, FEED_CLOSED
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.timestamps import timestamp
from svc.world import World
from tests.spec.automation import Automation
from tests.spec.commands import Ran, run_beside
from tests.spec.responses import assert_invalid, visit
from tests.spec.test_events import EVENTS as EVENTS_PATH
from tests.spec.test_events import get, secret_key, visits
from tests.support.live import Live, live_service, report, succeeded

CHANGES = "/api/v1/changes"
HOUR_MS, HALF_HOUR_MS = 3_600_000, 1_800_000
"""A service whose clock is set back by more than an hour takes nothing."""
Row = dict[str, Any]


async def page_of(live: Live, key: str, **query: Any) -> dict[str, Any]:
    return succeeded(await live.client.get(CHANGES, params=query, headers={"x-api-key": key}))


async def all_of(live: Live, key: str, **query: Any) -> tuple[list[Row], str]:
    """All that there is now, and the cursor behind it."""
    found: list[Row] = []
    while True:
        body = await page_of(live, key, **query)
        found += body["changes"]
        query["after"] = body["next_cursor"]
        if not body["has_more"]:
            return found, body["next_cursor"]


def said(changes: list[Row]) -> list[tuple[str, str]]:
    return [(row["type"].removeprefix("event."), row["request_id"]) for row in changes]


async def update(live: Live, key: str, request_id: str, **fields: Any) -> Row:
    return succeeded(await live.client.patch(f"{EVENTS_PATH}/{request_id}", json=fields, headers={"x-api-key": key}))


async def erase(live: Live, subject: str, subject_id: str) -> None:
    assert (await Automation(live)("DELETE", f"/{subject}s/{subject_id}")).status_code == 204


async def test_an_event_is_created_updated_and_erased_in_the_order_of_commits(live: Live):
    made, secret = await visits(live, 3), secret_key(live)
    await update(live, secret, made[0], account_id="user-1")
    await update(live, secret, made[2], label="fraud", label_reason="chargeback")
    await update(live, secret, made[0], account_id=None)
    live.clock.now_ms += HOLD_MS
    rows = {row["request_id"]: row for row in (await get(live, secret, limit=200)).json()["rows"]}
    for limit in (1, 2, 3, 200):
        changes, cursor = await all_of(live, secret, limit=limit)
        assert said(changes) == [
            ("created", made[0]), ("created", made[1]), ("created", made[2]),
            ("updated", made[0]), ("updated", made[2]), ("updated", made[0]),
        ]  # fmt: skip
        assert [change["event"] for change in changes] == [rows[change["request_id"]] for change in changes]
    assert (await page_of(live, secret, after=cursor)) == {"changes": [], "next_cursor": cursor, "has_more": False}
    visitor_id = rows[made[0]]["visitor_id"]
    gone = [one for one in made if rows[one]["visitor_id"] == visitor_id]
    await erase(live, "visitor", visitor_id)
    live.clock.now_ms += HOLD_MS
    changes, _ = await all_of(live, secret, after=cursor)
    assert sorted(said(changes)) == sorted(("erased", one) for one in gone)
    assert all(change.keys() == {"type", "at", "request_id"} for change in changes)
    again, _ = await all_of(live, secret)
    assert {("created", one) for one in gone}.isdisjoint(said(again)), "whoever begins later never has it"
    assert all("event" not in change for change in again if change["request_id"] in gone)


async def test_at_is_the_arrival_or_when_it_was_changed(live: Live):
    (one,), secret = await visits(live, 1), secret_key(live)
    occurred_at = (await get(live, secret)).json()["rows"][0]["occurred_at"]
    live.clock.now_ms += HOUR_MS
    await update(live, secret, one, tag="order 7")
    changed_at = timestamp(live.clock.now_ms)
    live.clock.now_ms += HOLD_MS
    changes, _ = await all_of(live, secret)
    assert [change["at"] for change in changes] == [occurred_at, changed_at]


async def test_an_update_that_changes_nothing_is_no_change(live: Live):
    (one,), secret = await visits(live, 1), secret_key(live)
    for fields in ({}, {"tag": None}, {"account_id": "a"}, {"account_id": "a"}, {"label": None}):
        await update(live, secret, one, **fields)
    live.clock.now_ms += HOLD_MS
    assert said((await all_of(live, secret))[0]) == [("created", one), ("updated", one)]


async def test_each_way_to_label_an_event_is_an_update(live: Live, admin: Automation):
    """A review that is closed, and `svc label import`, as a server does."""
    (one,), secret = await visits(live, 1), secret_key(live)
    review = (await admin("POST", "/reviews", {"request_id": one})).json()
    closed = await admin("POST", f"/reviews/{review['review']['id']}/close", {"label": "legitimate"})
    assert closed.status_code == 200, closed.text
    live.found.store.write_now([partial(label_now, live=live, request_id=one)])
    live.clock.now_ms += HOLD_MS
    changes, _ = await all_of(live, secret)
    assert said(changes) == [("created", one), ("updated", one), ("updated", one)]
    assert {change["event"]["label"] for change in changes} == {"fraud"}


def label_now(transaction: Any, live: Live, request_id: str) -> None:
    """As `svc label import` does."""
    raw_id = bytes.fromhex(request_id.replace("-", ""))
    label_request(transaction, live.organization.number, raw_id, LabelChange("fraud", "bot"), live.clock.now_ms)


async def test_an_account_that_is_erased_leaves_its_events_which_are_updated(live: Live):
    public, secret = live.issue()[1], secret_key(live)
    one, other = [
        (await visit(live, public, report(device), account_id=account)).json()["request_id"]
        for device, account in ((1, "gone"), (2, "stays"))
    ]
    live.clock.now_ms += HOLD_MS
    _, cursor = await all_of(live, secret)
    live.clock.now_ms += HOUR_MS
    await erase(live, "account", "gone")
    erased_ms = live.clock.now_ms
    live.clock.now_ms += HOLD_MS
    (change,), _ = await all_of(live, secret, after=cursor)
    assert said([change]) == [("updated", one)]
    assert change["at"] == timestamp(erased_ms)
    assert "account_id" not in change["event"]
    assert "gone" not in str(await all_of(live, secret))
    assert "stays" in str(await all_of(live, secret))
    assert other


async def test_an_update_comes_behind_its_event_whatever_the_clocks_say(live: Live, server_key: str):
    live.clock.now_ms += HALF_HOUR_MS
    (ahead,) = await visits(live, 1)
    live.clock.now_ms -= HALF_HOUR_MS
    await update(live, server_key, ahead, tag="a")
    (later,) = await visits(live, 1)
    await update(live, server_key, later, tag="b")
    changes, cursor = await all_of(live, server_key)
    assert said(changes)[:2] == [("created", later), ("created", ahead)]
    assert said(changes)[2:] == [("updated", ahead), ("updated", later)]
    live.clock.now_ms -= HALF_HOUR_MS
    await update(live, server_key, ahead, tag="c")
    live.clock.now_ms += HOLD_MS
    assert said((await all_of(live, server_key, after=cursor))[0]) == [("updated", ahead)]


async def test_a_change_by_a_clock_that_is_behind_comes_behind_the_cursor(live: Live):
    made, secret = await visits(live, 2), secret_key(live)
    live.clock.now_ms += HOLD_MS
    _, cursor = await all_of(live, secret)
    live.clock.now_ms -= HALF_HOUR_MS
    await update(live, secret, made[0], tag="late")
    (late,) = await visits(live, 1)
    await update(live, secret, late, tag="later")
    live.clock.now_ms += HALF_HOUR_MS + HOLD_MS
    changes, _ = await all_of(live, secret, after=cursor, limit=1)
    assert sorted(said(changes)) == sorted([("updated", made[0]), ("created", late), ("updated", late)])
    assert said(changes).index(("created", late)) < said(changes).index(("updated", late))


async def test_a_change_is_held_back_for_two_seconds(live: Live):
    (one,), secret = await visits(live, 1), secret_key(live)
    live.clock.now_ms += HOLD_MS
    _, cursor = await all_of(live, secret)
    await update(live, secret, one, tag="a")
    live.clock.now_ms += HOLD_MS - 1
    assert (await all_of(live, secret, after=cursor))[0] == []
    live.clock.now_ms += 1
    assert len((await all_of(live, secret, after=cursor))[0]) == 1


async def test_changes_are_of_the_environment_and_the_organization_of_the_key(live: Live):
    (one,), secret = await visits(live, 1), secret_key(live)
    await update(live, secret, one, tag="a")
    live.clock.now_ms += HOLD_MS
    _, cursor = await all_of(live, secret)
    other = live.new_organization().number
    for key in (secret_key(live, "staging"), secret_key(live, organization=other)):
        assert (await all_of(live, key))[0] == []
        refused = await live.client.get(CHANGES, params={"after": cursor}, headers={"x-api-key": key})
        assert_invalid(refused, "after", "invalid_cursor", "query")
    assert len((await all_of(live, secret_key(live)))[0]) == 2, "any key of the environment"


async def test_what_changes_do_not_have_is_refused(live: Live, server_key: str):
    for query, field, issue in (
        ({"limit": 0}, "limit", "out_of_range"),
        ({"limit": 201}, "limit", "out_of_range"),
        ({"after": ""}, "after", "invalid_cursor"),
        ({"after": "A" * 43}, "after", "invalid_cursor"),
        ({"from": "2026-01-05T10:00:00Z"}, "from", "unknown_field"),
        ({"account_id": "a"}, "account_id", "unknown_field"),
    ):
        response = await live.client.get(CHANGES, params=query, headers={"x-api-key": server_key})
        assert_invalid(response, field, issue, "query")


async def test_a_page_has_fifty_changes_by_default(live: Live):
    (one,), secret = await visits(live, 1), secret_key(live)
    for at in range(50):
        await update(live, secret, one, tag=f"{at}")
    live.clock.now_ms += HOLD_MS
    page = await page_of(live, secret)
    assert (len(page["changes"]), page["has_more"]) == (50, True)
    assert said((await all_of(live, secret, after=page["next_cursor"]))[0]) == [("updated", one)]


@pytest.mark.slow(0.3)
async def test_that_an_event_grows_too_old_is_no_change_and_changes_are_kept_from_when_they_were_made(live: Live):
    (one,), secret = await visits(live, 1), secret_key(live)
    live.clock.now_ms += 29 * DAY_MS
    await update(live, secret, one, label="fraud", label_reason="chargeback")
    live.clock.now_ms += 2 * DAY_MS
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    assert (live.count(EVENTS), live.count(EVENT_CHANGES)) == (0, 1)
    (change,), cursor = await all_of(live, secret)
    assert said([change]) == [("updated", one)]
    assert (change["label"], change["label_reason"], "event" in change) == ("fraud", "chargeback", False)
    live.clock.now_ms += 28 * DAY_MS
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    assert said((await all_of(live, secret))[0]) == [("updated", one)], "for 30 days"
    live.clock.now_ms += DAY_MS
    assert (await all_of(live, secret))[0] == []
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    assert live.count(EVENT_CHANGES) == 0
    (newer,) = await visits(live, 1)
    live.clock.now_ms += HOLD_MS
    assert said((await all_of(live, secret, after=cursor))[0]) == [("created", newer)], "it goes on with the oldest"


async def test_a_clock_that_retention_does_not_believe_hides_no_change_from_a_cursor(live: Live):
    old, secret = await visits(live, 3), secret_key(live)
    live.clock.now_ms += HOLD_MS
    await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
    live.clock.now_ms += 400 * DAY_MS
    assert said((await all_of(live, secret))[0]) == [("created", one) for one in old]


async def test_a_label_of_an_event_that_is_not_readable_any_more_is_a_change_with_the_label(live: Live):
    (one,), secret = await visits(live, 1), secret_key(live)
    live.clock.now_ms += 45 * DAY_MS
    believed = partial(end_pass, number=live.organization.number, began_at_ms=live.clock.now_ms, visitor_days=365)
    live.found.store.write_now([believed])
    for swept in (False, True):
        if swept:
            await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
        label = "legitimate" if swept else "fraud"
        assert await update(live, secret, one, label=label) == {
            "request_id": one, "label": label, "label_reason": None
        }  # fmt: skip
        await update(live, secret, one, label=label)
        live.clock.now_ms += HOLD_MS
        changes, _ = await all_of(live, secret)
        assert said(changes) == [("updated", one)] * (1 + swept)
        assert all((change["label"], change["label_reason"]) == (label, None) for change in changes)
        assert all("event" not in change for change in changes)


async def test_an_identification_writes_no_row_of_changes_and_reads_none(live: Live):
    await visits(live, 3)
    with live.found.store.read() as snapshot:
        assert snapshot.count(EVENT_CHANGES) == 0
        assert snapshot.count(FEED_CLOSED) == 0


@pytest.mark.slow(0.3)
async def test_cursors_outlive_a_restart(directory: Path):
    async with live_service(directory) as live:
        made, secret = await visits(live, 2), secret_key(live)
        await update(live, secret, made[0], tag="a")
        live.clock.now_ms += HOLD_MS
        page, now_ms = await page_of(live, secret, limit=2), live.clock.now_ms
    async with live_service(directory) as live:
        live.clock.now_ms = now_ms
        assert said((await all_of(live, secret, after=page["next_cursor"]))[0]) == [("updated", made[0])]


async def tail(live: Live, *options: Any) -> Ran:
    return await run_beside("events", "tail", live.organization.id, "--changes", *options, *live.options)


def lines_of(ran: Ran) -> list[Row]:
    assert ran.status == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


@pytest.mark.slow
async def test_the_command_line_prints_the_same_changes_with_cursors_of_the_same(directory: Path):
    async with live_service(directory / "data", now_ms=World.real().now_ms() - 60_000) as live:
        public, secret = live.issue(environment="production")[1], secret_key(live, "production")
        one, other = [
            (await visit(live, public, report(device))).json()["request_id"]
            for device in (1, 2)
        ]  # fmt: skip
        await update(live, secret, one, account_id="user-1")
        await erase(live, "visitor", (await get(live, secret)).json()["rows"][0]["visitor_id"])
        live.clock.now_ms += HOLD_MS
        expected, _ = await all_of(live, secret)
        file = directory / "cursor"
        options = ("--since", "1h", "--no-follow", "--json", "--cursor-file", file)
        lines = lines_of(await tail(live, *options))
        assert [{name: value for name, value in line.items() if name != "cursor"} for line in lines] == expected
        assert lines_of(await tail(live, *options)) == []
        behind = (await page_of(live, secret, after=lines[0]["cursor"]))["changes"]
        assert behind == expected[1:]
        assert lines_of(await tail(live, "--no-follow", "--json", "--from", lines[-2]["cursor"])) == lines[-1:]
        text = (await tail(live, "--since", "1h", "--no-follow", "--ids")).out.splitlines()
        assert [line.split()[0] for line in text] == [
            "change",
            *(row["type"].removeprefix("event.") for row in expected),
        ]
        assert f"request {other}" in text[-1]
        feed = run_beside(
            "events", "tail", live.organization.id, "--no-follow", "--from", lines[0]["cursor"], *live.options
        )
        (await feed).assert_refused("has no cursor of this feed")
        for wrong, words in (
            (("--account", "a"), "takes no filters"),
            (("--level", "high"), "takes no filters"),
            (("--since", "1h", "--until", "1m"), "has no end"),
        ):
            ran = await tail(live, *wrong)
            ran.assert_usage()
            assert words in ran.err


@pytest.mark.slow(2)
async def test_files_of_an_hour_have_the_changes_that_were_made_in_it(directory: Path):
    now_ms = World.real().now_ms()
    hour_ms = now_ms - now_ms % HOUR_MS - 4 * HOUR_MS
    async with live_service(directory / "data", now_ms=hour_ms) as live:
        public, secret = live.issue(environment="production")[1], secret_key(live, "production")
        one, gone = [(await visit(live, public, report(device))).json()["request_id"] for device in (1, 2)]
        live.clock.now_ms = hour_ms + HOUR_MS + 1
        await update(live, secret, one, tag="later")
        await erase(live, "visitor", (await get(live, secret)).json()["rows"][0]["visitor_id"])
        live.clock.now_ms += HOLD_MS
        expected, _ = await all_of(live, secret)
        assert said(expected)[-1] == ("erased", gone)

        async def exported(folder: Path, *options: object) -> Ran:
            command = ("export", "events", live.organization.id, "--hourly", folder, *options)
            return await run_beside(*command, *live.options)

        for form in FORMS:
            folder = directory / form
            for _ in range(2):
                assert (await exported(folder, "--changes", "--format", form)).status == 0
            names = [f"changes-{timestamp(hour_ms + hours * HOUR_MS)[:13]}Z.{form}" for hours in (0, 1)]
            assert sorted(path.name for path in folder.glob(f"*.{form}")) == names
            found = [read_file(folder / name) for name in names]
            assert [said(rows) for rows in found] == [said(expected[:1]), said(expected[1:])]
            if form == "jsonl":
                assert [*found[0], *found[1]] == expected
            else:
                assert [row["tag"] for row in (*found[0], *found[1])] == ["later", "later", None]
        (await exported(directory / "jsonl")).assert_refused("or changes: name another")
        for wrong, words in (
            (("--changes", "--account", "a"), "takes no filters"),
            (("--changes", "--documents"), "has no --documents"),
        ):
            ran = await exported(directory / "other", *wrong)
            ran.assert_usage()
            assert words in ran.err
        ran = await run_beside("export", "events", live.organization.id, "--changes", *live.options)
        ran.assert_usage()


def read_file(path: Path) -> list[Row]:
    """Empty cells are `None`."""
    match path.suffix:
        case ".jsonl":
            return [json.loads(line) for line in path.read_text().splitlines()]
        case ".csv":
            with path.open(newline="") as file:
                return [{name: text or None for name, text in row.items()} for row in csv.DictReader(file)]
        case _:
            return pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
