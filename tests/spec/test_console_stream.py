"""Decisions 9.3, ADR 38: identifications as they come, and what ends a stream."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio

from svc.features.events.console_routes import HEARTBEAT_S, MAX_RESUMED
from svc.features.events.live import EVENTS_HELD, MAX_VIEWERS, LiveHub
from svc.identify.events.listing import EVERYTHING
from svc.kernel.work import slices
from tests.spec.console_browser import API, SESSION, Browser, signed_in
from tests.spec.people import came_in
from tests.spec.responses import DRIVEN, assert_error, visit
from tests.spec.test_metrics import scrape
from tests.support.live import Live, live_service, report

STREAM = API + "/stream"


class Watching:
    """An open stream, read from its socket."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.head = b""
        self._rest = b""
        self.is_over = False

    async def open(self, request: str) -> None:
        await self.stream.send_all(request.encode())
        while b"\r\n\r\n" not in self._rest:
            await self._more()
        self.head, _, self._rest = self._rest.partition(b"\r\n\r\n")

    @property
    def status(self) -> int:
        return int(self.head[9:12])

    async def part(self) -> str | None:
        """The next chunk of the response; `None` = its end."""
        while b"\r\n" not in self._rest:
            await self._more()
        size, _, self._rest = self._rest.partition(b"\r\n")
        length = int(size, 16)
        while len(self._rest) < length + 2:
            await self._more()
        part, self._rest = self._rest[:length], self._rest[length + 2 :]
        return part.decode() if length else None

    async def events(self, count: int) -> list[tuple[str, str, Any]]:
        """(kind, id, data) of the next messages."""
        found: list[tuple[str, str, Any]] = []
        while len(found) < count:
            part = await self.part()
            assert part is not None, f"the stream ended after {found}"
            for block in part.split("\n\n"):
                fields = dict(line.split(": ", 1) for line in block.splitlines() if line and line[0] != ":")
                if fields:
                    found.append((fields["event"], fields.get("id", ""), json.loads(fields["data"])))
        assert len(found) == count
        return found

    async def _more(self) -> None:
        received = await self.stream.receive_some()
        if not received:
            self.is_over = True
            raise EOFError
        self._rest += received


@asynccontextmanager
async def watching(live: Live, browser: Browser, query: str = "", **headers: str) -> AsyncGenerator[Watching]:
    """A stream of the browser that has begun."""
    lines = [f"GET {STREAM}{query} HTTP/1.1", f"host: 127.0.0.1:{live.port}", "sec-fetch-site: same-origin"]
    lines.append(f"cookie: svc-console={browser.cookie}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    async with await trio.open_tcp_stream("127.0.0.1", live.port) as stream:
        found = Watching(stream)
        with trio.fail_after(30):
            await found.open("\r\n".join([*lines, "", ""]))
            if found.status == 200:
                assert await found.part() == ": ping\n\n"
        yield found


async def closed(live: Live) -> None:
    """Until the service has noticed that nobody watches any more."""
    with trio.fail_after(30):
        while live.service.live.statistics().open:
            await trio.testing.wait_all_tasks_blocked(0.001)


@pytest.mark.slow(0.3)
async def test_an_identification_is_shown_at_once_as_in_the_list(live: Live, secret: str, public: str):
    async with watching(live, await signed_in(live)) as watched:
        head = watched.head.lower()
        for line in (b"content-type: text/event-stream", b"cache-control: no-store", b"x-accel-buffering: no"):
            assert line in head
        with trio.fail_after(30):
            answers = [(await visit(live, public, report(device))).json() for device in (1, 2)]
            shown = await watched.events(2)
    listed = (await live.client.get("/api/v1/events", headers={"x-api-key": secret})).json()["rows"]
    assert [(kind, found) for kind, found, _ in shown] == [
        ("identification", answer["request_id"]) for answer in answers
    ]
    assert [row for _, _, row in shown] == listed[::-1]


async def test_a_viewer_sees_the_environment_and_the_events_it_asked_for(live: Live):
    keys = {environment: live.issue(environment=environment)[1] for environment in ("production", "development")}
    browser = await signed_in(live)
    async with (
        watching(live, browser) as production,
        watching(live, browser, "?environment=development&signal=automation") as driven,
    ):
        with trio.fail_after(30):
            await visit(live, keys["development"])
            wanted = (await visit(live, keys["development"], report() | DRIVEN)).json()
            plain = (await visit(live, keys["production"])).json()
            assert [found for _, found, _ in await driven.events(1)] == [wanted["request_id"]]
            assert [found for _, found, _ in await production.events(1)] == [plain["request_id"]]


async def test_events_of_another_organization_are_not_visible(live: Live, public: str):
    theirs = live.new_organization()
    _, other = live.issue(environment="production", organization=theirs.number)
    async with watching(live, await signed_in(live)) as watched:
        await visit(live, other)
        answer = (await visit(live, public)).json()
        with trio.fail_after(30):
            assert [found for _, found, _ in await watched.events(1)] == [answer["request_id"]]


async def test_a_returning_viewer_gets_missed_events_once_and_in_order(live: Live, public: str):
    browser, ids = await signed_in(live), list[str]()
    for device in (1, 2, 3, 4):
        live.clock.now_ms += 10
        ids.append((await visit(live, public, report(device))).json()["request_id"])
    async with watching(live, browser, last_event_id=ids[1]) as watched:
        ids.append((await visit(live, public, report(5))).json()["request_id"])
        with trio.fail_after(30):
            assert [found for _, found, _ in await watched.events(3)] == ids[2:]


@pytest.mark.slow
async def test_of_missed_events_the_newest_are_sent_and_the_rest_is_counted(
    live: Live, key: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(slices, "MAX_AT_ONCE", 40)  # so that others have their turn in between
    first = (await visit(live, key)).json()["request_id"]
    for _ in range(MAX_RESUMED + 3):
        await visit(live, key)
    async with watching(live, await signed_in(live), "?environment=development", last_event_id=first) as watched:
        with trio.fail_after(30):
            missed, *shown = await watched.events(1 + MAX_RESUMED)
    assert (missed[0], missed[2]) == ("missed", {"count": 3})
    assert len({found for _, found, _ in shown}) == MAX_RESUMED


@pytest.mark.parametrize(
    ("query", "headers", "code", "detail"),
    [
        ("?environment=nowhere", {}, "validation_error", ("environment", "invalid_value", "query")),
        ("?level=odd", {}, "invalid_window", ("level", "invalid_value", "query")),
        ("?signal=odd", {}, "validation_error", ("signal", "invalid_value", "query")),
        ("?page=1", {}, "validation_error", ("page", "unknown_field", "query")),
        ("", {"last-event-id": "odd"}, "validation_error", ("last-event-id", "invalid_value", "header")),
    ],
)
async def test_an_invalid_stream_request_is_refused(
    live: Live, query: str, headers: dict[str, str], code: str, detail: tuple[str, str, str]
):
    browser = await signed_in(live)
    assert_error(await browser("GET", STREAM + query, **headers), 422, code, detail)
    assert live.service.live.statistics().open == 0


async def test_a_stream_requires_a_session_or_a_key_and_a_page_of_this_service(live: Live):
    browser = await signed_in(live)
    assert_error(await browser("GET", STREAM, sec_fetch_site="cross-site"), 403, "cross_origin_request")
    assert_error(await Browser(live)("GET", STREAM), 401, "unauthorized")
    assert (await browser("HEAD", STREAM)).headers["content-type"] == "text/event-stream"
    assert live.service.live.statistics().open == 0


async def test_streams_of_an_organization_are_limited(live: Live):
    browser = await signed_in(live)
    number = live.organization.number
    viewers = [live.service.live.watch(number, "staging", EVERYTHING, b"") for _ in range(MAX_VIEWERS)]
    response = await browser("GET", STREAM)
    assert "20 live streams" in assert_error(response, 429, "rate_limited")
    assert response.headers["retry-after"] == f"{HEARTBEAT_S:.0f}"
    other = live.service.live.watch(number + 1, "staging", EVERYTHING, b"")
    assert other is not None
    for viewer in (*viewers, other):
        assert viewer is not None
        viewer.close()
    async with watching(live, browser) as watched:
        assert watched.status == 200


async def test_streams_of_all_organizations_together_are_limited(live: Live):
    """Each holds a connection that nothing evicts: identifications need the others."""
    browser = await signed_in(live)
    others = [
        live.service.live.watch(number, "staging", EVERYTHING, b"")
        for number in range(1_000, 1_013)
        for _ in range(MAX_VIEWERS)
    ]
    assert others.count(None) == len(others) - 250, "a quarter of 1,000 connections"
    assert "The service has" in assert_error(await browser("GET", STREAM), 429, "rate_limited")


async def test_a_stream_ends_when_its_session_is_signed_out(live: Live):
    browser, other = await signed_in(live), await signed_in(live)
    async with watching(live, browser) as watched, watching(live, other) as stays:
        await browser("DELETE", SESSION)
        with trio.fail_after(60):
            assert await watched.part() is None
        assert live.service.live.statistics().open == 1
        assert not stays.is_over


async def test_a_stream_ends_when_its_member_is_removed(live: Live):
    browser, admin = await came_in(live), await signed_in(live)
    member_id = (await browser("GET", SESSION)).json()["member"]["id"]
    async with watching(live, browser) as watched:
        await admin("DELETE", f"{API}/management/organizations/{live.organization.id}/members/{member_id}")
        with trio.fail_after(60):
            assert await watched.part() is None


@pytest.mark.slow
async def test_a_viewer_that_disconnects_is_removed_and_its_request_counted_and_logged(live: Live):
    async with watching(live, await signed_in(live)):
        assert live.service.traffic.statistics().in_flight == 1
        assert live.service.live.statistics().open == 1
    await closed(live)
    statistics = live.service.traffic.statistics()
    assert statistics.in_flight == 0
    assert {one.status for one in statistics.requests if one.operation_id == "streamEvents"} == {"200"}


@pytest.mark.served(metrics=True)
@pytest.mark.slow
async def test_open_streams_and_sent_events_are_counted(live: Live, public: str):
    async with watching(live, await signed_in(live)) as watched:
        await visit(live, public)
        await watched.events(1)
        found = await scrape(live)
        assert (found("svc_streams_open"), found("svc_http_requests_in_flight")) == (1, 1)
        assert (found("svc_stream_events_sent_total"), found("svc_stream_events_missed_total")) == (1, 0)
    await closed(live)
    assert (await scrape(live))("svc_streams_open") == 0


async def test_the_drain_ends_streams_at_once(directory: Path):
    async with live_service(directory, drain_limit_s=600) as live:
        browser = await signed_in(live)
        stream = await trio.open_tcp_stream("127.0.0.1", live.port)
        watched = Watching(stream)
        await watched.open(f"GET {STREAM} HTTP/1.1\r\nhost: localhost\r\ncookie: svc-console={browser.cookie}\r\n\r\n")
        assert await watched.part() == ": ping\n\n"
    with trio.fail_after(60):
        assert await watched.part() is None
        with pytest.raises(EOFError):
            await watched.part()
    await stream.aclose()


async def test_a_viewer_with_a_full_buffer_misses_events_and_does_not_slow_others_down(live: Live, public: str):
    hub: LiveHub = live.service.live
    slow = hub.watch(live.organization.number, "production", EVERYTHING, b"")
    assert slow is not None
    event = (await visit(live, public)).json()["request_id"]
    (_, stored), *_ = live.events()
    for _ in range(EVENTS_HELD + 4):
        hub.publish(live.organization.number, UUID(event), stored)
    assert hub.statistics().missed == 5
    assert hub.statistics().sent == EVENTS_HELD
    assert (slow.take_missed(), slow.take_missed()) == (5, 0)
    assert len(slow.waiting()) == EVENTS_HELD
    slow.close()
    hub.publish(live.organization.number, UUID(event), stored)
    assert hub.statistics().open == 0
