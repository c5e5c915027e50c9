"""`GET /console/api/events/{request_id}`: one event of any environment, its webhooks, and the visits beside it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from svc.features.erasure import organizations as removal
from tests.spec.console import Console
from tests.spec.responses import DRIVEN, assert_error, visit
from tests.spec.subscriber import COMPLETED, Subscriber
from tests.support.live import ORIGIN, Live, report
from tests.support.receivers import DOWN
from tests.support.serving_postgresql import at_rest

HOSTILE = '<script>alert(1)</script>"&\u2028'
"""A tag that a page must show as text."""


async def identified(live: Live, secret: str, signals: Any = None, **given: Any) -> str:
    """The request id of a new identification."""
    return (await visit(live, secret, signals, **given)).json()["request_id"]


async def test_an_event_of_any_environment_is_shown_as_in_the_server_api(live: Live, console: Console):
    for environment in ("production", "staging", "development"):
        key, public = live.issue("public", environment)
        _, secret = live.issue("secret", environment)
        request_id = await identified(live, public, report(**DRIVEN), tag=HOSTILE)
        seen = await console.seen(f"/events/{request_id}")
        read = await live.client.get(f"/api/v1/events/{request_id}", headers={"x-api-key": secret})
        assert seen["event"] == read.json()
        assert seen["event"]["environment"] == environment
        assert seen["event"]["tag"] == HOSTILE
        assert seen["event"]["document"]["evidence"]["automation"]
        assert seen["key"] == {"id": key.id, "name": "test", "last4": public[-4:]}
        assert seen["deliveries"] == []


@pytest.mark.slow(0.2)
async def test_previous_and_next_events_of_the_visitor_are_within_its_environment(live: Live):
    """Whatever their levels; also of one millisecond, and not of another visitor or environment."""
    console, (_, public) = Console(live), live.issue()
    _, staging = live.issue("public", "staging")
    visits: list[str] = []
    for count in range(6):
        visits.append(await identified(live, public, report(**(DRIVEN if count % 2 else {}))))
        await identified(live, public, report(5))
        await identified(live, staging, report())
        if count != 2:
            live.clock.advance(seconds=60)
    beside = [await console.seen(f"/events/{request_id}") for request_id in visits]
    visitors = {seen["event"]["visitor_id"] for seen in beside}
    assert len(visitors) == 1
    assert [seen.get("previous") for seen in beside] == [None, *visits[:-1]]
    assert [seen.get("next") for seen in beside] == [*visits[1:], None]


async def test_the_oldest_readable_event_has_none_before_it(live: Live):
    console, (_, public) = Console(live), live.issue()
    old = await identified(live, public)
    live.clock.advance(hours=1)
    new = await identified(live, public)
    live.clock.advance(hours=30 * 24 - 0.5)
    assert "previous" not in await console.seen(f"/events/{new}")
    assert_error(await console.get(f"/events/{old}"), 404, "event_not_found")


async def test_its_webhook_attempts_are_listed_newest_first(hooks: Subscriber):
    """Of both event types, every endpoint and every attempt; of no other event."""
    console = Console(hooks.live)
    await hooks.create(events=[COMPLETED, "visitor.suspect"])
    removed, _ = await hooks.create()
    other = await identified(hooks.live, hooks.production)
    await at_rest()
    hooks.receivers.respond_with(DOWN)
    request_id = await identified(hooks.live, hooks.production, report(2, **DRIVEN))
    await at_rest()
    assert len((await console.seen(f"/events/{request_id}"))["deliveries"]) == 3
    posts = [*hooks.receivers.take(), *await hooks.wait(seconds=10)]
    assert (await hooks("DELETE", f"/webhooks/{removed}")).status_code == 204
    deliveries = (await console.seen(f"/events/{request_id}"))["deliveries"]
    listed = await hooks.deliveries()
    about = {post.event["id"] for post in posts if post.event["data"]["request_id"] == request_id}
    assert deliveries == [row for row in listed if row["event_id"] in about]
    assert {(row["event"], row["attempt"]) for row in deliveries} == {
        (COMPLETED, 1),
        (COMPLETED, 2),
        ("visitor.suspect", 1),
        ("visitor.suspect", 2),
    }
    assert len(deliveries) == 6
    assert [row["id"] for row in deliveries] == sorted((row["id"] for row in deliveries), reverse=True)
    assert len((await console.seen(f"/events/{other}"))["deliveries"]) == 2


async def test_an_event_without_a_document_is_shown_without_it(live: Live):
    console, (_, public) = Console(live), live.issue(allowed_origins=(ORIGIN,))
    request_id = await identified(live, public, report(**DRIVEN))
    beyond = removal.before(live.clock.now_ms + 1)
    live.found.store.write_now([partial(removal.drop_documents, number=live.organization.number, beyond=beyond)])
    event = (await console.seen(f"/events/{request_id}"))["event"]
    assert (event["has_document"], event["document"]) == (False, None)
    assert [fired["signal"] for fired in event["signals"]] == ["automation"]


async def test_a_path_that_is_not_a_request_id_is_invalid(live: Live):
    response = await Console(live).get("/events/latest")
    assert_error(response, 422, "invalid_request_id", ("request_id", "invalid_value", "path"))
