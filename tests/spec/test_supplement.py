"""Interface 2.4, 3 and 4.1, decisions 7.4: deferred reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Any
from uuid import UUID

import httpx
import pytest
import trio
import trio.testing

from svc.identify.events.archive import inflate
from svc.identify.keys import deferred
from svc.identify.queries import events
from svc.identify.tables import DEFERRED_REPORTS, STATISTICS
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import StoreFullError
from svc.kernel.tenants.tables import HOLDINGS
from tests.spec.responses import (
    BROWSER,
    assert_error,
    assert_invalid,
    assert_request_id,
    forward,
    nothing_stored,
    visit,
)
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, report
from tests.support.serving_postgresql import at_rest
from tests.support.worlds import HeldThreads
from tests.support.writes import purge_event

DEFERRED = {"tier": "deferred", "fonts": ["Arial", "Calibri"], "timing": 1.5}
NO_TOKEN = ("token", "invalid_value", "body")
"""The detail of a token that does not hold here."""
OTHER_ORIGIN = "https://pay.example"
UNKNOWN = "019b76da-a800-7000-8000-000000000000"


async def send(
    live: Live,
    key: str,
    request_id: str,
    token: str,
    signals: Any = DEFERRED,
    *,
    origin: str | None = ORIGIN,
    forwarded: Mapping[str, str] = MappingProxyType({}),
    **members: Any,
) -> httpx.Response:
    """A deferred report as an SDK, a server or a proxy sends it."""
    body = {"token": token, "sdk": {"platform": "web", "version": "0.1.0"}, "signals": signals, **members}
    return await send_bytes(live, key, request_id, json.dumps(body).encode(), origin, forwarded)


async def send_bytes(
    live: Live,
    key: str,
    request_id: str,
    body: bytes,
    origin: str | None = ORIGIN,
    forwarded: Mapping[str, str] = MappingProxyType({}),
) -> httpx.Response:
    headers = {"content-type": "application/json", "x-api-key": key, **BROWSER, **forwarded}
    if origin is not None:
        headers["origin"] = origin
    return await live.client.post(f"/api/v1/events/{request_id}/supplement", content=body, headers=headers)


async def identified(live: Live, key: str, **given: Any) -> tuple[str, str]:
    """Request id and token of a new identification."""
    answer = (await visit(live, key, **given)).json()
    return answer["request_id"], answer["deferred_token"]


async def read(live: Live, request_id: str, secret: str | None = None) -> dict[str, Any]:
    """The event as the customer's server reads it."""
    if secret is None:
        _, secret = live.issue("secret")
    return (await live.client.get(f"/api/v1/events/{request_id}", headers={"x-api-key": secret})).json()


async def test_a_deferred_report_is_accepted_and_shown_with_its_event(live: Live, key: str):
    """Interface 2.3, 2.4, 4.1; byte for byte, as the submission itself is."""
    request_id, token = await identified(live, key)
    assert "deferred_signals" not in await read(live, request_id)
    signals = b'{ "tier":"deferred",\n "a":1.50, "\\u0062":"\xc3\xbc" }'
    body = b'{"sdk":{"version":"9"},"token":"%b","signals":%b}' % (token.encode(), signals)
    live.clock.advance(seconds=5)
    response = await send_bytes(live, key, request_id, body)
    assert (response.status_code, response.json()) == (202, {"request_id": request_id})
    assert_request_id(response.headers["x-request-id"])
    assert (await read(live, request_id))["deferred_signals"] == json.loads(signals)
    with live.found.store.read() as snapshot:
        kept = events.deferred_report(snapshot, live.organization.number, UUID(request_id))
    assert kept is not None
    assert inflate(kept.signals) == signals
    assert (kept.sdk_platform, kept.sdk_version, kept.received_at_ms) == (None, "9", live.clock.now_ms)


async def test_a_deferred_report_changes_nothing_else(live: Live, server_key: str, key: str):
    """Interface 2.4: no visitor, score, money or webhook; the event reads as before."""
    request_id, token = await identified(live, key)
    shown = await read(live, request_id, server_key)
    before = live.contents()
    assert (await send(live, key, request_id, token, {**DEFERRED, "webdriver": True})).status_code == 202
    after = live.contents()
    assert (len(before.pop(DEFERRED_REPORTS.name)), len(after.pop(DEFERRED_REPORTS.name))) == (0, 1)
    held = [rows.pop(HOLDINGS.name)[0][1].report_bytes for rows in (before, after)]
    assert held[0] < held[1]
    assert after == before
    now_shown = await read(live, request_id, server_key)
    assert now_shown.pop("deferred_signals") == {**DEFERRED, "webdriver": True}
    assert now_shown == shown


async def test_the_same_report_is_a_duplicate_whatever_its_formatting(live: Live, key: str):
    """Interface 3; decisions 7.4: the same canonical JSON of `sdk` and `signals`."""
    request_id, token = await identified(live, key)
    assert (await send(live, key, request_id, token)).json() == {"request_id": request_id}
    respelled = (
        b'{"signals": {"timing":1.50,"tier":"\\u0064eferred","fonts":["Arial", "Calibri"]},'
        b'"token":"%b", "sdk":{"version":"0.1.0","platform":"web"}}' % token.encode()
    )
    with nothing_stored(live):
        for again in (
            await send(live, key, request_id, token),
            await send_bytes(live, key, request_id, respelled),
        ):
            assert (again.status_code, again.json()) == (202, {"request_id": request_id, "duplicate": True})


async def test_another_report_is_a_conflict_and_the_first_stays(live: Live, key: str):
    """Interface 3, 4.1."""
    request_id, token = await identified(live, key)
    await send(live, key, request_id, token)
    with nothing_stored(live):
        for signals, sdk in (
            ({**DEFERRED, "timing": 1.6}, {"platform": "web", "version": "0.1.0"}),
            ({**DEFERRED, "fonts": ["Calibri", "Arial"]}, {"platform": "web", "version": "0.1.0"}),
            (DEFERRED, {"platform": "web"}),
        ):
            assert_error(await send(live, key, request_id, token, signals, sdk=sdk), 409, "supplement_conflict")
    assert (await read(live, request_id))["deferred_signals"] == DEFERRED


async def test_of_two_concurrent_reports_one_is_accepted(live: Live, key: str):
    request_id, token = await identified(live, key)
    answers: list[httpx.Response] = []

    async def one(timing: int) -> None:
        answers.append(await send(live, key, request_id, token, {**DEFERRED, "timing": timing}))

    async with trio.open_nursery() as nursery:
        for timing in range(5):
            nursery.start_soon(one, timing)
    assert sorted(answer.status_code for answer in answers) == [202, 409, 409, 409, 409]


async def test_a_token_is_valid_for_24_hours(live: Live, key: str):
    """Interface 8."""
    request_id, token = await identified(live, key)
    late, late_token = await identified(live, key)
    live.clock.now_ms += 24 * 3_600_000 - 1
    assert (await send(live, key, request_id, token)).status_code == 202
    live.clock.now_ms += 1
    assert_error(await send(live, key, late, late_token), 422, "invalid_supplement", ("token", "invalid_value", "body"))
    with_report = await send(live, key, request_id, token)
    assert_error(with_report, 422, "invalid_supplement", ("token", "invalid_value", "body"))


async def test_a_token_is_valid_only_for_its_request_key_and_origin(live: Live):
    """Decisions 7.4; and for this installation, unchanged."""
    both = {"allowed_origins": (ORIGIN, OTHER_ORIGIN), "platforms": ("web", "ios")}
    _, key = live.issue(**both)
    _, same_organization = live.issue(**both)
    _, stranger = live.issue(organization=live.new_organization().number, **both)
    request_id, token = await identified(live, key)
    another, _ = await identified(live, key)
    middle = len(token) // 2
    forged = token[:middle] + ("A" if token[middle] != "A" else "B") + token[middle + 1 :]
    elsewhere = deferred.issue_token(bytes(32), UUID(request_id), "key_x", ORIGIN, live.clock.now_ms)
    with nothing_stored(live):
        for sent_key, path, sent_token, origin in (
            (key, another, token, ORIGIN),
            (key, UNKNOWN, token, ORIGIN),
            (same_organization, request_id, token, ORIGIN),
            (stranger, request_id, token, ORIGIN),
            (key, request_id, token, OTHER_ORIGIN),
            (key, request_id, forged, ORIGIN),
            (key, request_id, elsewhere, ORIGIN),
            (key, request_id, "", ORIGIN),
            (key, request_id, token[:-1], ORIGIN),
            (key, request_id, "ü" * 88, ORIGIN),
        ):
            refused = await send(live, sent_key, path, sent_token, origin=origin)
            assert_error(refused, 422, "invalid_supplement", ("token", "invalid_value", "body"))
        native = await send(live, key, request_id, token, origin=None, sdk={"platform": "ios"})
        assert_error(native, 422, "invalid_supplement", ("token", "invalid_value", "body"))
    assert (await send(live, key, request_id, token)).status_code == 202


async def test_an_app_without_an_origin_sends_its_deferred_report(live: Live):
    """Decisions 2.7, 7.4: no origin is an origin too; the platform may be claimed by the header."""
    _, key = live.issue(platforms=("android",), allowed_origins=())
    headers = {"x-forwarded-for": PUBLIC_ADDRESS, "x-svc-sdk-platform": "android"}
    answer = (await live.identify(key, report(), origin=None, sdk={}, headers=headers)).json()
    sent = {"x-api-key": key, "x-svc-sdk-platform": "android"}
    body = {"token": answer["deferred_token"], "sdk": {}, "signals": DEFERRED}
    path = f"/api/v1/events/{answer['request_id']}/supplement"
    assert (await live.client.post(path, json=body, headers=sent)).status_code == 202
    assert_error(await live.client.post(path, json=body, headers={"x-api-key": key}), 401, "unauthorized")


async def test_behind_a_proxy_the_token_belongs_to_the_public_key_of_the_visitor(live: Live, proxy: str, key: str):
    """Decisions 2.9, 7.4: the key and origin that applied to the identification."""
    forwarded = {"x-svc-visitor-ip": PUBLIC_ADDRESS, "x-svc-visitor-origin": ORIGIN, "x-svc-public-key": key}
    answer = (await forward(live, proxy, forwarded)).json()
    assert (await send(live, key, answer["request_id"], answer["deferred_token"])).status_code == 202


@pytest.mark.parametrize("tier", ["immediate", None, ["deferred"], "Deferred", ...])
async def test_a_report_that_is_not_a_deferred_one_is_refused(live: Live, key: str, tier: Any):
    """Interface 7, decisions 7.4."""
    request_id, token = await identified(live, key)
    signals = {name: value for name, value in {**DEFERRED, "tier": tier}.items() if value is not ...}
    with nothing_stored(live):
        refused = await send(live, key, request_id, token, signals)
        assert_error(refused, 422, "invalid_supplement", ("signals.tier", "invalid_value", "body"))


async def test_an_invalid_body_is_a_validation_error(live: Live, key: str):
    """Decisions 1.4, 1.5."""
    request_id, token = await identified(live, key)
    with nothing_stored(live):
        for members, wrong, issue in (
            ({"token": 5}, "token", "wrong_type"),
            ({"sdk": None}, "sdk", "wrong_type"),
            ({"sdk": {"name": "x"}}, "sdk.name", "unknown_field"),
            ({"sdk": {"version": "x" * 65}}, "sdk.version", "too_long"),
            ({"signals": []}, "signals", "wrong_type"),
            ({"tag": "x"}, "tag", "unknown_field"),
        ):
            assert_invalid(await send(live, key, request_id, **{"token": token, **members}), wrong, issue)


@pytest.mark.parametrize("missing", ["token", "sdk", "signals"])
async def test_token_sdk_and_signals_are_required(live: Live, key: str, missing: str):
    """Interface 2.4."""
    body = {name: value for name, value in {"token": "", "sdk": {}, "signals": DEFERRED}.items() if name != missing}
    assert_invalid(await send_bytes(live, key, UNKNOWN, json.dumps(body).encode()), missing, "required")


async def test_a_path_that_is_not_a_request_id_is_refused(live: Live, key: str):
    """Interface 4.1."""
    _, token = await identified(live, key)
    refused = await send(live, key, "latest", token)
    assert_error(refused, 422, "invalid_request_id", ("request_id", "invalid_value", "path"))


FORWARDED = {"x-svc-visitor-ip": PUBLIC_ADDRESS, "x-svc-visitor-origin": ORIGIN}


@pytest.mark.parametrize(("kind", "forwarded"), [("secret", {}), ("secret", FORWARDED), ("proxy", FORWARDED)])
async def test_the_server_or_proxy_that_identified_sends_the_deferred_report(
    live: Live, kind: str, forwarded: dict[str, str]
):
    """Decisions 2.9, 7.4: with the same forwarded origin, and by no other key."""
    _, key = live.issue(kind, "production")
    _, twin = live.issue(kind, "production")
    answer = (await forward(live, key, forwarded)).json()
    request_id, token = answer["request_id"], answer["deferred_token"]
    with nothing_stored(live):
        elsewhere = {"x-svc-visitor-ip": PUBLIC_ADDRESS, "x-svc-visitor-origin": OTHER_ORIGIN}
        for other, headers in ((twin, forwarded), (key, elsewhere)):
            response = await send(live, other, request_id, token, origin=None, forwarded=headers)
            assert_error(response, 422, "invalid_supplement", ("token", "invalid_value", "body"))
    assert (await send(live, key, request_id, token, origin=None, forwarded=forwarded)).status_code == 202


async def test_a_proxy_forwards_the_visitor_with_a_deferred_report_too(live: Live):
    """Decisions 2.9: `x-svc-visitor-ip` is required, and public in production."""
    _, key = live.issue("proxy", "production")
    answer = (await forward(live, key, FORWARDED)).json()
    with nothing_stored(live):
        for forwarded, issue in (({}, "required"), ({"x-svc-visitor-ip": "10.0.0.1"}, "not_public_address")):
            response = await send(
                live, key, answer["request_id"], answer["deferred_token"], origin=None, forwarded=forwarded
            )
            assert_error(response, 422, "invalid_visitor_metadata", ("x-svc-visitor-ip", issue, "header"))


async def test_deferred_reports_come_from_the_origin_and_key_that_identified(live: Live, server_key: str, key: str):
    """Interface 4.1, 5; decisions 7.4."""
    request_id, token = await identified(live, key)
    _, management = live.issue("management")
    with nothing_stored(live):
        assert_error(await send(live, management, request_id, token, origin=None), 401, "unauthorized")
        assert_error(await send(live, server_key, request_id, token, origin=None), 422, "invalid_supplement", NO_TOKEN)
        assert_error(await send(live, key, request_id, token, origin="https://evil.example"), 401, "unauthorized")


async def test_pages_may_send_it_and_read_the_response(live: Live, key: str):
    """Decisions 3.11: the client API speaks CORS, errors included."""
    request_id, token = await identified(live, key)
    path = f"/api/v1/events/{request_id}/supplement"
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "x-api-key,content-type"}
    preflight = await live.client.options(path, headers={"origin": ORIGIN, **asked})
    assert (preflight.status_code, preflight.content) == (204, b"")
    for response in (preflight, await send(live, key, request_id, token), await send(live, key, request_id, "x")):
        assert response.headers["access-control-allow-origin"] == ORIGIN
        assert response.headers["vary"] == "Origin"


async def test_an_erased_event_takes_no_deferred_report(live: Live, key: str):
    """The token outlives what it was issued for."""
    request_id, token = await identified(live, key)
    number, raw_id = live.organization.number, UUID(request_id).bytes

    erase = partial(purge_event, number=number, request_id=raw_id)
    assert live.found.store.write_now([erase]) == [None]
    with nothing_stored(live):
        assert_error(await send(live, key, request_id, token), 422, "invalid_supplement")


async def test_a_response_waits_until_the_report_is_on_disk(live: Live, key: str, threads: HeldThreads):
    request_id, token = await identified(live, key)
    answered = trio.Event()

    async def ask() -> None:
        assert (await send(live, key, request_id, token)).status_code == 202
        answered.set()

    threads.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        with trio.fail_after(60):
            while not threads.waiting:
                await trio.lowlevel.checkpoint()
        await at_rest()
        assert live.contents()[DEFERRED_REPORTS.name] == []
        assert not answered.is_set()
        threads.release()
    assert answered.is_set()


@pytest.mark.served(map_bytes=1 << 20)
async def test_a_report_refused_by_a_full_store_can_be_sent_again(live: Live, key: str):
    """Interface 4.1: `503`, and nothing stored."""
    request_id, token = await identified(live, key)
    for size in (64 << 10, 4 << 10):
        with pytest.raises(StoreFullError):
            fill(live, size)
    large = {**DEFERRED, "noise": [number * 7919 % 104729 for number in range(15_000)]}
    assert_error(await send(live, key, request_id, token, large), 503, "service_unavailable")
    assert live.contents()[DEFERRED_REPORTS.name] == []


def fill(live: Live, size: int) -> None:
    """Rows of so many bytes until there is no space for another."""
    for number in count(size):
        row = partial(Transaction.put, table=STATISTICS, key=(number, 0, 0), value=bytes(size))
        live.found.store.write_now([row])
