"""Signals that need history, over HTTP (docs/signals.md; decisions 3.2, 6): replay, velocity, crowded addresses."""

from __future__ import annotations

from typing import Any

import pytest

from svc.identify.history.evidence import LOOKALIKES, MANY_ADDRESSES, MANY_VISITORS
from svc.identify.tables import ADDRESSES, REPORT_FINGERPRINTS, VISITORS
from tests.spec.responses import TOO_LITTLE, nothing_stored, visit
from tests.support.live import PUBLIC_ADDRESS, USER_AGENT, Live, report
from tests.support.worlds import EPOCH_MS

ELSEWHERE, HOME, FLOOD = "195.99.4.20", "81.2.69.9", "151.101.3.10"
NONCE = {"nonce": "3f1c9a0e5b7d42aa"}


def from_address(ip: str, **headers: str) -> dict[str, str]:
    return {"x-forwarded-for": ip, **headers}


async def triggers(live: Live, secret: str, signals: Any, ip: str = PUBLIC_ADDRESS, **headers: str) -> dict[str, Any]:
    """The triggers of one identification, by signal."""
    answer = (await visit(live, secret, signals, headers=from_address(ip, **headers))).json()
    return {trigger["signal"]: trigger for trigger in answer.get("triggers", ())}


# Replay


async def test_a_repeated_nonce_is_a_replay(live: Live, key: str):
    """From wherever and with whatever else it comes; 40 alone reaches the default threshold."""
    assert await triggers(live, key, report(**NONCE)) == {}
    live.clock.advance(seconds=1)
    again = await triggers(live, key, report(2, **NONCE))
    assert again == {"replayed": {"signal": "replayed", "group": "replay", "weight": 40, "confidence": "high"}}
    assert "replayed" in await triggers(live, key, report(**NONCE), ELSEWHERE)
    assert await triggers(live, key, report(nonce="3f1c9a0e5b7d42ab")) == {}
    events = [event for _, event in live.events()]
    assert [event.verdict.suspect_level for event in events] == ["low", "medium", "medium", "low"]
    assert events[1].verdict.triggers[0].signal == "replay"


async def test_an_old_report_repeated_from_elsewhere_is_a_replay(live: Live, key: str):
    sent = report(collected_at=EPOCH_MS)
    assert await triggers(live, key, sent) == {}
    live.clock.advance(seconds=601)
    assert await triggers(live, key, sent) == {}, "its own address"
    again = await triggers(live, key, sent, ELSEWHERE)
    assert (again["replayed"]["weight"], again["replayed"]["confidence"]) == (40, "medium")


async def test_a_replay_is_recognized_for_a_month_and_not_longer(live: Live, key: str):
    sent = report(collected_at=EPOCH_MS)
    await triggers(live, key, sent)
    live.clock.advance(hours=29 * 24)
    assert "replayed" in await triggers(live, key, sent, ELSEWHERE)
    live.clock.advance(hours=24)
    assert "replayed" not in await triggers(live, key, sent, ELSEWHERE)


async def test_an_honest_retry_is_a_duplicate_and_does_not_affect_history(live: Live):
    """Decisions 3.2: a duplicate changes nothing, fires nothing."""
    _, secret = live.issue()
    key = {"idempotency-key": "9b2f"}
    await visit(live, secret, report(collected_at=EPOCH_MS, **NONCE), headers=key)
    live.clock.advance(hours=1)
    with nothing_stored(live):
        for ip in (PUBLIC_ADDRESS, ELSEWHERE):
            headers = from_address(ip, **key)
            response = await visit(live, secret, report(collected_at=EPOCH_MS, **NONCE), headers=headers)
            assert response.json()["duplicate"] is True


async def test_equal_reports_without_nonce_and_time_are_not_a_replay(live: Live, key: str):
    for ip in (PUBLIC_ADDRESS, ELSEWHERE, PUBLIC_ADDRESS):
        assert await triggers(live, key, report(), ip) == {}
        live.clock.advance(hours=1)
    assert live.count(REPORT_FINGERPRINTS) == 0


async def test_a_replay_of_an_unidentifiable_report_is_recognized_too(live: Live, key: str):
    await triggers(live, key, TOO_LITTLE | NONCE)
    assert "replayed" in await triggers(live, key, TOO_LITTLE | NONCE)
    assert live.count(VISITORS) == 0


async def test_reports_of_one_organization_are_no_replay_in_another(live: Live, key: str):
    _, other = live.issue(organization=live.new_organization().number)
    await triggers(live, key, report(**NONCE))
    assert await triggers(live, other, report(**NONCE), ELSEWHERE) == {}


async def test_a_refused_report_leaves_no_history(live: Live, public: str):
    live.set_billing_status("blocked")
    with nothing_stored(live):
        assert (await visit(live, public, report(**NONCE))).status_code == 402
    live.set_billing_status("free")
    assert await triggers(live, public, report(**NONCE)) == {}


# Velocity


async def test_a_visitor_with_many_addresses_within_an_hour_is_detected(live: Live, key: str):
    fired = []
    for number in range(MANY_ADDRESSES):
        fired.append(list(await triggers(live, key, report(), f"81.2.69.{number}")))
        live.clock.advance(seconds=60)
    assert fired == [[]] * (MANY_ADDRESSES - 1) + [["velocity_ip"]]
    live.clock.advance(hours=1)
    assert await triggers(live, key, report()) == {}
    assert len({event.verdict.visitor_id for _, event in live.events()}) == 1


async def test_several_visitors_with_many_addresses_are_not_combined(live: Live, key: str):
    for number in range(MANY_ADDRESSES * 2):
        assert await triggers(live, key, report(number % 3), f"81.2.69.{number}") == {}


async def test_an_hour_continues_over_midnight(live: Live, key: str):
    """The clock of the tests starts at midnight, UTC; history lies by days."""
    live.clock.advance(hours=23.9)
    for number in range(MANY_ADDRESSES - 1):
        assert await triggers(live, key, report(), f"81.2.69.{number}") == {}
    live.clock.advance(hours=0.3)
    assert list(await triggers(live, key, report(), "81.2.69.99")) == ["velocity_ip"]


async def test_a_clock_set_back_is_harmless(live: Live, key: str):
    for number in range(MANY_ADDRESSES):
        await triggers(live, key, report(), f"81.2.69.{number}")
    live.clock.advance(hours=-24 * 400)
    assert await triggers(live, key, report()) == {}


# Addresses


ZONES = [
    "Europe/London", "America/Sao_Paulo", "Asia/Tokyo", "America/New_York", "Asia/Kolkata", "Africa/Lagos",
    "Europe/Berlin", "Australia/Sydney",
]  # fmt: skip


async def test_visitors_of_many_countries_behind_one_address_are_detected(live: Live, key: str):
    fired = [list(await triggers(live, key, report(number, timezone=ZONES[number]))) for number in range(MANY_VISITORS)]
    assert fired == [[]] * (MANY_VISITORS - 1) + [["residential_proxy_behavior"]]
    (document,) = [row for row in live.contents()["documents"] if "residential_proxy_low" in row[1].evidence]
    assert document[1].evidence["residential_proxy_behavior"] == ("many_countries",)
    assert await triggers(live, key, report(0), ELSEWHERE) == {}
    live.clock.advance(hours=24)
    assert await triggers(live, key, report(0)) == {}, "another day"


@pytest.mark.parametrize("ip", ["185.220.101.1", "10.1.2.3"])
async def test_visitors_behind_an_exit_or_a_private_address_fire_nothing(live: Live, key: str, ip: str):
    for number in range(MANY_VISITORS + 2):
        fired = await triggers(live, key, report(number, timezone=ZONES[number % len(ZONES)]), ip)
        assert "residential_proxy_behavior" not in fired
    with live.found.store.read() as snapshot:
        assert not any(activity.history.visitors for _, activity in snapshot.scan(ADDRESSES))


def listed(live: Live) -> list[bool]:
    """Of each visitor, in the order of their numbers, whether it stands in the block of its report."""
    return [visitor.listed for _, visitor in live.contents()["visitors"]]


async def copies(live: Live, secret: str, ip: str) -> None:
    """Reports that others have sent, each with a token of its own."""
    for number in range(LOOKALIKES + 2):
        copy = report(number, client_token=f"{ip} {number:032x}", client_token_is_new=True)
        answer = await visit(live, secret, copy, headers=from_address(ip))
        assert (answer.status_code, answer.json()["visitor_is_new"]) == (200, True)


@pytest.mark.slow
async def test_an_address_that_repeats_reports_of_others_stops_changing_what_matching_knows(live: Live, key: str):
    """Everybody is answered as usual. Another address, and the same one tomorrow, change as much as ever."""
    for number in range(LOOKALIKES + 3):
        await visit(live, key, report(number), headers=from_address(HOME))
    assert all(listed(live)), "new visitors with reports of their own"
    await copies(live, key, FLOOD)
    assert listed(live)[-LOOKALIKES - 2 :] == [True] * LOOKALIKES + [False] * 2
    await visit(live, key, report(0), headers=from_address(ELSEWHERE))
    live.clock.advance(hours=24)
    await visit(live, key, report(LOOKALIKES + 2), headers=from_address(FLOOD))
    assert listed(live)[-2:] == [True, True]
    assert live.service.pipeline.counters.statistics().flooding == 2


async def test_one_person_without_a_record_is_not_counted_as_many(live: Live, key: str):
    """Each of these reports gets a new id; equal ones still count as one visitor of the address."""
    poor = {"userAgent": USER_AGENT, "timezone": "Europe/London", "languages": ["en"]}
    for _ in range(MANY_VISITORS * 2):
        await triggers(live, key, poor)
    with live.found.store.read() as snapshot:
        ((_, activity),) = snapshot.scan(ADDRESSES)
    assert len(activity.history.visitors) == 1
    assert len({event.verdict.visitor_id for _, event in live.events()}) == MANY_VISITORS * 2
