"""Decisions 11.2 and 11.5: the record of an account, and what an upgrade makes of a store without any."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from svc.features.erasure.visitors import erase_visitor
from svc.features.upgrade.upgrade import upgrade
from svc.features.upgrade.velocity_jobs import VELOCITY
from svc.identify.tables import ACCOUNTS, ADDRESSES, EVENTS, VISITORS
from svc.identify.velocity.counts import OTHERS, SUBJECTS
from svc.identify.velocity.record import DAY_S, MAX_VISITORS, AccountRecord, KnownVisitor, PairEvent, first_record
from svc.kernel.store.reading import read_only
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.tables import META
from svc.kernel.values.ids import first_id
from svc.world import World
from tests.spec.responses import visit
from tests.store.former_store import to_version_8, with_former_tables
from tests.store.test_identification import EPOCH_MS, Shop
from tests.support.live import Live, live_service, report
from tests.support.outbox import outbox_world

DAY_0 = 20_000 * DAY_S


def event(day: float, visitor: int | None = 1, *, verified: bool = False) -> PairEvent:
    return PairEvent(DAY_0 + int(day * DAY_S), visitor, verified)


def record_of(*events: PairEvent) -> AccountRecord:
    record = first_record(events[0])
    for each in events[1:]:
        record = record.with_event(each)
    return record


def is_had(record: AccountRecord, day: float, visitor: int) -> bool:
    known = record.of(visitor)
    return known is not None and known.is_had(DAY_0 + int(day * DAY_S))


def test_a_visitor_is_had_by_being_first_by_verification_or_after_two_earlier_days():
    record = record_of(event(0, 1), event(0, 2), event(1, 2), event(1.5, 2), event(1, 3, verified=True))
    assert is_had(record, 0, 1)
    assert not is_had(record, 1.9, 2)
    assert is_had(record, 2, 2)
    assert is_had(record, 1, 3)
    assert not is_had(record, 9, 4)


def test_events_of_the_same_day_change_nothing():
    record = record_of(event(0), event(3))
    assert record.with_event(event(3.4)) is record
    assert record.with_event(event(1)) is record, "whether that day is counted is not known"
    assert record.with_event(event(3.4, None)) is record
    assert record.with_event(event(3.4, verified=True)) is not record


def test_of_too_many_visitors_those_go_first_that_mean_least():
    verified = [event(0, visitor, verified=True) for visitor in range(1, MAX_VISITORS)]
    record = record_of(*verified, event(1, 900))
    assert len(record.visitors) == MAX_VISITORS
    record = record.with_event(event(2, 901))
    assert (record.of(900), record.of(901) is not None) == (None, True), "the newest claim takes the place of a claim"
    full = record.with_event(event(3, 902, verified=True))
    assert full.of(901) is None
    assert full.with_event(event(4, 903)) is not full, "the account was seen"
    assert full.with_event(event(4, 903)).visitors == full.visitors, "a claim takes no place of what is verified"
    assert full.with_event(event(4, 903, verified=True)).of(1) is None, "and what is verified, that of the oldest"


def test_an_event_that_moves_away_takes_what_no_other_has():
    first, second, other = event(0, 1, verified=True), event(1, 1), event(1, 2)
    record = record_of(first, second, other)
    left = record.without_event(first, [second, other], is_all=True)
    assert left == AccountRecord(second.at_s, second.at_s, (
        KnownVisitor(2, other.at_s, other.at_s),
        KnownVisitor(1, second.at_s, second.at_s, 1, 0, is_first=True),
    ))  # fmt: skip
    assert left is not None
    assert left.without_event(second, [other], is_all=True) == AccountRecord(
        other.at_s, other.at_s, (KnownVisitor(2, other.at_s, other.at_s, is_first=True),)
    )
    assert record_of(first).without_event(first, [], is_all=True) is None
    old = record_of(event(0, 1), event(100, 1), event(100, 2))
    kept = old.without_event(event(100, 1), [event(100, 2)], is_all=True)
    assert kept is not None
    assert (kept.first_s, is_had(kept, 101, 1)) == (DAY_0, True), "an earlier event is past its retention, and counts"


@pytest.mark.parametrize("seed", range(60))
def test_a_record_is_what_its_events_say_whatever_comes_and_moves_away(seed: int):
    """The same as if what has moved away had never been there, and all others had come in the order of their times.
    What is given to the account later, in the middle of the others, is verified.
    """
    chance = random.Random(seed)
    times = sorted(chance.sample(range(400), 12))
    events = [event(at / 40, chance.choice((1, 2, 3)), verified=chance.random() < 0.3) for at in times]
    kept, moved = list(events), [] if seed % 2 else [event(at / 40, 1, verified=True) for at in (-9, 105, 333)]
    record: AccountRecord | None = record_of(*events)
    while record is not None:
        for later in moved[:1]:
            kept.append(moved.pop(0))
            record = record.with_event(later)
        kept.sort()
        expected = record_of(*kept)
        assert record.first_s == expected.first_s
        assert {known.visitor for known in record.visitors} == {known.visitor for known in expected.visitors}
        for known in record.visitors:
            same = expected.of(known.visitor)
            assert same is not None
            assert (known.first_s, known.verified_s, known.is_first) == (same.first_s, same.verified_s, same.is_first)
            for day in (*range(11), 20):
                if DAY_0 + day * DAY_S >= kept[-1].at_s:
                    assert is_had(record, day, known.visitor) == is_had(expected, day, known.visitor), day
            assert known.last_s // DAY_S == same.last_s // DAY_S
        gone = kept.pop(chance.randrange(len(kept)))
        record = record.without_event(gone, kept, is_all=True)
    assert kept == []


def test_who_gives_an_account_an_earlier_event_makes_its_visitor_the_first():
    """What came before a backend said so is no reason to know the visitor."""
    record = record_of(event(2, 1), event(0, 2, verified=True))
    assert (is_had(record, 2, 1), is_had(record, 2, 2)) == (False, True)
    left = record.without_event(event(0, 2, verified=True), [event(2, 1)], is_all=True)
    assert left == record_of(event(2, 1))


def test_the_day_that_moves_away_is_none_of_the_earlier_days_any_more():
    record = record_of(event(0, 2), event(5, 1), event(6, 1), event(9, 1))
    left = record.without_event(event(9, 1), [event(0, 2), event(5, 1), event(6, 1)], is_all=True)
    assert left is not None
    assert is_had(left, 9.5, 1)
    before_retention = left.without_event(event(6, 1), [event(0, 2)], is_all=True)
    assert before_retention is not None
    assert not is_had(before_retention, 9.5, 1)


@pytest.mark.slow(0.5)
async def test_an_upgrade_makes_records_and_counts_sign_ups_of_what_is_there(tmp_path: Path):
    async with live_service(tmp_path) as live:
        await populate(live)
    before = kept(tmp_path)
    with_former_tables(tmp_path / "store", to_version_8, to_version_6)
    assert upgrade(tmp_path, World.real().run_sync, program="9.9", map_bytes=64 << 20, now_ms=lambda: 99) is not None
    assert kept(tmp_path) == before


async def test_an_upgrade_keeps_the_first_day_of_an_account_whose_events_are_gone(tmp_path: Path):
    async with live_service(tmp_path) as live:
        key = live.issue(environment="production")[1]
        await visit(live, key, report(1), account_id="a")
        live.clock.advance(hours=24)
        await visit(live, key, report(1), account_id="a")
    ((_, before),) = kept(tmp_path)[ACCOUNTS.name]
    with_former_tables(tmp_path / "store", to_version_8, to_version_6, lambda of: of.writer.clear(EVENTS.name))
    upgrade(tmp_path, World.real().run_sync, program="9.9", map_bytes=64 << 20, now_ms=lambda: 99)
    ((_, after),) = kept(tmp_path)[ACCOUNTS.name]
    assert (after.first_s, after.visitors[0].visitor) == (before.first_s, before.visitors[0].visitor)
    assert after.visitors[0].is_first
    assert after.activity == before.activity


def kept(data: Path) -> dict[str, list[Any]]:
    """What is stored of visitors, accounts and addresses."""
    with read_only(data / "store", live=False) as store, store.read() as snapshot:
        return {table.name: list(snapshot.scan(table)) for table in (VISITORS, ACCOUNTS, ADDRESSES)}


def to_version_6(transaction: Transaction) -> None:
    """As store version 6 had it: no records, and sign-ups without accounts in no row."""
    rows = list(transaction.scan(VELOCITY))
    known = {key[4] for key, _ in rows if SUBJECTS[key[3]] == "account"}
    transaction.writer.clear(ACCOUNTS.name)
    for key, row in rows:
        kinds = OTHERS[SUBJECTS[key[3]]]
        left = row
        for other in row.others[kinds.index("accounts")].ids if "accounts" in kinds else ():
            if other not in known:
                left = left.without_others(tuple(other if kind == "accounts" else None for kind in kinds))
        transaction.put(VELOCITY, key, left)
    transaction.put(META, ("version",), 6)


async def populate(live: Live) -> None:
    """Four events of two accounts, one of them verified, and two sign-ups without any."""
    public, secret = live.issue(environment="production")[1], live.issue("secret", "production")[1]

    async def act(device: int, **fields: Any) -> dict[str, Any]:
        response = await visit(live, public, report(device) | {"client_token": f"{device:032x}"}, **fields)
        assert response.status_code == 200, response.text
        live.clock.advance(hours=11)
        return response.json()

    await act(1, account_id="a")
    await act(2, account_id="a")
    answer = await act(2, account_id="a")
    await live.client.patch(
        f"/api/v1/events/{answer['request_id']}", json={"account_id": "a"}, headers={"x-api-key": secret}
    )
    await act(3, account_id="b")
    await act(3, action="sign_up")
    await act(4, action="sign_up")


@pytest.mark.slow
def test_room_in_the_record_of_an_account_that_was_full_is_no_fault(tmp_path: Path):
    """Whoever had no room may have events still when an erasure makes room."""
    with outbox_world(tmp_path) as world:
        shop = Shop(world)
        for device in range(MAX_VISITORS + 3):
            at_ms = EPOCH_MS + device * 60_000
            fields: dict[str, Any] = {"at_ms": at_ms, "request_id": UUID(bytes=first_id(at_ms))}
            made = shop.visited(report(device), account_id="shared", environment="development", **fields)
        erase = partial(erase_visitor, number=shop.number, visitor_id=made.verdict.visitor_id, now_ms=EPOCH_MS)
        assert world.do(erase) is True
        (record,) = shop.rows(ACCOUNTS)
        assert len(record.visitors) == MAX_VISITORS - 1
        assert world.violations() == []


def test_an_event_that_a_later_one_took_out_of_the_windows_needs_no_velocity_once_that_has_gone(tmp_path: Path):
    """As behind a clock that ran ahead: retention has not noted meanwhile how far velocity goes back."""
    with outbox_world(tmp_path) as world:
        shop = Shop(world)
        for device in range(2):
            at_ms = EPOCH_MS + device * 40 * 1000 * DAY_S
            fields: dict[str, Any] = {"at_ms": at_ms, "request_id": UUID(bytes=first_id(at_ms))}
            made = shop.visited(report(device), account_id="shared", environment="development", **fields)
        assert world.do(partial(erase_visitor, number=shop.number, visitor_id=made.verdict.visitor_id, now_ms=at_ms))
        (record,) = shop.rows(ACCOUNTS)
        assert record.activity.events == ()
        assert world.violations() == []
