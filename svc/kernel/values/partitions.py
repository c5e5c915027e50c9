"""Partitions: all endpoints, divided into parts that processes can take; each process sends to the endpoints of its
partitions.

What may live here: which partition an endpoint is in, and how many partitions a process may have. No lease, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple
from zlib import crc32

PARTITIONS = 64
"""Number of partitions. Never change it while processes of two versions serve one store."""
_STEP = 39
"""Step from one endpoint of an organization to the next: `PARTITIONS` by the golden ratio, so that a few endpoints are
far apart and in different processes."""


def partition_of(queue: EndpointKey) -> int:
    """Return the partition of an endpoint, which never changes."""
    return (crc32(queue.organization.to_bytes(8)) + _STEP * queue.endpoint) % PARTITIONS


def part_of(rank: int, living: int) -> int:
    """Return how many partitions a process may have. `living`: the number of processes; `rank`: how many of them come
    before it. The shares of all processes add up to `PARTITIONS`.
    """
    return PARTITIONS // living + (rank < PARTITIONS % living)


def above_part(held: Collection[int], part: int) -> frozenset[int]:
    """Return the partitions that a process has to give back, the highest ones, to hold no more than `part`."""
    return frozenset(sorted(held)[part:])


class EndpointKey(NamedTuple):
    """An endpoint by its numbers in the store; its deliveries form one queue."""

    organization: int
    endpoint: int


Wake = Callable[[Iterable[EndpointKey]], None]
"""Tells the outbox in which queues a commit has made something due."""
