"""The ASGI application: a `QuartTrio` whose requests are all handled by the exchange.

Quart's own request, dispatch and response cost about as much as this service's whole work on a request, so every path,
known or not, is handled from ASGI messages (docs/adr/0004). No actor lives in Quart's nursery and no lifespan hook is
used: a crash there would leave the server serving.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import cast

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, HTTPResponseStartEvent
from quart_trio import QuartTrio
from quart_trio.asgi import TrioASGIHTTPConnection

from svc.http.asgi import STREAM
from svc.http.exchange import Exchange
from svc.http.handler import Services, Stream
from svc.http.traffic import Traffic
from svc.http.turnstile import KnownKeys


class AppConnection(TrioASGIHTTPConnection):
    """One request on its way to the exchange, in the task of the connection."""

    app: App

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        """Handle one request through the exchange: head and body are sent only when the whole response is there, those
        of a stream as they come.
        """
        status, headers, body, stream = await self.app.exchange.respond(self.scope, receive)
        if stream is not None:
            await _send_stream(send, status, headers, stream)
            return
        await send({"type": "http.response.start", "status": status, "headers": headers, "trailers": False})
        await send({"type": "http.response.body", "body": body, "more_body": False})


class App(QuartTrio):
    """The ASGI application of the service; `exchange` handles every path. `keys` as in `edge.serve`, to be shared with
    it.
    """

    asgi_http_class = AppConnection

    def __init__(self, services: Services, traffic: Traffic, keys: KnownKeys | None = None) -> None:
        super().__init__("svc", static_folder=None)
        self.exchange = Exchange(services, traffic, keys or KnownKeys())


async def _send_stream(send: ASGISendCallable, status: int, headers: list[tuple[bytes, bytes]], stream: Stream) -> None:
    """Send a stream to its end, or until this task is cancelled because nobody takes it any more; and close it."""
    try:
        start = {"type": "http.response.start", "status": status, "headers": headers, "trailers": False, STREAM: True}
        await send(cast("HTTPResponseStartEvent", start))
        async with aclosing(stream.parts) as parts:
            async for part in parts:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        stream.close()
