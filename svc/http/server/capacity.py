"""What the connections of one server have in common: their limits and counts, and which one is evicted for a new one.

What may live here: what is known of all connections together. A single one is `connection.py`.
"""

from __future__ import annotations

import resource
import select
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from math import inf
from typing import TYPE_CHECKING

import msgspec
import structlog
import trio

from svc.http.server.fair_queue import FairQueue, KnownKeys
from svc.http.server.messages import Application, Headers
from svc.kernel.limits.eviction import IdleConnection, eviction_order

if TYPE_CHECKING:
    from svc.http.server.connection import Connection

log = structlog.get_logger()

POLL_INTERVAL_S = 1.0
LEFT = getattr(select, "POLLRDHUP", 0)


class Departures:
    """Clients that leave while nobody reads from them: their handlers are stopped.

    A request is handled in the one task of its connection, which therefore reads nothing until the response is written.
    So one task for all connections asks the kernel, once a second, which clients have closed their sending side
    meanwhile (`POLLRDHUP`, of Linux; elsewhere this is noticed when the response is written). A request that is over
    within a second costs next to nothing here. `run` must run for as long as a handler may run.
    """

    def __init__(self) -> None:
        self._working: dict[int, Connection] = {}
        """By descriptor."""
        self._begun = trio.Event()

    @contextmanager
    def watching(self, connection: Connection) -> Generator[None]:
        """Notice when the client of a connection leaves while this block runs."""
        descriptor = connection.fileno()
        self._working[descriptor] = connection
        self._begun.set()
        try:
            yield
        finally:
            del self._working[descriptor]

    async def run(self) -> None:
        """Tell connections once a second that their clients have left, until cancelled."""
        while True:
            await self._begun.wait()
            await trio.sleep(POLL_INTERVAL_S)
            if not self._working:
                self._begun = trio.Event()
            for connection in self._left():
                connection.client_left()

    def _left(self) -> list[Connection]:
        poll = select.poll()
        for descriptor in self._working:
            poll.register(descriptor, LEFT)
        return [self._working[descriptor] for descriptor, happened in poll.poll(0) if happened & LEFT]


Refuse = Callable[[int], tuple[bytes, Headers]]
"""status -> body and headers of a response that the edge makes itself: 400, 408, 431, 500 or 503. Content-Length,
Connection and Date are added here."""

EVICTED_PART = 4
"""One in this number of connections is evicted when the edge is full, so that a flood does not have them all looked
at again for each newcomer.
"""
CHOSEN_FOR_S = 1.0
"""How long a choice holds, of those that still wait."""
FULL_FOR_S = 0.05
"""How long nobody is looked for again after nobody could go."""


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
    """How much of such input is dropped, at most: twice the largest body, so that a somewhat too large one still gets
    its 413."""


class EdgeStatistics(msgspec.Struct):
    """The connections of the edge now, and counts since the start."""

    connections_open: int = 0
    """Connections being served now, idle ones included."""
    connections_accepted: int = 0
    """Connections taken in under the cap."""
    connections_refused: int = 0
    """Connections closed at once because the cap was reached and none could be evicted."""
    connections_evicted: int = 0
    """Connections that waited for their client and were evicted for a new one because the cap was reached."""
    connections_closed_idle: int = 0
    """Connections closed because no request began in time. Normal life, unless it is most of the accepted."""
    connections_cut_reading: int = 0
    """Connections closed because a request (or a TLS handshake) that had begun did not arrive in time."""
    connections_cut_writing: int = 0
    """Connections reset because the client did not take its response in time."""
    requests_malformed: int = 0
    """Requests to which the edge itself responded 400 or 431."""


@dataclass
class EdgeState:
    """What the connections of one edge share, and count."""

    app: Application
    limits: EdgeLimits
    refuse: Refuse
    now_ms: Callable[[], int]
    keys: KnownKeys = field(default_factory=KnownKeys)
    always: Headers = field(default_factory=list[tuple[bytes, bytes]])
    """Fields of every response, beside `Date`."""
    fair_queue: FairQueue = field(default_factory=FairQueue)
    departures: Departures = field(default_factory=Departures)
    draining: bool = False
    """Whether the shutdown has begun."""
    connections: dict[Connection, None] = field(default_factory=dict["Connection", None])
    """Those that are open, in the order in which they came: so they are drained, and evicted if idle equally long."""
    counts: EdgeStatistics = field(default_factory=EdgeStatistics)
    """Since the start; `connections` says how many are open."""
    _full_until: float = -inf
    _leaving: list[tuple[Connection, IdleConnection]] = field(default_factory=list[tuple["Connection", IdleConnection]])
    """The connections to evict next, from the end of the list."""
    _chosen_until: float = -inf
    _date: bytes = b""
    _dated_until: float = -inf

    def has_capacity(self) -> bool:
        """Return whether another connection can be accepted, if need be by evicting one that waits for its client."""
        if len(self.connections) < self.limits.max_connections:
            return True
        return self._evict_one() or (self._choose_evictions() and self._evict_one())

    def _evict_one(self) -> bool:
        """Evict one connection; return whether there was one. To end many at once would hold up everybody else."""
        if trio.current_time() >= self._chosen_until:
            self._leaving = []
        while self._leaving:
            one, waits = self._leaving.pop()
            if one in self.connections and one.waits() == waits:
                one.evict()
                self.counts.connections_evicted += 1
                return True
        return False

    def _choose_evictions(self) -> bool:
        now = trio.current_time()
        if now < self._full_until:
            return False
        waiting = [(one, waits) for one in self.connections if (waits := one.waits()) is not None]
        most = max(1, self.limits.max_connections // EVICTED_PART)
        leaving = eviction_order([waits for _, waits in waiting], most, now)
        self._leaving = [waiting[position] for position in reversed(leaving)]
        self._chosen_until = now + CHOSEN_FOR_S
        self._full_until = -inf if leaving else now + FULL_FOR_S
        return bool(leaving)

    def fields(self) -> Headers:
        """Return what every response has: `Date`, which is written once a second, and `always`."""
        now = trio.current_time()
        if now >= self._dated_until:
            self._date, self._dated_until = formatdate(self.now_ms() / 1000, usegmt=True).encode(), now + 1.0
        return [(b"date", self._date), *self.always]

    def refusal(self, status: int) -> bytes:
        """Return a whole response of the edge's own as bytes, with `Connection: close`."""
        body, headers = self.refuse(status)
        fields = [*headers, *self.fields(), (b"content-length", b"%d" % len(body))]
        lines = [b"HTTP/1.1 %d " % status, *(b"%s: %s" % pair for pair in fields), b"connection: close", b"", body]
        return b"\r\n".join(lines)


OTHER_FILES = 256
"""Open files beside those of clients: the store, webhooks, metrics, the bus of the workers, the log."""


def fitting(max_connections: int) -> int:
    """Return how many connections this process can take: `max_connections`, or as many as its limit of open files
    leaves beside `OTHER_FILES`, at least half of it. The limit is raised before, as far as the process may. Where files
    ran out, no connection would be accepted, and so none evicted for a new one; a log line says that fewer are taken.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return max_connections
    wanted = 2 * max_connections + OTHER_FILES
    if soft < wanted and soft != hard:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):  # a sandbox may not permit it
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    fit = min(max_connections, max(soft - OTHER_FILES, soft // 2))
    if fit < max_connections:
        log.warning(
            "too few open files for max_connections: raise their limit (LimitNOFILE=, ulimit -n)",
            open_files=soft,
            max_connections=max_connections,
            taken=fit,
        )
    return fit
