"""Decisions 5.3, 5.4 and 8.9-8.10: what the settler tells of each day, and whom it blocks. Each once."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import msgspec
import pytest

from svc.features.billing.jobs import block_overdue, due_day, settle
from svc.features.billing.settler import settle_all
from svc.features.checks.invariants import violations
from svc.features.organizations.jobs import Author
from svc.features.webhooks.jobs.endpoints import NewEndpoint, create_endpoint
from svc.features.webhooks.tables import WEBHOOK_EVENTS
from svc.kernel.store.steps import STEP_LOOKS
from svc.kernel.tenants.billing import OVERDUE_MS, Settlement, Usage
from svc.kernel.tenants.jobs import add_credit
from svc.kernel.tenants.queries import balance
from svc.kernel.tenants.tables import BILLING_CHANGES, ORGANIZATIONS, SETTLEMENTS
from svc.kernel.values.ids import DAY_MS, first_id
from tests.spec.console import Console
from tests.spec.responses import TOO_LITTLE, assert_error, visit
from tests.support.live import Live, report
from tests.support.worlds import EPOCH_MS

FIRST_DAY = EPOCH_MS // DAY_MS
"""2026-01-01, on which every test begins."""
MIDNIGHT_MS = EPOCH_MS + DAY_MS
NOTHING_LISTENS = "https://127.0.0.1/hook"


def settlements(live: Live) -> dict[int, tuple[int, ...]]:
    """Day -> identifiable, unidentifiable, free, amount, balance."""
    with live.found.store.read() as snapshot:
        return {
            key[1]: msgspec.structs.astuple(settled)[:5]
            for key, settled in snapshot.scan(SETTLEMENTS, live.organization.number)
        }


def changes(live: Live) -> list[tuple[Any, ...]]:
    """(previous, current, reason, when, by), oldest first."""
    with live.found.store.read() as snapshot:
        rows = snapshot.scan(BILLING_CHANGES, live.organization.number)
        return [msgspec.structs.astuple(change)[:5] for _, change in rows]


def subscribe(live: Live, *events: str) -> None:
    new = NewEndpoint(id="whk_" + "A" * 20, url=NOTHING_LISTENS, description="", environment="live", events=events)
    job = partial(create_endpoint, number=live.organization.number, new=new, secrets_key=b"k" * 32, now_ms=0)
    live.found.store.write_now([job])


def told(live: Live, event_type: str) -> list[dict[str, Any]]:
    """`data` of every event of this type that was queued."""
    with live.found.store.read() as snapshot:
        events = [event for _, event in snapshot.scan(WEBHOOK_EVENTS, live.organization.number)]
    return [msgspec.json.decode(event.body)["data"] for event in events if event.type == event_type]


@pytest.mark.slow(0.2)
async def test_a_day_is_settled_from_its_ledger(live: Live, public: str):
    """Decisions 5.4, 8.10: by price, with what was charged and the balance at its end."""
    subscribe(live, "usage.daily_settled")
    _, free = live.issue(environment="staging")
    for signals in (report(), report(), TOO_LITTLE):
        await visit(live, public, signals)
    await visit(live, public, headers={"x-forwarded-for": "10.1.2.3"})
    await visit(live, free)
    live.clock.now_ms = MIDNIGHT_MS + 300_000
    await visit(live, public)
    await settle_all(live.found.store, live.world, live.service.relay.due)
    assert settlements(live) == {FIRST_DAY: (2, 1, 1, 6_500, 10_000_000 - 6_500)}
    assert told(live, "usage.daily_settled") == [
        {
            "date": "2026-01-01",
            "identifications": 4,
            "identifiable": 2,
            "unidentifiable": 1,
            "free": 1,
            "amount_micros": 6_500,
            "balance_micros": 10_000_000 - 6_500,
        }
    ]


async def test_a_day_is_settled_after_five_minutes_and_once(live: Live, public: str):
    """Decisions 5.4: not at 00:04:59.999; and never again, whatever is added or asked."""
    subscribe(live, "usage.daily_settled")
    await visit(live, public)
    for at_ms, settled in ((EPOCH_MS + 1, 0), (MIDNIGHT_MS, 0), (MIDNIGHT_MS + 299_999, 0), (MIDNIGHT_MS + 300_000, 1)):
        live.clock.now_ms = at_ms
        await settle_all(live.found.store, live.world, live.service.relay.due)
        assert len(settlements(live)) == settled
    before = settlements(live)
    for hours in (0, 1, 100):
        live.clock.advance(hours=hours)
        await settle_all(live.found.store, live.world, live.service.relay.due)
    assert settlements(live) == before
    assert len(told(live, "usage.daily_settled")) == 1


async def test_days_without_production_traffic_are_not_settled(live: Live, key: str, public: str):
    """Decisions 5.4: other traffic and credit are none; a day after a gap counts the credit in between."""
    await visit(live, key)
    live.clock.advance(hours=48)
    await visit(live, public)
    live.clock.advance(hours=48)
    now_ms = live.clock.now_ms
    credit = partial(
        add_credit,
        number=live.organization.number,
        entry_id=live.world.request_id(now_ms),
        micros=5,
        now_ms=now_ms,
        note="",
    )
    live.found.store.write_now([credit])
    live.clock.advance(hours=48)
    await visit(live, public, TOO_LITTLE)
    live.clock.advance(hours=48)
    await settle_all(live.found.store, live.world, live.service.relay.due)
    assert settlements(live) == {
        FIRST_DAY + 2: (1, 0, 0, 3_000, 9_997_000),
        FIRST_DAY + 6: (0, 1, 0, 500, 9_996_505),
    }
    await visit(live, key)
    live.clock.advance(hours=24)
    assert [day["is_settled"] for day in (await Console(live).seen("/billing"))["days"]] == [True, True]


async def test_an_organization_without_production_traffic_has_no_settlement(live: Live):
    """Decisions 5.4: its first credit alone is nothing to tell."""
    live.clock.advance(hours=1000)
    await settle_all(live.found.store, live.world, live.service.relay.due)
    assert settlements(live) == {}


async def test_an_interrupted_settlement_is_made_once(live: Live, public: str):
    """The day is read before the commit and looked for in it: a crash in between repeats the reading, not the fact."""
    subscribe(live, "usage.daily_settled")
    await visit(live, public)
    live.clock.now_ms = MIDNIGHT_MS + 300_000
    number, store = live.organization.number, live.found.store
    with store.read() as snapshot:
        due = due_day(snapshot, number, live.clock.now_ms)
    assert due is not None
    await settle_all(store, live.world, live.service.relay.due)
    before = settlements(live)
    late = partial(settle, number=number, due=due, usage=Usage(identifiable=99), now_ms=live.clock.now_ms)
    assert store.write_now([late]) == [None]
    assert settlements(live) == before
    assert len(told(live, "usage.daily_settled")) == 1


@pytest.mark.slow
async def test_a_day_with_more_lines_than_one_step_is_read_completely(live: Live, public: str):
    for _ in range(STEP_LOOKS + 1):
        await visit(live, public, TOO_LITTLE)
    live.clock.now_ms = MIDNIGHT_MS + 300_000
    await settle_all(live.found.store, live.world, live.service.relay.due)
    count = STEP_LOOKS + 1
    assert settlements(live) == {FIRST_DAY: (0, count, 0, 500 * count, 10_000_000 - 500 * count)}


async def test_an_organization_past_due_for_seven_days_is_blocked(live: Live, public: str):
    """Decisions 5.3: by the settler, `payment_overdue`; from then on production traffic is refused."""
    subscribe(live, "billing.status_changed")
    live.set_billing_status("active")
    live.set_billing_status("past_due")
    for early_ms in (0, OVERDUE_MS - 1):
        live.clock.now_ms = EPOCH_MS + early_ms
        await settle_all(live.found.store, live.world, live.service.relay.due)
        assert (await visit(live, public)).status_code == 200
    live.clock.now_ms = EPOCH_MS + OVERDUE_MS
    await settle_all(live.found.store, live.world, live.service.relay.due)
    assert_error(await visit(live, public), 402, "billing_blocked")
    live.clock.advance(hours=1000)
    await settle_all(live.found.store, live.world, live.service.relay.due)
    assert changes(live)[1:] == [
        ("active", "past_due", None, EPOCH_MS, "operator"),
        ("past_due", "blocked", "payment_overdue", EPOCH_MS + OVERDUE_MS, "settler"),
    ]
    assert told(live, "billing.status_changed")[-1] == {
        "previous_status": "past_due",
        "current_status": "blocked",
        "accepting_traffic": False,
        "blocked_reason": "payment_overdue",
    }
    accepted = [data["accepting_traffic"] for data in told(live, "billing.status_changed")]
    assert accepted == [True, True, False], "interface 3: past_due is served"


async def test_a_payment_in_time_prevents_the_block_and_restarts_the_seven_days(live: Live):
    """Decisions 5.3: `past_due` -> `active` ends the term."""
    live.set_billing_status("active")
    live.set_billing_status("past_due")
    live.clock.advance(hours=24 * 6)
    live.set_billing_status("active")
    live.clock.advance(hours=24 * 2)
    live.set_billing_status("past_due")
    live.clock.advance(hours=24 * 6)
    await settle_all(live.found.store, live.world, live.service.relay.due)
    assert status(live) == ("past_due", None)
    live.clock.advance(hours=24)
    await settle_all(live.found.store, live.world, live.service.relay.due)
    assert status(live) == ("blocked", "payment_overdue")


async def test_a_late_automatic_block_changes_nothing(live: Live):
    """The operator was first: the transaction looks again."""
    live.set_billing_status("active")
    live.set_billing_status("past_due")
    live.clock.now_ms += OVERDUE_MS
    live.set_billing_status("active")
    author = Author(live.world.request_id(live.clock.now_ms), live.clock.now_ms, "settler")
    job = partial(block_overdue, number=live.organization.number, author=author)
    assert live.found.store.write_now([job]) == [None]
    assert status(live) == ("active", None)


async def test_a_ledger_that_disagrees_with_its_settlement_is_reported(live: Live):
    """`svc check`: what was told of a day is what the ledger holds."""
    number, store = live.organization.number, live.found.store
    store.write_now([lambda txn: txn.put(SETTLEMENTS, (number, 5), Settlement(1, 0, 0, 3_000, 0, 0))])
    with store.read() as snapshot:
        (violation,) = violations(snapshot)
    assert "settled with more than its ledger says" in violation
    store.write_now([lambda txn: txn.delete(SETTLEMENTS, number, 5)])


def status(live: Live) -> tuple[str, str | None]:
    with live.found.store.read() as snapshot:
        organization = snapshot.get(ORGANIZATIONS, live.organization.number)
    assert organization is not None
    return organization.billing_status, organization.blocked_reason


@pytest.mark.slow(0.2)
async def test_until_a_day_is_settled_the_bill_has_it_beside_today(live: Live):
    """Settled days, the one that has ended and today add up to what the balance lost, before and after each midnight,
    whether the new day has begun with an identification, with a credit, with one that is dated before it or not at all.
    """
    number, public = live.organization.number, live.issue(environment="production")[1]
    console = Console(live, "developer")
    with live.found.store.read() as snapshot:
        given = balance(snapshot, number)
    shown: list[list[tuple[str, int, int, bool]]] = []

    async def look() -> None:
        nonlocal given
        body = await console.seen("/billing")
        assert sum(day["amount_micros"] for day in (body["today"], *body["days"])) == given - body["balance_micros"]
        days = [(day["date"], day["identifications"], day["balance_micros"], day["is_settled"]) for day in body["days"]]
        shown.append(days)

    for began in ("nothing", "credit", "identification", "credit of a clock set back"):
        await visit(live, public)
        await visit(live, public, TOO_LITTLE)
        live.clock.now_ms = (live.clock.now_ms // DAY_MS + 1) * DAY_MS + 60_000
        if began in ("identification", "credit of a clock set back"):
            await visit(live, public)
        if began.startswith("credit"):
            at_ms = live.clock.now_ms - (began != "credit") * 2 * 60_000
            credit = partial(add_credit, number=number, entry_id=UUID(bytes=first_id(at_ms)), micros=1, note="")
            live.found.store.write_now([partial(credit, now_ms=at_ms)])
            given += 1
        await look()
        live.clock.now_ms += 5 * 60_000
        await settle_all(live.found.store, live.world, live.service.relay.due)
        await look()
    assert [day[1] for day in shown[-1]] == [3, 2, 2, 2]
    for before, after in zip(shown[::2], shown[1::2], strict=True):
        assert [day[3] for day in before] == [False] + [True] * (len(before) - 1)
        assert after == [(*day[:3], True) for day in before], "settling changes no figure"


@pytest.mark.slow(0.2)
@pytest.mark.parametrize("given", [1, 150])
async def test_the_day_that_has_ended_has_no_credit_of_the_next_in_its_balance(live: Live, given: int):
    """Decisions 17.2: nor one given while the clock is back before midnight, although the next day has begun."""
    public, console = live.issue(environment="production")[1], Console(live, "developer")
    await visit(live, public)
    live.clock.now_ms = MIDNIGHT_MS
    await visit(live, public)
    live.clock.jump(seconds=-2)
    for _ in range(given):
        entry_id = live.world.request_id(live.clock.now_ms)
        credit = partial(add_credit, number=live.organization.number, entry_id=entry_id, micros=1, note="")
        live.found.store.write_now([partial(credit, now_ms=live.clock.now_ms)])
    shown = await console.seen("/billing")
    assert [(day["date"], day["balance_micros"]) for day in shown["days"]] == [("2026-01-01", 10_000_000 - 3_000)]
    assert (shown["balance_micros"], len(shown["entries"])) == (10_000_000 - 6_000 + given, min(given + 1, 100))
    live.clock.now_ms = MIDNIGHT_MS + 300_000
    await settle_all(live.found.store, live.world, live.service.relay.due)
    assert (await console.seen("/billing"))["days"] == [{**shown["days"][0], "is_settled": True}]
