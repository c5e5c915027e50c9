"""Decisions 15.1, 15.2 and 15.6: members, their invitations, what their roles allow, and how soon a change holds."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from svc.features.erasure.organizations import continue_removal, remove_organization
from svc.features.members.jobs import change_member, remove_member
from svc.kernel.access.jobs import end_sessions_of
from svc.kernel.access.members import INVITATION_MS, MAX_MEMBERS
from svc.kernel.access.sessions import IDLE_MS, SESSION_MS
from svc.kernel.access.tables import INVITATIONS, MEMBER_EMAILS, MEMBERS, SESSIONS
from tests.spec.console_browser import API, SESSION, Browser, rows, sessions, signed_in
from tests.spec.people import INVITATIONS as ACCEPT
from tests.spec.people import PASSWORD, add_member, came_in, invited, stored
from tests.spec.responses import assert_error, assert_invalid, nothing_stored
from tests.spec.test_audit import records
from tests.spec.test_retention import swept
from tests.support.live import Live

ADA = {"email": "Ada@Shop.example", "name": "Ada", "role": "analyst"}
LIST = {"entries": [{"value": "user-1"}]}


def at(live: Live, path: str = "") -> str:
    return f"{API}/management/organizations/{live.organization.id}/members{path}"


def own(live: Live, path: str) -> str:
    return f"{API}/management/organizations/{live.organization.id}{path}"


def token_of(invitation_url: str) -> str:
    return invitation_url.partition("#")[2]


@pytest.mark.slow(0.2)
async def test_an_invited_member_chooses_a_password_and_comes_in(live: Live, browser: Browser):
    admin = await came_in(live, "admin")
    answer = await admin("POST", at(live), ADA)
    assert answer.status_code == 201
    body = answer.json()
    member = body["member"]
    assert (member["email"], member["name"], member["role"], member["status"]) == (
        "ada@shop.example", "Ada", "analyst", "invited",
    )  # fmt: skip
    assert (member["has_password"], member["has_totp"], member["last_signed_in_at"]) == (False, False, None)
    assert member["created_by"] == (await admin("GET", SESSION)).json()["member"]["id"]
    assert body["invitation_url"].startswith(f"{live.url}/console#svc_ci_")
    assert body["expires_at"] == "2026-01-08T00:00:01.000Z"
    entered = await browser("POST", ACCEPT, {"token": token_of(body["invitation_url"]), "password": PASSWORD})
    session = entered.json()
    assert session["member"] == {
        "id": member["id"], "email": "ada@shop.example", "name": "Ada", "role": "analyst", "has_totp": False,
        "has_password": True, "recovery_codes_left": 0,
    }  # fmt: skip
    assert (session["role"], "key" in session) == ("analyst", False)
    assert (await browser("GET", SESSION)).json() == session
    members = (await admin("GET", at(live))).json()["members"]
    assert [(each["status"], each["has_password"]) for each in members if each["id"] == member["id"]] == [
        ("active", True)
    ]


async def test_an_invitation_works_once(live: Live):
    member, token = invited(live)
    await Browser(live)("POST", ACCEPT, {"token": token, "password": PASSWORD})
    with nothing_stored(live):
        again = await Browser(live)("POST", ACCEPT, {"token": token, "password": PASSWORD + "2"})
        assert_error(again, 401, "unauthorized")
    assert "set-cookie" not in again.headers
    assert stored(live, member.id) is not None


async def test_an_invitation_is_over_after_seven_days_and_its_row_goes(live: Live, browser: Browser):
    _, token = invited(live)
    live.clock.advance(seconds=(INVITATION_MS - 1) / 1000)
    assert_invalid(await browser("POST", ACCEPT, {"token": token, "password": "short"}), "password", "invalid_value")
    live.clock.advance(seconds=(1) / 1000)
    assert_error(await browser("POST", ACCEPT, {"token": token, "password": PASSWORD}), 401, "unauthorized")
    await swept(live, live.clock.now_ms)
    assert rows(live, INVITATIONS) == []
    assert len(rows(live, MEMBERS)) == 1, "an admin can invite again"


async def test_the_store_has_no_invitation_but_its_digest(live: Live):
    _, token = invited(live)
    assert token.encode() not in live.stored_bytes()
    assert token.split("_")[2].encode() not in live.stored_bytes()


@pytest.mark.parametrize(
    ("password", "issue"), [("eleven char", "invalid_value"), ("x" * 257, "too_long"), (12, "wrong_type")]
)
async def test_a_password_has_12_to_256_characters(live: Live, password: Any, issue: str):
    _, token = invited(live)
    with nothing_stored(live):
        assert_invalid(await Browser(live)("POST", ACCEPT, {"token": token, "password": password}), "password", issue)


async def test_an_address_is_of_one_member_of_an_organization(live: Live):
    admin = await signed_in(live)
    await admin("POST", at(live), ADA)
    assert_error(await admin("POST", at(live), ADA | {"email": " ADA@shop.EXAMPLE "}), 409, "member_exists")
    other = live.new_organization()
    add_member(live, organization=other, email="ada@shop.example")
    assert len(rows(live, MEMBERS)) == 2


async def test_a_bad_invitation_changes_nothing(live: Live):
    admin = await signed_in(live)
    with nothing_stored(live):
        for changed, field, issue in (
            ({"email": "ada"}, "email", "invalid_value"),
            ({"email": "a b@shop.example"}, "email", "invalid_value"),
            ({"email": "ada@shop.example\r\nBcc: x"}, "email", "invalid_value"),
            ({"email": "<ada@shop.example>"}, "email", "invalid_value"),
            ({"name": "  "}, "name", "invalid_value"),
            ({"name": "x" * 101}, "name", "too_long"),
            ({"role": "owner"}, "role", "invalid_value"),
            ({"password": "a long password"}, "password", "unknown_field"),
        ):
            assert_invalid(await admin("POST", at(live), ADA | changed), field, issue)


@pytest.mark.slow(0.3)
async def test_an_organization_has_a_limit_of_members(live: Live):
    admin = await signed_in(live)
    for _ in range(MAX_MEMBERS):
        add_member(live)
    assert_error(await admin("POST", at(live), ADA), 409, "member_limit")


@pytest.mark.slow(0.2)
async def test_another_role_holds_from_the_next_request_on(live: Live):
    admin, ada = await came_in(live, "admin"), await came_in(live, "viewer")
    member_id = (await ada("GET", SESSION)).json()["member"]["id"]
    lists = (await ada("GET", own(live, "/lists"))).json()["lists"]
    entries = own(live, f"/lists/{next(each['id'] for each in lists if each['kind'] == 'account')}/entries")
    assert_error(await ada("POST", entries, LIST), 403, "insufficient_role")
    await admin("PATCH", at(live, f"/{member_id}"), {"role": "analyst"})
    assert (await ada("POST", entries, LIST)).status_code == 200
    assert (await ada("GET", SESSION)).json()["role"] == "analyst"
    await admin("PATCH", at(live, f"/{member_id}"), {"role": "viewer"})
    assert_error(await ada("POST", entries, LIST), 403, "insufficient_role")


@pytest.mark.parametrize("how", ["remove", "suspend"])
@pytest.mark.slow(0.2)
async def test_a_member_who_goes_is_out_at_the_next_request(live: Live, how: str):
    admin, ada = await came_in(live, "admin"), await came_in(live, "developer", email="ada@shop.example")
    member_id = (await ada("GET", SESSION)).json()["member"]["id"]
    if how == "remove":
        assert (await admin("DELETE", at(live, f"/{member_id}"))).status_code == 204
    else:
        await admin("PATCH", at(live, f"/{member_id}"), {"status": "suspended"})
    assert_error(await ada("GET", SESSION), 401, "unauthorized")
    sign_in = {"email": "ada@shop.example", "password": PASSWORD}
    assert_error(await ada("POST", SESSION, sign_in), 401, "unauthorized")
    assert sessions(live) == 1
    if how == "suspend":
        assert_error(await admin("POST", at(live, f"/{member_id}/invitation")), 409, "member_suspended")
        await admin("PATCH", at(live, f"/{member_id}"), {"status": "active"})
        assert (await ada("POST", SESSION, sign_in)).status_code == 200
    else:
        assert len(rows(live, MEMBERS)) == len(rows(live, MEMBER_EMAILS)) == 1


@pytest.mark.parametrize(
    ("job", "fields"),
    [
        (remove_member, {"by_member": False}),
        (change_member, {"fields": {"status": "suspended"}, "by_member": False}),
        (change_member, {"fields": {"role": "analyst"}, "by_member": False}),
        (end_sessions_of, {}),
    ],
    ids=["removed", "suspended", "of another role", "signed out"],
)
@pytest.mark.slow(0.2)
async def test_who_loses_session_or_role_while_its_request_arrives_changes_nothing(live: Live, job: Any, fields: Any):
    """Decisions 15.1: nobody who was removed stays by a member that it invites in that moment. An analyst may save
    rules, but no active ones.
    """
    ada = await came_in(live, "admin")
    member_id = (await ada("GET", SESSION)).json()["member"]["id"]
    rules = (await ada("GET", own(live, "/rules"))).json()["rules"]
    headers = {"cookie": f"{ada.name}={ada.cookie}", "sec-fetch-site": "same-origin", "origin": ada.origin}
    is_demoted = fields.get("fields") == {"role": "analyst"}
    sent: tuple[str, str, Any] = ("POST", at(live), ADA)
    if is_demoted:
        sent = ("PUT", own(live, "/rules"), {"revision": 0, "rules": []})
    act = partial(job, number=live.organization.number, member_id=member_id, **fields)
    answer = await live.slowly(*sent, headers, lambda: live.found.store.write_now([act]))
    assert_error(answer, *((403, "insufficient_role") if is_demoted else (401, "unauthorized")))
    assert len(rows(live, MEMBERS)) == (0 if job is remove_member else 1)
    admin = await came_in(live, "admin")
    assert (await admin("GET", own(live, "/rules"))).json()["rules"] == rules


async def test_an_invited_member_has_no_status_to_change(live: Live):
    admin, member = await signed_in(live), add_member(live)
    for status in ("active", "suspended"):
        assert_error(await admin("PATCH", at(live, f"/{member.id}"), {"status": status}), 409, "member_invited")
    assert_invalid(await admin("PATCH", at(live, f"/{member.id}"), {"status": "invited"}), "status", "invalid_value")


@pytest.mark.slow(0.2)
async def test_no_act_of_a_member_leaves_the_organization_without_an_admin(live: Live):
    admin = await came_in(live, "admin")
    mine = (await admin("GET", SESSION)).json()["member"]["id"]
    add_member(live, "admin")  # who has not come in
    await came_in(live, "developer")
    acts: list[tuple[str, Any]] = [
        ("PATCH", {"role": "viewer"}), ("PATCH", {"status": "suspended"}), ("DELETE", None),
    ]  # fmt: skip
    for method, body in acts:
        with nothing_stored(live):
            assert_error(await admin(method, at(live, f"/{mine}"), body), 409, "last_admin")
    await came_in(live, "admin")
    assert (await admin("PATCH", at(live, f"/{mine}"), {"role": "viewer"})).status_code == 200
    assert_error(await admin("GET", at(live)), 403, "insufficient_role")


async def test_a_management_key_may_remove_the_last_admin(live: Live, management: str):
    admin = await came_in(live, "admin")
    mine = (await admin("GET", SESSION)).json()["member"]["id"]
    path = f"/api/v1/management/organizations/{live.organization.id}/members/{mine}"
    answer = await live.client.delete(path, headers={"x-api-key": management})
    assert answer.status_code == 204
    assert_error(await admin("GET", SESSION), 401, "unauthorized")


@pytest.mark.slow(0.2)
async def test_two_admins_cannot_demote_each_other_at_once(live: Live):
    import trio

    first, second = await came_in(live, "admin"), await came_in(live, "admin")
    ids = [(await one("GET", SESSION)).json()["member"]["id"] for one in (first, second)]
    answers: list[int] = []

    async def demote(browser: Browser, member_id: str) -> None:
        answers.append((await browser("PATCH", at(live, f"/{member_id}"), {"role": "viewer"})).status_code)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(demote, first, ids[1])
        nursery.start_soon(demote, second, ids[0])
    assert sorted(answers) in ([200, 403], [200, 409])
    admins = [member for member in rows(live, MEMBERS) if member.role == "admin"]
    assert len(admins) == 1


@pytest.mark.slow(0.2)
async def test_another_invitation_replaces_the_former_and_resets_how_the_member_comes_in(live: Live, browser: Browser):
    admin, ada = await signed_in(live), await came_in(live, email="ada@shop.example")
    member_id = (await ada("GET", SESSION)).json()["member"]["id"]
    first = (await admin("POST", at(live, f"/{member_id}/invitation"))).json()["invitation_url"]
    second = (await admin("POST", at(live, f"/{member_id}/invitation"))).json()["invitation_url"]
    assert (await ada("GET", SESSION)).status_code == 200, "until it is used, nothing changes"
    body = {"token": token_of(first), "password": "another password"}
    assert_error(await Browser(live)("POST", ACCEPT, body), 401, "unauthorized")
    assert (await browser("POST", ACCEPT, body | {"token": token_of(second)})).status_code == 200
    assert_error(await ada("GET", SESSION), 401, "unauthorized")
    assert_error(await ada("POST", SESSION, {"email": "ada@shop.example", "password": PASSWORD}), 401, "unauthorized")
    signed = await ada("POST", SESSION, {"email": "ada@shop.example", "password": "another password"})
    assert signed.status_code == 200


@pytest.mark.slow(0.2)
async def test_what_a_member_does_is_attributed_to_it(live: Live):
    admin = await came_in(live, "admin")
    mine = (await admin("GET", SESSION)).json()["member"]["id"]
    issue = {"name": "b", "environment": "production", "kind": "secret"}
    key = (await admin("POST", own(live, "/sdk-keys"), issue)).json()["key"]
    assert key["created_by"] == mine
    revoked = (await admin("POST", own(live, f"/sdk-keys/{key['id']}/revoke"))).json()
    assert (revoked["created_by"], revoked["revoked_by"]) == (mine, mine)
    (listed,) = [one for one in (await admin("GET", own(live, "/sdk-keys"))).json()["keys"] if one["id"] == key["id"]]
    assert listed == revoked
    weights = (await admin("PUT", own(live, "/risk-weights/web"), {"suspect_threshold": 31})).json()
    assert [each.get("updated_by_user_id") for each in weights["platforms"] if each["platform"] == "web"] == [mine]
    lists = (await admin("GET", own(live, "/lists"))).json()["lists"]
    entries = own(live, f"/lists/{next(each['id'] for each in lists if each['kind'] == 'account')}/entries")
    await admin("POST", entries, LIST)
    (entry,) = (await admin("GET", entries)).json()["entries"]
    assert entry["created_by"] == mine
    by_key = await signed_in(live)
    key = (await by_key("POST", own(live, "/sdk-keys"), issue)).json()["key"]
    await by_key("POST", entries, LIST)
    assert ("created_by" in key, (await admin("GET", entries)).json()["entries"]) == (False, [entry])


@pytest.mark.slow(0.2)
async def test_the_audit_log_names_the_member(live: Live):
    admin = await came_in(live, "admin", name="Ada")
    mine = (await admin("GET", SESSION)).json()["member"]
    member = (await admin("POST", at(live), ADA)).json()["member"]
    await admin("PATCH", at(live, f"/{member['id']}"), {"role": "viewer"})
    await admin("DELETE", at(live, f"/{member['id']}"))
    await admin("DELETE", SESSION)
    found = [match.record for match in records(live)][::-1]
    actions = ["acceptInvitation", "inviteMember", "updateMember", "removeMember", "signOut"]
    assert [record.action for record in found][-5:] == actions
    for record in found[-5:]:
        assert (record.actor.kind, record.actor.id, record.actor.name) == ("member", mine["id"], "Ada")
        assert record.actor.role == "admin"
    assert [record.subject for record in found][-5:-1] == [mine["id"], *[member["id"]] * 3]
    assert found[-4].change == {"email": "Ada@Shop.example", "name": "Ada", "role": "analyst"}
    assert PASSWORD not in json.dumps([record.change for record in found])
    other = await signed_in(live)
    shown = (await other("GET", API + "/audit")).json()["records"]
    assert {"kind": "member", "id": mine["id"], "name": "Ada", "role": "admin", "place": "127.0.0.1"} in [
        each["actor"] for each in shown
    ]


@pytest.mark.slow(0.5)
async def test_the_audit_log_tells_admins_alone_of_members_and_proxy_keys(live: Live):
    """Interface 5, rule 5, and decisions 15.1: who may not list them does not read of them there, either."""
    admin, proxy = await came_in(live, "admin"), {"name": "edge", "environment": "staging"}
    member = (await admin("POST", at(live), ADA)).json()["member"]
    await admin("PATCH", at(live, f"/{member['id']}"), {"role": "viewer"})
    issued = (await admin("POST", own(live, "/proxy-credentials"), proxy)).json()["credential"]["id"]
    await admin("POST", own(live, f"/proxy-credentials/{issued}/revoke"))
    shared = (await admin("POST", own(live, "/sdk-keys"), proxy)).json()["key"]["id"]
    await admin("POST", own(live, f"/sdk-keys/{shared}/revoke"))
    hidden = {"inviteMember", "updateMember", "acceptInvitation", "issueProxyKey", "revokeProxyKey"}
    for reader in (admin, *[await came_in(live, role) for role in ("developer", "analyst", "viewer")]):
        response = await reader("GET", API + "/audit?limit=200")
        actions = {record["action"] for record in response.json()["records"]}
        assert {"issueSdkKey", "revokeSdkKey"} <= actions
        assert hidden & actions == (hidden if reader is admin else set())
        told = [text in response.text for text in (member["id"], ADA["email"], issued)]
        assert told == [reader is admin] * 3
        by_name = await reader("GET", API + "/audit?action=inviteMember")
        assert len(by_name.json()["records"]) == (reader is admin)


@pytest.mark.slow(0.3)
async def test_a_session_ends_after_30_minutes_without_use_and_after_12_hours(live: Live):
    """Decisions 15.6."""
    browser = await came_in(live)
    for _ in range(SESSION_MS // (IDLE_MS - 1000)):
        live.clock.advance(seconds=(IDLE_MS - 1000) / 1000)
        assert (await browser("GET", SESSION)).status_code == 200
    live.clock.advance(seconds=(IDLE_MS - 1000) / 1000)
    assert_error(await browser("GET", SESSION), 401, "unauthorized")
    browser = await came_in(live)
    live.clock.advance(seconds=(IDLE_MS) / 1000)
    assert_error(await browser("GET", SESSION), 401, "unauthorized")
    await swept(live, live.clock.now_ms)
    assert rows(live, SESSIONS) == []


async def test_members_go_with_their_organization(live: Live):
    browser, number = await came_in(live), live.organization.number
    live.found.store.write_now([lambda txn: remove_organization(txn, number, live.clock.now_ms)])
    assert_error(await browser("GET", SESSION), 401, "unauthorized")
    while live.found.store.write_now([lambda txn: continue_removal(txn, number)]) != [0]:
        pass
    assert [rows(live, table) for table in (MEMBERS, MEMBER_EMAILS, INVITATIONS, SESSIONS)] == [[], [], [], []]


async def test_a_member_has_no_management_key(live: Live):
    browser = await came_in(live, "admin")
    assert_error(await browser("GET", API + "/management/key"), 404, "not_found")


async def test_a_page_elsewhere_cannot_use_the_session_of_a_member(live: Live, tmp_path: Path):
    del tmp_path
    browser = await came_in(live, "admin")
    for changed in ({"sec_fetch_site": "cross-site"}, {"origin": "https://other.example"}):
        with nothing_stored(live):
            assert_error(await browser("POST", at(live), ADA, **changed), 403, "cross_origin_request")
    _, token = invited(live)
    body = {"token": token, "password": PASSWORD}
    with nothing_stored(live):
        answer = await Browser(live)("POST", ACCEPT, body, sec_fetch_site="cross-site")
        assert_error(answer, 403, "cross_origin_request")


@pytest.mark.served(public_url="https://svc.shop.example/")
async def test_an_invitation_leads_to_where_people_reach_the_service(live: Live, engine: str):
    del engine
    admin = await signed_in(live)
    url = (await admin("POST", at(live), ADA)).json()["invitation_url"]
    assert url.startswith("https://svc.shop.example/console#svc_ci_")
