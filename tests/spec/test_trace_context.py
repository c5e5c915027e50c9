"""The trace of a request is in each of its log lines, and goes out with the webhooks that it causes (ADR 137)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
import structlog
import trio
from structlog.contextvars import merge_contextvars

from svc.features.webhooks.tables import WEBHOOK_EVENTS
from svc.identify.tables import EVENTS
from tests.spec.subscriber import Subscriber
from tests.support.live import ORIGIN, Live
from tests.support.receivers import Post
from tests.support.serving_postgresql import at_rest

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SENT = {"traceparent": f"00-{TRACE}-{CALLER}-01", "tracestate": "rojo=1, congo=t61rcWkgMzE"}


def span_of(request_id: str) -> str:
    """Found by anybody who has the id."""
    return UUID(request_id).bytes[8:].hex()


def assert_caused_by(post: Post, request_id: str) -> None:
    assert post.headers["traceparent"] == f"00-{TRACE}-{span_of(request_id)}-01"
    assert post.headers["tracestate"] == "rojo=1,congo=t61rcWkgMzE"


async def taken(customer: Subscriber) -> list[Post]:
    await at_rest()
    return customer.receivers.take()


async def test_every_webhook_of_an_identification_names_its_trace(hooks: Subscriber):
    await hooks.create(events=["identification.completed", "review.opened"])
    await hooks.create(format="slack")
    rule = {"name": "All", "condition": "true", "action": "review"}
    change = {"revision": 0, "rules": [rule]}
    admin = hooks.live.issue("management")[1]
    path = f"/api/v1/management/organizations/{hooks.organization.id}/rules"
    assert (await hooks.live.client.put(path, json=change, headers={"x-api-key": admin})).status_code == 200
    request_id = (await hooks.live.identify(hooks.production, headers=SENT)).json()["request_id"]
    posts = await taken(hooks)
    assert len(posts) == 3, "two to the first endpoint, a message without signature to the other"
    for post in posts:
        assert_caused_by(post, request_id)
    signed = next(post for post in posts if "X-Svc-Signature" in post.headers)
    assert b"traceparent" not in signed.body, "the signed envelope is what it was"


async def test_a_retry_and_a_redelivery_name_the_trace_of_the_cause(hooks: Subscriber):
    endpoint, _ = await hooks.create()
    answer = await hooks.live.identify(hooks.production, headers=SENT)
    (post,) = await taken(hooks)
    other = {"traceparent": SENT["traceparent"].replace(TRACE, "1" * 32)}
    await hooks("POST", f"/webhooks/{endpoint}/redeliver", {"event_id": post.event_id}, **other)
    (again,) = await taken(hooks)
    assert_caused_by(again, answer.json()["request_id"])


async def test_a_test_event_and_a_refusal_name_theirs(hooks: Subscriber):
    endpoint, _ = await hooks.create(events=["identification.refused"])
    tested = await hooks("POST", f"/webhooks/{endpoint}/test", **SENT)
    assert tested.status_code == 202
    (post,) = await taken(hooks)
    assert_caused_by(post, tested.headers["x-request-id"])
    refused = await hooks.live.identify(hooks.production, origin="https://other.example", headers=SENT)
    assert refused.status_code == 401
    with trio.fail_after(60):
        while not (posts := await taken(hooks)):
            await trio.lowlevel.checkpoint()
    assert_caused_by(posts[0], refused.headers["x-request-id"])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"tracestate": "rojo=1"},
        {"traceparent": SENT["traceparent"].upper(), "tracestate": "rojo=1"},
        {"traceparent": f"00-{'0' * 32}-{CALLER}-01"},
        {"traceparent": "x" * 4000},
    ],
)
async def test_without_a_valid_traceparent_nothing_is_logged_stored_or_sent(hooks: Subscriber, headers: dict[str, str]):
    await hooks.create()
    with structlog.testing.capture_logs() as lines:
        response = await hooks.live.identify(hooks.production, headers=headers)
    assert response.status_code == 200
    (post,) = await taken(hooks)
    assert not {"traceparent", "tracestate"} & set(post.headers)
    assert not [line for line in lines if "trace_id" in line]
    with hooks.live.found.store.read() as snapshot:
        assert [event.trace for _, event in snapshot.scan(WEBHOOK_EVENTS)] == [None]


@pytest.mark.only_on("lmdb", "its rows are made corrupt by hand")
async def test_each_log_line_of_a_request_names_its_trace(live: Live, server_key: str):
    """Also what goes wrong in it; the next request on the same connection names nothing."""
    request_id = (await live.identify(server_key, origin=None)).json()["request_id"]
    lines: list[Any]
    with structlog.testing.capture_logs(processors=[merge_contextvars]) as lines:
        with live.corrupted(EVENTS):
            path = f"/api/v1/events/{request_id}"
            failed = await live.client.get(path, headers={"x-api-key": server_key, **SENT})
        await live.client.get(path, headers={"x-api-key": server_key})
    assert failed.status_code == 500
    own, others = lines[:-1], lines[-1:]
    assert len(own) >= 2, "what could not be read, and the request"
    expected = {"trace_id": TRACE, "span_id": span_of(failed.headers["x-request-id"]), "parent_id": CALLER}
    assert [{name: line[name] for name in expected} for line in own] == [expected] * len(own)
    assert not expected.keys() & others[0].keys()


async def test_pages_may_send_the_headers(live: Live, key: str):
    asked = {"access-control-request-headers": "traceparent, tracestate", "origin": ORIGIN}
    preflight = await live.client.options("/api/v1/identify", headers=asked)
    assert {"traceparent", "tracestate"} <= set(preflight.headers["access-control-allow-headers"].split(", "))
    assert (await live.identify(key, headers=SENT)).status_code == 200
