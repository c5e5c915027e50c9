"""Decisions 2.9 and 2.10: visitors whom a proxy or a customer's server speaks for, and whose address counts."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest

from svc.identify.network.request_headers import read_headers
from svc.identify.tables import DOCUMENTS
from svc.identify.useragent import read_hints
from svc.kernel.values.timestamps import timestamp
from tests.spec.responses import BROWSER, DRIVEN, assert_error, forward, nothing_stored, visit
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, SCRIPTED, USER_AGENT, Live, live_service, report
from tests.support.worlds import EPOCH_MS

pytestmark = pytest.mark.any_store

VISITOR = {"x-svc-visitor-ip": PUBLIC_ADDRESS}
HINTS = {
    "sec-ch-ua": '"Microsoft Edge";v="137", "Chromium";v="137", "Not/A)Brand";v="24"',
    "sec-ch-ua-platform": '"Windows"',
    "sec-ch-ua-platform-version": '"15.0.0"',
}
EVERYTHING = {
    **VISITOR,
    "x-svc-visitor-origin": ORIGIN,
    "x-svc-visitor-user-agent": USER_AGENT,
    "x-svc-visitor-headers": json.dumps({**SCRIPTED, **HINTS}),
}


@pytest.mark.parametrize("kind", ["proxy", "secret"])
async def test_forwarded_details_are_those_of_the_visitor(live: Live, kind: str):
    """Decisions 2.9: address, origin and user agent are those of the headers, not of the sender of the request."""
    _, secret = live.issue(kind, "production")
    headers = {**EVERYTHING, "user-agent": "proxy/1.0", "x-forwarded-for": "9.9.9.9"}
    answer = (await forward(live, secret, headers, signals={"timezone": "UTC"})).json()
    assert (answer["state"], answer["suspect_score"]) == ("enriched", 0)
    ((_, event),) = live.events()
    assert (event.ip_address, event.origin, event.agent) == (PUBLIC_ADDRESS, ORIGIN, "Edge")


@pytest.mark.parametrize("kind", ["proxy", "secret"])
async def test_forwarded_headers_are_used_like_those_of_a_direct_request(live: Live, key: str, kind: str):
    """Decisions 2.9: the visitor's `accept-language`, `sec-ch-ua*` and `sec-fetch-*`."""
    _, secret = live.issue(kind)
    await visit(live, key, headers=HINTS)
    await forward(live, secret, {**EVERYTHING, "accept-language": "ru", "sec-ch-ua": "of the server"})
    (_, direct), (request_id, forwarded) = live.events()
    for name in ("agent", "agent_version", "os"):
        assert getattr(forwarded, name) == getattr(direct, name)
    with live.found.store.read() as snapshot:
        document = snapshot.get(DOCUMENTS, live.organization.number, UUID(request_id).bytes)
    assert document is not None
    assert document.headers is not None
    headers = read_headers(document.headers)
    assert (headers.accept_language, headers.fetch) == ("en-GB,en", "cross-site cors empty")
    assert headers.hints == read_hints(HINTS)


@pytest.mark.parametrize("kind", ["proxy", "secret"])
async def test_malformed_forwarded_headers_are_refused(live: Live, kind: str):
    """Decisions 2.9: a JSON object of texts, at most 2 kB; a name that is mistyped must not be missed silently."""
    _, secret = live.issue(kind)
    for sent, issue in (
        ("", "invalid_value"),
        ("nonsense", "invalid_value"),
        ("[]", "invalid_value"),
        ('{"accept-language": ["de"]}', "invalid_value"),
        ('{"accept-language": null}', "invalid_value"),
        ('{"accept-language": "de", "Accept-Language": "en"}', "invalid_value"),
        ('{"cookie": "a=b"}', "unknown_field"),
        ('{"accept_language": "de"}', "unknown_field"),
        (json.dumps({"accept-language": "x" * 2048}), "too_long"),
    ):
        with nothing_stored(live):
            refused = await forward(live, secret, {**EVERYTHING, "x-svc-visitor-headers": sent})
            message = assert_error(refused, 422, "invalid_visitor_metadata", ("x-svc-visitor-headers", issue, "header"))
            assert "accept-language, sec-ch-ua" in message


async def test_the_longest_forwarded_headers_are_accepted(live: Live, proxy: str):
    """Decisions 2.9: 2,048 bytes."""
    longest = json.dumps({"accept-language": "x" * (2048 - len('{"accept-language": ""}'))})
    assert len(longest) == 2048
    assert (await forward(live, proxy, {**EVERYTHING, "x-svc-visitor-headers": longest})).status_code == 200
    refused = await forward(live, proxy, {**EVERYTHING, "x-svc-visitor-headers": longest.replace("x", "xx", 1)})
    assert_error(refused, 422, "invalid_visitor_metadata", ("x-svc-visitor-headers", "too_long", "header"))


@pytest.mark.parametrize("claimed", ["ios", "react-native-android"])
@pytest.mark.parametrize("kind", ["proxy", "secret"])
async def test_a_forwarded_page_is_scored_for_the_web(live: Live, kind: str, claimed: str):
    """Decisions 2.7: the same holds for an origin that a server forwards; without one the claim counts."""
    _, secret = live.issue(kind)
    for origin, profile in ((ORIGIN, "web"), ("http://shop.example", "web"), ("capacitor://localhost", None)):
        headers = {**EVERYTHING, "x-svc-visitor-origin": origin}
        await forward(live, secret, headers, sdk={"platform": claimed})
        _, event = live.events()[-1]
        assert (event.platform, event.sdk_platform) == (profile or claimed.rpartition("-")[2], claimed)
    await forward(live, secret, VISITOR, sdk={"platform": claimed})
    assert live.events()[-1][1].platform == claimed.rpartition("-")[2]


async def test_a_forwarded_public_key_needs_the_platform_of_the_forwarded_origin(live: Live, proxy: str):
    """Decisions 2.7, 2.9: that key's platforms apply; a page's is `web`."""
    _, native = live.issue(platforms=("ios",))
    _, both = live.issue(platforms=("ios", "web"))
    with nothing_stored(live):
        refused = await forward(live, proxy, {**EVERYTHING, "x-svc-public-key": native}, sdk={"platform": "ios"})
        assert_error(refused, 401, "unauthorized")
    signals = report() | DRIVEN
    await forward(live, proxy, {**EVERYTHING, "x-svc-public-key": both}, sdk={"platform": "ios"}, signals=signals)
    ((_, event),) = live.events()
    assert (event.platform, event.sdk_platform) == ("web", "ios")


async def test_a_forwarded_address_is_one_literal_in_any_notation(live: Live, proxy: str):
    """Decisions 2.9: IPv4 or IPv6; an IPv4 address in IPv6 clothes is the IPv4 address."""
    for sent, kept in (
        ("81.2.69.160", "81.2.69.160"),
        ("2a02:0C7C:0000::0001", "2a02:c7c::1"),
        ("::ffff:81.2.69.160", "81.2.69.160"),
        ("192.168.1.1", "192.168.1.1"),
    ):
        assert (await forward(live, proxy, {"x-svc-visitor-ip": sent})).status_code == 200
        *_, (_, event) = live.events()
        assert event.ip_address == kept


@pytest.mark.parametrize("kind", ["proxy", "secret"])
async def test_in_production_a_forwarded_address_is_public(live: Live, kind: str):
    """Decisions 2.9: nobody forwards a visitor's private address, and what has one would be free."""
    not_public = ("x-svc-visitor-ip", "not_public_address", "header")
    _, production = live.issue(kind, environment="production")
    for address in ("10.0.0.1", "192.0.2.1", "2001:db8::1", "127.0.0.1", "::ffff:10.0.0.1", "fe80::1"):
        with nothing_stored(live):
            refused = await forward(live, production, {**BROWSER, "x-svc-visitor-ip": address})
            message = assert_error(refused, 422, "invalid_visitor_metadata", not_public)
            assert "not a public one" in message
            assert "missing or malformed" not in message
        _, staging = live.issue(kind, environment="staging")
        accepted = await forward(live, staging, {**BROWSER, "x-svc-visitor-ip": address})
        assert accepted.json()["reason"] == "private_address"


@pytest.mark.parametrize("kind", ["proxy", "secret"])
async def test_forwarding_without_the_visitor_address_is_refused(live: Live, kind: str):
    """Decisions 2.9: `x-svc-visitor-ip` is required, of a server as soon as it forwards anything."""
    _, secret = live.issue(kind)
    missing = ("x-svc-visitor-ip", "required", "header")
    with nothing_stored(live):
        for name in ("x-svc-visitor-origin", "x-svc-visitor-user-agent", "x-svc-visitor-headers"):
            response = await forward(live, secret, {**BROWSER, name: EVERYTHING[name]})
            assert_error(response, 422, "invalid_visitor_metadata", missing)
        if kind == "proxy":
            assert_error(await forward(live, secret, BROWSER), 422, "invalid_visitor_metadata", missing)


@pytest.mark.parametrize("kind", ["proxy", "secret"])
async def test_a_malformed_address_is_refused(live: Live, kind: str):
    """Interface 7, decisions 2.9."""
    _, secret = live.issue(kind)
    for address in (
        "", "nonsense", "81.2.69", "81.2.69.256", "081.2.69.160", "81.2.69.160:443", "[2a02:c7c::1]", "81.2.69.160/32",
        "fe80::1%eth0", "81.2.69.160, 81.2.69.161", "81.2.69.160 81.2.69.161", "1360152992", "0x51.2.69.160", "::g",
        "localhost",
    ):  # fmt: skip
        with nothing_stored(live):
            response = await forward(live, secret, {"x-svc-visitor-ip": address})
            assert_error(response, 422, "invalid_visitor_metadata", ("x-svc-visitor-ip", "invalid_value", "header"))


async def test_a_duplicate_address_is_refused(live: Live, proxy: str):
    """Decisions 2.9: one literal."""
    headers = [("x-api-key", proxy), ("x-svc-visitor-ip", PUBLIC_ADDRESS), ("x-svc-visitor-ip", PUBLIC_ADDRESS)]
    with nothing_stored(live):
        response = await live.client.post("/api/v1/identify", json={"sdk": {}, "signals": {}}, headers=headers)
        assert_error(response, 422, "invalid_visitor_metadata", ("x-svc-visitor-ip", "invalid_value", "header"))


@pytest.mark.parametrize("kind", ["proxy", "secret"])
async def test_a_malformed_origin_is_refused(live: Live, kind: str):
    """Decisions 2.9."""
    _, secret = live.issue(kind)
    with nothing_stored(live):
        for origin in ("", "shop.example", "https://shop.example/path", "*", "https://*.shop.example"):
            response = await forward(live, secret, {**VISITOR, "x-svc-visitor-origin": origin})
            assert_error(
                response, 422, "invalid_visitor_metadata", ("x-svc-visitor-origin", "invalid_origin", "header")
            )


@pytest.mark.parametrize("kind", ["proxy", "secret"])
async def test_a_user_agent_has_at_most_1024_bytes(live: Live, kind: str):
    """Decisions 2.9."""
    _, secret = live.issue(kind)
    assert (await forward(live, secret, {**VISITOR, "x-svc-visitor-user-agent": "x" * 1024})).status_code == 200
    with nothing_stored(live):
        response = await forward(live, secret, {**VISITOR, "x-svc-visitor-user-agent": "x" * 1025})
        assert_error(response, 422, "invalid_visitor_metadata", ("x-svc-visitor-user-agent", "too_long", "header"))


async def test_visitor_headers_are_ignored_with_a_public_key(live: Live, key: str):
    """Decisions 2.9: "from any other key these headers are ignored", malformed ones too."""
    wrong = {"x-svc-visitor-ip": "nonsense", "x-svc-visitor-origin": "nonsense", "x-svc-visitor-user-agent": "x" * 2000}
    for headers in ({**EVERYTHING, "x-svc-visitor-ip": "9.9.9.9"}, wrong, {"x-svc-public-key": "nonsense"}):
        assert (await visit(live, key, headers=headers)).status_code == 200
    for _, event in live.events():
        assert (event.ip_address, event.origin, event.agent) == (PUBLIC_ADDRESS, ORIGIN, "Chrome")
    with nothing_stored(live):
        assert_error(await visit(live, key, origin="https://other.example", headers=EVERYTHING), 401, "unauthorized")


async def test_a_server_that_forwards_nothing_is_itself_the_visitor(live: Live, server_key: str):
    """Interface 5: a secret key is accepted on identify from a server."""
    assert (await forward(live, server_key, BROWSER)).status_code == 200
    ((_, event),) = live.events()
    assert (event.ip_address, event.origin, event.agent) == (PUBLIC_ADDRESS, None, "Chrome")


async def test_a_forwarded_public_key_brings_its_origins(live: Live):
    """Decisions 2.9: that key's origins apply, to the visitor's origin, and the event is that key's."""
    _, proxy = live.issue("proxy", "production")
    key, public = live.issue("public", "production")
    headers = {**EVERYTHING, "x-svc-public-key": public}
    assert (await forward(live, proxy, headers)).status_code == 200
    ((_, event),) = live.events()
    assert (event.key_id, event.origin) == (key.id, ORIGIN)
    with nothing_stored(live):
        response = await forward(live, proxy, {**headers, "x-svc-visitor-origin": "https://other.example"})
        assert_error(response, 401, "unauthorized")
        assert_error(await forward(live, proxy, {**VISITOR, "x-svc-public-key": public}), 401, "unauthorized")


@pytest.mark.slow(0.2)
async def test_a_forwarded_public_key_is_in_use(live: Live, management: str, public: str):
    """Decisions 2.3, 2.9: its `last_used_at` says so, else its owner would revoke it as unused."""
    _, proxy = live.issue("proxy", "production")
    path = f"/api/v1/management/organizations/{live.organization.id}/sdk-keys"
    for seconds, noted_s in ((0, 0), (59, 0), (1, 60)):
        live.clock.advance(seconds=seconds)
        assert (await forward(live, proxy, {**EVERYTHING, "x-svc-public-key": public})).status_code == 200
        (row,) = (await live.client.get(path, headers={"x-api-key": management})).json()["keys"]
        assert row["last_used_at"] == timestamp(EPOCH_MS + 1000 * noted_s)


async def test_a_forwarded_public_key_brings_its_platforms(live: Live):
    """Decisions 2.9."""
    _, proxy = live.issue("proxy", "production")
    _, public = live.issue("public", "production", platforms=("ios",), allowed_origins=())
    headers = {**VISITOR, "x-svc-public-key": public}
    assert (await forward(live, proxy, headers, sdk={"platform": "ios"})).status_code == 200
    assert (await forward(live, proxy, {**headers, "x-svc-sdk-platform": "ios"}, sdk={})).status_code == 200
    with nothing_stored(live):
        for platform in ("web", "android"):
            assert_error(await forward(live, proxy, headers, sdk={"platform": platform}), 401, "unauthorized")


async def test_a_forwarded_public_key_must_match_the_key_of_the_proxy(live: Live):
    """Decisions 2.9: same organization, region and environment, else `401`; and it must be a usable public key."""
    _, proxy = live.issue("proxy", "production")
    other = live.new_organization()
    revoked, revoked_secret = live.issue("public", "production")
    live.revoke(revoked)
    refused = {
        "another organization": live.issue("public", "production", organization=other.number)[1],
        "another environment": live.issue("public", "staging")[1],
        "another region": live.issue("public", "production", region="eu")[1],
        "expired": live.issue("public", "production", expires_at_ms=live.clock.now_ms)[1],
        "revoked": revoked_secret,
        "a secret key": live.issue("secret", "production")[1],
        "a proxy key": proxy,
        "nonsense": "nonsense",
        "empty": "",
    }
    with nothing_stored(live):
        for why, public in refused.items():
            response = await forward(live, proxy, {**EVERYTHING, "x-svc-public-key": public})
            assert response.status_code == 401, why
            assert_error(response, 401, "unauthorized")


async def test_a_public_key_is_not_a_proxy_key(live: Live, proxy: str, key: str):
    """Decisions 2.9: the proxy key stands in `x-api-key`, the public key beside it; never the other way round."""
    with nothing_stored(live):
        assert_error(await forward(live, key, {**EVERYTHING, "x-svc-public-key": proxy}), 401, "unauthorized")


@pytest.mark.served(trusted_proxies=())
async def test_the_address_is_that_of_the_peer_unless_the_peer_is_trusted(live: Live, key: str):
    """Decisions 2.10: `trusted_proxies` is empty by default, and then nobody is believed."""
    answer = (await visit(live, key)).json()
    assert (answer["state"], answer["reason"]) == ("unavailable", "private_address")
    ((_, event),) = live.events()
    assert event.ip_address == "127.0.0.1"


@pytest.mark.served(trusted_proxies=("127.0.0.1/32", "10.0.0.0/8"))
async def test_the_rightmost_untrusted_address_is_that_of_the_visitor(live: Live, key: str):
    """Decisions 2.10: "never the left-most", which anybody can write."""
    for forwarded_for, address in (
        ("81.2.69.160", "81.2.69.160"),
        ("9.9.9.9, 81.2.69.160", "81.2.69.160"),
        ("9.9.9.9,81.2.69.160", "81.2.69.160"),
        ("9.9.9.9, 81.2.69.160, 10.0.0.7", "81.2.69.160"),
        ("9.9.9.9, 81.2.69.160, 10.0.0.7, 10.1.2.3, 127.0.0.1", "81.2.69.160"),
        ("10.0.0.7, 81.2.69.160, 127.0.0.1", "81.2.69.160"),
        ("nonsense, 81.2.69.160", "81.2.69.160"),
        ("2a02:c7c::1", "2a02:c7c::1"),
        ("::ffff:81.2.69.160", "81.2.69.160"),
        ("81.2.69.160, ::ffff:10.0.0.7", "81.2.69.160"),
    ):
        await visit(live, key, headers={"x-forwarded-for": forwarded_for})
        *_, (_, event) = live.events()
        assert event.ip_address == address


async def test_several_forwarding_headers_are_one_list(live: Live, key: str):
    """Decisions 2.10: each proxy may have added a header of its own."""
    lines = [
        ("x-api-key", key),
        ("origin", ORIGIN),
        ("x-forwarded-for", "9.9.9.9"),
        ("x-forwarded-for", "81.2.69.160"),
    ]
    assert (await live.client.post("/api/v1/identify", json={"sdk": {}, "signals": {}}, headers=lines)).is_success
    ((_, event),) = live.events()
    assert event.ip_address == "81.2.69.160"


async def test_an_invalid_address_is_not_trusted(live: Live, key: str):
    """Decisions 2.10: the nearest address that is known counts, and nothing left of the nonsense."""
    for forwarded_for in ("81.2.69.160, nonsense", "", "unknown", ", ,"):
        assert (await visit(live, key, headers={"x-forwarded-for": forwarded_for})).status_code == 200
    assert [event.ip_address for _, event in live.events()] == ["127.0.0.1"] * 4


@pytest.mark.parametrize("forwarded_for", ["81.2.69.160,", "81.2.69.160, ,", ", 81.2.69.160", "9.9.9.9,,81.2.69.160 ,"])
async def test_empty_elements_of_a_list_of_addresses_count_for_nothing(live: Live, key: str, forwarded_for: str):
    """Decisions 2.10, RFC 9110, 5.6.1.2: the right-most address is that of the visitor, and no empty element is one."""
    assert (await visit(live, key, headers={"x-forwarded-for": forwarded_for})).status_code == 200
    ((_, event),) = live.events()
    assert event.ip_address == "81.2.69.160"


@pytest.mark.parametrize(
    ("trusted", "seen", "fires"),
    [
        (("127.0.0.1/32",), "Linux 3.11 and newer", True),
        (("127.0.0.1/32",), "Windows NT kernel", False),
        (("127.0.0.1/32",), "???", False),
        (("10.0.0.0/8",), "Linux 3.11 and newer", False),
    ],
)
async def test_connection_details_are_accepted_only_from_trusted_proxies(
    directory: Path, trusted: tuple[str, ...], seen: str, *, fires: bool
):
    """Signals 2, `vpn_os_mismatch`: the edge's word against the user agent's."""
    async with live_service(directory, trusted_proxies=trusted, connection_os_header="x-connection-os") as live:
        _, key = live.issue(allowed_origins=(ORIGIN,))
        headers = {"user-agent": USER_AGENT, "x-forwarded-for": PUBLIC_ADDRESS, "x-connection-os": seen}
        answer = (await live.identify(key, {"timezone": "UTC"}, headers=headers)).json()
    assert "Windows" in USER_AGENT
    assert ("vpn_os_mismatch" in {trigger["signal"] for trigger in answer.get("triggers", ())}) == fires
