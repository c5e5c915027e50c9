"""Mailboxes and replies: how actors hear and answer.

A mailbox is a bounded memory channel behind three verbs. `offer` is for the front door: a full box is `Overloaded` at
once. `put` is for between stages: it waits, so that pressure travels back to the door. `batch` is the reader's: wait
for one, take what else waits. Closing a mailbox lets its reader finish what is in it and then end.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec
import trio

from svc.domain.histogram import WAIT_S, Histogram, HistogramStatistics

M = TypeVar("M")
R = TypeVar("R")


class Overloaded(Exception):  # noqa: N818  tells the state of a mailbox
    """The mailbox is full, or closed because the service is shutting down."""


class MailboxStatistics(msgspec.Struct, frozen=True):
    waiting: int
    """Messages in the box now."""
    capacity: int
    accepted: int
    """Messages taken in since the start."""
    refused: int
    """Offers refused because the box was full or closed."""
    batches: int
    """Times the reader took what was there: accepted / batches is the size of a batch."""
    waits_s: HistogramStatistics
    """From when a message was handed over until its reader took it; time before a full box included."""


class Mailbox(Generic[M]):
    """One actor's bounded inbox."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._send, self._receive = trio.open_memory_channel[tuple[float, M]](capacity)
        self._accepted = self._refused = self._batches = 0
        self._waits_s = Histogram(WAIT_S)

    def offer(self, message: M) -> None:
        """Raises `Overloaded` when there is no room, at once."""
        try:
            self._send.send_nowait((trio.current_time(), message))
        except (trio.WouldBlock, trio.ClosedResourceError, trio.BrokenResourceError):
            self._refused += 1
            raise Overloaded from None
        self._accepted += 1

    async def put(self, message: M) -> None:
        """Waits for room. A checkpoint in any case: other tasks have a turn after each message."""
        await self._send.send((trio.current_time(), message))
        self._accepted += 1

    async def batch(self, limit: int) -> list[M]:
        """At least one message and at most `limit`, oldest first. Raises `trio.EndOfChannel` when closed and empty."""
        taken = [await self._receive.receive()]
        while len(taken) < limit:
            try:
                taken.append(self._receive.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                break
        self._batches += 1
        now = trio.current_time()
        messages: list[M] = []
        for handed_over_at, message in taken:
            self._waits_s.observe(now - handed_over_at)
            messages.append(message)
        return messages

    def close(self) -> None:
        """No more messages; those inside are still read."""
        self._send.close()

    def statistics(self) -> MailboxStatistics:
        waiting = self._receive.statistics().current_buffer_used
        return MailboxStatistics(
            waiting=waiting,
            capacity=self._capacity,
            accepted=self._accepted,
            refused=self._refused,
            batches=self._batches,
            waits_s=self._waits_s.statistics(),
        )


class Reply(Generic[R]):
    """One answer to one asker. Setting it never blocks and never fails, also when the asker has gone."""

    __slots__ = ("_event", "_value")

    def __init__(self) -> None:
        self._event = trio.Event()
        self._value: R | None = None

    def set(self, value: R) -> None:
        """Answer. Answering twice is a mistake of this program."""
        assert self._value is None, "a reply is set once"
        self._value = value
        self._event.set()

    async def wait(self) -> R:
        await self._event.wait()
        assert self._value is not None
        return self._value
