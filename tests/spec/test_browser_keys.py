"""Keys of browsers that an admin revokes after a script incident (decisions 18.2): over HTTP and by the command."""

from __future__ import annotations

from typing import Any

import pytest

from svc.features.browser_keys import jobs as revoked_keys
from svc.features.browser_keys import routes as revoking
from svc.kernel.values.timestamps import timestamp
from tests.spec.automation import Automation
from tests.spec.commands import run_beside
from tests.spec.responses import assert_error, assert_invalid
from tests.spec.test_proven_visits import ELSEWHERE, Browser, fired
from tests.spec.test_token_renewal import renewal, renewed
from tests.support.live import Live, report
from tests.support.proofs import BrowserKey


def counted(body: dict[str, Any]) -> tuple[int, int]:
    return body["visitors"], body["keys"]


async def several(live: Live, number: int) -> list[Browser]:
    """Browsers that signed on two days, each of another kind."""
    browsers = [Browser(live, key, f"{key:032x}") for key in range(1, number + 1)]
    for place, browser in enumerate(browsers):
        browser.device = report(place + 1)
    for _ in range(2):
        for browser in browsers:
            await browser.visit()
        live.clock.advance(hours=24)
    return browsers


def moment(live: Live, hours: float = 0) -> str:
    return timestamp(live.clock.now_ms + int(hours * 3_600_000))


@pytest.mark.slow(0.2)
async def test_revoked_keys_prove_nothing_and_the_browsers_renew_them(live: Live):
    browser = Browser(live)
    admin, incident = Automation(live), moment(live)
    first = await browser.days(9)
    assert counted((await admin("GET", f"/browser-keys?from={incident}")).json()) == (1, 1)
    assert (await browser.visit())["proven"] is True, "counting revokes nothing"
    revoked = await admin("POST", "/browser-keys/revoke", {"from": incident})
    assert (revoked.status_code, counted(revoked.json())) == (200, (1, 1))
    owner, thief = await browser.visit(), await browser.visit(ip=ELSEWHERE)
    assert (owner["visitor_id"], owner["proven"], owner["client_token_renew"]) == (first["visitor_id"], False, True)
    assert "token_conflict" not in fired(owner)
    assert (thief["proven"], "client_token_renew" in thief) == (False, False)
    assert max(owner["visitor_confidence"], thief["visitor_confidence"]) <= 89
    live.clock.advance(hours=1)
    answer = await browser.visit(renewal(browser))
    assert (answer["visitor_id"], answer["proven"]) == (first["visitor_id"], False)
    planted, former = browser.key, browser.token
    renewed(browser)
    back = [await browser.days(1) for _ in range(3)]
    assert {one["visitor_id"] for one in back} == {first["visitor_id"]}
    assert [one["proven"] for one in back][1:] == [True, True]
    browser.key, browser.token = planted, former
    thief = await browser.visit(ip=ELSEWHERE)
    assert (thief["visitor_id"] == first["visitor_id"], thief["proven"]) == (False, False)
    assert "token_conflict" in fired(thief)


async def test_only_keys_that_first_signed_in_the_window_are_revoked(live: Live):
    admin, before = Automation(live), moment(live)
    old = Browser(live)
    await old.days(2)
    start = moment(live)
    planted = Browser(live, 2, "0" * 31 + "2")
    planted.device = report(2)
    await planted.days(2)
    end = moment(live)
    for window, expected in (
        ({"from": before, "to": start}, 1),
        ({"from": start, "to": end}, 1),
        ({"from": before}, 2),
        ({"from": end}, 0),
    ):
        query = "&".join(f"{name}={value}" for name, value in window.items())
        assert counted((await admin("GET", f"/browser-keys?{query}")).json()) == (expected, expected)
    answer = (await admin("POST", "/browser-keys/revoke", {"from": start, "to": end})).json()
    assert answer == {"from": start, "to": end, "visitors": 1, "keys": 1}
    assert [(await browser.visit())["proven"] for browser in (old, planted)] == [True, False]
    again = (await admin("POST", "/browser-keys/revoke", {"from": start, "to": end})).json()
    assert counted(again) == (0, 0)


async def test_a_key_on_probation_is_revoked_too(live: Live):
    browser = Browser(live)
    admin, incident = Automation(live), moment(live)
    key, browser.key = browser.key, None
    await browser.days(2)
    browser.key = key
    await browser.days(1)
    assert counted((await admin("POST", "/browser-keys/revoke", {"from": incident})).json()) == (1, 1)
    assert not any([(await browser.days(1))["proven"] for _ in range(8)])


@pytest.mark.slow(0.2)
async def test_keys_that_followed_by_renewal_are_of_the_moment_in_which_they_signed(live: Live, admin: Automation):
    """A script may have signed a renewal: without an end, the window has what followed, too."""
    browser = Browser(live)
    await browser.days(9)
    incident = moment(live)
    await browser.visit(BrowserKey(8).signed(browser.signals()), ip=ELSEWHERE)
    await browser.visit(renewal(browser))
    renewed(browser)
    assert (await browser.visit())["proven"] is True
    assert counted((await admin("POST", "/browser-keys/revoke", {"from": incident})).json()) == (1, 1)
    assert (await browser.visit())["proven"] is False


@pytest.mark.slow(1.4)
async def test_many_visitors_are_revoked_in_steps_with_one_record(live: Live, monkeypatch: pytest.MonkeyPatch):
    for module in (revoking, revoked_keys):
        monkeypatch.setattr(module, "REVOKED_AT_ONCE", 2)
    admin, incident = Automation(live), moment(live)
    browsers = await several(live, 5)
    known = {(await browser.visit())["visitor_id"] for browser in browsers}
    assert counted((await admin("GET", f"/browser-keys?from={incident}")).json()) == (len(known), 5)
    answer = (await admin("POST", "/browser-keys/revoke", {"from": incident})).json()
    assert counted(answer) == (len(known), 5)
    assert [(await browser.visit())["proven"] for browser in browsers] == [False] * 5
    (record,) = [one for one in await audited(live) if one["action"] == "revokeBrowserKeys"]
    assert record["change"] == {"from": incident}


async def audited(live: Live) -> list[dict[str, Any]]:
    return (await run_beside("audit", *live.options, "--json")).json["records"]


@pytest.mark.parametrize(
    ("body", "field", "issue"),
    [
        ({"from": "yesterday"}, "from", "invalid_value"),
        ({"from": "2026-01-01T00:00:00Z", "to": "now"}, "to", "invalid_value"),
        ({"from": "2026-01-02T00:00:00Z", "to": "2026-01-02T00:00:00Z"}, "to", "out_of_range"),
        ({"from": "2199-01-01T00:00:00Z"}, "from", "out_of_range"),
    ],
)
async def test_a_window_that_cannot_be_is_refused(live: Live, body: dict[str, str], field: str, issue: str):
    admin, browser = Automation(live), Browser(live)
    await browser.days(2)
    query = "&".join(f"{name}={value}" for name, value in body.items())
    answers = {
        "body": await admin("POST", "/browser-keys/revoke", body),
        "query": await admin("GET", f"/browser-keys?{query}"),
    }
    for place, answer in answers.items():
        assert_error(answer, 422, "validation_error", (field, issue, place))
    assert (await browser.visit())["proven"] is True


@pytest.mark.parametrize(
    ("body", "field", "issue"),
    [
        ({}, "from", "required"),
        ({"from": "2026-01-01T00:00:00Z", "since": "2026-01-01T00:00:00Z"}, "since", "unknown_field"),
        ({"from": 5}, "from", "wrong_type"),
        ({"from": None}, "from", "wrong_type"),
    ],
)
async def test_a_body_without_a_window_is_refused(live: Live, body: dict[str, Any], field: str, issue: str):
    browser = Browser(live)
    await browser.days(2)
    assert_invalid(await Automation(live)("POST", "/browser-keys/revoke", body), field, issue)
    assert (await browser.visit())["proven"] is True


@pytest.mark.slow(0.2)
async def test_the_command_revokes_beside_the_service(live: Live):
    incident, browser = moment(live), Browser(live)
    await browser.days(2)
    command = ("visitor", "revoke-keys", live.organization.id, *live.options, "--since", incident)
    until = ("--until", moment(live))
    (await run_beside(*command, *until)).assert_refused("1 keys of 1 visitors", "--yes")
    assert (await browser.visit())["proven"] is True
    ran = (await run_beside(*command, *until, "--yes", "--json")).json
    assert (ran["visitors"], ran["revoked"], ran["since"]) == (1, 1, incident)
    answer = await browser.visit()
    assert (answer["proven"], answer["client_token_renew"]) == (False, True)
    (record,) = [one for one in await audited(live) if one["action"] == "svc visitor revoke-keys"]
    assert record["change"] == {"since": incident, "until": until[1]}
    again = (await run_beside(*command, *until, "--json")).json
    assert (again["visitors"], again["revoked"]) == (0, 0)


@pytest.mark.slow(0.2)
async def test_the_command_refuses_a_window_that_cannot_be(live: Live):
    command = ("visitor", "revoke-keys", live.organization.id, *live.options, "--yes")
    (await run_beside(*command)).assert_usage()
    (await run_beside(*command, "--since", "soon")).assert_usage()
    (await run_beside(*command, "--since", "2199-01-01T00:00:00Z")).assert_usage()
    (await run_beside(*command, "--since", "1d", "--until", "2d")).assert_usage()
    nobody = ("visitor", "revoke-keys", "org_AAAAAAAAAAAAAAAAAAAA", *live.options, "--since", "1d", "--yes")
    (await run_beside(*nobody)).assert_refused("org_AAAAAAAAAAAAAAAAAAAA")
