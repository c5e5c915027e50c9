"""TLS at the edge: a certificate and its key from two files, checked before anybody is served with them.

What may live here: how the two files become a context, and the listener whose context can be replaced while it accepts.
`svc/serve/service.py` decides when.

The files are read into a new context each time, which takes the place of the old one only when it is whole: loading
into a context in use would leave it with a new certificate and an old key where the second file is wrong.
"""

from __future__ import annotations

import ssl
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, NoReturn

import trio
from cryptography import x509

from svc.http.server.listening import PlainListener
from svc.kernel.values.errors import OperatorError


class CertificateError(OperatorError):
    """The files cannot serve TLS; the message names the file and says what is wrong."""


class Certificate(NamedTuple):
    """A certificate that TLS can be served with, and its period of validity."""

    context: ssl.SSLContext
    not_before: datetime
    not_after: datetime

    def is_valid(self, now: datetime) -> bool:
        """Return whether a client whose clock shows `now` (with a time zone) accepts it; both ends of the period are
        inclusive.
        """
        return self.not_before <= now <= self.not_after


def read_certificate(certfile: Path, keyfile: Path) -> Certificate:
    """Return the certificate with its chain, the leaf first, and the key of the leaf, both PEM. Raises
    `CertificateError`.

    TLS 1.2 is the oldest version that is spoken, as RFC 8996 asks, and a client cannot have a new handshake within its
    connection, which would cost it little and the server much.
    """
    chain = _read(certfile)
    _read(keyfile)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        leaf = x509.load_pem_x509_certificates(chain)[0]
    except ValueError as error:
        raise CertificateError(f"{certfile} holds no PEM certificate") from error
    try:
        context.load_cert_chain(certfile, keyfile, password=lambda: _refuse_passphrase(keyfile))
    except ssl.SSLError as error:
        raise CertificateError(_explain(error, certfile, keyfile)) from error
    return Certificate(context, leaf.not_valid_before_utc, leaf.not_valid_after_utc)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"cannot read {path}: {error.strerror}") from error


def _refuse_passphrase(keyfile: Path) -> NoReturn:
    """OpenSSL would ask for it on the terminal, where nobody is."""
    raise CertificateError(
        f"{keyfile} is encrypted; store the key without a passphrase, readable for the service alone"
    )


def _explain(error: ssl.SSLError, certfile: Path, keyfile: Path) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{keyfile} is not the key of the certificate in {certfile}"
    if not error.reason:
        return f"{keyfile} holds no PEM key"
    return f"{certfile} and {keyfile} cannot be used: {error.reason.lower().replace('_', ' ')}"


class TlsListener(trio.abc.Listener[trio.SSLStream[trio.SocketStream]]):
    """As `trio.SSLListener`, with a context that can be replaced for connections that are accepted later."""

    def __init__(self, transport_listener: PlainListener, context: ssl.SSLContext) -> None:
        self.transport_listener = transport_listener
        self.use(context)

    def use(self, context: ssl.SSLContext) -> None:
        """Show this certificate to connections that are accepted from now on. Of the protocols behind TLS, `http/1.1`
        is offered and nothing else.
        """
        context.set_alpn_protocols(["http/1.1"])
        self._context = context

    async def accept(self) -> trio.SSLStream[trio.SocketStream]:
        """Accept the next connection. Its handshake is left to the connection's own task, so that a slow one does not
        delay others.
        """
        stream = await self.transport_listener.accept()
        return trio.SSLStream(stream, self._context, server_side=True, https_compatible=True)

    async def aclose(self) -> None:
        """Close the socket that listens; connections that were accepted go on."""
        await self.transport_listener.aclose()
