"""A TCP proxy on loopback that cuts connections after so many bytes, or stops passing them on."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Literal, Self

Direction = Literal["sent", "answered"]


class CuttingProxy:
    """Passes bytes on until a limit is reached; for `with`."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._left: dict[Direction, int | None] = {"sent": None, "answered": None}
        self._silent = False
        self._once = self._at_next = False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self.passed: dict[Direction, int] = {"sent": 0, "answered": 0}
        self.recorded: dict[Direction, bytearray] = {"sent": bytearray(), "answered": bytearray()}
        """What has passed since `record`, of all connections."""
        self.cuts = 0
        """Connections that came to a limit."""

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(10)

    def cut_after(self, direction: Direction, size: int, *, once: bool = False, at_next: bool = False) -> None:
        """Cut every connection once `size` more bytes have passed in a direction; those bytes still arrive. `once`: the
        one alone that comes to the limit. `at_next`: not before another byte comes.
        """
        with self._lock:
            self._left[direction] = size
            self._once, self._at_next = once, at_next

    def record(self) -> None:
        """Forget what was recorded."""
        with self._lock:
            for recorded in self.recorded.values():
                recorded.clear()

    def mend(self) -> None:
        """New connections pass again."""
        with self._lock:
            self._left = {"sent": None, "answered": None}
            self._silent = False

    def fall_silent(self) -> None:
        """Take bytes and pass none on, as a network that lost its route."""
        self._silent = True

    def cut(self) -> None:
        """Cut every connection now."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for one in pair:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()

    def _start(self, run: object, *values: object) -> None:
        thread = threading.Thread(target=run, args=values, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._upstream))
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._pairs.append((client, server))
                self._start(self._pass_on, client, server, "sent")
                self._start(self._pass_on, server, client, "answered")

    def _pass_on(self, source: socket.socket, target: socket.socket, direction: Direction) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self._silent:
                    continue
                with self._lock:
                    left = self._left[direction]
                    part = data if left is None else data[:left]
                    self.passed[direction] += len(part)
                    self.recorded[direction] += part
                    is_at_limit = left is not None and left + self._at_next <= len(data)
                    if left is not None:
                        self._left[direction] = None if is_at_limit and self._once else left - len(part)
                    self.cuts += is_at_limit
                target.sendall(part)
                if is_at_limit:
                    break
        self._end(source, target)

    def _end(self, *pair: socket.socket) -> None:
        for one in pair:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def messages(passed: bytes) -> list[range]:
    """Where each message of PostgreSQL's protocol begins and ends: a letter, and a length that includes itself. Of a
    connection that is made.
    """
    found, place = list[range](), 0
    while place < len(passed):
        end = place + 1 + int.from_bytes(passed[place + 1 : place + 5])
        found.append(range(place, end))
        place = end
    assert place == len(passed), "the recording ends within a message"
    return found
