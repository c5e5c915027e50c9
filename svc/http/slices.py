"""Long reads in slices of time: others have their turn after each, whatever one item costs.

What may live here: how much is read at once, and for how long it rests afterwards. A slice lasts about `SLICE_S`, and
is followed by a rest of the same length, since an identification passes through the loop several times: so a long read
has half of the loop at most (docs/adr/0172).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from itertools import chain
from typing import Final, TypeVar

import trio

from svc.kernel.store.snapshot import Snapshot
from svc.kernel.store.store import Store
from svc.world import World

R = TypeVar("R")
T = TypeVar("T")

SLICE_S: Final = 0.002
MAX_AT_ONCE: Final = 64
"""Items of a slice, where they cost little; what bounds a slice where time stands still, as in simulations."""

Read = Callable[[Snapshot, Sequence[T]], Iterator[R]]
"""Yields one result for each item, in their order, and does the work of an item when its result is asked for."""


async def in_slices(world: World, store: Store, items: Sequence[T], read: Read[T, R]) -> AsyncGenerator[list[R]]:
    """Read items, and yield the results of each slice. Raises what `read` raises."""
    done, at_once = 0, min(8, MAX_AT_ONCE)
    while done < len(items):
        began_s = world.elapsed_s()
        slice_of = partial(_slice, items[done : done + at_once], read, world.elapsed_s)
        found = await store.query(slice_of)
        done += len(found)
        at_once = min(2 * len(found), MAX_AT_ONCE)
        yield found
        if done < len(items):
            await rest(world, began_s)


async def all_in_slices(world: World, store: Store, items: Sequence[T], read: Read[T, R]) -> list[R]:
    """Return the results of `in_slices` at once."""
    async with aclosing(in_slices(world, store, items, read)) as slices:
        return list(chain.from_iterable([found async for found in slices]))


async def rest(world: World, began_s: float) -> None:
    """Let others go on, for as long as the slice that began then took, up to twice the length that it should have."""
    await trio.sleep(min(world.elapsed_s() - began_s, 2 * SLICE_S))


class Slice:
    """The time of one slice, for work that is no read: `await pause()` between its steps rests when it is over."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._began_s = world.elapsed_s()

    async def pause(self) -> None:
        """Rest if the slice is over; then another one begins."""
        if self._world.elapsed_s() - self._began_s >= SLICE_S:
            await rest(self._world, self._began_s)
            self._began_s = self._world.elapsed_s()


def _slice(items: Sequence[T], read: Read[T, R], elapsed_s: Callable[[], float], snapshot: Snapshot) -> list[R]:
    until_s = elapsed_s() + SLICE_S
    found: list[R] = []
    for result in read(snapshot, items):
        found.append(result)
        if elapsed_s() >= until_s:
            break
    return found
