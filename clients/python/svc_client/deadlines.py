"""A time limit for all that a blocking client does on the network: httpx has one for each read alone, so that a server
which drips its response holds a call for as long as it likes.

Looking up a name is left to the system, which has limits of its own.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpcore
import httpx

_ENDS_S: ContextVar[float | None] = ContextVar("ends_s", default=None)
"""When the current attempt ends, by `time.monotonic`."""


@contextmanager
def ending_at(ends_s: float) -> Generator[None]:
    """Connections of clients that `with_deadlines` made read and write until then within."""
    token = _ENDS_S.set(ends_s)
    try:
        yield
    finally:
        _ENDS_S.reset(token)


def with_deadlines(http: httpx.Client) -> httpx.Client:
    """The client, whose connections end with their attempt."""
    # httpx takes no backend. These names are private; where they are others, each read has its own limit.
    mounted: dict[Any, Any] = getattr(http, "_mounts", {})
    for transport in (getattr(http, "_transport", None), *mounted.values()):
        pool = getattr(transport, "_pool", None)
        backend = getattr(pool, "_network_backend", None)
        if isinstance(backend, httpcore.NetworkBackend):
            setattr(pool, "_network_backend", _Backend(backend))  # noqa: B010  as above
    return http


def _left(timeout: float | None, late: type[httpcore.TimeoutException]) -> float | None:
    """Seconds until the limit of an operation or of the attempt, whichever is first."""
    ends_s = _ENDS_S.get()
    if ends_s is None:
        return timeout
    left = ends_s - time.monotonic()
    if left <= 0:
        raise late("timed out")
    return left if timeout is None else min(left, timeout)


class _Backend(httpcore.NetworkBackend):
    def __init__(self, inner: httpcore.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Each address of the host in turn; they share what is left, so that a silent one leaves time for others."""
        options = None if socket_options is None else list(socket_options)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        failure: httpcore.ConnectError | httpcore.ConnectTimeout = httpcore.ConnectError("the name has no address")
        for number, (*_, address) in enumerate(found):
            left = _left(timeout, httpcore.ConnectTimeout)
            share = None if left is None else left / (len(found) - number)
            try:
                return _Stream(self._inner.connect_tcp(str(address[0]), port, share, local_address, options))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.connect_unix_socket(path, _left(timeout, httpcore.ConnectTimeout), socket_options))

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
