"""The machine of a simulation: clock, disk, power and supervisor of the real service, which runs on it life after life.

A life ends by a power cut (nothing is drained, what was not committed is gone), by an order to stop (it drains), or by
a fault of the disk, and the supervisor starts the next one. With several workers each has a life of its own, and what
they share is real: the bus over its sockets, the token buckets, the leader's lock. The store is a real one; a commit
takes a while, as on a thread: who waits for it may go away, and only the end of its process can stop it. Clients come
in over real sockets of the kernel within the process, which deliver at once, so that a run is the same every time.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import trio

from svc.cli.serve.processes import LEADER_LOCK, ClockAtStart, clock_at_start, clock_obstacle
from svc.features.tables import TABLES
from svc.features.webhooks.addresses import TargetPolicy
from svc.features.webhooks.records import Transport
from svc.features.webhooks.transport.connections import tls_context
from svc.features.webhooks.transport.transport import WebhookTransport
from svc.http.waiting import LOOK_S
from svc.identify.records import Event
from svc.identify.tables import EVENTS
from svc.kernel.config import Config
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.engine import EngineError, StoreFullError
from svc.kernel.store.files import durable_files as files
from svc.kernel.store.installation import confirm_clock
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.local import LocalStore
from svc.kernel.store.schema.table import Table
from svc.kernel.store.store import Store
from svc.kernel.values.ids import DAY_MS
from svc.kernel.work.leader import Leadership
from svc.serve.service import Service
from svc.workers.bus import reach
from svc.workers.parent import failures_after, pause_s
from svc.workers.shared_memory import SharedMemory, WorkerSlot
from svc.world import World
from tests.sim.internet import Internet
from tests.sim.listener import SharedSocket, WorkerListener
from tests.support.engines import Watched, opening
from tests.support.worlds import EPOCH_MS

T = TypeVar("T")

MAP_BYTES = 64 << 20
OPERATOR_COMES_S = 60.0
"""After which somebody looks why a service does not start."""
CONFIG = Config(
    trusted_proxies=("127.0.0.1/32",), batch_limit=8, admission_capacity=12, stage_capacity=3, drain_limit_s=8
)
_TLS = tls_context()
_TABLES: dict[str, Table[Any]] = {table.name: table for table in TABLES}


class DiskError(EngineError):
    """A commit failed otherwise than for want of space; nobody knows whether it is on the disk."""


class Disk(msgspec.Struct):
    """What goes wrong with commits."""

    slow_s: float = 0.02
    """The longest that one takes, on either side of the moment at which it is durable."""
    refusals: int = 0
    """So many of the next are refused for want of space."""
    breaks: list[str] = []
    """The next fail `before` or `after` they are durable."""


class Sabotage(msgspec.Struct, frozen=True):
    """A service that is broken on purpose: a simulation that does not notice is worth nothing."""

    loses: Callable[[str, Table[Any], tuple[Any, ...]], bool] = lambda verb, table, key: False
    """(`put` or `delete`, table, key): whether the store leaves this write out."""
    sends: Callable[[Transport], Transport] = lambda transport: transport
    """What stands between the outbox and the network."""
    keeps: Callable[[bool], bool] = lambda acquired: acquired
    """Whether a worker is the leader, from whether it got the lock."""


class Machine:
    """`now_ms` is its wall clock; `up` says whether a life can be talked to."""

    def __init__(
        self, directory: Path, chance: random.Random, internet: Internet, sabotage: Sabotage, workers: int = 1
    ) -> None:
        self.directory = directory
        self.chance = chance
        self.internet = internet
        self.sabotage = sabotage
        self.disk = Disk()
        self.offset_ms = 0
        self.last_write_ms: int | None = None
        """To the store's file, by the wall clock, as the file system notes it."""
        self.start: ClockAtStart
        self.lives = 0
        """Of workers: each begins one."""
        self.ended_at: list[float] = []
        """When lives of the whole service ended, in virtual seconds."""
        self.leader_ended_at: list[float] = []
        """Those included in which the leader alone died."""
        self.broke_at: list[float] = []
        """When commits failed and when their actors heard of it, after which they may have begun again."""
        self.changed: dict[int, None] = {}
        """Numbers of organizations that have changed since somebody looked."""
        self.faults: list[str] = []
        """Ways in which a life ended that nothing explains."""
        self.up = trio.Event()
        self.opened: Opened
        self.operator = World(self.now_ms, chance.randbytes, _on_no_thread)
        """Of commands beside the service."""
        self.is_full = False
        self.visitors: dict[bytes, str] = {}
        """request id -> visitor id of every event that a job wrote, whether or not it was committed."""
        self._count = workers
        self._workers: dict[int, Worker] = {}
        """Those that live, by index."""
        self._socket: SharedSocket
        self._power = trio.CancelScope()
        self._down_s = 1.0
        self._is_ending = False
        self._stopped = False

    def now_ms(self) -> int:
        return EPOCH_MS + round(trio.current_time() * 1000) + self.offset_ms

    @property
    def store(self) -> Store:
        """As commands open it; each worker has one of its own over the same engine."""
        return self.opened.store

    @property
    def is_off(self) -> bool:
        """Whether the power has failed in this life."""
        return self._power.cancel_called

    async def run(self) -> None:
        """The supervisor: one life after the other, until `stop`."""
        while not self._stopped:
            try:
                await self._live()
            except Exception as error:  # noqa: BLE001  a commit that failed in the moment of the power cut
                self._judge(error)
            self.ended_at.append(trio.current_time())
            self.leader_ended_at.append(trio.current_time())
            self.internet.cut_all()
            await trio.sleep(self._down_s)

    def crash(self, down_s: float) -> None:
        """The power fails, and comes back after so many seconds."""
        self._down_s = down_s
        self._refuse_clients()
        self._power.cancel()
        for worker in self._workers.values():
            worker.let_go_of_threads()

    def restart(self, down_s: float = 0.5) -> None:
        """As `systemctl restart`: it drains first, and is away for `down_s`. The same follows where the parent of
        several workers dies.
        """
        self._down_s = down_s
        self._refuse_clients()
        for worker in self._workers.values():
            worker.shutdown.set()

    def kill(self, *, leader: bool) -> None:
        """`kill -9` of the leader, or of a worker that is not, where there is one."""
        victim = next((worker for worker in self._workers.values() if worker.is_leader == leader), None)
        if victim is not None:
            victim.kill()

    def stop(self) -> None:
        """Drain, for good. The store stays open."""
        self._stopped = self._is_ending = True
        for worker in self._workers.values():
            worker.shutdown.set()

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
        return self._socket.connect()

    def commit(self, function: Callable[[], T]) -> T | DiskError:
        """One commit, as the disk is now. Raises `StoreFullError`."""
        if self.disk.refusals:
            self.disk.refusals -= 1
            raise StoreFullError("no space, says the simulation")
        breaks = self.disk.breaks.pop(0) if self.disk.breaks else None
        if breaks is not None:
            self.broke_at.append(trio.current_time())
        if breaks == "before":
            return DiskError("broke before the commit was durable")
        result = function()
        return DiskError("broke after the commit was durable") if breaks == "after" else result

    async def _live(self) -> None:
        map_bytes = 1 << 20 if self.is_full else MAP_BYTES  # lmdb makes it what is there, if that is more
        self.opened = open_directory(
            self.directory,
            _on_no_thread,
            self.operator.entropy,
            durable=False,
            map_bytes=map_bytes,
            open_engine=opening(lambda engine: Watched(engine, self._noted)),
        )
        several = self._count > 1
        shared = SharedMemory(self._count, self.chance.randbytes) if several else None
        self._socket, self._power, self._is_ending = SharedSocket(is_kept=several), trio.CancelScope(), False
        try:
            with self._power:
                await self._until_clock_is_right()
                async with trio.open_nursery() as nursery:
                    for index in range(self._count):
                        nursery.start_soon(self._slot, WorkerSlot(index, self._count), shared)
        finally:
            self._refuse_clients()
            self._socket.close()
            if not self._stopped:
                self.opened.store.close()

    async def _until_clock_is_right(self) -> None:
        """As `svc serve` waits; after a minute an operator says that the clock is right, where it is."""
        self.start = clock_at_start(self.store, self.last_write_ms, trio.current_time())
        written_ms, since = self.last_write_ms, trio.current_time()
        while not self._is_ending and await clock_obstacle(self.store, self.operator, written_ms) is not None:
            await trio.sleep(LOOK_S)
            if abs(self.offset_ms) < DAY_MS and trio.current_time() - since > OPERATOR_COMES_S:
                with suppress(StoreFullError):
                    self.store.write_now([partial(confirm_clock, now_ms=self.now_ms())], may_use_reserve=True)

    def confirm_clock(self) -> None:
        """As the operator does who has set the clock right: a service that was started while it was ahead, and stored
        something then, would else wait for that time (decisions 17.3).
        """
        if abs(self.offset_ms) < DAY_MS and self.up.is_set():
            with suppress(StoreFullError):
                self.store.write_now([partial(confirm_clock, now_ms=self.now_ms())], may_use_reserve=True)

    async def _slot(self, slot: WorkerSlot, shared: SharedMemory | None) -> None:
        """The workers of a slot, one after the other, as the parent starts them; one worker alone has no parent."""
        failures = 0
        while not self._is_ending:
            self.lives += 1
            began = trio.current_time()
            worker = self._workers[slot.index] = Worker(self, slot, shared)
            try:
                await worker.run(self._socket.listener(), self.up.set)
            except Exception as error:  # noqa: BLE001  every way to end is judged
                self._judge(error)
            finally:
                del self._workers[slot.index]
            if worker.is_leader:
                self.leader_ended_at.append(trio.current_time())
                self.internet.cut_all()
            if slot.workers == 1:
                self._refuse_clients()
            failures = failures_after(failures, trio.current_time() - began, was_killed=True)
            if not self._is_ending:
                await trio.sleep(pause_s(failures))

    def _judge(self, error: Exception) -> None:
        unexplained = [leaf for leaf in leaves(error) if not isinstance(leaf, DiskError)]
        self.faults += [f"a worker ended: {leaf!r}" for leaf in unexplained]

    def _refuse_clients(self) -> None:
        """From here on the life ends, and no worker is replaced."""
        self._is_ending = True
        self._socket.is_kept = False
        if self.up.is_set():
            self.up = trio.Event()

    def _noted(self, verb: str, name: str, packed: bytes, raw: bytes) -> bool:
        """Whether this write is to be made. Notes whose rows are changed."""
        table = _TABLES[name]
        key = table.key.unpack(packed)
        self.last_write_ms = self.now_ms()
        if isinstance(key[0], int):
            self.changed[key[0]] = None
        if table is EVENTS and verb == "put":
            event = table.decode(packed, raw)
            assert isinstance(event, Event)
            self.visitors[key[1]] = event.verdict.visitor_id
        return not self.sabotage.loses(verb, table, key)

    def _resize(self, map_bytes: int) -> None:
        """Between two transactions, as LMDB demands: none is open while anybody waits."""
        assert isinstance(self.store.engine, Watched)
        assert isinstance(self.store.engine.inner, LmdbEngine)
        self.store.engine.inner.environment.set_mapsize(map_bytes)


class Worker:
    """One process of the service, from its start to its end: its threads, and with others its place among them."""

    def __init__(self, machine: Machine, slot: WorkerSlot, shared: SharedMemory | None) -> None:
        self.shutdown = trio.Event()
        self.is_leader = slot.workers == 1
        self._machine = machine
        self._slot = slot
        self._shared = shared
        self._life = trio.CancelScope()
        self._threads: dict[trio.CancelScope, None] = {}
        self._is_alive = True

    async def run(self, listener: WorkerListener, served: Callable[[], None]) -> None:
        """Serve until `shutdown` or `kill`; `served` is called when it does. Raises what the service raises."""
        machine = self._machine
        world = World(machine.now_ms, machine.chance.randbytes, self._run_sync, elapsed_s=trio.current_time)
        store = LocalStore(machine.store.engine, self._run_sync, machine.now_ms, trio.current_time)
        sender = WebhookTransport(
            machine.internet.resolve, TargetPolicy(), _TLS, machine.now_ms, backend=machine.internet
        )
        try:
            with ExitStack() as held, self._life:
                service = Service(
                    CONFIG,
                    world,
                    machine.opened._replace(store=store),
                    transport=machine.sabotage.sends(sender),
                    resolver=machine.internet.resolve,
                    expected_ms=machine.start.expected_ms(world),
                    **self._among_others(held),
                )
                async with trio.open_nursery() as nursery:
                    await nursery.start(service.run, [listener], self.shutdown)
                    served()
        finally:
            self._is_alive = False
            listener.close()

    def _among_others(self, held: ExitStack) -> dict[str, Any]:
        """What several workers share, as `svc.cli.serve.processes` gives it to each: all real, in one process."""
        if self._shared is None:
            return {}
        directory = self._machine.directory
        lock = held.enter_context(files.locked(directory / LEADER_LOCK))

        def acquire() -> bool:
            self.is_leader = self._machine.sabotage.keeps(lock.acquire())
            return self.is_leader

        return {
            "slot": self._slot,
            "bus": held.enter_context(reach(directory, self._slot)),
            "buckets": self._shared.buckets,
            "leadership": Leadership(acquire),
        }

    def kill(self) -> None:
        """It ends where it stands, with its threads."""
        self._life.cancel()
        self.let_go_of_threads()

    def let_go_of_threads(self) -> None:
        for thread in self._threads:
            thread.shield = False

    async def _run_sync(self, function: Callable[[], T], /, **_: Any) -> T:
        machine = self._machine
        await trio.lowlevel.checkpoint_if_cancelled()
        if getattr(function, "__func__", None) is LmdbEngine.note_commit:
            return function()  # a small file, of which nothing depends
        with self._shielded():
            await trio.sleep(machine.chance.uniform(0.0002, machine.disk.slow_s))
            assert self._is_alive, "something outlived its process"
            result = machine.commit(function)
            await trio.sleep(machine.chance.uniform(0, machine.disk.slow_s))
        if isinstance(result, DiskError):
            machine.broke_at.append(trio.current_time())
            raise result
        return result

    @contextmanager
    def _shielded(self) -> Generator[None]:
        is_over = self._life.cancel_called or self._machine.is_off
        with trio.CancelScope(shield=not is_over) as scope:
            self._threads[scope] = None
            try:
                yield
            finally:
                del self._threads[scope]


async def _on_no_thread(_: Callable[[], T], /, **__: Any) -> T:
    raise AssertionError("commands write at once, and only workers have threads")


def leaves(error: BaseException) -> Generator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from leaves(part)
    else:
        yield error
