"""The Quart application: a thin coat around the exchange.

Quart reads requests and writes answers; routing, errors and CORS come from the table of routes, so its own dispatch,
signals and sessions are left out (docs/adr/0004). No actor lives in its nursery and no lifespan hook is used: a crash
there would leave the server serving.
"""

from __future__ import annotations

from quart import Request, Response
from quart_trio import QuartTrio

from svc.http.body import MAX_WIRE_BYTES
from svc.http.edge import TrioConnection
from svc.http.endpoint import Services
from svc.http.exchange import Exchange


class App(QuartTrio):
    """ASGI application of the service."""

    asgi_http_class = TrioConnection

    def __init__(self, services: Services) -> None:
        super().__init__("svc", static_folder=None)
        self.config["MAX_CONTENT_LENGTH"] = MAX_WIRE_BYTES
        self.config["BODY_TIMEOUT"] = None  # the exchange answers 408 itself
        self.config["RESPONSE_TIMEOUT"] = None  # the edge bounds each write
        self._exchange = Exchange(services)

    async def handle_request(self, request: Request) -> Response:
        return await self._exchange.answer(request)
