"""Numbers for new visitors that a worker has taken in advance (docs/adr/0056).

Each new visitor of an organization needs a number that no other has. Where several workers took one number at a time,
all would read and write the same row with each first visit, and each time one would have to do its work again.

What may live here: which numbers are in hand, and which identification may use which. The transaction takes new ones.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final, NamedTuple

TAKEN_AT_ONCE: Final = 32
"""Numbers that a worker takes with one first visit, where there are others."""
MAX_HELD: Final = 65_536
"""Numbers in hand, of all organizations together: about 5 MB."""


class NextNumber(NamedTuple):
    """The number that one identification may give to a new visitor."""

    number: int | None = None
    """A number held for this identification alone; `None` = it takes the organization's next one."""
    at_once: int = 1
    """How many it then takes: the first for itself, the others for later ones."""


ANY_NUMBER: Final = NextNumber()
"""The next one of the organization, and no other with it."""


class VisitorNumbers:
    """The numbers in the hands of one worker. A number is in hand only once the transaction that took it is committed;
    those that are lost, by a crash or for want of capacity here, are given to nobody.
    """

    def __init__(self, at_once: int = 1, most: int = MAX_HELD) -> None:
        """Take `at_once` numbers together: 1 for a worker that is alone, which then never holds an unused one."""
        self._at_once = at_once
        self._most = most
        self._held: OrderedDict[int, deque[int]] = OrderedDict()
        """By organization, the least recently used first; none is empty."""
        self._count = 0

    def hand_out(self, organizations: Iterable[int]) -> list[NextNumber]:
        """Return a visitor number for each identification, in order. `organizations`: the number of the organization of
        each. A number that is not given back is never used.
        """
        return [NextNumber(self._pop(organization), self._at_once) for organization in organizations]

    def give_back(self, organization: int, handed: NextNumber, used: int | None) -> None:
        """Give back a number that was not used, after the commit. `used`: the number of the new visitor, `None` if
        there was none. Do not call this after a failed commit, which may still be on disk.
        """
        if handed.number is None:
            if used is not None:
                self._keep(organization, range(used + 1, used + handed.at_once))
        elif used is None:
            self._keep(organization, (handed.number,))

    def _pop(self, organization: int) -> int | None:
        held = self._held.get(organization)
        if held is None:
            return None
        self._count -= 1
        number = held.popleft()
        if not held:
            del self._held[organization]
        return number

    def _keep(self, organization: int, numbers: Iterable[int]) -> None:
        held = self._held.pop(organization, deque[int]())
        before = len(held)
        held.extend(numbers)
        if held:
            self._held[organization] = held
        self._count += len(held) - before
        while self._count > self._most:
            _, lost = self._held.popitem(last=False)
            self._count -= len(lost)
