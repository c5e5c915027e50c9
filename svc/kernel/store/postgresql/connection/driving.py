"""What drives the protocol: generators that yield a socket and what they wait for, in a trio task or on a thread.

What may live here: waiting. No protocol and no statement.
"""

from __future__ import annotations

import select
from collections.abc import Awaitable, Callable, Generator
from enum import Enum
from typing import TypeVar

import trio

from svc.kernel.store.postgresql.connection.errors import ConnectionLostError
from svc.world import elapsed_s

T = TypeVar("T")


class For(Enum):
    """What a generator waits for."""

    READABLE = 1
    WRITABLE = 2
    EITHER = 3


WireSteps = Generator[tuple[int, For], None, T]
"""Yields a socket and what it waits for."""


async def driven(steps: WireSteps[T], limit_s: float | None) -> T:
    """Run a generator in a trio task. Raises `ConnectionLostError` after `limit_s`."""
    try:
        with trio.fail_after(float("inf") if limit_s is None else limit_s):
            while True:
                socket, waits_for = next(steps)
                await _WAITS[waits_for](socket)
    except StopIteration as end:
        return end.value
    except trio.TooSlowError:
        raise ConnectionLostError(f"the database did not respond for {limit_s:g} seconds") from None
    finally:
        steps.close()


async def _either(socket: int) -> None:
    async with trio.open_nursery() as nursery:

        async def first(wait: Callable[[int], Awaitable[None]]) -> None:
            await wait(socket)
            nursery.cancel_scope.cancel()

        nursery.start_soon(first, trio.lowlevel.wait_readable)
        nursery.start_soon(first, trio.lowlevel.wait_writable)


def driven_now(steps: WireSteps[T], limit_s: float | None) -> T:
    """Run a generator on the calling thread. Raises `ConnectionLostError` after `limit_s`."""
    ends_at = None if limit_s is None else elapsed_s() + limit_s
    try:
        while True:
            socket, waits_for = next(steps)
            poll = select.poll()
            poll.register(socket, _EVENTS[waits_for])
            left_s = None if ends_at is None else ends_at - elapsed_s()
            if not poll.poll(None if left_s is None else max(0, 1000 * left_s)):
                raise ConnectionLostError(f"the database did not respond for {limit_s:g} seconds")
    except StopIteration as end:
        return end.value
    finally:
        steps.close()


_WAITS: dict[For, Callable[[int], Awaitable[None]]] = {
    For.READABLE: trio.lowlevel.wait_readable,
    For.WRITABLE: trio.lowlevel.wait_writable,
    For.EITHER: _either,
}
_EVENTS = {
    For.READABLE: select.POLLIN,
    For.WRITABLE: select.POLLOUT,
    For.EITHER: select.POLLIN | select.POLLOUT,
}
