"""Long reads in slices of time: others have their turn after each, whatever one item costs.

What may live here: how much is read at once, and for how long it rests afterwards. A slice lasts about `SLICE_S`. Where
others work in the pause behind it, it is followed by a rest of the same length, since an identification passes through
the loop several times: so a long read has half of the loop at most, and all of it while nobody else is there
(docs/adr/0172, docs/adr/0196). Nothing else says how many rows are read at once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, nullcontext
from functools import partial
from typing import Final, TypeVar

import trio

from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.store import Store
from svc.kernel.values.steps import Steps
from svc.world import World

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

SLICE_S: Final = 0.002
MAX_AT_ONCE: Final = 64
"""Items of one query, where they cost little; what bounds it where time stands still, as in simulations."""
FIRST_AT_ONCE: Final = 8
SHORT: Final = 256
"""Items of a read that waits for no turn, where most of them are wanted: more than any page has."""
BUSY_S: Final = 0.0001
"""Others work, where they take so long in one pass of the loop: less than any part of an identification."""

Scan = Callable[[Snapshot, P, int], Iterable[tuple[P, R]]]
"""Of the position behind which to read and a count: yields so many items, each with its position, and fewer only at the
end of what there is. The work of an item is best done when it is asked for.
"""
Held = Callable[[], AbstractAsyncContextManager[object]]
"""Returns a context that is entered for a long read."""
Read = Callable[[Snapshot, Sequence[T]], Iterable[R]]
"""Yields one result for each item, in their order, and does the work of an item when its result is asked for."""


async def scanned(
    world: World,
    store: Store,
    scan: Scan[P, R],
    start: P,
    at_once: int = FIRST_AT_ONCE,
    wanted: Callable[[], int] = lambda: MAX_AT_ONCE,
    before_more: Callable[[], Awaitable[object]] = trio.lowlevel.checkpoint_if_cancelled,
) -> AsyncGenerator[list[tuple[P, R]]]:
    """Yield what the scan finds, some items at a time; `at_once` of them at first, and then no more than are `wanted`.
    `before_more` is awaited before each slice but the first. Raises what `scan` raises.
    """
    position, at_once, spent_s = start, min(at_once, MAX_AT_ONCE), 0.0
    while True:
        found, has_ended, took_s = await store.query(partial(_some, scan, position, at_once, world.worked_s))
        began_s = world.worked_s()
        if found:
            position = found[-1][0]
            yield found
        if has_ended:
            return
        spent_s += took_s + world.worked_s() - began_s
        await before_more()
        at_once = min(2 * len(found), MAX_AT_ONCE, wanted())
        spent_s = await _paused(world, spent_s)


async def found_behind(
    world: World,
    store: Store,
    scan: Scan[P, R | None],
    start: P,
    limit: int,
    *,
    most: int,
    held: Held,
    page: Held = nullcontext,
) -> tuple[list[R], P | None]:
    """Return up to `limit` rows behind a position, and the position of the last item that was looked at, `None` = there
    is none behind it. An item without a row is `None`. At most about `most` are looked at, and behind a full page only
    few. `held()` is entered for each slice of a long search, which finds something in less than half of what it looks
    at, or looks at more than `SHORT`; `page()` before that, where one slice is not enough.
    """
    found: list[R] = []
    looked_at, behind, entered = 0, start, nullcontext
    stack = AsyncExitStack()

    def wanted() -> int:
        return MAX_AT_ONCE if entered is held else max(limit + 1 - len(found), FIRST_AT_ONCE)

    async def enter() -> None:
        nonlocal entered
        is_long = entered is held or 2 * len(found) < looked_at or looked_at > SHORT
        due = held if is_long else page
        if is_long or entered is not due:
            await stack.aclose()
            await stack.enter_async_context(due())
            entered = due

    async with stack, aclosing(scanned(world, store, scan, start, limit + 1, wanted, enter)) as slices:
        async for some in slices:
            for position, row in some:
                if len(found) == limit and (row is not None or looked_at >= most):
                    return found, behind
                behind, looked_at = position, looked_at + 1
                if row is not None:
                    found.append(row)
                    most = min(most, looked_at + MAX_AT_ONCE) if len(found) == limit else most
            if looked_at >= most:
                return found, behind
    return found, None


async def in_turns(slices: AsyncGenerator[list[R]], held: Held) -> AsyncGenerator[list[R]]:
    """Yield what a long read does. `held()` is entered for its slices and rests, not for the consumer."""
    async with aclosing(slices):
        while True:
            async with held():
                found = await anext(slices, None)
            if found is None:
                return
            yield found


async def in_slices(world: World, store: Store, items: Sequence[T], read: Read[T, R]) -> AsyncGenerator[list[R]]:
    """Read items, and yield the results of each slice. Raises what `read` raises."""
    if not items:
        return

    def scan(snapshot: Snapshot, done: int, count: int) -> Iterator[tuple[int, R]]:
        return enumerate(read(snapshot, items[done : done + count]), start=done + 1)

    async with aclosing(scanned(world, store, scan, 0)) as slices:
        async for found in slices:
            yield [result for _, result in found]
            if found[-1][0] == len(items):
                return


async def all_in_slices(world: World, store: Store, items: Sequence[T], read: Read[T, R]) -> list[R]:
    """Return the results of `in_slices` at once."""
    async with aclosing(in_slices(world, store, items, read)) as slices:
        return [result async for found in slices for result in found]


class Slice:
    """The time of one slice, for work that is no read: `await pause()` between its steps rests when it is over."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._began_s = world.worked_s()

    @property
    def is_over(self) -> bool:
        """Return whether its time has passed."""
        return self._world.worked_s() - self._began_s >= SLICE_S

    async def pause(self) -> None:
        """Rest if the slice is over; then another one begins."""
        spent_s = self._world.worked_s() - self._began_s
        if spent_s >= SLICE_S:
            await _paused(self._world, spent_s)
            self._began_s = self._world.worked_s()


async def carried_out(world: World, steps: Steps[R], held: Held) -> R:
    """Return the result of the work. `held()` is entered for each slice and its rest. Raises what it raises."""
    while True:
        async with held():
            time = Slice(world)
            while not time.is_over:
                try:
                    next(steps)
                except StopIteration as end:
                    return end.value
            await time.pause()


async def _paused(world: World, spent_s: float) -> float:
    """Let others work: behind a slice as long as it took, twice `SLICE_S` at most. Return what the next has spent."""
    began_s = world.worked_s()
    await trio.lowlevel.checkpoint()
    if spent_s < SLICE_S:
        return spent_s
    if world.worked_s() - began_s >= BUSY_S:
        await trio.sleep(min(spent_s, 2 * SLICE_S))
    return 0.0


def _some(
    scan: Scan[P, R], position: P, count: int, worked_s: Callable[[], float], snapshot: Snapshot
) -> tuple[list[tuple[P, R]], bool, float]:
    """What a slice finds, whether this is the end, and how long it took."""
    began_s = now_s = worked_s()
    found: list[tuple[P, R]] = []
    for each in scan(snapshot, position, count):
        found.append(each)
        now_s = worked_s()
        if len(found) == count or now_s >= began_s + SLICE_S:
            return found, False, now_s - began_s
    return found, True, worked_s() - began_s
