"""One request to the provider: bounded in time and size, without redirects, its response a JSON object."""

from __future__ import annotations

import ssl
from typing import Any, cast
from urllib.parse import urlsplit

import httpcore
import msgspec
import trio

LIMIT_S = 5.0
"""For one request: name, connection, TLS and the whole response."""
MAX_BYTES = 256 * 1024
"""Of a response's body."""


class ProviderError(Exception):
    """The provider did not respond as it should; the message says how, for the log."""


class DeniedError(ProviderError):
    """The provider said that it does not take what it was sent."""


async def ask(
    tls: ssl.SSLContext, url: str, form: str | None = None, authorization: str | None = None
) -> dict[str, Any]:
    """Send a `GET` to the URL, or a `POST` of the form, and return the JSON object of the response. Raises
    `ProviderError`.
    """
    headers = [("Accept", "application/json"), ("Accept-Encoding", "identity"), ("User-Agent", "svc")]
    if authorization is not None:
        headers.append(("Authorization", authorization))
    if form is not None:
        headers.append(("Content-Type", "application/x-www-form-urlencoded"))
    where = urlsplit(url)._replace(query="").geturl()
    content = None if form is None else form.encode()
    try:
        with trio.fail_after(LIMIT_S):
            status, body = await _exchange(tls, "GET" if form is None else "POST", url, headers, content)
    except trio.TooSlowError as error:
        raise ProviderError(f"{where} has not responded within {LIMIT_S:g} s") from error
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError) as error:
        raise ProviderError(f"{where} cannot be asked: {type(error).__name__} {error}") from error
    if status in (400, 401, 403):
        raise DeniedError(f"{where} has responded {status}")
    if status != 200:
        raise ProviderError(f"{where} has responded {status}")
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProviderError(f"{where} has not responded with JSON") from error
    if not isinstance(answer, dict):
        raise ProviderError(f"{where} has not responded with an object")
    return cast("dict[str, Any]", answer)


async def _exchange(
    tls: ssl.SSLContext, method: str, url: str, headers: list[tuple[str, str]], content: bytes | None
) -> tuple[int, bytes]:
    body = bytearray()
    async with (
        httpcore.AsyncConnectionPool(ssl_context=tls) as pool,
        pool.stream(method, url, headers=headers, content=content) as response,
    ):
        with trio.CancelScope() as reading:  # leaving the loop would leave the generators of httpcore unfinished
            async for block in response.aiter_stream():
                body += block
                if len(body) > MAX_BYTES:
                    reading.cancel()
    if len(body) > MAX_BYTES:
        raise ProviderError(f"the response to {method} has more than {MAX_BYTES:,} bytes")
    return response.status, bytes(body)
