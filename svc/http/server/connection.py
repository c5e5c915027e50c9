"""One client's connection: reading, responding and closing it, each within a limit.

What may live here: the time and the socket of one client. What the bytes mean is `http1.py`; which connections are
accepted, and what ends all of them, is `server.py`.

A connection has one task. It reads a request, runs the application for it, which reads what it asks for of the body and
sends the response, and goes on to the next request. One cancel scope is around all of that, with one deadline, which is
pushed forward as the request advances. What is still to be said after it, such as a 408, is said behind it.

A client that has closed its sending side counts as gone, whether or not it still reads: TCP tells the two apart only
after a response was refused, and an application must stop at once when nobody waits for it. So it is cancelled, unless
its response has begun: that is delivered to the end. A stream, which has none, is stopped. While nobody reads,
`capacity.py` detects clients that have left.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
from collections.abc import Hashable
from contextlib import suppress
from math import inf
from typing import Any

import trio

from svc.http.server.capacity import EdgeState
from svc.http.server.http1 import BODY, CUT, HEAD, IDLE, LINGERING, RESPONSE, HttpProtocol
from svc.http.server.messages import (
    BodyPart,
    EndOfRequest,
    Headers,
    MalformedRequest,
    Request,
    RequestHead,
    SocketAddress,
)
from svc.kernel.limits.eviction import IdleConnection, client_prefix

LOGGER = logging.getLogger(__name__)

AnyStream = trio.SocketStream | trio.SSLStream[trio.SocketStream]
RECEIVE_BYTES = 65_536
WRITE_BYTES = 65_536
"""What a client has to take within the time for one write."""
BODY_PART_BYTES = 512
"""An application is woken for this many bytes of a body, or for its end: not for each byte of a client that sends them
one by one.
"""
PARTS_AT_ONCE = 64
"""So many parts of a body, then everybody else has a turn: a packet may bring thousands of tiny chunks."""
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
STREAM_END_S = 0.5
"""For the last bytes of a stream that is stopped."""


class Connection:
    """One accepted socket, from the first byte to the close. It is the `Reply` to its present request, too."""

    def __init__(self, shared: EdgeState, stream: AnyStream) -> None:
        self.shared = shared
        self._http = HttpProtocol(shared.limits.max_header_bytes)
        self._stream = stream
        self._socket = (stream.transport_stream if isinstance(stream, trio.SSLStream) else stream).socket
        self._is_tls = isinstance(stream, trio.SSLStream)
        self._ends: tuple[SocketAddress, SocketAddress] = None, None  # the client's and the server's
        self._life = trio.CancelScope()
        self._conversation = trio.CancelScope()
        """Around everything but the handshake and the end; its deadline is what the present phase allows."""
        self._arrives_by = inf
        """When all of the present request has to be there."""
        self._prefix = ""
        self._owner: Hashable = ""
        """Whose turn its present request has taken."""
        self._waits_since: float | None = trio.current_time()
        """Since when the client has to act next; `None` while it waits for this service."""
        self._pending: list[bytes] = []
        self._body = bytearray()
        """What has arrived of the present request's body and was not taken."""
        self._is_handling = False
        self._is_stream = False
        """Whether the present response is one."""
        self._refused_with: int | None = None
        """The status with which the edge itself responds at the end."""

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

    # What all connections together ask of each

    def drain(self) -> None:
        """Begin to shut down: close if idle; a request that is still arriving gets `drain_patience_s` more; a stream
        ends.
        """
        if self._http.phase is IDLE:
            self._http.close()
            self._conversation.cancel()
        elif self._http.phase in (HEAD, BODY):
            self._arrives_by = min(self._arrives_by, trio.current_time() + self.shared.limits.drain_patience_s)
            self._set_deadline()
        elif self._is_stream:
            self._conversation.cancel()

    def waits(self) -> IdleConnection | None:
        """Return this connection as one that waits for its client; `None` while a request is being handled."""
        if self._waits_since is None:
            return None
        is_in_request = self._http.phase not in (IDLE, LINGERING)
        return IdleConnection(self._prefix, self._waits_since, is_in_request)

    def evict(self) -> None:
        """End at once. A request that has begun gets a 503 if that takes no waiting."""
        self.shared.connections.pop(self, None)
        if self._http.phase in (HEAD, BODY) and not self._is_tls:
            with suppress(OSError):
                os.write(self._socket.fileno(), self.shared.refusal(503))
        self._waits_since = None
        self._life.cancel()

    def fileno(self) -> int:
        """Return the descriptor of its socket."""
        return self._socket.fileno()

    def client_left(self) -> None:
        """Note that the client has closed its sending side while its request is being handled."""
        if self._http.phase is RESPONSE and (self._is_stream or not self._http.is_response_begun):
            self._conversation.cancel()

    # The body of the present request, which asks for its parts

    def whole(self) -> bytes | None:
        """See `messages.Body`."""
        return None if self._http.has_unread_body else self._take_body()

    async def receive(self) -> bytes | None:
        """See `messages.Body`."""
        if self._http.is_continue_due:
            self._pending.append(self._http.send_continue())
            await self._flush()
        while self._http.has_unread_body and len(self._body) < BODY_PART_BYTES:
            if self._refused_with is not None:
                return None
            await self._receive()
            await self._take_events()
            await trio.lowlevel.checkpoint_if_cancelled()
        return self._take_body()

    def _take_body(self) -> bytes:
        taken = bytes(self._body)
        self._body.clear()
        return taken

    # The response to the present request

    async def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """See `messages.Reply`."""
        self.begin(status, headers)
        await self.end(body)

    def begin(self, status: int, headers: Headers, *, is_stream: bool = False) -> None:
        """See `messages.Reply`."""
        head = self._http.send_head(status, [*headers, *self.shared.fields()], is_last=self.shared.draining)
        self._pending.append(head)
        self._is_stream = is_stream
        if is_stream and self.shared.draining:
            self._conversation.cancel()
        self._set_deadline()

    async def send(self, part: bytes) -> None:
        """See `messages.Reply`."""
        if self._is_stream:
            await trio.lowlevel.checkpoint()  # where it hears that it was stopped, however much it has to say
        self._pending.append(self._http.send_body(part))
        await self._flush()

    async def end(self, part: bytes = b"") -> None:
        """See `messages.Reply`."""
        self._pending += (self._http.send_body(part), self._http.send_end())
        self._is_stream = False
        await self._flush()

    # Its life

    async def _open(self) -> bool:
        """Read the addresses of both ends and complete the TLS handshake. Return whether to serve the client."""
        limits = self.shared.limits
        try:
            family = self._socket.family
            self._ends = _address(family, self._socket.getpeername()), _address(family, self._socket.getsockname())
            self._prefix = "" if self._ends[0] is None else client_prefix(self._ends[0][0])
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
        self._conversation.deadline = trio.current_time() + limits.request_timeout_s
        return not self.shared.draining

    async def _serve(self) -> None:
        with self._conversation:
            while (request := await self._next_request()) is not None:
                await self._handle(request)
                if not self._go_on():
                    break
        if self._conversation.cancelled_caught:
            self._note_cancelled()
        await self._end()

    async def _next_request(self) -> Request | None:
        """Return the next request with what has arrived of its body, `None` if none comes or can be served."""
        if self._http.phase is HEAD:  # it came with the one before
            await self._wait_for_turn()
        request = await self._take_events()
        while request is None and self._refused_with is None:
            data = await self._receive()
            if not data and self._http.phase is IDLE:
                return None
            request = await self._take_events()
        return None if self._refused_with is not None else request

    async def _handle(self, request: Request) -> None:
        """Run the application. Log an exception that escapes it, which is a fault of ours, and respond to it."""
        self._is_handling = True
        try:
            with self.shared.departures.watching(self):
                await self.shared.app(request, self)
        except Exception:
            LOGGER.exception("the application failed on a request")
        except BaseExceptionGroup as group:
            faults, others = group.split(Exception)
            if faults is not None:
                LOGGER.error("the application failed on a request", exc_info=faults)  # noqa: TRY400  the part that is one
            if others is not None:
                raise others from None
        finally:
            self._is_handling = False
        if not self._http.is_response_begun:
            self._refused_with = self._refused_with or 500

    def _go_on(self) -> bool:
        """Prepare the connection for its next request; return whether it is kept."""
        if self.shared.draining or not self._http.can_continue:
            return False
        self._waits_since = trio.current_time()
        self._http.start_next_cycle()
        self._conversation.deadline = self._waits_since + self.shared.limits.keep_alive_timeout_s
        return True

    def _note_cancelled(self) -> None:
        """Record why the conversation was cancelled: its time ran out, the server drains, or the client has left."""
        if self._refused_with is not None or self._http.is_closing:
            return
        if self._http.phase is IDLE:
            self.shared.counts.connections_closed_idle += 1
        elif self._http.phase in (HEAD, BODY):
            self.shared.counts.connections_cut_reading += 1
            self._refused_with = 408

    async def _end(self) -> None:
        """Send what is left of a stream, or the refusal, and discard unread input before the close."""
        if self._is_stream and self._http.phase is RESPONSE:
            with trio.move_on_after(STREAM_END_S):  # a client that was behind with reading is cut off
                await self.end()
        elif self._refused_with is not None and not self._http.is_response_begun and not self._http.is_closing:
            if self._refused_with in (400, 431):
                self.shared.counts.requests_malformed += 1
            self._pending = [self.shared.refusal(self._refused_with)]
            await self._flush()
            self._linger()
        elif self._http.has_unread_input:
            self._linger()
        if self._http.phase is LINGERING:
            await self._discard_input()

    def _linger(self) -> None:
        """Drop input before the close, so that no reset is sent, which can destroy the response."""
        self._http.close(linger=True)
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    async def _discard_input(self) -> None:
        remaining = self.shared.limits.linger_bytes
        self._waits_since = trio.current_time()
        with trio.move_on_after(self.shared.limits.linger_timeout_s):
            while remaining > 0 and (data := await receive(self._stream)):
                remaining -= len(data)

    # Reading

    async def _receive(self) -> bytes | bytearray:
        """Pass on what the client sends next: nothing at its end. The first bytes of a request wait for their turn."""
        data = await receive(self._stream)
        if not data:
            self._http.receive_eof()
        elif self._http.phase is IDLE:
            self._http.receive_data(data)
            self._owner = self.shared.keys.owner(data, self._prefix)
            await self._wait_for_turn()
        else:
            self._http.receive_data(data)
        return data

    async def _wait_for_turn(self) -> None:
        """Wait for the turn of a begun request: the client waits for us. `_take_events` sets the next deadline."""
        self._waits_since, self._conversation.deadline = None, inf
        await self.shared.fair_queue.enter(self._owner)
        self._waits_since = trio.current_time()
        self._arrives_by = self._waits_since + self.shared.limits.request_timeout_s

    async def _take_events(self) -> Request | None:
        """Handle all events that have been read. Return the request whose head is among them."""
        parts, request = 0, None
        while (event := self._http.next_event()) is not None:
            if isinstance(event, RequestHead):
                request = self._begun(event)
            elif isinstance(event, BodyPart):
                self._body += event.data
                parts += 1
                if parts % PARTS_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()
            elif isinstance(event, MalformedRequest):
                self._refused_with = event.status
                if self._is_handling and not self._http.is_response_begun:
                    self._conversation.cancel()
            else:
                assert isinstance(event, EndOfRequest)
        self._set_deadline()
        return request

    def _begun(self, head: RequestHead) -> Request:
        path, _, query = head.target.partition(b"?")
        self._body.clear()
        scheme = "https" if self._is_tls else "http"
        return Request(head.method, path, query, head.http_version, head.headers, scheme, *self._ends, body=self)

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
        if self._conversation.deadline != deadline:
            self._conversation.deadline = deadline

    # Writing

    async def _flush(self) -> None:
        """Write what is pending. Cut off a client that does not take it in `write_timeout_s`. Raises nothing."""
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

    async def _write_patiently(self, rest: memoryview) -> None:
        """Write piece by piece: a slow client is served for as long as it goes on reading."""
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
                        await self.shared.fair_queue.enter(self._owner)
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
        """Stop everything that still works for this client: nothing more reaches it."""
        self._http.cut()
        self._conversation.cancel()


async def receive(stream: AnyStream) -> bytes | bytearray:
    """Return the next bytes; empty if the client has closed its sending side or is gone. `SocketStream.receive_some`
    tries to read first and waits if nothing is there, as between two requests. This function waits first, which saves a
    system call, and skips the layers that an unencrypted connection does not need.
    """
    try:
        if isinstance(stream, trio.SSLStream):
            return await stream.receive_some(RECEIVE_BYTES)
        while stream.socket.fileno() >= 0:  # of a closed one there is nothing to wait for
            await trio.lowlevel.wait_readable(stream.socket)
            try:
                return os.read(stream.socket.fileno(), RECEIVE_BYTES)
            except BlockingIOError:  # something came, and was not what it seemed
                continue
    except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
        pass
    return b""


def _address(family: int, name: Any) -> SocketAddress:
    """Return host and port of a socket's name, `None` if it has none, as on a Unix socket."""
    return (name[0], name[1]) if family in (socket.AF_INET, socket.AF_INET6) else None
