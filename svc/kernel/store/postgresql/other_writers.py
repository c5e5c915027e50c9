"""For which organizations other nodes write too, as far as the turns of their fences tell.

Each transaction that writes for an organization takes the next turn of its fence. Where this node's turns do not follow
one another, somebody else had those between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

REMEMBERED = 16
"""Turns of this node for which it is remembered that others wrote, or that jobs met."""
MOST = 65_536
"""Organizations that are remembered; beyond that all are forgotten."""


class _Fence(NamedTuple):
    turn: int
    """The last turn of this node."""
    shared_for: int = 0
    """For how many more turns of this node it counts as shared."""
    clashed_for: int = 0
    """For how many more turns its jobs do not run ahead, as they clashed."""


class OtherWriters:
    """The organizations whose fences other nodes take."""

    def __init__(self) -> None:
        self._fences: dict[int, _Fence] = {}

    def note(self, turns: Mapping[int, int], *, clashed: bool = False) -> None:
        """Record the turns of the fences of a committed transaction of this node. `clashed`: it ran ahead, and many of
        its jobs had to run again.
        """
        if len(self._fences) > MOST:
            self._fences.clear()
        for fence, turn in turns.items():
            last = self._fences.get(fence)
            if last is None:
                self._fences[fence] = _Fence(turn)
            else:
                left = REMEMBERED if turn > last.turn + 1 else max(0, last.shared_for - 1)
                met = REMEMBERED if clashed else max(0, last.clashed_for - 1)
                self._fences[fence] = _Fence(turn, left, met)

    def write_for(self, organization: int) -> bool:
        """Return whether another node has written for this organization recently."""
        fence = self._fences.get(organization)
        return fence is not None and fence.shared_for > 0

    def may_pass(self, organization: int) -> bool:
        """Return whether groups of this organization gain by running before their fence is taken. They do not if all of
        them write the same rows, for example of one crowded address.
        """
        return self.write_for(organization) and not self._fences[organization].clashed_for
