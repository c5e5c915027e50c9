"""Interface 2.10, 3, 4.4, 6 and 8, decisions 8: what is sent to registered endpoints, and the list of it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
import trustme

from svc.features.webhooks.records import Attempted
from svc.http import listing
from svc.kernel.work import slices
from tests.spec.automation import Automation
from tests.spec.responses import assert_error, assert_invalid, assert_request_id, nothing_stored
from tests.spec.subscriber import COMPLETED, GONE, HOOKS, URL, Subscriber
from tests.support.live import PUBLIC_ADDRESS, live_service
from tests.support.receivers import DOWN, OK, Post, Request, read_request, receiver, response
from tests.support.serving_postgresql import at_rest

OTHER_URL = f"https://{PUBLIC_ADDRESS}/other"
DELIVERIES = "/webhook-deliveries"
STARTED = "2026-01-01T00:00:00.000Z"
DAYS_30_H = 30 * 24
TIMEOUT = Attempted(None, "timeout", 10_000, None)


# What is sent


async def test_a_delivery_is_signed_with_the_secret_that_was_shown(hooks: Subscriber):
    """Interface 6, rules 1 to 4, and the envelope; decisions 8.1."""
    _, secret = await hooks.create()
    (post,) = await hooks.happen()
    event = post.event
    assert post.url == URL
    assert post.signed_with(secret)
    assert {
        name: post.headers[name] for name in ("Content-Type", "User-Agent", "X-Svc-Event-ID", "X-Svc-Event-Type")
    } == {
        "Content-Type": "application/json",
        "User-Agent": "Svc-Webhooks/1.0",
        "X-Svc-Event-ID": event["id"],
        "X-Svc-Event-Type": COMPLETED,
    }
    assert set(event) == {"id", "type", "version", "organization_id", "environment", "created_at", "data"}
    assert (event["type"], event["version"], event["organization_id"]) == (COMPLETED, 1, hooks.organization.id)
    assert_request_id(event["id"])


async def test_stock_libraries_verify_with_the_standard_secret_as_it_was_shown(hooks: Subscriber):
    """Decisions 8.1: by the text of Standard Webhooks 1.0, from the header and the secret alone. While a rotation lasts
    both secrets verify.
    """
    created = (await hooks.post()).json()
    rotated = (await hooks.do(created["endpoint"]["id"], "rotate-secret", {"previous_secret_valid_hours": 1})).json()
    (post,) = await hooks.happen()
    assert rotated["standard_secret"] != created["standard_secret"]
    for shown in (created, rotated):
        prefix, _, encoded = shown["standard_secret"].partition("_")
        assert (prefix, base64.b64decode(encoded, validate=True)) == ("whsec", shown["secret"].encode())
        signed = f"{post.headers['webhook-id']}.{post.headers['webhook-timestamp']}.".encode() + post.body
        digest = base64.b64encode(hmac.new(base64.b64decode(encoded), signed, hashlib.sha256).digest()).decode()
        assert f"v1,{digest}" in post.headers["webhook-signature"].split(" ")
    stranger = hmac.new(b"stranger", signed, hashlib.sha256).digest()
    assert base64.b64encode(stranger).decode() not in post.headers["webhook-signature"]


async def test_production_goes_to_live_endpoints_and_all_other_traffic_to_test_ones(hooks: Subscriber):
    """Interface 2.9, decisions 8.9."""
    await hooks.create(environment="live")
    await hooks.create(environment="test", url=OTHER_URL)
    seen: dict[str, Any] = {}
    for environment in ("production", "staging", "development"):
        (post,) = await hooks.happen(key=hooks.live.issue(environment=environment)[1])
        seen[environment] = (post.url, post.event["environment"], post.event["data"]["environment"])
    assert seen == {
        "production": (URL, "live", "production"),
        "staging": (OTHER_URL, "test", "staging"),
        "development": (OTHER_URL, "test", "development"),
    }


async def test_a_change_of_url_environment_or_types_applies_from_the_next_event(hooks: Subscriber):
    """Interface 4.4."""
    endpoint_id, _ = await hooks.create()
    await hooks.patch(endpoint_id, url=OTHER_URL)
    assert [post.url for post in await hooks.happen()] == [OTHER_URL]
    await hooks.patch(endpoint_id, environment="test")
    assert await hooks.happen() == []
    await hooks.patch(endpoint_id, environment="live", events=["usage.daily_settled"])
    assert await hooks.happen() == []
    await hooks.patch(endpoint_id, events=[COMPLETED])
    assert len(await hooks.happen()) == 1


async def test_after_a_rotation_both_secrets_sign_and_a_second_rotation_replaces_the_older(hooks: Subscriber):
    """Interface 6, rule 5; decisions 8.1."""
    endpoint_id, first = await hooks.create()

    async def rotate(hours: int) -> str:
        return (await hooks.do(endpoint_id, "rotate-secret", {"previous_secret_valid_hours": hours})).json()["secret"]

    async def signed_with(*secrets: str) -> bool:
        (post,) = await hooks.happen()
        return post.signed_with(*secrets)

    second = await rotate(24)
    assert await signed_with(second, first)
    third = await rotate(168)
    assert await signed_with(third, second)
    hooks.live.clock.advance(hours=168)
    assert await signed_with(third)
    fourth = await rotate(24)
    assert await signed_with(fourth, third)
    fifth = await rotate(0)
    assert await signed_with(fifth)


# Paused, deleted


async def test_a_paused_endpoint_gets_no_new_events_and_receives_its_queue_on_resume(hooks: Subscriber):
    """Interface 3 and 6, rule 7; decisions 8.4."""
    endpoint_id, _ = await hooks.create()
    hooks.receivers.respond_with(DOWN)
    (first,) = await hooks.happen()
    await hooks.patch(endpoint_id, paused=True)
    hooks.receivers.respond_with(OK)
    assert await hooks.happen() == []
    assert await hooks.wait(hours=9) == []
    await hooks.patch(endpoint_id, paused=False)
    await at_rest()
    (again,) = hooks.receivers.take()
    assert (again.body, again.headers["webhook-id"]) == (first.body, first.headers["webhook-id"])
    assert await hooks.wait(hours=9) == []


async def test_deleting_an_endpoint_cancels_deliveries_in_flight(hooks: Subscriber):
    """Interface 3: deliveries stop at once; what was sent stays listed."""
    endpoint_id, _ = await hooks.create()
    kept, _ = await hooks.create(url=OTHER_URL)
    hooks.receivers.hold(URL, OTHER_URL)
    assert len(await hooks.happen(3)) == 4  # two slots each
    assert (await hooks("DELETE", f"{HOOKS}/{endpoint_id}")).status_code == 204
    await at_rest()
    assert hooks.receivers.take() == []
    cut_off = await hooks.deliveries()
    assert [(one["endpoint_id"], one["status"], one["error"]) for one in cut_off] == [
        (endpoint_id, "failed", "removed"),
        (endpoint_id, "failed", "removed"),
    ]
    await hooks.receivers.release(URL, OTHER_URL)
    assert {post.url for post in await hooks.wait(hours=1)} == {OTHER_URL}
    assert (await hooks.shown(kept))["delivered_24h"] == 3


# Test and redelivery


async def test_a_test_is_one_signed_delivery_regardless_of_subscriptions(hooks: Subscriber):
    """Interface 4.4 and 6, decisions 8.5 and 8.10."""
    endpoint_id, secret = await hooks.create(environment="test", events=[])
    response = await hooks.do(endpoint_id, "test")
    assert (response.status_code, set(response.json())) == (202, {"event_id"})
    (post,) = hooks.receivers.take()
    assert post.signed_with(secret)
    assert post.event == {
        "id": response.json()["event_id"],
        "type": "webhook.test",
        "version": 1,
        "organization_id": hooks.organization.id,
        "environment": "test",
        "created_at": STARTED,
        "data": {"endpoint_id": endpoint_id, "message": "This is a test delivery."},
    }
    assert_request_id(post.event["id"])


@pytest.mark.parametrize("response", [DOWN, GONE])
async def test_a_failed_test_is_not_retried_and_does_not_make_an_endpoint_failing(
    hooks: Subscriber, response: Attempted
):
    """Decisions 8.4, 8.5: nor does a redelivery; a success of either heals an endpoint."""
    endpoint_id, _ = await hooks.create()
    (post,) = await hooks.happen()
    hooks.receivers.respond_with(response)
    await hooks.do(endpoint_id, "redeliver", {"event_id": post.event["id"]})
    hooks.receivers.take()
    await hooks.do(endpoint_id, "test")
    assert len(hooks.receivers.take()) == 1
    assert await hooks.wait(hours=9) == []
    attempts = await hooks.deliveries()
    assert [(one["status"], one["attempt"]) for one in attempts] == [("failed", 1), ("failed", 1), ("delivered", 1)]
    shown = await hooks.shown(endpoint_id)
    assert (shown["status"], shown["failed_24h"]) == ("active", 2)
    hooks.receivers.respond_with(GONE)
    await hooks.happen()
    assert (await hooks.shown(endpoint_id))["status"] == "failing"
    hooks.receivers.respond_with(OK)
    await hooks.do(endpoint_id, "test")
    assert (await hooks.shown(endpoint_id))["status"] == "active"


async def test_one_test_or_redelivery_at_a_time(hooks: Subscriber):
    """Interface 4.4, decisions 8.5: busy until that attempt has ended, each endpoint for itself."""
    endpoint_id, _ = await hooks.create()
    other, _ = await hooks.create(url=OTHER_URL)
    event_id = (await hooks.happen())[0].event["id"]
    hooks.receivers.hold(URL)
    assert (await hooks.do(endpoint_id, "test")).status_code == 202
    with nothing_stored(hooks.live):
        assert_error(await hooks.do(endpoint_id, "test"), 409, "webhook_busy")
        assert_error(await hooks.do(endpoint_id, "redeliver", {"event_id": event_id}), 409, "webhook_busy")
    assert (await hooks.do(other, "redeliver", {"event_id": event_id})).status_code == 202
    await hooks.receivers.release(URL)
    assert (await hooks.do(endpoint_id, "redeliver", {"event_id": event_id})).status_code == 202


async def test_a_paused_endpoint_takes_no_test_and_no_redelivery(hooks: Subscriber):
    """Decisions 8.5."""
    endpoint_id, _ = await hooks.create()
    event_id = (await hooks.happen())[0].event["id"]
    await hooks.patch(endpoint_id, paused=True)
    with nothing_stored(hooks.live):
        assert_error(await hooks.do(endpoint_id, "test"), 409, "webhook_paused")
        assert_error(await hooks.do(endpoint_id, "redeliver", {"event_id": event_id}), 409, "webhook_paused")
    assert hooks.receivers.take() == []


async def test_a_redelivery_repeats_the_same_event(hooks: Subscriber):
    """Interface 4.4 and 6: the same `id`, byte for byte, signed afresh; of one that failed as well, and tried once."""
    endpoint_id, secret = await hooks.create()
    (first,) = await hooks.happen()
    hooks.live.clock.advance(hours=DAYS_30_H)
    response = await hooks.do(endpoint_id, "redeliver", {"event_id": first.event["id"]})
    assert (response.status_code, response.json()) == (202, {"event_id": first.event["id"]})
    (again,) = hooks.receivers.take()
    assert again.body == first.body
    assert again.headers["X-Svc-Timestamp"] != first.headers["X-Svc-Timestamp"]
    assert again.signed_with(secret)
    hooks.receivers.respond_with(DOWN)
    await hooks.do(endpoint_id, "redeliver", {"event_id": first.event["id"]})
    assert len(hooks.receivers.take()) == 1
    assert await hooks.wait(hours=9) == []


async def test_a_test_event_can_be_redelivered(hooks: Subscriber):
    """Decisions 8.5: this endpoint received it."""
    endpoint_id, _ = await hooks.create()
    event_id = (await hooks.do(endpoint_id, "test")).json()["event_id"]
    assert (await hooks.do(endpoint_id, "redeliver", {"event_id": event_id})).status_code == 202
    assert [post.event["id"] for post in hooks.receivers.take()] == [event_id] * 2


async def test_an_event_that_this_endpoint_never_received_is_not_found(hooks: Subscriber):
    """Decisions 8.5: unknown, another endpoint's, another organization's, or over 30 days old."""
    endpoint_id, _ = await hooks.create()
    (mine,) = await hooks.happen()
    other, _ = await hooks.create(events=[], url=OTHER_URL)
    test = (await hooks.do(other, "test")).json()["event_id"]
    stranger = Subscriber(hooks.live, hooks.receivers, hooks.names)
    stranger.organization = hooks.live.new_organization()
    _, stranger.secret = hooks.live.issue("management", organization=stranger.organization.number)
    theirs, _ = await stranger.create()
    hooks.receivers.take()
    unknown = "019b76da-a800-7000-8000-000000000000"
    with nothing_stored(hooks.live):
        for named, event_id in ((endpoint_id, unknown), (endpoint_id, test), (other, mine.event["id"])):
            assert_error(await hooks.do(named, "redeliver", {"event_id": event_id}), 404, "not_found")
        assert_error(await stranger.do(theirs, "redeliver", {"event_id": mine.event["id"]}), 404, "not_found")
    hooks.live.clock.advance(seconds=DAYS_30_H * 3600 + 0.001)
    assert_error(await hooks.do(endpoint_id, "redeliver", {"event_id": mine.event["id"]}), 404, "not_found")
    assert hooks.receivers.take() == []


async def test_a_redelivery_must_name_one_event(hooks: Subscriber):
    """Interface 4.4; decisions 1.8: also where there is no such endpoint."""
    endpoint_id, _ = await hooks.create()
    with nothing_stored(hooks.live):
        for body, field, issue in (
            ({}, "event_id", "required"),
            ({"event_id": 7}, "event_id", "wrong_type"),
            ({"event_id": "the last one"}, "event_id", "invalid_value"),
            ({"event_id": "019b76da-a800-7000-8000-000000000000", "times": 2}, "times", "unknown_field"),
        ):
            for named in (endpoint_id, "whk_" + "0" * 20):
                assert_invalid(await hooks.do(named, "redeliver", body), field, issue)


# The list of attempts


async def test_an_attempt_is_listed_with_its_outcome(hooks: Subscriber):
    """Interface 2.10, decisions 8.3."""
    endpoint_id, _ = await hooks.create()
    hooks.receivers.respond_with(TIMEOUT)
    (post,) = await hooks.happen()
    hooks.receivers.respond_with(OK)
    await hooks.wait(seconds=6)
    delivered, retrying = await hooks.deliveries()
    shared = {
        "endpoint_id": endpoint_id,
        "endpoint_url": URL,
        "event_id": post.event["id"],
        "event": COMPLETED,
        "environment": "live",
    }
    assert retrying == shared | {
        "id": retrying["id"],
        "status": "retrying",
        "duration_ms": 10_000,
        "attempt": 1,
        "error": "timeout",
        "occurred_at": STARTED,
    }
    assert delivered == shared | {
        "id": delivered["id"],
        "status": "delivered",
        "response_code": 200,
        "duration_ms": 20,
        "attempt": 2,
        "occurred_at": "2026-01-01T00:00:06.000Z",
    }
    for attempt in (delivered, retrying):
        assert_request_id(attempt["id"])


async def test_nine_attempts_take_about_seven_hours_and_the_last_one_fails_the_delivery(hooks: Subscriber):
    """Interface 6, rule 6; decisions 8.2 and 8.3: the same id and bytes each time."""
    endpoint_id, _ = await hooks.create()
    hooks.receivers.respond_with(DOWN)
    posts: list[Post] = await hooks.happen()
    for step_s in (5, 30, 120, 600, 1800, 3600, 7200, 11_700):
        due_in_s = hooks.due_in_s()
        assert 0.9 * step_s <= due_in_s <= 1.1 * step_s
        assert await hooks.wait(seconds=due_in_s - 0.001) == []
        posts += await hooks.wait(seconds=0.001)
    assert len(posts) == 9
    assert await hooks.wait(hours=24) == []
    assert len({post.body for post in posts}) == 1
    assert len({post.headers["X-Svc-Signature"] for post in posts}) == 9
    attempts = (await hooks.deliveries())[::-1]
    assert [one["attempt"] for one in attempts] == list(range(1, 10))
    assert [one["status"] for one in attempts] == ["retrying"] * 8 + ["failed"]
    assert {(one["error"], one["response_code"]) for one in attempts} == {("http_status", 503)}
    assert (await hooks.shown(endpoint_id))["status"] == "failing"


async def test_attempts_are_listed_in_the_order_of_their_start(hooks: Subscriber):
    """Interface 4.4: newest first, also when an earlier one ends later."""
    slow, _ = await hooks.create()
    quick, _ = await hooks.create(url=OTHER_URL)
    hooks.receivers.hold(URL)
    await hooks.do(slow, "test")
    hooks.live.clock.advance(seconds=1)
    await hooks.do(quick, "test")
    await hooks.receivers.release(URL)
    attempts = await hooks.deliveries()
    assert [one["endpoint_id"] for one in attempts] == [quick, slow]
    assert [one["occurred_at"] for one in attempts] == ["2026-01-01T00:00:01.000Z", STARTED]


async def page(hooks: Subscriber, query: str) -> tuple[list[str], str | None]:
    """Ids of a page, and the cursor of the next."""
    response = (await hooks("GET", DELIVERIES + query)).json()
    assert set(response) <= {"deliveries", "next_cursor"}
    return [one["id"] for one in response["deliveries"]], response.get("next_cursor")


@pytest.mark.slow
async def test_a_page_has_50_attempts_by_default_and_at_most_200(hooks: Subscriber):
    """Interface 4.4 and 8, decisions 8.6."""
    for _ in range(5):
        await hooks.create()
    await hooks.happen(11)
    ids, cursor = await page(hooks, "")
    assert len(ids) == 50
    assert len((await page(hooks, f"?cursor={cursor}"))[0]) == 5
    assert len((await page(hooks, "?limit=1"))[0]) == 1
    assert len((await page(hooks, "?limit=200"))[0]) == 55


async def test_attempts_are_filtered_by_environment(hooks: Subscriber):
    """Interface 4.4: `all` when nothing is said; a cursor keeps its place in any of them."""
    await hooks.create()
    test, _ = await hooks.create(environment="test", url=OTHER_URL)
    await hooks.do(test, "test")
    await hooks.happen(2)
    await hooks.do(test, "test")
    everything = await hooks.deliveries()
    assert await hooks.deliveries("?environment=all") == everything
    for environment, count in (("live", 2), ("test", 2)):
        listed = await hooks.deliveries(f"?environment={environment}")
        assert listed == [one for one in everything if one["environment"] == environment]
        assert len(listed) == count
    _, cursor = await page(hooks, "?environment=live&limit=1")
    assert (await page(hooks, f"?environment=live&cursor={cursor}"))[0] == [everything[2]["id"]]
    assert (await page(hooks, f"?environment=test&cursor={cursor}"))[0] == [everything[3]["id"]]


@pytest.mark.parametrize(("at_once", "a_page"), [(64, 10_000), (2, 4)])
@pytest.mark.slow(0.3)
async def test_attempts_are_filtered_by_endpoint(
    hooks: Subscriber, monkeypatch: pytest.MonkeyPatch, at_once: int, a_page: int
):
    """Also where a page looks at few attempts, and after the endpoint was deleted."""
    one, _ = await hooks.create()
    await hooks.happen(3)
    two, _ = await hooks.create(url=OTHER_URL)
    await hooks.happen(2)
    everything = await hooks.deliveries()
    monkeypatch.setattr(slices, "MAX_AT_ONCE", at_once)
    monkeypatch.setattr(listing, "MAX_LOOKED_AT", a_page)
    await hooks("DELETE", f"/webhooks/{one}")
    for endpoint, count in ((one, 5), (two, 2), ("whk_" + "0" * 20, 0)):
        wanted = [attempt["id"] for attempt in everything if attempt["endpoint_id"] == endpoint]
        assert len(wanted) == count
        for limit in (1, 2, 200):
            seen, cursor = await page(hooks, f"?endpoint_id={endpoint}&limit={limit}")
            while cursor is not None:
                more, cursor = await page(hooks, f"?endpoint_id={endpoint}&limit={limit}&cursor={cursor}")
                assert len(more) <= limit
                seen += more
            assert seen == wanted
    assert await hooks.deliveries(f"?endpoint_id={one}&environment=test") == []


async def test_attempts_are_listed_for_30_days(hooks: Subscriber):
    """Interface 8; a cursor of that time leads to an empty page."""
    await hooks.create()
    await hooks.happen(2)
    _, cursor = await page(hooks, "?limit=1")
    hooks.live.clock.advance(hours=DAYS_30_H)
    assert len(await hooks.deliveries()) == 2
    hooks.live.clock.advance(seconds=0.1)
    assert await hooks.deliveries() == []
    assert await page(hooks, f"?cursor={cursor}") == ([], None)


async def test_an_invalid_query_parameter_is_named(hooks: Subscriber):
    """Decisions 1.6 and 8.6."""
    for query, field, issue in (
        ("?limit=0", "limit", "out_of_range"),
        ("?limit=201", "limit", "out_of_range"),
        ("?limit=many", "limit", "wrong_type"),
        ("?environment=production", "environment", "invalid_value"),
        ("?page=2", "page", "unknown_field"),
        ("?endpoint_id=", "endpoint_id", "invalid_value"),
        ("?endpoint_id=https://shop.example/", "endpoint_id", "invalid_value"),
        ("?cursor=", "cursor", "invalid_cursor"),
        ("?cursor=x", "cursor", "invalid_cursor"),
        ("?cursor=%C3%BC", "cursor", "invalid_cursor"),
        ("?cursor=" + "A" * 32, "cursor", "invalid_cursor"),
        ("?cursor=019b76da-a800-7000-8000-000000000000", "cursor", "invalid_cursor"),
    ):
        assert_invalid(await hooks("GET", DELIVERIES + query), field, issue, "query")


@pytest.mark.slow
async def test_a_cursor_is_valid_only_unmodified_and_for_its_owner(hooks: Subscriber):
    """Decisions 8.6: not one that this service did not make."""
    await hooks.create()
    await hooks.happen(2)
    _, cursor = await page(hooks, "?limit=1")
    assert cursor is not None
    for place in range(len(cursor)):
        changed = cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :]
        assert_invalid(await hooks("GET", f"{DELIVERIES}?cursor={changed}"), "cursor", "invalid_cursor", "query")
    stranger = Automation(hooks.live, organization=hooks.live.new_organization())
    assert_invalid(await stranger("GET", f"{DELIVERIES}?cursor={cursor}"), "cursor", "invalid_cursor", "query")
    assert (await stranger("GET", DELIVERIES)).json() == {"deliveries": []}


# Counters and status


async def test_counters_cover_attempts_of_the_last_24_hours(hooks: Subscriber):
    """Interface 2.9, decisions 8.6."""
    endpoint_id, _ = await hooks.create()
    hooks.receivers.respond_with(DOWN)
    await hooks.happen(2)
    hooks.receivers.respond_with(OK)
    hooks.live.clock.advance(hours=12)
    await hooks.happen()
    shown = await hooks.shown(endpoint_id)
    assert (shown["delivered_24h"], shown["failed_24h"]) == (3, 2)
    assert shown["last_delivery_at"] == "2026-01-01T12:00:00.000Z"
    assert (await hooks.patch(endpoint_id)).json() == shown
    hooks.live.clock.advance(hours=12, seconds=60)
    shown = await hooks.shown(endpoint_id)
    assert (shown["delivered_24h"], shown["failed_24h"]) == (3, 0)
    hooks.live.clock.advance(hours=12)
    shown = await hooks.shown(endpoint_id)
    assert (shown["delivered_24h"], shown["failed_24h"]) == (0, 0)
    assert shown["last_delivery_at"] == "2026-01-01T12:00:00.000Z"


async def test_five_failures_over_ten_minutes_make_an_endpoint_failing_and_a_2xx_active(hooks: Subscriber):
    """Decisions 8.4: it keeps receiving, and loses nothing."""
    endpoint_id, _ = await hooks.create()

    async def status() -> tuple[str, str | None]:
        shown = await hooks.shown(endpoint_id)
        return shown["status"], shown.get("failing_since")

    assert await status() == ("active", None)
    hooks.receivers.respond_with(DOWN)
    for _ in range(5):
        await hooks.happen()
        assert await status() == ("active", STARTED), "however many failures at once"
    await hooks.wait(seconds=600)
    assert await status() == ("failing", STARTED)
    hooks.receivers.respond_with(OK)
    assert len(await hooks.happen()) == 6, "the first success makes the others due (decisions 17.7)"
    assert await status() == ("active", None)
    delivered = {one["event_id"] for one in await hooks.deliveries() if one["status"] == "delivered"}
    assert len(delivered) == 6


@pytest.mark.parametrize("change", [{"url": OTHER_URL}, {"paused": False}])
async def test_a_410_ends_the_delivery_and_another_url_or_a_resume_starts_again(
    hooks: Subscriber, change: dict[str, Any]
):
    """Decisions 8.2 and 8.4; when it was last sent to is still known."""
    endpoint_id, _ = await hooks.create()
    hooks.receivers.respond_with(GONE)
    await hooks.happen()
    shown = await hooks.shown(endpoint_id)
    assert (shown["status"], shown["failed_24h"]) == ("failing", 1)
    assert [one["status"] for one in await hooks.deliveries()] == ["failed"]
    assert (await hooks.patch(endpoint_id, description="looked at")).json()["status"] == "failing"
    changed = (await hooks.patch(endpoint_id, **change)).json()
    assert (changed["status"], changed["last_delivery_at"]) == ("active", STARTED)
    assert ("failing_since" in shown, "failing_since" in changed) == (True, False), "its failures count no more"
    assert await hooks.wait(hours=9) == []


# Over the network


class Heard:
    """A receiver that keeps the first request, and the name that leads to it."""

    def __init__(self) -> None:
        self._keep, self._kept = trio.open_memory_channel[Request](1)

    async def look_up(self, host: str, organization: int, /) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        return ("127.0.0.1",) if host == "hooks.example" else ()

    async def __call__(self, stream: trio.abc.Stream) -> None:
        request = await read_request(stream)
        await stream.send_all(response("200 OK"))
        if request is not None:
            self._keep.send_nowait(request)
            await read_request(stream)  # to the end of the connection

    async def request(self) -> Request:
        with trio.fail_after(60):
            return await self._kept.receive()


async def test_a_registered_receiver_gets_deliveries_over_tls(directory: Path):
    """Interface 6, rules 1 and 2, through the real transport: the operator's own network and authority are opened."""
    authority, heard = trustme.CA(), Heard()
    ca_file, tls = directory / "ca.pem", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.cert_pem.write_to_path(ca_file)
    authority.issue_cert("hooks.example").configure_cert(tls)
    settings: dict[str, Any] = {"webhook_allow_networks": ("127.0.0.0/8",), "webhook_ca_file": str(ca_file)}
    async with (
        receiver(heard, tls) as port,
        live_service(directory / "data", resolver=heard.look_up, **settings) as live,
    ):
        automation = Automation(live)
        body = {"url": f"https://hooks.example:{port}/in?a=1", "environment": "live", "events": [], "description": ""}
        created = (await automation("POST", HOOKS, body)).json()
        response = await automation("POST", f"{HOOKS}/{created['endpoint']['id']}/test")
        request = await heard.request()
    assert (request.method, request.target) == ("POST", "/in?a=1")
    assert json.loads(request.body)["id"] == response.json()["event_id"]
    signed = request.headers["x-svc-timestamp"].encode() + b"." + request.body
    digest = hmac.new(created["secret"].encode(), signed, hashlib.sha256).hexdigest()
    assert request.headers["x-svc-signature"] == f"sha256={digest}"
