"""`GET /metrics`, an ASGI application of its own: it runs under an edge of its own, at an address of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope

PATH = "/metrics"

MEDIA_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

Expose = Callable[[], Awaitable[bytes]]
"""All values now, in that format."""


class Scrape:
    """Serves `GET` and `HEAD` of one path; any other path is 404, any other method 405."""

    def __init__(self, expose: Expose) -> None:
        self._expose = expose

    async def __call__(self, scope: Scope, _: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        """Respond to one request (ASGI); the values are collected only for a `GET` or `HEAD` of `PATH`."""
        assert scope["type"] == "http", "the edge speaks nothing else"
        status, headers, body = 200, [(b"cache-control", b"no-store")], b""
        if scope["path"] != PATH:
            status = 404
        elif scope["method"] not in ("GET", "HEAD"):
            status = 405
            headers.append((b"allow", b"GET, HEAD"))
        else:
            body = await self._expose()
            headers.append((b"content-type", MEDIA_TYPE))
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": status, "headers": headers, "trailers": False})
        await send({"type": "http.response.body", "body": body, "more_body": False})
