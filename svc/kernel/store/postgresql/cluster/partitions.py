"""The partitions of the outbox that one node has, each a lease (docs/adr/0061).

A node takes free partitions up to its part and gives back what is above it: first it begins no more attempts there,
then the outbox says that what was in flight is written down, and then the lease ends. All partitions of a node are
renewed together, by its heartbeat (`nodes.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import structlog
import trio

from svc.kernel.store.group import LeaseEpoch
from svc.kernel.store.postgresql.cluster.leases import (
    TERM_S,
    add_leases,
    believed_until_s,
    end_leases,
    renew_leases,
    take_leases,
)
from svc.kernel.store.postgresql.connection.values import integer
from svc.kernel.store.postgresql.connection.wire import Result, Statement
from svc.kernel.values.partitions import PARTITIONS, EndpointKey, above_part, part_of, partition_of

log = structlog.get_logger()

_PREFIX = "outbox/"


def lease_name(partition: int) -> str:
    """Return the name of the lease of a partition; the names sort as the partitions do."""
    return f"{_PREFIX}{partition:02}"


class NodeRank(NamedTuple):
    """The number of partitions that a node may have, from the nodes at its last heartbeat."""

    living: int
    rank: int

    @property
    def partitions(self) -> int:
        """The number of partitions that this node may have."""
        return part_of(self.rank, self.living)


_LATE = "webhook partitions not renewed in time, their attempts are made again"


class PartitionLeases:
    """The partitions of one node. `setup`, `ask`, `learn` and `end` belong to its heartbeat."""

    def __init__(self, holder: str, term_s: float = TERM_S) -> None:
        self._holder = holder
        self._term_s = term_s
        self._epochs: dict[int, int] = {}
        self._until_s = 0.0
        self._part: NodeRank | None = None
        self._given_back: dict[int, int] = {}
        """Partition -> epoch, of leases that are to be ended."""
        self._ending: dict[int, int] = {}
        """Those of them that the heartbeat under way ends."""
        self.leaving: frozenset[int] = frozenset()
        self._changed = trio.Event()
        self._wanted = trio.Event()

    @property
    def senders(self) -> int:
        """The number of living nodes; see `Partitions`."""
        return 1 if self._part is None else self._part.living

    @property
    def held(self) -> frozenset[int]:
        """The partitions that this node may rely on now."""
        return frozenset(self._epochs) if trio.current_time() < self._until_s else frozenset()

    def holds(self, partition: int) -> bool:
        """Return whether this node may rely on a partition now."""
        return partition in self._epochs and trio.current_time() < self._until_s

    def sends(self, queue: EndpointKey) -> bool:
        """See `Partitions`."""
        partition = partition_of(queue)
        return self.holds(partition) and partition not in self.leaving

    def lease(self, queue: EndpointKey) -> LeaseEpoch | None:
        """See `Partitions`. Raises `KeyError` for a queue whose partition this node does not have."""
        partition = partition_of(queue)
        return _lease(partition, self._epochs[partition])

    def is_lost(self, lease: LeaseEpoch | None) -> bool:
        """See `Partitions`."""
        return lease is None or trio.current_time() >= self._until_s or lease not in _leases(self._epochs)

    def drop(self, lost: Iterable[LeaseEpoch]) -> None:
        """See `Partitions`."""
        gone = set(lost)
        self._hold(
            {partition: epoch for partition, epoch in self._epochs.items() if _lease(partition, epoch) not in gone}
        )

    def give_back(self, partitions: Iterable[int]) -> None:
        """Give back partitions as `Partitions` promises: soon, at a heartbeat that is made for it."""
        given = {partition: self._epochs[partition] for partition in partitions if partition in self._epochs}
        if given:
            self._given_back |= given
            self._hold({partition: epoch for partition, epoch in self._epochs.items() if partition not in given})
            self._wanted.set()

    async def changed(self) -> None:
        """See `Partitions`."""
        while self.held:
            with trio.move_on_at(self._until_s):
                await self._changed.wait()
                return
            if not self.held:
                return
        await self._changed.wait()

    @property
    def is_below_part(self) -> bool:
        """Whether other nodes have not yet given back partitions that this node should have."""
        return self._part is None or len(self.held) < self._part.partitions

    async def wanted(self) -> None:
        """Wait until this node has given back partitions that an early heartbeat should release to other nodes."""
        await self._wanted.wait()

    def setup(self) -> Statement:
        """Return the statement that creates the missing rows."""
        return add_leases(_EVERY)

    def ask(self) -> list[Statement]:
        """Return the statements that release partitions which were given back, renew those that this node has, and take
        free ones up to its share. Before the first heartbeat has told how many nodes there are, none is taken.
        """
        self._wanted = trio.Event()
        self._ending = dict(self._given_back)
        most = 0 if self._part is None else max(0, self._part.partitions - len(self._epochs))
        return [
            end_leases(_leases(self._ending)),
            renew_leases(_leases(self._epochs), self._term_s),
            take_leases(_EVERY, self._holder, self._term_s, most, wait=False),
        ]

    def learn(self, answers: Sequence[Result], sent_s: float, part: NodeRank) -> None:
        """Take the results of `ask`, sent at `sent_s` of the loop's clock, and the node's rank now."""
        _, renewed, taken = answers
        was = self.held, self.leaving, self._part
        for partition in self._ending:
            del self._given_back[partition]
        found = {int(name[len(_PREFIX) :]): integer(epoch) for name, epoch in (*renewed.rows, *taken.rows)}
        before, late_s = self._epochs, trio.current_time() - self._until_s
        lost = len(before.keys() - found.keys())
        if before and (lost or late_s >= 0):
            log.warning(_LATE, partitions=len(before), lost=lost, late_s=max(0.0, round(late_s, 2)))
        self._epochs = {partition: epoch for partition, epoch in found.items() if partition not in self._given_back}
        self._until_s, self._part = believed_until_s(sent_s, self._term_s), part
        self.leaving = above_part(self._epochs, part.partitions)
        if was != (self.held, self.leaving, part) or before != self._epochs:
            self._note_change()

    def end(self) -> list[Statement]:
        """Return the statements that release all partitions to other nodes at once."""
        given = self._given_back | self._epochs
        self._hold({})
        return [end_leases(_leases(given))]

    def _hold(self, epochs: dict[int, int]) -> None:
        if epochs != self._epochs:
            self._epochs = epochs
            self.leaving &= epochs.keys()
            self._note_change()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


def _lease(partition: int, epoch: int) -> LeaseEpoch:
    return LeaseEpoch(lease_name(partition), epoch)


def _leases(epochs: dict[int, int]) -> list[LeaseEpoch]:
    return [_lease(partition, epoch) for partition, epoch in epochs.items()]


_EVERY = [lease_name(partition) for partition in range(PARTITIONS)]
