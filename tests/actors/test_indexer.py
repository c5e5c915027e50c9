"""The indexer: it goes on where there is something to do, rests longer when not, and a full store does not end it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from svc.identify.index.queries import FIRST_PART, SLOTS, SMALL
from svc.identify.indexing import indexer
from svc.identify.indexing import jobs as indexing
from svc.identify.tables import EVENT_SEGMENTS, EVENT_TAIL
from svc.kernel.store.engine import KeyRange, Writer
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store, StoreFullError
from svc.kernel.work.store_watch import CorruptRows
from svc.world import World
from tests.store.test_event_index import faults, recorded, segments, some
from tests.store.test_events import count_again, filled_store
from tests.support.worlds import EPOCH_MS


@pytest.fixture(autouse=True)
def of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("EVENTS_A_SMALL", 4), ("SMALL_IN_LARGE", 4), ("EVENTS_A_LARGE", 16), ("MAX_IN_LARGE", 32)):
        monkeypatch.setattr(indexing, name, value)


async def inline(function: Callable[[], Any], /, **_: Any) -> Any:
    """A virtual clock would go on while a thread is at work."""
    await trio.lowlevel.checkpoint()
    return function()


def world_at(now_ms: int) -> World:
    return World(lambda: now_ms, random.Random(1).randbytes, inline)


@contextmanager
def filled(directory: Path, *made: Any) -> Iterator[Store]:
    with filled_store(directory, *made) as store:
        store._run_sync = inline
        yield store


def shape(store: Store) -> tuple[int, int, int]:
    """Events in the tail, small segments, large ones."""
    with store.read() as snapshot:
        found = segments(snapshot)
        return snapshot.count(EVENT_TAIL), found[SMALL], found[SLOTS]


async def test_events_are_indexed_within_seconds(tmp_path: Path, autojump_clock: Any):
    made = some(23, "staging") + some(9, "development", start=100)
    world = world_at(EPOCH_MS + 50 + indexer.SETTLED_MS)
    with filled(tmp_path, *made) as store:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(indexer.run, store, world)
            await trio.sleep(indexer.SHORTEST_REST_S + 0.5)
            assert shape(store) == (3 + 9, 1, 1), "those of development have not settled"
            nursery.cancel_scope.cancel()
        assert faults(store) == []


async def test_the_indexer_backs_off_and_resumes_after_a_full_store(
    tmp_path: Path, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
):
    looked: list[float] = []
    index = indexer.index

    async def noted(store: Store, before_ms: int, _: Any = None) -> int:
        looked.append(trio.current_time() - began)
        if len(looked) == 2:
            raise StoreFullError("no space")
        return await index(store, before_ms)

    monkeypatch.setattr(indexer, "index", noted)
    with filled(tmp_path) as store:
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(indexer.run, store, world_at(EPOCH_MS + 10**6))
            await trio.sleep(95)
            assert looked == pytest.approx([1, 3, 7, 15, 31, 61, 91])
            store.write_now([*recorded(some(9)), count_again])
            await trio.sleep(28)
            assert shape(store) == (1, 2, 0)
            assert looked[7:] == pytest.approx([121, 122])
            nursery.cancel_scope.cancel()


async def test_a_step_that_fails_is_raised_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def breaks(transaction: Transaction, scope: Any, before_ms: int) -> bool:
        indexing.step(transaction, scope, before_ms)
        raise RuntimeError("half way")

    with filled(tmp_path, *some(9)) as store:
        monkeypatch.setattr(indexer, "step", breaks)
        with pytest.raises(RuntimeError):
            await indexer.index(store, EPOCH_MS + 10**6)
        assert shape(store) == (9, 0, 0)
        monkeypatch.undo()
        assert await partial(indexer.index, store)(EPOCH_MS) == 0


async def test_a_corrupt_segment_is_made_again_at_the_start_and_once_a_corrupt_row_was_found(
    tmp_path: Path, autojump_clock: Any
):
    world, corrupt = world_at(EPOCH_MS + 10**6), CorruptRows()
    with filled(tmp_path, *some(23, "staging")) as store:
        await indexer.index(store, world.now_ms())
        before = shape(store)
        damage(store)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(indexer.run, store, world, corrupt)
            await trio.sleep(indexer.SHORTEST_REST_S + 0.5)
            assert faults(store) == []
            damage(store)
            await trio.sleep(indexer.LOOK_AGAIN_S + indexer.LONGEST_REST_S)
            assert faults(store), "nobody has met it"
            corrupt.note("listEvents", None, CorruptionError("a row of event_segments fails its check"))
            await trio.sleep(indexer.LONGEST_REST_S)
            assert faults(store) == []
            nursery.cancel_scope.cancel()
        assert shape(store) == before


def damage(store: Store) -> None:
    """Flip a bit of the postings of all large segments."""

    def flip(writer: Writer) -> None:
        unpack = EVENT_SEGMENTS.key.unpack
        rows = [row for row in writer.range(KeyRange(EVENT_SEGMENTS.name)) if unpack(row[0])[2] >= FIRST_PART]
        writer.put_many(EVENT_SEGMENTS.name, [(key, raw[:6] + bytes([raw[6] ^ 1]) + raw[7:]) for key, raw in rows])

    store.engine.write(flip)


async def test_a_segment_whose_events_are_not_found_by_their_ids_is_left_as_it_is(tmp_path: Path):
    """The ids of these events are of 1970, and a segment without its slots would lose them."""
    corrupt = CorruptRows()
    with filled(tmp_path, *some(23, "staging")) as store:
        await indexer.index(store, EPOCH_MS + 10**6)

        def flip(writer: Writer) -> None:
            (row,) = (row for row in writer.range(KeyRange(EVENT_SEGMENTS.name)) if row[0][5] == SMALL)
            writer.put(EVENT_SEGMENTS.name, row[0], row[1][:6] + bytes([row[1][6] ^ 1]) + row[1][7:])

        store.engine.write(flip)
        assert await indexer.repair(store, corrupt) == 0
        assert corrupt.found == {"index repair": 1}
        assert faults(store)
