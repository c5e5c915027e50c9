"""Long reads in slices of time (docs/adr/0172)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any, cast
from weakref import WeakSet

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.http.callers.limits import LongReads
from svc.http.listing import MAX_LOOKED_AT, counted
from svc.kernel.values.steps import Steps
from svc.kernel.work.slices import (
    BUSY_S,
    MAX_AT_ONCE,
    SHORT,
    SLICE_S,
    Slice,
    carried_out,
    found_behind,
    in_slices,
    in_turns,
)


class Clock:
    """A world and a store in which each item takes some seconds of the monotonic clock."""

    def __init__(self, item_s: float) -> None:
        self.now_s = 0.0
        self.item_s = item_s
        self.slices: list[float] = []

    def worked_s(self) -> float:
        return self.now_s

    async def query(self, read: Any) -> Any:
        began_s = self.now_s
        found = read(None)
        self.slices.append(self.now_s - began_s)
        return found

    def read(self, _: object, items: Sequence[int]) -> Iterator[int]:
        for item in items:
            self.now_s += self.item_s
            yield item


async def read_all(clock: Clock, count: int) -> list[int]:
    world = store = cast("Any", clock)
    return [item async for found in in_slices(world, store, range(count), clock.read) for item in found]


async def test_everything_is_read_once_in_its_order(autojump_clock: object):
    for item_s in (0.0, SLICE_S / 10, SLICE_S * 3):
        assert await read_all(Clock(item_s), 500) == list(range(500))


async def test_a_slice_ends_when_its_time_is_over_whatever_an_item_costs(autojump_clock: object):
    cheap = Clock(SLICE_S / 10)
    await read_all(cheap, 200)
    assert max(cheap.slices) <= SLICE_S * 1.2
    costly = Clock(SLICE_S * 3)
    await read_all(costly, 20)
    assert len(costly.slices) == 20, "one item at a time"


async def test_where_time_stands_still_a_number_of_items_ends_a_slice(autojump_clock: object):
    clock = Clock(0)
    await read_all(clock, 1_000)
    assert len(clock.slices) >= 1_000 / MAX_AT_ONCE


class Others(trio.abc.Instrument):
    """Somebody who works in each pass of the loop."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def before_io_wait(self, timeout: float) -> None:
        self.clock.now_s += 1.001 * BUSY_S


@contextmanager
def working(clock: Clock) -> Iterator[None]:
    others = Others(clock)
    trio.lowlevel.add_instrument(others)
    try:
        yield
    finally:
        trio.lowlevel.remove_instrument(others)


async def test_a_read_rests_for_as_long_as_a_slice_took_where_others_work(autojump_clock: trio.testing.MockClock):
    began = trio.current_time()
    clock = Clock(SLICE_S / 4)
    with working(clock):
        await read_all(clock, 40)
    rested = trio.current_time() - began
    assert abs(rested - (sum(clock.slices) - clock.slices[-1])) < 1e-9


async def test_a_read_goes_on_at_once_while_nobody_else_works(autojump_clock: trio.testing.MockClock):
    began = trio.current_time()
    assert await read_all(Clock(SLICE_S / 4), 40) == list(range(40))
    assert trio.current_time() == began


async def test_work_rests_between_its_steps_when_its_slice_is_over(autojump_clock: trio.testing.MockClock):
    clock = Clock(0)
    time = Slice(cast("Any", clock))
    began = trio.current_time()
    await time.pause()
    assert trio.current_time() == began
    clock.now_s += SLICE_S
    with working(clock):
        await time.pause()
    assert trio.current_time() == began + SLICE_S


def steps(clock: Clock, count: int) -> Steps[str]:
    for _ in range(count):
        clock.now_s += SLICE_S / 4
        yield
    return "done"


async def test_work_in_steps_has_half_of_the_time_where_others_work(autojump_clock: trio.testing.MockClock):
    clock, began = Clock(0), trio.current_time()
    assert await carried_out(cast("Any", clock), steps(clock, 40), nullcontext) == "done"
    assert trio.current_time() == began, "nobody else works"
    with working(clock):
        assert await carried_out(cast("Any", clock), steps(clock, 40), nullcontext) == "done"
    assert abs(trio.current_time() - began - 10 * SLICE_S) < 1e-9


async def test_work_in_steps_raises_what_it_raises(autojump_clock: object):
    def failing() -> Steps[str]:
        yield
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        await carried_out(cast("Any", Clock(0)), failing(), nullcontext)


class Row:
    """A row of a list, of which it is known how many there are."""


@pytest.mark.parametrize(("rows", "expected"), [(1_000, 500), (2 * MAX_LOOKED_AT, MAX_LOOKED_AT // 2)])
async def test_rows_that_are_only_counted_are_not_kept(autojump_clock: object, rows: int, expected: int):
    alive, most = WeakSet[Row](), 0

    def scan(_: object, position: int, count: int) -> Iterator[tuple[int, Row | None]]:
        nonlocal most
        for behind in range(position + 1, min(position + count, rows) + 1):
            row = Row() if behind % 2 else None
            if row is not None:
                alive.add(row)
            most = max(most, len(alive))
            yield behind, row

    services: Any = SimpleNamespace(world=(clock := Clock(0)), store=clock)
    found = await counted(services, scan, 0, LongReads().turn(1))
    assert expected <= found.count < expected + MAX_AT_ONCE
    assert (found.is_exact, most) == (rows < MAX_LOOKED_AT, 1)


class Turns:
    """Counts how often it was entered."""

    def __init__(self) -> None:
        self.taken = 0
        self.is_held = False

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        self.taken += 1
        self.is_held = True
        yield
        self.is_held = False


async def found(rows: Sequence[bool], start: int, limit: int, most: int = 10_000) -> tuple[list[int], int | None, int]:
    """Places of rows behind a place, where the next page begins, and how often a turn was taken: `True` is a row."""
    world = store = cast("Any", Clock(0))
    turns = Turns()

    def scan(_: object, place: int, count: int) -> Iterator[tuple[int, int | None]]:
        for at in range(place, min(place + count, len(rows))):
            yield at + 1, at if rows[at] else None

    return *await found_behind(world, store, scan, start, limit, most=most, held=turns.held), turns.taken


async def test_a_page_is_full_or_the_last_one(autojump_clock: object):
    rows = [True] * 200
    assert await found(rows, 0, 3) == ([0, 1, 2], 3, 0)
    assert await found(rows, 197, 3) == ([197, 198, 199], None, 0)
    assert await found(rows, 0, 200) == (list(range(200)), None, 0)
    assert await found(rows, 200, 3) == ([], None, 0)


async def test_a_full_page_looks_at_few_rows_for_another_one(autojump_clock: object):
    few, many = [True, *[False] * (MAX_AT_ONCE - 1)], [True, *[False] * 500]
    assert (await found(few, 0, 1))[:2] == ([0], None), "there is none"
    assert (await found([*few, True], 0, 1))[:2] == ([0], MAX_AT_ONCE), "there is one"
    resume = (await found(many, 0, 1))[1]
    assert resume is not None
    assert resume <= 2 * MAX_AT_ONCE + 1
    assert (await found(many, resume, 1))[:2] == ([], None)


async def test_a_read_of_more_than_any_page_takes_a_turn_though_it_finds_something_everywhere(autojump_clock: object):
    rows = [True] * 5_000
    assert await found(rows, 0, SHORT) == (list(range(SHORT)), SHORT, 0)
    places, resume, turns = await found(rows, 0, 2_000)
    assert (len(places), resume) == (2_000, 2_000)
    assert turns >= (2_000 - SHORT) // MAX_AT_ONCE, "one for each slice: others may be in between"


async def test_a_read_of_some_slices_is_a_page_until_it_is_a_long_one(autojump_clock: object):
    """It is neither while one slice is enough, and never both."""

    def scan(_: object, place: int, count: int) -> Iterator[tuple[int, int]]:
        seen.append((pages.is_held, turns.is_held))
        return zip(range(place + 1, place + count + 1), range(place, place + count), strict=True)

    for limit, expected in ((MAX_AT_ONCE - 1, (0, 0)), (SHORT - 1, (1, 0)), (2 * SHORT, (1, 4))):
        pages, turns, seen = Turns(), Turns(), list[tuple[bool, bool]]()
        world = store = cast("Any", Clock(0))
        found, _ = await found_behind(world, store, scan, 0, limit, most=10_000, held=turns.held, page=pages.held)
        assert found == list(range(limit))
        assert (pages.taken, turns.taken) == expected
        assert (True, True) not in seen
        assert not pages.is_held
        assert not turns.is_held


async def test_work_in_steps_takes_a_turn_for_each_slice(autojump_clock: object):
    clock, turns = Clock(0), Turns()
    assert await carried_out(cast("Any", clock), steps(clock, 40), turns.held) == "done"
    assert turns.taken == 11, "the end has one of its own"


async def test_a_file_takes_a_turn_for_each_slice_and_none_while_its_reader_takes_it(autojump_clock: object):
    turns, rows = Turns(), list[int]()
    world = store = cast("Any", clock := Clock(SLICE_S / 10))
    async for some in in_turns(in_slices(world, store, range(500), clock.read), turns.held):
        assert not turns.is_held
        rows += some
    assert rows == list(range(500))
    assert turns.taken == len(clock.slices) + 1
    assert not turns.is_held


async def test_a_search_in_vain_takes_a_turn_and_ends_at_its_bound(autojump_clock: object):
    rows = [False] * 5_000
    places, resume, turns = await found(rows, 0, 10, most=1_000)
    assert places == []
    assert turns >= 1_000 // MAX_AT_ONCE
    assert resume is not None
    assert 1_000 <= resume < 1_000 + MAX_AT_ONCE
    assert (await found([*rows, True], 0, 10))[:2] == ([5_000], None)


@given(st.lists(st.booleans(), max_size=300), st.integers(1, 40), st.integers(1, 400))
@settings(deadline=None)
def test_pages_have_every_row_once_whatever_a_page_looks_at(rows: list[bool], limit: int, most: int):
    async def pages() -> list[int]:
        places, resume = list[int](), 0
        while resume is not None:
            some, behind, _ = await found(rows, resume, limit, most)
            assert len(some) <= limit
            assert behind is None or behind > resume, "a page goes on"
            places, resume = places + some, behind
        return places

    assert trio.run(pages) == [at for at, is_row in enumerate(rows) if is_row]
