"""What the outbox asks about the endpoints that it sends to: all, or those of the partitions that its process has."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

import trio

from svc.kernel.store.group import LeaseEpoch
from svc.kernel.values.partitions import EndpointKey


class Partitions(Protocol):
    """The partitions of one process (`svc.kernel.values.partitions`). The methods of this class are right for a
    process that sends to all endpoints.
    """

    @property
    def senders(self) -> int:
        """The number of processes that send, including this one."""
        return 1

    def sends(self, queue: EndpointKey) -> bool:  # noqa: ARG002  any
        """Return whether this process may begin attempts in this queue now."""
        return True

    def lease(self, queue: EndpointKey) -> LeaseEpoch | None:  # noqa: ARG002  any
        """Return the lease under which an attempt in this queue is made and recorded; `None` if no lease is needed."""
        return None

    def is_lost(self, lease: LeaseEpoch | None) -> bool:  # noqa: ARG002  there is none
        """Return whether this process may have lost a lease."""
        return False

    def drop(self, lost: Iterable[LeaseEpoch]) -> None:
        """Stop using leases under which the store has refused a write."""

    @property
    def leaving(self) -> Collection[int]:
        """Partitions that other processes wait for: no attempt begins in them."""
        return ()

    def give_back(self, partitions: Iterable[int]) -> None:
        """Release partitions to the processes that wait for them. The caller has recorded what was in flight there."""

    async def changed(self) -> None:
        """Wait until the partitions of this process or the number of senders change."""
        await trio.sleep_forever()


class EveryPartition(Partitions):
    """The partitions of a process that sends to all endpoints."""


EVERY_PARTITION = EveryPartition()
