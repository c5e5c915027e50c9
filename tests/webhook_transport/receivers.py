"""Receivers on loopback over real TLS, well-behaved and hostile, and the names that lead to them.

What may live here: what stands at the other end of a delivery. The transport under test is the real one.
"""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

import httpcore
import trio
import trustme

from svc.domain.refusals import Issue
from svc.domain.webhooks.addresses import TargetPolicy
from svc.webhook_transport.connections import tls_context
from svc.webhook_transport.registration import check_target
from svc.webhook_transport.transport import WebhookTransport

NAME = "receiver.test"
LOOPBACK = (ip_network("127.0.0.0/8"),)
NOW_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z, a Thursday."""

Play = Callable[[trio.abc.Stream], Awaitable[None]]
"""What a receiver does with one accepted connection, after TLS."""


class Authority:
    """A certificate authority that the transport under test trusts."""

    def __init__(self) -> None:
        self._ca = trustme.CA()
        self.trusting = tls_context()
        self._ca.configure_trust(self.trusting)

    def server(self, *names: str, expires: dt.datetime | None = None) -> ssl.SSLContext:
        begins = None if expires is None else expires - dt.timedelta(days=1)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*names, not_before=begins, not_after=expires).configure_cert(context)
        return context


class Names:
    """A resolver whose answers are written down: one tuple for always, or a list of them for one question each."""

    def __init__(self, **answers: tuple[str, ...] | list[tuple[str, ...]]) -> None:
        self.answers: dict[str, Any] = {NAME: ("127.0.0.1",), **answers}

    async def __call__(self, host: str, /) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        known = self.answers.get(host, ())
        return known.pop(0) if isinstance(known, list) else known


class Dialled(httpcore.TrioBackend):
    """The real network, with every dial and what was read written down. Any address can lead to a port of loopback."""

    def __init__(self, *, leading_to: int | None = None) -> None:
        self.dials: list[str] = []
        self.read = 0
        """Bytes of answers, after TLS."""
        self.writes = 0
        """Pieces in which requests were written, before TLS."""
        self._port = leading_to

    async def connect_tcp(self, host: str, port: int, *arguments: Any, **named: Any) -> httpcore.AsyncNetworkStream:
        self.dials.append(host)
        if self._port is not None:
            host, port = "127.0.0.1", self._port
        return _Read(self, await super().connect_tcp(host, port, *arguments, **named))


class _Read(httpcore.AsyncNetworkStream):
    def __init__(self, backend: Dialled, stream: httpcore.AsyncNetworkStream) -> None:
        self._backend = backend
        self._stream = stream
        self.aclose = stream.aclose
        self.get_extra_info = stream.get_extra_info

    async def read(self, *arguments: Any, **named: Any) -> bytes:
        data = await self._stream.read(*arguments, **named)
        self._backend.read += len(data)
        return data

    async def write(self, *arguments: Any, **named: Any) -> None:
        self._backend.writes += 1
        await self._stream.write(*arguments, **named)

    async def start_tls(self, *arguments: Any, **named: Any) -> httpcore.AsyncNetworkStream:
        return _Read(self._backend, await self._stream.start_tls(*arguments, **named))


@asynccontextmanager
async def sending(
    authority: Authority,
    names: Callable[[str], Awaitable[tuple[str, ...]]],
    backend: httpcore.AsyncNetworkBackend | None = None,
    *,
    networks: Iterable[IPv4Network | IPv6Network] = LOOPBACK,
    deadline_s: float = 5,
) -> AsyncGenerator[WebhookTransport]:
    """A transport over the real network, unless told otherwise, that may send to loopback."""
    sender = WebhookTransport(
        names, TargetPolicy(tuple(networks)), authority.trusting, lambda: NOW_MS, backend=backend, deadline_s=deadline_s
    )
    try:
        yield sender
    finally:
        await sender.aclose()


async def issue_of(
    url: str,
    names: Callable[[str], Awaitable[tuple[str, ...]]],
    networks: Iterable[IPv4Network | IPv6Network] = (),
    **reach: Any,
) -> Issue | None:
    """Why the URL cannot be a target, if it cannot; `reach` as of `TargetPolicy`."""
    refusal = await check_target(url, names, TargetPolicy(tuple(networks), **reach))
    return None if refusal is None else refusal.details[0].issue


@asynccontextmanager
async def receiver(play: Play, tls: ssl.SSLContext | None) -> AsyncGenerator[int]:
    """Serves on a free port of loopback while the block runs; without `tls` it plays on the bare connection."""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(partial(trio.serve_listeners, partial(_serve, play, tls), [listener]))
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def _serve(play: Play, tls: ssl.SSLContext | None, stream: trio.SocketStream) -> None:
    chosen = stream if tls is None else trio.SSLStream(stream, tls, server_side=True, https_compatible=True)
    try:
        await play(chosen)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return  # the other side hung up, which is what it should do to most of these
    finally:
        await trio.aclose_forcefully(stream)


class Request:
    """One delivery as it arrived."""

    def __init__(self, head: bytes, body: bytes) -> None:
        line, *fields = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = line.split(" ")
        self.headers: Mapping[str, str] = {
            name.strip().lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)
        }
        self.body = body


async def read_request(stream: trio.abc.Stream) -> Request | None:
    """The next one on the connection, or `None` at its end."""
    data = b""
    while b"\r\n\r\n" not in data:
        some = await stream.receive_some(65536)
        if not some:
            return None
        data += some
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(Request(head, b"").headers.get("content-length", "0"))
    while len(body) < length:
        body += await stream.receive_some(65536)
    return Request(head, body)


class Answering:
    """Reads each request to its end and answers in order; the last answer is repeated. Remembers what arrived."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []
        self.connections = 0

    async def __call__(self, stream: trio.abc.Stream) -> None:
        self.connections += 1
        while (request := await read_request(stream)) is not None:
            self.requests.append(request)
            await stream.send_all(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])


def answer(status: str, *fields: str, body: bytes = b"") -> bytes:
    lines = [f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


OK = answer("200 OK", body=b"thanks")


async def drips_headers(stream: trio.abc.Stream) -> None:
    await read_request(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\n")
    while True:
        await stream.send_all(b"X-Slow: 1\r\n")
        await trio.sleep(0.02)


async def drips_a_body(stream: trio.abc.Stream) -> None:
    await read_request(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        await stream.send_all(b"x")
        await trio.sleep(0.02)


async def reads_and_never_answers(stream: trio.abc.Stream) -> None:
    await read_request(stream)
    await trio.sleep_forever()


async def never_reads(stream: trio.abc.Stream) -> None:
    await trio.sleep_forever()


async def sends_a_megabyte_of_headers(stream: trio.abc.Stream) -> None:
    await read_request(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\n" + b"X-Large: " + b"y" * 1_000_000)
    await trio.sleep_forever()


async def sends_many_headers(stream: trio.abc.Stream) -> None:
    await read_request(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\n" + b"X-Many: y\r\n" * 100_000 + b"\r\n")
    await trio.sleep_forever()


async def sends_interim_answers_for_ever(stream: trio.abc.Stream) -> None:
    await read_request(stream)
    while True:
        await stream.send_all(b"HTTP/1.1 100 Continue\r\n\r\n")


async def sends_a_body_without_end(stream: trio.abc.Stream) -> None:
    await read_request(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await stream.send_all(b"1000\r\n" + b"z" * 4096 + b"\r\n")
