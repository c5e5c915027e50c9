"""One attempt: resolve, judge, dial or reuse, send, read the head of the response and forget the rest.

What may live here: the order of these steps, the one deadline over all of them, what each failure is called, and what
is checked of a target before an endpoint with it is stored.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache
from math import ceil

import h11
import httpcore
import trio

from svc.features.webhooks.addresses import MAX_URL_LENGTH, TargetPolicy, addresses_to_dial, may_use, read_target
from svc.features.webhooks.records import Attempted, TransportError
from svc.features.webhooks.transport.connections import Dialer, IdleConnections, PooledConnection, ResponseTooLargeError
from svc.features.webhooks.transport.resolver import Resolver
from svc.features.webhooks.transport.sockets import SocketBackend, TlsReadError
from svc.kernel.values.refusals import Refusal, invalid

DEADLINE_S = 10
"""For a whole attempt (decisions 8.2): name, connection, TLS, head of the response."""


_read_target = lru_cache(maxsize=1024)(read_target)


class WebhookTransport:
    """Implements `svc.features.webhooks.records.Transport` over the network.

    `reach` says which addresses and ports may be dialed. `now_ms` is Unix time, for dates in `Retry-After`. `backend`
    opens sockets by address; it never sees a name.
    """

    def __init__(
        self,
        resolver: Resolver,
        reach: TargetPolicy,
        tls: ssl.SSLContext,
        now_ms: Callable[[], int],
        *,
        backend: httpcore.AsyncNetworkBackend | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._resolver = resolver
        self._reach = reach
        self._dialer = Dialer(tls, backend or SocketBackend())
        self._idle = IdleConnections()
        self._now_ms = now_ms
        self._deadline_s = deadline_s

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], organization: int) -> Attempted:
        """Make one attempt within the deadline. Failures of name, network or receiver are values (decisions 8.3)."""
        started = trio.current_time()
        response = _Response()
        error: TransportError | None = "timeout"
        with trio.move_on_after(self._deadline_s):
            error = await self._attempt(url, body, headers, organization, response)
        if response.is_success:  # whatever its body did
            error = None
        duration_ms = round((trio.current_time() - started) * 1000)
        return Attempted(response.status, error, duration_ms, response.retry_after_s)

    async def aclose(self) -> None:
        """Close the idle connections. Attempts in progress must be cancelled by their callers."""
        await self._idle.aclose()

    async def _attempt(
        self, url: str, body: bytes, headers: Mapping[str, str], organization: int, response: _Response
    ) -> TransportError | None:
        target = _read_target(url)
        if target is None or not may_use(target.port, self._reach):  # stored when it was taken
            return "blocked_address"
        answers = await self._resolver(target.host, organization)
        if not answers:
            return "dns_error"
        addresses = addresses_to_dial(answers, self._reach)
        if addresses is None:
            return "blocked_address"
        kept = await self._idle.take(url, addresses)
        if kept is not None:
            error = await self._exchange(kept, body, headers, response)
            if error not in ("connection_reset", "tls_error") or kept.received:
                return error
            # It had died while it waited: the receiver saw nothing of this attempt.
        opened = await self._dialer.connect(url, target, addresses)
        if isinstance(opened, str):
            return opened
        return await self._exchange(opened, body, headers, response)

    async def _exchange(
        self, connection: PooledConnection, body: bytes, headers: Mapping[str, str], response: _Response
    ) -> TransportError | None:
        try:
            received = await connection.ask(body, headers)
            response.status = received.status
            if not response.is_success:
                response.retry_after_s = retry_after_s(received.headers, self._now_ms())
                return "redirect" if 300 <= received.status < 400 else "http_status"
            await connection.read_body()
        except ResponseTooLargeError:
            return "response_too_large"
        except TlsReadError:
            return "tls_error"
        except (httpcore.NetworkError, h11.RemoteProtocolError):
            return "connection_reset"
        finally:
            if connection.is_idle:
                await self._idle.keep(connection)
            else:
                await connection.aclose()
        return None


class _Response:
    """What is known of the response so far: a deadline may cut it short at any point."""

    status: int | None = None
    retry_after_s: int | None = None

    @property
    def is_success(self) -> bool:
        """Return whether the head had `2xx`; nothing after it takes that back (decisions 8.2)."""
        return self.status is not None and 200 <= self.status < 300


_SECONDS = re.compile(rb"[0-9]{1,9}")


def retry_after_s(headers: list[tuple[bytes, bytes]], now_ms: int) -> int | None:
    """Return the seconds of `Retry-After`, a number or a date (RFC 9110, 10.2.3); `None` if missing or neither."""
    value = next((value.strip() for name, value in headers if name.lower() == b"retry-after"), None)
    if value is None:
        return None
    if _SECONDS.fullmatch(value):
        return int(value)
    try:
        at = parsedate_to_datetime(value.decode("ascii"))
    except (ValueError, OverflowError):
        return None
    if at.tzinfo is None:  # "-0000": UTC, from somebody who does not say where he is
        at = at.replace(tzinfo=UTC)
    return max(0, ceil(at.timestamp() - now_ms / 1000))


_NOT_HTTPS = (
    "A webhook URL begins with https://. To receive webhooks on your own machine, run `svc webhook listen --forward-to "
    "http://localhost:3000/hook` beside `svc dev`."
)
_NO_TARGET = (
    f"The URL is not valid. Send https://host[:port]/path of at most {MAX_URL_LENGTH} characters, without user "
    "information, fragment and spaces."
)
_UNRESOLVED = "The host of the URL does not resolve. Check its spelling and its DNS records."
_PORT = (
    "The port of the URL is not allowed. Use 443 or one above 1023, or ask the operator for another one "
    "(webhook_allow_ports)."
)
_NOT_PUBLIC = (
    "The host of the URL resolves to an address that is not public, or is this service's own. The operator can open "
    "private networks (webhook_allow_networks)."
)


async def check_target(url: str, organization: int, resolver: Resolver, reach: TargetPolicy) -> Refusal | None:
    """Return why the URL cannot be a target of the organization (its number), and what to do; `None` if it can.
    `invalid_url`: not https, user info, a fragment, over 2,048 characters, a port that is not allowed, or a host that
    does not resolve. `not_public_address`: one of the host's addresses is one that webhooks may not use.
    """
    target = read_target(url)
    if target is None:
        why = _NO_TARGET if url[:8].lower() == "https://" else _NOT_HTTPS
        return invalid("url", "invalid_url", explanation=why)
    if not may_use(target.port, reach):
        return invalid("url", "invalid_url", explanation=_PORT)
    answers = await resolver(target.host, organization)
    if not answers:
        return invalid("url", "invalid_url", explanation=_UNRESOLVED)
    if not addresses_to_dial(answers, reach):
        return invalid("url", "not_public_address", explanation=_NOT_PUBLIC)
    return None
