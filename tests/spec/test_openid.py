"""Decisions 15.4: signing in by an OpenID provider, and what a provider, a page or a thief may try."""

from __future__ import annotations

import base64
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import httpx
import pytest
import trio
from structlog.testing import capture_logs

from svc.features.members.sign_in import openid_routes as by_openid
from svc.features.members.sign_in import provider
from svc.features.members.sign_in.openid import ATTEMPT_MS, LEEWAY_MS, LONGEST_PAGE, role_of
from svc.features.organizations.command import create_organization
from svc.kernel.access.members import read_roles
from svc.kernel.access.tables import INVITATIONS, MEMBERS, SESSIONS
from svc.kernel.config import Config, ConfigError
from svc.kernel.values.ids import DAY_MS
from svc.serve.service_parts import openid_provider
from svc.world import World
from tests.spec.console_browser import API, SESSION, Browser, rows, signed_in
from tests.spec.people import add_member
from tests.spec.responses import assert_error, assert_invalid, nothing_stored
from tests.spec.test_audit import records
from tests.spec.test_clocks import set_back
from tests.support.live import Live, live_service, mistyped, opened
from tests.support.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    OddProvider,
    by_secret,
    by_strange_key,
    key,
    odd_provider,
    unsigned,
    with_own_key,
)
from tests.support.worlds import EPOCH_MS, SettableClock, settable_world

BEGIN, CALLBACK = "/console/oidc", "/console/oidc/callback"
ROLES = ("svc-admins=admin", "fraud=analyst", "staff=viewer")


class Scene(NamedTuple):
    """A service whose members come in by a provider."""

    live: Live
    provider: OddProvider

    async def begin(self, browser: Browser) -> tuple[str, str]:
        """Where the browser is sent, and the cookie that it keeps."""
        response = await browser("GET", BEGIN)
        assert response.status_code == 303, response.text
        return response.headers["location"], kept(response)

    async def end(self, browser: Browser, cookie: str | None, **parameters: str) -> httpx.Response:
        """The browser comes back, as a navigation from another site."""
        self.live.clock.advance(seconds=1)
        changed = {} if cookie is None else {"cookie": cookie}
        before, browser.cookie = browser.cookie, None
        response = await browser("GET", f"{CALLBACK}?{urlencode(parameters)}", sec_fetch_site="cross-site", **changed)
        browser.cookie = browser.cookie or before
        return response

    async def sign_in(self, browser: Browser | None = None) -> tuple[Browser, httpx.Response]:
        browser = browser or Browser(self.live, https=True)
        location, cookie = await self.begin(browser)
        return browser, await self.end(browser, cookie, **self.provider.authorized(location))


def kept(response: httpx.Response) -> str:
    """`name=value` of the one cookie that a response sets."""
    (header,) = response.headers.get_list("set-cookie")
    ((name, morsel),) = SimpleCookie(header).items()
    return f"{name}={morsel.value}"


def outcome(response: httpx.Response) -> str:
    """What the page is told; empty where the browser is in."""
    assert response.status_code == 303, response.text
    where, _, said = response.headers["location"].partition("#")
    assert where == "/console"
    assert ("set-cookie" in response.headers) is (said == "")
    return said.removeprefix("openid=")


def settings(issuer: str, secret_file: Path, organization_id: str, claim: str = "groups") -> dict[str, Any]:
    return {
        "console_oidc_issuer": issuer,
        "console_oidc_client_id": CLIENT_ID,
        "console_oidc_client_secret_file": str(secret_file),
        "console_oidc_organization": organization_id,
        "console_oidc_role_claim": claim,
        "console_oidc_roles": ROLES,
    }


@asynccontextmanager
async def service(directory: Path, issuer: str, claim: str = "groups", now_ms: int = EPOCH_MS) -> AsyncGenerator[Live]:
    """A service with a provider: its organization is there before it starts."""
    secret_file = directory / "secret"
    secret_file.write_text(CLIENT_SECRET + "\n")
    world = settable_world(SettableClock(now_ms))
    found = opened(directory / "data", world)
    try:
        organization = create_organization(found, world, "shop", credit=10_000_000, rate_limit=0)
    finally:
        found.store.close()
    given = settings(issuer, secret_file, organization.id, claim)
    async with live_service(directory / "data", now_ms=now_ms, **given) as live:
        live.organization = organization
        yield live


@pytest.fixture
async def scene(directory: Path) -> AsyncGenerator[Scene]:
    clock: list[Live] = []
    with odd_provider(lambda: clock[0].clock.now_ms) as provider:
        async with service(directory, provider.url) as live:
            clock.append(live)
            yield Scene(live, provider)


@pytest.fixture
def browser(scene: Scene) -> Browser:
    return Browser(scene.live, https=True)


@pytest.mark.filterwarnings("ignore:get_jwt_config:DeprecationWarning", "ignore:authlib.jose:DeprecationWarning")
@pytest.mark.slow(0.4)
async def test_the_real_provider_lets_a_person_in_with_the_role_that_it_names(directory: Path):
    """oidc-provider-mock, which others test their clients with: real time, and code by code."""
    import oidc_provider_mock  # takes long to import, in each process

    with oidc_provider_mock.run_server_in_thread() as server:
        issuer = f"http://localhost:{server.server_port}"
        async with (
            httpx.AsyncClient(trust_env=False) as person,
            service(directory, issuer, "realm_access.roles", World.real().now_ms()) as live,
        ):
            claims = {"email": "ada@shop.example", "name": "Ada", "realm_access": {"roles": ["x", "fraud"]}}
            await person.put(f"{issuer}/users/ada", json=claims)
            browser = Browser(live, https=True)
            first = await browser("GET", BEGIN)
            location = first.headers["location"]
            sent = await person.post(location, data={"sub": "ada"})
            back = urlsplit(sent.headers["location"])
            assert f"{back.scheme}://{back.netloc}{back.path}" == f"https://svc.example{CALLBACK}"
            cookie = kept(first)
            response = await browser("GET", f"{CALLBACK}?{back.query}", sec_fetch_site="cross-site", cookie=cookie)
            assert outcome(response) == ""
            session = (await browser("GET", SESSION)).json()
            assert (session["role"], session["member"]["email"], session["member"]["name"]) == (
                "analyst", "ada@shop.example", "Ada",
            )  # fmt: skip
            with nothing_stored(live):
                again = await browser("GET", f"{CALLBACK}?{back.query}", sec_fetch_site="cross-site", cookie=cookie)
                assert outcome(again) == "refused"


async def test_a_browser_is_led_to_the_provider_with_pkce_state_and_nonce(scene: Scene, browser: Browser):
    response = await browser("GET", BEGIN)
    url = urlsplit(response.headers["location"])
    asked = parse_qs(url.query)
    assert f"{url.scheme}://{url.netloc}{url.path}" == f"{scene.provider.url}/authorize"
    assert asked.pop("redirect_uri") == [f"https://svc.example{CALLBACK}"]
    assert (asked.pop("response_type"), asked.pop("client_id"), asked.pop("scope")) == (
        ["code"], [CLIENT_ID], ["openid email profile"],
    )  # fmt: skip
    assert asked.pop("code_challenge_method") == ["S256"]
    assert {name: len(values[0]) for name, values in asked.items()} == {"state": 43, "nonce": 43, "code_challenge": 43}
    attributes = response.headers["set-cookie"].partition("; ")[2]
    assert attributes == "Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=600"
    assert kept(response).startswith("__Host-svc-openid-")
    again = parse_qs(urlsplit((await browser("GET", BEGIN)).headers["location"]).query)
    assert all(again[name] != values for name, values in asked.items()), "each attempt has its own"


async def test_who_has_a_mapped_role_comes_in_and_is_a_member_from_then_on(scene: Scene):
    browser, response = await scene.sign_in()
    assert outcome(response) == ""
    assert response.headers["set-cookie"].endswith("; SameSite=Strict")
    session = (await browser("GET", SESSION)).json()
    assert (session["role"], session["member"]["email"]) == ("admin", "ada@shop.example"), "the strongest that is named"
    members = (await browser("GET", f"{API}/management/organizations/{scene.live.organization.id}/members")).json()
    (member,) = members["members"]
    assert (member["status"], member["has_provider"], member["has_password"]) == ("active", True, False)
    record = records(scene.live)[0].record
    assert (record.action, record.actor.kind, record.actor.id) == ("endOpenId", "member", member["id"])
    assert record.change == {"email": "ada@shop.example", "role": "admin"}, "whom it made, and with which role"
    pair = base64.b64encode(f"{quote(CLIENT_ID, safe='')}:{quote(CLIENT_SECRET, safe='')}".encode()).decode()
    assert scene.provider.authorization == f"Basic {pair}", "RFC 6749, 2.3.1"


async def test_the_role_follows_the_provider_at_each_sign_in(scene: Scene):
    first, _ = await scene.sign_in()
    add_member(scene.live, "admin", status="active")
    scene.provider.claims = {"groups": "fraud"}
    second, response = await scene.sign_in()
    assert outcome(response) == ""
    roles = [(await browser("GET", SESSION)).json()["role"] for browser in (first, second)]
    assert roles == ["analyst", "analyst"]
    assert len(rows(scene.live, MEMBERS)) == 2
    await scene.sign_in()
    found = [match.record.change for match in records(scene.live)]
    assert found[:2] == [{}, {"role": "analyst"}], "the audit log says when a role is another one"


@pytest.mark.parametrize("others", [(), ("invited", "suspended")])
async def test_the_last_admin_stays_one_whatever_the_provider_says(scene: Scene, others: tuple[str, ...]):
    """15.2: no act of a member leaves an organization without an active admin; log and audit say so."""
    first, _ = await scene.sign_in()
    for status in others:
        add_member(scene.live, "admin", status=status)
    scene.provider.claims = {"groups": "staff"}
    with capture_logs() as logged:
        second, response = await scene.sign_in()
    assert outcome(response) == ""
    roles = [(await browser("GET", SESSION)).json()["role"] for browser in (first, second)]
    assert roles == ["admin", "admin"]
    kept = {"kept_role": "admin", "mapped_role": "viewer"}
    assert records(scene.live)[0].record.change == kept
    (line,) = [line for line in logged if line["event"] == "sign-in by OpenID keeps the role of the last admin"]
    assert kept.items() <= line.items()
    add_member(scene.live, "admin", status="active")
    third, _ = await scene.sign_in()
    assert (await third("GET", SESSION)).json()["role"] == "viewer", "there is another one now"
    assert records(scene.live)[0].record.change == {"role": "viewer"}


@pytest.mark.parametrize("groups", [None, [], ["others"], "svc-admin", {"svc-admins": True}, [["svc-admins"]], 7])
async def test_no_mapped_role_no_entry(scene: Scene, groups: Any):
    scene.provider.claims = {"groups": groups}
    with nothing_stored(scene.live):
        _, response = await scene.sign_in()
    assert outcome(response) == "no_role"
    assert rows(scene.live, SESSIONS) == rows(scene.live, MEMBERS) == []


WRONG: dict[str, Callable[[OddProvider], Any]] = {
    "another nonce": lambda it: it.claims.update(nonce="x" * 43),
    "no nonce": lambda it: it.claims.update(nonce=None),
    "another issuer": lambda it: it.claims.update(iss="https://other.example"),
    "the issuer with a slash": lambda it: it.claims.update(iss=it.url + "/"),
    "no issuer": lambda it: it.claims.update(iss=None),
    "another audience": lambda it: it.claims.update(aud="other"),
    "audiences without ours": lambda it: it.claims.update(aud=["other", "another"]),
    "audiences without azp": lambda it: it.claims.update(aud=[CLIENT_ID, "other"]),
    "of another party": lambda it: it.claims.update(aud=[CLIENT_ID, "other"], azp="other"),
    "no audience": lambda it: it.claims.update(aud=None),
    "over": lambda it: it.claims.update(exp=it.now_ms() // 1000 - 61),
    "no end": lambda it: it.claims.update(exp=None),
    "an end that is not a number": lambda it: it.claims.update(exp="tomorrow"),
    "issued in the future": lambda it: it.claims.update(iat=it.now_ms() // 1000 + 120),
    "issued long ago": lambda it: it.claims.update(iat=it.now_ms() // 1000 - 90_000),
    "issued at no number": lambda it: it.claims.update(iat="now"),
    "not valid yet": lambda it: it.claims.update(nbf=it.now_ms() // 1000 + 120),
    "of nobody": lambda it: it.claims.update(sub=None),
    "of an empty name": lambda it: it.claims.update(sub=""),
    "of a number": lambda it: it.claims.update(sub=7),
    "of a long subject": lambda it: it.claims.update(sub="x" * 256),
    "of no address": lambda it: it.claims.update(email=None),
    "of what is no address": lambda it: it.claims.update(email="ada"),
    "a hash of another access token": lambda it: it.claims.update(at_hash="AAAAAAAAAAAAAAAAAAAAAA"),
    "alg none": lambda it: setattr(it, "sign", unsigned),
    "HMAC by the secret": lambda it: setattr(it, "sign", by_secret(CLIENT_SECRET.encode())),
    "HMAC by the public key": lambda it: setattr(it, "sign", by_secret(key(0).as_pem(private=False))),
    "a key of the same name": lambda it: setattr(it, "sign", by_strange_key),
    "its own key": lambda it: setattr(it, "sign", with_own_key),
    "no token": lambda it: setattr(it, "sign", lambda _: ""),
    "no JWT": lambda it: setattr(it, "sign", lambda _: "a.b"),
    "a long token": lambda it: it.claims.update(filler="x" * 70_000),
}


@pytest.mark.parametrize("fault", WRONG)
async def test_a_token_that_does_not_hold_lets_nobody_in(scene: Scene, fault: str):
    WRONG[fault](scene.provider)
    with nothing_stored(scene.live):
        _, response = await scene.sign_in()
    assert outcome(response) == "refused"
    assert rows(scene.live, SESSIONS) == rows(scene.live, MEMBERS) == []


async def test_a_token_for_several_audiences_holds_where_it_names_us_as_the_party(scene: Scene):
    scene.provider.claims = {"aud": [CLIENT_ID, "other"], "azp": CLIENT_ID}
    _, response = await scene.sign_in()
    assert outcome(response) == ""


async def test_a_response_is_used_once(scene: Scene, browser: Browser):
    """Also where the provider takes a code twice, and by a thief who has the cookie."""
    scene.provider.is_lax = True
    location, cookie = await scene.begin(browser)
    response = scene.provider.authorized(location)
    assert outcome(await scene.end(browser, cookie, **response)) == ""
    with nothing_stored(scene.live):
        assert outcome(await scene.end(Browser(scene.live, https=True), cookie, **response)) == "refused"
    assert len(rows(scene.live, SESSIONS)) == 1


async def test_a_response_belongs_to_the_browser_that_asked(scene: Scene):
    """Login CSRF: the attacker's response in the victim's browser, with its own attempt, none, or a made-up one."""
    attacker, victim = Browser(scene.live, https=True), Browser(scene.live, https=True)
    location, cookie = await scene.begin(attacker)
    response = scene.provider.authorized(location)
    _, own = await scene.begin(victim)
    name, _, value = cookie.partition("=")
    with nothing_stored(scene.live):
        others = [f"{name}={made_up}" for made_up in ("", mistyped(value), "A" * len(value))]
        others += [own, f"{name}={own.partition('=')[2]}"]
        for planted in (None, *others):
            said = outcome(await scene.end(victim, planted, **response))
            assert said == ("refused" if planted == others[-1] else "expired")
    asked = [path for path, _ in scene.provider.asked]
    assert "/token" not in asked, "the code is not spent"


async def test_an_attempt_is_over_after_ten_minutes(scene: Scene, browser: Browser):
    location, cookie = await scene.begin(browser)
    response = scene.provider.authorized(location)
    scene.live.clock.advance(seconds=(ATTEMPT_MS + LEEWAY_MS) / 1000 - 1)
    with nothing_stored(scene.live):
        assert outcome(await scene.end(browser, cookie, **response)) == "expired"


@pytest.mark.parametrize(("behind_ms", "said"), [(1_300, ""), (LEEWAY_MS, ""), (LEEWAY_MS + 1, "expired")])
async def test_another_node_that_is_a_little_behind_ends_an_attempt(scene: Scene, behind_ms: int, said: str):
    """15.4: a minute of leeway between nodes; the provider, which knows the browser, sends it back at once."""
    browser = Browser(scene.live, https=True)
    location, cookie = await scene.begin(browser)
    response = scene.provider.authorized(location)
    scene.live.clock.now_ms -= behind_ms + 1_000  # coming back takes a second
    assert outcome(await scene.end(browser, cookie, **response)) == said


async def test_an_attempt_of_a_clock_that_was_a_year_ahead_keeps_nobody_out(scene: Scene):
    """17.3: later attempts are earlier than that one."""
    now_ms = scene.live.clock.now_ms
    scene.live.clock.now_ms += 365 * DAY_MS
    await scene.sign_in()
    await set_back(scene.live, now_ms + 60_000)
    _, response = await scene.sign_in()
    assert outcome(response) == ""


@pytest.mark.parametrize("changed", [{"state": "x" * 43}, {"state": ""}, {"code": ""}, {"code": "other"}])
async def test_a_response_with_another_state_or_code_lets_nobody_in(scene: Scene, changed: dict[str, str]):
    said = "expired" if "state" in changed else "refused"
    browser = Browser(scene.live, https=True)
    location, cookie = await scene.begin(browser)
    with nothing_stored(scene.live):
        response = await scene.end(browser, cookie, **scene.provider.authorized(location) | changed)
    assert outcome(response) == said


async def test_15_4_two_tabs_sign_in_at_once_and_a_page_fetched_ahead_ends_nothing(scene: Scene, browser: Browser):
    """Each attempt has a cookie of its own, and each counts once, in whichever order they end."""
    attempts = [await scene.begin(browser) for _ in range(3)]
    cookies = "; ".join(cookie for _, cookie in attempts)
    for location, _ in reversed(attempts[:2]):
        assert outcome(await scene.end(browser, cookies, **scene.provider.authorized(location))) == ""
    scene.provider.is_lax = True
    for location, _ in attempts[:2]:
        again = await scene.end(browser, cookies, **scene.provider.authorized(location))
        assert outcome(again) == "refused"


async def test_a_member_signs_in_so_many_times_in_the_life_of_an_attempt_at_most(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(by_openid, "MAX_ATTEMPTS", 3)
    said = [outcome((await scene.sign_in())[1]) for _ in range(4)]
    assert said == ["", "", "", "refused"]
    scene.live.clock.advance(seconds=(ATTEMPT_MS + LEEWAY_MS) / 1000)
    assert outcome((await scene.sign_in())[1]) == ""


@pytest.mark.parametrize(
    "page",
    [
        *("/console#/events?action=sign_up", "/console#/visitor/Abc%2Fd", "/console", "/console/x-1#/live"),
        "/console#/view/view_0qppzPLvL54VURDkQrfS",
    ],
)
async def test_15_4_the_page_that_was_asked_for_is_shown_after_signing_in(scene: Scene, browser: Browser, page: str):
    response = await browser("GET", f"{BEGIN}?{urlencode({'next': page})}")
    back = scene.provider.authorized(response.headers["location"])
    came = await scene.end(browser, kept(response), **back)
    assert (came.status_code, came.headers["location"]) == (303, page)


@pytest.mark.parametrize(
    "page",
    [
        *("", "/", "/consoles", "//evil.example", "/console/../x", "/console//evil", "https://evil.example/console"),
        *("/console\\@evil", "/console#a b", "/console#\n", "/console#é", "/console?x=1", "/console#" + "x" * 512),
    ],
)
async def test_15_4_no_other_page_is_led_to(scene: Scene, page: str):
    response = await Browser(scene.live, https=True)("GET", f"{BEGIN}?{urlencode({'next': page})}")
    issue = "too_long" if len(page) > LONGEST_PAGE else "invalid_value"
    assert_invalid(response, "next", issue, "query")
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    ("claim", "claims", "role"),
    [
        ("a.b", {"a": {"b": "fraud"}}, "analyst"),
        ("a.b", {"a.b": "fraud", "a": {"b": "staff"}}, "analyst"),
        (
            "resource_access.svc.shop.example.roles",
            {"resource_access": {"svc.shop.example": {"roles": ["x", "fraud"]}}},
            "analyst",
        ),
        ("a.b.c", {"a.b": {"c": "fraud"}, "a": {"b": {"c": "staff"}}}, "analyst"),
        ("a.b.c", {"a.b": {"x": "fraud"}, "a": {"b": {"c": "fraud"}}}, None),
        ("a.b", {"a": "fraud"}, None),
        ("a", {"a": None}, None),
        ("a..b", {"a": {"": {"b": "fraud"}}}, "analyst"),
    ],
)
def test_15_4_a_role_claim_is_a_path_whose_names_may_have_dots(claim: str, claims: dict[str, Any], role: str | None):
    """The longest name that is there counts at each level, without a second try."""
    assert role_of(claims, claim, read_roles(ROLES)) == role


async def test_a_parameter_that_comes_twice_is_refused(scene: Scene, browser: Browser):
    location, cookie = await scene.begin(browser)
    query = urlencode(scene.provider.authorized(location))
    for twice in ("code=x", "state=x"):
        answer = await browser("GET", f"{CALLBACK}?{query}&{twice}", cookie=cookie)
        assert answer.status_code == 422


async def test_the_code_of_another_attempt_does_not_fit_the_verifier(scene: Scene):
    """A code that was stolen on its way is of no use in another browser (RFC 7636)."""
    victim, thief = Browser(scene.live, https=True), Browser(scene.live, https=True)
    location, _ = await scene.begin(victim)
    stolen = scene.provider.authorized(location)["code"]
    location, cookie = await scene.begin(thief)
    state = scene.provider.authorized(location)["state"]
    with nothing_stored(scene.live):
        assert outcome(await scene.end(thief, cookie, code=stolen, state=state)) == "refused"


@pytest.mark.parametrize("iss", ["https://other.example", ""])
async def test_a_response_of_another_issuer_is_refused(scene: Scene, browser: Browser, iss: str):
    """Mix-up (RFC 9207): the code is not sent to this provider."""
    location, cookie = await scene.begin(browser)
    response = await scene.end(browser, cookie, **scene.provider.authorized(location), iss=iss)
    assert outcome(response) == "refused"
    assert "/token" not in [path for path, _ in scene.provider.asked]


async def test_a_provider_that_always_names_its_issuer_must(scene: Scene, browser: Browser):
    scene.provider.metadata = {"authorization_response_iss_parameter_supported": True}
    _, response = await scene.sign_in()
    assert outcome(response) == "refused"
    location, cookie = await scene.begin(browser)
    response = await scene.end(browser, cookie, **scene.provider.authorized(location), iss=scene.provider.url)
    assert outcome(response) == ""


async def test_what_the_provider_refuses_is_refused(scene: Scene, browser: Browser):
    location, cookie = await scene.begin(browser)
    state = scene.provider.authorized(location)["state"]
    assert outcome(await scene.end(browser, cookie, state=state, error="access_denied")) == "refused"


async def test_an_attempt_is_good_for_the_host_where_it_began(scene: Scene):
    """`redirect_uri` follows from the host of the request, and the cookie is bound to it."""
    browser, local = Browser(scene.live, https=True), Browser(scene.live)
    location, cookie = await scene.begin(browser)
    response = scene.provider.authorized(location)
    with nothing_stored(scene.live):
        answer = await browser(
            "GET", f"{CALLBACK}?{urlencode(response)}", host="other.example", cookie=cookie, sec_fetch_site="cross-site"
        )
        assert outcome(answer) == "expired"
        renamed = cookie.replace("__Host-svc", "svc-console")
        assert outcome(await scene.end(local, renamed, **response)) == "expired"
    location, _ = await scene.begin(browser)
    assert "redirect_uri=https%3A%2F%2Fsvc.example%2Fconsole%2Foidc%2Fcallback" in location
    assert_invalid(
        await browser("GET", f"{BEGIN}?redirect_uri=https://other.example"), "redirect_uri", "unknown_field", "query"
    )


async def test_no_attempt_begins_over_an_insecure_connection_or_from_another_site(scene: Scene):
    browser = Browser(scene.live)
    assert_error(await browser("GET", BEGIN, host="svc.example"), 403, "secure_connection_required")
    assert_error(await browser("GET", BEGIN, sec_fetch_site="cross-site"), 403, "cross_origin_request")
    assert scene.provider.asked == []


async def test_who_comes_from_the_page_of_apps_of_the_provider_is_offered_to_sign_in(scene: Scene, browser: Browser):
    """OpenID Connect Core 1.0, section 4: a page, and not an error; but no other site begins an attempt."""
    hints = urlencode({"iss": scene.provider.url, "login_hint": "ada", "target_link_uri": "https://other.example"})
    for path in (BEGIN, f"{BEGIN}?{hints}"):
        answer = await browser("GET", path, sec_fetch_site="cross-site", sec_fetch_mode="navigate")
        assert outcome(answer) == "elsewhere"
        assert "set-cookie" not in answer.headers
    answer = await browser("GET", f"{CALLBACK}?code=x", sec_fetch_site="cross-site", sec_fetch_mode="navigate")
    assert outcome(answer) == "expired", "it did not even begin here"
    assert scene.provider.asked == []


PATHS = {"/.well-known/openid-configuration": "begin", "/token": "end", "/keys": "end"}
ANSWERS = {
    "an error": (500, {}, b"{}"),
    "another place": (302, {"Location": "http://127.0.0.1:9/"}, b""),
    "no JSON": (200, {}, b"<html>"),
    "a list": (200, {}, b"[]"),
    "deep JSON": (200, {}, b"[" * 100_000),
    "too much": (200, {}, b'{"a": "' + b"x" * provider.MAX_BYTES + b'"}'),
    "less than it says": (200, {"Content-Length": "100"}, b"{}"),
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("path", PATHS)
async def test_a_provider_that_answers_wrongly_lets_nobody_in(scene: Scene, browser: Browser, path: str, answer: str):
    scene.provider.answers[path] = ANSWERS[answer]
    with nothing_stored(scene.live):
        if PATHS[path] == "begin":
            response = await browser("GET", BEGIN)
        else:
            _, response = await scene.sign_in(browser)
    assert outcome(response) == "unavailable"
    scene.provider.answers.clear()
    _, response = await scene.sign_in(browser)
    assert outcome(response) == "", "nothing wrong is kept"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.slow(0.3)
async def test_a_provider_that_hangs_is_given_up(scene: Scene, path: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(provider, "LIMIT_S", 0.2)
    scene.provider.waits[path] = threading.Event()
    browser = Browser(scene.live, https=True)
    if PATHS[path] == "begin":
        response = await browser("GET", BEGIN)
    else:
        _, response = await scene.sign_in(browser)
    assert outcome(response) == "unavailable"


async def test_a_provider_that_hangs_holds_a_few_attempts_and_no_identification(scene: Scene):
    live = scene.live
    hanging = scene.provider.waits["/.well-known/openid-configuration"] = threading.Event()
    answers: list[str] = []

    async def begin(number: int) -> None:
        response = await Browser(live, https=True)("GET", BEGIN, x_forwarded_for=f"203.0.113.{number}")
        answers.append(response.headers["location"].partition("#")[2])
        if len(answers) == 1:
            _, public = live.issue()
            assert (await live.identify(public)).status_code == 200
            hanging.set()

    async with trio.open_nursery() as nursery:
        for number in range(provider.MAX_AT_ONCE + 1):
            nursery.start_soon(begin, number)
    assert answers[0] == "openid=unavailable"
    assert set(answers[1:]) == {""}


async def test_a_provider_that_calls_itself_otherwise_is_not_the_one(scene: Scene):
    for metadata in (
        {"issuer": "https://other.example"},
        {"issuer": scene.provider.url + "/"},
        {"token_endpoint": "http://other.example/token"},
        {"token_endpoint": "ftp://127.0.0.1/token"},
        {"jwks_uri": None},
        {"authorization_endpoint": "https://user:pass@other.example/"},
    ):
        scene.provider.metadata = metadata
        scene.live.clock.advance(seconds=1)
        assert outcome(await Browser(scene.live, https=True)("GET", BEGIN)) == "unavailable"


async def test_new_keys_of_the_provider_are_asked_for(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    _, response = await scene.sign_in()
    assert outcome(response) == ""
    scene.provider.keys, scene.provider.signing_key = [key(1)], key(1)
    _, response = await scene.sign_in()
    assert outcome(response) == "refused", "they are asked for once a minute at most"
    monkeypatch.setattr(provider, "KEYS_AGAIN_S", 0)
    _, response = await scene.sign_in()
    assert outcome(response) == ""


async def test_an_invited_member_is_known_by_an_address_that_the_provider_has_checked(scene: Scene):
    invited = add_member(scene.live, "viewer", email="ada@shop.example")
    add_member(scene.live, "viewer")
    scene.provider.claims = {"email_verified": False}
    by_name = {"email": None, "preferred_username": invited.email}  # `email_verified` is not about it
    for unproven in ({"email_verified": False}, {"email_verified": "true"}, {"email_verified": None}, by_name):
        scene.provider.claims = unproven
        with nothing_stored(scene.live):
            _, response = await scene.sign_in()
        assert outcome(response) == "refused", "an address that anybody may claim to have"
    scene.provider.claims = {}
    browser, response = await scene.sign_in()
    assert outcome(response) == ""
    session = (await browser("GET", SESSION)).json()
    assert (session["member"]["id"], session["role"]) == (invited.id, "admin")
    assert records(scene.live)[0].record.change == {"email": invited.email, "role": "admin"}, "by what it is this one"
    (left,) = rows(scene.live, INVITATIONS)
    assert left.member_id != invited.id, "nobody sets a password with the link that it did not need"
    scene.provider.claims = {"sub": "another"}
    _, response = await scene.sign_in()
    assert outcome(response) == "refused", "it is another person by now"


async def test_a_suspended_member_stays_out_and_a_removed_one_is_new(scene: Scene):
    admin = await signed_in(scene.live, https=True)
    browser, _ = await scene.sign_in()
    first = (await browser("GET", SESSION)).json()["member"]["id"]
    path = f"{API}/management/organizations/{scene.live.organization.id}/members/{first}"
    assert (await admin("PATCH", path, {"status": "suspended"})).status_code == 200
    _, response = await scene.sign_in()
    assert outcome(response) == "refused"
    assert (await admin("DELETE", path)).status_code == 204
    browser, response = await scene.sign_in()
    assert outcome(response) == ""
    assert (await browser("GET", SESSION)).json()["member"]["id"] != first


@pytest.mark.slow(0.2)
async def test_a_member_of_the_provider_has_no_password(scene: Scene):
    await scene.sign_in()
    for password in ("", "0" * 12):
        body = {"email": "ada@shop.example", "password": password}
        assert_error(await Browser(scene.live, https=True)("POST", SESSION, body), 401, "unauthorized")


async def test_without_a_provider_there_are_no_such_routes(live: Live):
    browser = Browser(live)
    for path in (BEGIN, CALLBACK):
        assert_error(await browser("GET", path), 404, "not_found")
    assert (await browser("GET", "/console/sign-in")).json() == {}


async def test_the_page_is_told_that_there_is_a_provider(scene: Scene):
    answer = await Browser(scene.live, https=True)("GET", "/console/sign-in")
    assert answer.json() == {"openid": {"issuer": scene.provider.url}}


@pytest.mark.parametrize(
    ("secret", "organization", "says"),
    [
        (None, None, "console_oidc_client_secret_file: cannot read"),
        (b"\n", None, "is empty"),
        (b"\xff", None, "is not text"),
        (b"x", "org_" + 20 * "a", "console_oidc_organization: the store has no organization"),
    ],
)
async def test_settings_that_cannot_be_used_are_refused_at_the_start(
    live: Live, tmp_path: Path, secret: bytes | None, organization: str | None, says: str
):
    file = tmp_path / "secret"
    if secret is not None:
        file.write_bytes(secret)
    given = settings("https://id.shop.example", file, organization or live.organization.id)
    with pytest.raises(ConfigError, match=says):
        openid_provider(Config(**given), live.found.store)
