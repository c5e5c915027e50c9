"""One client's connection: reading, answering and closing it, each within a limit.

What may live here: the time and the socket of one client. What the bytes mean is `protocol.py`; who is accepted, and
what ends all of them, is `edge.py`. A `Connection` has one deadline, pushed forward as the request advances. It takes
the place of hypercorn's `TCPServer`, which restarts a timer task twice in every request and has no limit on writes.

A client that has closed its sending side counts as gone, whether or not it still reads: TCP tells the two apart only
after an answer was refused, and a handler must stop at once when nobody waits for it. So the handler is cancelled,
unless its answer has begun: a begun answer is delivered to the end.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf

import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper
from hypercorn.utils import parse_socket_addr  # pyright: ignore[reportUnknownVariableType]  its argument is a bare tuple

from svc.domain.eviction import IdleConnection, client_prefix, eviction_order
from svc.http.edge_limits import EdgeLimits
from svc.http.protocol import Address, GuardedProtocol, GuardedStream, Headers, Phase, Step, advance
from svc.http.turnstile import KnownKeys, Turnstile

LOGGER = logging.getLogger(__name__)

AnyStream = trio.SocketStream | trio.SSLStream[trio.SocketStream]
Refuse = Callable[[int], tuple[bytes, Headers]]
"""status -> body and headers of an answer that the edge makes itself: 400, 408, 431, 500 or 503. Content-Length,
Connection and Date are added here."""

RECEIVE_BYTES = 65_536
WRITE_BYTES = 65_536
"""What a client has to take within the time for one write."""
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
SHARE_THAT_GIVES_WAY = 4
"""One in so many connections is chosen to go when the edge is full, so that a flood does not have them all looked at
again for each newcomer."""
CHOSEN_FOR_S = 1.0
"""How long a choice holds, of those that still wait."""
FULL_FOR_S = 0.05
"""How long nobody is looked for again after nobody could go."""


@dataclass
class Shared:
    """What the connections of one edge share, and count for `EdgeStatistics`."""

    app: AppWrapper
    config: Config
    context: WorkerContext
    limits: EdgeLimits
    refuse: Refuse
    keys: KnownKeys = field(default_factory=KnownKeys)
    turnstile: Turnstile = field(default_factory=Turnstile)
    connections: set[Connection] = field(default_factory=set["Connection"])
    accepted: int = 0
    over_cap: int = 0
    evicted: int = 0
    closed_idle: int = 0
    cut_reading: int = 0
    cut_writing: int = 0
    malformed: int = 0
    _full_until: float = -inf
    _leaving: list[tuple[Connection, IdleConnection]] = field(default_factory=list[tuple["Connection", IdleConnection]])
    """Who is to go next, last in the list first."""
    _chosen_until: float = -inf

    @property
    def draining(self) -> bool:
        """Whether the shutdown has begun."""
        return self.context.terminated.is_set()

    def has_capacity(self) -> bool:
        """Whether another connection can be accepted, if need be by evicting one that waits for its client."""
        most = self.limits.max_connections
        if len(self.connections) < most:
            return True
        return self._evict_one() or (self._choose_evictions() and self._evict_one())

    def _evict_one(self) -> bool:
        """One by one, as newcomers come: to end many at once would hold up everybody else."""
        if trio.current_time() >= self._chosen_until:
            self._leaving = []
        while self._leaving:
            one, waits = self._leaving.pop()
            if one in self.connections and one.waits() == waits:
                one.evict()
                self.evicted += 1
                return True
        return False

    def _choose_evictions(self) -> bool:
        now = trio.current_time()
        if now < self._full_until:
            return False
        waiting = [(one, waits) for one in self.connections if (waits := one.waits()) is not None]
        most = max(1, self.limits.max_connections // SHARE_THAT_GIVES_WAY)
        leaving = eviction_order([waits for _, waits in waiting], most, now)
        self._leaving = [waiting[position] for position in reversed(leaving)]
        self._chosen_until = now + CHOSEN_FOR_S
        self._full_until = -inf if leaving else now + FULL_FOR_S
        return bool(leaving)

    def refusal(self, status: int) -> bytes:
        """A whole response of the edge's own as bytes, with `Connection: close`."""
        body, headers = self.refuse(status)
        fields = [*headers, *self.config.response_headers("h11"), (b"content-length", b"%d" % len(body))]
        lines = [b"HTTP/1.1 %d " % status, *(b"%s: %s" % pair for pair in fields), b"connection: close", b"", body]
        return b"\r\n".join(lines)


class Connection:
    """One accepted socket, from the first byte to the close."""

    def __init__(self, shared: Shared, stream: AnyStream) -> None:
        self.shared = shared
        self.phase = Phase.IDLE
        self._stream = stream
        self._socket = (stream.transport_stream if isinstance(stream, trio.SSLStream) else stream).socket
        self._is_tls = isinstance(stream, trio.SSLStream)
        self._ends: tuple[Address, Address] = None, None
        """The client's and the server's."""
        self._protocol: GuardedProtocol
        self._nursery: trio.Nursery
        self._life = trio.CancelScope()
        self._watch = trio.CancelScope()
        """Around everything but the handshake and the end; its deadline is what the present phase allows."""
        self._reading = trio.CancelScope()
        self._room: trio.Event | None = None
        self._arrives_by = inf
        """When all of the present request has to be there."""
        self._prefix = ""
        self._owner: Hashable = ""
        """Whose turn its present request has taken."""
        self._waits_since: float | None = trio.current_time()
        """Since when the client has to act next; `None` while it waits for this service."""
        self._is_discarding = False
        self._pending: list[bytes] = []
        self._lingers = False
        self._has_left = False
        self._is_cut = False

    async def run(self) -> None:
        """Serve requests until the connection ends; the socket is closed in any case."""
        self.shared.connections.add(self)
        try:
            with self._life:
                if not self.shared.draining and await self._open():
                    await self._serve()
        finally:
            self.shared.connections.discard(self)
            if self._is_cut:
                # Without the reset the kernel would go on offering the unread answer for minutes.
                with suppress(OSError):
                    self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            self._socket.close()

    def drain(self) -> None:
        """The shutdown has begun: close if idle; a request that arrives gets `drain_patience_s` more."""
        if self.phase is Phase.IDLE:
            self.close_soon(linger=False)
        elif self.phase in {Phase.HEAD, Phase.BODY}:
            self._arrives_by = min(self._arrives_by, trio.current_time() + self.shared.limits.drain_patience_s)
            self._set_deadline()

    def waits(self) -> IdleConnection | None:
        """Since when its client has to act; `None` while a request is being handled."""
        if self._waits_since is None:
            return None
        is_in_request = self.phase is not Phase.IDLE and not self._is_discarding
        return IdleConnection(self._prefix, self._waits_since, is_in_request)

    def evict(self) -> None:
        """End at once. A request that has begun gets a 503 if that takes no waiting."""
        self.shared.connections.discard(self)
        if self.phase in {Phase.HEAD, Phase.BODY} and not self._is_tls:
            with suppress(OSError):
                os.write(self._socket.fileno(), self.shared.refusal(503))
        self._waits_since = None
        self._life.cancel()

    # What the protocol asks of its connection

    async def protocol_send(self, event: Event) -> None:
        """Keep bytes for the next `flush`, wait for the next request, or close, as the event says."""
        if isinstance(event, RawData):
            self._pending.append(event.data)
        elif isinstance(event, Updated):
            await self._await_next_request()
        elif isinstance(event, Closed):
            self.close_soon(linger=self._protocol.has_unread_input)

    def start_handler(self, stream: GuardedStream) -> None:
        """Run the application for a request, in a task of this connection."""
        self._nursery.start_soon(self._handle, stream)

    def advance(self, step: Step) -> None:
        """The one place where the phase changes."""
        self.phase = advance(self.phase, step)

    def response_begins(self) -> None:
        """The body has no deadline any more, and the client is not waited for."""
        if self.phase is Phase.BODY:
            self._watch.deadline = inf
        self.advance(Step.RESPONSE_BEGUN)
        self._waits_since = None

    async def refuse(self, status: int) -> None:
        """Send the edge's own response and close; nothing where the connection is closing already."""
        if self.phase is Phase.CLOSING:
            return
        self.advance(Step.CLOSE)
        if status in {400, 431}:
            self.shared.malformed += 1
        self._pending = [self.shared.refusal(status)]
        await self.flush()
        self.close_soon(linger=True)

    def close_soon(self, *, linger: bool) -> None:
        """Stop reading; close when the handler has ended. `linger`: drop input first, so that no reset is sent."""
        self.advance(Step.CLOSE)
        self._waits_since = None
        self._lingers = self._lingers or linger
        self._watch.deadline = trio.current_time() + self.shared.limits.write_timeout_s
        self._reading.cancel()
        if linger:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)

    def resume_reading(self) -> None:
        """The application has taken what was read ahead: the socket may be read again."""
        if self._room is not None:
            self._room.set()

    async def flush(self) -> None:
        """Write what is pending; a client that does not take it in `write_timeout_s` is cut off. Raises nothing."""
        parts, self._pending = self._pending, []
        if self._is_cut or not parts:
            return
        sent = 0
        if not self._is_tls:
            # Nearly every answer fits into the kernel's buffer: one system call, no cancel scope, no turn of the loop.
            try:
                sent = os.writev(self._socket.fileno(), parts)
            except BlockingIOError:
                pass
            except OSError:
                self._cut()
                return
        elif sum(map(len, parts)) <= WRITE_BYTES:
            parts = [b"".join(parts)]  # one record
        for part in parts:  # not joined: what many clients are slow to take is in memory once
            if sent < len(part) and not self._is_cut:
                await self._write_patiently(memoryview(part)[sent:])
            sent = max(0, sent - len(part))

    # Its own life

    async def _open(self) -> bool:
        """The TLS handshake, and who is there."""
        limits = self.shared.limits
        try:
            client = parse_socket_addr(self._socket.family, self._socket.getpeername())
            server = parse_socket_addr(self._socket.family, self._socket.getsockname())
            self._prefix = "" if client is None else client_prefix(client[0])
            if isinstance(self._stream, trio.SSLStream):
                with trio.fail_after(limits.request_timeout_s):
                    await self._stream.do_handshake()
                if self._stream.selected_alpn_protocol() not in {None, "http/1.1"}:
                    return False
        except trio.TooSlowError:
            self.shared.cut_reading += 1
            return False
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            return False
        self._ends = client, server
        self._watch.deadline = trio.current_time() + limits.request_timeout_s
        return not self.shared.draining

    async def _serve(self) -> None:
        data = b""
        with self._watch:
            with self._reading:
                data = await self._receive()
            if data and self.phase is not Phase.CLOSING:  # a client that says nothing is given nothing more
                self._reading = trio.CancelScope()
                await self._converse(data)
        if self._watch.cancelled_caught and not self._is_cut:
            await self._out_of_time()
        if self._lingers and not self._is_cut:
            await self._discard_input()

    async def _converse(self, data: bytes | bytearray) -> None:
        shared, (client, server) = self.shared, self._ends
        self._protocol = GuardedProtocol(
            self, shared.app, shared.config, shared.context, is_tls=self._is_tls, client=client, server=server
        )
        try:
            async with trio.open_nursery() as self._nursery:
                with self._reading:
                    await self._read(data)
                    self._has_left = True
                    await self._protocol.disconnected()
        finally:
            # They know each other, and this connection: in a circle they would wait for the garbage collector, and
            # hold up the loop with it.
            self._protocol.stream = None
            del self._protocol, self._nursery

    async def _read(self, data: bytes | bytearray) -> None:
        limits = self.shared.limits
        while data:
            if self.phase is Phase.IDLE:
                self._owner = self.shared.keys.owner(data, self._prefix)
                await self._begin()
            await self._protocol.receive(data)
            self._set_deadline()
            while self._protocol.read_ahead_bytes >= limits.read_ahead_bytes:
                self._room = trio.Event()
                await self._room.wait()
            data = await self._receive()

    async def _begin(self) -> None:
        """Wait for the turn of the next request. Until then it waits for us and not for its client."""
        self.advance(Step.INPUT)
        self._waits_since, self._watch.deadline = None, inf
        await self.shared.turnstile.enter(self._owner)
        self._waits_since = trio.current_time()
        self._arrives_by = self._waits_since + self.shared.limits.request_timeout_s
        self._set_deadline()

    async def _receive(self) -> bytes | bytearray:
        """What comes next; nothing when the client has closed its sending side or is gone."""
        try:
            return await self._stream.receive_some(RECEIVE_BYTES)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    def _set_deadline(self) -> None:
        if self.phase is Phase.RESPONSE:
            deadline = inf
            self._waits_since = None
        elif self.phase is Phase.HEAD:
            deadline = self._arrives_by
        elif self.phase is Phase.BODY:
            deadline = self._arrives_by + self.shared.limits.body_grace_s
        else:
            return
        if self._watch.deadline != deadline:
            self._watch.deadline = deadline

    async def _await_next_request(self) -> None:
        if self._has_left or self._is_cut:  # what it sent behind this request is nobody's any more
            self.close_soon(linger=False)
            return
        now = self._waits_since = trio.current_time()
        self.advance(Step.RESPONSE_SENT)
        self.resume_reading()
        if self._protocol.read_ahead_bytes:
            await self._begin()
            await self._protocol.resume()
            self._set_deadline()
        else:
            self._watch.deadline = now + self.shared.limits.keep_alive_timeout_s

    async def _handle(self, stream: GuardedStream) -> None:
        """Run the application for one request. What it lets escape is a fault of ours: told to the log and answered."""
        try:
            with stream.handling:
                await self.shared.app(stream.scope, stream.receive, stream.app_send, _no_threads, _no_threads)
        except Exception:
            LOGGER.exception("the application failed on a request")
        except BaseExceptionGroup as group:
            faults, others = group.split(Exception)
            if faults is not None:
                LOGGER.error("the application failed on a request", exc_info=faults)  # noqa: TRY400  the part that is one
            if others is not None:
                raise others from None
        await stream.app_send(None)

    async def _write_patiently(self, rest: memoryview) -> None:
        """Piece by piece: a slow client is served for as long as it goes on reading."""
        waited_since = self._waits_since
        with trio.CancelScope() as patience:
            try:
                while rest:
                    self._waits_since = trio.current_time()
                    patience.deadline = self._waits_since + self.shared.limits.write_timeout_s
                    await self._stream.send_all(bytes(rest[:WRITE_BYTES]))
                    rest = rest[WRITE_BYTES:]
                    self._waits_since, patience.deadline = None, inf
                    if rest:
                        await self.shared.turnstile.enter(self._owner)
            except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
                self._cut()
            except trio.Cancelled:
                self._is_cut = True
                raise
        self._waits_since = waited_since
        if patience.cancelled_caught:
            self.shared.cut_writing += 1
            self._cut()

    def _cut(self) -> None:
        """Nothing more reaches this client: stop whatever is still working for it."""
        self._is_cut = True
        self.advance(Step.CLOSE)
        self._watch.cancel()

    async def _out_of_time(self) -> None:
        if self.phase is Phase.IDLE:
            self.shared.closed_idle += 1
        elif self.phase in {Phase.HEAD, Phase.BODY}:
            self.shared.cut_reading += 1
            await self.refuse(408)

    async def _discard_input(self) -> None:
        remaining = self.shared.limits.linger_bytes
        self._is_discarding = True
        self._waits_since = trio.current_time()
        with (
            trio.move_on_after(self.shared.limits.linger_timeout_s),
            suppress(trio.BrokenResourceError, trio.ClosedResourceError),
        ):
            while remaining > 0:
                data = await self._stream.receive_some(RECEIVE_BYTES)
                if not data:
                    return
                remaining -= len(data)


def _no_threads(*_: object) -> None:
    """ASGI over hypercorn hands the application two ways to use threads; an ASGI application has no use for them."""
    raise AssertionError
