"""Servers that fail a request before there is a connection, or after it arrived: does a library say which?"""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from socket import create_connection, create_server, socket

import trustme

TIMEOUT_MS = 3_000
PASSWORD = "changeit"
ARRIVES = ("closes", "hangs", "TLS closes", "TLS hangs", "no client certificate")
"""The request left, or may have: with TLS 1.3 it goes before the server has looked at the client's certificate."""
Behavior = Callable[[socket], object]


def hangs(connection: socket, reached: Callable[[], object] = lambda: None) -> None:
    """Read, and wait until the caller leaves. `reached` is called with the first bytes."""
    if connection.recv(65_536):
        reached()
    while connection.recv(65_536):
        pass


def _reads(connection: socket) -> None:
    connection.recv(65_536)


def _alerts(connection: socket) -> None:
    connection.recv(65_536)
    connection.sendall(bytes.fromhex("15030300020228"))  # a fatal handshake_failure


def _speaks_plainly(connection: socket) -> None:
    connection.recv(65_536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def _under(context: ssl.SSLContext, behavior: Behavior) -> Behavior:
    def handle(connection: socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            behavior(secured)

    return handle


class Servers:
    """Each behavior at a port of its own, certified by an authority whose file is `authority`."""

    def __init__(self, folder: Path) -> None:
        self.authority, self.folder = folder / "authority.pem", folder
        trusted, stranger = trustme.CA(), trustme.CA()
        trusted.cert_pem.write_to_path(str(self.authority))

        def context(issuer: trustme.CA = trusted, name: str = "localhost", **fields: datetime) -> ssl.SSLContext:
            made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            issuer.issue_cert(name, **fields).configure_cert(made)  # type: ignore[arg-type]
            return made

        mutual = context()
        mutual.verify_mode = ssl.CERT_REQUIRED
        now = datetime.now(UTC)
        expired = context(not_before=now - timedelta(days=9), not_after=now - timedelta(days=1))
        self.reached = threading.Semaphore(0)
        """Released for each request that "hangs" has read."""
        self._behaviors: dict[str, Behavior] = {
            "closes": _reads,
            "hangs": partial(hangs, reached=self.reached.release),
            "TLS closes": _under(context(), _reads),
            "TLS hangs": _under(context(), hangs),
            "no client certificate": _under(mutual, _reads),
            "another authority": _under(context(stranger), _reads),
            "another name": _under(context(name="other.example"), _reads),
            "expired": _under(expired, _reads),
            "no TLS": _speaks_plainly,
            "an alert": _alerts,
            "closes before TLS": lambda _: None,
            "closes within the handshake": _reads,
            "hangs within the handshake": hangs,
        }
        self._open: list[socket] = []

    @contextmanager
    def serving(self) -> Generator[dict[str, str]]:
        """Behavior -> the address of a server that has it."""
        places: dict[str, str] = {}
        for name, behavior in self._behaviors.items():
            listener = create_server(("127.0.0.1", 0))
            self._open.append(listener)
            threading.Thread(target=self._accept, args=(listener, behavior), daemon=True).start()
            scheme = "http" if name in ("closes", "hangs") else "https"
            places[name] = f"{scheme}://localhost:{listener.getsockname()[1]}"
        full = create_server(("127.0.0.1", 0), backlog=0)  # takes one connection, and leaves others waiting
        self._open += [full, create_connection(full.getsockname())]
        places["no connection"] = f"http://127.0.0.1:{full.getsockname()[1]}"
        try:
            yield places
        finally:
            for one in self._open:
                one.close()

    def _accept(self, listener: socket, behavior: Behavior) -> None:
        def serve(connection: socket) -> None:
            with connection, suppress(OSError):
                connection.settimeout(10)
                behavior(connection)

        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    def java_trust(self) -> list[str]:
        """Options of `java` that trust the authority."""
        store = self.folder / "trust.p12"
        command = ["keytool", "-importcert", "-noprompt", "-alias", "authority", "-file", self.authority]
        subprocess.run(
            [*command, "-keystore", store, "-storetype", "PKCS12", "-storepass", PASSWORD],
            check=True,
            capture_output=True,
        )
        return [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"]


def agrees(places: dict[str, str], told: dict[str, object]) -> None:
    """Fails by the behaviors of which a library says something else."""
    expected = {name: name in ARRIVES for name in places}
    assert told == expected, {name: told.get(name) for name in places if told.get(name) != expected[name]}


def in_lines(printed: str) -> dict[str, object]:
    """What a program says in lines of `connection`, behavior and `true` or `false`, by tabs."""
    lines = [line.split("\t") for line in printed.splitlines() if line.startswith("connection\t")]
    return {name: {"true": True, "false": False}.get(said, said) for _, name, said in lines}
