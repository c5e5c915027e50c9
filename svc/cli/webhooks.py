"""`svc webhook`: the receiver's side, for development. A local receiver that shows deliveries, and the check by hand.

What may live here: commands about deliveries. The check is written as docs/webhooks.md tells receivers to write it, on
purpose apart from what signs: the two hold each other.
"""

from __future__ import annotations

import datetime as dt
import hmac
import json
import ssl
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import click
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from svc.cli.output import CommandError, json_option, show
from svc.cli.recovery import recover
from svc.domain.timestamps import timestamp
from svc.world import World

TOLERANCE_S = 300
"""Between a delivery's timestamp and the receiver's clock (decisions 8.1)."""
CERTIFICATE_DAYS = 365
MAX_BODY_BYTES = 4 * 1024 * 1024
SILENCE_S = 75
"""After which a connection is closed: somewhat more than the service keeps one."""

Verdict = Literal["valid", "not signed", "wrong signature", "too old or too new"]

secret_option = click.option(
    "--secret",
    "secrets",
    multiple=True,
    envvar="WEBHOOK_SECRET",
    show_envvar=True,
    help="Signing secret of the endpoint; twice during a rotation.",
)


@click.group()
def webhook() -> None:
    """Receive and check webhooks while you build a receiver, and recover what an outage has failed."""


webhook.add_command(recover)


@webhook.command()
@click.option("--bind", default="127.0.0.1:8443", show_default=True, metavar="HOST:PORT", help="Where to listen.")
@secret_option
@click.option(
    "--tls",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("webhook-listen"),
    show_default=True,
    help="Where certificate.pem and key.pem are; made when they are not there.",
)
@click.option("--plain", is_flag=True, help="HTTP without TLS, for behind a proxy or tunnel that ends TLS.")
@click.option("--answer", type=click.IntRange(200, 599), default=200, show_default=True, help="To what is valid.")
@json_option
def listen(bind: str, secrets: tuple[str, ...], directory: Path, plain: bool, answer: int, as_json: bool) -> None:
    """Print deliveries as they arrive, and say of each whether its signature is right.

    With a secret, what is not valid is answered 401, as a receiver should.
    """
    host, _, port = bind.rpartition(":")
    if not host or not port.isdecimal():
        raise click.UsageError(f"--bind: {bind} is no HOST:PORT")
    try:
        server = _Receiver((host, int(port)), secrets, answer, as_json=as_json)
    except (OSError, OverflowError) as error:
        raise CommandError(f"cannot listen on {bind}: {error}; choose another with --bind") from error
    with server, suppress(KeyboardInterrupt):
        certificate = None if plain else server.secure(directory, host)
        click.echo(_introduction(server.server_port, certificate, verifying=bool(secrets)), err=as_json)
        server.serve_forever()


@webhook.command()
@secret_option
@click.option("--timestamp", "at", required=True, metavar="SECONDS", help="The header X-Svc-Timestamp.")
@click.option("--signature", required=True, metavar="SHA256=HEX", help="The header X-Svc-Signature.")
@click.argument("file", type=click.File("rb"), default="-")
@json_option
def verify(secrets: tuple[str, ...], at: str, signature: str, file: BinaryIO, as_json: bool) -> None:
    """Check the signature of a delivery that was kept: its exact body in FILE, or on standard input.

    Its age is shown and not judged.
    """
    if not secrets:
        raise click.UsageError("name the signing secret with --secret or WEBHOOK_SECRET")
    if not _is_count(at) or verify_delivery(secrets, signature, at, file.read(), int(at)) != "valid":
        raise CommandError("the signature is not that of this body, timestamp and secret")
    show({"signature": "valid", "age_s": World.real().now_ms() // 1000 - int(at)}, as_json=as_json)


def verify_delivery(secrets: Sequence[str], signature: str | None, at: str | None, body: bytes, now_s: int) -> Verdict:
    """Whether a delivery is authentic: signed with one of the secrets, and its timestamp within five minutes of `now_s`
    (decisions 8.1). `signature` and `at` are the headers, `None` where they are missing.
    """
    if signature is None or at is None or not _is_count(at):
        return "not signed"
    signed = at.encode() + b"." + body
    given = [part.strip().encode() for part in signature.split(",")]
    expected = [b"sha256=" + hmac.digest(secret.encode(), signed, "sha256").hex().encode() for secret in secrets]
    if not any(hmac.compare_digest(one, other) for one in given for other in expected):
        return "wrong signature"
    return "valid" if abs(now_s - int(at)) <= TOLERANCE_S else "too old or too new"


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 12


def _introduction(port: int, certificate: Path | None, *, verifying: bool) -> str:
    lines = [
        f"Listening at {'http' if certificate is None else 'https'}://localhost:{port}/ until Ctrl-C.",
        "Signatures are checked." if verifying else "Signatures are not checked: no --secret.",
    ]
    if certificate is None:
        lines.append("The service sends to https only: put a proxy or tunnel that ends TLS before this.")
    else:
        settings = f"SVC_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8,::1/128 SVC_WEBHOOK_CA_FILE={certificate.absolute()}"
        lines.append(f"The service reaches it when it is started with\n  {settings}")
    return "\n".join(lines)


class _Receiver(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], secrets: Sequence[str], answer: int, *, as_json: bool) -> None:
        self.secrets = secrets
        self.answer = answer
        self.as_json = as_json
        self.world = World.real()
        self.seen: set[str] = set()
        super().__init__(address, _Handler)

    def secure(self, directory: Path, host: str) -> Path:
        """Speak TLS from now on; the certificate to trust."""
        certificate, key = _identity(directory, host, self.world.now_ms())
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        # Each handshake in its connection's own thread: else one silent client would stop the receiver.
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        return certificate

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  socketserver's form
        """A client that breaks off, or does not trust the certificate, is no reason for a traceback."""
        click.echo(f"a connection from {client_address} broke off", err=True)


class ReceivedDelivery(NamedTuple):
    """One received delivery, as `svc webhook listen` shows it."""

    received_at: str
    verdict: Verdict | Literal["not checked"]
    again: bool
    """Whether the same event id came before: deliveries arrive at least once."""
    headers: dict[str, str]
    body: Any
    """The envelope, or text where it is no JSON."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = SILENCE_S
    server: _Receiver  # pyright: ignore[reportIncompatibleVariableOverride]  made for no other

    def do_POST(self) -> None:
        """Read one delivery, show it, answer."""
        length = self.headers.get("content-length", "")
        if not _is_count(length) or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        body = self.rfile.read(int(length))
        delivery = self._delivery(body)
        click.echo(json.dumps(delivery._asdict()) if self.server.as_json else _shown(delivery))
        wanted = delivery.verdict in ("valid", "not checked")
        self._answer(self.server.answer if wanted else HTTPStatus.UNAUTHORIZED)

    def _delivery(self, body: bytes) -> ReceivedDelivery:
        headers = {name.lower(): value for name, value in self.headers.items()}
        now_ms = self.server.world.now_ms()
        verdict = "not checked"
        if self.server.secrets:
            at, signature = headers.get("x-svc-timestamp"), headers.get("x-svc-signature")
            verdict = verify_delivery(self.server.secrets, signature, at, body, now_ms // 1000)
        event_id = headers.get("x-svc-event-id", "")
        again = event_id in self.server.seen
        self.server.seen.add(event_id)
        try:
            shown = json.loads(body)
        except ValueError:
            shown = body.decode(errors="replace")
        return ReceivedDelivery(timestamp(now_ms), verdict, again, headers, shown)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  http.server's name for it
        """What there is to say was said."""


def _shown(delivery: ReceivedDelivery) -> str:
    again = ", seen before" if delivery.again else ""
    kind, event_id = (delivery.headers.get(name, "-") for name in ("x-svc-event-type", "x-svc-event-id"))
    body = delivery.body if isinstance(delivery.body, str) else json.dumps(delivery.body, indent=2, ensure_ascii=False)
    indented = "\n".join("  " + line for line in body.splitlines())
    return f"{delivery.received_at}  {kind}  {event_id}  {delivery.verdict}{again}\n{indented}"


def _identity(directory: Path, host: str, now_ms: int) -> tuple[Path, Path]:
    """Files of a certificate for this machine's own names, signed by itself, and of its key; kept until it expires."""
    certificate_file, key_file = directory / "certificate.pem", directory / "key.pem"
    now = dt.datetime.fromtimestamp(now_ms / 1000, dt.UTC)
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
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "svc webhook listen")])
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
    builder = builder.serial_number(x509.random_serial_number())
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
