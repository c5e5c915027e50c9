"""A load of keep-alive clients on one core: raw sockets, so that the load costs little beside what it measures."""

from __future__ import annotations

import random
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import NamedTuple

from bench.measures import quantile

CLIENTS = 32


class Measured(NamedTuple):
    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    refused: int
    """Answers other than 200."""
    mean_ms: float


class Client:
    """One keep-alive connection: one request at a time, answered by `Content-Length` bytes."""

    def __init__(self, port: int, timeout_s: float | None = None) -> None:
        self._port = port
        self._timeout_s = timeout_s
        self.connect()
        self.request = b""
        self.sent_at = 0.0

    def connect(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self._port), timeout=self._timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self._size = 0

    def send(self, request: bytes) -> None:
        self.request, self.sent_at = request, time.perf_counter()
        self.socket.sendall(request)

    def send_again(self) -> None:
        """Over a new connection; the time goes on from when it was first sent."""
        self.socket.close()
        while True:
            self.connect()
            try:
                self.socket.sendall(self.request)
            except ConnectionError:
                self.socket.close()
            else:
                return

    def receive(self) -> int | None:
        """The status when the response is whole. Raises `ConnectionError` where the server has closed."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the server closed a connection under load")
        self._received += data
        if not self._size:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return None
            length = self._received[:end].lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            self._size = end + 4 + int(length or 0)
        if len(self._received) < self._size:
            return None
        status = int(self._received[9:12])
        del self._received[: self._size]
        self._size = 0
        return status

    def ask(self, request: bytes) -> int:
        """The status of the response, when it is whole."""
        self.send(request)
        return self.answer()

    def answer(self) -> int:
        """The status of the response to what was sent, when it is whole."""
        while (status := self.receive()) is None:
            pass
        return status


def run(
    port: int | Sequence[int],
    make_request: Callable[[], bytes],
    seconds: float,
    *,
    patient: bool = False,
    clients: int = CLIENTS,
    most: int | None = None,
) -> Measured:
    """Keep so many connections busy for so long, or until `most` requests were answered; with several ports, evenly
    over them. `patient` clients send a request that was cut off again, and its time goes on; others raise
    `ConnectionError`.
    """
    ports = [port] if isinstance(port, int) else port
    selector = selectors.DefaultSelector()
    connected = [Client(one) for one in islice(cycle(ports), clients)]
    for client in connected:
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.send(make_request())
    times: list[float] = []
    refused = 0
    start = time.perf_counter()
    end = start + seconds
    while (now := time.perf_counter()) < end and (most is None or len(times) < most):
        for key, _ in selector.select(timeout=end - now):
            client: Client = key.data
            try:
                status = client.receive()
            except ConnectionError:
                if not patient:
                    raise
                selector.unregister(client.socket)
                client.send_again()
                selector.register(client.socket, selectors.EVENT_READ, client)
                continue
            if status is not None:
                times.append(time.perf_counter() - client.sent_at)
                refused += status != 200
                client.send(make_request())
    elapsed = time.perf_counter() - start
    for client in connected:
        client.socket.close()
    times.sort()
    mean_ms = 1000 * sum(times) / max(1, len(times))
    return Measured(len(times), elapsed, 1000 * quantile(times, 0.5), 1000 * quantile(times, 0.99), refused, mean_ms)


def own_address(device: int) -> str:
    """In a network of the device's own."""
    return f"81.{device >> 8 & 255}.{device & 255}.160"


def one_address(_: int) -> str:
    """The same for all."""
    return "81.2.69.160"


def head(api_key: str, address: str, length: int) -> bytes:
    """Of an identification from a page, up to the value of its idempotency key; `length` of the body in bytes."""
    return (
        "POST /api/v1/identify HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate, br\r\n"
        "Accept-Language: en-GB,en;q=0.9\r\nContent-Type: application/json\r\nOrigin: https://shop.example\r\n"
        "User-Agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        f"Chrome/137.0.0.0 Safari/537.36\r\nX-Forwarded-For: {address}\r\n"
        f"X-Api-Key: {api_key}\r\nContent-Length: {length}\r\nIdempotency-Key: "
    ).encode()


def requests(
    api_key: str,
    bodies: list[bytes],
    seed: int,
    address: Callable[[int], str] = one_address,
    returning: float | None = None,
) -> Callable[[], bytes]:
    """Posts of random bodies, each with an idempotency key of its own. `address` is that of a body's sender, by its
    place. With `returning` that share are of devices that came before, and the others the next one's first, as long as
    there are any.
    """
    chance = random.Random(seed)
    heads = [head(api_key, address(place), len(body)) for place, body in enumerate(bodies)]
    sender = senders(chance, len(bodies), returning)

    def make() -> bytes:
        index = sender()
        return heads[index] + b"%032x\r\n\r\n" % chance.getrandbits(128) + bodies[index]

    return make


def senders(chance: random.Random, devices: int, returning: float | None) -> Callable[[], int]:
    """Whose turn it is of so many devices, by number: anybody's, or with `returning` as of `requests`."""
    come = 0

    def sender() -> int:
        nonlocal come
        if returning is None:
            return chance.randrange(devices)
        if come < devices and (not come or chance.random() >= returning):
            come += 1
            return come - 1
        return chance.randrange(come)

    return sender
