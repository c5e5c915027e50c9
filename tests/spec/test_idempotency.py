"""Interface 2.2, 7, 8 and decisions 3.2: one `Idempotency-Key`, one identification."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
import trio.testing

from svc.features.organizations import jobs as organizations
from tests.spec.responses import (
    BROWSER,
    IDENTIFY,
    TOO_LITTLE,
    assert_error,
    assert_invalid,
    body_of,
    forward,
    nothing_stored,
    post,
    visit,
)
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, live_service, report
from tests.support.serving_postgresql import at_rest
from tests.support.worlds import HeldThreads

KEYED = {"idempotency-key": "9b2f"}


def duplicate_of(answer: dict[str, Any]) -> dict[str, Any]:
    return {"request_id": answer["request_id"], "duplicate": True}


async def test_the_second_response_contains_only_the_first_request_id(live: Live, key: str):
    """Interface 2.2, 4.1: `{request_id, duplicate: true}`, whatever the second one says."""
    first = (await visit(live, key, headers=KEYED)).json()
    assert "duplicate" not in first
    with nothing_stored(live):
        for device in (1, 2):
            response = await visit(live, key, report(device), headers=KEYED, tag="other")
            assert response.status_code == 200
            assert response.json() == duplicate_of(first)
            assert response.headers["x-request-id"] == first["request_id"]  # decisions 1.3


async def test_a_duplicate_costs_nothing_and_changes_nothing(live: Live, public: str):
    """Interface 8, decisions 3.2; it still carries the headers of 2.2. The key's last use is not renewed either."""
    live.found.store.write_now([partial(organizations.set_rate_limit, number=live.organization.number, per_s=5)])
    await visit(live, public, headers=KEYED)
    live.clock.advance(hours=1)
    with nothing_stored(live):
        response = await visit(live, public, headers=KEYED)
    assert response.json()["duplicate"] is True
    assert int(response.headers["svc-balance-micros"]) == live.balance() == 10_000_000 - 3_000
    assert {"ratelimit-limit", "ratelimit-remaining"} <= set(response.headers)


async def test_requests_without_a_key_or_with_other_keys_are_never_duplicates(live: Live, key: str):
    """Interface 4.1."""
    for headers in ({}, {}, {"idempotency-key": "a"}, {"idempotency-key": "A"}, {"idempotency-key": "a b"}):
        assert "duplicate" not in (await visit(live, key, headers=headers)).json()
    assert len(live.events()) == 5


async def test_the_scope_is_the_organization_across_its_keys_and_environments(live: Live, public: str):
    """Interface 8, decisions 3.2."""
    first = (await visit(live, public, headers=KEYED)).json()
    _, staging = live.issue(environment="staging")
    _, server = live.issue("secret", "development")
    _, proxy = live.issue("proxy", "production")
    headers = {**BROWSER, **KEYED, "x-svc-visitor-ip": PUBLIC_ADDRESS}
    with nothing_stored(live):
        assert (await visit(live, staging, headers=KEYED)).json() == duplicate_of(first)
        assert (await forward(live, server, headers)).json() == duplicate_of(first)
        assert (await forward(live, proxy, headers)).json() == duplicate_of(first)


async def test_another_organization_may_use_the_same_key(live: Live, key: str):
    """Interface 8."""
    _, theirs = live.issue(organization=live.new_organization().number)
    assert "duplicate" not in (await visit(live, key, headers=KEYED)).json()
    assert "duplicate" not in (await visit(live, theirs, headers=KEYED)).json()


async def test_a_key_is_remembered_for_24_hours(live: Live, key: str):
    """Interface 8 (at least one hour), decisions 3.2."""
    first = (await visit(live, key, headers=KEYED)).json()
    live.clock.advance(hours=24, seconds=-0.001)
    assert (await visit(live, key, headers=KEYED)).json() == duplicate_of(first)
    live.clock.advance(seconds=0.001)
    later = (await visit(live, key, headers=KEYED)).json()
    assert "duplicate" not in later
    live.clock.advance(hours=23)
    assert (await visit(live, key, headers=KEYED)).json() == duplicate_of(later)
    assert len(live.events()) == 2


async def test_a_key_is_remembered_across_a_restart(directory: Path):
    """Decisions 3.2, 3.3: it is on disk with its event."""
    async with live_service(directory) as live:
        _, secret = live.issue()
        first = (await visit(live, secret, headers=KEYED)).json()
    async with live_service(directory) as live:
        assert (await visit(live, secret, headers=KEYED)).json() == duplicate_of(first)


@pytest.mark.slow(0.2)
async def test_a_key_has_1_to_255_characters(live: Live):
    """Interface 7, 8: `422 idempotency_key_too_long`; decisions 3.2: an empty one is `invalid_value`."""
    _, secret = live.issue()
    for key in ("a", "x" * 255, ("é" * 255).encode(), ("é" * 255).encode("latin-1")):
        first = (await visit(live, secret, headers={"idempotency-key": key})).json()
        assert (await visit(live, secret, headers={"idempotency-key": key})).json() == duplicate_of(first)
    with nothing_stored(live):
        for key in ("x" * 256, "x" * 5_000, ("é" * 256).encode(), ("é" * 256).encode("latin-1")):
            assert_error(await visit(live, secret, headers={"idempotency-key": key}), 422, "idempotency_key_too_long")
        response = await visit(live, secret, headers={"idempotency-key": ""})
        assert_invalid(response, "Idempotency-Key", "invalid_value", "header")


async def test_two_keys_are_refused_and_one_with_a_comma_is_one(live: Live, key: str):
    """Decisions 3.2: two headers are `invalid_value`, also where they say the same or nothing."""
    with nothing_stored(live):
        for first, second in (("aa", "bb"), ("aa", "aa"), ("aa", ""), ("", "")):
            headers = [
                *BROWSER.items(),
                ("origin", ORIGIN),
                ("x-api-key", key),
                ("content-type", "application/json"),
            ]
            headers += [("Idempotency-Key", first), ("idempotency-key", second)]
            response = await live.client.post(IDENTIFY, content=body_of(), headers=headers)
            assert_invalid(response, "Idempotency-Key", "invalid_value", "header")
    first = (await visit(live, key, headers={"idempotency-key": "aa, bb"})).json()
    assert (await visit(live, key, headers={"idempotency-key": "aa, bb"})).json() == duplicate_of(first)


async def test_keys_that_differ_only_at_their_end_are_distinct(live: Live, key: str):
    """Decisions 3.2: the whole key counts."""
    for last in "ab":
        answer = (await visit(live, key, headers={"idempotency-key": "x" * 254 + last})).json()
        assert "duplicate" not in answer


async def test_concurrent_duplicates_are_one_identification(live: Live, public: str):
    """Decisions 3.2: exactly one of them is new, the others hear its request id; it is paid once."""
    answers: list[dict[str, Any]] = []

    async def ask() -> None:
        answers.append((await visit(live, public, headers=KEYED)).json())

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(ask)
    ((request_id, _),) = live.events()
    assert {answer["request_id"] for answer in answers} == {request_id}
    assert sum("duplicate" not in answer for answer in answers) == 1
    assert all(answer == {"request_id": request_id, "duplicate": True} for answer in answers if "duplicate" in answer)
    assert live.balance() == 10_000_000 - 3_000


async def test_a_duplicate_waits_until_the_first_is_on_disk(live: Live, key: str, threads: HeldThreads):
    """Decisions 3.2: "a key whose first request is still in progress waits for it and then gets the duplicate"."""
    answers: list[dict[str, Any]] = []

    async def ask() -> None:
        answers.append((await visit(live, key, headers=KEYED)).json())

    threads.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        with trio.fail_after(60):
            while not threads.waiting:
                await trio.lowlevel.checkpoint()
            nursery.start_soon(ask)
            while live.service.pipeline.statistics()["visitor_index"].accepted < 2:
                await trio.lowlevel.checkpoint()
        await at_rest()
        assert answers == []
        threads.release()
    assert len(live.events()) == 1
    assert [answer.get("duplicate", False) for answer in answers] == [False, True]


async def test_the_duplicate_of_a_refused_first_is_processed(live: Live):
    """Decisions 3.2: both at once, credit for the cheaper one only; the order does not matter."""
    _, secret = live.issue(environment="production", organization=live.new_organization(credit_usd=0.0005).number)
    responses: list[httpx.Response] = []

    async def ask(signals: dict[str, Any]) -> None:
        responses.append(await visit(live, secret, signals, headers=KEYED))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, report())
        nursery.start_soon(ask, TOO_LITTLE)
    codes = sorted(response.status_code for response in responses)
    assert codes in ([200, 200], [200, 402])
    new = [response for response in responses if response.status_code == 200 and "duplicate" not in response.json()]
    assert len(new) == 1
    assert new[0].headers["svc-balance-micros"] == "0"


async def test_a_refused_request_never_takes_its_key(live: Live):
    """Interface 7, decisions 3.2: `402`, `429`, `422`, `415`, `413` and `401` alike; the retry is processed."""
    organization = live.new_organization(credit_usd=0.001, rate_limit=1)
    issue = partial(live.issue, organization=organization.number)
    _, secret = issue(environment="production")
    _, development = issue()
    with nothing_stored(live):
        assert_error(await visit(live, secret, headers=KEYED), 402, "no_credit")
        assert_error(await visit(live, development, headers=KEYED), 429, "rate_limited")
        assert_invalid(await visit(live, development, sdk=5, headers=KEYED), "sdk", "wrong_type")
        assert_error(await post(live, development, b" " * (2 << 20), idempotency_key="9b2f"), 413, "payload_too_large")
        other = await post(live, development, body_of(), idempotency_key="9b2f", content_type="text/plain")
        assert_error(other, 415, "unsupported_media_type")
        assert_error(await visit(live, development, origin="https://other.example", headers=KEYED), 401, "unauthorized")
    live.clock.advance(seconds=1)
    answer = (await visit(live, development, headers=KEYED)).json()
    assert "duplicate" not in answer
    live.clock.advance(seconds=1)
    assert (await visit(live, secret, headers=KEYED)).json() == duplicate_of(answer)


@pytest.mark.served(admission_capacity=1, stage_capacity=1, batch_limit=1)
@pytest.mark.slow(0.2)
async def test_a_request_refused_by_a_full_store_can_be_retried_with_the_same_key(live: Live, threads: HeldThreads):
    """Interface 7: `503 service_unavailable`; decisions 3.2: it releases the key."""
    _, secret = live.issue(environment="production")
    answers: dict[int, httpx.Response] = {}
    full = trio.Event()

    async def ask(number: int) -> None:
        answers[number] = await visit(live, secret, headers={"idempotency-key": str(number)})
        if answers[number].status_code == 503:
            full.set()

    threads.hold()
    async with trio.open_nursery() as nursery:
        for number in range(12):
            nursery.start_soon(ask, number)
        with trio.fail_after(60):
            await full.wait()
        threads.release()
    for number, response in answers.items():
        again = (await visit(live, secret, headers={"idempotency-key": str(number)})).json()
        if response.status_code == 503:
            assert_error(response, 503, "service_unavailable")
            assert "duplicate" not in again
        else:
            assert again == duplicate_of(response.json())
    assert len(live.events()) == 12
    assert live.balance() == 10_000_000 - 12 * 3_000


async def test_a_duplicate_gets_a_response_where_a_new_identification_would_be_refused(live: Live):
    """Decisions 3.2: it costs nothing, so nothing is missing for it."""
    organization = live.new_organization(credit_usd=0.003)
    _, secret = live.issue(environment="production", organization=organization.number)
    first = (await visit(live, secret, headers=KEYED)).json()
    with nothing_stored(live):
        assert_error(await visit(live, secret), 402, "no_credit")
        assert (await visit(live, secret, headers=KEYED)).json() == duplicate_of(first)


@pytest.mark.parametrize("key", ["a,b", '"quoted"', "~!@#$%^&*()", "a\tb"])
async def test_any_text_is_a_key(live: Live, key: str):
    """Interface 4.1: a string."""
    _, secret = live.issue()
    first = (await visit(live, secret, headers={"idempotency-key": key})).json()
    assert (await visit(live, secret, headers={"idempotency-key": key})).json() == duplicate_of(first)
