"""The internet of a simulation: names that flip, addresses, and receivers that stall, drip, reset and close half-way.

It stands behind the real `WebhookTransport`, as its resolver and its network backend. TLS is a name on a certificate
and the ways in which a handshake fails; no bytes are encrypted. Whatever happens here is drawn from one seed.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple, get_args

import httpcore
import trio

from tests.support.receivers import (
    Play,
    dripping_headers,
    never_responds,
    read_request,
)

Manner = Literal[
    "well",
    "slowly",
    "mixed",
    "500",
    "429",
    "503",
    "302",
    "410",
    "refuses",
    "black hole",
    "stalls in tls",
    "other name",
    "never responds",
    "drips its head",
    "drips its body",
    "resets",
    "resets after work",
    "closes half-way",
    "hangs up",
    "hangs up on reuse",
    "endless",
    "nonsense",
]
"""How a receiver takes what is sent to it."""
MANNERS: tuple[Manner, ...] = get_args(Manner)
MIXED: tuple[Manner, ...] = ("well", "well", "well", "500", "resets after work", "slowly", "hangs up", "never responds")
"""What one that is `mixed` draws from, again for each connection and request."""

Naming = Literal["well", "flips", "leads inside", "leads astray", "unknown", "silent"]
"""How a receiver's name resolves."""
NAMINGS: tuple[Naming, ...] = get_args(Naming)

INSIDE = ("10.0.0.5", "127.0.0.1", "169.254.169.254", "::1", "fd00::7", "::ffff:10.1.2.3", "64:ff9b::a00:5")
LOOKUP_LIMIT_S = 3.0
"""When `SystemResolver` gives up."""


class Post(NamedTuple):
    """One request as a receiver read it, whole."""

    host: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connected_at: float
    """Virtual seconds; when the connection was dialed."""


class Receipt:
    """What became of a 2xx in answer to a request, in virtual seconds."""

    answered_at: float | None = None
    """When it was sent, whole."""
    read_at: float | None = None
    """When the sender had read it to its end."""


Arrived = Callable[[Post, Receipt], None]
"""Told of each request."""


class Internet(httpcore.AsyncNetworkBackend):
    """All names and receivers of one run."""

    def __init__(self, chance: random.Random, arrived: Arrived) -> None:
        self.chance = chance
        self.arrived = arrived
        self.hosts: dict[str, Host] = {}
        self.illegal_dials: list[str] = []
        """Connections to addresses at which no receiver is: inside, or made up."""
        self.nursery: trio.Nursery
        self._by_address: dict[str, Host] = {}
        self._wires: dict[Wire, None] = {}

    def add(self, name: str) -> None:
        """A receiver with a name and public addresses of its own."""
        number = len(self.hosts) + 1
        host = Host(self, name, (f"93.184.{number}.1", f"2606:2800:220::{number:x}", f"93.184.{number}.2"))
        self.hosts[name] = host
        self._by_address.update(dict.fromkeys(host.addresses, host))

    def be_good(self) -> None:
        for host in self.hosts.values():
            host.manner, host.naming = "well", "well"

    def cut_all(self) -> None:
        """The sending machine is gone, without a word."""
        for wire in list(self._wires):
            wire.cut()

    async def resolve(self, host: str, organization: int, /) -> tuple[str, ...]:
        """As `svc.features.webhooks.transport.resolver.Resolver`."""
        found = self.hosts[host]
        await trio.sleep(self.chance.uniform(0.0001, 0.05))
        match found.naming:
            case "silent":
                await trio.sleep(LOOKUP_LIMIT_S)
                return ()
            case "unknown":
                return ()
            case "leads inside":
                return tuple(self.chance.sample(INSIDE, 1) + list(found.addresses[: self.chance.randrange(3)]))
            case "leads astray":
                other = self.chance.choice(list(self.hosts.values()))
                return other.addresses[:1]
            case "flips":
                return tuple(self.chance.sample(found.addresses, self.chance.randint(1, 3)))
            case "well":
                return found.addresses[:1]

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        found = self._by_address.get(host)
        if found is None or port != 443:
            self.illegal_dials.append(f"{host}:{port} was dialed, where no receiver is")
            raise httpcore.ConnectError
        manner = found.now()
        await trio.sleep(self.chance.uniform(0.001, 0.08))
        if manner == "black hole":
            await trio.sleep_forever()
        if manner == "refuses":
            raise httpcore.ConnectError
        wire = Wire(found, manner)
        self._wires[wire] = None
        self.nursery.start_soon(self._hold, wire)
        return wire

    async def _hold(self, wire: Wire) -> None:
        """The receiver's side, until either side ends it."""
        with wire.scope, suppress(trio.BrokenResourceError):
            await wire.host.serve(wire)
        wire.to_sender.end()
        del self._wires[wire]


class Host:
    """One receiver and its name."""

    def __init__(self, internet: Internet, name: str, addresses: tuple[str, ...]) -> None:
        self.internet = internet
        self.name = name
        self.addresses = addresses
        self.manner: Manner = "well"
        self.naming: Naming = "well"

    def now(self) -> Manner:
        """What it does with the next connection or request."""
        return self.internet.chance.choice(MIXED) if self.manner == "mixed" else self.manner

    async def serve(self, wire: Wire) -> None:
        stream, served = ReceiversEnd(wire), 0
        while (request := await read_request(stream)) is not None:
            manner = self.now()
            if manner in ("hangs up on reuse", "hangs up") and served:
                return
            post = Post(self.name, request.target, request.headers, request.body, wire.connected_at)
            receipt = Receipt()
            self.internet.arrived(post, receipt)
            if manner in ENDS:
                await ENDS[manner](stream)
                return
            if not await ANSWERS.get(manner, _responds_well)(wire, manner, receipt):
                return
            served += 1


class Pipe:
    """Bytes on their way in one direction."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ended = False
        self.broken = False
        self._changed = trio.lowlevel.ParkingLot()

    @property
    def is_readable(self) -> bool:
        return bool(self.data) or self.ended or self.broken

    def feed(self, data: bytes) -> None:
        self.data += data
        self._changed.unpark_all()

    def end(self) -> None:
        self.ended = True
        self._changed.unpark_all()

    def destroy(self) -> None:
        self.broken = True
        self._changed.unpark_all()

    async def take(self, most: int) -> bytes:
        """What is there, at least a byte; nothing at the end. Raises `trio.BrokenResourceError` after a reset."""
        await trio.lowlevel.checkpoint()
        while not self.is_readable:
            await self._changed.park()
        if self.broken:
            raise trio.BrokenResourceError
        taken = bytes(self.data[:most])
        del self.data[:most]
        self._changed.unpark_all()
        return taken

    async def drained(self) -> bool:
        """Wait until the reader has everything; whether it has."""
        while self.data and not self.broken:
            await self._changed.park()
        return not self.broken


class Wire(httpcore.AsyncNetworkStream):
    """The sender's end of one connection."""

    def __init__(self, host: Host, manner: Manner) -> None:
        self.host = host
        self.connected_at = trio.current_time()
        self.scope = trio.CancelScope()
        self.to_receiver = Pipe()
        self.to_sender = Pipe()
        self._manner = manner
        self._closed = False

    async def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, *_: Any, **__: Any
    ) -> httpcore.AsyncNetworkStream:
        await trio.sleep(self.host.internet.chance.uniform(0.001, 0.05))
        if self._manner == "stalls in tls":
            await trio.sleep_forever()
        if self._manner == "other name" or server_hostname != self.host.name:
            self.cut()
            raise httpcore.ConnectError
        return self

    async def read(self, max_bytes: int, *_: Any, **__: Any) -> bytes:
        try:
            return await self.to_sender.take(max_bytes)
        except trio.BrokenResourceError as error:
            raise httpcore.ReadError from error

    async def write(self, buffer: bytes, *_: Any, **__: Any) -> None:
        await trio.lowlevel.checkpoint()
        if self._closed or self.to_sender.broken:
            raise httpcore.WriteError
        self.to_receiver.feed(buffer)

    async def aclose(self) -> None:
        self._closed = True
        self.cut()
        await trio.lowlevel.checkpoint()

    def cut(self) -> None:
        self.to_sender.destroy()
        self.to_receiver.destroy()
        self.scope.cancel()

    def get_extra_info(self, info: str) -> Any:
        return self.to_sender.is_readable if info == "is_readable" else None


class ReceiversEnd(trio.abc.Stream):
    """The receiver's end of a connection, as everything that plays a receiver takes it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return await self._wire.to_receiver.take(max_bytes or 65_536)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        self._wire.to_sender.feed(bytes(data))

    async def wait_send_all_might_not_block(self) -> None: ...

    async def aclose(self) -> None:
        self._wire.cut()


Answer = Callable[[Wire, Manner, Receipt], Awaitable[bool]]
"""Answers a request; whether another may follow on the connection."""


async def _responds_well(wire: Wire, manner: Manner, receipt: Receipt) -> bool:
    chance = wire.host.internet.chance
    await trio.sleep(chance.uniform(2, 9.5) if manner == "slowly" else chance.uniform(0.001, 0.3))
    closes = chance.random() < 0.2
    close = b"Connection: close\r\n" if closes else b""
    wire.to_sender.feed(b"HTTP/1.1 200 OK\r\n%sContent-Length: 2\r\n\r\nok" % close)
    receipt.answered_at = trio.current_time()
    if await wire.to_sender.drained():
        receipt.read_at = trio.current_time()
    return not closes


async def _responds_with_a_status(wire: Wire, manner: Manner, _: Receipt) -> bool:
    chance = wire.host.internet.chance
    await trio.sleep(chance.uniform(0.001, 0.3))
    wait = b"Retry-After: %d\r\n" % chance.choice((1, 7, 90, 4000, 99_999)) if manner in ("429", "503") else b""
    elsewhere = b"Location: https://elsewhere.example/\r\n" if manner == "302" else b""
    wire.to_sender.feed(b"HTTP/1.1 %s Status\r\n%s%sContent-Length: 3\r\n\r\nno\n" % (manner.encode(), wait, elsewhere))
    return True


async def _resets(wire: Wire, manner: Manner, _: Receipt) -> bool:
    await trio.sleep(wire.host.internet.chance.uniform(0.001, 0.3))
    if manner == "resets after work":
        wire.to_sender.feed(wire.host.internet.chance.choice((b"", b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\n")))
        await wire.to_sender.drained()
    wire.cut()
    return False


async def _closes_half_way(wire: Wire, _: Manner, receipt: Receipt) -> bool:
    """Says no more, and goes on reading. The head alone is success (decisions 8.2)."""
    wire.to_sender.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
    receipt.answered_at = trio.current_time()
    wire.to_sender.end()
    await trio.sleep_forever()
    return False


async def _responds_without_end(wire: Wire, manner: Manner, receipt: Receipt) -> bool:
    """A head, and a body that never ends: by drops, or in chunks."""
    chunked = manner == "endless"
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 100000"
    wire.to_sender.feed(b"HTTP/1.1 200 OK\r\n%s\r\n\r\n" % framing)
    receipt.answered_at = trio.current_time()
    while True:
        wire.to_sender.feed(b"1000\r\n" + b"z" * 4096 + b"\r\n" if chunked else b"x")
        await trio.sleep(0.01 if chunked else 0.9)
        if not await wire.to_sender.drained():
            return False


ANSWERS: dict[Manner, Answer] = {
    "500": _responds_with_a_status,
    "429": _responds_with_a_status,
    "503": _responds_with_a_status,
    "302": _responds_with_a_status,
    "410": _responds_with_a_status,
    "resets": _resets,
    "resets after work": _resets,
    "closes half-way": _closes_half_way,
    "drips its body": _responds_without_end,
    "endless": _responds_without_end,
}
"""Those that are neither here nor in `ENDS` answer well; what they do wrong they do elsewhere."""


async def _hangs_up(_: trio.abc.Stream) -> None: ...


async def _talks_nonsense(stream: trio.abc.Stream) -> None:
    await stream.send_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


ENDS: dict[Manner, Play] = {
    "never responds": never_responds,
    "drips its head": dripping_headers(0.9),
    "hangs up": _hangs_up,
    "nonsense": _talks_nonsense,
}
"""What ends the connection, sooner or later."""
