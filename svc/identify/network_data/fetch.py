"""One GET over TLS, bounded in size and time: what `svc data update` asks publishers and mirrors for.

What may live here: the request. It is sent because an operator runs a command; nothing that serves visitors imports
this module.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import trio

import svc
from svc.kernel.values.errors import OperatorError

LIMIT_S = 300.0
"""Time for one file: connections, redirects and all of its bytes."""
IDLE_LIMIT_S = 30.0
"""Time without a byte."""
MAX_REDIRECTS = 5

_REDIRECTS = (301, 302, 303, 307, 308)
_GONE = (404, 410)
_FAILURES = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.ProxyError,
)


class FetchError(OperatorError):
    """The file could not be fetched; the message names the URL and why."""

    def __init__(self, url: str, why: str, *, gone: bool = False) -> None:
        super().__init__(f"{url}: {why}")
        self.gone = gone
        """The server says that there is no such file."""


class Fetched(NamedTuple):
    """A file as a server has it."""

    content: bytes
    modified: datetime | None
    """By its `Last-Modified`."""


def check_url(url: str) -> str:
    """Return the URL, if it may be fetched from. Raises `FetchError`."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # reading it raises `ValueError` if it is wrong
    except ValueError as error:
        raise FetchError(url, f"is not a URL: {error}") from error
    if not url.isascii():
        raise FetchError(url, "is not a URL: it has characters that are not ASCII")
    if parts.scheme != "https" or not parts.hostname:
        raise FetchError(url, "is not an https:// URL; this data decides who is flagged, so it must come over TLS")
    if parts.username is not None or parts.password is not None:
        raise FetchError(f"https://{parts.hostname}", "leave user name and password out of the URL")
    return url


def fetch(url: str, tls: ssl.SSLContext, most_bytes: int, limit_s: float = LIMIT_S) -> Fetched:
    """Return the file at an https URL, of at most `most_bytes` bytes. Redirects are followed to https only, and the
    proxy of the variable HTTPS_PROXY is used. Raises `FetchError`.
    """
    try:
        return trio.run(_within, url, tls, most_bytes, limit_s)
    except trio.TooSlowError as error:
        raise FetchError(url, f"not fetched within {limit_s:g} s") from error
    except _FAILURES as error:
        raise FetchError(url, f"cannot be fetched: {_cause(error)}") from error


async def _within(url: str, tls: ssl.SSLContext, most_bytes: int, limit_s: float) -> Fetched:
    with trio.fail_after(limit_s):
        asked = url
        for _ in range(MAX_REDIRECTS + 1):
            found = await _get(asked, tls, most_bytes)
            if isinstance(found, Fetched):
                return found
            asked = check_url(urljoin(asked, found))
    raise FetchError(url, f"redirects more than {MAX_REDIRECTS} times")


async def _get(url: str, tls: ssl.SSLContext, most_bytes: int) -> Fetched | str:
    """Return the file, or the URL to which the response redirects."""
    headers = [("User-Agent", f"svc/{svc.__version__}"), ("Accept-Encoding", "identity")]
    limits = dict.fromkeys(("connect", "read", "write", "pool"), IDLE_LIMIT_S)
    async with (
        _pool(check_url(url), tls) as pool,
        pool.stream("GET", url, headers=headers, extensions={"timeout": limits}) as response,
    ):
        fields = {name.lower(): value.decode("latin-1") for name, value in response.headers}
        if response.status in _REDIRECTS and b"location" in fields:
            return fields[b"location"]
        if response.status != 200:
            raise FetchError(url, f"the server said {response.status}", gone=response.status in _GONE)
        if fields.get(b"content-encoding", "identity") != "identity":
            raise FetchError(url, "the server compressed what was asked for uncompressed")
        content = await bounded_content(response, most_bytes)
        if content is None:
            raise FetchError(url, f"is larger than {most_bytes:,} bytes")
        return Fetched(content, _last_modified(fields.get(b"last-modified")))


async def bounded_content(response: httpcore.Response, most_bytes: int) -> bytes | None:
    """Return the content of a response; `None` if it has more than `most_bytes`."""
    content = bytearray()
    with trio.CancelScope() as reading:  # leaving the loop would leave the generators of httpcore unfinished
        async for block in response.aiter_stream():
            content += block
            if len(content) > most_bytes:
                reading.cancel()
    return bytes(content) if len(content) <= most_bytes else None


def _pool(url: str, tls: ssl.SSLContext) -> httpcore.AsyncConnectionPool:
    proxy = getproxies().get("https")
    if proxy is None or proxy_bypass(urlsplit(url).hostname or ""):
        return httpcore.AsyncConnectionPool(ssl_context=tls)
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        raise FetchError(url, "HTTPS_PROXY names no http:// or https:// proxy")
    return httpcore.AsyncHTTPProxy(proxy_url=proxy, ssl_context=tls)


def _cause(error: BaseException) -> str:
    """Return the text of the deepest error that has one: httpcore's own are often empty."""
    said = type(error).__name__
    found: BaseException | None = error
    while found is not None:
        said = (found.message if isinstance(found, BaseExceptionGroup) else str(found)) or said
        found = found.__cause__ or found.__context__
    return said


def _last_modified(header: str | None) -> datetime | None:
    if header is None:
        return None
    try:
        found = parsedate_to_datetime(header)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
