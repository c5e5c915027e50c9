"""Decisions 11.3 and 11.4: the counts of a store that a version without velocity wrote, `counted_since` meanwhile, and
events that change, go or arrive while they are rebuilt.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

import svc
from svc.features.accounts import jobs as recount
from svc.features.accounts import recounter
from svc.features.accounts.recounter import RecountProgress
from svc.features.checks.invariants import violations
from svc.features.upgrade.upgrade import upgrade
from svc.identify.queries.velocity import event_subjects, row_of
from svc.identify.tables import ACCOUNTS, ADDRESSES, EVENTS, RECOUNTS, VISITOR_IDS, VISITORS
from svc.identify.velocity.counts import LONGEST_S, WINDOWS, kind_of
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.ids import first_id
from svc.kernel.values.timestamps import timestamp
from svc.kernel.work.clock import ClockWatch
from svc.kernel.work.store_watch import CorruptRows
from svc.world import World
from tests.spec.automation import Automation
from tests.spec.responses import visit
from tests.spec.test_unreadable_events import corrupt
from tests.spec.test_unreadable_events import svc as run_command
from tests.store.release import RELEASED, unpack
from tests.support.live import Live, live_service, report, succeeded
from tests.support.worlds import EPOCH_MS

Counts = dict[tuple[str, str, int], tuple[tuple[int, ...], ...]]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recount, "MAX_EVENTS", 3)


async def act(live: Live, public: str, device: int, account: str | None = None, address: str = "81.2.69.160") -> str:
    signals = report(device, client_token=f"the browser {device}")
    named = {} if account is None else {"account_id": account}
    return succeeded(await visit(live, public, signals, headers={"x-forwarded-for": address}, **named))["request_id"]


async def populate(live: Live, public: str) -> list[str]:
    """Ids of 12 events of three visitors, three accounts and four addresses within two days, and of one from before."""
    found = [await act(live, public, 1, "gone", "81.2.69.1")]
    live.clock.advance(hours=24 * 31)
    for each in range(12):
        account = None if each % 4 == 3 else f"account {each % 3}"
        found.append(await act(live, public, 1 + each % 3, account, f"81.2.69.{each % 4 + 160}"))
        live.clock.advance(hours=4)
    return found


def as_of_before(transaction: Transaction, number: int) -> None:
    """As a version without velocity left it, and its upgrade."""
    newest = b""
    for (_, request_id), event in list(transaction.scan(EVENTS, number)):
        transaction.put(EVENTS, (number, request_id), msgspec.structs.replace(event, velocity=None))
        newest = request_id
    for (_, visitor), record in list(transaction.scan(VISITORS, number)):
        transaction.put(VISITORS, (number, visitor), msgspec.structs.replace(record, activity=b""))
    for table in (ADDRESSES, ACCOUNTS):
        for row_key in list(transaction.scan_keys(table, (number,), (number + 1,))):
            transaction.delete(table, *row_key)
    recount.begin(transaction, {number: newest})


def upgraded(live: Live) -> None:
    write(live, partial(as_of_before, number=live.organization.number))


def write(live: Live, job: Any) -> Any:
    return live.found.store.write_one_now(job)


def step(live: Live) -> Any:
    return write(live, partial(recount.step, number=live.organization.number, now_ms=live.clock.now_ms))


async def finish(live: Live) -> RecountProgress:
    progress = RecountProgress()
    watch = ClockWatch(live.world.wall_ms(), live.world.elapsed_s())
    await recounter.run(live.found.store, live.world, watch, progress, CorruptRows())
    return progress


def by_events(snapshot: Snapshot, live: Live) -> Counts:
    """Counts of each subject by going through all events."""
    number, now_s = live.organization.number, live.clock.now_ms // 1000
    seen: dict[tuple[str, str, int], list[tuple[int, tuple[int | None, ...]]]] = {}
    for (_, request_id), event in snapshot.scan(EVENTS, number):
        visitor = snapshot.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
        who = event_subjects(number, request_id, event, visitor)
        for subject in ("visitor", "account", "address"):
            own = who.id_of(subject)
            if own is not None:
                at = (kind_of(event.environment), subject, own)
                seen.setdefault(at, []).append((who.at_s, who.others_of(subject)))
    counts: Counts = {}
    for at, events in seen.items():
        within = [[each for each in events if each[0] > now_s - length] for length in WINDOWS.values()]
        others = [
            tuple(len({each[1][place] for each in some} - {None}) for some in within)
            for place in range(len(events[0][1]))
        ]
        counts[at] = (tuple(map(len, within)), *others)
    return counts


def by_rows(snapshot: Snapshot, live: Live, subjects: Counts) -> Counts:
    found: Counts = {}
    for at in subjects:
        kind, subject, own = at
        now_s = live.clock.now_ms // 1000
        row = row_of(snapshot, live.organization.number, kind, subject, own, now_s)  # pyright: ignore[reportArgumentType]
        counts = row.counts(subject, now_s)  # pyright: ignore[reportArgumentType]
        found[at] = (counts.events, *counts.others)
    return found


def assert_counts_are_those_of_the_events(live: Live, counted: int | None = None) -> None:
    """`counted`: how many of the lists of account and address are compared."""
    with live.found.store.read() as snapshot:
        expected = by_events(snapshot, live)
        found = by_rows(snapshot, live, expected)
        for at, counts in expected.items():
            most = None if at[1] == "visitor" else counted
            assert found[at][:most] == counts[:most], at
        assert list(violations(snapshot)) == []


@pytest.mark.slow(0.2)
async def test_counts_are_those_of_a_store_that_counted_each_event_as_it_came(live: Live, public: str):
    await populate(live, public)
    with live.found.store.read() as snapshot:
        subjects = by_events(snapshot, live)
        fresh = by_rows(snapshot, live, subjects)
        records = {known: (record.first_s, len(record.visitors)) for known, record in snapshot.scan(ACCOUNTS)}
    assert max(counts[0][-1] for counts in fresh.values()) == 4
    upgraded(live)
    with live.found.store.read() as snapshot:
        assert {counts[0] for counts in by_rows(snapshot, live, subjects).values()} == {(0, 0, 0)}
        assert list(violations(snapshot)) == []
    progress = await finish(live)
    assert (progress.events, progress.organizations) == (12, 0), "the one of 31 days before is in no window"
    with live.found.store.read() as snapshot:
        assert by_rows(snapshot, live, subjects) == fresh
        again = {known: (record.first_s, len(record.visitors)) for known, record in snapshot.scan(ACCOUNTS)}
        assert {known: again[known] for known in again} == {known: records[known] for known in again}
        assert len(again) == len(records) - 1
    assert_counts_are_those_of_the_events(live)
    await finish(live)
    assert_counts_are_those_of_the_events(live)


@pytest.mark.slow(0.2)
async def test_a_recount_goes_on_where_it_was_interrupted_and_new_events_count_once(live: Live, public: str):
    await populate(live, public)
    upgraded(live)
    await act(live, public, 1, "account 1")
    first = step(live)
    assert (first.events, first.is_complete) == (3, False)

    def interrupted(transaction: Transaction) -> None:
        recount.step(transaction, live.organization.number, live.clock.now_ms)
        raise OSError("the process was killed")

    with pytest.raises(OSError, match="killed"):
        write(live, interrupted)
    await act(live, public, 2, "account 9", "81.2.69.200")
    live.clock.advance(hours=1)
    assert step(live).events == 6
    await act(live, public, 3)
    with live.found.store.read() as snapshot:
        assert list(violations(snapshot)) == [], "also half way"
    progress = await finish(live)
    assert progress.events == 6
    assert_counts_are_those_of_the_events(live)


@pytest.mark.slow(0.2)
async def test_an_event_that_gets_an_account_meanwhile_is_counted_with_it(live: Live, public: str):
    ids = await populate(live, public)
    secret = live.issue("secret", "production")[1]
    upgraded(live)
    step(live)
    for request_id in (ids[-2], ids[2], ids[-1]):  # counted, not yet counted, and counted without an account
        await change(live, secret, request_id, account_id="another")
    await finish(live)
    await change(live, secret, ids[3], account_id="another")
    assert_counts_are_those_of_the_events(live)


async def change(live: Live, secret: str, request_id: str, **fields: Any) -> None:
    response = await live.client.patch(f"/api/v1/events/{request_id}", json=fields, headers={"x-api-key": secret})
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("steps", [0, 2, 9])
@pytest.mark.parametrize("what", ["visitors", "accounts"])
@pytest.mark.slow(0.2)
async def test_what_is_erased_while_counts_are_rebuilt_is_in_none(live: Live, public: str, steps: int, what: str):
    await populate(live, public)
    upgraded(live)
    for _ in range(steps):
        step(live)
    _, secret = live.issue("secret", "production")
    listed = (await live.client.get(f"/api/v1/{what}", headers={"x-api-key": secret})).json()
    gone = listed[what][0][f"{what[:-1]}_id"]
    response = await Automation(live)("DELETE", f"/{what}/{gone}")
    assert response.status_code == 204, response.text
    await finish(live)
    # What only an erased visitor had stays counted until it leaves the windows: it is a digest.
    assert_counts_are_those_of_the_events(live, 2 if what == "visitors" else None)


@pytest.mark.slow(0.2)
async def test_answers_say_since_when_events_are_counted_until_all_are(live: Live, public: str):
    ids = await populate(live, public)
    secret = live.issue("secret", "production")[1]

    async def since() -> set[str | None]:
        answers = [await read(live, secret, path) for path in ("visitors", "accounts")]
        visitor, account = answers[0]["visitors"][0]["visitor_id"], answers[1]["accounts"][0]["account_id"]
        answers += [await read(live, secret, f"visitors/{visitor}"), await read(live, secret, f"accounts/{account}")]
        return {answer.get("counted_since") for answer in answers}

    assert await since() == {None}
    upgraded(live)
    assert await since() == {timestamp(made_at(ids[-1]))}
    step(live)
    assert await since() == {timestamp(made_at(ids[-3]))}, "the three newest are counted"
    await finish(live)
    assert await since() == {None}


def made_at(request_id: str) -> int:
    return int.from_bytes(UUID(request_id).bytes[:6])


async def read(live: Live, secret: str, path: str) -> dict[str, Any]:
    return succeeded(await live.client.get(f"/api/v1/{path}", headers={"x-api-key": secret}))


@pytest.mark.slow(0.2)
async def test_an_event_that_cannot_be_read_is_left_out(live: Live, public: str):
    ids = await populate(live, public)
    upgraded(live)
    with corrupt(live, EVENTS, ids[5]):
        assert (await finish(live)).events == 11
        assert (await run_command(live, "store", "quarantine", ids[5])).status == 0
    assert_counts_are_those_of_the_events(live)


async def test_while_the_clock_is_not_trusted_nothing_is_counted(live: Live, public: str):
    """What is of the last 30 days is not known then, and what is left out is left out for good."""
    await populate(live, public)
    upgraded(live)
    watch = ClockWatch(live.world.wall_ms(), live.world.elapsed_s())
    live.clock.jump(days=365)
    counted = await recounter.count(
        live.found.store, live.world, watch, RecountProgress(), CorruptRows(), pending_of(live)
    )
    assert not counted
    assert pending_of(live).recount.events == 0


def pending_of(live: Live) -> recount.Pending:
    with live.found.store.read() as snapshot:
        (found,) = recount.pending(snapshot)
    return found


@pytest.mark.slow(0.2)
async def test_a_store_without_old_events_has_nothing_to_count(live: Live, public: str):
    await populate(live, public)
    with live.found.store.read() as snapshot:
        assert list(snapshot.scan(RECOUNTS)) == []
    assert step(live) is None


@pytest.mark.only_on("lmdb", "0.2.0 had no other engine")
async def test_a_store_of_0_2_0_counts_its_visitors_after_the_upgrade(directory: Path):
    directory, known = unpack(RELEASED / "0.2.0.tar.xz", directory)
    world = World.real()
    upgrade(directory, world.run_sync, map_bytes=64 << 20, program=svc.__version__, now_ms=world.now_ms)
    async with live_service(directory, now_ms=EPOCH_MS + 60_000) as live:
        await finish(live)  # beside that of the service: each event is counted once
        visitors = (await read(live, known["secret_key"], "visitors"))["visitors"]
        counted = {each["visitor_id"]: each["velocity"] for each in visitors}
        for visitor_id, velocity in counted.items():
            own = await read(live, known["secret_key"], f"events?visitor={visitor_id}")
            assert velocity["events"]["30d"] == len(own["rows"]) > 0
            assert velocity["addresses"]["30d"] == len({row["ip_address"] for row in own["rows"]})
        assert max(velocity["events"]["30d"] for velocity in counted.values()) > 1
        with live.found.store.read() as snapshot:
            assert list(violations(snapshot)) == []
            assert {row.is_complete for _, row in snapshot.scan(RECOUNTS)} == {True}
            assert {row.counted_from for _, row in snapshot.scan(RECOUNTS)} == {
                first_id(EPOCH_MS + 60_000 - 1000 * LONGEST_S)
            }
