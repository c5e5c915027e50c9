"""Queues that are served in turn, so that a long one delays no other (decisions 4).

What may live here: the order, as a value that grows and shrinks. It waits for nobody and reads no clock. Each owner has
a queue of its own, in which its items keep their order; owners with items are served one item each, round and round.
An owner with one item therefore waits for at most one item of each other owner, whatever these have queued, and not for
the owner that was served last.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Turns(Generic[K, T]):
    """Queued items of many owners. Memory is bounded by the items: an owner without any is dropped."""

    def __init__(self) -> None:
        self._queues: OrderedDict[K, deque[T]] = OrderedDict()
        self.items = 0
        """How many are queued. Others may read it, but not change it."""
        self._served: K | None = None
        """The owner that was served last and has more: it is behind all others at the next turn."""

    def __len__(self) -> int:
        return self.items

    @property
    def owners(self) -> int:
        """How many owners have items."""
        return len(self._queues)

    def waiting(self, owner: K) -> int:
        """Return how many items of this owner are queued."""
        queue = self._queues.get(owner)
        return 0 if queue is None else len(queue)

    def add(self, owner: K, item: T) -> None:
        """Queue an item behind those of its owner; a new owner is served after those that are queued already."""
        self._queues.setdefault(owner, deque()).append(item)
        self.items += 1

    def take(self) -> T:
        """Remove and return the next item, of the owner whose turn it is. Raises `LookupError` if there is none."""
        if not self._queues:
            raise LookupError("nothing is queued")
        if self._served is not None:
            self._queues.move_to_end(self._served)
        owner = next(iter(self._queues))
        queue = self._queues[owner]
        item = queue.popleft()
        self.items -= 1
        self._served = owner if queue else None
        if not queue:
            del self._queues[owner]
        return item
