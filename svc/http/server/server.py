"""The edge: which connections are taken, and how the server ends.

What may live here: the accept loop, its limits and counts, and the drain. What happens on a single connection is
`connection.py`, what its bytes mean `http1.py`, and which connection is evicted for a new one `capacity.py`.

It is an HTTP/1.1 server of our own because the one for trio, hypercorn, waits without a limit for clients that do not
read and has no cap on connections (docs/adr/0006, 0097). What it keeps to, with raw-socket tests in `tests/edge`:

1. Only the edge cancels an application, and only while its response has not begun.
2. An early response says `Connection: close` and is followed by a bounded lingering close. A client that never reads,
   trickles or is silent is cut off, and sooner when others want its place under the cap on connections
   (`svc/kernel/limits/eviction.py`); and nothing but HTTP/1.1 is spoken.
3. Framing that two parsers could read in two ways gets a 400 and is closed: one response, never two requests of one.
4. The edge's own responses carry the project's error body, made by a callable that the caller passes in.
5. No Server header, and nothing on stderr for what a client does wrong.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
import trio

from svc.http.server.capacity import EdgeLimits, EdgeState, EdgeStatistics, Refuse
from svc.http.server.connection import AnyStream, Connection
from svc.http.server.fair_queue import KnownKeys
from svc.http.server.listening import PlainListener, TlsListener
from svc.http.server.messages import Application, Headers
from svc.workers.shared_memory import ConnectionShare

LOGGER = logging.getLogger(__name__)

AnyListener = PlainListener | TlsListener


class Edge:
    """A running edge, as `serve` reports it when it has started."""

    def __init__(self, shared: EdgeState, listeners: Sequence[AnyListener]) -> None:
        self._shared = shared
        self.addresses: list[Any] = addresses(listeners)
        """Where it listens, in the order of the listeners: the way to a port that the kernel chose."""

    def statistics(self) -> EdgeStatistics:
        """Return a copy of the counts."""
        return msgspec.structs.replace(self._shared.counts, connections_open=len(self._shared.connections))


async def serve(  # noqa: PLR0913  all that an edge is made of
    app: Application,
    listeners: Sequence[AnyListener],
    limits: EdgeLimits,
    *,
    refuse: Refuse,
    now_ms: Callable[[], int],
    shutdown: trio.Event,
    keys: KnownKeys | None = None,
    always: Headers | None = None,
    task_status: trio.TaskStatus[Edge] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `app` until `shutdown` is set, then drain and return, at the latest `drain_timeout_s` later.

    The drain closes the listeners and the idle connections at once, gives requests that are still arriving
    `drain_patience_s`, lets running ones finish, and closes by force what is left at its end, however little a client
    reads. Listeners are closed here in any case.

    `keys` says whose requests are whose, so that organizations have turns; without it addresses have them.
    `refuse(status)` gives body and headers of the edge's own responses, `now_ms` the time for `Date`, `always` the
    fields that every response has beside it; with `nursery.start` one gets the `Edge`.
    """
    shared = EdgeState(app, limits, refuse, now_ms, keys or KnownKeys(), always=always or [])
    share = next((_plain(listener).share for listener in listeners), None)
    async with trio.open_nursery() as regulating:
        regulating.start_soon(shared.fair_queue.run)
        regulating.start_soon(shared.departures.run)
        async with trio.open_nursery() as connections:
            async with trio.open_nursery() as accepting:
                accepting.start_soon(
                    partial(trio.serve_listeners, handler_nursery=connections),
                    partial(_accept, shared, share),
                    list(listeners),
                )
                task_status.started(Edge(shared, listeners))
                await shutdown.wait()
                shared.draining = True  # first, so that no response promises a connection that will not be there
                accepting.cancel_scope.cancel()
                if share is not None:
                    share.stop()
            for connection in list(shared.connections):
                connection.drain()
            connections.cancel_scope.deadline = trio.current_time() + limits.drain_timeout_s
        regulating.cancel_scope.cancel()


def open_listeners(
    sockets: Sequence[socket.socket],
    *,
    ssl_context: ssl.SSLContext | None = None,
    share: ConnectionShare | None = None,
) -> list[PlainListener] | list[TlsListener]:
    """Return listeners for sockets that listen already (`listening.py`); with `ssl_context` they use TLS. `share`: what
    this worker has of their connections.
    """
    for one in sockets:
        one.setblocking(False)
    listeners = [PlainListener(one, share) for one in sockets]
    if ssl_context is None:
        return listeners
    return [TlsListener(listener, ssl_context) for listener in listeners]


async def _accept(shared: EdgeState, share: ConnectionShare | None, stream: AnyStream) -> None:
    """Serve a connection, or close it at once when there are too many and none of them can be evicted.

    Closing is better for operators than to stop accepting: a client or a load balancer learns at once that this
    process is full and can go elsewhere, and it shows in the statistics. Connections left in the kernel's queue would
    look like a slow network, and a health check would hang in the same queue as everybody else.

    The 503 is one attempt that costs no waiting: a client that sends its request only then may see a reset instead.
    """
    if shared.has_capacity():
        shared.counts.connections_accepted += 1
        try:
            await Connection(shared, stream).run()
        except Exception:  # one connection that hits a fault of ours is not an off-switch for all others
            LOGGER.exception("a connection failed")
        finally:
            if share is not None:
                share.add(-1)
        return
    if share is not None:
        share.add(-1)
    shared.counts.connections_refused += 1
    if isinstance(stream, trio.SocketStream):
        with suppress(OSError):
            os.write(stream.socket.fileno(), shared.refusal(503))


def addresses(listeners: Sequence[AnyListener]) -> list[Any]:
    """Return the `getsockname` of each listener, in their order: `(host, port)`, for IPv6 with two more numbers."""
    return [_plain(listener).socket.getsockname() for listener in listeners]


def _plain(listener: AnyListener) -> PlainListener:
    return listener.transport_listener if isinstance(listener, TlsListener) else listener
