"""One request as an ASGI application sees it: its scope, the body that it receives, the response that it sends.

What may live here: the rules of ASGI for one request. What the bytes mean is `protocol.py`; the connection that carries
them, and runs the application, is `connection.py`.

The application *pulls* the body: nothing is handed over that it has not asked for. That gives back-pressure, asks the
client for a body (`100 Continue`) only when the application wants it, and needs no task that carries messages.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterable
from typing import Any, Protocol, cast
from urllib.parse import unquote

import trio
from hypercorn.typing import ASGIFramework, ASGIReceiveEvent, ASGISendEvent, ConnectionState, HTTPScope

from svc.http.messages import Headers, RequestHead, ResponseError

LOGGER = logging.getLogger(__name__)

SocketAddress = tuple[str, int] | None

BODY_PART_BYTES = 512
"""A handler is woken for so much of a body, or for its end: not for each byte of a client that sends them one by one.
Less than what is read ahead, or they would wait for each other."""

STREAM = "svc.stream"
"""In the start of a response, beside what ASGI has there: its body has no end of its own. It is not delivered to the
end, but stopped when the client has left or the server drains."""

BODY = "svc.body"
"""In the extensions of a scope: its `ArrivedBody`. Nobody has to wait, or to set a limit to that, where it is whole."""


class ConnectionPort(Protocol):
    """What a request asks of the connection that it came over."""

    @property
    def is_draining(self) -> bool:
        """Whether the shutdown has begun."""
        ...

    async def ask_for_body(self) -> None:
        """Send `100 Continue` if the client waits for it."""

    async def read_on(self) -> bool:
        """Read what comes next of the body, in the task of the request; false where another task reads."""
        ...

    def resume_reading(self) -> None:
        """There is capacity for more of the body."""

    def start_response(self, status: int, headers: Headers) -> None:
        """Write the head at the next flush."""

    def send_body(self, data: bytes) -> None:
        """Write a part of the body at the next flush."""

    async def flush(self) -> None:
        """Write what is pending. Raises nothing for what the client does."""

    async def end_response(self) -> None:
        """Write what is left of the response."""

    async def next_request(self) -> None:
        """The response is complete: go on to the next request, or close."""

    def abort_response(self) -> None:
        """Close within a response that the application has left incomplete."""

    async def end_stream(self) -> None:
        """Write the end of a stream that was stopped, if the client takes it at once, and go on or close."""

    async def reject(self, status: int) -> None:
        """Respond in the edge's own name, and close."""


class ResponseState(enum.Enum):
    """How far the application is with its response."""

    AWAITED = enum.auto()
    STARTED = enum.auto()
    STREAMING = enum.auto()
    """Started, and of a body that has no end of its own."""
    OVER = enum.auto()
    """Complete, or there is nobody to send it to: nothing more is sent."""


_AWAITED, _STARTED, _STREAMING, _OVER = ResponseState
# By these names, since the name of a member within its class is looked up by Python code: ten times the cost.


class ArrivedBody:
    """What has arrived of a request's body and has not been taken."""

    __slots__ = ("is_taken", "is_whole", "received")

    def __init__(self) -> None:
        self.received = bytearray()
        self.is_whole = False
        """Whether all of it has arrived."""
        self.is_taken = False
        """Whether all of it has been taken."""

    def take(self) -> bytes:
        """What is here; nothing is left."""
        taken = bytes(self.received)
        self.received.clear()
        self.is_taken = self.is_whole
        return taken


class AsgiCall:
    """One call of the application, for one request. What it sends after its request is over is ignored."""

    def __init__(self, link: ConnectionPort, scope: HTTPScope, handling: trio.CancelScope) -> None:
        """`handling` is around `handle`: for a client that is gone nothing is computed."""
        self.scope = scope
        self._handling = handling
        self._link = link
        self._state = _AWAITED
        self._body = ArrivedBody()
        scope["extensions"][BODY] = cast("dict[str, Any]", self._body)
        self._is_cut_short = False
        """Whether the rest of the body never comes."""
        self._arrival: trio.Event | None = None

    # What the connection says of the request

    @property
    def buffered_bytes(self) -> int:
        """What has arrived of the body and not been taken."""
        return len(self._body.received)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is sent: there is nothing to `finish`."""
        return self._state is _OVER

    def body_arrived(self, data: bytes | bytearray) -> None:
        """Keep bytes of the body; the application is woken when there are `BODY_PART_BYTES` of them."""
        self._body.received += data
        if len(self._body.received) >= BODY_PART_BYTES:
            self._wake()

    def body_completed(self) -> None:
        """No more of the body will come: wake the application."""
        self._body.is_whole = True
        self._wake()

    def body_cut_short(self) -> None:
        """The rest of the body never comes, while the response goes on."""
        self._is_cut_short = True
        self._wake()

    def client_left(self) -> None:
        """The client sends no more. A handler stops at once, unless its response has begun: that is delivered, but for
        a stream.
        """
        if self._state in (_AWAITED, _STREAMING):
            self.cancel()

    def stop_stream(self) -> None:
        """The server drains: stop a stream where it is; any other response goes on."""
        if self._state is _STREAMING:
            self._handling.cancel()

    def cancel(self) -> None:
        """Stop the handler; there is nobody left whom it could respond to."""
        self._state = _OVER
        self._handling.cancel()

    async def run(self, app: ASGIFramework) -> None:
        """`handle` and `finish`, in a task of its own."""
        with self._handling:
            await self.handle(app)
        await self.finish()

    async def handle(self, app: ASGIFramework) -> None:
        """Run the application for this request. What it lets escape is a fault of ours: logged, and responded to."""
        try:
            await app(self.scope, self.receive, self.send)
        except Exception:
            LOGGER.exception("the application failed on a request")
        except BaseExceptionGroup as group:
            faults, others = group.split(Exception)
            if faults is not None:
                LOGGER.error("the application failed on a request", exc_info=faults)  # noqa: TRY400  the part that is one
            if others is not None:
                raise others from None

    # What the application is called with

    async def receive(self) -> ASGIReceiveEvent:
        """ASGI `receive`: at least `BODY_PART_BYTES` of the body, or its last part; then the end of the request."""
        body = self._body
        await self._link.ask_for_body()
        while not self.is_over and not self._is_cut_short:
            if not body.is_taken and (body.is_whole or len(body.received) >= BODY_PART_BYTES):
                part = body.take()
                self._link.resume_reading()
                return {"type": "http.request", "body": part, "more_body": not body.is_whole}
            if not await self._link.read_on():
                self._arrival = trio.Event()
                await self._arrival.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: ASGISendEvent) -> None:
        """ASGI `send`. Head, body and end leave in one write where the application has them all at once.

        Raises `ResponseError` for a message that may not come now, fields that are not bytes, and a body of another
        length than it should have.
        """
        if self._state in (_STREAMING, _OVER):
            await trio.lowlevel.checkpoint()  # where it hears that it was stopped, however much it has to say
        if self._state is _OVER:
            return
        if message["type"] == "http.response.start" and self._state is _AWAITED:
            self._link.start_response(int(message["status"]), _checked(message.get("headers", [])))
            self._state = _STARTED
            if message.get(STREAM, False):
                self._state = _STREAMING
                if self._link.is_draining:
                    self.stop_stream()
        elif message["type"] == "http.response.body" and self._state is not _AWAITED:
            self._link.send_body(bytes(message.get("body", b"")))
            if message.get("more_body", False):
                await self._link.flush()
            else:
                await self._link.end_response()
                self._state = _OVER
                self._wake()
                await self._link.next_request()
        else:
            raise ResponseError(f"{message['type']} may not be sent while the response is {self._state.name}")

    async def finish(self) -> None:
        """The application has returned, failed, or was stopped."""
        if self._state is _AWAITED:
            await self._link.reject(500)
        elif self._state is _STREAMING and self._handling.cancelled_caught:
            self._state = _OVER
            await self._link.end_stream()
        elif self._state is not _OVER:
            self._link.abort_response()

    def _wake(self) -> None:
        if self._arrival is not None:
            self._arrival.set()


def http_scope(head: RequestHead, *, is_tls: bool, client: SocketAddress, server: SocketAddress) -> HTTPScope:
    """The ASGI scope of a request."""
    path, _, query_string = head.target.partition(b"?")
    return HTTPScope(
        type="http",
        http_version=head.http_version,
        asgi={"spec_version": "2.1", "version": "3.0"},
        method=head.method,
        scheme="https" if is_tls else "http",
        path=unquote(path.decode("ascii")),
        raw_path=path,
        query_string=query_string,
        root_path="",
        headers=head.headers,
        client=client,
        server=server,
        state=ConnectionState({}),
        extensions={},
    )


def _checked(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    fields: Headers = []
    for name, value in headers:
        if not isinstance(name, bytes) or not isinstance(value, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]  not all applications have types
            raise ResponseError(f"the header field {name!r}: {value!r} is not of bytes")
        fields.append((name.strip(), value.strip()))
    return fields
