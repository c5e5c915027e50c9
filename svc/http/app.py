"""The ASGI application: a `QuartTrio` whose requests are all answered by the exchange.

Quart's own request, dispatch and response cost about as much as this service's whole work on a request, so every path,
known or not, is answered from ASGI messages (docs/adr/0004). Pages that need Quart can be handed to
`TrioConnection.__call__`. No actor lives in Quart's nursery and no lifespan hook is used: a crash there would leave the
server serving.
"""

from __future__ import annotations

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable
from quart_trio import QuartTrio

from svc.http.edge import TrioConnection
from svc.http.endpoint import Services
from svc.http.exchange import Exchange
from svc.http.traffic import Traffic
from svc.http.turnstile import KnownKeys


class AppConnection(TrioConnection):
    """One request on its way to the exchange, in the task of the connection."""

    app: App

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        """Answer one request through the exchange: head and body are sent only when the whole response is there."""
        status, headers, body = await self.app.exchange.answer(self.scope, receive)
        await send({"type": "http.response.start", "status": status, "headers": headers, "trailers": False})
        await send({"type": "http.response.body", "body": body, "more_body": False})


class App(QuartTrio):
    """The ASGI application of the service; `exchange` answers every path. `keys` as in `edge.serve`, to be shared with
    it.
    """

    asgi_http_class = AppConnection

    def __init__(self, services: Services, traffic: Traffic, keys: KnownKeys | None = None) -> None:
        super().__init__("svc", static_folder=None)
        self.exchange = Exchange(services, traffic, keys or KnownKeys())
