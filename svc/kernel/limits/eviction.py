"""Which connections are evicted when the capacity for another is missing.

What may live here: the rule, as a function of the idle connections and their idle times.

A connection may be closed while it waits for its client: between two requests, before the first, in the middle of one
that does not arrive, or with a response that is not taken. One that this service works for is never closed. The client
prefix with the most connections waiting loses first, so that one address cannot crowd out the others; within it, the
one that has waited longest. No kind of waiting is better than another: a rank that spared one would be the one to
attack with. Among connections that wait the same way an honest client is the younger one, since it goes on by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from heapq import heapify, heapreplace
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

REQUEST_GRACE_S = 0.25
"""How long a request that has begun is left alone: a round trip, in which an honest one arrives."""
CLIENT_PREFIX_BITS = 64
"""Bits of an IPv6 address: one client has all the rest for itself (RFC 6177)."""


_IPV6_PREFIX = re.compile("[0-9a-f]{1,16}")


class IdleConnection(NamedTuple):
    """A connection that waits for its client, and may be evicted."""

    prefix: str
    """`client_prefix` of its address."""
    since_s: float
    """When it began to wait."""
    is_in_request: bool
    """A part of a request has arrived, or a part of its response has been sent."""


@lru_cache(4_096)
def client_prefix(host: str) -> str:
    """Return the name under which connections of one client are counted: an IPv4 address, or the /64 of an IPv6 one in
    hexadecimal digits; a host that is not an address as it is. Behind a proxy all clients have one.
    """
    try:
        address = ip_address(host)
    except ValueError:  # a socket without an address, such as a Unix one
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{int(address) >> CLIENT_PREFIX_BITS:x}"


def site_prefix(prefix: str) -> str | None:
    """Return the /48 of an IPv6 client prefix, the most that a customer is given (RFC 6177); `None` for any other."""
    return f"{prefix[:-4]}/48" if _IPV6_PREFIX.fullmatch(prefix) is not None else None


def eviction_order(waiting: Sequence[IdleConnection], count: int, now_s: float) -> list[int]:
    """Return indexes in `waiting` of the connections to evict, at most `count`, the first to go first: of the prefix
    with most connections the one that waits longest. One whose request began less than `REQUEST_GRACE_S` ago is spared.
    """
    by_prefix: dict[str, list[int]] = {}
    for position in sorted(range(len(waiting)), key=lambda position: -waiting[position].since_s):
        one = waiting[position]
        if not one.is_in_request or now_s - one.since_s >= REQUEST_GRACE_S:
            by_prefix.setdefault(one.prefix, []).append(position)
    # By size, then by the longest idle time; each prefix ends with that one.
    heap = [(-len(prefix), waiting[prefix[-1]].since_s, prefix[-1], prefix) for prefix in by_prefix.values()]
    heapify(heap)
    leaving: list[int] = []
    while len(leaving) < count and heap and heap[0][3]:
        prefix = heap[0][3]
        leaving.append(prefix.pop())
        oldest = prefix[-1] if prefix else -1
        heapreplace(heap, (-len(prefix), waiting[oldest].since_s, oldest, prefix))
    return leaving
