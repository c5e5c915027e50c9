"""Which organizations' jobs run in turn with those of other processes, so as not to run twice.

Where several processes write the same rows at the same time, as for visitors behind one busy address, nearly every
job that ran ahead (`group.py`) has to run again. Groups of such an organization first take a turn, which one process
has at a time, and run then: nothing that they read changes any more, and each job runs once. The lock of the store
stays free meanwhile, for groups that do not wait for a turn.

A turn is advice. A group that does not get it in time runs ahead as others do, and the second phase makes it right.

What may live here: who takes turns, and how one is waited for. No job and no engine.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

import trio

DECIDED_BY = 32
"""Jobs that have run ahead before an organization is judged: some three groups, each repeated as one."""
ONE_IN = 4
"""It is contended where more than one job in this number had to run again."""
TURNS_AT_FIRST, TURNS_AT_MOST = 64, 1024
"""Groups that take turns until one runs ahead on trial; doubled where its jobs then still have to run again."""
WAIT_S = 1.0
"""How long a group waits for its turn: longer than several large groups take on a machine with too much to do."""
POLL_S = 0.001
"""Between attempts to get a turn, without a bell."""
UNHEARD_S = 0.01
"""Between attempts with a bell: the holder of the turn may have died, which rings none."""
STUCK_S = 4.0
"""How long nobody waits for a turn after one did not come in time: its holder was stopped."""
MOST = 65_536
"""Organizations that are remembered."""


EndTurn = Callable[[], None]
"""Ends a turn. Any thread may call it, and more than once; the death of its process ends it as well."""
TakeTurn = Callable[[], EndTurn | None]
"""Takes the turn and returns what ends it; `None` while somebody else has it."""


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
        """Remember `most` organizations; beyond that all are forgotten."""
        self._most = most
        self._organizations: dict[int, _Organization] = {}

    def among(self, organizations: Iterable[int]) -> frozenset[int]:
        """Return those of these organizations whose jobs are to wait for a turn."""
        known = self._organizations
        if not known:
            return frozenset()
        return frozenset(one for one in organizations if one in known and known[one].left)

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
        if known.left and not in_turn:
            return  # its turn did not come, or it needs none: learned statistics
        if in_turn and not _are_many(repeated, jobs):
            self._organizations[organization] = known._replace(left=max(0, known.left - 1))
            return
        known = known._replace(jobs=known.jobs + jobs, repeated=known.repeated + repeated)
        if known.jobs < DECIDED_BY:
            self._organizations[organization] = known
        elif _are_many(known.repeated, known.jobs):
            turns = min(TURNS_AT_MOST, 2 * known.turns) if known.turns else TURNS_AT_FIRST
            self._organizations[organization] = _Organization(left=turns, turns=turns)
        else:
            self._organizations.pop(organization, None)


def _are_many(repeated: int, jobs: int) -> bool:
    return ONE_IN * repeated > jobs


class TurnQueue:
    """Takes turns, and waits for them."""

    def __init__(self, take: TakeTurn, elapsed_s: Callable[[], float]) -> None:
        self._take = take
        self._elapsed_s = elapsed_s
        self._stuck_until_s = 0.0
        self.bell: Bell | None = None
        """Of all processes; without one they look again and again."""

    def take(self) -> EndTurn | None:
        """Take the turn now; return what ends it, `None` while somebody else has it."""
        end = self._take()
        if end is None or self.bell is None:
            return end
        ending = ExitStack()
        ending.callback(self.bell.ring)
        ending.callback(end)  # called first
        return ending.close

    async def wait(self, since_s: float) -> EndTurn | None:
        """Wait for the turn and take it; `None` if it did not come in time, since this reading of the monotonic clock.
        Only one task of a process may wait. If it is cancelled it has no turn.
        """
        end = self.take()
        if end is None and self._elapsed_s() < self._stuck_until_s:
            return None
        while end is None:
            now_s = self._elapsed_s()
            if now_s - since_s >= WAIT_S:
                self._stuck_until_s = now_s + STUCK_S
                return None
            if self.bell is None:
                await trio.sleep(POLL_S)
            else:
                await self.bell.heard(UNHEARD_S)
            end = self.take()
        return end


class Bell:
    """Rings in every process where a turn ended: a pipe, made before they are forked. Who hears it may be too late."""

    def __init__(self) -> None:
        self._receiving, self._sending = os.pipe()
        for descriptor in (self._receiving, self._sending):
            os.set_blocking(descriptor, False)

    def ring(self) -> None:
        """Wake who waits. Any thread may call this."""
        with suppress(BlockingIOError):  # full, and so audible
            os.write(self._sending, b"\0")

    async def heard(self, most_s: float) -> None:
        """Wait until it rings, `most_s` seconds at most."""
        with trio.move_on_after(most_s):
            await trio.lowlevel.wait_readable(self._receiving)
            with suppress(BlockingIOError):  # another process was faster
                os.read(self._receiving, 4096)
