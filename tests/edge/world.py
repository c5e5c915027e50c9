"""A small world at the edge: an application on loopback, and clients that speak raw bytes to it."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
import trio

from svc.http.server.capacity import EdgeLimits
from svc.http.server.listening import open_sockets
from svc.http.server.messages import Application, Reply, Request
from svc.http.server.server import Edge, open_listeners, serve
from svc.workers.shared_memory import ConnectionShare

HANG_S = 20
"""What takes so long hangs: far beyond what a busy machine needs, far below limits that a test sets out of the way."""
JUMPS_S = 86_400
"""Where the clock jumps: no test takes a day."""

CODES = {
    400: "bad_request",
    408: "request_timeout",
    431: "header_fields_too_large",
    500: "internal_error",
    503: "service_unavailable",
}


def refuse(status: int) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    error = {"code": CODES[status], "message": "Mend it.", "status": status}
    body = json.dumps({"error": error, "request_id": "the-request-id"}).encode()
    return body, [(b"content-type", b"application/json"), (b"x-request-id", b"the-request-id")]


class Handlers:
    """What happened inside the application."""

    def __init__(self) -> None:
        self.started = trio.Event()
        self.cancelled = trio.Event()
        self.release = trio.Event()
        self.bodies: list[bytes] = []
        self.paths: list[str] = []


class SmallApplication:
    """Some paths, each of which does one thing."""

    def __init__(self, handlers: Handlers, max_body_bytes: int) -> None:
        self._handlers = handlers
        self._max_body_bytes = max_body_bytes

    async def __call__(self, request: Request, reply: Reply) -> None:
        path = request.path.decode()
        self._handlers.paths.append(path)
        match path:
            case "/hello":
                await whole(reply, 200, b"hello")
            case "/echo":
                await self._echo(request, reply)
            case "/patient":
                with trio.move_on_after(0.2):
                    await self._body(request)
                await whole(reply, 408, b"told by the application")
            case "/unauthorized":
                await whole(reply, 401, b"no")
            case "/slow":
                await self._slow(reply)
            case "/large":
                await whole(reply, 200, b"x" * (16 << 20))
            case "/stream":
                reply.begin(200, [])
                await reply.send(b"one ")
                await self._handlers.release.wait()
                await reply.end(b"two")
            case "/peer":
                await whole(reply, 200, json.dumps(request.client).encode())
            case _:
                await whole(reply, 404, b"")

    async def _echo(self, request: Request, reply: Reply) -> None:
        length = int(dict(request.headers).get(b"content-length", b"0"))
        body = None if length > self._max_body_bytes else await self._body(request)
        if body is None:
            await whole(reply, 413, b"")
        else:
            self._handlers.bodies.append(body)
            await whole(reply, 200, body)

    async def _body(self, request: Request) -> bytes | None:
        """`None` for one that is too large. Raises `CutShortError` for one whose rest never comes."""
        body = b""
        while (part := await request.body.receive()) != b"":
            if part is None:
                raise CutShortError
            body += part
            if len(body) > self._max_body_bytes:
                return None
        return body

    async def _slow(self, reply: Reply) -> None:
        self._handlers.started.set()
        try:
            await self._handlers.release.wait()
        except trio.Cancelled:
            self._handlers.cancelled.set()
            raise
        await whole(reply, 200, b"done")


class CutShortError(Exception):
    """The rest of a body never comes."""


async def whole(reply: Reply, status: int, body: bytes) -> None:
    await reply.respond(status, [(b"content-length", b"%d" % len(body))], body)


class HttpResponse(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes
    fields: list[str]
    """The names of all header fields, repeated ones repeated."""

    @property
    def error(self) -> dict[str, Any]:
        return json.loads(self.body)["error"]

    @property
    def closes(self) -> bool:
        return self.headers.get("connection") == "close"


class Client:
    """One TCP connection that sends what it is told and reads what it gets."""

    def __init__(self, stream: trio.SocketStream | trio.SSLStream[trio.SocketStream]) -> None:
        self.stream = stream
        self._buffer = b""

    async def send(self, *parts: bytes) -> None:
        await self.stream.send_all(b"".join(parts))

    async def ask(self, *parts: bytes) -> HttpResponse:
        await self.send(*parts)
        return await self.response()

    async def response(self, *, to_head: bool = False) -> HttpResponse:
        """The next answer, by its own framing."""
        head = await self._until(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        pairs = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        response = HttpResponse(int(first.split(" ")[1]), dict(pairs), b"", [name for name, _ in pairs])
        if response.status < 200 or to_head:
            return response
        if response.headers.get("transfer-encoding") == "chunked":
            while size := int(await self._until(b"\r\n"), 16):
                response.body += (await self._take(size + 2))[:-2]
            await self._take(2)
        else:
            response.body = await self._take(int(response.headers["content-length"]))
        return response

    async def rest(self) -> bytes:
        """All that comes until the server closes. A reset is an error."""
        parts = [self._buffer]
        while data := await self.stream.receive_some():
            parts.append(bytes(data))
        self._buffer = b""
        return b"".join(parts)

    async def ended(self) -> None:
        """Wait until the server has closed, in an orderly way and with nothing more to say."""
        assert await self.rest() == b""
        self.close()

    def close(self) -> None:
        (self.stream.transport_stream if isinstance(self.stream, trio.SSLStream) else self.stream).socket.close()

    async def _until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            await self._more()
        return await self._take(self._buffer.index(mark) + len(mark))

    async def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            await self._more()
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    async def _more(self) -> None:
        data = await self.stream.receive_some()
        assert data, f"the server closed after {self._buffer!r}"
        self._buffer += data


class Running:
    """A running edge."""

    def __init__(self, edge: Edge, shutdown: trio.Event, returned: trio.Event, handlers: Handlers) -> None:
        self.edge = edge
        self.shutdown = shutdown
        self.returned = returned
        self.handlers = handlers
        self.port = edge.addresses[0][1]
        self.clients: list[Client] = []

    async def connect(self, context: ssl.SSLContext | None = None) -> Client:
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        if context is None:
            client = Client(stream)
        else:
            client = Client(trio.SSLStream(stream, context, server_hostname="localhost", https_compatible=True))
        self.clients.append(client)
        return client

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that has no event of its own, such as a count."""
        while not holds():  # noqa: ASYNC110  as it says
            await trio.sleep(0.005)


@asynccontextmanager
async def running_edge(
    app: Application | None = None,
    *,
    max_body_bytes: int = 1 << 20,
    ssl_context: ssl.SSLContext | None = None,
    hang_s: float = HANG_S,
    share: ConnectionShare | None = None,
    **limits: float,
) -> AsyncGenerator[Running, None]:
    """An edge on loopback for the length of the block, which has to end by itself after the shutdown, and within
    `hang_s`. It serves the small application, or another one.
    """
    handlers = Handlers()
    shutdown, returned = trio.Event(), trio.Event()
    listeners = open_listeners(open_sockets("127.0.0.1:0", 64), ssl_context=ssl_context, share=share)
    served = app or SmallApplication(handlers, max_body_bytes)

    async def run(task_status: trio.TaskStatus[Edge]) -> None:
        edge_limits = EdgeLimits(**{"drain_timeout_s": 1.0, **limits})  # type: ignore[arg-type]
        now_ms = partial(round, 1_700_000_000_000)
        await serve(
            served, listeners, edge_limits, refuse=refuse, now_ms=now_ms, shutdown=shutdown, task_status=task_status
        )
        returned.set()

    with trio.fail_after(hang_s):
        async with trio.open_nursery() as nursery:
            edge: Edge = await nursery.start(partial(run))
            world = Running(edge, shutdown, returned, handlers)
            try:
                yield world
            finally:
                for client in world.clients:
                    client.close()
            shutdown.set()


def get(path: str, *fields: bytes) -> bytes:
    return b"\r\n".join([b"GET %s HTTP/1.1" % path.encode(), b"Host: localhost", *fields, b"", b""])


def post(path: str, body: bytes, *fields: bytes) -> bytes:
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join([b"POST %s HTTP/1.1" % path.encode(), b"Host: localhost", length, *fields, b"", body])
