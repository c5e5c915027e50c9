"""A receiver of webhooks on this machine: HTTP/1.1, one POST after another, over TLS where it is given a certificate.

What may live here: what `svc webhook listen` and its forwarding have in common.
"""

from __future__ import annotations

import hmac
import ssl
from abc import ABC, abstractmethod
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal

from svc.world import World

TOLERANCE_S = 300
"""Between a delivery's timestamp and the receiver's clock (decisions 8.1)."""

SignatureVerdict = Literal["valid", "not signed", "wrong signature", "too old or too new"]


def verify_delivery(
    secrets: Sequence[str], signature: str | None, at: str | None, body: bytes, now_s: int
) -> SignatureVerdict:
    """Whether a delivery is authentic: signed with one of the secrets, and its timestamp within five minutes of `now_s`
    (decisions 8.1). `signature` and `at` are the headers, `None` where they are missing.
    """
    if signature is None or at is None or not is_count(at):
        return "not signed"
    signed = at.encode() + b"." + body
    given = [part.strip().encode(errors="replace") for part in signature.split(",")]
    expected = [b"sha256=" + hmac.digest(secret.encode(), signed, "sha256").hex().encode() for secret in secrets]
    if not any(hmac.compare_digest(one, other) for one in given for other in expected):
        return "wrong signature"
    return "valid" if abs(now_s - int(at)) <= TOLERANCE_S else "too old or too new"


def is_count(text: str) -> bool:
    """Whether a header is a number of at most twelve ASCII digits."""
    return text.isascii() and text.isdecimal() and len(text) <= 12


MAX_BODY_BYTES = 4 * 1024 * 1024
SILENCE_S = 75
"""After which a connection is closed: somewhat more than the service keeps one."""


class WebhookReceiver(ThreadingHTTPServer):
    """Listens at `address`; each connection has a thread."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[DeliveryHandler], secrets: Sequence[str] = ()) -> None:
        self.secrets = secrets
        self.world = World.real()
        super().__init__(address, handler)

    def secure(self, certificate: Path, key: Path) -> None:
        """Speak TLS from now on, with these PEM files. Raises `OSError` (`ssl.SSLError`) for files that are none."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        # Each handshake in its connection's own thread: else one silent client would stop the others.
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)


class DeliveryHandler(BaseHTTPRequestHandler, ABC):
    """One connection. `receive` says what becomes of a delivery."""

    protocol_version = "HTTP/1.1"
    timeout = SILENCE_S
    server: WebhookReceiver  # pyright: ignore[reportIncompatibleVariableOverride]  made for no other

    def do_POST(self) -> None:
        """Read one delivery, hand it to `receive`, and respond with the status that this returns; with 413, and the end
        of the connection, where no length of at most `MAX_BODY_BYTES` is stated.
        """
        length = self.headers.get("content-length", "")
        if not is_count(length) or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            self._respond(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        body = self.rfile.read(int(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._respond(self.receive(headers, body, self.server.world.now_ms()))

    @abstractmethod
    def receive(self, headers: dict[str, str], body: bytes, now_ms: int) -> int:
        """The status of the response to a delivery that arrived at `now_ms`. Names of `headers` are in lower case."""
        ...

    def verdict(self, headers: dict[str, str], body: bytes, now_ms: int) -> SignatureVerdict:
        """Whether the delivery, arrived at `now_ms`, is signed with one of the server's secrets (`verify_delivery`)."""
        at, signature = headers.get("x-svc-timestamp"), headers.get("x-svc-signature")
        return verify_delivery(self.server.secrets, signature, at, body, now_ms // 1000)

    def _respond(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  http.server's name for it
        """Subclasses print what there is to say."""
