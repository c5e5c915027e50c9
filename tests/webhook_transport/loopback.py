"""The real transport on its way to loopback: certificates, names, and the network with every dial written down.

What stands at the other end is in `tests.support.receivers`.
"""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

import httpcore
import trio
import trustme

from svc.features.webhooks.addresses import TargetPolicy
from svc.features.webhooks.transport.connections import tls_context
from svc.features.webhooks.transport.sockets import SocketBackend
from svc.features.webhooks.transport.transport import WebhookTransport, check_target
from svc.kernel.values.refusals import Issue

NAME = "receiver.test"
LOOPBACK = (ip_network("127.0.0.0/8"),)
NOW_MS = 1_767_225_600_000
HANG_S = 60
"""Nothing on loopback takes so long: it ends a test that would else wait for ever."""
"""2026-01-01T00:00:00Z, a Thursday."""


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

    async def __call__(self, host: str, organization: int, /) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        known = self.answers.get(host, ())
        return known.pop(0) if isinstance(known, list) else known


class Dialed(SocketBackend):
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
    def __init__(self, backend: Dialed, stream: httpcore.AsyncNetworkStream) -> None:
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
    deadline_s: float = HANG_S / 2,
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
    refusal = await check_target(url, 1, names, TargetPolicy(tuple(networks), **reach))
    return None if refusal is None else refusal.details[0].issue
