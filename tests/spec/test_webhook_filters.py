"""Decisions 16.2: an endpoint may have a filter, a condition in CEL that says which events are sent to it."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import httpx

from svc.features.rules.jobs import facts_now
from svc.features.webhooks.content.payloads import FILTERED
from svc.features.webhooks.jobs.deliveries import enqueue, enqueue_about
from svc.features.webhooks.records import EVENT_TYPES, EventType
from svc.features.webhooks.tables import DELIVERIES, WEBHOOK_EVENTS
from svc.features.weights.jobs import save_weights
from svc.identify.scoring.score import WeightsChange
from svc.identify.tables import EVENTS
from svc.kernel.tenants.queries import organization
from svc.kernel.values.ids import DAY_MS, HOUR_MS
from tests.spec.responses import assert_error, assert_invalid, nothing_stored
from tests.spec.subscriber import COMPLETED, URL, Subscriber
from tests.support.live import report
from tests.support.receivers import DOWN, OK, Post
from tests.support.serving_postgresql import at_rest

SUSPICIOUS = {**report(), "webdriver": True}
OTHERS: list[EventType] = [event_type for event_type in EVENT_TYPES if event_type not in FILTERED]


async def identified(hooks: Subscriber, signals: Any = None, **fields: Any) -> list[Post]:
    """What arrives because of an identification in production."""
    response = await hooks.live.identify(hooks.production, signals, **fields)
    assert response.status_code == 200, response.text
    await at_rest()
    return hooks.receivers.take()


async def the_list(hooks: Subscriber, name: str, kind: str, *values: str) -> str:
    made = (await hooks("POST", "/lists", {"name": name, "kind": kind})).json()["id"]
    if values:
        await hooks("POST", f"/lists/{made}/entries", {"entries": [{"value": value} for value in values]})
    return made


def rows(hooks: Subscriber) -> tuple[int, int]:
    return hooks.live.count(WEBHOOK_EVENTS), hooks.live.count(DELIVERIES)


# What is sent


async def test_only_events_of_which_the_filter_is_true_are_sent(hooks: Subscriber):
    await hooks.create(filter='action == "log_in" && account.id.startsWith("user-")')
    assert await identified(hooks, action="checkout", account_id="user-1") == []
    assert rows(hooks) == (0, 0), "what is held back has no event and no delivery"
    (post,) = await identified(hooks, action="log_in", account_id="user-1")
    assert post.event["data"]["action"] == "log_in"
    assert rows(hooks) == (1, 1)


async def test_a_filter_applies_to_suspects_and_each_endpoint_has_its_own(hooks: Subscriber):
    change = WeightsChange(threshold=1, weights={"automation": 50})
    number = hooks.organization.number
    hooks.live.found.store.write_now(
        [lambda transaction: save_weights(transaction, number, None, "web", change, hooks.live.clock.now_ms)]
    )
    both = [COMPLETED, "visitor.suspect"]
    for path, condition in {"all": None, "bots": '"automation" in signals', "quiet": 'action == "browse"'}.items():
        await hooks.create(url=f"{URL}/{path}", events=both, filter=condition)
    seen = [(post.url.rpartition("/")[2], post.event["type"]) for post in await identified(hooks, SUSPICIOUS)]
    assert sorted(seen) == [
        ("all", COMPLETED),
        ("all", "visitor.suspect"),
        ("bots", COMPLETED),
        ("bots", "visitor.suspect"),
    ]
    assert rows(hooks) == (2, 4)
    assert {post.url.rpartition("/")[2] for post in await identified(hooks, action="browse")} == {"all", "quiet"}


async def test_other_types_go_out_whatever_the_filter_says(hooks: Subscriber):
    endpoint, _ = await hooks.create(events=EVENT_TYPES, filter="false")
    assert await identified(hooks) == []
    number, now_ms = hooks.organization.number, hooks.live.clock.now_ms
    for event_type in OTHERS:
        job = partial(enqueue, organization=number, event_type=event_type, environment="live", data={}, at_ms=now_ms)
        queues: Any = hooks.live.found.store.write_now([job])[0]
        hooks.live.service.outbox.wake(queues)
    await at_rest()
    assert sorted(post.event["type"] for post in hooks.receivers.take()) == sorted(OTHERS)
    await hooks.do(endpoint, "test")
    assert [post.event["type"] for post in hooks.receivers.take()] == ["webhook.test"]


async def test_a_filter_asks_lists_velocity_and_the_age_of_a_visitor(hooks: Subscriber):
    """All that rules may name (decisions 13.4)."""
    listed = await the_list(hooks, "watched", "account", "user-1")
    await hooks.create(
        filter='in_list("watched") && velocity.visitor.events["30d"] >= 2 && visitor.age_days >= 1 && present("tag")'
    )
    assert await identified(hooks, account_id="user-1", tag="a") == []
    hooks.live.clock.now_ms += DAY_MS
    assert len(await identified(hooks, account_id="user-1", tag="a")) == 1
    assert await identified(hooks, account_id="user-1") == []
    assert await identified(hooks, account_id="user-2", tag="a") == []
    await hooks("DELETE", f"/lists/{listed}/entries", {"values": ["user-1"]})
    assert await identified(hooks, account_id="user-1", tag="a") == [], "from the next request on"


async def test_a_filter_can_be_changed_and_removed(hooks: Subscriber):
    """What is queued already goes out."""
    endpoint, _ = await hooks.create(filter='action == "log_in"')
    assert (await hooks.shown(endpoint))["filter"] == 'action == "log_in"'
    hooks.receivers.respond_with(DOWN)
    assert len(await identified(hooks, action="log_in")) == 1
    changed = (await hooks.patch(endpoint, filter='action == "checkout"')).json()
    assert changed["filter"] == 'action == "checkout"'
    hooks.receivers.respond_with(OK)
    assert len(await hooks.wait(seconds=60)) == 1
    assert await identified(hooks, action="log_in") == []
    removed = (await hooks.patch(endpoint, filter=None, description="all")).json()
    assert {"filter", "filter_errors_24h"} & set(removed) == set()
    assert len(await identified(hooks, action="log_in")) == 1
    again = (await hooks.patch(endpoint, description="still all")).json()
    assert "filter" not in again


async def test_what_was_held_back_is_not_redelivered(hooks: Subscriber):
    """There was no event; also where another endpoint had it."""
    held, _ = await hooks.create(filter="false")
    other, _ = await hooks.create(url=f"{URL}/other")
    (post,) = await identified(hooks)
    assert_error(await hooks.do(held, "redeliver", {"event_id": post.event_id}), 404, "not_found")
    assert (await hooks.do(other, "redeliver", {"event_id": post.event_id})).status_code == 202


# Errors of the evaluation


async def test_an_error_does_not_match_and_is_counted_for_a_day(hooks: Subscriber):
    """What asks for a variable without a value fails, as in a rule; `present` says whether there is one."""
    endpoint, _ = await hooks.create(filter='account.id == "user-1"')
    safe, _ = await hooks.create(url=f"{URL}/safe", filter='present("account.id") && score >= 0')
    assert await identified(hooks) == []
    assert ((await hooks.shown(endpoint))["filter_errors_24h"], (await hooks.shown(safe))["filter_errors_24h"]) == (
        1,
        0,
    )
    assert len(await identified(hooks, account_id="user-1")) == 2
    assert (await hooks.shown(endpoint))["filter_errors_24h"] == 1
    hooks.live.clock.now_ms += DAY_MS + HOUR_MS
    assert (await hooks.shown(endpoint))["filter_errors_24h"] == 0


async def test_errors_are_counted_by_the_traffic_of_the_endpoint(hooks: Subscriber):
    """Of `test` endpoints in staging and development; and not where the endpoint does not subscribe."""
    _, staging = hooks.live.issue(environment="staging")
    endpoint, _ = await hooks.create(environment="test", filter='account.id == "user-1"')
    other, _ = await hooks.create(environment="test", events=["webhook.test"], filter='account.id == "user-1"')
    await identified(hooks)
    assert (await hooks.live.identify(staging)).status_code == 200
    assert (await hooks.shown(endpoint))["filter_errors_24h"] == 1
    assert (await hooks.shown(other))["filter_errors_24h"] == 0


# What cannot be saved


async def test_a_condition_that_cannot_be_used_is_refused_with_its_position(hooks: Subscriber):
    endpoint, _ = await hooks.create(filter="score > 1")

    def refused(response: httpx.Response, said: str) -> None:
        assert_invalid(response, "filter", "invalid_condition")
        message = response.json()["error"]["message"]
        assert message.startswith("filter: ")
        assert said in message

    for condition, said in (
        ("", "line 1, column 1"),
        ("score >", "line 1, column"),
        ('score >= 60\n&& cuntry == "GB"', "line 2, column 4"),
        ("score + 1", "not true or false"),
        ('in_list("nobody")', "line 1, column 9: there is no list 'nobody'"),
        ('present("visitr")', "there is no variable 'visitr'"),
    ):
        with nothing_stored(hooks.live):
            refused(await hooks.post(filter=condition), said)
            refused(await hooks.patch(endpoint, filter=condition), said)


async def test_a_filter_that_could_cost_too_much_is_refused(hooks: Subscriber):
    """Decisions 13.4: ten filters together cost at most as much as a ruleset."""
    endpoint, _ = await hooks.create(filter="score > 1")
    for condition in ('tag.matches("^(.|b)*x{9}$")', "signals.all(a, groups.all(b, a == b))"):
        with nothing_stored(hooks.live):
            for response in (await hooks.post(filter=condition), await hooks.patch(endpoint, filter=condition)):
                assert_invalid(response, "filter", "too_expensive")
                assert "the filter could take" in response.json()["error"]["message"]


async def test_a_filter_of_another_form_is_refused(hooks: Subscriber):
    with nothing_stored(hooks.live):
        assert_invalid(await hooks.post(filter=7), "filter", "wrong_type")
        assert_invalid(await hooks.post(filter="score > 1" + " " * 2000), "filter", "too_long")


async def test_a_list_that_a_filter_names_is_in_use(hooks: Subscriber):
    """As one that a rule names (decisions 12.2); also that of a paused endpoint."""
    listed = await the_list(hooks, "watched", "tag")
    endpoint, _ = await hooks.create(filter='in_list("watched")')
    await hooks.patch(endpoint, paused=True)
    for method, body in (("PATCH", {"name": "other"}), ("DELETE", None)):
        with nothing_stored(hooks.live):
            assert_error(await hooks(method, f"/lists/{listed}", body), 409, "list_in_use")
    assert (await hooks.patch(endpoint, filter="true")).status_code == 200
    assert (await hooks("DELETE", f"/lists/{listed}")).status_code == 204
    assert_invalid(await hooks.patch(endpoint, filter='in_list("watched")'), "filter", "invalid_condition")


# For what else is filtered


async def test_events_about_a_stored_event_are_filtered_by_it(hooks: Subscriber):
    """As those of reviews are: by the event as it is, with the lists of now."""
    await hooks.create(filter='action == "log_in" && in_list("blocked_accounts")')
    answer = (await hooks.live.identify(hooks.production, action="log_in", account_id="user-1")).json()
    number, request_id = hooks.organization.number, UUID(answer["request_id"])

    def job(transaction: Any) -> int:
        event = transaction.get(EVENTS, number, request_id.bytes)
        event_id, now_ms = hooks.live.world.request_id(0), hooks.live.clock.now_ms
        facts = facts_now(transaction, organization(transaction, number), event, now_ms)
        return len(enqueue_about(transaction, number, event_id, COMPLETED, "live", {}, now_ms, lambda: facts))

    assert hooks.live.found.store.write_now([job]) == [0]
    lists = (await hooks("GET", "/lists")).json()["lists"]
    (blocked,) = [each["id"] for each in lists if each["name"] == "blocked_accounts"]
    await hooks("POST", f"/lists/{blocked}/entries", {"entries": [{"value": "user-1"}]})
    assert hooks.live.found.store.write_now([job]) == [1]
