"""Shares: all endpoints, divided into parts that processes can take; each process sends to the endpoints of its shares.

What may live here: which share an endpoint is in, and how many shares a process may have. No lease, no clock.
"""

from __future__ import annotations

from collections.abc import Collection
from zlib import crc32

from svc.domain.webhooks.records import EndpointKey

SHARES = 64
"""In all. Never to be changed while processes of two versions serve one store."""
_STEP = 39
"""From one endpoint of an organization to the next: `SHARES` by the golden ratio, so that a few endpoints lie far apart
and in different processes.
"""


def share_of(queue: EndpointKey) -> int:
    """The share of an endpoint, the same for ever."""
    return (crc32(queue.organization.to_bytes(8)) + _STEP * queue.endpoint) % SHARES


def part_of(rank: int, living: int) -> int:
    """How many shares one of `living` processes may have, `rank` being how many of them come before it. The parts of
    all add up to `SHARES`.
    """
    return SHARES // living + (rank < SHARES % living)


def above_part(held: Collection[int], part: int) -> frozenset[int]:
    """The shares that a process has to give back: the last ones."""
    return frozenset(sorted(held)[part:])
