"""Renewal over HTTP (decisions 18.2): who is told to renew token and key, and whether the visitor goes along."""

from __future__ import annotations

from typing import Any

import pytest

from svc.identify.keys.proof import Subject
from tests.spec.test_proven_visits import ELSEWHERE, ORIGIN, Browser, fired
from tests.support.live import PUBLIC_ADDRESS, USER_AGENT, Live, report, succeeded
from tests.support.proofs import BrowserKey, send

NEW_TOKEN = "fedcba9876543210fedcba9876543210"
NEXT, THIEVES = BrowserKey(7), BrowserKey(8)
NEAR = PUBLIC_ADDRESS.rsplit(".", 1)[0] + ".250"


async def claimed(live: Live) -> Browser:
    """A browser with whose token another key signed once, elsewhere."""
    browser = Browser(live)
    await browser.days(9)
    await browser.visit(stolen(browser, THIEVES), ip=ELSEWHERE)
    return browser


def stolen(browser: Browser, key: BrowserKey) -> bytes:
    return key.signed(browser.signals())


def renewal(browser: Browser, before: BrowserKey | None = None, token: str | None = None, **given: Any) -> bytes:
    """The report of a browser that renewed token and key."""
    key = before or browser.key
    assert key is not None
    new = {"client_token": NEW_TOKEN, "client_token_is_new": True}
    return NEXT.renewing(browser.signals(**new), (token or browser.token, key), **given)


def renewed(browser: Browser) -> Browser:
    browser.token, browser.key = NEW_TOKEN, NEXT
    return browser


@pytest.fixture
def browser(live: Live) -> Browser:
    return Browser(live)


async def test_the_browser_is_told_to_renew_a_token_that_another_key_claims(live: Live):
    browser = await claimed(live)
    answer = await browser.visit()
    assert (answer["proven"], answer["client_token_renew"]) == (True, True)
    assert "client_token_renew" not in await browser.event(answer)


async def test_a_server_that_forwards_no_public_key_is_not_told(live: Live):
    """Decisions 18.2: it is for the page's own SDK."""
    browser, (_, proxy) = await claimed(live), live.issue("proxy")
    agent = {"x-svc-visitor-user-agent": USER_AGENT}
    place = {"x-svc-visitor-ip": PUBLIC_ADDRESS, "x-svc-visitor-origin": ORIGIN, **agent}
    answer = succeeded(await send(live, proxy, browser.body(), place))
    assert (answer["proven"], "client_token_renew" in answer) == (True, False)
    assert (await browser.visit())["client_token_renew"] is True


async def test_neither_a_browser_alone_with_its_token_nor_a_thief_is_told(browser: Browser):
    """A browser whose token nobody claims, and the thief."""
    assert not any("client_token_renew" in day for day in [await browser.days(1) for _ in range(3)])
    thief = await browser.visit(stolen(browser, THIEVES), ip=ELSEWHERE)
    assert "client_token_renew" not in thief
    assert "token_conflict" in fired(thief)
    assert (await browser.visit())["client_token_renew"] is True


@pytest.mark.slow(0.2)
async def test_the_visitor_goes_along_and_goes_on_being_proven(live: Live):
    browser = await claimed(live)
    before = await browser.visit()
    answer = await browser.visit(renewal(browser))
    assert (answer["visitor_id"], answer["proven"], answer["visitor_confidence"]) == (before["visitor_id"], True, 100)
    assert "client_token_renew" not in answer
    renewed(browser)
    for hours, ip in ((1, PUBLIC_ADDRESS), (48, ELSEWHERE), (24 * 40, PUBLIC_ADDRESS)):
        live.clock.advance(hours=hours)
        again = await browser.visit(ip=ip)
        assert (again["visitor_id"], again["proven"]) == (before["visitor_id"], True)
        assert "client_token_renew" not in again


async def test_the_proof_before_covers_account_action_and_tag(live: Live):
    browser = await claimed(live)
    about = {"account_id": "a-1", "action": "log_in", "tag": "t"}
    before = await browser.visit()
    body = renewal(browser, subject=Subject(**about))
    answer = await browser.visit(body, **about)
    assert (answer["visitor_id"], answer["proven"]) == (before["visitor_id"], True)
    assert (await browser.event(answer))["proof_covers"] == ["visitor", "account_id", "action", "tag"]


@pytest.mark.parametrize("key", [THIEVES, NEXT, BrowserKey(99)], ids=["the thief's", "the new one", "any"])
@pytest.mark.slow(0.2)
async def test_nobody_goes_along_by_another_key(live: Live, key: BrowserKey):
    browser = await claimed(live)
    before = await browser.visit()
    answer = await browser.visit(renewal(browser, before=key), ip=ELSEWHERE)
    assert (answer["visitor_id"] == before["visitor_id"], answer["proven"]) == (False, False)
    owner = await browser.visit()
    assert (owner["visitor_id"], owner["proven"]) == (before["visitor_id"], True)


def swapped(body: bytes, old: bytes, new: bytes) -> bytes:
    assert body.count(old) == 1
    return body.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"client_token_before":"0', b'"client_token_before":"1'),
        (b'"client_proof_before":"', b'"client_proof_before":"AA'),
        (b'"client_proof_before":"', b'"client_proof_before":"!'),
        (b'"client_key_before":"B', b'"client_key_before":"C'),
        (b',"client_proof_before":', b',"proof_before":'),
        (b',"client_key_before":', b',"client_key_before":null,"x":'),
    ],
)
@pytest.mark.slow(0.2)
async def test_a_renewal_that_was_written_anew_is_an_ordinary_report(live: Live, old: bytes, new: bytes):
    """Bad input: the request is identified, nothing of it is believed, and the owner keeps what it has."""
    browser = await claimed(live)
    before = await browser.visit()
    answer = await browser.visit(swapped(renewal(browser), old, new), ip=ELSEWHERE)
    assert answer["visitor_id"] != before["visitor_id"]
    assert answer["proven"] is False
    assert (await browser.visit())["proven"] is True


async def test_an_ordinary_report_cannot_be_turned_into_a_renewal(live: Live):
    """Who recorded a signed report of the owner puts it under a key of his own."""
    browser = await claimed(live)
    before = await browser.visit()
    assert browser.key is not None
    recorded = browser.key.signed(browser.signals())
    old_proof = recorded[recorded.rindex(b'"client_proof":') :].replace(b"client_proof", b"client_proof_before")
    unsigned = recorded[: recorded.rindex(b',"client_proof":')] + b"," + old_proof
    thief = THIEVES.proven_text(unsigned, ORIGIN, Subject(), 2)
    answer = await browser.visit(thief, ip=ELSEWHERE)
    assert (answer["visitor_id"] == before["visitor_id"], answer["proven"]) == (False, False)


async def test_a_renewal_is_for_its_own_origin(live: Live):
    browser = await claimed(live)
    before = await browser.visit()
    answer = await browser.visit(renewal(browser, origin="https://other.example"), ip=ELSEWHERE)
    assert (answer["visitor_id"] == before["visitor_id"], answer["proven"]) == (False, False)


@pytest.mark.slow(0.2)
async def test_a_renewal_whose_response_was_lost_is_sent_again(live: Live):
    """The SDK keeps the old ones until it has a response; a captured renewal proves nothing a second time."""
    browser = await claimed(live)
    before = await browser.visit()
    sent = renewal(browser)
    await browser.visit(sent)
    again = await browser.visit(renewal(browser))
    assert (again["visitor_id"], again["proven"]) == (before["visitor_id"], True)
    replayed = await browser.visit(sent, ip=ELSEWHERE)
    assert replayed["proven"] is False
    assert "replayed" in fired(replayed)


@pytest.mark.slow(0.2)
async def test_a_thief_who_signed_first_is_never_above_89_and_the_owner_recovers(live: Live, browser: Browser):
    """Rival keys (decisions 18.1, 18.2): neither proves; report and network tell who is asked to renew."""
    key, browser.key = browser.key, None
    first = await browser.days(5)
    await browser.visit(stolen(browser, THIEVES), ip=NEAR)
    live.clock.advance(hours=8 * 24)
    browser.key = key
    await browser.visit()
    home, thief = await browser.visit(), await browser.visit(stolen(browser, THIEVES), ip=ELSEWHERE)
    assert (home["visitor_id"], home["proven"], home["client_token_renew"]) == (first["visitor_id"], False, True)
    assert max(home["visitor_confidence"], thief["visitor_confidence"]) <= 89
    assert (thief["proven"], "client_token_renew" in thief) == (False, False)
    answer = await browser.visit(renewal(browser))
    assert (answer["visitor_id"], answer["proven"]) == (first["visitor_id"], False)
    renewed(browser)
    live.clock.advance(hours=24)
    back = [await browser.days(1) for _ in range(3)]
    assert [(one["visitor_id"], one["proven"]) for one in back] == [(first["visitor_id"], True)] * 3
    browser.token = Browser(live).token
    late = await browser.visit(stolen(browser, THIEVES), ip=ELSEWHERE)
    assert (late["visitor_id"] == first["visitor_id"], late["proven"]) == (False, False)


async def test_a_copy_with_another_key_at_home_is_at_most_89(browser: Browser):
    """Decisions 18.1: a visitor whose living token has a key is never at 90 or more without its proof."""
    first = await browser.days(9)
    for ip in (PUBLIC_ADDRESS, NEAR):
        thief = await browser.visit(stolen(browser, THIEVES), ip=ip)
        assert thief["visitor_id"] != first["visitor_id"] or thief["visitor_confidence"] <= 89
        assert (thief["proven"], "token_conflict" in fired(thief)) == (False, True)
    owner = await browser.visit()
    assert (owner["visitor_confidence"], owner["proven"]) == (100, True)


@pytest.mark.slow(0.2)
async def test_a_profile_that_was_copied_to_another_machine_gets_a_token_of_its_own(live: Live):
    """As of a person who has a new computer. The copy fires `token_conflict` until it renewed, and then no more."""
    owner, copied = Browser(live), Browser(live)
    first = await owner.days(9)
    copied.device = report(2)
    arrived = await copied.visit(ip=ELSEWHERE)
    live.clock.advance(hours=24)
    asked = await copied.visit(ip=ELSEWHERE)
    assert [fired(answer) >= {"token_conflict"} for answer in (arrived, asked)] == [True, True]
    assert ["client_token_renew" in answer for answer in (arrived, asked)] == [False, True]
    answers = [await copied.visit(renewal(copied), ip=ELSEWHERE)]
    renewed(copied)
    for _ in range(3):
        live.clock.advance(hours=24)
        answers.append(await copied.visit(ip=ELSEWHERE))
    assert {answer["visitor_id"] for answer in (arrived, asked, *answers)} == {arrived["visitor_id"]}
    assert not any("token_conflict" in fired(answer) or "client_token_renew" in answer for answer in answers)
    own = await owner.visit()
    assert (own["visitor_id"], own["proven"], fired(own)) == (first["visitor_id"], True, set())
    assert arrived["visitor_id"] != own["visitor_id"]
