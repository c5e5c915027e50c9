"""Interface 2.9, 3, 4.4 and 8, decisions 8: webhook endpoints as a customer's automation manages them.

What is sent, and the list of it, are in `test_webhook_deliveries`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import trio

from svc.features.webhooks.jobs import endpoints as webhook_endpoints
from tests.spec.automation import Automation
from tests.spec.responses import assert_error, assert_invalid, nothing_stored
from tests.spec.subscriber import COMPLETED, HOOKS, URL, Subscriber
from tests.store.schema import schema
from tests.support.live import PUBLIC_ADDRESS

CREATED = "2026-01-01T00:00:00.000Z"
"""When a service of a test starts."""
EVENT_TYPES = [
    "identification.completed",
    "visitor.suspect",
    "identification.refused",
    "billing.status_changed",
    "usage.daily_settled",
    "webhook.test",
]
NOBODY = "whk_" + "0" * 20


# Create and list


@pytest.mark.parametrize("environment", ["live", "test"])
async def test_a_created_endpoint_is_active_and_its_secret_shown_once(
    hooks: Subscriber, tmp_path: Path, environment: str
):
    """Interface 2.9, 3 and 4.4, decisions 1.1 and 8.1; the answer is not to be kept by anything between."""
    response = await hooks.post(environment=environment, description="orders")
    assert (response.status_code, response.headers["cache-control"]) == (201, "no-store")
    secret, endpoint = response.json()["secret"], response.json()["endpoint"]
    assert set(response.json()) == {"endpoint", "secret", "standard_secret"}
    assert endpoint == {
        "id": endpoint["id"],
        "url": URL,
        "description": "orders",
        "environment": environment,
        "events": [COMPLETED],
        "status": "active",
        "format": "json",
        "secret_last4": secret[-4:],
        "delivered_24h": 0,
        "failed_24h": 0,
        "created_at": CREATED,
    }
    assert re.fullmatch(r"whk_[0-9A-Za-z]{20}", endpoint["id"])
    assert re.fullmatch(r"svc_whsec_[0-9A-Za-z]{43}", secret)
    assert await hooks.listed() == [endpoint]
    everything = hooks.live.stored_bytes()
    assert secret.removeprefix("svc_whsec_").encode() not in everything


async def test_endpoints_are_listed_newest_first_within_their_organization(hooks: Subscriber):
    """Interface 4.4."""
    ids: list[str] = []
    for place in range(3):
        hooks.live.clock.advance(seconds=1)
        ids.insert(0, (await hooks.create(description=str(place)))[0])
    stranger = Automation(hooks.live, organization=hooks.live.new_organization())
    assert [endpoint["id"] for endpoint in await hooks.listed()] == ids
    assert (await stranger("GET", HOOKS)).json() == {"endpoints": []}


async def test_an_endpoint_subscribes_to_each_type_at_most_once(hooks: Subscriber):
    """Interface 6: all there are, in the order of the interface; to none, which leaves tests and redeliveries."""
    endpoint_id, _ = await hooks.create(events=[*reversed(EVENT_TYPES), COMPLETED])
    assert (await hooks.shown(endpoint_id))["events"] == EVENT_TYPES
    muted, _ = await hooks.create(events=[])
    assert (await hooks.shown(muted))["events"] == []


async def test_an_unknown_type_of_a_later_version_is_accepted_and_kept_by_an_older_program(
    hooks: Subscriber, monkeypatch: pytest.MonkeyPatch
):
    """Decisions 1.10: enumerations in responses are open. The older program lists and keeps what it does not know."""
    hooks.live.client.event_hooks = {"response": []}  # the document's check knows the types of this version alone
    later = "visitor.returned"
    endpoint_id, _ = await hooks.create()
    with monkeypatch.context() as newer:
        newer.setattr(webhook_endpoints, "EVENT_TYPES", (*EVENT_TYPES, later))
        assert (await hooks.patch(endpoint_id, events=[COMPLETED, later])).status_code == 200
    assert (await hooks.shown(endpoint_id))["events"] == [COMPLETED, later]
    assert [post.event["type"] for post in await hooks.happen()] == [COMPLETED]
    assert_invalid(await hooks.patch(endpoint_id, events=[later]), "events", "unknown_event_type")
    assert (await hooks.patch(endpoint_id, description="orders")).status_code == 200
    assert (await hooks.shown(endpoint_id))["events"] == [COMPLETED, later]
    assert (await hooks.patch(endpoint_id, events=[COMPLETED])).status_code == 200
    assert (await hooks.shown(endpoint_id))["events"] == [COMPLETED]


def test_a_new_type_of_event_needs_no_new_version_of_the_store():
    """ADR 31: what the schema of the store says is pinned by `tests/store/test_released.py`, and names no type."""
    assert not [event_type for event_type in EVENT_TYPES if event_type in json.dumps(schema())]


async def test_an_eleventh_endpoint_is_refused_until_one_is_deleted(hooks: Subscriber):
    """Interface 8; decisions 1.8: a fault of a field is told before the limit."""
    ids = [(await hooks.create())[0] for _ in range(10)]
    with nothing_stored(hooks.live):
        assert_error(await hooks.post(), 409, "webhook_limit")
        assert_invalid(await hooks.post(url="http://shop.example/"), "url", "invalid_url")
        assert_invalid(await hooks.post(events=["x"]), "events", "unknown_event_type")
    assert (await hooks("DELETE", f"{HOOKS}/{ids[3]}")).status_code == 204
    assert (await hooks.post()).status_code == 201
    assert_error(await hooks.post(), 409, "webhook_limit")
    other = Automation(hooks.live, organization=hooks.live.new_organization())
    body = {"url": URL, "environment": "test", "events": [], "description": ""}
    assert (await other("POST", HOOKS, body)).status_code == 201


async def test_of_two_concurrent_creations_at_the_limit_one_is_refused(hooks: Subscriber):
    """Interface 8: the limit holds no matter who comes at once."""
    for _ in range(9):
        await hooks.create()
    statuses: list[int] = []

    async def create() -> None:
        statuses.append((await hooks.post()).status_code)

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(create)
    assert sorted(statuses) == [201, 409, 409, 409]
    assert len(await hooks.listed()) == 10


# Fields


async def test_every_field_of_a_new_endpoint_is_required(hooks: Subscriber):
    """Interface 4.4."""
    body = {"url": URL, "environment": "live", "events": [COMPLETED], "description": ""}
    for field in ("url", "environment", "events", "description"):
        with nothing_stored(hooks.live):
            sent = {name: value for name, value in body.items() if name != field}
            assert_invalid(await hooks("POST", HOOKS, sent), field, "required")


FAULTS: list[Any] = [
    ({"url": 7}, "url", "wrong_type"),
    ({"url": None}, "url", "wrong_type"),
    ({"url": ""}, "url", "invalid_url"),
    ({"url": "shop.example/hook"}, "url", "invalid_url"),
    ({"url": "http://shop.example/hook"}, "url", "invalid_url"),
    ({"url": "https://user:word@shop.example/hook"}, "url", "invalid_url"),
    ({"url": "https://shop.example/hook#part"}, "url", "invalid_url"),
    ({"url": "https://shop.example/".ljust(2049, "x")}, "url", "invalid_url"),
    ({"url": "https://nowhere.example/"}, "url", "invalid_url"),
    ({"url": "https://shop.example:22/"}, "url", "invalid_url"),
    ({"url": "https://inside.example/"}, "url", "not_public_address"),
    ({"url": "https://rebound.example/"}, "url", "not_public_address"),
    ({"url": "https://2130706433/"}, "url", "not_public_address"),
    ({"url": "https://cloud.example/latest/meta-data"}, "url", "not_public_address"),
    ({"environment": "production"}, "environment", "invalid_value"),
    ({"environment": 1}, "environment", "wrong_type"),
    ({"events": COMPLETED}, "events", "wrong_type"),
    ({"events": [7]}, "events[0]", "wrong_type"),
    ({"events": ["visitor.seen"]}, "events", "unknown_event_type"),
    ({"events": ["billing.status_changed"], "environment": "test"}, "events", "requires_live"),
    ({"description": None}, "description", "wrong_type"),
    ({"description": "x" * 501}, "description", "too_long"),
    ({"paused": False, "color": "red"}, "color", "unknown_field"),
]


def know_hosts(hooks: Subscriber) -> None:
    hooks.names.known |= {
        "shop.example": (PUBLIC_ADDRESS,),
        "inside.example": ("10.0.0.5",),
        "rebound.example": (PUBLIC_ADDRESS, "127.0.0.1"),
        "2130706433": ("127.0.0.1",),
        "cloud.example": ("169.254.169.254",),
    }


@pytest.mark.parametrize(("fields", "field", "issue"), FAULTS)
async def test_an_invalid_field_is_named_and_changes_nothing(
    hooks: Subscriber, fields: dict[str, Any], field: str, issue: str
):
    """Decisions 1.4, 1.5 and 8.7, of a new endpoint and of a change alike."""
    know_hosts(hooks)
    endpoint_id, _ = await hooks.create()
    with nothing_stored(hooks.live):
        if "paused" not in fields:
            assert_invalid(await hooks.post(**fields), field, issue)
        assert_invalid(await hooks.patch(endpoint_id, **fields), field, issue)
        assert_invalid(await hooks.patch(NOBODY, **fields), field, issue)


async def test_a_new_endpoint_cannot_be_created_paused(hooks: Subscriber):
    """Interface 4.4: `paused` is a field of changes alone."""
    with nothing_stored(hooks.live):
        assert_invalid(await hooks.post(paused=True), "paused", "unknown_field")


@pytest.mark.served(webhook_allow_networks=("10.0.0.0/24",))
async def test_a_network_opened_by_the_operator_may_be_registered(hooks: Subscriber):
    """Decisions 8.7."""
    know_hosts(hooks)
    assert (await hooks.post(url="https://inside.example/")).status_code == 201
    assert_invalid(await hooks.post(url="https://rebound.example/"), "url", "not_public_address")


async def test_no_host_is_resolved_for_a_request_that_is_refused_anyway(hooks: Subscriber):
    """Decisions 1.8; nobody makes the service resolve names without a key."""
    know_hosts(hooks)
    url = "https://shop.example/"
    await hooks.post(url=url, events=["x"])
    await hooks.post(url=url, description=7)
    body = {"url": url, "environment": "live", "events": [], "description": ""}
    stranger = Automation(hooks.live, organization=hooks.live.new_organization())
    stranger.organization = hooks.organization
    assert (await stranger("POST", HOOKS, body)).status_code == 404
    assert hooks.names.asked == []


# Change


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "https://shop.example/other?key=1"},
        {"description": "returns"},
        {"environment": "test"},
        {"events": ["visitor.suspect", "webhook.test"]},
        {"url": "https://shop.example/", "description": "", "environment": "test", "events": []},
        {},
    ],
)
async def test_a_change_affects_only_the_named_fields(hooks: Subscriber, fields: dict[str, Any]):
    """Interface 4.4: answers with the endpoint; a change of nothing changes nothing."""
    know_hosts(hooks)
    endpoint_id, _ = await hooks.create(description="orders")
    before = await hooks.shown(endpoint_id)
    response = await hooks.patch(endpoint_id, **fields)
    assert (response.status_code, response.json()) == (200, before | fields)
    assert await hooks.listed() == [before | fields]


@pytest.mark.parametrize("body", [b"", b"[]", b"null"])
async def test_a_change_requires_a_body(hooks: Subscriber, body: bytes):
    """Decisions 1.4."""
    endpoint_id, _ = await hooks.create()
    response = await hooks.live.client.patch(
        f"/api/v1/management/organizations/{hooks.organization.id}{HOOKS}/{endpoint_id}",
        headers={"x-api-key": hooks.secret, "content-type": "application/json"},
        content=body,
    )
    assert_invalid(response, "", "wrong_type" if body else "malformed_json")


async def test_an_endpoint_of_billing_events_stays_live(hooks: Subscriber):
    """Interface 6, whichever of the two is named."""
    billing = ["billing.status_changed"]
    both, _ = await hooks.create(events=billing)
    test, _ = await hooks.create(environment="test", events=[])
    with nothing_stored(hooks.live):
        assert_invalid(await hooks.patch(both, environment="test"), "events", "requires_live")
        assert_invalid(await hooks.patch(test, events=billing), "events", "requires_live")
    assert (await hooks.patch(test, events=billing, environment="live")).status_code == 200
    assert (await hooks.patch(both, events=[], environment="test")).status_code == 200


async def test_only_a_changed_url_is_resolved(hooks: Subscriber):
    """Decisions 8.7: a host that does not resolve today is in nobody's way who changes something else."""
    know_hosts(hooks)
    endpoint_id, _ = await hooks.create(url="https://shop.example/")
    del hooks.names.known["shop.example"]
    response = await hooks.patch(endpoint_id, url="https://shop.example/", description="same place")
    assert (response.status_code, response.json()["description"]) == (200, "same place")
    assert_invalid(await hooks.patch(endpoint_id, url="https://shop.example/other"), "url", "invalid_url")


async def test_an_endpoint_is_paused_and_resumed(hooks: Subscriber):
    """Interface 3; doing either twice is no mistake."""
    endpoint_id, _ = await hooks.create()
    for paused, status in ((True, "paused"), (True, "paused"), (False, "active"), (False, "active")):
        assert (await hooks.patch(endpoint_id, paused=paused)).json()["status"] == status
        assert (await hooks.shown(endpoint_id))["status"] == status
    paused = await hooks.patch(endpoint_id, paused=True, url=f"https://{PUBLIC_ADDRESS}/other")
    assert paused.json()["status"] == "paused", "another URL alone resumes nothing"


# Delete


async def test_a_deleted_endpoint_is_not_found(hooks: Subscriber):
    """Interface 3 and 4.4."""
    endpoint_id, _ = await hooks.create()
    kept, _ = await hooks.create()
    response = await hooks("DELETE", f"{HOOKS}/{endpoint_id}")
    assert (response.status_code, response.content) == (204, b"")
    assert [endpoint["id"] for endpoint in await hooks.listed()] == [kept]
    assert_error(await hooks("DELETE", f"{HOOKS}/{endpoint_id}"), 404, "not_found")


# Rotate


@pytest.mark.parametrize(
    ("body", "until"),
    [
        (None, "2026-01-02T00:00:00.000Z"),
        ({}, "2026-01-02T00:00:00.000Z"),
        ({"previous_secret_valid_hours": 1}, "2026-01-01T01:00:00.000Z"),
        ({"previous_secret_valid_hours": 168}, "2026-01-08T00:00:00.000Z"),
        ({"previous_secret_valid_hours": 0}, None),
    ],
)
async def test_a_rotation_shows_the_new_secret_and_the_expiry_of_the_old_one(
    hooks: Subscriber, body: Any, until: str | None
):
    """Interface 4.4 and 8: 24 hours unless told otherwise."""
    endpoint_id, secret = await hooks.create()
    before = await hooks.shown(endpoint_id)
    response = await hooks.do(endpoint_id, "rotate-secret", body)
    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
    fresh = response.json()["secret"]
    assert fresh != secret
    rotated = before | {"secret_last4": fresh[-4:]} | ({} if until is None else {"previous_secret_expires_at": until})
    assert response.json() == {
        "endpoint": rotated,
        "secret": fresh,
        "standard_secret": response.json()["standard_secret"],
    }
    assert await hooks.listed() == [rotated]


async def test_an_overlap_is_0_to_168_whole_hours(hooks: Subscriber):
    """Interface 8."""
    endpoint_id, _ = await hooks.create()
    field = "previous_secret_valid_hours"
    with nothing_stored(hooks.live):
        for hours, issue in (
            (169, "out_of_range"),
            (-1, "out_of_range"),
            (10**30, "out_of_range"),
            (1.5, "wrong_type"),
            ("24", "wrong_type"),
            (None, "wrong_type"),
        ):
            assert_invalid(await hooks.do(endpoint_id, "rotate-secret", {field: hours}), field, issue)
        assert_invalid(await hooks.do(endpoint_id, "rotate-secret", {"hours": 1}), "hours", "unknown_field")


async def test_the_end_of_a_rotation_is_not_shown_afterwards(hooks: Subscriber):
    """Interface 2.9: during a rotation."""
    endpoint_id, _ = await hooks.create()
    await hooks.do(endpoint_id, "rotate-secret", {"previous_secret_valid_hours": 2})
    hooks.live.clock.advance(seconds=2 * 3600 - 1)
    assert "previous_secret_expires_at" in await hooks.shown(endpoint_id)
    hooks.live.clock.advance(seconds=1)
    assert "previous_secret_expires_at" not in await hooks.shown(endpoint_id)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://localhost:3000/hook", "svc webhook listen"),
        ("https://nowhere.example/", "does not resolve"),
        ("https://shop.example:22/", "443 or one above 1023"),
        ("https://inside.example/", "not public"),
        ("https://shop.example/#part", "without user information"),
    ],
)
async def test_a_refused_url_is_reported_with_what_to_fix(hooks: Subscriber, url: str, says: str):
    """Interface 7: `error.message` says what to fix."""
    know_hosts(hooks)
    assert says in (await hooks.post(url=url)).json()["error"]["message"]
