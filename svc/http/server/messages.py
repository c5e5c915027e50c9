"""What passes between the bytes of a connection, its requests and the application.

What may live here: values of HTTP/1.1 without any I/O, and what an application may do with a request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

Headers = list[tuple[bytes, bytes]]
SocketAddress = tuple[str, int] | None
"""Host and port; `None` where the address has another form."""


class RequestHead(msgspec.Struct, frozen=True):
    """The first event of a request."""

    method: str
    """As it came: methods are case-sensitive (RFC 9110, 9.1)."""
    target: bytes
    """A path with or without a query, in printable ASCII."""
    http_version: str
    """1.0 or 1.1."""
    headers: Headers
    """Names in lower case."""


class BodyPart(msgspec.Struct, frozen=True):
    """Some bytes of the body, at least one; part boundaries have no meaning."""

    data: bytes | bytearray


class EndOfRequest(msgspec.Struct, frozen=True):
    """The last event of a request."""


class MalformedRequest(msgspec.Struct, frozen=True):
    """The request cannot be understood, or its client has closed within it. No event follows."""

    status: int
    """400, or 431 for too large or too many header fields."""


HttpEvent = RequestHead | BodyPart | EndOfRequest | MalformedRequest


class ResponseError(Exception):
    """A response that HTTP/1.1 does not allow: a mistake of the application."""


class Body(Protocol):
    """The body of a request. The application *pulls* it: nothing is read from the client that nobody asked for."""

    def whole(self) -> bytes | None:
        """Return the body, where all of it has arrived and nothing was taken; `None` if it has to be received."""
        ...

    async def receive(self) -> bytes | None:
        """Return the next part of the body, empty after the last one; `None` if the rest never comes. The first call
        asks a client that waits for it to send the body (`100 Continue`).
        """
        ...


class Request(msgspec.Struct, frozen=True):
    """A request as the application gets it, once its head has arrived."""

    method: str
    path: bytes
    """As it came, percent-encoded."""
    query: bytes
    """What follows the question mark; empty without one."""
    http_version: str
    headers: Headers
    """Names in lower case, in their order; a name may come more than once."""
    scheme: str
    """`http` or `https`, of this connection."""
    client: SocketAddress
    server: SocketAddress
    body: Body


class Reply(Protocol):
    """How an application responds to its request. Everything raises `ResponseError` for what may not be sent now."""

    async def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole response in one write."""

    def begin(self, status: int, headers: Headers, *, is_stream: bool = False) -> None:
        """Begin a response whose body follows in parts; in chunks where `headers` have no Content-Length. A stream has
        no end of its own: it is stopped when its client has left, or the server drains.
        """

    async def send(self, part: bytes) -> None:
        """Send a part of the body now."""

    async def end(self, part: bytes = b"") -> None:
        """Send the last part of the body."""


Application = Callable[[Request, Reply], Awaitable[None]]
"""Responds to one request. It is cancelled when nobody waits for the response any more, unless that has begun."""
