"""Mailboxes and replies: how actors receive messages and reply.

A mailbox is a bounded queue behind three verbs. `offer` is for the front door: a full box is `OverloadedError` at once.
`put` is for between stages: it waits, so that pressure travels back to the door. `batch` is the reader's: wait for one,
take what else waits. Closing a mailbox lets its reader finish what is in it and then end.

Messages have owners, whose messages are read in turn (`svc/kernel/limits/turns.py`); each owner's keep their order.

A pass of the loop costs time, and passes that alternate with the writer's thread cost far more (ADR 17). So a reader
goes on without a checkpoint for `SLICE_S`, and a mailbox that knows its `source` waits for up to `GATHER_S` for what is
still queued there: requests that arrived together are committed together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

import msgspec
import trio

from svc.kernel.limits.turns import Turns
from svc.kernel.values.histogram import WAIT_S, Histogram, HistogramStatistics

M = TypeVar("M")
R = TypeVar("R")

SLICE_S = 0.002
"""How long a reader takes batches before other tasks have a turn."""
GATHER_S = 0.01
"""How long a batch may wait for messages that are queued in the stages before."""


class OverloadedError(Exception):
    """The mailbox is full, or closed because the service is shutting down."""


class MailboxStatistics(msgspec.Struct, frozen=True):
    """The state of one mailbox now, and its counts since the start."""

    waiting: int
    """Messages in the box now."""
    capacity: int
    accepted: int
    """Messages taken in since the start."""
    refused: int
    """Offers rejected because the box was full or closed."""
    batches: int
    """Times the reader took what was there: accepted / batches is the size of a batch."""
    waits_s: HistogramStatistics
    """From when a message was handed over until its reader took it; time before a full box included."""


class Mailbox(Generic[M]):
    """The bounded inbox of one actor. One task reads its messages; owners take turns."""

    def __init__(
        self,
        capacity: int,
        owner: Callable[[M], Hashable] = lambda _: None,
        *,
        owner_capacity: int | None = None,
        source: Mailbox[Any] | None = None,
    ) -> None:
        """Let each owner, as `owner` names it, take `owner_capacity` of the capacity, all by default. `source` is the
        mailbox from which this one's messages come: a batch gathers what is queued there.
        """
        self._capacity = capacity
        self._owner = owner
        self._owner_capacity = capacity if owner_capacity is None else owner_capacity
        self._turns: Turns[Hashable, tuple[float, M]] = Turns()
        self._reader, self._writers = trio.lowlevel.ParkingLot(), trio.lowlevel.ParkingLot()
        self.source = source
        self._is_closed = False
        self._running_since = 0.0
        """When the reader last began a slice."""
        self.accepted = 0
        """Messages taken in since the start."""
        self._refused = self._batches = 0
        self._waits_s = Histogram(WAIT_S)

    @property
    def taken(self) -> int:
        """Number of messages that the reader has taken out since the start."""
        return self.accepted - self._turns.items

    def offer(self, message: M) -> None:
        """Add a message now. Raises `OverloadedError` if the box is full, for this owner alone too, or closed."""
        owner = self._owner(message)
        is_full = self._turns.items >= self._capacity or self._turns.waiting(owner) >= self._owner_capacity
        if self._is_closed or is_full:
            self._refused += 1
            raise OverloadedError
        self._add(owner, (trio.current_time(), message))

    async def put(self, message: M) -> None:
        """Add a message, waiting while the box is full. Raises `trio.ClosedResourceError` if it is or gets closed."""
        handed_over_at = trio.current_time()
        while self._turns.items >= self._capacity and not self._is_closed:
            await self._writers.park()
        if self._is_closed:
            raise trio.ClosedResourceError
        self._add(self._owner(message), (handed_over_at, message))

    async def batch(self, limit: int) -> list[M]:
        """Return at least one message and at most `limit`, of each owner in turn; wait while there is none. If the
        reader has run for `SLICE_S`, other tasks run first. Raises `trio.EndOfChannel` if the mailbox is closed and
        empty.
        """
        if self._turns.items and trio.current_time() - self._running_since >= SLICE_S:
            await self._give_a_turn()
        while not self._turns.items:
            if self._is_closed:
                raise trio.EndOfChannel
            await self._reader.park()
            self._running_since = trio.current_time()
        if self.source is not None:
            await self._gather(min(limit, self._capacity))
        taken: list[M] = []
        now = trio.current_time()
        for _ in range(min(limit, self._turns.items)):
            handed_over_at, message = self._turns.take()
            self._waits_s.observe(now - handed_over_at)
            taken.append(message)
        self._writers.unpark(count=len(taken))
        self._batches += 1
        return taken

    def close(self) -> None:
        """Accept no more messages; those that are here are still read. Wakes who waits in `put` or `batch`."""
        self._is_closed = True
        self._reader.unpark_all()
        self._writers.unpark_all()

    async def _give_a_turn(self) -> None:
        await trio.lowlevel.checkpoint()
        self._running_since = trio.current_time()

    async def _gather(self, most: int) -> None:
        """Wait for what is queued in the stages before, and again if any of it arrived here."""
        until = trio.current_time() + GATHER_S
        here = 0
        while here < self._turns.items < most:
            here = self._turns.items
            queued = [(box, box.accepted) for box in self._stages_before()]
            while any(box.taken < accepted for box, accepted in queued):
                if trio.current_time() >= until:
                    return
                await self._give_a_turn()

    def _stages_before(self) -> Iterator[Mailbox[Any]]:
        box = self.source
        while box is not None:
            yield box
            box = box.source

    def _add(self, owner: Hashable, timed: tuple[float, M]) -> None:
        self._turns.add(owner, timed)
        self.accepted += 1
        self._reader.unpark()

    def statistics(self) -> MailboxStatistics:
        """Return a copy of the counts; reading them changes nothing."""
        return MailboxStatistics(
            waiting=self._turns.items,
            capacity=self._capacity,
            accepted=self.accepted,
            refused=self._refused,
            batches=self._batches,
            waits_s=self._waits_s.statistics(),
        )


class Reply(Generic[R]):
    """The response to one caller. Setting it never blocks and never fails, even if the caller is gone."""

    __slots__ = ("_event", "_value")

    def __init__(self) -> None:
        self._event = trio.Event()
        self._value: R | None = None

    def set(self, value: R) -> None:
        """Store the response and wake the caller. A second call is a programmer error (`AssertionError`)."""
        assert self._value is None, "a reply is set once"
        self._value = value
        self._event.set()

    @property
    def is_set(self) -> bool:
        """Whether there is a response, so that `wait` returns at once."""
        return self._value is not None

    async def wait(self) -> R:
        """Wait until the response is set, and return it. There is no time limit: the caller sets its own."""
        await self._event.wait()
        assert self._value is not None
        return self._value
