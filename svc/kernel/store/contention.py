"""Which organizations' jobs run in turn with those of other processes, as ahead of the lock they would run in vain.

Where several processes write the same rows at the same time, as for visitors behind one crowded address, nearly every
job that ran ahead (`group.py`) has to run again. Groups of such an organization first take a turn, which one process
has at a time, and run then: nothing that they read changes any more, and each job runs once. The lock of the store
stays free meanwhile, for groups that do not wait for a turn.

A turn is advice. A group that does not get it in time runs ahead as others do, and the second phase makes it right.

What may live here: who takes turns, and how one is waited for. No job and no engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import trio

DECIDED_BY = 16
"""Jobs of an organization that have run ahead before it is judged by them."""
TURNS_AT_FIRST, TURNS_AT_MOST = 64, 1024
"""Groups of an organization that take turns until one runs ahead again, as a trial; doubled where its jobs then still
have to run again."""
WAIT_S = 0.25
"""For so long a group waits for its turn: several processes that write large groups."""
POLL_S = 0.0005
"""Between attempts to get a turn, while nothing else happens in this process."""
STUCK_S = 1.0
"""For so long turns that did not come in time are not waited for: their holder was stopped."""
MOST = 65_536
"""Organizations that are remembered."""


TakeTurn = Callable[[], Callable[[], None] | None]
"""Takes the turn, which the death of its process ends, and returns what ends it: a function that any thread may call,
and more than once. `None` while somebody else has the turn.
"""


class _Organization(NamedTuple):
    jobs: int = 0
    """Jobs that ran ahead since it was judged last."""
    repeated: int = 0
    """Those of them that had to run again."""
    left: int = 0
    """Groups that still take turns."""
    turns: int = 0
    """Groups that took turns when it was judged last; 0 if it was not contended then."""


_NEW = _Organization()


class Contention:
    """The organizations whose jobs other processes make run again."""

    def __init__(self, most: int = MOST) -> None:
        """Remember so many organizations at most; beyond that all are forgotten."""
        self._most = most
        self._organizations: dict[int, _Organization] = {}

    def takes_turns(self, organizations: Iterable[int | None]) -> bool:
        """Return whether a group with jobs of these organizations is to take a turn."""
        known = self._organizations
        return bool(known) and any(one in known and known[one].left for one in organizations if one is not None)

    def note(self, organizations: Sequence[int | None], repeated: Sequence[int], *, in_turn: bool) -> None:
        """Record a group with jobs of these organizations, of which those at the places `repeated` had to run again.
        `in_turn`: it had a turn, so that only a process that did not take one can have made them do so.
        """
        if not repeated and not self._organizations:
            return
        again = Counter(organizations[place] for place in repeated)
        for one, jobs in Counter(organizations).items():
            if one is not None and (again[one] or one in self._organizations):
                self._note(one, jobs, again[one], in_turn=in_turn)

    def _note(self, organization: int, jobs: int, repeated: int, *, in_turn: bool) -> None:
        if len(self._organizations) >= self._most and organization not in self._organizations:
            self._organizations.clear()
        known = self._organizations.get(organization, _NEW)
        if in_turn and not _is_most(repeated, jobs):
            self._organizations[organization] = known._replace(left=max(0, known.left - 1))
            return
        known = known._replace(jobs=known.jobs + jobs, repeated=known.repeated + repeated)
        if known.jobs < DECIDED_BY:
            self._organizations[organization] = known
        elif _is_most(known.repeated, known.jobs):
            turns = min(TURNS_AT_MOST, 2 * known.turns) if known.turns else TURNS_AT_FIRST
            self._organizations[organization] = _Organization(left=turns, turns=turns)
        else:
            self._organizations.pop(organization, None)


def _is_most(repeated: int, jobs: int) -> bool:
    return 2 * repeated > jobs


class TurnQueue:
    """Waits for turns."""

    def __init__(self, take: TakeTurn, elapsed_s: Callable[[], float]) -> None:
        self._take = take
        self._elapsed_s = elapsed_s
        self._stuck_until_s = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[Callable[[], None] | None]:
        """Have the turn for a `with` block, which may end it earlier by the function that it gets; `None` if it did not
        come in time. Waiting can be cancelled.
        """
        end = await self._taken()
        try:
            yield end
        finally:
            if end is not None:
                end()

    async def _taken(self) -> Callable[[], None] | None:
        began_s = self._elapsed_s()
        end = self._take()
        if end is None and began_s < self._stuck_until_s:
            return None
        while end is None:
            if self._elapsed_s() - began_s >= WAIT_S:
                self._stuck_until_s = began_s + WAIT_S + STUCK_S
                return None
            await trio.sleep(POLL_S)
            end = self._take()
        return end
