"""Decisions 17.5 and 7.6: whatever row is corrupt, an erasure ends, takes what can be found, and names what it leaves.

In one table after the other each row of the organization has a flipped bit. What an erasure does then is compared with
what it does where nothing is corrupt.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from svc.features.erasure.accounts import continue_account_erasure, erase_account
from svc.features.erasure.organizations import continue_removal, remove_organization
from svc.features.erasure.tables import TEXT_ERASURES
from svc.features.erasure.unreadable import UnreadableRows
from svc.features.erasure.visitors import continue_erasure, erase_visitor, has_events
from svc.features.lists.tables import LIST_ENTRIES
from svc.features.retention.sweeper import Progress, finish_interrupted, sweep
from svc.features.reviews.tables import REVIEWS
from svc.features.tables import TABLES
from svc.identify.tables import ACCOUNT_ERASURES, ACCOUNTS, ERASURES, EVENTS, HOURS, VISITOR_IDS, VISITORS
from svc.identify.velocity.counts import KINDS, account_digest
from svc.kernel.store.engine import Engine, KeyRange
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store
from svc.kernel.tenants.tables import ORGANIZATIONS
from svc.kernel.values.ids import DAY_MS
from tests.features.house import House
from tests.features.test_erasure import fill, service
from tests.spec.commands import run_beside
from tests.store.release import _attest
from tests.support.live import faults
from tests.support.receivers import DOWN, Receivers, always

Stored = dict[str, dict[bytes, bytes]]
Erase = Callable[[Transaction], Any]
ALSO = {
    "event_segments": {"event_changes"},
    "reviews": {"subject_reviews", "open_reviews", "webhook_deliveries", "webhook_due"},
}
"""Table that is corrupt -> others in which rows change that else stay: an event that no index names is no change, and a
review that cannot be read goes as a whole.
"""


@asynccontextmanager
async def filled(tmp_path: Path, *, whole: bool = False) -> AsyncGenerator[House]:
    """An organization in which every route finds something; `whole`: one that has rows in every table, too."""
    receivers = Receivers(always(DOWN, 0))
    async with service(tmp_path, receivers) as live:
        house = House(live, live.organization, "annaxq")
        await (fill(house, receivers) if whole else house.fill())
        yield house


def stored(engine: Engine) -> Stored:
    with closing(engine.read()) as reader:
        return {table.name: dict(reader.range(KeyRange(table.name, checked=False))) for table in TABLES}


def restore(engine: Engine, wanted: Stored) -> None:
    is_now = stored(engine)

    def write(writer: Any) -> None:
        for name, rows in wanted.items():
            writer.put_many(name, sorted(row for row in rows.items() if is_now[name].get(row[0]) != row[1]))
            for key in is_now[name].keys() - rows.keys():
                writer.delete(name, key)

    engine.write(write)


def flipped(raw: bytes) -> bytes:
    return raw[:-1] + bytes([raw[-1] ^ 1])


def flip_keys(engine: Engine, table: Table[Any], number: int) -> bool:
    """Flip the first bit of the last byte of each key that an organization has in a table; return whether it has any.
    Of a text it is no UTF-8 any more.
    """
    rows = [(key, raw) for key, raw in stored(engine)[table.name].items() if key[:4] == number.to_bytes(4)]

    def write(writer: Any) -> None:
        for key, _ in rows:
            writer.delete(table.name, key)
        writer.put_many(table.name, sorted((key[:-1] + bytes([key[-1] ^ 0x80]), raw) for key, raw in rows))

    engine.write(write)
    return bool(rows)


def flip(engine: Engine, table: Table[Any], number: int) -> bool:
    """Flip a bit in each row that an organization has in a table; return whether it has any."""
    rows = [(key, flipped(raw)) for key, raw in stored(engine)[table.name].items() if key[:4] == number.to_bytes(4)]
    engine.write(lambda writer: writer.put_many(table.name, sorted(rows)))
    return bool(rows)


def run(store: Store, begin: Erase, go_on: Erase) -> list[CorruptionError]:
    """Erase to the end; return what is named."""
    left = UnreadableRows()
    ended = store.write_one_now(lambda transaction: begin(left.past(transaction)))
    while ended is False:
        ended = store.write_one_now(lambda transaction: go_on(left.past(transaction)))
    assert ended is True
    return left.left()


def changed(before: Stored, after: Stored) -> set[tuple[str, bytes]]:
    return {
        (name, key)
        for name in before
        for key in before[name].keys() | after[name].keys()
        if before[name].get(key) != after[name].get(key)
    }


def ways(house: House, now_ms: int) -> dict[str, tuple[Erase, Erase]]:
    number = house.organization.number
    visitor, account = house.names["visitor_id_1"], house.names["account_2"]
    return {
        "visitor": (
            partial(erase_visitor, number=number, visitor_id=visitor, now_ms=now_ms),
            partial(continue_erasure, number=number, raw_id=visitor.encode(), now_ms=now_ms),
        ),
        "account": (
            partial(erase_account, number=number, account_id=account, now_ms=now_ms),
            partial(continue_account_erasure, number=number, digest=account_digest(number, account), now_ms=now_ms),
        ),
        "organization": (
            lambda of: not remove_organization(of, number, now_ms),
            lambda of: continue_removal(of, number) == 0,
        ),
    }


@pytest.mark.slow(8)
@pytest.mark.only_on("lmdb", "a hundred states of a store are written and compared; the rows are the same on both")
async def test_an_erasure_ends_whatever_table_is_corrupt(directory: Path):
    async with filled(directory, whole=True) as house:
        await _attest(house.live)
        invited = {"email": "berta@other.example", "name": "Berta", "role": "viewer"}
        other = House(house.live, house.live.new_organization("other"), "bertaxq")
        assert (await other.admin("POST", "/members", invited)).status_code == 201
        store, number = house.live.found.store, house.organization.number
        intact, tried = stored(store.engine), 0
        for what, (begin, go_on) in ways(house, house.live.clock.now_ms).items():
            assert run(store, begin, go_on) == []
            usual = changed(intact, stored(store.engine))
            for table in TABLES:
                restore(store.engine, intact)
                if not table.by_organization or table is ORGANIZATIONS or not flip(store.engine, table, number):
                    continue
                damaged = stored(store.engine)
                left = run(store, begin, go_on)
                did = changed(damaged, stored(store.engine))
                more = {name for name, _ in did - usual} - {table.name, *ALSO.get(table.name, ())}
                assert not more, f"{what}: for a corrupt row of {table.name} rows of others were changed"
                assert left or table is EVENTS or not usual - did, f"{what}: nothing names what {table.name} lost"
                tried += 1
            restore(store.engine, intact)
        assert tried > 100


@pytest.mark.slow
@pytest.mark.only_on("lmdb", "as above")
async def test_a_flipped_bit_of_any_key_is_found_and_does_not_stop_retention(directory: Path):
    async with filled(directory, whole=True) as house:
        store, number = house.live.found.store, house.organization.number
        intact, tried = stored(store.engine), 0
        for table in TABLES:
            restore(store.engine, intact)
            if not table.by_organization or not flip_keys(store.engine, table, number):
                continue
            assert await faults(store), f"the check finds nothing in {table.name}"
            await sweep(store, house.live.clock.now_ms + 1000 * DAY_MS, 30, with_passes=True)
            tried += 1
        restore(store.engine, intact)
        assert tried > 40


@pytest.mark.slow
@pytest.mark.only_on("lmdb", "as above")
async def test_an_erasure_whose_own_row_is_corrupt_starts_again(directory: Path):
    async with filled(directory) as house:
        store, number = house.live.found.store, house.organization.number
        account = house.names["account_2"]
        raw_id, digest = house.names["visitor_id_1"].encode(), account_digest(number, account)
        store.write_one_now(lambda of: of.put(ERASURES, (number, raw_id), 1))
        store.write_one_now(lambda of: of.put(ACCOUNT_ERASURES, (number, digest), account.encode()))
        assert flip(store.engine, ERASURES, number)
        assert flip(store.engine, ACCOUNT_ERASURES, number)
        of = ways(house, house.live.clock.now_ms)
        for what in ("visitor", "account"):
            run(store, *of[what])
        left = stored(store.engine)
        assert left["erasures"] == left["account_erasures"] == {}
        assert not [key for key in left["visitor_ids"] if raw_id in key]


@pytest.mark.slow
@pytest.mark.only_on("lmdb", "as above")
async def test_retention_ends_the_erasures_beside_one_whose_row_is_corrupt(directory: Path):
    async with filled(directory) as house:
        store, number = house.live.found.store, house.organization.number
        account, raw_id = house.names["account_2"], house.names["visitor_id_1"].encode()
        digest = account_digest(number, account)
        intact = stored(store.engine)
        store.write_one_now(lambda of: of.put(ERASURES, (number, raw_id), of.get(VISITOR_IDS, number, raw_id)))
        store.write_one_now(lambda of: of.put(ACCOUNT_ERASURES, (number, digest), account.encode()))
        rubbish = {
            table: table.key.pack(number, *parts)
            for table, parts in ((ERASURES, (b"\xff" * 20,)), (ACCOUNT_ERASURES, (7,)), (TEXT_ERASURES, (200, 7)))
        }
        for table, key in rubbish.items():
            store.engine.write(lambda writer, table=table, key=key: writer.put(table.name, key, b"rubbish"))
        progress = Progress()
        await finish_interrupted(store, progress, house.live.clock.now_ms)
        left = stored(store.engine)
        assert {table: {*left[table.name]} for table in rubbish} == {table: {key} for table, key in rubbish.items()}
        with store.read() as snapshot:
            assert not has_events(snapshot, number, raw_id)
            assert not any(snapshot.has(ACCOUNTS, number, kind, digest) for kind in range(len(KINDS)))
        assert progress.corrupt.found == {"retention of erasure": 3}
        restore(store.engine, intact)


@pytest.mark.slow
@pytest.mark.only_on("lmdb", "as above")
@pytest.mark.parametrize(
    ("table", "leads"),
    [
        (REVIEWS, ("reviews", "subject_reviews", "open_reviews", "open_cases", "webhook_events")),
        (LIST_ENTRIES, ("list_entries", "list_expiries", "listed")),
    ],
    ids=lambda of: getattr(of, "name", ""),
)
async def test_a_corrupt_row_goes_with_what_leads_to_it(directory: Path, table: Table[Any], leads: tuple[str, ...]):
    async with filled(directory) as house:
        store, number = house.live.found.store, house.organization.number
        intact, of = stored(store.engine), ways(house, house.live.clock.now_ms)
        for what in ("visitor", "account"):
            run(store, *of[what])
            usual = {name: stored(store.engine)[name].keys() for name in leads}
            restore(store.engine, intact)
            assert flip(store.engine, table, number)
            run(store, *of[what])
            left = stored(store.engine)
            for name in leads:
                assert left[name].keys() <= usual[name], f"{what}: {name}"
            restore(store.engine, intact)


@pytest.mark.slow
@pytest.mark.only_on("lmdb", "as above")
async def test_what_an_erasure_leaves_is_named_by_the_commands_and_the_service(directory: Path):
    """The visitor's record goes with its key; the counter of an hour cannot be set right, and stays."""
    async with filled(directory) as house:
        engine, number = house.live.found.store.engine, house.organization.number
        intact = stored(engine)
        for table in (VISITORS, HOURS):
            assert flip(engine, table, number)
        erased = await run_beside(
            "visitor",
            "erase",
            house.live.organization.id,
            house.names["visitor_id_1"],
            "--yes",
            "--json",
            *house.live.options,
        )
        hour, record = erased.json["remains_in"]
        assert hour.startswith("a row of hours fails its check: ")
        assert record.endswith("; it is deleted, and what only it led to is not")
        response = await house.admin("DELETE", f"/visitors/{house.names['visitor_id_2']}")
        assert response.status_code == 204
        assert house.live.service.services.corrupt.found["eraseVisitor"] == 2
        restore(engine, intact)
