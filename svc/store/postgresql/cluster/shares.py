"""The shares of the outbox that one node has, each a lease (docs/adr/0061).

A node takes free shares up to its part and gives back what is above it: first it begins no more attempts there, then
the outbox says that what was in flight is written down, and then the lease ends. All shares of a node are renewed
together, by its beat (`nodes.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import structlog
import trio

from svc.domain.webhooks.records import EndpointKey
from svc.domain.webhooks.shares import SHARES, above_part, part_of, share_of
from svc.store.group import LeaseEpoch
from svc.store.postgresql.cluster.leases import (
    TERM_S,
    add_leases,
    believed_until_s,
    end_leases,
    renew_leases,
    take_leases,
)
from svc.store.postgresql.connection.values import integer
from svc.store.postgresql.connection.wire import Result, Statement

log = structlog.get_logger()

_PREFIX = "outbox/"


def lease_name(share: int) -> str:
    """The name of the lease of a share; their order is that of the shares."""
    return f"{_PREFIX}{share:02}"


class NodeRank(NamedTuple):
    """How many shares a node may have, as of its last beat."""

    living: int
    rank: int

    @property
    def shares(self) -> int:
        """So many."""
        return part_of(self.rank, self.living)


_LATE = "webhook shares not renewed in time, their attempts are made again"


class ShareLeases:
    """The shares of one node, as the outbox takes them. `setup`, `ask`, `learn` and `end` belong to its beat."""

    def __init__(self, holder: str, term_s: float = TERM_S) -> None:
        self._holder = holder
        self._term_s = term_s
        self._epochs: dict[int, int] = {}
        self._until_s = 0.0
        self._part: NodeRank | None = None
        self._given_back: dict[int, int] = {}
        """Share -> epoch of those whose lease is to be ended."""
        self._ending: dict[int, int] = {}
        """Those of them that the beat under way ends."""
        self.leaving: frozenset[int] = frozenset()
        self._changed = trio.Event()
        self._wanted = trio.Event()

    @property
    def senders(self) -> int:
        """As in `Shares`: the living nodes."""
        return 1 if self._part is None else self._part.living

    @property
    def held(self) -> frozenset[int]:
        """The shares that this node may count on now."""
        return frozenset(self._epochs) if trio.current_time() < self._until_s else frozenset()

    def holds(self, share: int) -> bool:
        """Whether this node may count on a share now."""
        return share in self._epochs and trio.current_time() < self._until_s

    def sends(self, queue: EndpointKey) -> bool:
        """As in `Shares`."""
        share = share_of(queue)
        return self.holds(share) and share not in self.leaving

    def lease(self, queue: EndpointKey) -> LeaseEpoch | None:
        """As in `Shares`. Raises `KeyError` for a queue whose share this node does not have."""
        share = share_of(queue)
        return _lease(share, self._epochs[share])

    def is_lost(self, lease: LeaseEpoch | None) -> bool:
        """As in `Shares`."""
        return lease is None or trio.current_time() >= self._until_s or lease not in _leases(self._epochs)

    def drop(self, lost: Iterable[LeaseEpoch]) -> None:
        """As in `Shares`."""
        gone = set(lost)
        self._hold({share: epoch for share, epoch in self._epochs.items() if _lease(share, epoch) not in gone})

    def give_back(self, shares: Iterable[int]) -> None:
        """As in `Shares`: soon, at a beat that is made for it."""
        given = {share: self._epochs[share] for share in shares if share in self._epochs}
        if given:
            self._given_back |= given
            self._hold({share: epoch for share, epoch in self._epochs.items() if share not in given})
            self._wanted.set()

    async def changed(self) -> None:
        """As in `Shares`."""
        while self.held:
            with trio.move_on_at(self._until_s):
                await self._changed.wait()
                return
            if not self.held:
                return
        await self._changed.wait()

    @property
    def is_below_part(self) -> bool:
        """Whether there are shares that this node should have and others have not given back yet."""
        return self._part is None or len(self.held) < self._part.shares

    async def wanted(self) -> None:
        """Returns when a beat has something to tell others."""
        await self._wanted.wait()

    def setup(self) -> Statement:
        """Makes the rows that are missing."""
        return add_leases(_EVERY)

    def ask(self) -> list[Statement]:
        """Ends what is given back, renews what this node has, and takes what is free up to its part. Before the first
        beat has told how many nodes there are, it takes nothing.
        """
        self._wanted = trio.Event()
        self._ending = dict(self._given_back)
        most = 0 if self._part is None else max(0, self._part.shares - len(self._epochs))
        return [
            end_leases(_leases(self._ending)),
            renew_leases(_leases(self._epochs), self._term_s),
            take_leases(_EVERY, self._holder, self._term_s, most, wait=False),
        ]

    def learn(self, answers: Sequence[Result], sent_s: float, part: NodeRank) -> None:
        """The answers to `ask`, which was sent at `sent_s` by the clock of the loop."""
        _, renewed, taken = answers
        was = self.held, self.leaving, self._part
        for share in self._ending:
            del self._given_back[share]
        found = {int(name[len(_PREFIX) :]): integer(epoch) for name, epoch in (*renewed.rows, *taken.rows)}
        before, late_s = self._epochs, trio.current_time() - self._until_s
        lost = len(before.keys() - found.keys())
        if before and (lost or late_s >= 0):
            log.warning(_LATE, shares=len(before), lost=lost, late_s=max(0.0, round(late_s, 2)))
        self._epochs = {share: epoch for share, epoch in found.items() if share not in self._given_back}
        self._until_s, self._part = believed_until_s(sent_s, self._term_s), part
        self.leaving = above_part(self._epochs, part.shares)
        if was != (self.held, self.leaving, part) or before != self._epochs:
            self._note_change()

    def end(self) -> list[Statement]:
        """Leaves all shares to others at once."""
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


def _lease(share: int, epoch: int) -> LeaseEpoch:
    return LeaseEpoch(lease_name(share), epoch)


def _leases(epochs: dict[int, int]) -> list[LeaseEpoch]:
    return [_lease(share, epoch) for share, epoch in epochs.items()]


_EVERY = [lease_name(share) for share in range(SHARES)]
