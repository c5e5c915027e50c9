"""Connections to receivers: dialed by address, secured by name, metered, and kept for a while.

What may live here: the one place that asks for sockets to receivers, the table of those that wait to be used again, and
the form of HTTP/1.1 messages. A response is plain where there is one way to read it; h11 reads all others. It took 300
us of CPU an exchange, of which a plain response needs 10.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import certifi
import h11
import httpcore
import trio

from svc.features.webhooks.addresses import Target
from svc.features.webhooks.queues import ENDPOINT_SLOTS
from svc.kernel.net.addresses import Address

_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEAD = re.compile(rf"POST /[!-~]* HTTP/1\.1\r\n(?:{_NAME}: [!-~](?:[ -~]*[!-~])?\r\n)+\r\n")
_PLAIN = re.compile(rf"HTTP/1\.1 (20[0124])(?: [ -~]*)?\r\n((?:{_NAME}:[\t -~]*\r\n)*)\r\n".encode())
_FRAMING = re.compile(
    rb"^(content-length|transfer-encoding|connection|upgrade):([\t -~]*)\r$", re.IGNORECASE | re.MULTILINE
)
_LENGTH = re.compile(rb"[0-9]{1,9}")
_NO_CONTENT = 204


class ReceivedResponse(NamedTuple):
    """A 200, 201, 202 or 204 whose length is known, after which the connection stays open."""

    status: int
    head_bytes: int
    body_bytes: int


def write_request(path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return the bytes of a POST. Raises `ValueError` for a path or headers that would not make exactly one request."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    head = f"POST {path} HTTP/1.1\r\n{lines}\r\n"
    if _HEAD.fullmatch(head) is None or head.count("\n") != len(headers) + 2:
        raise ValueError("a header or the path has characters that HTTP does not allow there")
    return head.encode("ascii") + body


def read_response(data: bytes) -> ReceivedResponse | None:
    """Parse the response at the beginning of `data` if its head is complete and it is a plain response; otherwise
    return `None`, and h11 may still read it. The cost is proportional to the length of the text, whatever it contains.
    A response is not plain if it has no length or two, is chunked, says `close`, or has an unusual line.
    """
    found = _PLAIN.match(data)
    if found is None:
        return None
    status, length = int(found[1]), None
    for name, value in _FRAMING.findall(found[2]):
        said = value.strip(b"\t ").lower()
        match name.lower():
            case b"content-length" if length is None and _LENGTH.fullmatch(said):
                length = int(said)
            case b"connection" if said == b"keep-alive":
                pass
            case _:
                return None
    if status == _NO_CONTENT:
        return None if length else ReceivedResponse(status, found.end(), 0)
    return None if length is None else ReceivedResponse(status, found.end(), length)


MAX_BODY_BYTES = 16 * 1024
"""Of a response's body, framing included, that are read (decisions 8.2)."""
MAX_HEAD_BYTES = 64 * 1024
"""Of a response up to the end of its headers, interim responses included (decisions 8.3)."""
MAX_DIALS = 3
"""Addresses of one name that are tried in one attempt."""
DIAL_LIMIT_S = 2
"""For an address that is not the last to try: an unreachable IPv6 must leave time for IPv4."""
IDLE_LIMIT_S = 60
IDLE_PER_ENDPOINT = ENDPOINT_SLOTS
"""Connections kept for one URL and address. What comes of several deliveries is written down in one commit and the next
ones begin together, so that fewer would cost a handshake for most of them."""
IDLE_IN_ALL = 256


class ResponseTooLargeError(Exception):
    """The head of a response has more than `MAX_HEAD_BYTES`."""


class ConnectionKey(NamedTuple):
    """The condition for reusing a connection: the same URL at the same address."""

    url: str
    address: Address


class WebhookResponse(NamedTuple):
    """A response up to the end of its headers, whose names are in lower case."""

    status: int
    headers: list[tuple[bytes, bytes]]


class PooledConnection:
    """One HTTP/1.1 connection to one address, for one URL. A plain response is read here; any other by h11, from its
    first byte.

    `ask` raises `ResponseTooLargeError`, `httpcore.NetworkError`, of which `TlsReadError` is one, and
    `h11.RemoteProtocolError` for what is not HTTP or ends too soon. After any of these it can only be closed.
    """

    def __init__(self, key: ConnectionKey, target: Target, stream: httpcore.AsyncNetworkStream) -> None:
        self.key = key
        self.is_idle = False
        """Whether another exchange can follow: the last response was read to its end and nobody said `close`."""
        self.received = 0
        """Bytes of the response in hand, as they came."""
        self._target = target
        self._stream = stream
        self._http: h11.Connection | None = None
        """Reads the response in hand, where that is not a plain one."""
        self._left = 0
        """Bytes of a plain response's body that have not arrived; fewer than none = something came behind it."""
        self._budget = 0
        """Bytes of the response's body that may still be read."""

    @property
    def was_ended(self) -> bool:
        """Return whether something came while it was idle: the end, or a response to nothing, such as a 408."""
        return bool(self._stream.get_extra_info("is_readable"))

    async def ask(self, body: bytes, headers: Mapping[str, str]) -> WebhookResponse:
        """Send the request in one piece, and read up to the end of the response's headers. Interim (1xx) responses are
        skipped. Raises as the class says, and `ValueError` for headers that would end before their line does.
        """
        self.is_idle, self.received, self._http = False, 0, None
        fields = {"Host": self._target.authority, "Content-Length": str(len(body)), **headers}
        request = write_request(self._target.path, fields, body)
        with suppress(httpcore.WriteError):  # it may have responded before it hung up
            await self._stream.write(request)
        data = await self._some_of_head()
        plain = read_response(data)
        if plain is not None:
            self._left = plain.head_bytes + plain.body_bytes - len(data)
            self._budget = MAX_BODY_BYTES - (len(data) - plain.head_bytes)
            return WebhookResponse(plain.status, [])
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        for event in (h11.Request(method="POST", target="/", headers=[("Host", "")]), h11.EndOfMessage()):
            self._http.send(event)
        self._http.receive_data(data)
        while not isinstance(event := self._http.next_event(), h11.Response):
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._some_of_head())
        self._budget = MAX_BODY_BYTES - len(self._http.trailing_data[0])
        return WebhookResponse(event.status_code, list(event.headers))

    async def read_body(self) -> None:
        """Read and discard the rest of the response. The connection is idle afterwards if it can be reused; it cannot
        if the body has more than `MAX_BODY_BYTES` or ends too soon, which is not a failure.
        """
        with suppress(httpcore.NetworkError, h11.RemoteProtocolError):
            ended, surplus = await (self._rest_of_plain() if self._http is None else self._rest_by_h11(self._http))
            self.is_idle = ended and not self._has_surplus(surplus)

    async def _rest_of_plain(self) -> tuple[bool, bytes]:
        """Return (whether the response is complete, no bytes after it)."""
        while 0 < self._left <= self._budget:
            data = await self._some_of_body()
            if not data:
                return False, b""
            self._left -= len(data)
        return not self._left, b""

    async def _rest_by_h11(self, http: h11.Connection) -> tuple[bool, bytes]:
        """Return (whether the response is complete and another exchange can follow, bytes received after it)."""
        while not isinstance(event := http.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                if not self._budget:
                    return False, b""
                http.receive_data(await self._some_of_body())
        return http.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}, http.trailing_data[0]

    async def _some_of_head(self) -> bytes:
        """Read a piece of the head, bounded so that it brings no more of a body than may be read."""
        left = min(MAX_HEAD_BYTES - self.received, MAX_BODY_BYTES)
        if left <= 0:
            raise ResponseTooLargeError
        data = await self._stream.read(left)
        self.received += len(data)
        return data

    async def _some_of_body(self) -> bytes:
        data = await self._stream.read(self._budget)
        self.received += len(data)
        self._budget -= len(data)
        return data

    def _has_surplus(self, surplus: bytes) -> bool:
        """Return whether more than the response has arrived, in its last piece or in TLS records read with it. It would
        be taken for the response to the next request, which may not even have been sent.
        """
        tls = self._stream.get_extra_info("ssl_object")
        if surplus or tls is None:
            return bool(surplus)
        try:
            tls.read(1)  # of what is in memory: the socket is not asked
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError:
            return True
        return True

    async def aclose(self) -> None:
        """Close the socket, also inside a cancelled scope; the connection is not idle any more."""
        self.is_idle = False
        with trio.CancelScope(shield=True):
            await self._stream.aclose()


class Dialer:
    """Opens connections to checked addresses, with TLS for the host's name. `backend` opens the sockets."""

    def __init__(self, tls: ssl.SSLContext, backend: httpcore.AsyncNetworkBackend) -> None:
        self._tls = tls
        self._backend = backend

    async def connect(
        self, url: str, target: Target, addresses: Sequence[Address]
    ) -> PooledConnection | Literal["connect_error", "tls_error"]:
        """Connect to the first of the addresses that accepts, at most `MAX_DIALS` of them. The certificate
        must name the host, whatever the address is.
        """
        dialed = await self._dial(addresses[:MAX_DIALS], target.port)
        if dialed is None:
            return "connect_error"
        address, plain = dialed
        try:
            secured = await plain.start_tls(self._tls, server_hostname=target.host)
        except httpcore.ConnectError:
            return "tls_error"
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await plain.aclose()
            raise
        return PooledConnection(ConnectionKey(url, address), target, secured)

    async def _dial(
        self, addresses: Sequence[Address], port: int
    ) -> tuple[Address, httpcore.AsyncNetworkStream] | None:
        for left, address in zip(range(len(addresses) - 1, -1, -1), addresses, strict=True):
            with trio.move_on_after(DIAL_LIMIT_S if left else float("inf")):
                try:
                    return address, await self._backend.connect_tcp(str(address), port)
                except httpcore.ConnectError:
                    continue
        return None


class IdleConnections:
    """Connections that may be reused for the next delivery to the same URL at the same address, oldest first."""

    def __init__(self) -> None:
        self._since: dict[PooledConnection, float] = {}

    async def take(self, url: str, addresses: Collection[Address]) -> PooledConnection | None:
        """Remove and return the connection that was used last for this URL and one of the addresses; `None` without. It
        may have died already, which shows with the first read. Closes those that have been idle too long.
        """
        await self._close_expired()
        ended: list[PooledConnection] = []
        taken = None
        for kept in reversed(self._since):  # those behind the one that is taken are not asked: each is a system call
            if kept.key.url != url or kept.key.address not in addresses:
                continue
            if not kept.was_ended:
                taken = kept
                break
            ended.append(kept)
        if taken is not None:
            del self._since[taken]  # before other tasks run
        for connection in ended:
            await self._close(connection)
        return taken

    async def keep(self, connection: PooledConnection) -> None:
        """Keep an idle connection; closes the oldest beyond `IDLE_PER_ENDPOINT` of its kind or `IDLE_IN_ALL`."""
        # Kept before another is closed: closing lets other tasks run, which must count this one.
        self._since[connection] = trio.current_time()
        same = [other for other in self._since if other.key == connection.key]
        if len(same) > IDLE_PER_ENDPOINT:
            await self._close(same[0])
        elif len(self._since) > IDLE_IN_ALL:
            await self._close(next(iter(self._since)))

    async def aclose(self) -> None:
        """Close all idle connections."""
        while self._since:
            await self._close(next(iter(self._since)))

    async def _close_expired(self) -> None:
        born_before = trio.current_time() - IDLE_LIMIT_S
        while self._since:
            oldest, since = next(iter(self._since.items()))
            if since > born_before:
                return
            await self._close(oldest)

    async def _close(self, connection: PooledConnection) -> None:
        if self._since.pop(connection, None) is not None:  # else another task was here meanwhile
            await connection.aclose()


def tls_context(ca_file: Path | None = None) -> ssl.SSLContext:
    """Return a context that trusts the authorities of `certifi`, the same on every machine, and those of a PEM file.
    TLS 1.2 and later.

    Raises `OSError` when the file cannot be read, or holds no certificate (`ssl.SSLError` is an `OSError`).
    """
    context = ssl.create_default_context(cafile=certifi.where())
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    context.set_alpn_protocols(["http/1.1"])
    return context


usual_tls_context = cache(tls_context)
"""Of the usual authorities alone, shared by all of a process: reading them takes 30 ms."""
