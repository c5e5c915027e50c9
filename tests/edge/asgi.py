"""An ASGI application behind the edge: one request after another, each in the task of its connection.

What may live here: the rules of ASGI for one request (asgi.readthedocs.io, specs/www). The lifespan protocol is not
spoken: what serves requests must not live in a nursery of the application, where a crash leaves a server that still
responds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import unquote

import trio

from svc.http.server.messages import Application, Headers, Reply, Request, ResponseError

Message = dict[str, Any]
AsgiApplication = Callable[[Any, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]


def asgi(app: AsgiApplication) -> Application:
    """The edge's view of an ASGI application."""

    async def respond(request: Request, reply: Reply) -> None:
        call = _AsgiCall(request, reply)
        await app(_scope(request), call.receive, call.send)

    return respond


class _AsgiCall:
    """One call of the application, for one request."""

    def __init__(self, request: Request, reply: Reply) -> None:
        self._request = request
        self._reply = reply
        self._has_body = True
        """Whether the end of the body has not been handed over."""

    async def receive(self) -> Message:
        """ASGI `receive`: the parts of the body, then a wait without end: an application whose client leaves is
        cancelled.
        """
        if not self._has_body:
            await trio.sleep_forever()
        part = await self._request.body.receive()
        if part is None:
            return {"type": "http.disconnect"}
        self._has_body = bool(part)
        return {"type": "http.request", "body": part, "more_body": self._has_body}

    async def send(self, message: Message) -> None:
        """ASGI `send`. Raises `ResponseError` for a message that may not come now, fields that are not bytes, and a
        body of another length than it should have.
        """
        if message["type"] == "http.response.start":
            self._reply.begin(int(message["status"]), _checked(message.get("headers", ())))
        elif message["type"] == "http.response.body":
            send = self._reply.send if message.get("more_body", False) else self._reply.end
            await send(bytes(message.get("body", b"")))
        else:
            raise ResponseError(f"{message['type']} is not of HTTP")


def _scope(request: Request) -> Message:
    return {
        "type": "http",
        "http_version": request.http_version,
        "asgi": {"spec_version": "2.1", "version": "3.0"},
        "method": request.method,
        "scheme": request.scheme,
        "path": unquote(request.path.decode("ascii")),
        "raw_path": request.path,
        "query_string": request.query,
        "root_path": "",
        "headers": request.headers,
        "client": request.client,
        "server": request.server,
        "state": {},
        "extensions": {},
    }


def _checked(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    fields: Headers = []
    for name, value in headers:
        if not isinstance(name, bytes) or not isinstance(value, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]  not all applications have types
            raise ResponseError(f"the header field {name!r}: {value!r} is not of bytes")
        fields.append((name.strip(), value.strip()))
    return fields
