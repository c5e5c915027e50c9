"""The Quart application: what the table of routes holds goes straight to the exchange, the rest is Quart's.

Quart's own request, dispatch and response cost about as much as this service's whole work on a request, so routes of
the table are answered from ASGI messages (docs/adr/0004). Paths that the table does not know are Quart's to answer, and
whatever it answers them with is turned into the error body. No actor lives in its nursery and no lifespan hook is used:
a crash there would leave the server serving.
"""

from __future__ import annotations

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable
from quart import Response
from quart_trio import QuartTrio
from werkzeug.datastructures import Headers
from werkzeug.exceptions import HTTPException

from svc.http.edge import TrioConnection
from svc.http.endpoint import Services
from svc.http.exchange import Exchange
from svc.http.traffic import Traffic
from svc.http.turnstile import KnownKeys


class AppConnection(TrioConnection):
    """One request, in the task that the edge runs it in."""

    app: App

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        found = self.app.exchange.find(self.scope["raw_path"])
        if found is None:
            await super().__call__(receive, send)
            return
        status, headers, body = await self.app.exchange.answer(found, self.scope, receive)
        await send({"type": "http.response.start", "status": status, "headers": headers, "trailers": False})
        await send({"type": "http.response.body", "body": body, "more_body": False})


class App(QuartTrio):
    """ASGI application of the service."""

    asgi_http_class = AppConnection

    def __init__(self, services: Services, traffic: Traffic, keys: KnownKeys | None = None) -> None:
        super().__init__("svc", static_folder=None)
        self.config["BODY_TIMEOUT"] = None  # the edge bounds the request
        self.config["RESPONSE_TIMEOUT"] = None  # and each write
        self.exchange = Exchange(services, traffic, keys or KnownKeys())
        self.register_error_handler(HTTPException, self._refused)

    async def _refused(self, error: HTTPException) -> Response:
        code = "not_found" if error.code == 404 else "bad_request"
        status, headers, body = self.exchange.refuse(code)
        return Response(
            body, status=status, headers=Headers([(name.decode(), value.decode()) for name, value in headers])
        )
