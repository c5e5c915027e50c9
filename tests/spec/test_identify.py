"""Interface 2.1, 2.2, 4.1 and decisions 3: what identify takes, answers and records."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing

from svc.identify.events.archive import inflate
from svc.identify.keys import deferred
from svc.identify.queries import events
from svc.identify.tables import VISITOR_IDS
from tests.spec.responses import (
    BROWSER,
    DRIVEN,
    IDENTIFY,
    TOO_LITTLE,
    VISITOR_ID,
    assert_error,
    assert_invalid,
    body_of,
    forward,
    nothing_stored,
    post,
    visit,
)
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, USER_AGENT, Live, report
from tests.support.serving_postgresql import at_rest
from tests.support.worlds import HeldThreads

ALWAYS = {
    "request_id", "deferred_token", "visitor_id", "visitor_is_new", "identifiable", "visitor_confidence", "proven",
    "state", "suspect_score", "suspect_level",
}  # fmt: skip


async def test_a_new_identification_returns_its_fields_and_omits_inapplicable_ones(live: Live, key: str):
    """Interface 2 and 2.2: types, required fields; no `null`, no empty `triggers`, no `reason`, no `duplicate`."""
    answer = (await visit(live, key)).json()
    assert set(answer) == ALWAYS
    assert VISITOR_ID.fullmatch(answer["visitor_id"])
    assert answer["visitor_is_new"] is True
    assert answer["identifiable"] is True
    assert (answer["visitor_confidence"], answer["state"]) == (0, "enriched")
    assert (answer["suspect_score"], answer["suspect_level"]) == (0, "low")


async def test_the_headers_of_the_response_are_whole_numbers(live: Live):
    """Interface 2.2: balance in millionths of a dollar, limit and remainder of the rate."""
    _, secret = live.issue(organization=live.new_organization(rate_limit=5).number)
    response = await visit(live, secret)
    for name in ("svc-balance-micros", "ratelimit-limit", "ratelimit-remaining"):
        assert response.headers[name].isdecimal()
    assert "retry-after" not in response.headers
    assert response.headers["content-type"] == "application/json"


async def test_a_minimal_request_is_sufficient(live: Live, key: str):
    """Interface 2.1: `sdk` and `signals` are required, nothing in them is."""
    response = await post(live, key, b'{"sdk":{},"signals":{}}')
    assert response.status_code == 200
    ((_, event),) = live.events()
    assert (event.platform, event.sdk_platform, event.sdk_version, event.tag) == ("web", "web", "unknown", None)


@pytest.mark.parametrize("field", ["platform", "version"])
async def test_platform_and_version_of_the_sdk_have_at_most_64_characters(live: Live, key: str, field: str):
    """Decisions 3.1; characters, not bytes."""
    for text in ("x" * 64, "ü" * 64, "🦊" * 64):
        assert (await visit(live, key, sdk={field: text})).status_code == 200
        assert getattr(live.events()[-1][1], f"sdk_{field}") == text
    with nothing_stored(live):
        for text in ("x" * 65, "ü" * 65):
            assert_invalid(await visit(live, key, sdk={field: text}), f"sdk.{field}", "too_long")


async def test_a_tag_has_at_most_1024_characters_and_is_kept_as_sent(live: Live, key: str):
    """Interface 2.1, decisions 3.1."""
    for tag in ("order 1", " \n\u0000", "x" * 1024, "🦊" * 1024):
        assert (await visit(live, key, tag=tag)).status_code == 200
        assert live.events()[-1][1].tag == tag
    with nothing_stored(live):
        assert_invalid(await visit(live, key, tag="x" * 1025), "tag", "too_long")


async def test_the_scoring_profile_follows_from_the_platform(live: Live):
    """Interface 2.3, decisions 3.1: natives, bridges that end in their name, all else `web`; the SDK's name is kept."""
    _, secret = live.issue(platforms=("web", "ios", "android"), allowed_origins=("capacitor://localhost",))
    for platform, profile in (
        ("web", "web"),
        ("ios", "ios"),
        ("android", "android"),
        ("react-native-ios", "ios"),
        ("react-native-android", "android"),
        ("flutter-android", "android"),
        ("capacitor-web", "web"),
        ("react-native", "web"),
        ("tizen", "web"),
        ("iOS", "web"),
        ("ios-flutter", "web"),
    ):
        response = await visit(
            live, secret, origin="capacitor://localhost", sdk={"platform": platform, "version": "1.2.3"}
        )
        assert response.status_code == 200
        *_, (_, event) = live.events()
        assert (event.platform, event.sdk_platform, event.sdk_version) == (profile, platform, "1.2.3")


@pytest.mark.parametrize("platform", ["web", "ios", "android", "react-native-ios", "flutter-android", "tizen"])
@pytest.mark.parametrize("origin", [ORIGIN, "http://localhost:3000"])
async def test_what_a_page_sends_is_scored_for_the_web_whatever_platform_it_claims(
    live: Live, platform: str, origin: str
):
    """Decisions 2.7: with an `http` or `https` origin the profile is `web`; `sdk_platform` keeps the claim."""
    _, secret = live.issue(platforms=("web", "ios", "android"))
    answer = (await visit(live, secret, report() | DRIVEN, origin=origin, sdk={"platform": platform})).json()
    assert answer["suspect_score"] == (await _score_as_web(live, origin))
    _, event = live.events()[0]
    assert (event.platform, event.sdk_platform, event.origin) == ("web", platform, origin)


async def _score_as_web(live: Live, origin: str) -> int:
    _, secret = live.issue()
    return (await visit(live, secret, report() | DRIVEN, origin=origin)).json()["suspect_score"]


@pytest.mark.parametrize("claimed", ["body", "header"])
async def test_a_page_needs_a_key_for_the_web(live: Live, claimed: str):
    """Decisions 2.7: `web` must be among the platforms of a key whose page sends, whatever `sdk.platform` says."""
    _, secret = live.issue(platforms=("ios", "android"))
    given: dict[str, Any] = {"sdk": {"platform": "ios"}} if claimed == "body" else {"sdk": {}}
    with nothing_stored(live):
        refused = await visit(live, secret, headers={"x-svc-sdk-platform": "ios"}, **given)
        assert "not one of the key's" in assert_error(refused, 401, "unauthorized")


@pytest.mark.parametrize(
    ("platforms", "claimed", "status"),
    [
        (("ios",), "capacitor-ios", 200),
        (("ios",), "capacitor-android", 401),
        (("ios",), "web", 401),
        (("web",), "capacitor-ios", 401),
        (("web",), "capacitor", 200),
        (("web", "android"), "android", 200),
    ],
)
async def test_a_platform_that_an_apps_origin_claims_is_one_of_the_keys(
    live: Live, platforms: tuple[str, ...], claimed: str, status: int
):
    """Decisions 2.7: a bridge's web view has an app's origin; the key must have the profile that its platform gives."""
    _, secret = live.issue(platforms=platforms, allowed_origins=("capacitor://localhost",), environment="production")
    response = await visit(live, secret, origin="capacitor://localhost", sdk={"platform": claimed})
    assert response.status_code == status
    for _, event in live.events():
        assert (event.platform in platforms, event.origin) == (True, "capacitor://localhost")


async def test_the_event_records_visitor_origin_and_device(live: Live):
    """Interface 2.3, 8: arrival, environment, origin, tag, address, program, device, price, and what was answered."""
    key, secret = live.issue(environment="production")
    live.clock.advance(hours=1, seconds=0.123)
    answer = (await visit(live, secret, tag="order 1", sdk={"platform": "web", "version": "0.1.0"})).json()
    ((request_id, event),) = live.events()
    assert request_id == answer["request_id"]
    assert event.occurred_at_ms == live.clock.now_ms
    assert (event.environment, event.origin, event.tag, event.key_id) == ("production", ORIGIN, "order 1", key.id)
    assert (event.ip_address, event.verdict.state, event.anonymity_network) == (PUBLIC_ADDRESS, "enriched", None)
    assert (event.agent, event.os, event.device_kind) == ("Chrome", "Windows", "desktop")
    assert (event.agent_version or "").startswith("137")
    assert (event.visitor_kind, event.price_micros) == ("human", 3000)
    for name in (
        "visitor_id",
        "visitor_is_new",
        "visitor_confidence",
        "proven",
        "identifiable",
        "suspect_score",
        "suspect_level",
    ):
        assert getattr(event.verdict, name) == answer[name]
    assert event.verdict.triggers == ()


async def test_a_tor_exit_is_named_on_the_event_and_fires_its_signal(live: Live, key: str):
    """Interface 2.2, 2.3: `tor`, group `tor`; weight 25 of the default profile."""
    answer = (await visit(live, key, headers={"x-forwarded-for": "185.220.101.1"})).json()
    assert {"signal": "tor", "group": "tor", "weight": 25, "confidence": "high"} in answer["triggers"]
    ((_, event),) = live.events()
    assert event.anonymity_network == "tor"


async def test_the_submission_is_archived_byte_for_byte(live: Live, key: str):
    """Decisions 7.3: space, order and spelling of the report are kept."""
    signals = b'{ "timezone":"Europe\\/London", "a":1.50,\n "a":2, "\\u0062":"\xc3\xbc" }'
    assert (await post(live, key, b'{"sdk":{"version":"9"},"tag":"t","signals":%b}' % signals)).status_code == 200
    ((request_id, event),) = live.events()
    with live.found.store.read() as snapshot:
        document = events.document(snapshot, live.organization.number, UUID(request_id))
    assert document is not None
    assert inflate(document.signals) == signals
    assert (document.sdk_platform, document.sdk_version, document.tag) == (None, "9", "t")
    assert (document.suspect_threshold, document.weights_scope) == (30, "default")
    assert event.tag == "t"


async def test_the_deferred_token_is_bound_to_request_key_and_origin_for_24_hours(live: Live):
    """Interface 2.2, 8; decisions 7.4."""
    key, secret = live.issue()
    answer = (await visit(live, secret)).json()
    signing_key, now = deferred.signing_key(live.found.pepper), live.clock.now_ms
    opened = deferred.open_token(signing_key, answer["deferred_token"], key.id, ORIGIN, now + 24 * 3_600_000 - 1)
    assert opened is not None
    assert str(opened.request_id) == answer["request_id"]
    for key_id, origin, later_ms in (
        (key.id, ORIGIN, 24 * 3_600_000),
        (key.id, None, 0),
        (key.id, "https://other.example", 0),
        ("key_other", ORIGIN, 0),
    ):
        assert deferred.open_token(signing_key, answer["deferred_token"], key_id, origin, now + later_ms) is None


async def test_a_deferred_report_is_refused_by_identify(live: Live, key: str):
    """Decisions 7.4."""
    with nothing_stored(live):
        assert_invalid(await visit(live, key, report(tier="deferred")), "signals.tier", "invalid_value")
    for tier in ("immediate", None, ["deferred"], "Deferred"):
        assert (await visit(live, key, report(tier=tier))).status_code == 200


async def test_an_address_that_is_not_public_is_unavailable_with_a_reason(live: Live, proxy: str):
    """Interface 2.2, decisions 3.4: loopback, private, link-local or otherwise not public."""
    for address in (
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.1.1", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1", "fd00::1", "ff02::1", "2001:db8::1", "::ffff:10.0.0.1",
    ):  # fmt: skip
        answer = (await forward(live, proxy, {"x-svc-visitor-ip": address})).json()
        assert (answer["state"], answer["reason"]) == ("unavailable", "private_address")
        *_, (_, event) = live.events()
        assert (event.verdict.state, event.verdict.reason) == ("unavailable", "private_address")


@pytest.mark.served(network_builtin=False)
async def test_without_a_database_the_lookup_is_unavailable_with_a_reason(live: Live, key: str):
    """Decisions 3.4."""
    answer = (await visit(live, key)).json()
    assert (answer["state"], answer["reason"]) == ("unavailable", "no_network_data")


@pytest.mark.slow(0.2)
async def test_a_visitor_is_recognized_across_environments_and_keys_of_an_organization(live: Live):
    """Decisions 3.5: `visitor_id` and `visitor_is_new` are about the organization."""
    answers: list[dict[str, Any]] = []
    for environment in ("development", "staging", "production"):
        _, secret = live.issue(environment=environment)
        answers.append((await visit(live, secret)).json())
    _, proxy = live.issue("proxy", "production")
    headers = {"x-svc-visitor-ip": PUBLIC_ADDRESS, "x-svc-visitor-user-agent": USER_AGENT}
    answers.append((await forward(live, proxy, headers)).json())
    assert len({answer["visitor_id"] for answer in answers}) == 1
    assert [answer["visitor_is_new"] for answer in answers] == [True, False, False, False]


async def test_confidence_is_100_for_the_same_report_0_for_a_new_visitor_and_between_if_changed(live: Live, key: str):
    """Interface 2.2, decisions 3.5."""
    first = (await visit(live, key)).json()
    again = (await visit(live, key)).json()
    stranger = (await visit(live, key, report(2, timezone="Asia/Tokyo", languages=["ja"], deviceMemory=4))).json()
    updated = USER_AGENT.replace("Chrome/137", "Chrome/138")
    changed = (await visit(live, key, report(userAgent=updated), headers={"user-agent": updated})).json()
    assert (first["visitor_confidence"], first["visitor_is_new"]) == (0, True)
    assert (again["visitor_confidence"], again["visitor_id"]) == (100, first["visitor_id"])
    assert again["visitor_is_new"] is False
    assert (stranger["visitor_confidence"], stranger["visitor_is_new"]) == (0, True)
    assert stranger["visitor_id"] != first["visitor_id"]
    assert changed["visitor_id"] == first["visitor_id"]
    assert 85 <= changed["visitor_confidence"] <= 99
    assert changed["visitor_is_new"] is False


async def test_the_same_token_with_the_same_report_has_confidence_100(live: Live, key: str):
    """Decisions 3.5."""
    token = {"client_token": "3f1c0a52-6a7e-4be0-9d24-0123456789ab"}
    first = (await visit(live, key, report(client_token_is_new=True, **token))).json()
    again = (await visit(live, key, report(client_token_is_new=False, **token))).json()
    assert (again["visitor_id"], again["visitor_confidence"]) == (first["visitor_id"], 100)


async def test_an_unidentifiable_report_gets_a_new_id_each_time_that_is_not_indexed(live: Live, key: str):
    """Interface 2.2, decisions 3.6: `identifiable: false`, and still scored."""
    answers = [(await visit(live, key, TOO_LITTLE)).json() for _ in range(3)]
    for answer in answers:
        assert set(answer) == ALWAYS
        assert (answer["identifiable"], answer["visitor_confidence"]) == (False, 0)
        assert VISITOR_ID.fullmatch(answer["visitor_id"])
    assert len({answer["visitor_id"] for answer in answers}) == 3
    with live.found.store.read() as snapshot:
        assert list(snapshot.scan(VISITOR_IDS)) == []
    assert [event.verdict.identifiable for _, event in live.events()] == [False] * 3


async def test_an_unreadable_report_is_not_scored(live: Live, server_key: str):
    """Interface 2.2, decisions 3.9: no adapter knows it and there is no user agent; omitted, not 0."""
    bare = {"x-svc-visitor-ip": PUBLIC_ADDRESS}
    answer = (await forward(live, server_key, bare, signals={"q": [1, {"w": 2}]})).json()
    assert set(answer) == ALWAYS - {"suspect_score", "suspect_level"}
    assert answer["identifiable"] is False
    ((_, event),) = live.events()
    assert (event.verdict.suspect_score, event.verdict.suspect_level, event.verdict.triggers) == (None, None, ())
    with_agent = {**bare, "x-svc-visitor-user-agent": USER_AGENT}
    scored = (await forward(live, server_key, with_agent, signals={"q": [1, {"w": 2}]})).json()
    assert (scored["suspect_score"], scored["suspect_level"]) == (0, "low")


async def test_a_response_waits_until_everything_is_on_disk(live: Live, key: str, threads: HeldThreads):
    """Decisions 3.3."""
    answered = trio.Event()

    async def ask() -> None:
        await visit(live, key)
        answered.set()

    threads.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        with trio.fail_after(60):
            while not threads.waiting:
                await trio.lowlevel.checkpoint()
        await at_rest()
        assert live.events() == []
        assert not answered.is_set()
        threads.release()
    assert len(live.events()) == 1


async def test_a_client_that_disconnects_leaves_a_complete_identification(live: Live, threads: HeldThreads):
    """Decisions 3.3: event, visitor, idempotency record and money come together, and the retry is the duplicate."""
    _, secret = live.issue(environment="production")
    body = body_of()
    fields = {"host": "x", "origin": ORIGIN, "x-api-key": secret, "idempotency-key": "a", **BROWSER}
    fields |= {"content-type": "application/json", "content-length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    threads.hold()
    stream = await trio.open_tcp_stream("127.0.0.1", live.port)
    await stream.send_all(f"POST {IDENTIFY} HTTP/1.1\r\n{head}\r\n".encode() + body)
    with trio.fail_after(60):
        while not threads.waiting:
            await trio.lowlevel.checkpoint()
    await stream.aclose()
    await at_rest()
    threads.release()
    answer = (await visit(live, secret, headers={"idempotency-key": "a"})).json()
    ((request_id, event),) = live.events()
    assert answer == {"request_id": request_id, "duplicate": True}
    assert live.balance() == 10_000_000 - event.price_micros


async def test_a_response_is_json_without_nulls(live: Live, key: str):
    """Interface 2: optional response fields are omitted when they do not apply."""
    for signals, headers in (
        (report(), {}),
        (TOO_LITTLE, {}),
        (report(webdriver=True), {"x-forwarded-for": "10.0.0.1"}),
    ):
        response = await visit(live, key, signals, headers=headers)
        assert b"null" not in response.content
        assert json.loads(response.content)["request_id"]
