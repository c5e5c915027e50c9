"""Decisions 16.1: for how long events are readable is a setting; windows, deliveries and redelivery stay at 30 days."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import trio

from svc.cli.serve.config_check import mistakes
from svc.features.retention.sweeper import sweep
from svc.features.webhooks.tables import DELIVERIES, WEBHOOK_EVENTS
from svc.identify.tables import ADDRESSES, DOCUMENTS, EVENTS, HOURS, VISITORS
from svc.kernel.config import Config, ConfigError
from svc.kernel.config_loading import load
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.timestamps import timestamp
from svc.world import World
from tests.spec.automation import Automation
from tests.spec.commands import Ran, Run
from tests.spec.console import Console
from tests.spec.responses import assert_error
from tests.spec.subscriber import Subscriber, subscribing
from tests.support.live import Live, live_service
from tests.support.serving_postgresql import at_rest

DAYS = 90


class Kept(NamedTuple):
    """A service that keeps events for 90 days, with one event of an account in production."""

    hooks: Subscriber
    secret: str
    endpoint: str
    event: dict[str, Any]

    @property
    def live(self) -> Live:
        return self.hooks.live

    async def get(self, path: str, **query: Any) -> httpx.Response:
        return await self.live.client.get(f"/api/v1{path}", params=query, headers={"x-api-key": self.secret})

    async def read(self) -> httpx.Response:
        return await self.get(f"/events/{self.event['request_id']}")

    def later(self, *, days: float) -> None:
        self.live.clock.now_ms += round(days * DAY_MS)

    def ago(self, days: float) -> str:
        return timestamp(self.live.clock.now_ms - round(days * DAY_MS))

    def rows(self, *tables: Any) -> list[int]:
        return [self.live.count(table) for table in tables]

    async def sweep(self, days: int = DAYS) -> None:
        await sweep(self.live.found.store, self.live.clock.now_ms, 365, with_passes=True, event_ms=days * DAY_MS)


@pytest.fixture
async def kept(tmp_path: Path, engine: str) -> AsyncGenerator[Kept]:
    assert engine
    async with subscribing(tmp_path, event_retention_days=DAYS) as hooks:
        endpoint, _ = await hooks.create()
        _, secret = hooks.live.issue("secret", "production")
        answer = await hooks.live.identify(hooks.production, account_id="user-1", action="log_in")
        await at_rest()
        yield Kept(hooks, secret, endpoint, answer.json())


async def test_events_are_readable_for_as_long_as_the_setting_says(kept: Kept):
    """To the millisecond, whether or not retention has deleted them."""
    kept.later(days=DAYS)
    detail = (await kept.read()).json()
    assert detail["document"]["signals"]
    listed = await kept.get("/events", **{"from": kept.ago(DAYS), "to": kept.ago(DAYS - 30)})
    assert [row["request_id"] for row in listed.json()["rows"]] == [kept.event["request_id"]]
    kept.live.clock.now_ms += 1
    assert_error(await kept.read(), 404, "event_not_found")
    found = await kept.get("/events", **{"from": kept.ago(DAYS), "to": kept.ago(DAYS - 1)})
    assert found.json()["rows"] == []


async def test_a_window_lies_within_the_event_retention_and_has_30_days_at_most(kept: Kept):
    kept.later(days=DAYS)
    for start, end, status in ((DAYS, DAYS - 30, 200), (DAYS, DAYS - 30.1, 422), (DAYS + 0.1, DAYS - 1, 422)):
        window = {"from": kept.ago(start), "to": kept.ago(end)}
        answer = await kept.get("/events", **window)
        assert answer.status_code == status, answer.text
        console = await Console(kept.live).get("/events", **window)
        assert console.status_code == status
        counted = await Console(kept.live).get("/statistics", **window)
        assert counted.status_code == status


async def test_a_cursor_goes_on_among_old_events(kept: Kept):
    assert (await kept.live.identify(kept.hooks.production)).status_code == 200
    kept.later(days=60)
    window = {"from": kept.ago(61), "to": kept.ago(59), "limit": 1}
    first = (await kept.get("/events", **window)).json()
    second = (await kept.get("/events", **window, cursor=first["next_cursor"])).json()
    assert [row["request_id"] for row in second["rows"]] == [kept.event["request_id"]]


async def test_accounts_and_visitors_are_seen_for_as_long_as_their_events(kept: Kept):
    kept.later(days=60)
    visitor = kept.event["visitor_id"]
    for path, name in (("accounts", "account_id"), ("visitors", "visitor_id")):
        subject = "user-1" if path == "accounts" else visitor
        assert [row[name] for row in (await kept.get(f"/{path}")).json()[path]] == [subject]
        assert (await kept.get(f"/{path}/{subject}")).status_code == 200
    seen = await Console(kept.live).seen(f"/visitors/{visitor}")
    assert (seen["event_count"], len(seen["events"])) == (1, 1)
    assert (await Console(kept.live).get(f"/events/{kept.event['request_id']}")).status_code == 200
    kept.later(days=DAYS)
    assert (await kept.get("/accounts")).json()["accounts"] == []
    assert_error(await kept.get("/accounts/user-1"), 404, "not_found")


async def test_an_old_event_takes_another_account(kept: Kept):
    """Also where what its account counted then is gone (decisions 11.2); no window counts it, and its erasure leaves
    nothing.
    """
    kept.later(days=80)
    await kept.sweep()
    path = f"/api/v1/events/{kept.event['request_id']}"
    headers = {"x-api-key": kept.secret}
    changed = await kept.live.client.patch(path, json={"account_id": "user-2"}, headers=headers)
    assert (changed.status_code, changed.json()["account_id"]) == (200, "user-2")
    assert [row["account_id"] for row in (await kept.get("/accounts")).json()["accounts"]] == ["user-2"]
    answer = await kept.live.identify(kept.hooks.production, account_id="user-2")
    assert answer.status_code == 200
    velocity = (await kept.get(f"/events/{answer.json()['request_id']}")).json()["velocity"]
    assert velocity["account"]["events"]["30d"] == 1
    management = Automation(kept.live)
    assert (await management("DELETE", f"/visitors/{kept.event['visitor_id']}")).status_code == 204
    assert (await management("DELETE", f"/visitors/{answer.json()['visitor_id']}")).status_code in (204, 404)
    await kept.sweep()
    assert kept.rows(EVENTS) == [0]
    with kept.live.found.store.read() as snapshot:
        rows = [row for _, activity in snapshot.scan(ADDRESSES) for row in (activity.live, activity.test)]
        assert not [row for row in rows if row.others[0].ids]


async def test_retention_deletes_events_after_their_time_and_webhooks_after_30_days(kept: Kept):
    kept.later(days=30)
    await kept.sweep()
    assert kept.rows(EVENTS, DOCUMENTS, WEBHOOK_EVENTS, DELIVERIES) == [1, 1, 1, 1]
    event_id = (await kept.hooks.deliveries())[0]["event_id"]
    kept.later(days=0.01)
    await kept.sweep()
    assert kept.rows(EVENTS, DOCUMENTS, WEBHOOK_EVENTS, DELIVERIES) == [1, 1, 0, 0]
    assert await kept.hooks.deliveries() == []
    assert_error(await kept.hooks.do(kept.endpoint, "redeliver", {"event_id": event_id}), 404, "not_found")
    kept.later(days=DAYS - 31)
    await kept.sweep()
    assert kept.rows(EVENTS, DOCUMENTS, HOURS) == [1, 1, 1]
    kept.later(days=1)
    await kept.sweep()
    assert kept.rows(EVENTS, DOCUMENTS, HOURS, VISITORS) == [0, 0, 0, 1]


async def test_a_shorter_time_holds_for_events_that_are_there(tmp_path: Path, engine: str):
    assert engine
    now_ms = World.real().now_ms()
    async with live_service(tmp_path, now_ms=now_ms, event_retention_days=DAYS) as live:
        key = live.issue(environment="production")[1]
        _, secret = live.issue("secret", "production")
        request_id = (await live.identify(key)).json()["request_id"]
    async with live_service(tmp_path, now_ms=now_ms + 31 * DAY_MS) as live:
        answer = await live.client.get(f"/api/v1/events/{request_id}", headers={"x-api-key": secret})
        assert_error(answer, 404, "event_not_found")
        await sweep(live.found.store, live.clock.now_ms, 365)
        assert live.count(EVENTS) == 0


@pytest.fixture
async def old_event(tmp_path: Path, engine: str) -> tuple[Path, str, dict[str, Any]]:
    """A directory, its organization, and an event of 40 days ago."""
    assert engine
    async with live_service(tmp_path / "data", now_ms=World.real().now_ms() - 40 * DAY_MS) as live:
        answer = await live.identify(live.issue(environment="production")[1], account_id="user-1")
        return tmp_path / "data", live.organization.id, answer.json()


@pytest.mark.only_on("lmdb", "what commands read is the setting")
async def test_commands_read_the_setting(
    run: Run, old_event: tuple[Path, str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
):
    directory, organization, made = old_event
    request_id, visitor = made["request_id"], made["visitor_id"]
    at = ("--data", directory, "--json")

    async def ran(*arguments: object) -> Ran:
        return await trio.to_thread.run_sync(run, *arguments)  # a command has an event loop of its own

    asked = partial(ran, "events", "list", organization, "--since", "45d")
    assert (await ran("events", "get", organization, request_id, "--data", directory)).status == 1
    assert (await asked(*at)).json["events"] == []
    (await ran("account", "show", organization, "user-1", "--data", directory)).assert_refused("no account")
    monkeypatch.setenv("SVC_EVENT_RETENTION_DAYS", str(DAYS))
    assert (await ran("events", "get", organization, request_id, *at)).json["request_id"] == request_id
    assert [row["request_id"] for row in (await asked(*at)).json["events"]] == [request_id]
    assert (await ran("account", "show", organization, "user-1", *at)).json["account_id"] == "user-1"
    assert (await ran("account", "list", organization, *at)).json["accounts"][0]["account_id"] == "user-1"
    assert (await ran("visitor", "show", organization, visitor, *at)).json["event_count"] == 1


# The setting


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"SVC_EVENT_RETENTION_DAYS": "29"}, "SVC_EVENT_RETENTION_DAYS: "),
        ({"SVC_EVENT_RETENTION_DAYS": "401"}, "SVC_EVENT_RETENTION_DAYS: "),
        (
            {"SVC_EVENT_RETENTION_DAYS": "366"},
            "SVC_EVENT_RETENTION_DAYS: 366 days are more than visitor_retention_days",
        ),
        (
            {"SVC_EVENT_RETENTION_DAYS": "60", "SVC_VISITOR_RETENTION_DAYS": "59"},
            "SVC_EVENT_RETENTION_DAYS: 60 days are more than visitor_retention_days, which is 59",
        ),
    ],
)
def test_a_time_that_cannot_be_is_refused_by_name(variables: dict[str, str], says: str):
    with pytest.raises(ConfigError) as refused:
        load(None, variables)
    assert str(refused.value).startswith(says)


def test_config_check_names_a_time_that_cannot_be(tmp_path: Path):
    file = tmp_path / "svc.toml"
    file.write_text("event_retention_days = 400\n")
    (found,) = mistakes(file, {})
    assert (found.where, "400 days are more" in found.problem) == (f"{file}:1", True)
    assert list(mistakes(file, {"SVC_VISITOR_RETENTION_DAYS": "400"})) == []


def test_the_longest_time_and_what_was_valid_before_are_taken():
    longest = load(None, {"SVC_EVENT_RETENTION_DAYS": "400", "SVC_VISITOR_RETENTION_DAYS": "400"})
    assert longest.event_retention_ms() == 400 * DAY_MS
    before = load(None, {"SVC_VISITOR_RETENTION_DAYS": "7"})
    assert (before.visitor_retention_days, before.event_retention_days) == (7, 30)
    assert Config().event_retention_days == 30
