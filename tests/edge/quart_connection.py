"""How Quart runs a request behind the edge, for applications of tests. The service answers without Quart's dispatch
(docs/adr/0071).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, cast

import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable
from quart.utils import encode_headers
from quart.wrappers.response import DataBody, Response
from quart_trio.asgi import TrioASGIHTTPConnection
from quart_trio.wrappers.request import TrioBody
from werkzeug.exceptions import ClientDisconnected


class PulledBody(TrioBody):
    """A request body that the handler draws from the server when it wants it.

    quart-trio fills the body from a second task, which then waits for the disconnect; here nothing is read that nobody
    asked for, and a request costs one task instead of three. A body cut short is an error, never a shorter body.
    """

    def __init__(self, expected_bytes: int | None, max_bytes: int | None, receive: ASGIReceiveCallable) -> None:
        super().__init__(expected_bytes, max_bytes)
        self._receive = receive

    def __await__(self) -> Generator[Any, None, bytes]:
        return self._whole().__await__()

    async def __anext__(self) -> bytes:
        if self._must_raise is not None:
            raise self._must_raise
        while not self._data and not self._complete.is_set():
            await self._draw()
        if not self._data:
            raise StopAsyncIteration
        data = bytes(self._data)
        self._data.clear()
        return data

    async def _whole(self) -> bytes:
        while self._must_raise is None and not self._complete.is_set():
            await self._draw()
        if self._must_raise is not None:
            raise self._must_raise
        return bytes(self._data)

    async def _draw(self) -> None:
        message = await self._receive()
        if message["type"] != "http.request":
            raise ClientDisconnected
        self.append(message.get("body", b""))
        if not message.get("more_body", False):
            self.set_complete()


class TrioConnection(TrioASGIHTTPConnection):
    """Runs one request in Quart, in the task it is called in.

    It never listens for a disconnect: the edge cancels the task it runs in. So it takes nothing for a disconnect that
    is none, and no answer is cut short by its own end. The sending needs no shield: what the edge may still cancel
    once an answer has begun is a write out of time, or everything at the end of the drain.
    """

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        """Answer one request through Quart. Raises what the application lets escape; the edge makes it a 500."""
        request = self._create_request_from_scope(send)
        max_bytes = cast("int | None", self.app.config["MAX_CONTENT_LENGTH"])
        request.body = PulledBody(request.content_length, max_bytes, receive)
        response = await self.app.handle_request(request)
        if isinstance(response, Response) and isinstance(response.response, DataBody):
            await self._send_whole(send, response, response.response)
            return
        seconds = cast("float | None", self.app.config["RESPONSE_TIMEOUT"])
        with trio.move_on_after(float("inf") if seconds is None else seconds):
            await self._send_response(send, response)

    async def _send_whole(self, send: ASGISendCallable, response: Response, body: DataBody) -> None:
        """Head, body and end at once, which the edge turns into one write."""
        headers = encode_headers(response.headers)
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        data = body.data[body.begin : body.end]
        await send({"type": "http.response.body", "body": data, "more_body": False})
