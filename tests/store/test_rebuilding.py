"""`svc store rebuild-indexes`: indexes and counters follow from the events, whatever became of them."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from svc.features.checks.invariants import violations
from svc.identify.indexing.jobs import INDEX, Rebuilt, rebuild
from svc.identify.records import Event
from svc.identify.tables import EVENT_TAIL, EVENTS, HOURS
from svc.kernel.store import operations
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.operation_log import Following
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store
from svc.kernel.values.ids import HOUR_MS
from tests.store.test_events import count_again, event, filled_store, uuid
from tests.support.process import run, run_json
from tests.support.worlds import EPOCH_MS

DERIVED = (*INDEX, HOURS)


def events(count: int) -> list[tuple[int, UUID, Event]]:
    """Of two organizations in turn; one in seven came late in the feed."""
    chance = random.Random(3)
    made: list[tuple[int, UUID, Event]] = []
    for number in range(count):
        one = event(chance, EPOCH_MS + chance.randrange(5 * HOUR_MS))
        if number % 7 == 0:
            one = msgspec.structs.replace(one, feed_at_ms=EPOCH_MS + 6 * HOUR_MS + number)
        made.append((1 + number % 2, uuid(number), one))
    return made


def rows(store: Store) -> dict[str, list[Any]]:
    """Of every index and counter."""
    with store.read() as snapshot:
        return {table.name: list(snapshot.scan(table)) for table in DERIVED}


def broken(store: Store) -> list[str]:
    with store.read() as snapshot:
        return list(violations(snapshot))


def lose(transaction: Transaction) -> None:
    """Every third row of every table."""
    for table in DERIVED:
        for key, _ in list(transaction.scan(table))[::3]:
            transaction.delete(table, *key)


def garble(transaction: Transaction) -> None:
    """A row of every table that fails its check, and one whose key is none."""
    for table in DERIVED:
        key, _ = next(transaction.scan(table))
        transaction.writer.put(table.name, table.key.pack(*key), b"nonsense")
        transaction.writer.put(table.name, b"\0\0\0\1?", b"nonsense")


def add(transaction: Transaction) -> None:
    """Rows of events that do not exist, and an hour that nothing came in."""
    for table in DERIVED:
        key, value = next(transaction.scan(table))
        stray = (*key[:-1], 7) if table is HOURS else (*key[:-1], b"?" * 16)
        transaction.put(table, stray, value)


@pytest.mark.slow
@pytest.mark.parametrize("job", [lose, garble, add, lambda txn: [txn.clear(table) for table in DERIVED]])
def test_data_derived_from_the_events_is_rebuilt(tmp_path: Path, job: Any):
    with filled_store(tmp_path, *events(800)) as store:
        store.change_log(partial(rebuild, now_ms=0))
        before = rows(store)
        assert all(before.values())
        assert broken(store) == []
        store.change_log(job)
        assert broken(store) != []
        done = store.change_log(partial(rebuild, now_ms=0))
        assert rows(store) == before
        assert broken(store) == []
        assert done == Rebuilt(800, sum(len(before[table.name]) for table in INDEX), len(before["hours"]))


def test_a_rebuild_leaves_a_valid_store_and_one_with_unreadable_events_unchanged(tmp_path: Path):
    with filled_store(tmp_path, *events(50)) as store:
        before = rows(store)
        store.change_log(partial(rebuild, now_ms=0))
        assert rows(store) == before
        store.change_log(lambda txn: txn.writer.put(EVENTS.name, EVENTS.key.pack(1, uuid(20).bytes), b"nonsense"))
        with pytest.raises(CorruptionError):
            store.change_log(partial(rebuild, now_ms=0))
        assert rows(store) == before


def test_after_a_rebuild_a_follower_must_start_again(tmp_path: Path):
    with filled_store(tmp_path, *events(20)) as store:
        following = Following(b"t" * 16, EPOCH_MS, "/backups", 1 << 20)
        store.change_log(partial(operations.begin, following=following))
        store.change_log(partial(rebuild, now_ms=EPOCH_MS))
        with store.read() as snapshot:
            row = operations.follower(snapshot)
            assert row is not None
            assert (row.lost_at_ms, row.lost_because) == (EPOCH_MS, "the indexes of the store were rebuilt")
            assert list(violations(snapshot)) == []


@pytest.mark.slow
def test_the_command_repairs_a_store_that_fails_the_check(tmp_path: Path):
    with filled_store(tmp_path, *events(100)) as store:
        store.write_now([count_again])
        store.change_log(partial(Transaction.clear, table=EVENT_TAIL))
    data = ("--data", str(tmp_path))
    assert "is not found in the index" in run("check", *data, status=1).stdout
    done = run_json("store", "rebuild-indexes", *data)
    assert done["events"] == 100
    assert run("check", *data).returncode == 0
