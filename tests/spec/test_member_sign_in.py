"""Decisions 15.3: signing in by password and one-time code, and what somebody who has neither may learn or wear out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import trio

from svc.features.backup.restore import end_all
from svc.features.members.sign_in.entering import MAX_WAITING_PASSWORDS
from svc.features.members.sign_in.passwords import sign_in_key
from svc.features.members.sign_in.second_factor import STEP_S, code_at, code_secret
from svc.http.callers.limits import ACCOUNT_SIGN_INS
from svc.kernel.access.sessions import IDLE_MS
from svc.kernel.access.tables import INVITATIONS, MEMBERS, SESSIONS
from svc.world import Undisturbed, World
from tests.spec.automation import Automation
from tests.spec.console_browser import API, SESSION, Browser, link, rows, signed_in
from tests.spec.people import PASSWORD, add_member, came_in, invited, stored
from tests.spec.responses import assert_error, assert_invalid, nothing_stored
from tests.support.live import Live, live_service

T = TypeVar("T")
ADA = "ada@shop.example"
OFFER, CONFIRM = API + "/totp", API + "/totp/confirm"


def with_password(email: str = ADA, password: str = PASSWORD, **more: str) -> dict[str, str]:
    return {"email": email, "password": password, **more}


async def sign_in(live: Live, body: dict[str, str], browser: Browser | None = None) -> httpx.Response:
    """One attempt, a minute after the last one, so that no limit is in its way."""
    live.clock.advance(seconds=60)
    return await (browser or Browser(live))("POST", SESSION, body)


def code(live: Live, member_id: str, steps: int = 0) -> str:
    """What the member's authenticator shows, or showed so many steps ago."""
    member = stored(live, member_id)
    assert member is not None
    secret = code_secret(sign_in_key(live.found.pepper), member_id, member.offered_generation)
    return code_at(secret, live.clock.now_ms + 1000 * STEP_S * steps)


async def with_codes(live: Live) -> tuple[Browser, str]:
    """A member who signs in with codes, and its id."""
    browser = await came_in(live, email=ADA)
    member_id = (await browser("GET", SESSION)).json()["member"]["id"]
    await browser("POST", OFFER, {"password": PASSWORD})
    confirmed = await browser("POST", CONFIRM, {"code": code(live, member_id)})
    assert confirmed.status_code == 200, confirmed.text
    return browser, member_id


@pytest.mark.slow(0.2)
async def test_a_member_signs_in_by_address_and_password(live: Live):
    await came_in(live, "analyst", email=ADA)
    browser = Browser(live, https=True)
    response = await sign_in(live, with_password("  ADA@shop.example "), browser)
    assert response.status_code == 200
    assert response.headers["set-cookie"].endswith("; Path=/; HttpOnly; Secure; SameSite=Strict")
    assert response.json()["member"]["email"] == ADA
    assert (await browser("GET", SESSION)).json()["role"] == "analyst"


@pytest.mark.slow(0.8)
async def test_every_failure_gets_the_same_response_for_the_same_work(directory: Path):
    """Unknown address, wrong password, no code, a wrong one, one that was used, an invited member, a suspended one, one
    of a removed organization: one hash each, nothing written, one response.
    """
    hashed: list[object] = []

    async def run_sync(function: Callable[[], T], /, *, undisturbed: Undisturbed | None = None) -> T:
        if "password_hash" in repr(function):
            hashed.append(function)
        return await World.real().run_sync(function, undisturbed=undisturbed)

    async with live_service(directory, run_sync=run_sync) as live:
        _, member_id = await with_codes(live)
        add_member(live, email="invited@shop.example")
        await came_in(live, email="suspended@shop.example")
        admin = await signed_in(live)
        members = f"{API}/management/organizations/{live.organization.id}/members"
        (gone,) = [one["id"] for one in (await admin("GET", members)).json()["members"] if "suspended" in one["email"]]
        await admin("PATCH", f"{members}/{gone}", {"status": "suspended"})
        live.clock.advance(seconds=600)
        used = code(live, member_id)
        assert (await Browser(live)("POST", SESSION, with_password(totp=used))).status_code == 200
        attempts = {
            "unknown address": with_password("nobody@shop.example"),
            "not an address": with_password("nobody"),
            "wrong password": with_password(password="another password"),
            "wrong password, right code": with_password(password="another password", totp=code(live, member_id, 1)),
            "no code": with_password(),
            "empty code": with_password(totp=""),
            "wrong code": with_password(totp="000000"),
            "a code in other digits": with_password(totp="".join(chr(0xFF11 + digit) for digit in range(6))),
            "used code": with_password(totp=used),
            "invited": with_password("invited@shop.example"),
            "suspended": with_password("suspended@shop.example"),
            "another organization": with_password(organization_id=live.new_organization().id),
            "a long password": with_password(password="x" * 1024),
        }
        hashed.clear()
        answers: set[str] = set()
        for number, (name, body) in enumerate(attempts.items()):
            with nothing_stored(live):
                response = await Browser(live, https=True)("POST", SESSION, body, x_forwarded_for=f"203.0.113.{number}")
            assert response.status_code == 401, name
            assert "set-cookie" not in response.headers
            answers.add(json.dumps(response.json()["error"]) + str(sorted(response.headers)))
            assert len(hashed) == number + 1, name
        assert len(answers) == 1


@pytest.mark.slow(0.2)
async def test_nobody_but_the_browser_gets_the_password(live: Live, capsys: pytest.CaptureFixture[str]):
    await came_in(live, email=ADA)
    await sign_in(live, with_password())
    await sign_in(live, with_password(password=PASSWORD + "!"))
    said = capsys.readouterr()
    assert PASSWORD not in said.out + said.err
    assert PASSWORD.encode() not in live.stored_bytes()


@pytest.mark.slow(0.2)
async def test_the_same_password_of_two_members_is_stored_otherwise(live: Live):
    for _ in range(2):
        await came_in(live)
    first, second = rows(live, MEMBERS)
    assert first.password != second.password
    assert len(first.password) == 32


@pytest.mark.slow(0.2)
async def test_an_address_in_two_organizations_leads_to_the_one_whose_password_it_is(live: Live):
    other = live.new_organization("Another shop")
    await came_in(live, email=ADA)
    theirs = await came_in(live, "developer", email=ADA, organization=other)
    session = (await theirs("GET", SESSION)).json()
    assert session["organization"]["id"] == other.id
    latest = await sign_in(live, with_password())
    assert latest.json()["organization"]["id"] == other.id, "the same password: where it came in last"
    for named in (live.organization.id, live.organization.name, live.organization.name.upper()):
        live.clock.advance(seconds=60)
        response = await sign_in(live, with_password(organization_id=named))
        assert response.json()["organization"]["id"] == live.organization.id
        assert (await sign_in(live, with_password(organization_id=other.id))).status_code == 200
    member = f"/members/{session['member']['id']}"
    assert (await Automation(live, organization=other)("PATCH", member, {"status": "suspended"})).status_code == 200
    live.clock.advance(seconds=60)
    left = await sign_in(live, with_password())
    assert left.json()["organization"]["id"] == live.organization.id, "the other one has suspended this person"


async def test_one_way_in_is_named_and_whole(live: Live):
    for body in (
        {},
        {"email": ADA},
        {"password": PASSWORD},
        {"email": ADA, "password": PASSWORD, "key": "svc_mk_us_x"},
        {"email": ADA, "password": PASSWORD, "token": "svc_cl_x"},
        {"token": "x", "key": "y"},
        {"token": "x", "totp": "000000"},
        {"key": "x", "organization_id": "y"},
    ):
        live.clock.advance(seconds=1)  # one address may not try any number of times a second
        assert_invalid(await Browser(live)("POST", SESSION, body), "", "invalid_value")


@pytest.mark.slow(1.0)
async def test_attempts_with_one_address_are_limited_from_wherever_they_come(live: Live):
    await came_in(live, email=ADA)
    other = Browser(live, https=True)
    for email in (ADA, "nobody@shop.example"):
        for attempt in range(ACCOUNT_SIGN_INS + 2):
            body, place = with_password(email, "another password"), f"203.0.113.{attempt}"
            response = await other("POST", SESSION, body, x_forwarded_for=place)
            assert response.status_code == (401 if attempt < ACCOUNT_SIGN_INS else 429)
        assert response.headers["retry-after"] == "60"
        right = await other("POST", SESSION, with_password(email), x_forwarded_for="203.0.113.99")
        assert_error(right, 429, "rate_limited")
    live.clock.advance(seconds=61)
    right = await other("POST", SESSION, with_password(), x_forwarded_for="203.0.113.98")
    assert right.status_code == 200
    again = await other("POST", SESSION, with_password(), x_forwarded_for="203.0.113.97")
    assert again.status_code == 429, "one a minute"
    assert (await other("POST", SESSION, {"token": link(live)}, x_forwarded_for="203.0.113.96")).status_code == 200


@pytest.mark.slow(0.2)
async def test_attempts_from_one_address_are_limited_whomever_they_name(live: Live):
    statuses = [
        (await Browser(live)("POST", SESSION, with_password(f"a{number}@shop.example"))).status_code
        for number in range(8)
    ]
    assert statuses == [401] * 5 + [429] * 3
    for path, body in (("/console/invitations", {"token": "x", "password": PASSWORD}), (SESSION, with_password())):
        assert_error(await Browser(live)("POST", path, body), 429, "rate_limited")


@pytest.mark.slow(0.8)
async def test_a_flood_of_sign_ins_waits_its_turn_and_keeps_nobody_else_waiting(directory: Path):
    """One password is hashed at a time; identifications go on, and what would wait too long is told so."""
    running, most = 0, 0
    go_on = trio.Event()

    async def run_sync(function: Callable[[], T], /, *, undisturbed: Undisturbed | None = None) -> T:
        nonlocal running, most
        if "password_hash" not in repr(function):
            return await World.real().run_sync(function, undisturbed=undisturbed)
        running += 1
        most = max(most, running)
        await go_on.wait()
        running -= 1
        return function()

    async with live_service(directory, run_sync=run_sync) as live:
        _, public = live.issue()
        statuses: list[int] = []

        async def attempt(number: int) -> None:
            body = with_password(f"a{number}@shop.example")
            response = await Browser(live, https=True)("POST", SESSION, body, x_forwarded_for=f"203.0.113.{number}")
            statuses.append(response.status_code)
            if response.status_code == 503:
                assert (await live.identify(public)).status_code == 200
                go_on.set()

        async with trio.open_nursery() as nursery:
            for number in range(MAX_WAITING_PASSWORDS + 2):
                nursery.start_soon(attempt, number)
    assert most == 1
    assert sorted(set(statuses)) == [401, 503]


@pytest.mark.slow(0.3)
async def test_codes_are_set_up_by_a_secret_that_is_shown_once_and_stored_nowhere(live: Live):
    browser = await came_in(live, email=ADA)
    member_id = (await browser("GET", SESSION)).json()["member"]["id"]
    offered = (await browser("POST", OFFER, {"password": PASSWORD})).json()
    assert re.fullmatch(r"[A-Z2-7]{32}", offered["secret"])
    url = urlsplit(offered["url"])
    assert (url.scheme, url.netloc) == ("otpauth", "totp")
    assert parse_qs(url.query)["secret"] == [offered["secret"]]
    assert offered["secret"].encode() not in live.stored_bytes()
    assert (await sign_in(live, with_password())).status_code == 200, "of no effect before it is confirmed"
    assert_invalid(await browser("POST", CONFIRM, {"code": "000000"}), "code", "invalid_value")
    assert (await browser("POST", CONFIRM, {"code": code(live, member_id)})).status_code == 200
    assert (await browser("GET", SESSION)).json()["member"]["has_totp"] is True
    assert_error(await browser("POST", CONFIRM, {"code": code(live, member_id, 1)}), 404, "not_found")
    assert_error(await sign_in(live, with_password()), 401, "unauthorized")
    assert (await sign_in(live, with_password(totp=code(live, member_id, 2)))).status_code == 200


@pytest.mark.slow(0.3)
async def test_a_code_counts_once(live: Live):
    _, member_id = await with_codes(live)
    confirmed_with = code(live, member_id)
    assert_error(await Browser(live)("POST", SESSION, with_password(totp=confirmed_with)), 401, "unauthorized")
    live.clock.advance(seconds=120)
    shown = code(live, member_id)
    body = with_password(totp=shown)
    answers: list[int] = []

    async def attempt() -> None:
        answers.append((await Browser(live)("POST", SESSION, body)).status_code)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(attempt)
    assert sorted(answers) == [200, 401, 401]
    assert_error(await Browser(live)("POST", SESSION, body), 401, "unauthorized")


@pytest.mark.slow(0.3)
async def test_a_code_is_good_for_its_step_and_the_two_beside_it_in_order(live: Live):
    _, member_id = await with_codes(live)
    live.clock.advance(seconds=600)
    for steps, status in ((-2, 401), (2, 401), (-1, 200), (0, 200), (1, 200), (0, 401), (-1, 401)):
        shown = code(live, member_id, steps)
        response = await Browser(live, https=True)(
            "POST", SESSION, with_password(totp=shown), x_forwarded_for=f"203.0.113.{steps % 9}"
        )
        assert response.status_code == status, steps


@pytest.mark.slow(0.3)
async def test_a_new_secret_replaces_the_former_when_it_is_confirmed(live: Live):
    browser, member_id = await with_codes(live)
    member = stored(live, member_id)
    assert member is not None
    former = code_secret(sign_in_key(live.found.pepper), member_id, member.offered_generation)
    await browser("POST", OFFER, {"password": PASSWORD})
    live.clock.advance(seconds=120)
    old = with_password(totp=code_at(former, live.clock.now_ms))
    assert (await Browser(live)("POST", SESSION, old)).status_code == 200
    live.clock.advance(seconds=120)
    assert (await browser("POST", CONFIRM, {"code": code(live, member_id)})).status_code == 200
    live.clock.advance(seconds=120)
    assert_error(
        await Browser(live)("POST", SESSION, with_password(totp=code_at(former, live.clock.now_ms))),
        401,
        "unauthorized",
    )
    assert (await Browser(live)("POST", SESSION, with_password(totp=code(live, member_id)))).status_code == 200


@pytest.mark.slow(0.2)
async def test_another_invitation_ends_the_need_of_codes(live: Live):
    _, member_id = await with_codes(live)
    admin = await signed_in(live)
    path = f"{API}/management/organizations/{live.organization.id}/members/{member_id}/invitation"
    token = (await admin("POST", path)).json()["invitation_url"].partition("#")[2]
    live.clock.advance(seconds=60)
    body = {"token": token, "password": "another password"}
    assert (await Browser(live)("POST", "/console/invitations", body)).status_code == 200
    assert (await sign_in(live, with_password(password="another password"))).status_code == 200


async def test_a_session_of_a_key_has_no_codes(live: Live):
    browser = await signed_in(live)
    for path, body in ((OFFER, {"password": PASSWORD}), (CONFIRM, {"code": "000000"})):
        assert_error(await browser("POST", path, body), 404, "not_found")


async def test_no_session_and_no_invitation_comes_back_with_a_backup(live: Live):
    browser = await came_in(live)
    invited(live)
    live.found.store.write_now([lambda transaction: end_all(transaction, live.clock.now_ms)])
    assert rows(live, SESSIONS) == rows(live, INVITATIONS) == []
    assert_error(await browser("GET", SESSION), 401, "unauthorized")


@pytest.mark.slow(0.2)
async def test_without_the_pepper_no_password_can_be_tried(live: Live):
    """What is stored does not follow from address, password and row alone."""
    from svc.features.members.sign_in.passwords import is_password, password_hash

    await came_in(live, email=ADA)
    (member,) = rows(live, MEMBERS)
    for pepper, holds in ((live.found.pepper, True), (bytes(32), False)):
        key = sign_in_key(pepper)
        assert is_password(key, member.id, password_hash(key, ADA, PASSWORD), member.password) is holds


async def test_an_open_live_screen_counts_as_use(live: Live):
    """Decisions 15.6."""
    from svc.http.change import still_holds_in_use

    browser = await came_in(live)
    caller = await _caller(live, browser)
    for _ in range(3):
        live.clock.advance(seconds=IDLE_MS / 1000 - 1)
        assert await still_holds_in_use(live.service.services, caller)
    assert (await browser("GET", SESSION)).status_code == 200
    live.clock.advance(seconds=IDLE_MS / 1000)
    assert not await still_holds_in_use(live.service.services, caller)
    (session,) = rows(live, SESSIONS)
    assert session.expires_at_ms - session.created_at_ms == 12 * 3600 * 1000, "not beyond twelve hours"


async def _caller(live: Live, browser: Browser) -> Any:
    """The caller of the browser's session, as a route sees it."""
    from svc.http.callers.authentication import AuthRequest
    from svc.http.callers.sessions import authenticate_session, read_site

    policy = live.service.services.policy
    headers = {"host": f"127.0.0.1:{live.port}", "cookie": f"{browser.name}={browser.cookie}"}
    site = read_site(policy, headers, "http", "127.0.0.1")
    with live.found.store.read() as snapshot:
        return authenticate_session(AuthRequest(policy, snapshot, headers, "127.0.0.1", live.clock.now_ms), site, "GET")
