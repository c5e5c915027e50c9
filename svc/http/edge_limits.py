"""The limits of the edge: times, sizes and counts of connections. What may live here: numbers, with their reasons."""

from __future__ import annotations

import msgspec


class EdgeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on one client, and on all of them together."""

    max_connections: int = 1_000
    backlog: int = 1_024
    """Connections that the kernel holds ready until they are accepted."""
    max_header_bytes: int = 16_384
    """Request line and header fields together; also the trailer fields of a chunked body."""
    request_timeout_s: float = 10.0
    """From the first byte of a request until its head and body have been read; also a new connection's first byte."""
    body_grace_s: float = 1.0
    """How much later the edge itself responds 408 for a missing body: the handler that waits for it goes first."""
    write_timeout_s: float = 5.0
    """For each 64 KiB of a response. A client that does not take them in that time is cut off."""
    keep_alive_timeout_s: float = 60.0
    """Between two requests on one connection."""
    drain_timeout_s: float = 10.0
    """How long running requests may go on once the shutdown has begun."""
    drain_patience_s: float = 2.0
    """How long a request that has begun may still take to arrive then."""
    linger_timeout_s: float = 2.0
    """How long unread input is dropped behind an early response. Closing at once would make the kernel send a reset,
    which can destroy the response before the client has read it (RFC 9112, 9.6)."""
    linger_bytes: int = 2_097_152
    """How much of it at most: twice the largest body, so that a somewhat too large one still gets its 413."""
    read_ahead_bytes: int = 65_536
    """What is read from a client before anybody asked for it."""
