"""The connections of a serving store: at most so many, made when they are needed and kept.

What may live here: lending connections to tasks. No statement and no transaction.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

from svc.store.postgresql.connection.errors import ConnectionLostError
from svc.store.postgresql.connection.wire import Wire


class Pool:
    """Lends connections; who finds none free waits in line."""

    def __init__(self, connect: Callable[[], Awaitable[Wire]], most: int) -> None:
        self._connect = connect
        self._free = trio.CapacityLimiter(most)
        self._idle: list[Wire] = []

    @asynccontextmanager
    async def wire(self) -> AsyncGenerator[Wire]:
        """A connection for a block, with no transaction open. One that was closed in the block, or has a transaction
        open after it, is given up. Raises what connecting raises.
        """
        async with self._free:
            wire = self._idle.pop() if self._idle else await self._connect()
            try:
                yield wire
            except ConnectionLostError:
                self.close()  # what is idle has most likely been lost with it
                raise
            finally:
                if wire.is_open and not wire.is_in_transaction:
                    self._idle.append(wire)
                else:
                    wire.close()

    def close(self) -> None:
        """Close the connections that nobody uses. Others are closed when they come back."""
        while self._idle:
            self._idle.pop().close()

    @property
    def waiting(self) -> int:
        """Tasks in line."""
        return self._free.statistics().tasks_waiting
