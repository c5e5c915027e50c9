"""Decisions 17.1 to 17.3: what a clock that lies may not do."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import pytest

from svc.features.billing.jobs import statement
from svc.features.billing.settler import settle_all
from svc.features.erasure.visitors import erase_visitor
from svc.features.retention.sweeper import Progress, sweep_if_believed
from svc.identify.velocity.counts import MOST
from svc.kernel.access.jobs import counted_keys
from svc.kernel.access.sessions import new_session
from svc.kernel.store.installation import confirm_clock
from svc.kernel.tenants.billing import Usage
from svc.kernel.tenants.jobs import holding
from svc.kernel.tenants.queries import balance, find_sdk_key
from svc.kernel.tenants.tables import SETTLEMENTS
from svc.kernel.values.ids import DAY_MS, MAX_LEAD_MS, made_at_ms
from svc.kernel.work.clock import ClockWatch
from svc.world import LONGEST_LEAD_MS
from tests.spec.responses import visit
from tests.spec.test_management_keys import SDK, Automation
from tests.support.live import Live, succeeded
from tests.support.worlds import EPOCH_MS

FIRST_DAY = EPOCH_MS // DAY_MS
PRICE = 3_000


async def test_an_id_is_never_more_than_an_hour_ahead_of_its_arrival(live: Live, public: str):
    """17.1: a clock that was days ahead, for one request, and then right."""
    live.clock.jump(days=400)
    await visit(live, public)
    for _ in range(3):
        live.clock.set(EPOCH_MS)
        response = await visit(live, public)
        assert made_at_ms(UUID(response.json()["request_id"]).bytes) == EPOCH_MS
    live.clock.advance(hours=1)
    await visit(live, public)
    live.clock.set(EPOCH_MS + 1)
    response = await visit(live, public)
    ahead_ms = made_at_ms(UUID(response.json()["request_id"]).bytes) - live.clock.now_ms
    assert ahead_ms == LONGEST_LEAD_MS - 1, "within the hour ids go on in their order"


def counted(live: Live) -> tuple[dict[int, Usage], dict[int, int], Usage, int]:
    """Usage by day as the statement has it, charged micros of settled days, today's counts, the balance."""
    with live.found.store.read() as snapshot:
        number = live.organization.number
        stated = {day.day: day.usage for day in statement(snapshot, number, 0, FIRST_DAY + 1000).days}
        settled = {day: row.amount_micros for (_, day), row in snapshot.scan(SETTLEMENTS, number)}
        return stated, settled, holding(snapshot, number).usage, balance(snapshot, number)


async def settle(live: Live) -> None:
    await settle_all(live.found.store, live.service.services.world, live.service.relay.due)


async def test_what_arrives_with_an_earlier_date_counts_for_the_day_that_was_counted(live: Live, public: str):
    """17.2: a request of 23:59:59 that is committed after one of today takes nothing from today's counts."""
    live.clock.now_ms = EPOCH_MS + DAY_MS
    for _ in range(3):
        await visit(live, public)
    live.clock.now_ms = EPOCH_MS + DAY_MS - 50
    await visit(live, public)
    live.clock.now_ms = EPOCH_MS + DAY_MS + 1000
    stated, _, today, _ = counted(live)
    assert today.identifiable == 4
    assert stated[FIRST_DAY + 1].identifiable == 4
    assert stated.keys() <= {FIRST_DAY, FIRST_DAY + 1}
    live.clock.now_ms = EPOCH_MS + 2 * DAY_MS + 300_000
    await settle(live)
    assert counted(live)[1] == {FIRST_DAY + 1: 4 * PRICE}


async def test_a_day_that_was_settled_early_gets_no_more_lines(live: Live, public: str):
    """17.2: a clock that was an hour ahead past midnight, and is set right. Settled = statement for each day; all days
    and today = what the balance lost.
    """
    live.clock.now_ms = EPOCH_MS + 23 * 3_600_000
    before = counted(live)[3]
    for _ in range(8):
        await visit(live, public)
    live.clock.advance(hours=1, seconds=310)
    await settle(live)
    live.clock.advance(hours=-1)
    for _ in range(5):
        await visit(live, public)
    live.clock.now_ms = EPOCH_MS + DAY_MS + 3_600_000
    for _ in range(3):
        await visit(live, public)
    stated, settled, today, after = counted(live)
    assert settled == {FIRST_DAY: 8 * PRICE}
    assert today.identifiable == stated[FIRST_DAY + 1].identifiable == 8
    assert sum(settled.values()) + today.charged_micros == before - after
    live.clock.now_ms = EPOCH_MS + 2 * DAY_MS + 300_000
    await settle(live)
    stated, settled, _, after = counted(live)
    assert settled == {day: usage.charged_micros for day, usage in stated.items() if usage.charged_micros}
    assert sum(settled.values()) == before - after


async def test_charges_while_the_clock_is_400_days_ahead_are_of_the_day_that_it_is(live: Live, public: str):
    """17.2, 17.3: a jump ahead that was taken back counts for nothing. At every moment each charge is in the statement,
    and once settled in nothing else.
    """
    before = counted(live)[3]

    async def visits(number: int) -> None:
        for _ in range(number):
            await visit(live, public)
        stated, settled, _, after = counted(live)
        assert sum(usage.charged_micros for usage in stated.values()) == before - after
        await settle(live)
        stated, settled, today, after = counted(live)
        assert sum(settled.values()) + today.charged_micros == before - after
        assert all(stated[day].charged_micros == amount for day, amount in settled.items())

    await visits(3)
    live.clock.jump(days=400)
    await visits(2)
    live.clock.jump(days=-400)
    await visits(4)
    assert counted(live)[1] == {}
    live.clock.advance(hours=24, seconds=300)
    await visits(1)
    assert counted(live)[1] == {FIRST_DAY: 9 * PRICE}


async def test_a_clock_that_stays_ahead_for_an_hour_dates_what_is_stored(live: Live, public: str):
    """17.3: until then nothing is dated over an hour ahead of the steady clock."""

    async def occurred_ms() -> int:
        await visit(live, public)
        return max(event.occurred_at_ms for _, event in live.events())

    live.clock.jump(seconds=3_599)
    assert await occurred_ms() == EPOCH_MS + 3_599_000, "a small step is followed"
    live.clock.jump(days=40)
    assert await occurred_ms() <= EPOCH_MS + LONGEST_LEAD_MS
    live.clock.advance(seconds=3_599)
    assert await occurred_ms() <= EPOCH_MS + 2 * LONGEST_LEAD_MS
    live.clock.advance(seconds=2)
    assert await occurred_ms() == live.clock.now_ms


async def test_while_the_clock_is_an_hour_behind_the_last_write_nothing_is_acknowledged(live: Live, public: str):
    """17.3: a clock that is set back while the service runs, and set right again."""
    _, reader = live.issue("secret", environment="production")

    async def statuses() -> tuple[int, int, str]:
        visited, ready = await visit(live, public), await live.client.get("/readyz")
        return visited.status_code, ready.status_code, ready.json()["checks"]["store"]

    assert (await visit(live, public)).status_code == 200
    for by_s in (3_601, 400 * 86_400):
        live.clock.jump(seconds=-by_s)
        assert await statuses() == (503, 503, "unreachable")
        live.clock.jump(seconds=by_s)
        assert await statuses() == (200, 200, "ok")
    live.clock.jump(seconds=-3_599)
    assert await statuses() == (200, 200, "ok"), "within the hour it is followed"
    live.clock.jump(seconds=3_600)
    listed = await live.client.get("/api/v1/events", headers={"x-api-key": reader})
    assert len(listed.json()["rows"]) == len(live.events()) == 4


async def test_an_operator_confirms_a_clock_that_was_set_back(live: Live, public: str):
    """17.3: the one before was wrong."""
    assert (await visit(live, public)).status_code == 200
    await live.service.watch.look_at_clock()
    live.clock.jump(days=-400)
    await live.service.watch.look_at_clock()
    assert (await visit(live, public)).status_code == 503
    live.found.store.write_now([partial(confirm_clock, now_ms=live.clock.now_ms)])
    await live.service.watch.look_at_clock()
    answer = succeeded(await visit(live, public))
    assert made_at_ms(UUID(answer["request_id"]).bytes) == live.clock.now_ms


async def set_back(live: Live, now_ms: int) -> None:
    """Somebody sets the clock back, and confirms it."""
    live.clock.now_ms = now_ms
    await live.service.watch.look_at_clock()
    live.found.store.write_now([partial(confirm_clock, now_ms=now_ms)])
    await live.service.watch.look_at_clock()


@pytest.mark.parametrize("before", [25, 70])
async def test_what_a_clock_ahead_has_stored_is_in_no_window_once_the_clock_is_right(live: Live, key: str, before: int):
    """Decisions 11.4: an office that was busy while a clock was 20 hours ahead, for longer than it took to believe it.
    More entries than a row has do not displace those of now.
    """
    _, reader = live.issue("secret")

    async def shown(account: str) -> tuple[Any, list[str]]:
        known = (await visit(live, key, account_id=account)).json()["request_id"]
        event = (await live.client.get(f"/api/v1/events/{known}", headers={"x-api-key": reader})).json()
        return event["velocity"], [each["signal"] for each in event["signals"]]

    live.clock.jump(hours=20)
    await visit(live, key, account_id="before")  # and not believed
    live.clock.advance(hours=1.1)
    for number in range(before):
        await visit(live, key, account_id=f"user-{number}")
    await set_back(live, live.clock.now_ms - 20 * 3_600_000)
    for count in (1, 2):
        velocity, signals = await shown(f"now-{count}")
        assert {velocity[subject]["events"]["1h"] for subject in ("visitor", "address")} == {count}
        earlier = count + (before < MOST)
        assert velocity["address"]["accounts"] == {"1h": count, "24h": earlier, "30d": earlier}
        assert "account_testing" not in signals


@pytest.mark.served(nonproduction_per_day=3, keys_per_day=2)
@pytest.mark.slow(0.2)
async def test_after_a_clock_that_was_a_year_ahead_a_quota_of_a_day_is_for_a_day(live: Live, key: str):
    """17.2: identifications outside production, archived reports and issued keys; the bill stays exact."""
    automation = Automation(live)

    async def of_a_day() -> list[int]:
        body = {"name": "shop", "environment": "staging"}
        visits = [(await visit(live, key)).status_code for _ in range(4)]
        issued = await automation("POST", SDK, body)
        revoked = f"{SDK}/{issued.json()['key']['id']}/revoke" if issued.status_code == 201 else SDK
        await automation("POST", revoked)
        return [*visits, issued.status_code]

    a_day = [200, 200, 200, 429, 201]
    live.clock.now_ms = EPOCH_MS + 365 * DAY_MS
    automation = Automation(live)
    assert await of_a_day() == a_day
    for day in range(1, 4):
        await set_back(live, EPOCH_MS + day * DAY_MS)
        assert await of_a_day() == a_day, day
    live.clock.now_ms -= 30_000
    assert (await visit(live, key)).status_code == 429, "a clock that is a little behind gets no new day"


@pytest.mark.served(nonproduction_per_day=2)
async def test_a_request_with_a_date_of_last_week_gives_no_quota_back(live: Live, key: str):
    """17.2: two nodes, one of which has a clock that is far behind."""
    statuses: list[int] = []
    for day in (7, 0, 7, 0, 7, 0, 7):
        await set_back(live, EPOCH_MS + day * DAY_MS)
        statuses.append((await visit(live, key)).status_code)
    assert statuses == [200, 200, 200, 200, 429, 200, 429]


@pytest.mark.served(archive_gib_per_day=3e-7)
async def test_after_a_clock_that_was_a_year_ahead_reports_are_archived(live: Live, public: str):
    """17.2: the budget of archived reports of a day is not used up for a year."""

    async def archived() -> list[bool]:
        await visit(live, public)
        await visit(live, public)
        return [event.has_document for _, event in live.events()[-2:]]

    assert await archived() == [True, False]
    live.clock.now_ms = EPOCH_MS + 365 * DAY_MS
    await archived()
    await set_back(live, EPOCH_MS + DAY_MS)
    await visit(live, public)
    assert sum(event.has_document for _, event in live.events()) == 3


@pytest.mark.served(nonproduction_per_day=2)
async def test_closing_a_day_late_keeps_what_today_has_used_up(live: Live, key: str, public: str):
    """17.2: the settler closes a day of last week while today counts."""
    await visit(live, public)
    live.clock.advance(hours=7 * 24)
    assert [(await visit(live, key)).status_code for _ in range(3)] == [200, 200, 429]
    await settle(live)
    assert counted(live)[1] == {FIRST_DAY: PRICE}
    assert (await visit(live, key)).status_code == 429


async def test_keys_that_a_clock_ahead_took_for_expired_count_again(live: Live):
    """17.2, 2.5: with the clock a year ahead the organization counted no key that expires."""
    number = live.organization.number
    before = _active(live)
    for _ in range(3):
        live.issue(expires_at_ms=EPOCH_MS + 30 * DAY_MS)
    live.clock.now_ms = EPOCH_MS + 365 * DAY_MS
    live.issue()
    live.clock.now_ms = EPOCH_MS
    key, _ = live.issue(expires_at_ms=EPOCH_MS + DAY_MS)
    assert _active(live) == before + 5
    live.revoke(key)
    assert _active(live) == before + 4
    with live.found.store.read() as snapshot:
        assert counted_keys(snapshot, number).count == before + 4


def _active(live: Live) -> int:
    with live.found.store.read() as snapshot:
        active = holding(snapshot, live.organization.number).active_keys
        return 0 if active is None else active.count


async def test_the_last_use_of_a_key_follows_a_clock_that_is_set_right(live: Live):
    """17.3, 2.3: one use with the clock a year ahead."""
    key, secret = live.issue()
    live.clock.now_ms = EPOCH_MS + 365 * DAY_MS
    await visit(live, secret)
    await set_back(live, EPOCH_MS + DAY_MS)
    await visit(live, secret)
    with live.found.store.read() as snapshot:
        kept = find_sdk_key(snapshot, live.organization.number, key.id)
        assert kept is not None
        assert kept.last_used_at_ms == EPOCH_MS + DAY_MS


def test_a_session_that_a_clock_ahead_began_is_over_when_the_clock_is_right():
    """17.3, 15.6: it would last for a year, not 12 hours; nor is it one that was used a minute ago."""
    session = new_session(EPOCH_MS + 365 * DAY_MS, secure=True, member_id="mem_a")
    assert session.has_ended(EPOCH_MS)
    assert session.touch_is_due(EPOCH_MS)
    near = new_session(EPOCH_MS + LONGEST_LEAD_MS, secure=True, member_id="mem_a")
    assert not near.has_ended(EPOCH_MS)
    assert MAX_LEAD_MS == LONGEST_LEAD_MS


class Retention:
    """Retention of a live service, one look a call."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.watch = ClockWatch(live.clock.now_ms, live.clock.elapsed_s)
        self.progress = Progress()

    async def look(self) -> bool:
        """Whether it holds back."""
        await sweep_if_believed(self.live.found.store, self.live.service.services.world, 365, self.watch, self.progress)
        return self.progress.is_held


async def test_a_clock_that_ran_ahead_for_minutes_deletes_nothing(live: Live, secret: str, public: str):
    """17.3: events and idempotency keys are there when the clock is right again."""
    key = {"idempotency-key": "order-1"}
    first = (await visit(live, public, headers=key)).json()
    retention = Retention(live)
    live.clock.advance(seconds=60)
    assert not await retention.look()
    live.clock.jump(days=40)
    for _ in range(50):
        live.clock.advance(seconds=60)
        assert await retention.look()
    live.clock.jump(days=-40)
    assert not await retention.look()
    shown = await live.client.get(f"/api/v1/events/{first['request_id']}", headers={"x-api-key": secret})
    assert shown.status_code == 200
    again = (await visit(live, public, headers=key)).json()
    assert (again["duplicate"], again["request_id"]) == (True, first["request_id"])


@pytest.mark.parametrize("by", ["an hour", "the operator"])
async def test_a_clock_that_stays_ahead_is_believed(live: Live, public: str, by: str):
    """17.3: after an hour on the monotonic clock, or when the operator says so."""
    await visit(live, public)
    retention = Retention(live)
    live.clock.jump(days=40)
    assert await retention.look()
    assert len(live.events()) == 1
    await live.service.watch.look_at_clock()
    if by == "an hour":
        live.clock.advance(hours=1)
    else:
        live.found.store.write_now([partial(confirm_clock, now_ms=live.clock.now_ms)])
        await live.service.watch.look_at_clock()
    assert not await retention.look()
    assert live.events() == []


async def test_an_erasure_that_was_asked_for_goes_on_while_the_clock_is_not_believed(live: Live, public: str):
    """17.3 is about what a clock says, and not about what somebody asks for."""
    visitor_id = (await visit(live, public)).json()["visitor_id"]
    retention = Retention(live)
    live.clock.jump(days=40)
    erasure = partial(erase_visitor, number=live.organization.number, visitor_id=visitor_id, now_ms=live.clock.now_ms)
    live.found.store.write_now([erasure])
    assert await retention.look()
    assert live.events() == []
