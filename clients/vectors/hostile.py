"""A service that misbehaves: `python clients/vectors/hostile.py` prints where it listens, on 127.0.0.1 alone.

`http://127.0.0.1:PORT/RUN/BEHAVIOR` is the address of a service with this behavior, a name of `BEHAVIORS` with `_` for
a blank; `http://127.0.0.1:PORT/RUN` has how many requests of this run each of them got. It ends with its standard
input, and after five minutes.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import socketserver
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from cases_for_servers import SEEN

LIFETIME_S = 300
LONGEST_S = 10
"""Of what a behavior does: nobody waits for longer."""
DRIP_S = 0.05
FLOOD = 48 * 2**20
"""Bytes of a body that is too long."""

counts: Counter[str] = Counter()


def event(**changes: Any) -> bytes:
    """The body of an event of this moment."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({**SEEN, "occurred_at": now, **changes}).encode()


def fault(status: int, code: str) -> bytes:
    """The body of an error."""
    return json.dumps({"error": {"code": code, "message": "Later.", "status": status}}).encode()


def response(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    """A response as it is sent."""
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers)
    return "\r\n".join((*lines, "Connection: close", "", "")).encode() + body


def drip(connection: socket.socket, content: bytes) -> None:
    """Send a byte at a time."""
    ends = time.monotonic() + LONGEST_S
    for at in range(len(content)):
        if time.monotonic() > ends:
            return
        connection.sendall(content[at : at + 1])
        time.sleep(DRIP_S)


def after(connection: socket.socket, begin: bytes, content: bytes) -> None:
    """Send the beginning at once, and drip the rest."""
    connection.sendall(begin)
    drip(connection, content)


def flood(connection: socket.socket, begin: bytes, content: bytes, times: int, pause_s: float = 0) -> None:
    """Send something over and over."""
    connection.sendall(begin)
    ends = time.monotonic() + LONGEST_S
    for _ in range(times):
        if time.monotonic() > ends:
            return
        connection.sendall(content)
        time.sleep(pause_s)


def never(connection: socket.socket) -> None:
    """Wait until the caller leaves."""
    connection.settimeout(LONGEST_S)
    connection.recv(1)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BOMB = gzip.compress(b" " * FLOOD)
LIMITED = fault(429, "rate_limited")
BUSY = fault(503, "service_unavailable")
Behavior = Callable[[socket.socket, int], Any]
"""What it does with a connection; the number of the request, from 1."""


def always(*content: bytes) -> Behavior:
    """A response that is the same each time."""
    return lambda connection, _: connection.sendall(b"".join(content))


def body(content: bytes, *headers: str, status: str = "200 OK") -> Behavior:
    """A body that is the same each time."""
    return always(response(content, *headers, status=status))


def at_first(first: Behavior) -> Behavior:
    """An event, but for the first request."""
    return lambda connection, number: (
        first(connection, number) if number == 1 else connection.sendall(response(event()))
    )


def busy(*headers: str) -> Behavior:
    """A service that is busy at first."""
    return at_first(body(BUSY, *headers, status="503 Service Unavailable"))


def limited(*headers: str) -> Behavior:
    """A service that takes no more requests."""
    return body(LIMITED, *headers, status="429 Too Many Requests")


BEHAVIORS: dict[str, Behavior] = {
    "an event": lambda connection, _: connection.sendall(response(event())),
    "never": lambda connection, _: never(connection),
    "drips headers": lambda connection, _: after(connection, HEAD, b"X-Slow: " + b"x" * 10_000),
    "drips the body": lambda connection, _: after(connection, response(b"", length=10_000), event()),
    "drips chunks": lambda connection, _: after(
        connection, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 1_000
    ),
    "informational flood": lambda connection, _: flood(
        connection, b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", 1_000, 0.01
    ),
    "closes at once": lambda _, __: None,
    "closes within the headers": always(HEAD, b"Content-Le"),
    "closes within the body": lambda connection, _: connection.sendall(response(event(), length=10_000)),
    "garbage for a status": always(b"hello\r\n\r\n"),
    "garbage for chunks": always(HEAD, b"Transfer-Encoding: chunked\r\n\r\nhello\r\n"),
    "garbage for a length": always(HEAD, b"Content-Length: hello\r\n\r\n{}"),
    "hangs once": at_first(lambda connection, _: never(connection)),
    "closes once": at_first(lambda _, __: None),
    "a length too short": lambda connection, _: connection.sendall(response(event(), length=20)),
    "html": body(b"<html></html>", "Content-Type: text/html"),
    "empty": body(b""),
    "null": body(b"null"),
    "a list": body(b"[1]"),
    "a number": body(b"7"),
    "deep nesting": body(b"[" * 100_000),
    "another shape": body(b'{"hello": 1}'),
    "wrong types": lambda connection, _: connection.sendall(response(event(identifiable="yes", origin=["a"]))),
    "no UTF-8": body(b'{"request_id": "\xff\xfe"}'),
    "NaN": lambda connection, _: connection.sendall(response(event(suspect_score=float("nan")))),
    "no gzip": body(b"This is not packed.", "Content-Encoding: gzip"),
    "gzip bomb": body(BOMB, "Content-Encoding: gzip"),
    "huge body": lambda connection, _: flood(
        connection, HEAD + b"Connection: close\r\n\r\n", b" " * 2**16, FLOOD >> 16
    ),
    "an error with 200": body(LIMITED),
    "redirects": body(b"", "Location: /run/redirects/api/v1/events/again", status="302 Found"),
    "401 html": body(b"<html></html>", status="401 Unauthorized"),
    "404 html": body(b"<html></html>", status="404 Not Found"),
    "404 of the service": body(fault(404, "event_not_found"), status="404 Not Found"),
    "503 html": body(b"<html></html>", status="503 Service Unavailable"),
    "503 for once": busy(),
    "503 until a date in the past": busy("Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"),
    "503 for a negative time": busy("Retry-After: -5"),
    "503 for a second": busy("Retry-After: 1"),
    "429": limited(),
    "429 for longer than the deadline": limited("Retry-After: 4"),
    "429 until a date to come": limited("Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"),
    "429 for 5,000 digits": limited("Retry-After: " + "9" * 5_000),
}


class Handler(socketserver.BaseRequestHandler):
    """One request."""

    def handle(self) -> None:
        connection: socket.socket = self.request
        connection.settimeout(LONGEST_S)
        try:
            head = b""
            while b"\r\n\r\n" not in head and len(head) < 2**16:
                read = connection.recv(2**16)
                if not read:
                    return
                head += read
            place = head.split(b" ", 2)[1].decode().strip("/").split("/")
            if len(place) == 1:
                told = {
                    name.split("/", 1)[1]: count for name, count in counts.items() if name.startswith(f"{place[0]}/")
                }
                connection.sendall(response(json.dumps(told).encode()))
                return
            name = place[1].replace("_", " ")
            counts[f"{place[0]}/{name}"] += 1
            BEHAVIORS[name](connection, counts[f"{place[0]}/{name}"])
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(1)
            while connection.recv(2**16):  # what is closed with bytes unread is reset
                pass
        except OSError:
            pass  # the caller has left


class Server(socketserver.ThreadingTCPServer):
    """On 127.0.0.1."""

    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    """Serve until standard input ends."""
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Timer(LIFETIME_S, os._exit, (0,)).start()
    sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
