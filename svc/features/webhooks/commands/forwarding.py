"""`svc webhook listen --forward-to`: webhooks of a running `svc dev`, forwarded to an application on this machine.

`svc dev` trusts the certificate in DATA/webhook-listen and may reach loopback addresses. So a receiver here registers
itself over the management API as any endpoint is registered: what the application gets is signed, retried and logged
as in production.

What may live here: the receiver, HTTP/1.1 and one POST after another, over TLS where it is given a certificate, which
`svc webhook listen` uses without forwarding, too; its certificate; the check of signatures; and forwarding.
"""

from __future__ import annotations

import datetime as dt
import hmac
import http.client
import json
import signal
import ssl
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import SplitResult, urlsplit

import click
import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from svc.command.local_service import DevService
from svc.command.output import CommandError, has_colors, readable
from svc.features.webhooks.records import EVENT_TYPES, LIVE_ONLY
from svc.kernel.store.files import durable_files
from svc.kernel.values.timestamps import timestamp, utc
from svc.world import World, elapsed_s

CERTIFICATE_DAYS = 365


def loopback_certificate(directory: Path, host: str, now_ms: int) -> tuple[Path, Path]:
    """Return files of a self-signed certificate for this machine's names, and of its key; kept until it expires."""
    certificate_file, key_file = directory / "certificate.pem", directory / "key.pem"
    now = utc(now_ms)
    if certificate_file.exists() and key_file.exists():
        kept = x509.load_pem_x509_certificate(certificate_file.read_bytes())
        if now < kept.not_valid_after_utc:
            return certificate_file, key_file
    key = ec.generate_private_key(ec.SECP256R1())
    directory.mkdir(parents=True, exist_ok=True)
    key_file.touch(mode=0o600)
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    certificate_file.write_bytes(_certificate(key, host, now).public_bytes(serialization.Encoding.PEM))
    return certificate_file, key_file


def _certificate(key: ec.EllipticCurvePrivateKey, host: str, now: dt.datetime) -> x509.Certificate:
    serial = x509.random_serial_number()
    # A name of its own: a client that trusts two certificates of one name may check with the wrong one.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"svc webhook {serial:x}")])
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    names += [x509.IPAddress(ip_address(address)) for address in ("127.0.0.1", "::1")]
    if host not in ("localhost", "127.0.0.1", "0.0.0.0"):  # noqa: S104  compared, not bound
        names.append(_general_name(host))
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(serial)
    builder = builder.not_valid_before(now - dt.timedelta(hours=1))
    builder = builder.not_valid_after(now + dt.timedelta(days=CERTIFICATE_DAYS))
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.sign(key, hashes.SHA256())


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


TOLERANCE_S = 300
"""Between a delivery's timestamp and the receiver's clock (decisions 8.1)."""

SignatureVerdict = Literal["valid", "not signed", "wrong signature", "too old or too new"]


def verify_delivery(
    secrets: Sequence[str], signature: str | None, at: str | None, body: bytes, now_s: int
) -> SignatureVerdict:
    """Judge whether a delivery is authentic: signed with one of the secrets, and its timestamp within five minutes of
    `now_s` (decisions 8.1). `signature` and `at` are the headers, `None` if they are missing. Empty secrets, with which
    anybody can sign, count for nothing.
    """
    if signature is None or at is None or not is_count(at):
        return "not signed"
    signed = at.encode() + b"." + body
    given = [part.strip().encode(errors="replace") for part in signature.split(",")]
    digests = [hmac.digest(secret.encode(), signed, "sha256").hex() for secret in secrets if secret]
    expected = [f"sha256={digest}".encode() for digest in digests]
    if not any(hmac.compare_digest(one, other) for one in given for other in expected):
        return "wrong signature"
    return "valid" if abs(now_s - int(at)) <= TOLERANCE_S else "too old or too new"


def is_count(text: str) -> bool:
    """Return whether a header is a number of at most twelve ASCII digits."""
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
        """Use TLS from now on, with these PEM files. Raises `OSError` (`ssl.SSLError`) for files that are not PEM files
        of a certificate and its key.
        """
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        # Each handshake in its connection's own thread: else one silent client would stop the others.
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)


class DeliveryHandler(BaseHTTPRequestHandler, ABC):
    """Handles one connection. `receive` decides what happens to a delivery."""

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
        """Return the status to respond to a delivery of `now_ms` with. Names of `headers` are in lower case."""
        ...

    def verdict(self, headers: dict[str, str], body: bytes, now_ms: int) -> SignatureVerdict:
        """Judge whether a delivery of `now_ms` is signed by one of the server's secrets (`verify_delivery`)."""
        at, signature = headers.get("x-svc-timestamp"), headers.get("x-svc-signature")
        return verify_delivery(self.server.secrets, signature, at, body, now_ms // 1000)

    def _respond(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  http.server's name for it
        """Print nothing: subclasses print what there is to say."""


FOLDER = "webhook-listen"
"""In the data directory of `svc dev`: certificate, key, and the endpoint of sessions."""
LIMIT_S = 9
"""For the application's response: the service gives up after ten seconds."""
HOP_BY_HOP = frozenset({"host", "connection", "content-length", "transfer-encoding"})
_TYPES = [event_type for event_type in EVENT_TYPES if event_type not in LIVE_ONLY]


class SessionEndpoint(msgspec.Struct, frozen=True):
    """The endpoint that sessions use, one after another: its secret is the same at each start."""

    id: str
    secret: str


class Forwarded(NamedTuple):
    """The result of one delivery, as it is printed."""

    at: str
    event_type: str
    event_id: str
    status: int | None
    """Of the application; `None` where it did not respond."""
    duration_ms: int
    problem: str | None
    signature: SignatureVerdict


def forward(target: str, directory: Path, service_url: str | None, *, as_json: bool) -> None:
    """Forward the deliveries of the service's organization to `target` until Ctrl-C or SIGTERM. Raises `CommandError`
    if that is not a URL, the service does not run, or another session forwards already.
    """
    parts = urlsplit(target)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CommandError(f"{target!r} is not a URL to forward to, such as http://localhost:3000/hook")
    service = DevService(directory, service_url)
    folder = directory / FOLDER
    certificate, key = loopback_certificate(folder, "localhost", World.real().now_ms())
    taken = f"another `svc webhook listen` forwards the webhooks of {directory} already: end that one first"
    with durable_files.exclusive(folder / "lock", taken), _Forwarder(parts, as_json=as_json) as server:
        server.secure(certificate, key)
        endpoint = _register(service, folder / "endpoint.json", f"https://localhost:{server.server_port}/")
        server.secrets = (endpoint.secret,)
        try:
            with suppress(KeyboardInterrupt):
                signal.signal(signal.SIGTERM, signal.default_int_handler)
                click.echo(f"Forwarding webhooks of {service.url} to {target} until Ctrl-C.", err=as_json)
                click.echo(f"Signing secret, the same at each start: {endpoint.secret}\n", err=as_json)
                server.serve_forever()
        finally:
            with suppress(CommandError):  # the service may have ended first
                service.manage("PATCH", f"/webhooks/{endpoint.id}", {"paused": True})


def _register(service: DevService, file: Path, url: str) -> SessionEndpoint:
    """Move the last session's endpoint to this session's URL; register a new one if there is none or it was deleted. If
    its secret was rotated since, which nobody told this command, rotate it once more.
    """
    made: dict[str, Any] = {}
    with suppress(FileNotFoundError, msgspec.DecodeError):
        kept = msgspec.json.decode(file.read_bytes(), type=SessionEndpoint)
        again = {"url": url, "events": _TYPES, "paused": False, "format": "json", "filter": None}
        status, moved = service.manage("PATCH", f"/webhooks/{kept.id}", again)
        if status == HTTPStatus.OK:
            if moved["secret_last4"] == kept.secret[-4:]:
                return kept
            made = service.managed("POST", f"/webhooks/{kept.id}/rotate-secret", {})
    if not made:
        body = {"url": url, "environment": "test", "events": _TYPES, "description": "svc webhook listen"}
        made = service.managed("POST", "/webhooks", body)
    endpoint = SessionEndpoint(made["endpoint"]["id"], made["secret"])
    durable_files.replace(file, msgspec.json.encode(endpoint) + b"\n")
    return endpoint


class _Forwarder(WebhookReceiver):
    def __init__(self, target: SplitResult, *, as_json: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = target
        self.as_json = as_json
        self.printing = threading.Lock()

    def handle_error(self, request: object, client_address: object) -> None:
        """Print no traceback: the service closes connections that it no longer needs."""

    def show(self, done: Forwarded) -> None:
        with self.printing:
            click.echo(json.dumps(done._asdict()) if self.as_json else _line(done))


class _Handler(DeliveryHandler):
    server: _Forwarder  # pyright: ignore[reportIncompatibleVariableOverride]  made for no other

    def receive(self, headers: dict[str, str], body: bytes, now_ms: int) -> int:
        """Forward the delivery, show it, and respond as the application did."""
        verdict = self.verdict(headers, body, now_ms)
        event_type, event_id = headers.get("x-svc-event-type", "-"), headers.get("x-svc-event-id", "-")
        began = elapsed_s()
        if verdict == "valid":
            status, problem = _post(self.server.target, headers, body)
        else:  # nobody else knows the port, but every program of this machine can reach it; or the secret was rotated
            status, problem = HTTPStatus.UNAUTHORIZED, verdict
        duration_ms = round(1000 * (elapsed_s() - began))
        self.server.show(Forwarded(timestamp(now_ms), event_type, event_id, status, duration_ms, problem, verdict))
        return HTTPStatus.BAD_GATEWAY if status is None else status


def _post(target: SplitResult, headers: Mapping[str, str], body: bytes) -> tuple[int | None, str | None]:
    """Post to the application; return its status, or why there is none."""
    kind: Any = http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
    path = (target.path or "/") + (f"?{target.query}" if target.query else "")
    passed_on = {name: value for name, value in headers.items() if name not in HOP_BY_HOP}
    try:
        with closing(kind(target.hostname, target.port, timeout=LIMIT_S)) as connection:
            connection.request("POST", path, body, passed_on)
            response = connection.getresponse()
            response.read(MAX_BODY_BYTES)
            return response.status, None
    except TimeoutError:
        return None, f"no response within {LIMIT_S} s"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return None, str(error) or type(error).__name__


def _line(done: Forwarded) -> str:
    outcome = f"{done.status}" if done.status is not None else "failed"
    if has_colors(sys.stdout):
        good = done.status is not None and done.status < HTTPStatus.MULTIPLE_CHOICES
        outcome = click.style(outcome, fg="green" if good else "red")
    problem = f"  {readable(done.problem)}" if done.problem else ""
    of = f"{readable(done.event_type)}  {readable(done.event_id)}"
    return f"{done.at[11:19]}  {outcome}  {done.duration_ms} ms  {of}{problem}"
