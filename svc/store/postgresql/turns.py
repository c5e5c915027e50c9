"""Whose turn it is to write for an organization: one group at a time, and what waits shares the next one.

A database lets one node at a time write for an organization. In the node they wait here, so that they hold no
connection meanwhile, and so that however many wait are one transaction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

import trio

from svc.store.group import Hint, Job
from svc.store.turn import WriteTurn

T = TypeVar("T")

GROUP_LIMIT = 64
"""Jobs in a group that several share."""


class Waiting(Generic[T]):
    """Jobs that wait, and then what they came to. `hints` has one for each, or none at all."""

    def __init__(self, jobs: Sequence[Job[T]], hints: Sequence[Hint]) -> None:
        self.jobs = jobs
        self.hints = hints
        self.outcomes: Sequence[T | Exception] | None = None
        """`None` until their group has ended."""
        self.failure: Exception | None = None
        """What their commit raised."""


RunGroup = Callable[[Sequence[Job[T]], Sequence[Hint]], Awaitable[Sequence[T | Exception]]]


class _Turn:
    def __init__(self) -> None:
        self.lock = WriteTurn()
        self.waiting: deque[Waiting[Any]] = deque()
        self.users = 0


class Turns:
    """The turns of all organizations."""

    def __init__(self) -> None:
        self._turns: dict[int, _Turn] = {}

    async def outcomes(
        self, organization: int, waiting: Waiting[T], run: RunGroup[T], *, urgent: bool
    ) -> Sequence[T | Exception]:
        """What the jobs came to, in a group that others may share: `run` commits it. Raises what that raises.

        `urgent`: before others that wait. A caller that is cancelled while it waits takes its jobs back; a group that
        is on its way comes to its end.
        """
        turn = self._turns.setdefault(organization, _Turn())
        turn.waiting.append(waiting)
        turn.users += 1
        try:
            async with turn.lock.held(urgent=urgent):
                if waiting in turn.waiting:
                    await _lead(turn, waiting, run)
        finally:
            if waiting in turn.waiting:
                turn.waiting.remove(waiting)
            turn.users -= 1
            if not turn.users:
                del self._turns[organization]
        if waiting.failure is not None:
            raise waiting.failure
        assert waiting.outcomes is not None, "a group that has ended says so"
        return waiting.outcomes


async def _lead(turn: _Turn, own: Waiting[T], run: RunGroup[T]) -> None:
    """Run a group of one's own jobs and of those that wait, the first first."""
    turn.waiting.remove(own)
    group: list[Waiting[Any]] = [own]
    count = len(own.jobs)
    while turn.waiting and count + len(turn.waiting[0].jobs) <= GROUP_LIMIT:
        group.append(turn.waiting.popleft())
        count += len(group[-1].jobs)
    jobs = [job for one in group for job in one.jobs]
    hints = [hint for one in group for hint in one.hints]
    outcomes: Sequence[T | Exception] = ()
    try:
        with trio.CancelScope(shield=True):  # it is the others' too
            outcomes = await run(jobs, hints)
    except Exception as error:  # noqa: BLE001  each of them raises it
        for one in group:
            one.failure = error
        return
    place = 0
    for one in group:
        one.outcomes = outcomes[place : place + len(one.jobs)]
        place += len(one.jobs)
