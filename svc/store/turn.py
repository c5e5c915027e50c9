"""Whose turn it is to write: one at a time, identifications before everything else that waits.

Each change beside identify is a commit of its own. In one queue with them an identification would wait for all that
are there; so it waits for the one that is being written. The visitor index has one group on its way at a time, so
the others have a turn after each of its groups.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio


class WriteTurn:
    """A lock that goes to the first urgent waiter, else to the first of the others."""

    def __init__(self) -> None:
        self._is_taken = False
        self._urgent, self._others = trio.lowlevel.ParkingLot(), trio.lowlevel.ParkingLot()

    @asynccontextmanager
    async def held(self, *, urgent: bool) -> AsyncGenerator[None]:
        """Hold the lock for a block. May be cancelled while it waits; not reentrant."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._is_taken:
            await (self._urgent if urgent else self._others).park()
        self._is_taken = True
        try:
            yield
        finally:
            following = self._urgent or self._others
            if following:
                following.unpark()  # it is theirs now
            else:
                self._is_taken = False
