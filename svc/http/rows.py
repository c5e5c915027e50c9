"""Rows of a list response, read and encoded some at a time: a long list does not hold up everybody else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec
import trio

from svc.http.route import Services
from svc.identify.queries.events import UnreadableEvent

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

ROWS_AT_ONCE = 8
"""About a quarter of a millisecond for rows as large as they can be."""

_encoder = msgspec.json.Encoder()


async def in_parts(items: Sequence[T], read: Callable[[Sequence[T]], Awaitable[Iterable[R]]]) -> list[R]:
    """Return what `read` gives for these items. It gets `ROWS_AT_ONCE` of them at a time, with a checkpoint
    in between.
    """
    found: list[R] = []
    for start in range(0, len(items), ROWS_AT_ONCE):
        if start:
            await trio.lowlevel.checkpoint()
        found.extend(await read(items[start : start + ROWS_AT_ONCE]))
    return found


async def encoded(items: Sequence[T], make: Callable[[Sequence[T]], Iterable[msgspec.Struct]]) -> tuple[Any, ...]:
    """Return the rows that `make` makes of these items, encoded as JSON (`msgspec.Raw`), `in_parts`."""

    async def made(some: Sequence[T]) -> Iterable[msgspec.Struct]:
        return make(some)

    return await read_and_encoded(items, made)


async def read_and_encoded(
    items: Sequence[T], read: Callable[[Sequence[T]], Awaitable[Iterable[msgspec.Struct]]]
) -> tuple[Any, ...]:
    """Read rows, and return them as `encoded` does."""

    async def part(some: Sequence[T]) -> Iterable[msgspec.Raw]:
        return [msgspec.Raw(_encoder.encode(row)) for row in await read(some)]

    return tuple(await in_parts(items, part))


def note_unreadable(services: Services, doing: str, number: int, found: Iterable[object]) -> None:
    """Count the events of organization `number` among `found` that cannot be read (decisions 17.5)."""
    for each in found:
        if isinstance(each, UnreadableEvent):
            services.corrupt.note(doing, number, each.because)


async def page_of(
    read: Callable[[P, int], Awaitable[Sequence[tuple[P, T | None]]]], start: P, limit: int, at_once: int, most: int
) -> tuple[list[T], P | None]:
    """Return up to `limit` rows that pass a filter, and the position of the last row that was examined; `None` if there
    are no rows after it. `read(position, count)` returns `count` rows after a position, each with its own position, and
    `None` for a row that does not pass. `at_once` rows are examined between two checkpoints and `most` in all, so a
    page may be short.
    """
    found: list[T] = []
    position = start
    for looked_at in range(0, most, at_once):
        if looked_at:
            await trio.lowlevel.checkpoint()
        rows = await read(position, at_once + 1)
        for count, (position, row) in enumerate(rows[:at_once], start=1):
            if row is not None:
                found.append(row)
            if len(found) == limit:
                return found, position if count < len(rows) else None
        if len(rows) <= at_once:
            return found, None
    return found, position
