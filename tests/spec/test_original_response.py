"""Decisions 3.2: a duplicate with `x-svc-replay: full` is answered with the whole response of its original."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from svc.features.organizations import jobs as organizations
from svc.identify.tables import EVENTS
from tests.spec.responses import (
    BROWSER,
    DRIVEN,
    PROGRAM,
    TOO_LITTLE,
    assert_invalid,
    forward,
    nothing_stored,
    visit,
)
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, live_service, report

KEYED = {"idempotency-key": "9b2f"}
FULL = {**KEYED, "x-svc-replay": "full"}


def whole(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "duplicate": True}


def bare(answer: dict[str, Any]) -> dict[str, Any]:
    return {"request_id": answer["request_id"], "duplicate": True}


@pytest.mark.parametrize("signals", [{}, DRIVEN, TOO_LITTLE])
async def test_the_second_response_is_the_first_one_and_says_that_it_is_a_duplicate(live: Live, key: str, signals: Any):
    """Decisions 3.2: visitor, score, triggers and deferred token, whatever the second request says."""
    live.found.store.write_now([partial(organizations.set_rate_limit, number=live.organization.number, per_s=20)])
    sent = TOO_LITTLE if signals == TOO_LITTLE else report(**signals)
    first = await visit(live, key, sent, headers={**PROGRAM, **KEYED}, tag="one")
    with nothing_stored(live):
        for device in (1, 2):
            again = await visit(live, key, report(device), headers=FULL, tag="two")
            assert again.status_code == 200
            assert again.json() == whole(first.json())
            assert again.headers["x-request-id"] == first.json()["request_id"]
    assert "duplicate" not in first.json()
    assert first.json()["triggers"]
    assert {"svc-balance-micros", "ratelimit-limit", "ratelimit-remaining"} <= set(again.headers)


@pytest.mark.slow(0.2)
async def test_the_first_request_may_ask_for_the_original_response_too(live: Live, key: str):
    """It changes nothing there; and without an `Idempotency-Key` there is no duplicate."""
    first = (await visit(live, key, headers=FULL)).json()
    assert "duplicate" not in first
    assert (await visit(live, key, headers=FULL)).json() == whole(first)
    alone = (await visit(live, key, headers={"x-svc-replay": "full"})).json()
    assert "duplicate" not in alone
    assert alone["request_id"] != first["request_id"]


async def test_a_duplicate_that_does_not_ask_gets_the_request_id_only(live: Live, key: str):
    """Interface 2.2, 4.1."""
    first = (await visit(live, key, headers=KEYED)).json()
    assert (await visit(live, key, headers=KEYED)).json() == bare(first)


async def test_another_value_of_the_replay_header_is_refused(live: Live, key: str):
    """Decisions 1.4, 1.5: a mistyped header must not silently lose the response."""
    with nothing_stored(live):
        for value in ("", "Full", "full, full", "true", "none"):
            response = await visit(live, key, headers={**KEYED, "x-svc-replay": value})
            assert_invalid(response, "x-svc-replay", "invalid_value", "header")


async def test_the_original_response_comes_only_within_a_minute(live: Live, key: str):
    """Decisions 3.2; the minute begins with the original, not with another duplicate."""
    first = (await visit(live, key, headers=KEYED)).json()
    live.clock.advance(seconds=30)
    assert (await visit(live, key, headers=FULL)).json() == whole(first)
    live.clock.advance(seconds=30)
    assert (await visit(live, key, headers=FULL)).json() == whole(first)
    live.clock.advance(seconds=0.001)
    assert (await visit(live, key, headers=FULL)).json() == bare(first)


async def test_the_original_response_comes_only_for_the_same_key(live: Live, server_key: str, key: str):
    """Decisions 3.2: others of the organization know the request id, as before, and nothing of the visitor."""
    _, other = live.issue()
    first = (await visit(live, key, headers=KEYED)).json()
    forwarded = {**BROWSER, **FULL, "x-svc-visitor-ip": PUBLIC_ADDRESS, "x-svc-visitor-origin": ORIGIN}
    with nothing_stored(live):
        assert (await visit(live, other, headers=FULL)).json() == bare(first)
        assert (await forward(live, server_key, forwarded)).json() == bare(first)
        assert (await visit(live, key, headers=FULL)).json() == whole(first)


async def test_the_original_response_comes_only_from_the_same_origin(live: Live):
    """Decisions 3.2: one key may serve several sites."""
    elsewhere = "https://blog.example"
    _, secret = live.issue(allowed_origins=(ORIGIN, elsewhere))
    first = (await visit(live, secret, headers=KEYED)).json()
    with nothing_stored(live):
        assert (await visit(live, secret, origin=elsewhere, headers=FULL)).json() == bare(first)
        assert (await visit(live, secret, headers=FULL)).json() == whole(first)


async def test_the_original_response_comes_only_for_the_same_address_or_report(live: Live, key: str):
    """Decisions 3.2: who guesses an idempotency key gets neither the visitor's id nor its deferred token."""
    first = (await visit(live, key, report(1), headers=KEYED)).json()
    elsewhere = {**FULL, "x-forwarded-for": "81.2.69.144"}
    with nothing_stored(live):
        for _ in range(2):
            assert (await visit(live, key, report(2), headers=elsewhere)).json() == bare(first)
            assert (await visit(live, key, report(1), headers=elsewhere)).json() == whole(first)
            assert (await visit(live, key, report(2), headers=FULL)).json() == whole(first)


async def test_a_key_without_an_origin_counts_as_the_same_place(live: Live, server_key: str):
    """Decisions 2.7, 2.8: an app, and a customer's server."""
    _, native = live.issue(platforms=("android",))
    for secret, sdk in ((native, {"platform": "android"}), (server_key, None)):
        headers = {"idempotency-key": secret}
        first = (await visit(live, secret, origin=None, sdk=sdk, headers=headers)).json()
        again = await visit(live, secret, origin=None, sdk=sdk, headers={**headers, "x-svc-replay": "full"})
        assert again.json() == whole(first)


async def test_a_proxy_gets_the_original_response_for_the_public_key_that_it_forwards(live: Live, proxy: str):
    """Decisions 2.9: the key whose origins apply is the one that counts, no matter who carries it."""
    _, public = live.issue()
    _, other = live.issue()
    first = (await visit(live, public, headers=KEYED)).json()
    forwarded = {**BROWSER, **FULL, "x-svc-visitor-ip": PUBLIC_ADDRESS, "x-svc-visitor-origin": ORIGIN}
    with nothing_stored(live):
        for key, expected in ((public, whole(first)), (other, bare(first)), (None, bare(first))):
            headers = forwarded if key is None else {**forwarded, "x-svc-public-key": key}
            assert (await forward(live, proxy, headers)).json() == expected


async def test_the_deferred_token_of_a_duplicate_is_good_for_the_deferred_report(live: Live, key: str):
    """Interface 2.4: 24 hours after the original."""
    first = (await visit(live, key, headers=KEYED)).json()
    live.clock.advance(seconds=40)
    again = (await visit(live, key, headers=FULL)).json()
    live.clock.advance(hours=24, seconds=-41)
    body = {"token": again["deferred_token"], "sdk": {}, "signals": {"tier": "deferred", "version": 1}}
    response = await live.client.post(
        f"/api/v1/events/{first['request_id']}/supplement", json=body, headers={"x-api-key": key, "origin": ORIGIN}
    )
    assert response.status_code == 202, response.text


NAMED = {"tag": "one", "account_id": "a", "action": "log_in"}


@pytest.mark.parametrize("said", [NAMED, {}], ids=["named", "unnamed"])
@pytest.mark.parametrize("again", [NAMED, {}, {"tag": "two", "account_id": "b", "action": "withdraw"}])
async def test_the_signed_verdict_of_a_duplicate_is_that_of_the_original(
    live: Live, key: str, said: dict[str, str], again: dict[str, str]
):
    """It is about the original's address, tag, account and action, whatever the second request says, and expires when
    that would have: nobody gets another account signed with what was decided for the first.
    """
    first = (await visit(live, key, headers=KEYED, verdict=True, **said)).json()
    live.clock.advance(seconds=20)
    moved = {**FULL, "x-forwarded-for": "81.2.69.144"}
    assert (await visit(live, key, headers=moved, verdict=True, **again)).json() == whole(first)
    assert "verdict" not in (await visit(live, key, headers=FULL)).json()


@pytest.mark.parametrize("said", [NAMED, {}], ids=["named", "unnamed"])
@pytest.mark.parametrize("later", [{"account_id": "b"}, {"action": "withdraw"}, {"tag": "two"}])
async def test_the_signed_verdict_of_a_duplicate_has_nothing_that_a_backend_set_since(
    live: Live, server_key: str, key: str, said: dict[str, str], later: dict[str, str]
):
    """Nor the account that it had, where that was replaced: its id is not kept."""
    first = (await visit(live, key, headers=KEYED, verdict=True, **said)).json()
    path = f"/api/v1/events/{first['request_id']}"
    assert (await live.client.patch(path, json=later, headers={"x-api-key": server_key})).status_code == 200
    again = (await visit(live, key, headers=FULL, verdict=True, **said)).json()
    if said and "account_id" in later:
        assert "account_id" in signed(first)
        assert signed(again) == {name: value for name, value in signed(first).items() if name != "account_id"}
    else:
        assert again == whole(first)


def signed(answer: dict[str, Any]) -> dict[str, Any]:
    """What the signed verdict of a response says."""
    return json.loads(urlsafe_b64decode(answer["verdict"].split(".")[1] + "=="))


async def test_weights_that_changed_meanwhile_change_nothing(live: Live, key: str):
    """Decisions 3.8: the weights in force were those of the original."""
    _, management = live.issue("management", None, role="admin")
    first = (await visit(live, key, report(**DRIVEN), headers=KEYED)).json()
    path = f"/api/v1/management/organizations/{live.organization.id}/risk-weights/web"
    saved = await live.client.put(path, json={"weights": {"automation": 3}}, headers={"x-api-key": management})
    assert saved.status_code == 200, saved.text
    assert (await visit(live, key, headers=FULL)).json() == whole(first)


async def test_an_erased_original_leaves_its_request_id(live: Live, key: str):
    """Decisions 3.2 remembers the key, and nothing else is there."""
    first = (await visit(live, key, headers=KEYED)).json()
    _, management = live.issue("management", None, role="admin")
    path = f"/api/v1/management/organizations/{live.organization.id}/visitors/{first['visitor_id']}"
    assert (await live.client.delete(path, headers={"x-api-key": management})).status_code == 204
    with live.found.store.read() as snapshot:
        assert list(snapshot.scan(EVENTS)) == []
    assert (await visit(live, key, headers=FULL)).json() == bare(first)


async def test_concurrent_duplicates_are_all_answered_alike(live: Live, public: str):
    """Decisions 3.2: one is new, the others wait for it and get its response."""
    responses: list[httpx.Response] = []

    async def ask() -> None:
        responses.append(await visit(live, public, headers=FULL))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(ask)
    answers = [response.json() for response in responses]
    (first,) = [answer for answer in answers if "duplicate" not in answer]
    assert [answer for answer in answers if "duplicate" in answer] == [whole(first)] * 7
    assert {response.headers["svc-balance-micros"] for response in responses} == {"9997000"}
    assert len(live.events()) == 1


async def test_the_original_response_is_read_from_the_store_after_a_restart(directory: Path):
    """Decisions 3.3: everything that the response says is on disk."""
    async with live_service(directory) as live:
        _, secret = live.issue()
        first = (await visit(live, secret, headers=KEYED)).json()
    async with live_service(directory) as live:
        assert (await visit(live, secret, headers=FULL)).json() == whole(first)
