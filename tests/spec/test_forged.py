"""Signals.md 2, `forged_report`, over HTTP: a request that the browser of its report does not make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from svc.identify.history.origins import EXPECTED_FROM, REMEMBERED
from svc.identify.matching.lessons import ENOUGH
from svc.kernel.values.ids import DAY_MS
from tests.spec.responses import forward, visit
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, SCRIPTED, USER_AGENT, Live, live_service, report, succeeded
from tests.support.worlds import EPOCH_MS

pytestmark = pytest.mark.any_store

FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI_15 = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 15_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/15.6 "
    "Mobile/15E148 Safari/604.1"
)
SAFARI_17 = SAFARI_15.replace("15_6", "17_5").replace("15.6", "17.5")
CHROME_79 = USER_AGENT.replace("137", "79")
WEB_VIEW = (
    "Mozilla/5.0 (Linux; Android 14; SM-S911B Build/UP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 "
    "Chrome/137.0.0.0 Mobile Safari/537.36"
)
BRANDS = [{"brand": "Chromium", "version": "137"}, {"brand": "Google Chrome", "version": "137"}]
HINTS = {
    "sec-ch-ua": '"Google Chrome";v="137", "Chromium";v="137", "Not/A)Brand";v="24"',
    "sec-ch-ua-mobile": "?0",
    "sec-ch-ua-platform": '"Windows"',
}
UA_DATA = {"brands": BRANDS, "mobile": False, "platform": "Windows"}
NONE: dict[str, str] = {}


async def fired(live: Live, key: str, headers: dict[str, str], signals: Any = None, **given: Any) -> tuple[str, ...]:
    """The evidence of `forged_report` in one identification with these headers alone; nothing where it did not fire."""
    content = {"sdk": given.pop("sdk", {"platform": "web"}), "signals": signals or report()}
    sent = {"x-api-key": key, "origin": ORIGIN, "user-agent": USER_AGENT, "x-forwarded-for": PUBLIC_ADDRESS}
    sent |= {"accept": "*/*", "accept-encoding": "gzip"} | given | headers
    return await evidence(live, succeeded(await live.client.post("/api/v1/identify", json=content, headers=sent)))


async def evidence(live: Live, answer: dict[str, Any]) -> tuple[str, ...]:
    shown = {trigger["signal"]: trigger for trigger in answer.get("triggers", ())}
    if "forged_report" not in shown:
        return ()
    _, secret = live.issue("secret")
    read = await live.client.get(f"/api/v1/events/{answer['request_id']}", headers={"x-api-key": secret})
    assert (shown["forged_report"]["group"], shown["forged_report"]["weight"]) == ("tampering", 25)
    return tuple(read.json()["document"]["evidence"]["forged_report"])


async def test_a_copied_report_from_a_program_with_a_browsers_user_agent_fires(live: Live, key: str):
    """The report, its user agent and a fresh nonce, and no other header that a browser sends."""
    assert await fired(live, key, NONE) == ("accept_language_missing", "fetch_metadata_missing")
    with_hints = report(userAgentData=UA_DATA)
    assert await fired(live, key, NONE, with_hints) == (
        "accept_language_missing", "hints_missing", "fetch_metadata_missing",
    )  # fmt: skip
    assert await fired(live, key, SCRIPTED | HINTS, with_hints) == ()


async def test_fetch_metadata_is_expected_of_browsers_and_versions_that_send_it(live: Live, key: str):
    """Chromium from 80, Firefox from 90, Safari from 16.4; web views make requests of their own."""
    for user_agent, fires in (
        (USER_AGENT, True), (FIREFOX, True), (SAFARI_17, True), (CHROME_79, False), (SAFARI_15, False),
        (WEB_VIEW, False), (FIREFOX.replace("140", "89"), False),
        ("Mozilla/5.0 (X11; Linux x86_64) Something/1.0", False),
    ):  # fmt: skip
        headers = {"accept-language": "en-GB,en", "user-agent": user_agent}
        found = await fired(live, key, headers, {"userAgent": user_agent, "languages": ["en-GB"]})
        assert found == (("fetch_metadata_missing",) if fires else ())
        assert await fired(live, key, headers | SCRIPTED, {"userAgent": user_agent, "languages": ["en-GB"]}) == ()


@pytest.mark.parametrize(
    ("origin", "host", "fires"),
    [
        (ORIGIN, None, True),
        ("http://shop.example", None, False),
        ("http://localhost:3000", None, True),
        ("http://localhost:3000", "10.0.0.5:8080", False),
    ],
)
async def test_what_browsers_send_to_secure_addresses_alone_is_not_missed_elsewhere(
    live: Live, origin: str, host: str | None, *, fires: bool
):
    """Client hints and fetch metadata need a secure context; a page on this machine is one, another machine is not."""
    _, key = live.issue(allowed_origins=(ORIGIN, "http://shop.example"))
    headers = {"accept-language": "en-GB,en"} | ({} if host is None else {"host": host})
    found = await fired(live, key, headers, report(userAgentData=UA_DATA), origin=origin)
    assert found == (("hints_missing", "fetch_metadata_missing") if fires else ())


async def test_headers_that_say_something_else_than_the_report_fire(live: Live, key: str):
    for changed, expected in (
        ({"sec-ch-ua": '"Chromium";v="120", "Google Chrome";v="120"'}, ("hints_vs_report",)),
        ({"sec-ch-ua": '"Chromium";v="137", "Microsoft Edge";v="137"'}, ("hints_vs_report",)),
        ({"sec-ch-ua-platform": '"Linux"'}, ("hints_vs_report",)),
        ({"sec-ch-ua-mobile": "?1"}, ("hints_vs_report",)),
        ({"accept-language": "ru-RU,ru"}, ("languages_vs_header",)),
        ({"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, ("fetch_metadata_of_no_script",)),
        ({"sec-fetch-dest": "image"}, ("fetch_metadata_of_no_script",)),
        ({"sec-fetch-mode": "same-origin", "sec-fetch-site": "same-origin"}, ()),
    ):
        assert await fired(live, key, SCRIPTED | HINTS | changed, report(userAgentData=UA_DATA)) == expected


async def test_firefox_sends_no_client_hints_and_one_that_does_is_none(live: Live, key: str):
    page = {"userAgent": FIREFOX, "languages": ["en-GB"]}
    assert await fired(live, key, SCRIPTED | {"user-agent": FIREFOX}, page) == ()
    assert await fired(live, key, SCRIPTED | HINTS | {"user-agent": FIREFOX}, page) == ("sent_hints_of_another_engine",)


SDK = {
    "components": {"languages": {"value": [["en-GB"]]}, "platform": {"value": "Win32"}},
    "botd": {"webDriver": {"state": 0, "value": False}},
    "incognito": False,
    "probes": {"version": 1, "contexts": {"page": {"languages": ["en-GB"], "language": "en-GB"}}},
}


OF_THE_SDK = {"platform": "web", "version": "0.2.0"}


def sdk_report(nonce_ms: int, collected_ms: int, *without: str) -> dict[str, Any]:
    """A report like the web SDK's, whose nonce was made then."""
    time = f"{nonce_ms:012x}"
    signals = SDK | {"nonce": f"{time[:8]}-{time[8:]}-7abc-8def-0123456789ab", "collected_at": collected_ms}
    return {name: value for name, value in signals.items() if name not in without}


async def test_a_report_like_the_sdks_is_whole_and_of_one_moment(live: Live, key: str):
    """Its probes, and a nonce of the time at which it was collected. A clock that is wrong by a day is honest."""
    for signals, expected in (
        (sdk_report(EPOCH_MS, EPOCH_MS), ()),
        (sdk_report(EPOCH_MS - DAY_MS, EPOCH_MS - DAY_MS), ()),
        (sdk_report(EPOCH_MS, EPOCH_MS, "probes"), ("probes_missing",)),
        (sdk_report(EPOCH_MS, EPOCH_MS, "probes", "botd"), ()),
        (sdk_report(EPOCH_MS, EPOCH_MS, "probes") | {"nonce": "f3a9c1d27b604e58"}, ("probes_missing",)),
        (sdk_report(EPOCH_MS, EPOCH_MS - 3 * DAY_MS), ("collected_at_vs_nonce",)),
        (sdk_report(EPOCH_MS - 500 * DAY_MS, EPOCH_MS - 500 * DAY_MS), ("collected_at_impossible",)),
        (sdk_report(0, EPOCH_MS, "nonce"), ()),
    ):
        assert await fired(live, key, SCRIPTED, signals, sdk=OF_THE_SDK) == expected


async def test_others_may_send_what_the_libraries_of_the_sdk_collect(live: Live, key: str):
    """Only what calls itself a release of the web SDK must have its probes."""
    for version in ("1.0.0", "0.0.9", "0.2", "0.999.0", "my own", None):
        sdk = {"platform": "web"} | ({} if version is None else {"version": version})
        assert await fired(live, key, SCRIPTED, sdk_report(EPOCH_MS, EPOCH_MS, "probes"), sdk=sdk) == ()


FORWARDED = {
    "x-svc-visitor-ip": PUBLIC_ADDRESS,
    "x-svc-visitor-origin": ORIGIN,
    "x-svc-visitor-user-agent": USER_AGENT,
    "user-agent": "proxy/1.0",
}


@pytest.mark.parametrize("kind", ["proxy", "secret"])
async def test_keys_that_do_not_forward_the_headers_stay_silent(live: Live, kind: str):
    """Decisions 2.9: what a server does not forward shows nothing; what it forwards counts as if sent directly."""
    _, key = live.issue(kind)
    signals = report(userAgentData=UA_DATA)

    async def found(headers: dict[str, str] | None) -> tuple[str, ...]:
        passed_on = {} if headers is None else {"x-svc-visitor-headers": json.dumps(headers)}
        return await evidence(live, (await forward(live, key, FORWARDED | passed_on, signals=signals)).json())

    assert await found(None) == ()
    assert await found({}) == ("accept_language_missing", "hints_missing", "fetch_metadata_missing")
    assert await found(SCRIPTED | HINTS) == ()
    assert await found({name.title(): value for name, value in (SCRIPTED | HINTS).items()}) == ()
    assert await found(SCRIPTED | HINTS | {"sec-ch-ua-platform": '"Linux"'}) == ("hints_vs_report",)


async def test_a_program_that_names_itself_is_no_forgery(live: Live, key: str):
    assert await fired(live, key, {"user-agent": "curl/8.5.0"}, {"timezone": "UTC"}) == ()


async def test_apps_are_not_compared_with_browsers(live: Live):
    """The signal is of the web."""
    _, key = live.issue(platforms=("android",), allowed_origins=())
    answer = await live.identify(
        key, report(), origin=None, headers={"user-agent": USER_AGENT}, sdk={"platform": "android"}
    )
    assert await evidence(live, answer.json()) == ()


# The TLS handshake


async def test_a_handshake_is_shown_and_accepted_only_from_trusted_proxies(directory: Path):
    """Setting `connection_tls_header`: archived, and part of the event's document."""
    for trusted, shown in ((("127.0.0.1/32",), {"tls": "t13d1516h2_8daaf6152771"}), (("10.0.0.0/8",), None)):
        settings: dict[str, Any] = {"trusted_proxies": trusted, "connection_tls_header": "x-ja4"}
        async with live_service(directory / trusted[0][:2], **settings) as live:
            _, key = live.issue()
            _, secret = live.issue("secret")
            answer = (await visit(live, key, headers={"x-ja4": "t13d1516h2_8daaf6152771"})).json()
            read = await live.client.get(f"/api/v1/events/{answer['request_id']}", headers={"x-api-key": secret})
            assert read.json()["document"].get("connection") == shown


@pytest.mark.slow(3)
@pytest.mark.served(connection_tls_header="x-ja4")
async def test_a_handshake_that_no_visitor_of_the_class_makes_fires_once_enough_are_known(live: Live, key: str):
    """Learned from visitors who came back with their token, once a day each; never judged by few."""

    async def comes(device: int, handshake: str, *, is_new: bool = False) -> Any:
        token = {"client_token": f"token of the device {device:04}", "client_token_is_new": is_new}
        headers = {"x-ja4": handshake, "x-forwarded-for": f"81.{device // 200}.{device % 200}.9"}
        return (await visit(live, key, report(device) | token, headers=headers)).json()

    async def seen(device: int, handshake: str, *, is_new: bool = False) -> tuple[str, ...]:
        return await evidence(live, await comes(device, handshake, is_new=is_new))

    assert await seen(1, "of a program", is_new=True) == ()
    devices = 90
    for device in range(2, devices):
        await comes(device, "of the browser", is_new=True)
    for day in range(-(-ENOUGH // (devices - 2))):
        assert await seen(devices + 2 + day, "of a program", is_new=True) == ()
        live.clock.advance(hours=24)
        for device in range(3, devices):
            await comes(device, "of the browser")
        assert await seen(2, "of the browser") == ()
    assert await seen(devices, "of a program", is_new=True) == ("unusual_handshake",)
    assert await seen(devices + 1, "of the browser", is_new=True) == ()


PAGE_WITHOUT_HINTS = SCRIPTED
"""Of a site that sends `Permissions-Policy: ch-ua=()`: fetch metadata, and no client hints."""
SITE = "https://policy.example"


async def returned(live: Live, key: str, headers: dict[str, str], number: int, origin: str = ORIGIN) -> None:
    """A visitor that came today and comes again tomorrow."""
    token = f"{number:032x}"
    for is_new in (True, False):
        signals = report(number, userAgentData=UA_DATA, client_token=token)
        signals |= {"client_token_is_new": True} if is_new else {}
        await fired(live, key, headers, signals, origin=origin)
        live.clock.advance(hours=24)


@pytest.mark.slow(2)
async def test_a_site_whose_own_policy_keeps_client_hints_back_accuses_nobody(live: Live):
    """Missing client hints are judged by what the origin's visitors send."""
    _, key = live.issue(allowed_origins=(ORIGIN, SITE))
    unlike = report(userAgentData=UA_DATA)
    assert await fired(live, key, PAGE_WITHOUT_HINTS, unlike) == (), "nothing is known of the origin"
    for number in range(1, REMEMBERED + 1):
        await returned(live, key, SCRIPTED | HINTS, number)
        await returned(live, key, PAGE_WITHOUT_HINTS, 100 + number, SITE)
    assert await fired(live, key, PAGE_WITHOUT_HINTS, unlike) == ("hints_missing",)
    assert await fired(live, key, PAGE_WITHOUT_HINTS, unlike, origin=SITE) == ()
    assert await fired(live, key, SCRIPTED | HINTS, unlike) == ()


@pytest.mark.slow(2)
async def test_a_policy_that_a_site_begins_to_send_is_learned_from_visitors_that_return(live: Live, key: str):
    """New visitors, as a program makes them, teach nothing."""
    unlike = report(userAgentData=UA_DATA)
    for number in range(1, REMEMBERED + 1):
        await returned(live, key, SCRIPTED | HINTS, number)
    for number in range(REMEMBERED):
        token = {"client_token": f"{200 + number:032x}", "client_token_is_new": True}
        fresh = report(200 + number, userAgentData=UA_DATA) | token
        await fired(live, key, PAGE_WITHOUT_HINTS, fresh)
    assert await fired(live, key, PAGE_WITHOUT_HINTS, unlike) == ("hints_missing",)
    for number in range(REMEMBERED - EXPECTED_FROM + 1):
        await returned(live, key, PAGE_WITHOUT_HINTS, 100 + number)
    assert await fired(live, key, PAGE_WITHOUT_HINTS, unlike) == ()
