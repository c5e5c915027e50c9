"""The machine of a simulation: clock, disk, power and supervisor of the real service, which runs on it life after life.

A life ends by a power cut (nothing is drained, what was not committed is gone), by an order to stop (it drains), or by
a fault of the disk, and the supervisor starts the next one. The store is a real one; a commit takes a while, as on a
thread: who waits for it may go away, and only the power can stop it. Clients come in over real sockets of the kernel
within the process, which deliver at once, so that a run is the same every time.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import trio

from svc.config import Config
from svc.domain.records import Event
from svc.domain.webhooks.addresses import TargetPolicy
from svc.domain.webhooks.transport_types import Transport
from svc.service import Service
from svc.store.directory import Opened, open_directory
from svc.store.engine import EngineError, StoreFullError
from svc.store.lmdb.engine import LmdbEngine
from svc.store.store import Store
from svc.store.tables import EVENTS, TABLES, Table
from svc.webhook_transport.connections import tls_context
from svc.webhook_transport.transport import WebhookTransport
from svc.world import World
from tests.sim.internet import Internet
from tests.support.engines import Watched, opening
from tests.support.worlds import EPOCH_MS

T = TypeVar("T")

MAP_BYTES = 64 << 20
CONFIG = Config(
    trusted_proxies=("127.0.0.1/32",), batch_limit=8, admission_capacity=12, stage_capacity=3, drain_limit_s=8
)
_TLS = tls_context()
_TABLES: dict[str, Table[Any]] = {table.name: table for table in TABLES}


class DiskError(EngineError):
    """A commit failed otherwise than for want of room; nobody knows whether it is on the disk."""


class Disk(msgspec.Struct):
    """What goes wrong with commits."""

    slow_s: float = 0.02
    """The longest that one takes, on either side of the moment at which it is durable."""
    refusals: int = 0
    """So many of the next are refused for want of room."""
    breaks: list[str] = []
    """The next fail `before` or `after` they are durable."""


class Sabotage(msgspec.Struct, frozen=True):
    """A service that is broken on purpose: a simulation that does not notice is worth nothing."""

    loses: Callable[[str, Table[Any], tuple[Any, ...]], bool] = lambda verb, table, key: False
    """(`put` or `delete`, table, key): whether the store leaves this write out."""
    sends: Callable[[Transport], Transport] = lambda transport: transport
    """What stands between the outbox and the network."""


class Machine:
    """`now_ms` is its wall clock; `up` says whether a life can be talked to."""

    def __init__(self, directory: Path, chance: random.Random, internet: Internet, sabotage: Sabotage) -> None:
        self.chance = chance
        self.disk = Disk()
        self.offset_ms = 0
        self.lives = 0
        self.ended_at: list[float] = []
        """When lives ended, in virtual seconds."""
        self.broke_at: list[float] = []
        """When commits failed and when their actors heard of it, after which they may have begun again."""
        self.changed: dict[int, None] = {}
        """Numbers of organizations that have changed since somebody looked."""
        self.faults: list[str] = []
        """Ways in which a life ended that nothing explains."""
        self.up = trio.Event()
        self.opened: Opened
        self.service: Service
        self.is_full = False
        self.visitors: dict[bytes, str] = {}
        """request id -> visitor id of every event that a job wrote, whether or not it was committed."""
        self._directory = directory
        self._internet = internet
        self._sabotage = sabotage
        self._door: Door
        self._shutdown = trio.Event()
        self._power = trio.CancelScope()
        self._threads: dict[trio.CancelScope, None] = {}
        self._down_s = 1.0
        self._stopped = False

    def now_ms(self) -> int:
        return EPOCH_MS + round(trio.current_time() * 1000) + self.offset_ms

    @property
    def store(self) -> Store:
        return self.opened.store

    async def run(self) -> None:
        """The supervisor: one life after the other, until `stop`."""
        while not self._stopped:
            try:
                await self._live()
            except Exception as error:  # noqa: BLE001  every way to end is judged
                unexplained = [leaf for leaf in leaves(error) if not isinstance(leaf, DiskError)]
                self.faults += [f"the service ended: {leaf!r}" for leaf in unexplained]
            self.ended_at.append(trio.current_time())
            self._internet.cut_all()
            await trio.sleep(self._down_s)

    def crash(self, down_s: float) -> None:
        """The power fails, and comes back after so many seconds."""
        self._down_s = down_s
        self._power.cancel()
        self._go_down()

    def restart(self) -> None:
        """As `systemctl restart`: it drains first."""
        self._down_s = 0.5
        self._refuse_clients()
        self._shutdown.set()

    def stop(self) -> None:
        """Drain, for good. The store stays open."""
        self._stopped = True
        self._shutdown.set()

    def fill(self) -> None:
        """No page is left but those that the store can use again."""
        self.is_full = True
        if self.up.is_set():
            self._resize(self.store.statistics().used_bytes)

    def resume_reading(self) -> None:
        self.is_full = False
        self.disk.refusals = 0
        if self.up.is_set():
            self._resize(MAP_BYTES)

    def connect(self) -> socket.socket:
        """A client's end of a new connection. Raises `ConnectionRefusedError` where nobody listens."""
        if not self.up.is_set():
            raise ConnectionRefusedError
        return self._door.knock()

    async def _live(self) -> None:
        self.lives += 1
        alive = [True]

        async def run_sync(function: Callable[[], T], /) -> T:
            await trio.lowlevel.checkpoint_if_cancelled()
            with self._shielded():
                await trio.sleep(self.chance.uniform(0.0002, self.disk.slow_s))
                assert alive[0], "something outlived the power cut"
                result = self._commit(function)
                await trio.sleep(self.chance.uniform(0, self.disk.slow_s))
            if isinstance(result, DiskError):
                self.broke_at.append(trio.current_time())
                raise result
            return result

        world = World(self.now_ms, self.chance.randbytes, run_sync)
        map_bytes = 1 << 20 if self.is_full else MAP_BYTES  # lmdb makes it what is there, if that is more
        opened = open_directory(
            self._directory,
            run_sync,
            world.entropy,
            durable=False,
            map_bytes=map_bytes,
            open_engine=opening(lambda engine: Watched(engine, self._noted)),
        )
        self.opened = opened
        sender = WebhookTransport(self._internet.resolve, TargetPolicy(), _TLS, self.now_ms, backend=self._internet)
        self._door, self._shutdown, self._power = Door(), trio.Event(), trio.CancelScope()
        try:
            transport = self._sabotage.sends(sender)
            self.service = Service(CONFIG, world, opened, transport=transport, resolver=self._internet.resolve)
            with self._power:
                async with trio.open_nursery() as nursery:
                    await nursery.start(self.service.run, [self._door], self._shutdown)
                    self.up.set()
        finally:
            alive[0] = False
            self._go_down()
            if not self._stopped:
                opened.store.close()

    def _refuse_clients(self) -> None:
        if self.up.is_set():
            self.up = trio.Event()

    def _go_down(self) -> None:
        """With its threads."""
        self._refuse_clients()
        for thread in self._threads:
            thread.shield = False

    @contextmanager
    def _shielded(self) -> Generator[None]:
        with trio.CancelScope(shield=not self._power.cancel_called) as scope:
            self._threads[scope] = None
            try:
                yield
            finally:
                del self._threads[scope]

    def _commit(self, function: Callable[[], T]) -> T | DiskError:
        if self.disk.refusals:
            self.disk.refusals -= 1
            raise StoreFullError("no room, says the simulation")
        breaks = self.disk.breaks.pop(0) if self.disk.breaks else None
        if breaks is not None:
            self.broke_at.append(trio.current_time())
        if breaks == "before":
            return DiskError("broke before the commit was durable")
        result = function()
        return DiskError("broke after the commit was durable") if breaks == "after" else result

    def _noted(self, verb: str, name: str, packed: bytes, raw: bytes) -> bool:
        """Whether this write is to be made. Notes whose rows are changed."""
        table = _TABLES[name]
        key = table.key.unpack(packed)
        if isinstance(key[0], int):
            self.changed[key[0]] = None
        if table is EVENTS and verb == "put":
            event = table.decode(packed, raw)
            assert isinstance(event, Event)
            self.visitors[key[1]] = event.verdict.visitor_id
        return not self._sabotage.loses(verb, table, key)

    def _resize(self, map_bytes: int) -> None:
        """Between two transactions, as LMDB demands: none is open while anybody waits."""
        assert isinstance(self.store.engine, Watched)
        assert isinstance(self.store.engine.inner, LmdbEngine)
        self.store.engine.inner.resize(map_bytes)


class Door(trio.abc.Listener[trio.abc.Stream]):
    """A listener whose clients come from within the process."""

    def __init__(self) -> None:
        self._knocking, self._coming = trio.open_memory_channel[socket.socket](1000)
        self.socket = self

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 80)

    def knock(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        try:
            self._knocking.send_nowait(ours)
        except trio.BrokenResourceError:
            ours.close()
            theirs.close()
            raise ConnectionRefusedError from None
        return theirs

    async def accept(self) -> trio.abc.Stream:
        return ServerStream(await self._coming.receive())

    async def aclose(self) -> None:
        with suppress(trio.WouldBlock):
            while True:
                self._coming.receive_nowait().close()
        self._coming.close()
        await trio.lowlevel.checkpoint()


class ServerStream(trio.abc.Stream):
    """The service's end of a connection: a socket that says it comes from this machine's port."""

    def __init__(self, ours: socket.socket) -> None:
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        self.socket = _Named(self._stream.socket)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return await self._stream.receive_some(max_bytes)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Named:
    """As a TCP socket of loopback."""

    family = socket.AF_INET

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def getpeername(self) -> tuple[str, int]:
        return ("127.0.0.1", 40_000)

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 80)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def leaves(error: BaseException) -> Generator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from leaves(part)
    else:
        yield error
