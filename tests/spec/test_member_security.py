"""Decisions 15.3: recovery codes, the own password, and who may change how a member signs in."""

from __future__ import annotations

import re

import pytest

from svc.http.callers.limits import ACCOUNT_SIGN_INS
from svc.kernel.access.members import INVITATION_MS
from svc.kernel.access.tables import SESSIONS
from svc.kernel.values.timestamps import timestamp
from tests.spec.console_browser import API, SESSION, Browser, rows, signed_in
from tests.spec.people import INVITATIONS, PASSWORD, came_in, invited
from tests.spec.responses import assert_error, assert_invalid, nothing_stored
from tests.spec.test_audit import records
from tests.spec.test_member_sign_in import ADA, CONFIRM, OFFER, code, sign_in, with_password
from tests.support.live import Live, succeeded

RECOVERY = API + "/totp/recovery"
OWN_PASSWORD = API + "/password"
READ = INVITATIONS + "/read"
ANOTHER = "another horse, as correct"


async def confirmed(live: Live) -> tuple[Browser, str, list[str]]:
    """A member who signs in with codes, its id, and its recovery codes."""
    browser = await came_in(live, email=ADA)
    member_id = (await browser("GET", SESSION)).json()["member"]["id"]
    await browser("POST", OFFER, {"password": PASSWORD})
    answer = await browser("POST", CONFIRM, {"code": code(live, member_id)})
    assert answer.status_code == 200, answer.text
    return browser, member_id, answer.json()["recovery_codes"]


@pytest.mark.slow(0.7)
async def test_ten_recovery_codes_come_once_and_each_counts_once_in_the_place_of_a_code(live: Live):
    _, _, codes = await confirmed(live)
    assert len(set(codes)) == 10
    assert all(re.fullmatch(r"[a-z2-7]{5}-[a-z2-7]{5}", one) for one in codes)
    stored = live.stored_bytes()
    assert not any(form.encode() in stored for one in codes for form in (one, one.replace("-", "")))
    for typed in (codes[0], codes[1].upper(), codes[2].replace("-", " ")):
        assert (await sign_in(live, with_password(totp=typed))).status_code == 200
        assert_error(await sign_in(live, with_password(totp=typed)), 401, "unauthorized")
    assert_error(await sign_in(live, with_password(totp="aaaaa-aaaaa")), 401, "unauthorized")
    assert_error(await sign_in(live, with_password(password=ANOTHER, totp=codes[3])), 401, "unauthorized")
    assert (await sign_in(live, with_password(totp=codes[3]))).status_code == 200


@pytest.mark.slow(0.3)
async def test_new_codes_end_former_recovery_codes_and_the_other_sessions(live: Live):
    browser, member_id, codes = await confirmed(live)
    other = Browser(live)
    assert (await sign_in(live, with_password(totp=codes[0]), other)).status_code == 200
    live.clock.advance(seconds=120)
    offered = await browser("POST", OFFER, {"code": codes[1]})
    assert offered.status_code == 200, offered.text
    assert (await other("GET", SESSION)).status_code == 200, "nothing changes before it is confirmed"
    assert (await browser("POST", CONFIRM, {"code": code(live, member_id)})).status_code == 200
    assert_error(await other("GET", SESSION), 401, "unauthorized")
    assert (await browser("GET", SESSION)).status_code == 200
    assert_error(await sign_in(live, with_password(totp=codes[2])), 401, "unauthorized")


@pytest.mark.parametrize(
    ("proof", "field", "issue"),
    [
        ({}, "password", "required"),
        ({"password": "not the password"}, "password", "invalid_value"),
        ({"code": "000000"}, "code", "invalid_value"),
        ({"code": "aaaaa-aaaaa"}, "code", "invalid_value"),
        ({"password": PASSWORD, "code": "000000"}, "password", "invalid_value"),
    ],
)
@pytest.mark.slow(0.2)
async def test_who_finds_an_open_screen_sets_up_no_codes(live: Live, proof: dict[str, str], field: str, issue: str):
    browser, _, _ = await confirmed(live)
    with nothing_stored(live):
        assert_invalid(await browser("POST", OFFER, proof), field, issue)


@pytest.mark.slow(0.2)
async def test_a_code_proves_as_the_password_does_and_counts_once(live: Live):
    browser, member_id, _ = await confirmed(live)
    live.clock.advance(seconds=120)
    shown = code(live, member_id)
    assert (await browser("POST", OFFER, {"code": shown})).status_code == 200
    assert_invalid(await browser("POST", OFFER, {"code": shown}), "code", "invalid_value")


@pytest.mark.slow(0.4)
async def test_a_member_changes_its_password_and_its_other_sessions_end(live: Live):
    browser, other = await came_in(live, email=ADA), Browser(live)
    assert (await sign_in(live, with_password(), other)).status_code == 200
    with nothing_stored(live):
        wrong = await browser("POST", OWN_PASSWORD, {"password": ANOTHER, "new_password": ANOTHER})
        assert_invalid(wrong, "password", "invalid_value")
    assert (await browser("POST", OWN_PASSWORD, {"password": PASSWORD, "new_password": ANOTHER})).status_code == 204
    assert (await browser("GET", SESSION)).status_code == 200
    assert_error(await other("GET", SESSION), 401, "unauthorized")
    assert_error(await sign_in(live, with_password()), 401, "unauthorized")
    assert (await sign_in(live, with_password(password=ANOTHER))).status_code == 200
    last = next(entry.record for entry in records(live) if entry.record.action == "changePassword")
    assert ANOTHER not in repr(last)
    assert PASSWORD not in repr(last)


@pytest.mark.slow(0.5)
async def test_new_recovery_codes_replace_all_former_ones_and_end_other_sessions(live: Live):
    browser, _, codes = await confirmed(live)
    other = Browser(live)
    assert (await sign_in(live, with_password(totp=codes[0]), other)).status_code == 200
    assert (await browser("GET", SESSION)).json()["member"]["recovery_codes_left"] == 9
    made = succeeded(await browser("POST", RECOVERY, {"code": codes[1]}))["recovery_codes"]
    assert len(set(made)) == 10
    assert not set(made) & set(codes)
    stored = live.stored_bytes()
    assert not any(form.encode() in stored for one in made for form in (one, one.replace("-", "")))
    assert (await browser("GET", SESSION)).json()["member"]["recovery_codes_left"] == 10
    assert_error(await other("GET", SESSION), 401, "unauthorized")
    assert_error(await sign_in(live, with_password(totp=codes[2])), 401, "unauthorized")
    assert (await sign_in(live, with_password(totp=made[0]))).status_code == 200
    last = next(entry.record for entry in records(live) if entry.record.action == "replaceRecoveryCodes")
    assert not any(one in repr(last) for one in (*made, codes[1]))


@pytest.mark.parametrize(
    ("proof", "field", "issue"),
    [
        ({}, "password", "required"),
        ({"password": "not the password"}, "password", "invalid_value"),
        ({"code": "000000"}, "code", "invalid_value"),
        ({"password": PASSWORD, "code": "000000"}, "password", "invalid_value"),
    ],
)
@pytest.mark.slow(0.2)
async def test_who_finds_an_open_screen_gets_no_recovery_codes(
    live: Live, proof: dict[str, str], field: str, issue: str
):
    browser, _, codes = await confirmed(live)
    with nothing_stored(live):
        assert_invalid(await browser("POST", RECOVERY, proof), field, issue)
    assert (await sign_in(live, with_password(totp=codes[0]))).status_code == 200, "the former ones are good"


async def test_a_member_without_one_time_codes_has_no_recovery_codes(live: Live):
    browser = await came_in(live, email=ADA)
    await browser("POST", OFFER, {"password": PASSWORD})
    with nothing_stored(live):
        assert_error(await browser("POST", RECOVERY, {"password": PASSWORD}), 404, "not_found")
    assert (await browser("GET", SESSION)).json()["member"]["recovery_codes_left"] == 0


async def test_an_invitation_says_to_whom_and_to_what_it_is_and_is_not_used_up(live: Live):
    member, token = invited(live, "analyst", email=ADA, name="Ada Lovelace")
    with nothing_stored(live):
        answer = await Browser(live)("POST", READ, {"token": token})
    assert answer.json() == {
        "organization": live.organization.name,
        "email": ADA,
        "name": member.name,
        "role": "analyst",
        "expires_at": timestamp(live.clock.now_ms + INVITATION_MS),
    }
    assert "set-cookie" not in answer.headers
    live.clock.advance(seconds=60)
    assert (await Browser(live)("POST", INVITATIONS, {"token": token, "password": PASSWORD})).status_code == 200
    with nothing_stored(live):
        for refused in (token, "svc_ci_x", token[:-1]):
            live.clock.advance(seconds=60)
            assert_error(await Browser(live)("POST", READ, {"token": refused}), 401, "unauthorized")


async def test_reading_an_invitation_counts_as_an_attempt_to_sign_in_and_needs_a_page_of_the_service(live: Live):
    _, token = invited(live)
    statuses = [(await Browser(live)("POST", READ, {"token": token + "x"})).status_code for _ in range(40)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    live.clock.advance(seconds=600)
    elsewhere = await Browser(live)("POST", READ, {"token": token}, origin="https://evil.example")
    assert_error(elsewhere, 403, "cross_origin_request")


GUESSABLE = ["qwerty123456", "1QAZ2wsx3EDC", "Ada@Shop.Example", "Augusta Ada King", "augustaadaking"]


@pytest.mark.parametrize("guessable", GUESSABLE)
async def test_common_passwords_and_the_own_address_or_name_are_refused(live: Live, browser: Browser, guessable: str):
    _, token = invited(live, email=ADA, name="Augusta Ada King")
    with nothing_stored(live):
        answer = await Browser(live)("POST", INVITATIONS, {"token": token, "password": guessable})
        assert_invalid(answer, "password", "invalid_value")
        assert "your own address or name. Choose another." in answer.json()["error"]["message"], "why, and what to do"
    live.clock.advance(seconds=60)
    assert (await browser("POST", INVITATIONS, {"token": token, "password": PASSWORD})).status_code == 200
    answer = await browser("POST", OWN_PASSWORD, {"password": PASSWORD, "new_password": guessable})
    assert_invalid(answer, "new_password", "invalid_value")


@pytest.mark.slow(0.3)
async def test_attempts_by_an_open_screen_count_as_attempts_to_sign_in(live: Live):
    browser = await came_in(live, email=ADA)
    said = [
        (await browser("POST", OWN_PASSWORD, {"password": ANOTHER, "new_password": ANOTHER})).status_code
        for _ in range(ACCOUNT_SIGN_INS + 2)
    ]
    assert said == [422] * ACCOUNT_SIGN_INS + [429] * 2
    assert (await Browser(live)("POST", SESSION, with_password())).status_code == 429


@pytest.mark.slow(0.2)
async def test_codes_of_an_offer_that_was_left_open_are_not_tried_at_length(live: Live):
    browser = await came_in(live, email=ADA)
    assert (await browser("POST", OFFER, {"password": PASSWORD})).status_code == 200
    said = [(await browser("POST", CONFIRM, {"code": "000000"})).status_code for _ in range(ACCOUNT_SIGN_INS)]
    assert said == [422] * (ACCOUNT_SIGN_INS - 1) + [429]


async def test_a_session_of_a_key_and_a_member_of_the_provider_have_no_password_to_change(live: Live):
    browser = await signed_in(live)
    for path, body in (
        (OFFER, {"password": PASSWORD}),
        (RECOVERY, {"password": PASSWORD}),
        (OWN_PASSWORD, {"password": PASSWORD, "new_password": ANOTHER}),
    ):
        assert_error(await browser("POST", path, body), 404, "not_found")


@pytest.mark.slow(0.2)
async def test_another_invitation_ends_recovery_codes(live: Live):
    _, member_id, codes = await confirmed(live)
    admin = await signed_in(live)
    path = f"{API}/management/organizations/{live.organization.id}/members/{member_id}/invitation"
    token = (await admin("POST", path)).json()["invitation_url"].partition("#")[2]
    live.clock.advance(seconds=60)
    assert (await Browser(live)("POST", INVITATIONS, {"token": token, "password": ANOTHER})).status_code == 200
    assert len(rows(live, SESSIONS)) == 2
    assert (await sign_in(live, with_password(password=ANOTHER, totp=codes[0]))).status_code == 200, "it needs no code"
