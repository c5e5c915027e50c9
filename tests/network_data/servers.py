"""An HTTPS server on this machine that serves what a test puts into it, as a publisher of lists or a mirror does, and a
proxy to it.
"""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import trustme

from svc.features.webhooks.transport.connections import tls_context


class Page(NamedTuple):
    content: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    hangs: bool = False
    """Half of it is sent, and then nothing until the server ends."""


class Publisher:
    """`pages` by path; others are 404. `requests` are those that came."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.ca_file = folder / "ca.pem"
        authority.cert_pem.write_to_path(self.ca_file)
        self.tls = tls_context(self.ca_file)
        self.pages: dict[str, Page] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self._ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(served)
        self._server.socket = served.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://localhost:{self._server.server_port}"

    @contextmanager
    def serving(self) -> Generator[Publisher]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        publisher = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.requests.append((self.path, dict(self.headers.items())))
                page = publisher.pages.get(self.path, Page(b"not here\n", 404))
                self.send_response(page.status)
                for name, value in page.headers:
                    self.send_header(name, value)
                if not any(name == "Content-Length" for name, _ in page.headers):
                    self.send_header("Connection", "close")
                self.end_headers()
                if page.hangs:
                    self.wfile.write(page.content[: len(page.content) // 2])
                    publisher._ended.wait()
                else:
                    with suppress(OSError):  # the client had enough
                        self.wfile.write(page.content)

            def log_message(self, *_: object) -> None: ...

        return Handler


class ConnectProxy(socketserver.StreamRequestHandler):
    """An HTTP proxy that knows CONNECT alone; `asked` of its server are the targets."""

    def handle(self) -> None:
        method, target, _ = self.rfile.readline().decode().split()
        while self.rfile.readline().strip():
            pass
        assert method == "CONNECT"
        self.server.asked.append(target)  # type: ignore[attr-defined]
        host, _, port = target.rpartition(":")
        with socket.create_connection((host, int(port))) as upstream:
            self.wfile.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            back = threading.Thread(target=_pass_on, args=(upstream, self.connection))
            back.start()
            _pass_on(self.connection, upstream)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while block := source.recv(65536):
            target.sendall(block)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def connect_proxy() -> Generator[tuple[str, list[str]]]:
    """The proxy's URL, and what it was asked for."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), ConnectProxy)
    server.asked = asked = list[str]()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
