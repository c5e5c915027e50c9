"""Decisions 9.3, ADR 38: who signs in to the console, what a session may do, and what ends it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc.features.erasure.organizations import remove_organization
from svc.kernel.access.sessions import IDLE_MS, MAX_LINKS, MAX_SESSIONS, SESSION_MS
from svc.kernel.access.tables import CONSOLE_LINKS, SESSIONS
from svc.kernel.tenants.queries import keys_of
from tests.spec.console_browser import API, PROXIED, SESSION, Browser, link, links, rows, sessions, signed_in
from tests.spec.responses import assert_error, assert_invalid, nothing_stored
from tests.spec.test_retention import swept
from tests.support.live import Live, live_service

OWN_KEY = API + "/management/key"
TOO_LATE = 10 * 60_000


def own(live: Live, path: str) -> str:
    return f"{API}/management/organizations/{live.organization.id}{path}"


async def assert_signed_out(browser: Browser) -> None:
    for path in (SESSION, OWN_KEY):
        message = assert_error(await browser("GET", path), 401, "unauthorized")
        assert "Sign in again" in message


@pytest.mark.parametrize("https", [False, True], ids=["on the machine", "over HTTPS"])
@pytest.mark.parametrize("means", ["link", "key"])
async def test_a_link_or_a_management_key_signs_in(live: Live, means: str, https: bool):
    key, secret = live.issue("management", role="developer", name="robot")
    browser = Browser(live, https=https)
    given = {"key": secret} if means == "key" else {"token": link(live, "developer")}
    response = await browser.sign_in(**given)
    body = response.json()
    assert body["organization"] == {"id": live.organization.id, "name": "shop"}
    assert (body["key"]["role"], body["region"], body["idle_minutes"]) == ("developer", "us", 30)
    assert (body["key"]["id"] == key.id) is (means == "key")
    assert body["key"]["name"] == ("robot" if means == "key" else "anna")
    assert response.headers["cache-control"] == "no-store"
    cookie = response.headers["set-cookie"].partition("=")[2].partition("; ")[2]
    assert cookie == "Path=/; HttpOnly; Secure; SameSite=Strict" if https else "Path=/; HttpOnly; SameSite=Strict"
    assert response.headers["set-cookie"].startswith(f"{browser.name}=svc_cs_")
    again = await browser("GET", SESSION)
    assert again.json() == body
    assert (await browser("GET", OWN_KEY)).json()["key_id"] == body["key"]["id"]


async def test_a_session_has_the_role_of_its_key(live: Live):
    issue = {"name": "b", "environment": "production", "kind": "secret"}
    admin, developer = await signed_in(live), await signed_in(live, "developer")
    assert (await admin("POST", own(live, "/sdk-keys"), issue)).status_code == 201
    assert (await admin("GET", own(live, "/proxy-credentials"))).status_code == 200
    assert (await developer("GET", own(live, "/sdk-keys"))).status_code == 200
    assert_error(await developer("GET", own(live, "/proxy-credentials")), 403, "insufficient_role")


async def test_objects_of_another_organization_are_not_found_by_a_session(live: Live):
    browser, other = await signed_in(live), live.new_organization()
    path = f"{API}/management/organizations/{other.id}/sdk-keys"
    assert_error(await browser("GET", path), 404, "not_found")
    theirs, _ = live.issue("public", organization=other.number)
    assert_error(await browser("POST", own(live, f"/sdk-keys/{theirs.id}/revoke")), 404, "not_found")


async def test_a_session_is_not_a_credential_outside_the_console(live: Live):
    browser = await signed_in(live)
    for path in ("/api/v1/management/key", "/api/v1/events"):
        assert_error(await browser("GET", path), 401, "unauthorized")


async def test_session_changes_and_sign_in_and_out_are_recorded_with_the_key(live: Live):
    from tests.spec.test_audit import records

    browser = Browser(live, https=True)
    session = (await browser.sign_in()).json()
    await browser(
        "POST", own(live, "/sdk-keys"), {"name": "b", "environment": "staging"}, x_forwarded_for="81.2.69.160"
    )
    await browser("DELETE", SESSION)
    out, issued, entered, made = [match.record for match in records(live)][:4]
    assert [each.action for each in (out, issued, entered)] == ["signOut", "issueSdkKey", "signIn"]
    assert {each.actor.id for each in (out, issued, entered)} == {session["key"]["id"]} == {made.subject}
    assert (issued.actor.name, issued.actor.role, issued.actor.place) == ("anna", "admin", "81.2.69.160")
    assert entered.change == {"token": "(withheld)"}


async def test_a_link_works_once(live: Live, browser: Browser):
    token = link(live)
    assert (await Browser(live).sign_in(token=token)).status_code == 200
    with nothing_stored(live):
        message = assert_error(await browser.sign_in(token=token), 401, "unauthorized")
    assert "svc console link" in message
    assert browser.cookie is None
    assert (sessions(live), links(live)) == (1, 0)


async def test_two_browsers_that_open_one_link_concurrently_are_not_both_signed_in(live: Live):
    import trio

    token, responses = link(live), list[httpx.Response]()

    async def open_link() -> None:
        responses.append(await Browser(live).sign_in(token=token))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(open_link)
    assert sorted(response.status_code for response in responses) == [200, 401, 401, 401]
    assert sessions(live) == 1


async def test_a_link_expires(live: Live):
    token = link(live, minutes=10)
    live.clock.now_ms += TOO_LATE - 1
    assert (await Browser(live).sign_in(token=token)).status_code == 200
    token = link(live, minutes=10)
    live.clock.now_ms += TOO_LATE
    with nothing_stored(live):
        assert_error(await Browser(live).sign_in(token=token), 401, "unauthorized")


async def test_a_link_with_a_revoked_key_does_not_sign_in(live: Live):
    token = link(live)
    with live.found.store.read() as snapshot:
        (key,) = keys_of(snapshot, live.organization.number)
    live.revoke(key)
    assert_error(await Browser(live).sign_in(token=token), 401, "unauthorized")


@pytest.mark.parametrize(
    "wrong",
    [
        {"token": ""},
        {"token": "svc_cl_" + "a" * 43 + "_" + "b" * 20},
        {"key": "svc_mk_us_nothing"},
        {"key": ""},
    ],
)
async def test_an_invalid_credential_does_not_sign_in(live: Live, wrong: dict[str, str]):
    with nothing_stored(live):
        assert_error(await Browser(live).sign_in(**wrong), 401, "unauthorized")


@pytest.mark.parametrize("kind", ["public", "secret", "proxy"])
async def test_a_key_of_another_kind_does_not_sign_in(live: Live, kind: str):
    _, secret = live.issue(kind)
    assert_error(await Browser(live).sign_in(key=secret), 401, "unauthorized")


@pytest.mark.parametrize("body", [{}, {"token": "x", "key": "y"}])
async def test_signing_in_takes_one_credential(live: Live, body: dict[str, str]):
    assert_invalid(await Browser(live)("POST", SESSION, body), "", "invalid_value")


@pytest.mark.parametrize("https", [False, True])
async def test_a_corrupt_session_is_signed_out_and_keeps_nobody_from_signing_in(live: Live, https: bool):
    browser = await signed_in(live, https=https)
    before = browser.cookie
    link(live)
    with live.corrupted(SESSIONS), live.corrupted(CONSOLE_LINKS):
        response = await browser("GET", own(live, "/sdk-keys"))
        assert "Sign in again" in assert_error(response, 401, "unauthorized")
        assert response.headers["set-cookie"].startswith(f"{browser.name}=; Path=/")
        assert response.headers["set-cookie"].endswith("Max-Age=0")
        assert browser.cookie is None
        assert live.service.services.corrupt.found == {"listSdkKeys": 1}
        browser.cookie = before
        assert (await browser.sign_in(token=link(live))).status_code == 200
        assert (await browser("GET", own(live, "/sdk-keys"))).status_code == 200


async def test_signing_out_ends_the_session_and_the_key_of_its_link(live: Live):
    browser = await signed_in(live)
    response = await browser("DELETE", SESSION)
    assert response.status_code == 204
    assert response.headers["set-cookie"] == "svc-console=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"
    assert sessions(live) == 0
    with live.found.store.read() as snapshot:
        (key,) = keys_of(snapshot, live.organization.number)
    assert key.status == "revoked"


async def test_a_signed_out_token_is_invalid(live: Live):
    browser = await signed_in(live)
    stolen = browser.cookie
    await browser("DELETE", SESSION)
    browser.cookie = stolen
    await assert_signed_out(browser)


async def test_signing_out_keeps_a_pasted_key(live: Live, browser: Browser):
    key, secret = live.issue("management")
    await browser.sign_in(key=secret)
    await browser("DELETE", SESSION)
    with live.found.store.read() as snapshot:
        assert [known.status for known in keys_of(snapshot, live.organization.number)] == ["active"]
    assert key.usable(live.clock.now_ms)


async def test_a_session_ends_when_its_key_is_revoked(live: Live, browser: Browser):
    key, secret = live.issue("management")
    await browser.sign_in(key=secret)
    live.revoke(key)
    await assert_signed_out(browser)


async def test_a_session_ends_when_its_key_expires(live: Live, browser: Browser):
    _, secret = live.issue("management", expires_at_ms=live.clock.now_ms + 5_000)
    await browser.sign_in(key=secret)
    live.clock.now_ms += 4_999
    assert (await browser("GET", SESSION)).status_code == 200
    live.clock.now_ms += 1
    await assert_signed_out(browser)


async def test_sessions_and_links_of_keys_of_another_region_are_refused(directory: Path):
    """Interface 5: a key used on another region's API is refused, also where it is a session's."""
    async with live_service(directory) as live:
        browser, token = await signed_in(live), link(live)
    async with live_service(directory, region="eu") as live:
        browser.live, browser.origin = live, live.url
        await assert_signed_out(browser)
        assert_error(await Browser(live).sign_in(token=token), 401, "unauthorized")


async def test_a_session_ends_after_half_an_hour_without_a_request(live: Live):
    browser = await signed_in(live)
    for _ in range(3):
        live.clock.now_ms += IDLE_MS - 60_000
        assert (await browser("GET", OWN_KEY)).status_code == 200
    live.clock.now_ms += IDLE_MS
    await assert_signed_out(browser)


async def test_the_last_use_of_a_session_is_written_once_a_minute(live: Live):
    browser = await signed_in(live)
    began = live.clock.now_ms
    for wait, noted in ((59_999, began), (1, began + 60_000), (59_999, began + 60_000)):
        live.clock.now_ms += wait
        await browser("GET", SESSION)
        (session,) = rows(live, SESSIONS)
        assert session.last_used_at_ms == noted


@pytest.mark.slow(0.2)
async def test_a_session_ends_after_twelve_hours_whatever_its_use(live: Live):
    browser = await signed_in(live)
    ends = live.clock.now_ms + SESSION_MS
    while live.clock.now_ms < ends:
        assert (await browser("GET", SESSION)).status_code == 200
        live.clock.now_ms += 20 * 60_000
    await assert_signed_out(browser)


async def test_a_session_ends_with_its_organization(live: Live):
    browser, number = await signed_in(live), live.organization.number
    link(live)
    live.found.store.write_now([partial(remove_organization, number=number, now_ms=live.clock.now_ms)])
    await assert_signed_out(browser)
    await swept(live, live.clock.now_ms)
    assert (rows(live, SESSIONS), rows(live, CONSOLE_LINKS)) == ([], [])


async def test_signing_in_issues_a_new_token_and_ends_the_previous_session_of_the_browser(live: Live, browser: Browser):
    """Session fixation: who planted a token in a browser, or knew it before, has nothing after the sign-in."""
    victim = await signed_in(live)
    planted = victim.cookie
    await victim.sign_in(token=link(live))
    assert victim.cookie != planted
    assert sessions(live) == 1
    browser.cookie = planted
    await assert_signed_out(browser)


async def test_a_token_not_issued_by_the_service_is_not_adopted_at_sign_in(live: Live, browser: Browser):
    browser.cookie = planted = "svc_cs_" + "a" * 43 + "_" + live.organization.id.removeprefix("org_")
    await browser.sign_in(token=link(live))
    assert browser.cookie != planted
    browser.cookie = planted
    await assert_signed_out(browser)


async def test_a_forged_token_is_refused(live: Live):
    browser, other = await signed_in(live), live.new_organization()
    assert browser.cookie is not None
    secret = browser.cookie.rpartition("_")[0]
    for forged in (
        browser.cookie[:-1] + ("0" if browser.cookie[-1] != "0" else "1"),
        browser.cookie.replace("svc_cs_", "svc_cl_"),
        secret + "_" + other.id.removeprefix("org_"),
        secret.swapcase() + browser.cookie[-21:],
        "",
        "x" * 5_000,
    ):
        browser.cookie = forged
        await assert_signed_out(browser)


async def test_a_link_is_not_a_session_and_a_session_is_not_a_link(live: Live, browser: Browser):
    browser.cookie = link(live)
    await assert_signed_out(browser)
    real = await signed_in(live)
    assert real.cookie is not None
    assert_error(await Browser(live).sign_in(token=real.cookie), 401, "unauthorized")


async def test_no_other_site_can_change_anything_with_a_session(live: Live):
    """CSRF: each header missing, and each wrong."""
    browser, token = await signed_in(live, https=True), link(live)
    for without, changed in (
        (("sec-fetch-site",), {}),
        (("origin",), {}),
        ((), {"sec_fetch_site": "same-site"}),
        ((), {"sec_fetch_site": "cross-site"}),
        ((), {"sec_fetch_site": "none"}),
        ((), {"origin": "null"}),
        ((), {"origin": "https://other.example"}),
        ((), {"origin": "http://svc.example"}),
        ((), {"origin": "https://svc.example:8443"}),
        ((), {"origin": "https://svc.example.other.example"}),
        ((), {"host": "other.example"}),
    ):
        with nothing_stored(live):
            for method, path, body in (
                ("POST", own(live, "/sdk-keys"), {"name": "x", "environment": "staging"}),
                ("PUT", own(live, "/risk-weights/web"), {}),
                ("PATCH", own(live, "/webhooks/whk_" + "0" * 20), {"paused": True}),
                ("DELETE", SESSION, None),
                ("POST", SESSION, {"token": token}),
            ):
                assert_error(await browser(method, path, body, without=without, **changed), 403, "cross_origin_request")
        assert (await browser("GET", SESSION)).status_code == 200


async def test_no_other_site_can_read_with_a_session(live: Live):
    browser = await signed_in(live, https=True)
    for changed, status in (
        ({"sec_fetch_site": "same-origin"}, 200),
        ({"sec_fetch_site": "none"}, 200),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"origin": "https://other.example"}, 403),
        ({"origin": "https://svc.example"}, 200),
    ):
        assert (await browser("GET", SESSION, **changed)).status_code == status
        assert (await browser("GET", OWN_KEY, without=("sec-fetch-site",))).status_code == 200


async def test_no_page_of_another_origin_gets_cors_permission(live: Live):
    browser = await signed_in(live)
    for method, path in (("OPTIONS", SESSION), ("OPTIONS", own(live, "/sdk-keys"))):
        response = await browser(method, path, origin="https://other.example")
        assert_error(response, 405, "method_not_allowed")
        assert not [name for name in response.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    "way",
    [
        {"host": "svc.example"},
        {"host": "192.168.1.20:8080"},
        {"host": "localhost.other.example"},
        {"host": "svc.example", "x-forwarded-proto": "http"},
        {"host": "svc.example", "x-forwarded-proto": "https, http"},
    ],
)
async def test_sign_in_over_plain_http_works_only_on_the_local_machine(live: Live, way: dict[str, str]):
    token, browser = link(live), Browser(live)
    browser.way, browser.origin = way, f"http://{way['host']}"
    with nothing_stored(live):
        message = assert_error(await browser.sign_in(token=token), 403, "secure_connection_required")
    assert "trusted_proxies" in message
    assert browser.cookie is None


@pytest.mark.served(trusted_proxies=("203.0.113.1/32",))
async def test_only_a_trusted_proxy_can_report_that_a_browser_used_https(live: Live):
    assert_error(await Browser(live, https=True).sign_in(token=link(live)), 403, "secure_connection_required")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
async def test_on_the_local_machine_its_host_names_are_accepted(live: Live, browser: Browser, host: str):
    browser.origin = f"http://{host.lower()}:{live.port}"
    browser.way = {"host": f"{host}:{live.port}"}
    assert (await browser.sign_in(token=link(live))).status_code == 200


@pytest.mark.parametrize("client", ["81.2.69.160", "192.168.1.20", "81.2.69.160, 127.0.0.1", "2001:db8::1"])
async def test_a_proxy_on_the_machine_does_not_make_its_clients_local(live: Live, client: str):
    """Plain HTTP all the way, and a proxy that passes on `Host: localhost`, which the client may have sent."""
    token, browser = link(live), Browser(live)
    with nothing_stored(live):
        response = await browser("POST", SESSION, {"token": token}, x_forwarded_for=client)
        assert_error(response, 403, "secure_connection_required")
    assert browser.cookie is None
    assert (await browser("POST", SESSION, {"token": token}, x_forwarded_for="127.0.0.1")).status_code == 200
    assert_error(await browser("GET", SESSION, x_forwarded_for=client), 401, "unauthorized")
    assert (await browser("GET", SESSION)).status_code == 200


async def test_a_session_over_https_is_invalid_over_http_and_vice_versa(live: Live):
    for https in (False, True):
        browser, other = await signed_in(live, https=https), Browser(live, https=not https)
        other.cookie = browser.cookie
        await assert_signed_out(other)
        other.name = browser.name
        await assert_signed_out(other)


async def test_a_duplicate_cookie_counts_as_none(live: Live):
    browser = await signed_in(live)
    cookie = f"svc-console={browser.cookie}"
    for header in (f"{cookie}; svc-console=x", f"svc-console=x; {cookie}", f"svc-console=; {cookie}"):
        assert_error(await browser("GET", SESSION, cookie=header), 401, "unauthorized")
    assert (await browser("GET", SESSION, cookie=f"a=b; {cookie}; c=d")).status_code == 200


async def test_a_management_key_is_accepted_by_the_console_but_not_from_a_page(live: Live, management: str):
    key = {"x-api-key": management}
    assert (await live.client.get(OWN_KEY, headers=key)).status_code == 200
    assert_error(await live.client.get(OWN_KEY, headers=key | {"origin": live.url}), 401, "unauthorized")
    assert_error(await live.client.get(SESSION, headers=key), 401, "unauthorized")
    assert_error(await live.client.delete(SESSION, headers=key), 401, "unauthorized")


async def test_a_key_takes_precedence_over_a_session_sent_with_it(live: Live):
    browser = await signed_in(live, "admin")
    _, developer = live.issue("management", role="developer")
    own_keys = own(live, "/proxy-credentials")
    assert (await browser("GET", own_keys)).status_code == 200
    assert_error(await browser("GET", own_keys, x_api_key=developer), 403, "insufficient_role")
    assert_error(await browser("GET", own_keys, x_api_key="svc_mk_us_x"), 401, "unauthorized")
    assert_error(await browser("GET", own_keys, x_api_key=""), 401, "unauthorized")
    response = await browser(
        "POST", own(live, "/sdk-keys"), {"name": "x", "environment": "staging"}, x_api_key=developer
    )
    assert_error(response, 401, "unauthorized")  # with the Origin of a page


@pytest.mark.slow
async def test_sign_in_attempts_from_one_address_are_limited(live: Live):
    async def attempt(address: str) -> int:
        browser = Browser(live, https=True)
        return (await browser("POST", SESSION, {"token": "x"}, x_forwarded_for=address)).status_code

    assert [await attempt("81.2.69.160") for _ in range(7)] == [401] * 5 + [429] * 2
    assert await attempt("81.2.69.161") == 401
    live.clock.now_ms += 1_000
    assert await attempt("81.2.69.160") == 401
    # one customer has a /48 of IPv6, and many addresses keep nobody else out
    site = [await attempt(f"2001:db8:7:{network:x}::1") for network in range(25)]
    assert site == [401] * 20 + [429] * 5
    assert await attempt("2001:db8:8::1") == 401
    for host in range(120):
        assert await attempt(f"198.51.100.{host}") == 401
    assert await attempt("81.2.69.162") == 401


@pytest.mark.slow
async def test_sessions_of_an_organization_are_limited_and_the_least_recently_used_ends(live: Live, management: str):
    first, second = Browser(live), Browser(live)
    for browser in (first, second):
        await browser.sign_in(key=management)
        live.clock.now_ms += 60_000
    await first("GET", SESSION)
    for _ in range(MAX_SESSIONS - 1):
        live.clock.now_ms += 1_000
        assert (await Browser(live).sign_in(key=management)).status_code == 200
    assert sessions(live) == MAX_SESSIONS
    await assert_signed_out(second)
    assert (await first("GET", SESSION)).status_code == 200


async def test_unused_links_do_not_accumulate(live: Live):
    def active() -> int:
        with live.found.store.read() as snapshot:
            return sum(key.usable(live.clock.now_ms) for key in keys_of(snapshot, live.organization.number))

    tokens = [link(live, minutes=20) for _ in range(MAX_LINKS + 1)]
    assert (links(live), active()) == (MAX_LINKS, MAX_LINKS)
    taken = [(await Browser(live).sign_in(token=token)).status_code for token in tokens]
    assert taken.count(200) == MAX_LINKS or taken.count(429) > 0
    live.clock.now_ms += 30 * 60_000
    link(live)
    assert links(live) == 1


async def test_retention_deletes_ended_sessions_with_the_keys_of_links(live: Live):
    await signed_in(live)
    link(live)
    live.clock.now_ms += IDLE_MS
    await swept(live, live.clock.now_ms)
    assert (sessions(live), links(live)) == (0, 0)
    with live.found.store.read() as snapshot:
        assert {key.status for key in keys_of(snapshot, live.organization.number)} == {"revoked"}


async def test_console_responses_are_not_cached_and_have_a_fixed_content_type(live: Live):
    browser = await signed_in(live)
    answers: list[Any] = [
        await browser("GET", OWN_KEY),
        await browser("GET", SESSION),
        await browser("GET", API + "/nowhere"),
        await browser("PUT", SESSION),
        await browser("DELETE", SESSION),
        await browser("GET", SESSION),
    ]
    assert [answer.headers["cache-control"] for answer in answers] == ["no-store"] * 6
    assert [answer.headers["x-content-type-options"] for answer in answers] == ["nosniff"] * 6
    elsewhere = await live.client.get("/api/v1/management/key")
    assert "x-content-type-options" not in elsewhere.headers


async def test_the_page_of_the_console_is_served_under_a_strict_policy(live: Live):
    page = await live.client.get("/console", headers={"accept": "text/html", **PROXIED})
    assert page.status_code in (200, 404)
    for name, part in (
        ("content-security-policy", "frame-ancestors 'none'"),
        ("cross-origin-opener-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
    ):
        assert part in page.headers[name]
    home = await live.client.get("/", headers={"accept": "text/html"})
    assert 'href="console"' in home.text
