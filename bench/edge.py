"""CPU that the edge takes for one request, in front of an ASGI application that reads the body and sends a constant.

With `--beside DIRECTORY` also that of another checkout, in turn in the same run: what else the machine does then
weighs on both. With `--beside full` that of this one with plain requests on the path of all others. One client, one
request at a time, on loopback; the server's CPU is read from its process clock. The least of all rounds is what the
work takes; the rest is what others took from it.

    python -m bench.edge [--beside DIRECTORY|full] [--requests 20] [--rounds 300] [--shapes post,get,chunks,connect]
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import trio

from svc.http import edge

BODY = b'{"sdk":{"platform":"web","version":"1.0.0"},"signals":{"canvas":"' + b"a" * 2_000 + b'"}}'
FIELDS = b"\r\n".join(
    [
        b"Host: svc.example",
        b"Origin: https://shop.example",
        b"Referer: https://shop.example/basket",
        b"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        b"Accept: application/json",
        b"Accept-Language: de,en-US;q=0.7,en;q=0.3",
        b"Accept-Encoding: gzip, deflate, br, zstd",
        b"X-Api-Key: svc_pk_eu_production_" + b"a" * 49,
        b"Idempotency-Key: 019b76da-a800-7752-8079-3cdead0412c1",
        b"X-Forwarded-For: 203.0.113.9",
    ]
)
POST = b"POST /api/v1/identify HTTP/1.1\r\n" + FIELDS + b"\r\nContent-Type: application/json\r\n"
SHAPES = {
    "post": POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    "get": b"GET /api/v1/events?limit=10 HTTP/1.1\r\n" + FIELDS + b"\r\n\r\n",
    "chunks": POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n",
    "connect": POST + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(BODY) + BODY,
}
"""The last one on a new connection each time."""
FULL = "full"
RESPONSE = b'{"request_id":"019b76da-a800-7752-8079-3cdead0412c1"}'


async def application(_: Any, receive: Any, send: Any) -> None:
    while (await receive())["more_body"]:
        pass
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(RESPONSE)),
        (b"x-request-id", b"019b76da-a800-7752-8079-3cdead0412c1"),
        (b"access-control-allow-origin", b"https://shop.example"),
        (b"vary", b"Origin"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": RESPONSE, "more_body": False})


async def serve() -> None:
    """Until killed; writes its port to stdout."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=64)
    print(edge.addresses(listeners)[0][1], flush=True)
    paths: dict[str, Any] = {"lean": False} if sys.argv[2:] == [FULL] else {}  # which another checkout may not know
    limits = edge.EdgeLimits()
    await edge.serve(application, listeners, limits, refuse=lambda _: (b"", []), shutdown=trio.Event(), **paths)


class Server:
    """The edge of a checkout, in a process of its own."""

    def __init__(self, checkout: str) -> None:
        here = Path(__file__).parents[1]
        environment = {**os.environ, "PYTHONPATH": str(here if checkout in ("", FULL) else checkout)}
        command = [sys.executable, "-P", __file__, "--serve", *([FULL] if checkout == FULL else [])]
        self._process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())
        self._clock = (~self._process.pid << 3) | 2  # a process clock, as clock_getcpuclockid(3) makes it
        self._kept: socket.socket | None = None

    def cpu_us(self, request: bytes, count: int) -> float:
        """Per request."""
        began = time.clock_gettime(self._clock)
        for _ in range(count):
            self._ask(request)
        return (time.clock_gettime(self._clock) - began) / count * 1e6

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _ask(self, request: bytes) -> None:
        connection, self._kept = self._kept or socket.create_connection(("127.0.0.1", self._port)), None
        connection.sendall(request)
        response = b""
        while not response.endswith(RESPONSE):
            received = connection.recv(65_536)
            assert received, response
            response += received
        if b"onnection: close" in response:
            connection.close()
        else:
            self._kept = connection


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--beside", help="another checkout, or `full`")
    parser.add_argument("--requests", type=int, default=20, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=300, help="measurements of each shape")
    parser.add_argument("--shapes", default=",".join(SHAPES))
    options = parser.parse_args()
    checkouts = {"this": "", **({"beside": options.beside} if options.beside else {})}
    servers = {name: Server(checkout) for name, checkout in checkouts.items()}
    try:
        for shape in options.shapes.split(","):
            times: dict[str, list[float]] = {name: [] for name in servers}
            for number in range(options.rounds + 1):
                for name, server in servers.items():
                    cpu_us = server.cpu_us(SHAPES[shape], options.requests)
                    if number:  # the first one warms up
                        times[name].append(cpu_us)
            print(_line(shape, times))
    finally:
        for server in servers.values():
            server.stop()


def _line(shape: str, times: dict[str, list[float]]) -> str:
    least = {name: min(each) for name, each in times.items()}
    median = {name: statistics.median(each) for name, each in times.items()}
    line = f"{shape:8}" + "".join(f"  {name} {least[name]:6.1f} us (median {median[name]:6.1f})" for name in times)
    if "beside" in times:
        line += f"  x {least['this'] / least['beside']:.3f} ({median['this'] / median['beside']:.3f})"
    return line


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        trio.run(serve)
    else:
        main()
