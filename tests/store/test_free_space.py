"""A full store: what is refused, and that it can be emptied again."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from bench.retention import Months
from svc.features.checks.invariants import violations
from svc.features.erasure.visitors import erase_visitor
from svc.features.retention.sweeper import sweep
from svc.identify.recording.proofs import issue_challenge
from svc.identify.tables import DOCUMENTS, EVENTS, STATISTICS
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.lmdb.free_space import FreeSpace
from svc.kernel.store.opening import open_store
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store, StoreFullError
from svc.kernel.tenants.tables import BALANCES
from svc.kernel.values.ids import DAY_MS
from tests.support.worlds import inline

MIB = 1 << 20


def put(number: int, size: int):
    return lambda transaction: transaction.put(STATISTICS, (number, 0, 0), os.urandom(size))


def delete(number: int):
    return lambda transaction: transaction.delete(STATISTICS, number, 0, 0)


def until_full(write: Callable[[int], object]) -> int:
    """How many times it fitted."""
    for number in count():
        try:
            write(number)
        except StoreFullError:
            return number
    raise AssertionError


def filled(directory: Path, size: int, map_bytes: int = 2 * MIB) -> tuple[Store, int]:
    """A store into which nothing of this size fits any more, and how many did."""
    store = open_store(directory, inline, map_bytes=map_bytes, durable=False)
    return store, until_full(lambda number: store.write_now([put(number, size)]))


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 3_000, 50_000])
def test_a_full_store_can_be_emptied_row_by_row_whatever_filled_it(tmp_path: Path, size: int):
    store, fitted = filled(tmp_path, size)
    assert fitted > 10
    for number in range(fitted):
        assert store.write_now([delete(number)], may_use_reserve=True) == [True]
    assert not any(isinstance(outcome, Exception) for outcome in store.write_now([put(0, size)]))
    store.close()


def test_the_smallest_write_is_refused_before_it_uses_the_reserve_for_deletes(tmp_path: Path):
    store, _ = filled(tmp_path, 50_000)
    until_full(lambda number: store.write_now([put(1_000 + number, 1)]))
    with pytest.raises(StoreFullError, match="has reached map_gib"):
        store.write_now([lambda transaction: transaction.put(BALANCES, (1,), 1)])
    assert store.write_now([delete(0), delete(1)], may_use_reserve=True) == [True, True]
    store.close()


def test_a_full_disk_is_told_from_a_full_map(tmp_path: Path):
    """An operator raises the setting or frees the disk, by what the log says."""
    disk = os.statvfs(tmp_path)
    for map_bytes, sentence in ((MIB, "has reached map_gib"), (2 * disk.f_blocks * disk.f_frsize, "disk .* is full")):
        engine = LmdbEngine.open(tmp_path / str(map_bytes), map_bytes=map_bytes, durable=False)
        assert re.search(sentence, FreeSpace(engine.environment, ()).full())
        engine.close()


def test_a_store_stays_full_until_a_write_fits_or_a_trial_write_does(tmp_path: Path):
    store = open_store(tmp_path, inline, map_bytes=2 * MIB, durable=False)
    for heal in (lambda: store.write_now([put(1, 10)]), lambda: trio.run(store.try_write)):
        with pytest.raises(StoreFullError):
            store.write_now([put(0, 3 * MIB)])
        assert store.is_full
        store.write_now([delete(0)], may_use_reserve=True)
        assert store.is_full, "a delete says nothing of what else fits"
        heal()
        assert not store.is_full
    store.close()


@pytest.mark.slow(3)
@pytest.mark.parametrize("map_mib", [2, pytest.param(8, marks=pytest.mark.long)])
def test_a_store_full_of_visits_can_be_swept_and_its_visitors_erased(tmp_path: Path, map_mib: int):
    months = Months(tmp_path, visits_an_hour=8, devices=400, map_bytes=map_mib * MIB)
    store = months.found.store
    until_full(lambda _: months.visit())
    challenge = partial(issue_challenge, number=1, key_id="key_x", now_ms=months.at_ms)
    until_full(lambda _: store.write_now([partial(challenge, challenge=os.urandom(32))]))
    with store.read() as snapshot:
        visitors = sorted({event.verdict.visitor_id for _, event in snapshot.scan(EVENTS)})
    for visitor_id in visitors[:20]:
        erase = partial(erase_visitor, number=1, visitor_id=visitor_id, now_ms=months.at_ms)
        assert store.write_now([erase], may_use_reserve=True) == [True]
    after_ms = months.at_ms + 31 * DAY_MS
    trio.run(partial(sweep, store, after_ms, 365, with_passes=True), clock=MockClock(autojump_threshold=0))
    with store.read() as snapshot:
        assert snapshot.count(EVENTS) == snapshot.count(DOCUMENTS) == 0
        assert list(violations(snapshot)) == []
    months.visit()
    store.close()


def test_a_job_refused_by_a_full_store_changes_nothing(tmp_path: Path):
    store, fitted = filled(tmp_path, 3_000)

    def both(transaction: Transaction) -> None:
        transaction.put(BALANCES, (1,), 5)
        transaction.put(STATISTICS, (9_999, 0, 0), os.urandom(600_000))

    with pytest.raises(StoreFullError):
        store.write_now([both])
    with store.read() as snapshot:
        assert snapshot.count(BALANCES) == 0
        assert snapshot.count(STATISTICS) == fitted
    store.close()
