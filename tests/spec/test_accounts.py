"""Decisions 11: accounts, actions, velocity, the signals of the group `account`, and changes of events."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

import msgspec
import pytest

from svc.features.checks.invariants import violations
from svc.features.inspection.subject_rows import SubjectRows
from svc.features.retention.sweeper import Progress, sweep
from svc.features.rules.jobs import facts_now
from svc.identify.tables import ACCOUNTS, EVENTS, VISITOR_IDS
from svc.identify.velocity.record import MAX_VISITORS, AccountRecord
from svc.kernel.tenants.queries import organization
from tests.spec.automation import Automation
from tests.spec.responses import IDENTIFY, TOO_LITTLE, act, assert_error, assert_invalid, nothing_stored, visit
from tests.support.live import ORIGIN, Live, report, succeeded


async def event_of(live: Live, secret: str, answer: dict[str, Any]) -> dict[str, Any]:
    return succeeded(await live.client.get(f"/api/v1/events/{answer['request_id']}", headers={"x-api-key": secret}))


async def patch(live: Live, secret: str, answer: dict[str, Any], **fields: Any) -> Any:
    path = f"/api/v1/events/{answer['request_id']}"
    return await live.client.patch(path, json=fields, headers={"x-api-key": secret})


def records(live: Live) -> list[AccountRecord]:
    with live.found.store.read() as snapshot:
        return [record for _, record in snapshot.scan(ACCOUNTS)]


def fired(event: dict[str, Any]) -> set[str]:
    return {signal["signal"] for signal in event["signals"] if signal["group"] == "account"}


# 11.1: what is sent


async def test_an_account_and_an_action_are_kept_as_sent_and_not_echoed(live: Live, public: str, secret: str):
    """Decisions 11.1."""
    answer = await act(live, public, "Ünser Kunde #1 ", action="log_in")
    assert {"account_id", "action", "account_verified"} & set(answer) == set()
    event = await event_of(live, secret, answer)
    assert (event["account_id"], event["action"], event["account_verified"]) == ("Ünser Kunde #1 ", "log_in", False)
    plain = await event_of(live, secret, await act(live, public))
    assert {"account_id", "action", "account_verified"} & set(plain) == set()


async def test_the_account_of_a_secret_key_is_verified_and_that_of_a_proxy_is_not(live: Live, public: str, secret: str):
    _, proxy = live.issue("proxy", "production")
    for sent, verified in (({"x-api-key": secret}, True), ({"x-api-key": proxy, "x-svc-public-key": public}, False)):
        headers = {"x-svc-visitor-ip": "81.2.69.160", "x-svc-visitor-origin": ORIGIN, **sent}
        body = {"sdk": {}, "signals": report(), "account_id": "a"}
        answer = succeeded(await live.client.post(IDENTIFY, json=body, headers=headers))
        assert (await event_of(live, secret, answer))["account_verified"] is verified


async def test_an_account_or_action_of_another_form_is_refused(live: Live, public: str):
    """Decisions 11.1."""
    before = live.contents()
    for field, value, issue in (
        ("account_id", "", "invalid_value"), ("account_id", "x" * 257, "invalid_value"),
        ("account_id", "a\nb", "invalid_value"), ("account_id", "a\n", "invalid_value"),
        ("account_id", "\x85", "invalid_value"), ("account_id", None, "wrong_type"), ("account_id", 7, "wrong_type"),
        ("action", "", "invalid_value"), ("action", "Log_in", "invalid_value"), ("action", "1st", "invalid_value"),
        ("action", "log_in\n", "invalid_value"), ("action", "a" * 65, "invalid_value"), ("action", None, "wrong_type"),
    ):  # fmt: skip
        assert_invalid(await visit(live, public, report(), **{field: value}), field, issue)
        assert live.contents() == before


async def test_the_longest_account_and_action_are_accepted(live: Live, public: str, secret: str):
    event = await event_of(live, secret, await act(live, public, "ü" * 256, action="a" + "-." * 31 + "z"))
    assert event["account_id"] == "ü" * 256


async def test_events_are_listed_by_account_action_and_network(live: Live, public: str, secret: str):
    first = await act(live, public, "a", action="sign_up")
    second = await act(live, public, "b", device=2, action="log_in")
    for query, expected in (
        ({"account_id": "a"}, [first]), ({"action": "log_in"}, [second]), ({"account_id": "c"}, []),
        ({"account_id": "b", "action": "sign_up"}, []), ({"asn": "1"}, []),
    ):  # fmt: skip
        found = await live.client.get("/api/v1/events", params=query, headers={"x-api-key": secret})
        assert [row["request_id"] for row in found.json()["rows"]] == [one["request_id"] for one in expected], query
    for name, value in (("account_id", ""), ("action", "X"), ("asn", "AS1")):
        wrong = await live.client.get("/api/v1/events", params={name: value}, headers={"x-api-key": secret})
        assert_invalid(wrong, name, "invalid_value", "query")


# 11.4: velocity


async def test_velocity_counts_events_and_distinct_others_this_event_included(live: Live, public: str, secret: str):
    await act(live, public, "a")
    live.clock.advance(hours=2)
    await act(live, public, "b")
    answer = await act(live, public, "a")
    assert "velocity" not in answer
    velocity = (await event_of(live, secret, answer))["velocity"]
    assert velocity["visitor"]["events"] == {"1h": 2, "24h": 3, "30d": 3}
    assert velocity["visitor"]["accounts"] == {"1h": 2, "24h": 2, "30d": 2}
    assert velocity["visitor"]["addresses"] == {"1h": 1, "24h": 1, "30d": 1}
    assert velocity["account"] == {
        "events": {"1h": 1, "24h": 2, "30d": 2},
        "visitors": {"1h": 1, "24h": 1, "30d": 1},
        "addresses": {"1h": 1, "24h": 1, "30d": 1},
        "countries": velocity["account"]["countries"],
    }
    assert velocity["address"] == {
        "events": {"1h": 2, "24h": 3, "30d": 3},
        "visitors": {"1h": 1, "24h": 1, "30d": 1},
        "accounts": {"1h": 2, "24h": 2, "30d": 2},
    }
    listed = await live.client.get("/api/v1/events", headers={"x-api-key": secret})
    assert listed.json()["rows"][0]["velocity"] == velocity


async def test_without_an_account_there_is_no_velocity_of_one(live: Live, public: str, secret: str):
    event = await event_of(live, secret, await act(live, public))
    assert set(event["velocity"]) == {"visitor", "address"}
    assert event["velocity"]["visitor"]["accounts"] == {"1h": 0, "24h": 0, "30d": 0}


@pytest.mark.slow(0.6)
async def test_64_or_more_are_64(live: Live, public: str, secret: str):
    for number in range(70):
        answer = await act(live, public, f"account {number}")
    velocity = (await event_of(live, secret, answer))["velocity"]
    for counts in (velocity["visitor"]["accounts"], velocity["visitor"]["events"], velocity["address"]["accounts"]):
        assert counts == {"1h": 64, "24h": 64, "30d": 64}


async def test_development_and_staging_are_counted_together_and_production_apart(live: Live, public: str, secret: str):
    for environment in ("development", "staging"):
        _, key = live.issue(environment=environment)
        _, read = live.issue("secret", environment)
        answer = await act(live, key, "a")
        last = (await event_of(live, read, answer))["velocity"]["account"]["events"]["1h"]
    assert last == 2
    event = await event_of(live, secret, await act(live, public, "a"))
    assert event["velocity"]["account"]["events"]["1h"] == 1


async def test_a_visitor_that_is_not_identifiable_is_not_counted_as_one(live: Live, secret: str):
    for _ in range(3):
        headers = {"x-svc-visitor-ip": "81.2.69.160", "x-api-key": secret}
        body = {"sdk": {}, "signals": {"q": [1]}, "account_id": "a"}
        response = await live.client.post(IDENTIFY, json=body, headers=headers)
        assert response.json()["identifiable"] is False
    velocity = (await event_of(live, secret, response.json()))["velocity"]
    assert velocity["account"]["events"]["1h"] == 3
    assert velocity["account"]["visitors"]["1h"] == 0
    assert velocity["address"]["visitors"]["1h"] == 0


async def test_what_is_over_30_days_old_counts_no_more(live: Live, public: str, secret: str):
    await act(live, public, "a")
    live.clock.advance(hours=29 * 24)
    event = await event_of(live, secret, await act(live, public, "b"))
    assert event["velocity"]["visitor"]["accounts"]["30d"] == 2
    live.clock.advance(hours=2 * 24)
    event = await event_of(live, secret, await act(live, public, "b"))
    assert event["velocity"]["visitor"]["accounts"] == {"1h": 1, "24h": 1, "30d": 1}


# 11.5: signals


async def test_a_visitor_of_three_accounts_fires_multi_account(live: Live, public: str, secret: str):
    seen = [fired(await event_of(live, secret, await act(live, public, name))) for name in ("a", "b", "b", "c")]
    assert seen == [set(), set(), set(), {"multi_account"}]
    event = await event_of(live, secret, await act(live, public))
    assert fired(event) == {"multi_account"}, "its counts are what counts, not the request"
    assert fired(await event_of(live, secret, await act(live, public, device=2))) == set()


async def test_five_accounts_of_a_visitor_within_an_hour_fire_account_testing(live: Live, public: str, secret: str):
    for number in range(4):
        assert "account_testing" not in fired(await event_of(live, secret, await act(live, public, f"a{number}")))
    event = await event_of(live, secret, await act(live, public, "a4"))
    assert "account_testing" in fired(event)
    assert event["document"]["evidence"]["account_testing"] == ["many_accounts_of_visitor_in_an_hour"]
    weights = {signal["signal"]: signal["weight"] for signal in event["signals"]}
    assert (weights["multi_account"], weights["account_testing"]) == (10, 30)


@pytest.mark.slow(0.2)
async def test_twenty_accounts_of_an_address_within_an_hour_fire_account_testing(live: Live, public: str, secret: str):
    for device in range(1, 21):
        answer = await act(live, public, f"a{device}", device=device)
    event = await event_of(live, secret, answer)
    assert "account_testing" in fired(event)
    assert event["document"]["evidence"]["account_testing"] == ["many_accounts_of_address_in_an_hour"]


async def test_an_account_of_six_visitors_is_shared_and_weighs_nothing_by_default(live: Live, public: str, secret: str):
    for device in range(1, 7):
        answer = await act(live, public, "a", device=device)
    assert fired(await event_of(live, secret, answer)) == set()
    _, management = live.issue("management")
    path = f"/api/v1/management/organizations/{live.organization.id}/risk-weights/web"
    saved = await live.client.put(path, json={"weights": {"account_sharing": 15}}, headers={"x-api-key": management})
    assert saved.status_code == 200, saved.text
    event = await event_of(live, secret, await act(live, public, "a"))
    assert "account_sharing" in fired(event)
    assert event["document"]["evidence"]["account_sharing"] == ["many_visitors_of_account"]


@pytest.mark.slow(0.2)
async def test_a_new_visitor_of_an_account_that_is_known_for_a_day_fires(live: Live, public: str, secret: str):
    """It is had after two earlier days; the first one is had from the start. What nobody verified on one day
    excuses nothing, however often.
    """

    async def is_foreign(device: int) -> bool:
        return "account_new_device" in fired(await event_of(live, secret, await act(live, public, "a", device=device)))

    assert [await is_foreign(device) for device in (1, 2, 2)] == [False, False, False], "the account is new itself"
    live.clock.advance(hours=24)
    assert [await is_foreign(device) for device in (1, 2, 2, 3, 3)] == [False, True, True, True, True]
    live.clock.advance(hours=24)
    assert [await is_foreign(device) for device in (1, 2, 3, 4)] == [False, False, True, True]


@pytest.mark.slow(0.2)
async def test_a_visitor_is_had_once_a_backend_verified_the_pair(live: Live, public: str, secret: str):
    await act(live, public, "a")
    live.clock.advance(hours=24)
    stranger = await act(live, public, "a", device=2)
    assert "account_new_device" in fired(await event_of(live, secret, stranger))
    assert (await patch(live, secret, stranger, account_id="a")).json()["account_verified"] is True
    assert fired(await event_of(live, secret, await act(live, public, "a", device=2))) == set()
    assert "account_new_device" in fired(await event_of(live, secret, await act(live, public, "a", device=3)))
    await patch(live, secret, stranger, account_id=None)
    assert "account_new_device" in fired(await event_of(live, secret, await act(live, public, "a", device=2)))


async def test_the_first_visitor_is_that_of_the_first_event_whenever_a_backend_says_whose_it_was(
    live: Live, public: str, secret: str
):
    """11.5: who names an account before the backend sets it at its sign-up does not become the account's first."""
    signed_up = await act(live, public, action="sign_up")
    live.clock.advance(hours=1)
    await act(live, public, "a", device=2)
    await patch(live, secret, signed_up, account_id="a")
    live.clock.advance(hours=23)
    assert "account_new_device" in fired(await event_of(live, secret, await act(live, public, "a", device=2)))
    assert fired(await event_of(live, secret, await act(live, public, "a"))) == set()


@pytest.mark.parametrize("silent_days", [2, 29, 45, 61, 200])
async def test_a_dormant_account_is_still_known(live: Live, public: str, secret: str, silent_days: int):
    """11.5: its first day and its visitors are kept as long as visitors are, not for the windows alone."""
    await act(live, public, "a")
    live.clock.advance(hours=24)
    await act(live, public, "a")
    live.clock.advance(hours=24 * silent_days)
    now_ms = live.clock.now_ms
    await sweep(live.found.store, now_ms, 365, Progress(now_ms), with_passes=True)
    stranger = await event_of(live, secret, await act(live, public, "a", device=2))
    assert "account_new_device" in fired(stranger)
    assert fired(await event_of(live, secret, await act(live, public, "a"))) == set(), "its own device is its own"


async def test_an_account_has_an_age_from_its_real_first_day_and_none_where_it_is_not_known(
    live: Live, admin: Automation, public: str, secret: str
):
    rules = [{"name": "Old", "condition": "account.age_days >= 100", "action": "review", "mode": "shadow"}]
    saved = await admin("PUT", "/rules", {"revision": 0, "rules": rules})
    assert saved.status_code == 200, saved.text
    await act(live, public, "a")
    live.clock.advance(hours=24 * 100)
    old = await act(live, public, "a")
    new = await act(live, public, "b")
    shadows = [(await event_of(live, secret, answer)).get("shadow") for answer in (old, new)]
    assert [bool(shadow) for shadow in shadows] == [True, False]
    for _, key in ((1, "a"), (2, "b")):
        erased = await admin("DELETE", f"/accounts/{key}")
        assert erased.status_code == 204, erased.text
    with live.found.store.read() as snapshot:
        event = snapshot.get(EVENTS, live.organization.number, UUID(old["request_id"]).bytes)
        assert event is not None
        named = msgspec.structs.replace(event, account_id="a")
        owner = organization(snapshot, live.organization.number)
        assert facts_now(snapshot, owner, named, live.clock.now_ms).ages.account is None


@pytest.mark.slow(0.2)
async def test_accounts_are_forgotten_with_the_visitors(live: Live, public: str):
    async def visitors_kept(days: int) -> list[int]:
        live.clock.advance(hours=24 * days)
        now_ms = live.clock.now_ms
        await sweep(live.found.store, now_ms, 365, Progress(now_ms), with_passes=True)
        return sorted(len(record.visitors) for record in records(live))

    await act(live, public, "a")
    await act(live, public, "b")
    assert await visitors_kept(200) == [1, 1]
    await act(live, public, "b", device=2)
    assert await visitors_kept(160) == [1, 2]
    assert await visitors_kept(6) == [1], "of b the visitor that was seen since is left"
    assert await visitors_kept(200) == []


@pytest.mark.slow(0.6)
async def test_what_is_verified_for_outlives_claims(live: Live, public: str, secret: str):
    """11.5: of 64 visitors those go first that nobody verified and that came on few days."""
    await act(live, public, "a", device=100)
    verified = await act(live, public, "a", device=1)
    await patch(live, secret, verified, account_id="a")
    for device in range(2, MAX_VISITORS + 10):
        await act(live, public, "a", device=device)
    (record,) = records(live)
    assert len(record.visitors) == MAX_VISITORS
    assert [known.is_first for known in record.visitors].count(True) == 1
    assert [bool(known.verified_s) for known in record.visitors].count(True) == 1


# 11.2: sign-ups


async def counts(live: Live, secret: str, answer: dict[str, Any]) -> tuple[int, int]:
    """Accounts of the visitor and of the address within an hour, as an event shows them."""
    velocity = (await event_of(live, secret, answer))["velocity"]
    return velocity["visitor"]["accounts"]["1h"], velocity["address"]["accounts"]["1h"]


async def sign_up(live: Live, public: str, **fields: Any) -> dict[str, Any]:
    return await act(live, public, action="sign_up", **fields)


async def test_a_sign_up_counts_the_account_that_is_being_opened(live: Live, public: str, secret: str):
    """The third of a device counts 3 while it is answered, whether or not earlier ones have got their account."""
    first, second = await sign_up(live, public), await sign_up(live, public)
    assert [await counts(live, secret, each) for each in (first, second)] == [(1, 1), (2, 2)]
    await patch(live, secret, first, account_id="a")
    third = await sign_up(live, public)
    assert await counts(live, secret, third) == (3, 3)
    assert fired(await event_of(live, secret, third)) == {"multi_account"}
    last = [await sign_up(live, public) for _ in range(2)][-1]
    assert fired(await event_of(live, secret, last)) == {"multi_account", "account_testing"}


@pytest.mark.slow(0.2)
async def test_an_account_that_is_set_takes_the_place_of_its_sign_up(live: Live, public: str, secret: str):
    answers = [await sign_up(live, public) for _ in range(3)]

    async def now() -> tuple[int, int]:
        return await counts(live, secret, await act(live, public, action="view"))

    for number, answer in enumerate(answers):
        await patch(live, secret, answer, account_id=f"a{number}")
        assert await now() == (3, 3)
    await patch(live, secret, answers[0], account_id="a1")
    assert await now() == (2, 2), "two sign-ups are of one account"
    await patch(live, secret, answers[0], account_id=None)
    assert await now() == (3, 3), "without an account it is one of its own again"
    await patch(live, secret, answers[0], action="sign_up_failed")
    assert await now() == (2, 2)
    await patch(live, secret, answers[0], action="sign_up")
    assert await now() == (3, 3)
    await patch(live, secret, answers[0], action=None, account_id="a0")
    await patch(live, secret, answers[1], tag="x")
    assert await now() == (3, 3)


async def test_a_sign_up_is_no_row_of_accounts_and_is_found_by_min_accounts(live: Live, public: str, secret: str):
    answer = [await sign_up(live, public) for _ in range(3)][-1]
    await act(live, public, device=2)

    async def read(path: str, **query: Any) -> Any:
        return succeeded(await live.client.get(f"/api/v1/{path}", params=query, headers={"x-api-key": secret}))

    visitor = await read(f"visitors/{answer['visitor_id']}")
    assert (visitor["velocity"]["accounts"]["30d"], visitor["accounts"]) == (3, [])
    assert [row["visitor_id"] for row in (await read("visitors", min_accounts=3))["visitors"]] == [answer["visitor_id"]]
    assert (await read("accounts"))["accounts"] == []


@pytest.mark.slow(0.2)
async def test_a_sign_up_that_is_erased_counts_no_more(live: Live, admin: Automation, public: str, secret: str):
    gone = await sign_up(live, public)
    named = await sign_up(live, public, device=2)
    await patch(live, secret, named, account_id="a")
    await sign_up(live, public, device=3)
    assert (await admin("DELETE", f"/visitors/{gone['visitor_id']}")).status_code == 204
    assert await counts(live, secret, await act(live, public, device=3)) == (1, 2)
    assert (await admin("DELETE", "/accounts/a")).status_code == 204
    assert await counts(live, secret, await act(live, public, device=2)) == (1, 2), "it is a sign-up without an account"
    with live.found.store.read() as snapshot:
        assert list(violations(snapshot)) == []
    for device in (2, 3):
        await admin("DELETE", f"/visitors/{(await act(live, public, device=device))['visitor_id']}")
    assert await counts(live, secret, await act(live, public, device=4)) == (0, 0)


# 11.4: replays


@pytest.mark.slow(0.2)
async def test_a_replayed_report_moves_no_count_and_makes_no_pair_seen(live: Live, public: str, secret: str):
    device = report(1) | {"client_token": f"{1:032x}"}
    await visit(live, public, device)
    own = {"nonce": "0123456789abcdef"}
    answer = await visit(live, public, device | own, account_id="own")
    sent = answer
    for number in range(6):
        headers = {"x-forwarded-for": f"91.3.4.{number}"}
        sent = await visit(live, public, device | own, headers=headers, account_id=f"x{number}", action="sign_up")
        event = await event_of(live, secret, sent.json())
        assert "replayed" in {signal["signal"] for signal in event["signals"]}
        assert event["visitor_id"] == answer.json()["visitor_id"]
        assert event["velocity"]["visitor"]["accounts"]["30d"] == 1
        assert event["velocity"]["account"]["events"]["30d"] == event["velocity"]["address"]["events"]["30d"] == 0
    event = await event_of(live, secret, (await visit(live, public, device, account_id="own")).json())
    assert event["visitor_id"] == answer.json()["visitor_id"]
    assert event["velocity"]["visitor"]["accounts"]["30d"] == 1
    assert event["velocity"]["visitor"]["addresses"]["30d"] == 1
    assert {"account_testing", "multi_account", "velocity_ip"}.isdisjoint(each["signal"] for each in event["signals"])
    before = records(live)
    assert (await patch(live, secret, sent.json(), account_id="own")).status_code == 200
    assert records(live) == before, "nobody verifies a replay"
    event = await event_of(live, secret, (await visit(live, public, device)).json())
    assert event["velocity"]["visitor"]["accounts"]["30d"] == 1


# 11.2: changes of an event


async def test_a_backend_sets_and_removes_what_it_knows_afterwards(live: Live, public: str, secret: str):
    answer = await act(live, public, tag="nonce", action="sign_up")
    before = await event_of(live, secret, answer)
    changed = (await patch(live, secret, answer, account_id="user-1", tag=None)).json()
    assert (changed["account_id"], changed["account_verified"], changed["action"]) == ("user-1", True, "sign_up")
    assert "tag" not in changed
    assert changed == await event_of(live, secret, answer)
    kept = {"visitor_id", "velocity", "signals", "suspect_score", "occurred_at"}
    assert {name: changed[name] for name in kept} == {name: before[name] for name in kept}
    assert (await patch(live, secret, answer)).json() == changed, "{} changes nothing"
    removed = (await patch(live, secret, answer, account_id=None)).json()
    assert {"account_id", "account_verified"} & set(removed) == set()


async def test_an_account_that_is_set_afterwards_is_found_and_counted(live: Live, public: str, secret: str):
    answers = [await act(live, public, device=1) for _ in range(3)]
    for number, answer in enumerate(answers):
        assert (await patch(live, secret, answer, account_id=f"a{number}")).status_code == 200
    event = await event_of(live, secret, await act(live, public, "a0"))
    assert event["velocity"]["visitor"]["accounts"]["1h"] == 3
    assert event["velocity"]["account"]["events"]["1h"] == 2
    found = await live.client.get("/api/v1/events", params={"account_id": "a1"}, headers={"x-api-key": secret})
    assert [row["request_id"] for row in found.json()["rows"]] == [answers[1]["request_id"]]


async def test_the_former_account_loses_what_no_other_event_has(live: Live, public: str, secret: str):
    first, second = await act(live, public, "a"), await act(live, public, "a")
    await act(live, public, "a", device=2)
    await patch(live, secret, first, account_id="b")
    velocity = (await event_of(live, secret, await act(live, public, "a", device=2)))["velocity"]
    assert velocity["account"]["visitors"]["1h"] == 2, "the other event of the first visitor has the pair"
    await patch(live, secret, second, account_id="b")
    velocity = (await event_of(live, secret, await act(live, public, "a", device=2)))["velocity"]
    assert velocity["account"]["visitors"]["1h"] == 1
    assert velocity["account"]["events"]["1h"] == 3
    velocity = (await event_of(live, secret, await act(live, public, "b")))["velocity"]
    assert velocity["visitor"]["accounts"]["1h"] == 1, "the visitor has lost the account, too"


async def test_what_the_former_account_keeps_it_saw_at_the_newest_event_that_is_left(
    live: Live, public: str, secret: str
):
    """Decisions 11.4: exact below 64 in each window. The event that leaves takes its time along."""
    await act(live, public, "a")
    live.clock.advance(hours=2)
    answer = await act(live, public, "a")
    await patch(live, secret, answer, account_id="b")

    async def read(path: str, kind: str) -> dict[str, int]:
        response = await live.client.get(f"/api/v1/{path}", headers={"x-api-key": secret})
        return response.json()["velocity"][kind]

    for kind in ("events", "visitors", "addresses", "countries"):
        expected = {"1h": 0, "24h": 1, "30d": 1} if kind != "countries" else {"1h": 0, "24h": 0, "30d": 0}
        assert await read("accounts/a", kind) == expected, kind
    assert await read(f"visitors/{answer['visitor_id']}", "accounts") == {"1h": 1, "24h": 2, "30d": 2}
    velocity = (await event_of(live, secret, await act(live, public, device=2)))["velocity"]
    assert velocity["address"]["accounts"] == {"1h": 1, "24h": 2, "30d": 2}


async def test_a_change_of_another_form_is_refused_and_changes_nothing(live: Live, public: str, secret: str):
    answer = await act(live, public, "a")
    with nothing_stored(live):
        for fields, field, issue in (
            ({"account_id": ""}, "account_id", "invalid_value"),
            ({"action": "Log in"}, "action", "invalid_value"),
            ({"tag": "x" * 1025}, "tag", "too_long"),
            ({"score": 1}, "score", "unknown_field"),
            ({"account_id": 1}, "account_id", "wrong_type"),
        ):
            assert_invalid(await patch(live, secret, answer, **fields), field, issue)


async def test_only_events_of_the_keys_environment_within_retention_are_changed(live: Live, public: str, secret: str):
    answer = await act(live, public, "a")
    _, other = live.issue("secret", "development")
    _, neighbor = live.issue("secret", "production", organization=live.new_organization().number)
    for key in (other, neighbor):
        assert_error(await patch(live, key, answer, action="x"), 404, "event_not_found")
    assert_error(await patch(live, public, answer, action="x"), 401, "unauthorized")
    wrong = await live.client.patch("/api/v1/events/1", json={}, headers={"x-api-key": secret})
    assert_error(wrong, 422, "invalid_request_id", ("request_id", "invalid_value", "path"))
    live.clock.advance(hours=31 * 24)
    assert_error(await patch(live, secret, answer, action="x"), 404, "event_not_found")


# Erasure (11.4, 7.6)


async def test_erasure_removes_the_part_of_a_visitor(live: Live, management: str, public: str, secret: str):
    answer = await act(live, public, "a")
    await act(live, public, "a", device=2)
    path = f"/api/v1/management/organizations/{live.organization.id}/visitors/{answer['visitor_id']}"
    assert (await live.client.delete(path, headers={"x-api-key": management})).status_code == 204
    velocity = (await event_of(live, secret, await act(live, public, "a", device=2)))["velocity"]
    assert velocity["account"]["visitors"]["1h"] == 1
    assert velocity["account"]["events"]["1h"] == 2
    assert velocity["address"]["visitors"]["1h"] == 1


async def test_an_account_keeps_what_nobody_erased(live: Live, management: str, public: str, secret: str):
    """Of somebody who cannot be recognized there are events, and no visitor whom the account is known to have."""
    await visit(live, public, TOO_LITTLE, account_id="a")
    answers = [await act(live, public, "a") for _ in range(3)]
    path = f"/api/v1/management/organizations/{live.organization.id}/visitors/{answers[0]['visitor_id']}"
    assert (await live.client.delete(path, headers={"x-api-key": management})).status_code == 204
    (record,) = records(live)
    assert (len(record.activity.events), record.visitors) == (1, ())
    velocity = (await event_of(live, secret, await act(live, public, "a", device=2)))["velocity"]
    assert (velocity["account"]["events"]["1h"], velocity["account"]["visitors"]["1h"]) == (2, 1)


async def test_an_account_that_only_an_erased_visitor_had_is_gone(live: Live, management: str, public: str):
    answers = [await act(live, public, "a") for _ in range(3)]
    path = f"/api/v1/management/organizations/{live.organization.id}/visitors/{answers[0]['visitor_id']}"
    assert (await live.client.delete(path, headers={"x-api-key": management})).status_code == 204
    assert list(records(live)) == []


@pytest.mark.slow(0.2)
async def test_a_visitor_is_erased_from_accounts_also_where_its_events_are_gone(live: Live, public: str):
    """What its events lead to at once; the rest, a number that leads nowhere, by the daily pass."""
    gone = await act(live, public, "old")
    await act(live, public, "old", device=2)
    live.clock.advance(hours=60 * 24)
    await sweep(live.found.store, live.clock.now_ms, 365, Progress(live.clock.now_ms), with_passes=True)
    await act(live, public, "new")
    await act(live, public, "new", device=2)
    number = live.organization.number
    with live.found.store.read() as snapshot:
        visitor = snapshot.get(VISITOR_IDS, number, gone["visitor_id"].encode())

    def naming() -> int:
        return sum(record.of(visitor) is not None for record in records(live))

    rows = SubjectRows(cast("Any", live.found.store), number, "visitor", gone["visitor_id"])
    kept = [row.value for row in rows.of_subject() if row.table is ACCOUNTS]
    assert [[known.visitor for known in record.visitors] for record in kept] == [[visitor], [visitor]]
    assert naming() == 2
    assert (await Automation(live)("DELETE", f"/visitors/{gone['visitor_id']}")).status_code == 204
    assert naming() == 1, "no event leads to the other"
    await sweep(live.found.store, live.clock.now_ms, 365, Progress(live.clock.now_ms), with_passes=True)
    assert naming() == 0
    assert [len(record.visitors) for record in records(live)] == [1, 1]
