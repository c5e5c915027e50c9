"""One client's connection: reading, responding and closing it, each within a limit.

What may live here: the time and the socket of one client. What the bytes mean is `protocol.py`; how the application
sees a request is `asgi.py`; which connections are accepted, and what ends all of them, is `edge.py`. A `Connection` has
one deadline, pushed forward as the request advances.

Plain requests (`plain.py`) are handled one after another in the one task of their connection, which reads for them what
they ask for. From the first other request on, one task reads and each handler has its own.

A client that has closed its sending side counts as gone, whether or not it still reads: TCP tells the two apart only
after a response was refused, and a handler must stop at once when nobody waits for it. So the handler is cancelled,
unless its response has begun: that is delivered to the end. A stream, which has none, is stopped. While nobody reads,
`departures.py` sees who has left.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Hashable
from contextlib import suppress
from math import inf

import trio
from hypercorn.utils import parse_socket_addr  # pyright: ignore[reportUnknownVariableType]  its argument is a bare tuple

from svc.domain.eviction import IdleConnection, client_prefix
from svc.http.asgi import AsgiCall, SocketAddress, http_scope
from svc.http.capacity import EdgeState
from svc.http.messages import EndOfRequest, Headers, MalformedRequest, RequestHead
from svc.http.phases import BODY, CUT, HEAD, IDLE, LINGERING, RESPONSE
from svc.http.protocol import HttpProtocol
from svc.http.receiving import AnyStream, receive

WRITE_BYTES = 65_536
"""What a client has to take within the time for one write."""
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
STREAM_END_S = 0.5
"""For the last bytes of a stream that is stopped."""
PARTS_AT_ONCE = 64
"""So many parts of a body, then everybody else has a turn: a packet may bring thousands of tiny chunks."""


class Connection:
    """One accepted socket, from the first byte to the close."""

    def __init__(self, shared: EdgeState, stream: AnyStream) -> None:
        self.shared = shared
        self._http = HttpProtocol(shared.limits.max_header_bytes, lean=shared.lean)
        self._call: AsgiCall | None = None
        """The request that the application works for."""
        self._stream = stream
        self._socket = (stream.transport_stream if isinstance(stream, trio.SSLStream) else stream).socket
        self._is_tls = isinstance(stream, trio.SSLStream)
        self._ends: tuple[SocketAddress, SocketAddress] = None, None  # the client's and the server's
        self._nursery: trio.Nursery | None = None
        """Of the handlers that run beside the reading; none while this connection has one task."""
        self._life = trio.CancelScope()
        self._watch = trio.CancelScope()
        """Around everything but the handshake and the end; its deadline is what the present phase allows."""
        self._plainly = trio.CancelScope()
        """Around plain requests: their reading and their handling."""
        self._reading: trio.CancelScope | None = None
        """Around the reading, but where a handler reads."""
        self._resumed: trio.Event | None = None
        self._arrives_by = inf
        """When all of the present request has to be there."""
        self._prefix = ""
        self._owner: Hashable = ""
        """Whose turn its present request has taken."""
        self._waits_since: float | None = trio.current_time()
        """Since when the client has to act next; `None` while it waits for this service."""
        self._pending: list[bytes] = []

    async def run(self) -> None:
        """Serve requests until the connection ends; the socket is closed in any case."""
        self.shared.connections[self] = None
        try:
            with self._life:
                if not self.shared.draining and await self._open():
                    await self._serve()
        finally:
            self.shared.connections.pop(self, None)
            if self._http.phase is CUT:
                # Without the reset the kernel would go on offering the unread response for minutes.
                with suppress(OSError):
                    self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            self._socket.close()

    def drain(self) -> None:
        """The shutdown has begun: close if idle; a request that arrives gets `drain_patience_s` more; a stream ends."""
        if self._http.phase is IDLE:
            self.close_soon(linger=False)
        elif self._http.phase in {HEAD, BODY}:
            self._arrives_by = min(self._arrives_by, trio.current_time() + self.shared.limits.drain_patience_s)
            self._set_deadline()
        elif self._call is not None:
            self._call.stop_stream()

    def waits(self) -> IdleConnection | None:
        """Since when its client has to act; `None` while a request is being handled."""
        if self._waits_since is None:
            return None
        is_in_request = self._http.phase not in {IDLE, LINGERING}
        return IdleConnection(self._prefix, self._waits_since, is_in_request)

    def evict(self) -> None:
        """End at once. A request that has begun gets a 503 if that takes no waiting."""
        self.shared.connections.pop(self, None)
        if self._http.phase in {HEAD, BODY} and not self._is_tls:
            with suppress(OSError):
                os.write(self._socket.fileno(), self.shared.refusal(503))
        self._waits_since = None
        self._life.cancel()

    # What `Departures` and a request (`asgi.Link`) ask of their connection

    def fileno(self) -> int:
        """The descriptor of its socket."""
        return self._socket.fileno()

    def client_left(self) -> None:
        """Its client has closed its sending side, while its request is handled."""
        if self._call is not None and self._http.phase is RESPONSE:
            self._call.client_left()

    @property
    def is_draining(self) -> bool:
        """Whether the shutdown has begun."""
        return self.shared.draining

    async def ask_for_body(self) -> None:
        """Send `100 Continue` now if the client waits for it (RFC 9110, 10.1.1); else nothing."""
        if self._http.is_continue_due:
            self._pending.append(self._http.send_continue())
            await self.flush()

    async def read_on(self) -> bool:
        """Read what comes next of the body, unless another task does."""
        if self._nursery is not None:
            return False
        await self._read()
        await trio.lowlevel.checkpoint_if_cancelled()
        return True

    def resume_reading(self) -> None:
        """The application has taken what was read ahead: the socket may be read again."""
        if self._resumed is not None:
            self._resumed.set()

    def start_response(self, status: int, headers: Headers) -> None:
        """The head of the response, to be written with what follows."""
        dated = [*headers, *self.shared.config.response_headers("h11")]
        self._pending.append(self._http.send_head(status, dated, is_last=self.shared.draining))
        self._set_deadline()

    def send_body(self, data: bytes) -> None:
        """A part of the body, to be written at the next flush."""
        self._pending.append(self._http.send_body(data))

    async def end_response(self) -> None:
        """Write what is pending, and the end of the response. Raises `ResponseError` for a body cut short."""
        self._pending.append(self._http.send_end())
        await self.flush()

    async def next_request(self) -> None:
        """The response is complete: go on with what has arrived behind its request, wait for another one, or close."""
        self._call = None
        if self.shared.draining or not self._http.can_continue:
            self.close_soon(linger=self._http.has_unread_input)
            return
        self._waits_since = trio.current_time()
        self._http.start_next_cycle()
        self.resume_reading()
        if self._http.phase is IDLE:
            self._watch.deadline = self._waits_since + self.shared.limits.keep_alive_timeout_s
        elif self._nursery is not None:
            await self._begin()
            await self._act()

    def abort_response(self) -> None:
        """Close within a response that the application has left incomplete."""
        self._call = None
        self.close_soon(linger=self._http.has_unread_input)

    async def end_stream(self) -> None:
        """Write the end of a stream that was stopped, and go on or close. A client that does not take it at once, or
        was behind with reading, is cut off.
        """
        if self._http.phase is not CUT:
            with trio.move_on_after(STREAM_END_S):
                await self.end_response()
        if self._http.phase is CUT:
            self._call = None
            self._cut()
        else:
            await self.next_request()

    async def reject(self, status: int) -> None:
        """Cancel the handler, send the edge's own response and close; nothing more where it is closing already."""
        if self._call is not None:
            self._call.cancel()
            self._call = None
        if self._http.is_closing:
            return
        self._http.close()
        if status in {400, 431}:
            self.shared.counts.requests_malformed += 1
        self._pending = [self.shared.refusal(status)]
        await self.flush()
        self.close_soon(linger=True)

    # Closing and writing

    def close_soon(self, *, linger: bool) -> None:
        """Stop reading; close when the handler has ended. `linger`: drop input first, so that no reset is sent."""
        self._http.close(linger=linger)
        self._waits_since = None
        self._watch.deadline = trio.current_time() + self.shared.limits.write_timeout_s
        if self._reading is not None:
            self._reading.cancel()
        if linger:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)

    async def flush(self) -> None:
        """Write what is pending; a client that does not take it in `write_timeout_s` is cut off. Raises nothing."""
        parts, self._pending = list(filter(None, self._pending)), []
        if self._http.phase is CUT or not parts:
            return
        sent = 0
        if not self._is_tls:
            # Nearly every response fits into the kernel's buffer: one system call, no cancel scope, no loop turn.
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
            if sent < len(part) and self._http.phase is not CUT:
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
            self.shared.counts.connections_cut_reading += 1
            return False
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            return False
        self._ends = client, server
        self._watch.deadline = trio.current_time() + limits.request_timeout_s
        return not self.shared.draining

    async def _serve(self) -> None:
        with self._watch:
            try:
                if await self._converse_plainly():
                    await self._converse()
            finally:
                # They refer to this connection. Reference cycles wait for the garbage collector, which holds up all.
                self._call = self._nursery = None
        if self._watch.cancelled_caught:
            await self._out_of_time()
        if self._http.phase is LINGERING:
            await self._discard_input()

    async def _converse_plainly(self) -> bool:
        """Serve plain requests, in this task. Whether another one has come, which waits to be handled."""
        while self._http.phase in (IDLE, HEAD):
            with trio.CancelScope() as self._plainly:  # until a handler is stopped: entering one is 1 % of a request
                while (call := await self._next_call()) is not None:
                    if not self._http.is_plain:
                        return True
                    with self.shared.departures.watching(self):
                        await call.handle(self.shared.app)
                    if self._plainly.cancel_called or not call.is_over:
                        break
                    await self._go_on()
            if self._call is None:
                return False
            await self._call.finish()
            await self._go_on()
        return False

    async def _next_call(self) -> AsgiCall | None:
        """The request that is here or comes; `None` where none comes."""
        self._reading = self._plainly
        while self._call is None and self._http.phase in (IDLE, HEAD) and await self._read():
            pass
        self._reading = None
        return self._call

    async def _go_on(self) -> None:
        """After a plain request: with the next one, if it came with this one."""
        self._call = None
        if self._http.phase is BODY:  # the rest of it does not come
            await self.reject(400)
        elif self._http.phase is HEAD:
            await self._begin()
            await self._act()

    async def _converse(self) -> None:
        """Read in one task and handle requests in others, from a request on that is not plain."""
        async with trio.open_nursery() as self._nursery:
            if self._call is not None:
                self._nursery.start_soon(self._call.run, self.shared.app)
            with trio.CancelScope() as self._reading:
                while await self._read():
                    while self._buffered_bytes() >= self.shared.limits.read_ahead_bytes:
                        self._resumed = trio.Event()
                        await self._resumed.wait()
                if self._call is not None:
                    self._call.client_left()

    async def _read(self) -> bool:
        """Do what follows from what the client sends next; false at its end."""
        data = await receive(self._stream)
        if not data:
            self._http.receive_eof()
        elif self._http.phase is IDLE:
            self._http.receive_data(data)
            self._owner = self.shared.keys.owner(data, self._prefix)
            await self._begin()
        else:
            self._http.receive_data(data)
        await self._act()
        return bool(data)

    async def _begin(self) -> None:
        """Wait for the turn of the request that has begun: until then it waits for us. `_act` then sets a deadline."""
        self._waits_since, self._watch.deadline = None, inf
        await self.shared.turnstile.enter(self._owner)
        self._waits_since = trio.current_time()
        self._arrives_by = self._waits_since + self.shared.limits.request_timeout_s

    async def _act(self) -> None:
        """Do what follows from all that has been read."""
        parts = 0
        while (event := self._http.next_event()) is not None:
            if isinstance(event, RequestHead):
                self._start_call(event)
            elif isinstance(event, MalformedRequest):
                await self._end_malformed(event.status)
            elif self._call is not None:
                if isinstance(event, EndOfRequest):
                    self._call.body_completed()
                else:
                    self._call.body_arrived(event.data)
                    parts += 1
                    if parts % PARTS_AT_ONCE == 0:
                        await trio.lowlevel.checkpoint()
        self._set_deadline()

    async def _end_malformed(self, status: int) -> None:
        if self._call is not None and self._http.phase is not BODY:
            # A response that begins before its request is complete says that it is the last one.
            self._call.body_cut_short()
        elif self._call is not None and self._nursery is None and self._http.is_plain:
            self._call.cancel()  # it runs in this task, and the request is rejected when it has ended
        else:
            await self.reject(status)

    def _start_call(self, head: RequestHead) -> None:
        scope = http_scope(head, is_tls=self._is_tls, client=self._ends[0], server=self._ends[1])
        is_alone = self._http.is_plain and self._nursery is None
        self._call = AsgiCall(self, scope, self._plainly if is_alone else trio.CancelScope())
        if self._nursery is not None:
            self._nursery.start_soon(self._call.run, self.shared.app)

    def _buffered_bytes(self) -> int:
        return self._http.buffered_bytes + (0 if self._call is None else self._call.buffered_bytes)

    def _set_deadline(self) -> None:
        if self._http.phase is RESPONSE:
            deadline = inf
            self._waits_since = None
        elif self._http.phase is HEAD:
            deadline = self._arrives_by
        elif self._http.phase is BODY:
            deadline = self._arrives_by + self.shared.limits.body_grace_s
        else:
            return
        if self._watch.deadline != deadline:
            self._watch.deadline = deadline

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
                self._http.cut()
                raise
        self._waits_since = waited_since
        if patience.cancelled_caught:
            self.shared.counts.connections_cut_writing += 1
            self._cut()

    def _cut(self) -> None:
        """Nothing more reaches this client: stop whatever is still working for it."""
        self._http.cut()
        self._watch.cancel()

    async def _out_of_time(self) -> None:
        if self._http.phase is IDLE:
            self.shared.counts.connections_closed_idle += 1
        elif self._http.phase in {HEAD, BODY}:
            self.shared.counts.connections_cut_reading += 1
            await self.reject(408)

    async def _discard_input(self) -> None:
        remaining = self.shared.limits.linger_bytes
        self._waits_since = trio.current_time()
        with trio.move_on_after(self.shared.limits.linger_timeout_s):
            while remaining > 0 and (data := await receive(self._stream)):
                remaining -= len(data)
