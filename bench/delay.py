"""A longer way to a server: a process that passes bytes on, each of them some time after it came.

It stands for a network, and needs neither root nor a kernel with `netem`. It runs before other processes where the
system permits that, and measures by how much it was late. What it is asked for is the round trip; each direction takes
half of it.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple, cast

LARGEST = 1 << 18
"""Bytes taken at once."""


class Late(NamedTuple):
    """By how much the process was late in passing something on, in milliseconds."""

    passed: int
    p50_ms: float
    p99_ms: float


class Delay:
    """The process. `port` is where the longer way begins; `late` is known when it has ended."""

    def __init__(self, to_port: int, round_trip_ms: float) -> None:
        command = [sys.executable, "-m", "bench.delay", str(to_port), str(round_trip_ms)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1], text=True
        )
        self._out = cast("IO[str]", self._process.stdout)
        self.port = int(self._out.readline())
        self.late = Late(0, 0.0, 0.0)

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """End it, and its connections with it."""
        told, _ = self._process.communicate(timeout=30)
        self.late = Late(*json.loads(told))


class _Line:
    """Both directions of all connections. What comes first leaves first, since all take the same time."""

    def __init__(self, to_port: int, one_way_s: float) -> None:
        self._to_port, self._one_way_s = to_port, one_way_s
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._other: dict[socket.socket, socket.socket] = {}
        self._under_way: deque[tuple[float, socket.socket, bytes]] = deque()
        self._late_s: list[float] = []
        self.port: int = self._listener.getsockname()[1]

    def run(self) -> Late:
        """Until standard input is closed."""
        while True:
            wait_s = max(0.0, self._under_way[0][0] - time.perf_counter()) if self._under_way else None
            readable, _, _ = select.select([sys.stdin, self._listener, *self._other], [], [], wait_s)
            self._pass_on()
            for one in readable:
                if one is sys.stdin:
                    return self._late()
                if one is self._listener:
                    self._accept()
                elif one in self._other:
                    self._take(one)

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        far = socket.create_connection(("127.0.0.1", self._to_port))
        for one, other in ((near, far), (far, near)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._other[one] = other

    def _take(self, one: socket.socket) -> None:
        data = b""
        with suppress(ConnectionError):
            data = one.recv(LARGEST)
        self._under_way.append((time.perf_counter() + self._one_way_s, self._other[one], data))
        if not data:
            del self._other[one]

    def _pass_on(self) -> None:
        while self._under_way and self._under_way[0][0] <= (now := time.perf_counter()):
            due, one, data = self._under_way.popleft()
            self._late_s.append(now - due)
            with suppress(OSError):
                if data:
                    one.sendall(data)
                else:
                    one.shutdown(socket.SHUT_WR)

    def _late(self) -> Late:
        times = sorted(self._late_s) or [0.0]
        return Late(len(self._late_s), *(1000 * times[int(part * (len(times) - 1))] for part in (0.5, 0.99)))


def main() -> None:
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    line = _Line(int(sys.argv[1]), float(sys.argv[2]) / 2000)
    print(line.port, flush=True)
    print(json.dumps(line.run()))


if __name__ == "__main__":
    main()
