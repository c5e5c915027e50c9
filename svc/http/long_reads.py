"""Reads that take long: one at a time.

Owns whose turn it is, in memory. Each passes many checkpoints; that there is only one at a time keeps the sum of them
from delaying identifications. A preview takes about a second, so an organization has one of those at most; searches
wait for each other, first for those of their own organization: however many it sends, others wait for one of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from svc.domain.refusals import Refusal

RETRY_AFTER_S = 1


class LongReads:
    """The turns of one service."""

    def __init__(self) -> None:
        self._lock = trio.Lock()
        self._own: dict[int, trio.Lock] = {}
        """Of organizations that have one which runs or waits."""
        self._organizations: set[int] = set()

    def refusal(self, organization: int) -> Refusal | None:
        """`429 rate_limited` while the organization has one that runs or waits."""
        if organization not in self._organizations:
            return None
        explanation = "A preview of this organization is being computed. Wait for the seconds in Retry-After."
        return Refusal("rate_limited", retry_after_s=RETRY_AFTER_S, explanation=explanation)

    @asynccontextmanager
    async def in_turn(self, organization: int) -> AsyncGenerator[None]:
        """Wait for the turn, and hold it for a block: for a read that goes on beyond its first milliseconds."""
        own = self._own.setdefault(organization, trio.Lock())
        try:
            async with own, self._lock:
                yield
        finally:
            if not own.locked() and self._own.get(organization) is own:
                del self._own[organization]

    @asynccontextmanager
    async def turn(self, organization: int) -> AsyncGenerator[None]:
        """Wait for the turn, and hold it for a block. To be entered only where there is no `refusal`."""
        self._organizations.add(organization)
        try:
            async with self.in_turn(organization):
                yield
        finally:
            self._organizations.discard(organization)
