"""What the outbox asks of the network: one POST, and what came of it. Values and a protocol; no network here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol

TransportError = Literal[
    "timeout",
    "dns_error",
    "blocked_address",
    "connect_error",
    "tls_error",
    "connection_reset",
    "redirect",
    "http_status",
    "response_too_large",
]
"""Why an attempt failed, as attempt records say it (decisions 8.3)."""


class Attempted(NamedTuple):
    """The outcome of one POST. Without an `error` it was delivered."""

    response_code: int | None
    """`None` without a response."""
    error: TransportError | None
    duration_ms: int
    retry_after_s: int | None
    """What the response's `Retry-After` asks for, if anything."""


class Transport(Protocol):
    """Sends to addresses that may be sent to, within the time that an attempt has (decisions 8.2, 8.7)."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Attempted:
        """One attempt, ended after ten seconds at the latest. Expected failures are values, never exceptions.

        A kept connection that turns out to be dead is replaced within the attempt.
        """
        ...
