"""Clients that leave while nobody reads from them: their handlers are stopped.

A request is handled in the one task of its connection, which therefore reads nothing until the response is written. So
one task for all connections asks the kernel, once a second, which clients have closed their sending side meanwhile
(`POLLRDHUP`, of Linux; elsewhere this is noticed when the response is written). A request that is over within a second
costs next to nothing here.
"""

from __future__ import annotations

import select
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

import trio

POLL_INTERVAL_S = 1.0
LEFT = getattr(select, "POLLRDHUP", 0)


class Working(Protocol):
    """A connection whose only task is in a handler."""

    def fileno(self) -> int:
        """The descriptor of its socket."""
        ...

    def client_left(self) -> None:
        """Its client has closed its sending side."""


class Departures:
    """The connections whose only task is in a handler. `run` must run for as long as there may be any."""

    def __init__(self) -> None:
        self._working: dict[int, Working] = {}
        """By descriptor."""
        self._begun = trio.Event()

    @contextmanager
    def watching(self, connection: Working) -> Generator[None]:
        """Look after its client while this block runs."""
        descriptor = connection.fileno()
        self._working[descriptor] = connection
        self._begun.set()
        try:
            yield
        finally:
            del self._working[descriptor]

    async def run(self) -> None:
        """Until cancelled: tell connections once a second that their clients have left."""
        while True:
            await self._begun.wait()
            await trio.sleep(POLL_INTERVAL_S)
            if not self._working:
                self._begun = trio.Event()
            for connection in self._left():
                connection.client_left()

    def _left(self) -> list[Working]:
        poll = select.poll()
        for descriptor in self._working:
            poll.register(descriptor, LEFT)
        return [self._working[descriptor] for descriptor, happened in poll.poll(0) if happened & LEFT]
