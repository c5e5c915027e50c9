"""Proven visits over HTTP (docs/adr/0084): what a proof is worth once matching knows which key a token has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio
from svc_client import AsyncClient, Client, Expected

from svc.identify.keys.proof import NO_SUBJECT, WINDOW_MS, Subject
from svc.identify.model import ProofVersion
from tests.spec.responses import BROWSER, visit
from tests.spec.subscriber import Subscriber
from tests.spec.test_signed_verdicts import claims, published
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, report, succeeded
from tests.support.proofs import BrowserKey, compact, send
from tests.support.serving_postgresql import at_rest
from tests.test_replay import program

TOKEN = "0123456789abcdef0123456789abcdef"
ELSEWHERE = "195.99.4.20"
OTHER_ORIGIN = "https://pay.example"


class Browser:
    """One browser with a token and a key, and thieves who have a part of them. Nonces are of all browsers together."""

    nonces: Iterator[int] = count(1)

    def __init__(self, live: Live, number: int = 1, token: str = TOKEN) -> None:
        self.live, self.token = live, token
        self.key: BrowserKey | None = BrowserKey(number)
        self.device = report(1)
        self._public = live.issue()[1]
        self._secret = live.issue("secret")[1]

    def signals(self, **changes: Any) -> dict[str, Any]:
        now_ms = self.live.clock.now_ms
        nonce = f"nonce-{next(self.nonces):08d}"
        return {**self.device, "client_token": self.token, "nonce": nonce, "collected_at": now_ms, **changes}

    def body(
        self, origin: str = ORIGIN, subject: Subject = NO_SUBJECT, version: ProofVersion = 2, **changes: Any
    ) -> bytes:
        signals = self.signals(**changes)
        return compact(signals) if self.key is None else self.key.signed(signals, origin, subject, version)

    async def visit(self, body: bytes | None = None, ip: str = PUBLIC_ADDRESS, **given: Any) -> dict[str, Any]:
        """The response to a report, this browser's next one unless another is given."""
        headers = {**BROWSER, "x-forwarded-for": ip}
        return succeeded(await send(self.live, self._public, self._body(body, given), headers, **given))

    def _body(self, body: bytes | None, given: Mapping[str, Any]) -> bytes:
        return self.body(subject=Subject(*map(given.get, Subject._fields))) if body is None else body

    async def days(self, number: int) -> dict[str, Any]:
        """A visit on each of so many days, the clock left a day after the last; the last response."""
        answer: dict[str, Any] = {}
        for _ in range(number):
            answer = await self.visit()
            self.live.clock.advance(hours=24)
        return answer

    async def event(self, answer: dict[str, Any]) -> dict[str, Any]:
        path = f"/api/v1/events/{answer['request_id']}"
        return (await self.live.client.get(path, headers={"x-api-key": self._secret})).json()

    async def rows(self) -> list[dict[str, Any]]:
        return (await self.live.client.get("/api/v1/events", headers={"x-api-key": self._secret})).json()["rows"]


def fired(answer: dict[str, Any]) -> set[str]:
    return {trigger["signal"] for trigger in answer.get("triggers", ())}


@pytest.fixture
def browser(live: Live) -> Browser:
    return Browser(live)


async def test_the_first_visit_of_a_key_is_not_proven_and_the_next_one_is(browser: Browser):
    """There was nothing to compare with: anybody can sign by a key of his own."""
    first, again = await browser.visit(), await browser.visit()
    assert (first["proven"], again["proven"]) == (False, True)
    assert (again["visitor_id"], again["visitor_confidence"]) == (first["visitor_id"], 100)


async def test_proven_is_on_the_event_its_row_and_the_linkage(browser: Browser):
    answers = [await browser.visit() for _ in range(2)]
    events = [await browser.event(answer) for answer in answers]
    assert [event["proven"] for event in events] == [False, True]
    assert [event["document"]["linkage"]["proof"] for event in events] == ["valid", "valid"]
    assert [row["proven"] for row in await browser.rows()] == [True, False]


async def test_the_event_says_what_the_proof_covers(browser: Browser):
    """Decisions 18.3: `svc-proof 2` covers account, action and tag, null included; version 1 the visitor alone."""
    about: dict[str, Any] = {"account_id": 'Zoë "1"', "action": "pay", "tag": "\t\u2028😀"}
    first, named, nobody = await browser.visit(**about), await browser.visit(**about), await browser.visit()
    old = await browser.visit(browser.body(version=1), **about)
    everything = ["visitor", "account_id", "action", "tag"]
    events = [await browser.event(answer) for answer in (first, named, nobody, old)]
    assert [event.get("proof_covers") for event in events] == [None, everything, everything, ["visitor"]]
    assert [event["document"]["linkage"]["proof"] for event in events] == ["valid"] * 4
    assert [row.get("proof_covers") for row in await browser.rows()] == [["visitor"], everything, everything, None]


@pytest.mark.parametrize(
    "stolen", [{"account_id": "thief"}, {"action": "pay"}, {"tag": "order-2"}, {"account_id": None}]
)
async def test_a_signed_request_that_is_sent_for_another_account_is_not_covered(live: Live, stolen: dict[str, Any]):
    """Decisions 18.3: neither before the original arrives nor after it, and an old proof covers no account."""
    browser = Browser(live)
    await browser.days(3)
    about = {"account_id": "owner", "action": "log_in", "tag": "order-1"}
    given = {name: value for name, value in (about | stolen).items() if value is not None}
    held_back = browser.body(subject=Subject(**about))
    ahead = await browser.visit(held_back, **given)
    sent = browser.body(subject=Subject(**about))
    owner, after = await browser.visit(sent, **about), await browser.visit(sent, **given)
    events = [await browser.event(answer) for answer in (ahead, owner, after)]
    assert [event["proven"] for event in events] == [False, True, False]
    assert ["proof_covers" in event for event in events] == [False, True, False]
    assert [event["document"]["linkage"]["proof"] for event in events] == ["signature", "valid", "signature"]


async def test_what_a_backend_sets_later_leaves_the_proof_as_it_was(live: Live, browser: Browser):
    _, answer = [await browser.visit() for _ in range(2)]
    before = await browser.event(answer)
    path = f"/api/v1/events/{answer['request_id']}"
    headers = {"x-api-key": live.issue("secret")[1]}
    changed = await live.client.patch(path, json={"account_id": "a-1", "tag": "t"}, headers=headers)
    assert changed.status_code == 200, changed.text
    after = await browser.event(answer)
    assert (after["account_id"], after["proven"], after["proof_covers"]) == ("a-1", True, before["proof_covers"])
    assert after["document"]["linkage"]["proof"] == "valid"


async def test_proven_is_in_webhooks(hooks: Subscriber):
    await hooks.create(environment="test")
    browser = Browser(hooks.live)
    for expected in (False, True):
        await browser.visit()
        await at_rest()
        (post,) = hooks.receivers.take()
        assert json.loads(post.body)["data"]["proven"] is expected


@pytest.mark.slow(0.2)
async def test_proven_is_a_claim_of_signed_verdicts(live: Live, browser: Browser):
    tokens = [(await browser.visit(verdict=True))["verdict"] for _ in range(2)]
    keys = await published(live)
    assert [claims(token, keys)["proven"] for token in tokens] == [False, True]


@pytest.mark.slow(0.1)
async def test_check_can_require_a_proven_visit(live: Live, browser: Browser):
    """Both libraries of Python; those of Node make the same comparison (`tests/clients`)."""
    answers = [await browser.visit(tag="pay", verdict=True) for _ in range(2)]
    secret = live.issue("secret")[1]
    moment = datetime.fromtimestamp(live.clock.now_ms / 1000, UTC)
    given: dict[str, Any] = {"origin": ORIGIN, "ip": PUBLIC_ADDRESS, "tag": "pay", "now": moment, "proven": True}
    expected = Expected(live.organization.id, "development", ORIGIN, PUBLIC_ADDRESS, "pay", moment, proven=True)

    def blocking() -> list[str | None]:
        with Client(live.url, secret) as client:
            check = partial(client.check, is_first_use=lambda _: True)
            return [check(answer["request_id"], **given).problem for answer in answers]

    assert await trio.to_thread.run_sync(blocking) == ["unproven", None]
    async with AsyncClient(live.url, secret) as client:
        checked = [await client.check(one["request_id"], is_first_use=lambda _: True, **given) for one in answers]
        verdicts = [
            await client.check_verdict(one["verdict"], expected, is_first_use=lambda _: True) for one in answers
        ]
    assert [one.problem for one in checked] == ["unproven", None]
    assert [one.problem for one in verdicts] == ["unproven", None]


async def test_a_visit_is_proven_from_any_network_and_after_any_change(live: Live, browser: Browser):
    """The key says who it is, not where."""
    first = await browser.visit()
    live.clock.advance(hours=24)
    browser.device = report(1, timezone="Europe/Paris")
    abroad = await browser.visit(ip=ELSEWHERE)
    assert (abroad["visitor_id"], abroad["proven"]) == (first["visitor_id"], True)


async def test_a_token_from_before_there_were_keys_gets_one(browser: Browser):
    """Decisions 18.2: three days at an address that it had on two days before."""
    key, browser.key = browser.key, None
    old = await browser.days(2)
    browser.key = key
    signed = [await browser.days(1) for _ in range(4)]
    assert {one["visitor_id"] for one in signed} == {old["visitor_id"]}
    assert [one["proven"] for one in signed] == [False, False, False, True]


@pytest.mark.slow(0.2)
async def test_a_thief_does_not_own_the_token_that_he_signs_first(live: Live):
    """Decisions 18.2: with token and report, in the owner's network, before the site's SDK makes keys."""
    owner, thief = Browser(live), Browser(live, 2)
    key, owner.key = owner.key, None
    first = await owner.days(5)
    near = PUBLIC_ADDRESS.rsplit(".", 1)[0] + ".250"
    await thief.visit(ip=near)
    live.clock.advance(hours=8 * 24)
    owner.key = key
    for _ in range(7):
        mine, stolen = await owner.visit(), await thief.visit(ip=ELSEWHERE)
        assert (mine["visitor_id"], mine["proven"], stolen["proven"]) == (first["visitor_id"], False, False)
        assert "token_conflict" not in fired(mine)
        live.clock.advance(hours=24)


async def test_the_key_of_another_browser_proves_nothing(live: Live):
    browser, thief = Browser(live), Browser(live, 2)
    await browser.visit()
    assert (await thief.visit())["proven"] is False
    assert (await browser.visit())["proven"] is True, "the thief has not put its own key in the place of the right one"


@pytest.mark.parametrize("origin", [OTHER_ORIGIN, "https://shop.example:8443"])
async def test_a_proof_for_another_origin_proves_nothing(browser: Browser, origin: str):
    await browser.visit()
    assert (await browser.visit(browser.body(origin)))["proven"] is False


async def test_a_report_that_is_sent_again_is_not_proven_again(live: Live, browser: Browser):
    await browser.visit()
    body = browser.body()
    assert (await browser.visit(body))["proven"] is True
    live.clock.advance(hours=6 * 24)
    again = await browser.visit(body, ip=ELSEWHERE)
    assert again["proven"] is False
    assert "replayed" in fired(again)
    assert (await browser.visit())["proven"] is True


async def test_within_a_week_of_the_first_proof_the_token_is_believed_without(browser: Browser):
    first = await browser.days(6)
    browser.key = None
    bare = await browser.visit()
    assert (bare["visitor_id"], bare["visitor_confidence"], bare["proven"]) == (first["visitor_id"], 89, False)
    assert "token_conflict" not in fired(bare)


async def test_after_a_week_a_token_without_its_proof_is_as_none_and_says_so(live: Live):
    """A copied token, with another device, from elsewhere: the visitor of the token is not meant."""
    browser, thief = Browser(live), Browser(live)
    first = await browser.days(9)
    thief.key, thief.device = None, report(5)
    stolen = await thief.visit(ip=ELSEWHERE)
    assert stolen["visitor_id"] != first["visitor_id"]
    assert stolen["proven"] is False
    assert "token_conflict" in fired(stolen)
    owner = await browser.visit()
    assert (owner["visitor_id"], owner["proven"]) == (first["visitor_id"], True)
    assert "token_conflict" not in fired(owner)


@pytest.mark.parametrize("signs", [False, True], ids=["without a key", "by a key of its own"])
async def test_after_a_week_token_and_report_together_are_not_the_victim_from_elsewhere(live: Live, signs: bool):
    """All that scripts can read, sent by somebody who cannot sign."""
    browser, thief = Browser(live), Browser(live, 2)
    first = await browser.days(9)
    if not signs:
        thief.key = None
    stolen = await thief.visit(ip=ELSEWHERE)
    assert "token_conflict" in fired(stolen)
    assert stolen["proven"] is False
    assert (stolen["visitor_id"], stolen["visitor_confidence"]) != (first["visitor_id"], 100)
    owner = await browser.visit()
    assert (owner["visitor_id"], owner["proven"]) == (first["visitor_id"], True)


async def test_who_lost_the_key_comes_with_another_token_and_no_conflict(browser: Browser):
    """What the web SDK does where storage is evicted in part: at home the report alone finds the visitor."""
    first = await browser.days(9)
    browser.key, browser.token = BrowserKey(7), "f" * 32
    lost, again = await browser.visit(browser.body(client_token_is_new=True)), await browser.visit()
    assert [one["visitor_id"] for one in (lost, again)] == [first["visitor_id"]] * 2
    assert [one["proven"] for one in (lost, again)] == [False, True]
    assert "token_conflict" not in fired(lost) | fired(again)


async def test_a_token_that_stays_at_home_is_no_conflict(browser: Browser):
    """What the web SDK does where the key is out of reach for once."""
    first = await browser.days(9)
    key, browser.key = browser.key, None
    signals = browser.signals()
    del signals["client_token"]
    bare = await browser.visit(compact(signals))
    assert (bare["visitor_id"], bare["proven"]) == (first["visitor_id"], False)
    assert "token_conflict" not in fired(bare)
    browser.key = key
    assert (await browser.visit())["proven"] is True


async def test_a_clock_that_is_wrong_by_a_day_still_proves(live: Live, browser: Browser):
    await browser.visit()
    for hours in (-24, 24):
        late = browser.body(collected_at=live.clock.now_ms + hours * 3_600_000)
        assert (await browser.visit(late))["proven"] is True


@pytest.mark.any_store
def test_a_replay_of_stored_reports_proves_what_was_proven(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, directory: Path
):
    """`docs/backtesting.md`: bytes, origin and time are those that were stored."""
    at_ms = 1_772_359_200_000
    lines: list[bytes] = []
    for hour in range(2):
        signals = report(client_token=TOKEN, nonce=f"replayed-{hour}", collected_at=at_ms + hour * 3_600_000)
        seen = compact({"at": f"2026-03-01T{10 + hour}:00:00Z", "ip": PUBLIC_ADDRESS, "origin": ORIGIN})
        lines.append(seen[:-1] + b',"signals":' + BrowserKey().signed(signals) + b"}\n")
    answers: list[dict[str, Any]] = program(capsys, monkeypatch, directory).replay(b"".join(lines).decode())
    assert [answer["proven"] for answer in answers] == [False, True]


@pytest.mark.any_store
async def test_a_duplicate_says_nothing_and_proves_nothing(live: Live):
    """Decisions 3.2: the attempts of one call send the same bytes; the second is no replay."""
    browser = Browser(live)
    await browser.visit()
    body, public = browser.body(), live.issue()[1]
    headers = {**BROWSER, "idempotency-key": "once"}
    first, again = [(await send(live, public, body, headers)).json() for _ in range(2)]
    assert first["proven"] is True
    assert again == {"request_id": first["request_id"], "duplicate": True}


# Proofs of reports over HTTP (docs/adr/0084): what is verified, and what the event says of it


KEY = BrowserKey()


def signals(live: Live, nonce: str = "n-000001", **changes: Any) -> dict[str, Any]:
    return report(client_token=TOKEN, nonce=nonce, collected_at=live.clock.now_ms, **changes)


async def proof_of(live: Live, request_id: str) -> str | None:
    """What the event says of the proof; `None` where it says nothing."""
    _, secret = live.issue("secret")
    event = (await live.client.get(f"/api/v1/events/{request_id}", headers={"x-api-key": secret})).json()
    return event["document"]["linkage"].get("proof")


async def proof_of_visit(live: Live, key: str, body: bytes, headers: dict[str, str] = BROWSER, **given: Any) -> Any:
    return await proof_of(live, succeeded(await send(live, key, body, headers, **given))["request_id"])


async def test_a_report_that_its_browser_signed_is_known_as_such(live: Live):
    key = live.issue()[1]
    assert await proof_of_visit(live, key, KEY.signed(signals(live))) == "valid"


async def test_a_report_without_a_proof_is_identified_and_nothing_is_said_of_one(live: Live):
    key = live.issue()[1]
    answer = (await visit(live, key, signals(live))).json()
    assert answer["proven"] is False
    assert await proof_of(live, answer["request_id"]) is None


async def test_the_origin_that_is_signed_is_the_origin_of_the_request(live: Live):
    key = live.issue(allowed_origins=(ORIGIN, OTHER_ORIGIN))[1]
    assert await proof_of_visit(live, key, KEY.signed(signals(live)), origin=OTHER_ORIGIN) == "signature"
    body = KEY.signed(signals(live, "n-000002"), OTHER_ORIGIN)
    assert await proof_of_visit(live, key, body, origin=OTHER_ORIGIN) == "valid"


async def test_a_proxy_forwards_the_origin_and_the_proof_holds(live: Live):
    """Decisions 2.9: the origin is the visitor's, not that of the proxy's own request."""
    _, proxy = live.issue("proxy")
    forwarded = {
        "x-svc-visitor-ip": PUBLIC_ADDRESS,
        "x-svc-visitor-origin": ORIGIN,
        "x-svc-public-key": live.issue()[1],
    }
    assert await proof_of_visit(live, proxy, KEY.signed(signals(live)), forwarded, origin=None) == "valid"
    server = live.issue("secret")[1]
    from_a_server = KEY.signed(signals(live, "n-000002"))
    assert await proof_of_visit(live, server, from_a_server, {}, origin=None) == "no_origin"


async def test_a_proxy_that_reserializes_the_json_costs_the_proof(live: Live):
    key = live.issue()[1]
    signed = KEY.signed(signals(live))
    assert await proof_of_visit(live, key, json.dumps(json.loads(signed)).encode()) == "signature"


async def test_a_clock_that_is_wrong_by_a_week_proves(live: Live):
    key = live.issue()[1]
    for nonce, wrong_ms, found in (
        ("n-000001", WINDOW_MS, "valid"),
        ("n-000002", -WINDOW_MS, "valid"),
        ("n-000003", WINDOW_MS + 1, "time"),
        ("n-000004", -WINDOW_MS - 1, "time"),
    ):
        body = KEY.signed({**signals(live, nonce), "collected_at": live.clock.now_ms + wrong_ms})
        assert await proof_of_visit(live, key, body) == found


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"client_proof": "A" * 86}, "malformed"),
        ({"client_key": "A" * 87, "client_proof": "A" * 86}, "malformed"),
        ({"client_key": 7, "client_proof": ["A"]}, None),
        ({"client_key": "é" * 87, "client_proof": "\u0000" * 86}, "malformed"),
        ({"client_key": "A" * 900_000}, None),
    ],
)
async def test_no_key_and_no_proof_fails_an_identification(live: Live, members: dict[str, Any], found: str | None):
    key = live.issue()[1]
    assert await proof_of_visit(live, key, compact({**signals(live), **members})) == found


async def test_a_deferred_report_needs_no_proof(live: Live):
    """Its token was given to the client that made the identification, in the response; and it changes nothing."""
    key = live.issue()[1]
    answer = (await send(live, key, KEY.signed(signals(live)), BROWSER)).json()
    body = {"token": answer["deferred_token"], "sdk": {"platform": "web"}, "signals": {"tier": "deferred"}}
    path = f"/api/v1/events/{answer['request_id']}/supplement"
    response = await live.client.post(path, json=body, headers={"x-api-key": key, "origin": ORIGIN})
    assert response.status_code == 202


async def test_key_and_proof_are_of_no_weight_in_matching_without_a_token(live: Live):
    """They differ from visit to visit and say nothing of the device: the report is the one that was seen before."""
    key = live.issue()[1]
    first = (await send(live, key, KEY.signed(signals(live)), BROWSER)).json()
    bare = report(nonce="n-000002", collected_at=live.clock.now_ms)
    again = (await visit(live, key, bare)).json()
    assert (again["visitor_id"], again["visitor_confidence"]) == (first["visitor_id"], 89)


async def test_a_refused_request_uses_no_nonce(live: Live):
    """Decisions 4: what is over the limit is not even assessed, so that the retry of the same bytes proves."""
    key = live.issue(organization=live.new_organization(rate_limit=1).number)[1]
    bodies = [KEY.signed(signals(live, f"n-{turn:06d}")) for turn in range(2)]
    assert [(await send(live, key, body, BROWSER)).status_code for body in bodies] == [200, 429]
    live.clock.advance(seconds=2)
    answer = succeeded(await send(live, key, bodies[1], BROWSER))
    assert "triggers" not in answer
