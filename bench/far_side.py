"""The other side of a webhook bench, in a process of its own: receivers over TLS, and a steady load of identifications.

Its clock is the machine's monotonic one, which all processes share. Spoken to by lines of JSON on its standard input,
and it ends with that.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import trio
import trustme

from bench.load import Client, requests
from bench.serving import report_body
from tests.support.receivers import HOSTILE, Play, never_reads

ROOT = Path(__file__).parents[1]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_EVENT_ID = re.compile(rb"\r\nx-svc-event-id: *([0-9a-f-]{36})", re.IGNORECASE)
_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError, OSError)


class Arrival(NamedTuple):
    receiver: int
    event_id: str
    at: float
    """When its first byte had come through TLS; monotonic seconds."""


class Loaded(NamedTuple):
    """What came of a load."""

    answered: int
    refused: int
    """Answers other than 200."""
    late: int
    """Requests sent more than 50 ms after their time."""

    @property
    def accepted(self) -> int:
        """Each of them an identification of its own, which every subscriber is sent."""
        return self.answered - self.refused


class FarSide:
    """The process, as the bench sees it. `urls` are those of the receivers, in the order in which they were named."""

    def __init__(self, process: trio.Process, directory: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.ca_file = directory / "ca.pem"
        self.urls: list[str] = []
        self._in = process.stdin
        self._out = process.stdout
        self._rest = b""

    async def load(self, port: int, api_key: str, *, per_s: float, seconds: float) -> Loaded:
        """Identifications at this rate, one after the other."""
        return Loaded(*await self._ask(load=[port, api_key, per_s, seconds]))

    async def arrivals(self) -> list[Arrival]:
        """At healthy receivers, since the last time this was asked."""
        return [Arrival(*one) for one in await self._ask(arrivals=None)]

    async def arrived(self, number: int, limit_s: float) -> float | None:
        """When so many had arrived, since `arrivals` was last asked; `None` = they have not, in so many seconds."""
        return await self._ask(arrived=[number, limit_s])

    async def aclose(self) -> None:
        await self._in.aclose()
        await self._out.aclose()

    async def _ask(self, **command: Any) -> Any:
        await self._in.send_all(json.dumps(command).encode() + b"\n")
        return await self.response()

    async def response(self) -> Any:
        while b"\n" not in self._rest:
            some = await self._out.receive_some(1 << 20)
            if not some:
                raise SystemExit("the far side has ended")
            self._rest += some
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)


def command_of(directory: Path, plays: Sequence[str]) -> list[str]:
    """What starts the process; makes its certificate, whose authority is `ca.pem` of the directory."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(directory / "far.pem")
    return [sys.executable, "-m", "bench.far_side", str(directory / "far.pem"), *plays]


def urls_of(ports: Sequence[int]) -> list[str]:
    """Of the receivers, by the ports that the process says first."""
    return [f"https://127.0.0.1:{port}/{place}" for place, port in enumerate(ports)]


@asynccontextmanager
async def far_side(directory: Path, plays: Sequence[str]) -> AsyncGenerator[FarSide]:
    """Receivers that play these, each on a port of its own. The directory gets their certificates."""
    command = command_of(directory, plays)
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    far = FarSide(process, directory)
    try:
        ports: list[int] = await far.response()
        far.urls = urls_of(ports)
        yield far
    finally:
        process.terminate()
        with trio.CancelScope(shield=True):
            await process.wait()
            await far.aclose()


class _Receivers:
    """Inside the process: what healthy receivers have heard."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self.tls = tls
        self.heard: list[Arrival] = []
        self.awaited = 0
        self.reached = trio.Event()

    async def open(self, place: int, play: str, nursery: trio.Nursery) -> int:
        """Play it on a free port of loopback."""
        if play == "never accepts":
            return _full_backlog()
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=1024)
        if play == "stalls TLS":
            handler: Play = never_reads
        else:
            after_tls = partial(self._healthy, place) if play == "healthy" else HOSTILE[play]
            handler = partial(self._secured, after_tls)
        nursery.start_soon(trio.serve_listeners, partial(_until_broken, handler), [listener])
        return listener.socket.getsockname()[1]

    def hear(self, arrival: Arrival) -> None:
        self.heard.append(arrival)
        if len(self.heard) == self.awaited:
            self.reached.set()

    async def arrived(self, number: int, limit_s: float) -> float | None:
        if len(self.heard) < number:
            self.awaited, self.reached = number, trio.Event()
            with trio.move_on_after(limit_s):
                await self.reached.wait()
        return self.heard[number - 1].at if len(self.heard) >= number else None

    async def _secured(self, play: Play, stream: trio.abc.Stream) -> None:
        await play(trio.SSLStream(stream, self.tls, server_side=True, https_compatible=True))

    async def _healthy(self, place: int, stream: trio.abc.Stream) -> None:
        data = b""
        while True:
            at = time.monotonic() if data else None
            while (end := data.find(b"\r\n\r\n") + 4) < 4:
                some = await stream.receive_some(65536)
                if not some:
                    return
                at = time.monotonic() if at is None else at
                data += some
            length, event_id = _LENGTH.search(data), _EVENT_ID.search(data)
            assert length is not None
            assert event_id is not None
            assert at is not None
            while len(data) < end + int(length[1]):
                data += await stream.receive_some(65536)
            data = data[end + int(length[1]) :]
            self.hear(Arrival(place, event_id[1].decode(), at))
            await stream.send_all(OK)


async def _until_broken(play: Play, stream: trio.SocketStream) -> None:
    with suppress(*_BROKEN):
        await play(stream)
    await trio.aclose_forcefully(stream)


def _full_backlog() -> int:
    """A port whose connections nobody accepts, with as many waiting as may."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    _kept.append(listener)
    for _ in range(4):
        waiting = socket.socket()
        waiting.setblocking(False)
        with suppress(BlockingIOError):
            waiting.connect(listener.getsockname())
        _kept.append(waiting)
    return listener.getsockname()[1]


_kept: list[socket.socket] = []


def _load(port: int, api_key: str, per_s: float, seconds: float, seed: int) -> Loaded:
    """No two loads on one store may have one seed: the second would repeat the idempotency keys of the first, be
    answered from what is stored, and make no event.
    """
    make = requests(api_key, [report_body(number, token=True) for number in range(200)], seed)
    client = Client(port)
    statuses: list[int] = []
    late = 0
    began = time.monotonic()
    for number in range(round(per_s * seconds)):
        due = began + number / per_s
        time.sleep(max(0.0, due - time.monotonic()))
        late += time.monotonic() - due > 0.05
        statuses.append(client.ask(make()))
    client.socket.close()
    return Loaded(len(statuses), sum(status != 200 for status in statuses), late)


async def _obey(certificate: str, plays: Sequence[str]) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    playing = _Receivers(tls)
    async with trio.open_nursery() as nursery:
        ports = [await playing.open(place, play, nursery) for place, play in enumerate(plays)]
        print(json.dumps(ports), flush=True)
        commands, rest, seeds = trio.lowlevel.FdStream(0), b"", count()
        async for some in commands:
            rest += some
            while b"\n" in rest:
                line, _, rest = rest.partition(b"\n")
                ((name, arguments),) = json.loads(line).items()
                if name == "load":
                    response: Any = await trio.to_thread.run_sync(_load, *arguments, next(seeds))
                elif name == "arrived":
                    response = await playing.arrived(*arguments)
                else:
                    response, playing.heard = playing.heard, []
                print(json.dumps(response), flush=True)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(_obey, sys.argv[1], sys.argv[2:])
