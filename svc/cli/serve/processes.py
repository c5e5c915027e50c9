"""The processes of `svc serve`: one that serves, or a parent and its workers.

Importing it takes most of the time that a start takes, so `serve` does so when it has nothing else to begin.
"""

from __future__ import annotations

import gc
import os
from functools import partial
from pathlib import Path
from typing import NamedTuple

import structlog
import trio

from svc.cli import GEN0_THRESHOLD
from svc.cli.serve.reload import ReadConfig, Reload
from svc.cli.store.early_integrity_check import EarlyIntegrityCheck
from svc.cli.store.initialize import initialize
from svc.cli.store.upgrade import keep_settings, locked_directory, opened_to_serve
from svc.command.data_directory import opened_directory
from svc.command.logs import set_up_logging
from svc.features.retention.jobs import last_believed_ms
from svc.http.server.listening import ListeningSockets
from svc.http.waiting import Obstructed, can_serve
from svc.identify.network_data.watch import NetworkWatch
from svc.identify.useragent import load_patterns
from svc.kernel.config import Config
from svc.kernel.store.directory import last_write_ms
from svc.kernel.store.engine import CheckDepth
from svc.kernel.store.files import durable_files as files
from svc.kernel.store.installation import clock_confirmation
from svc.kernel.store.lmdb import witness
from svc.kernel.store.lmdb.witness import state_of
from svc.kernel.store.opening import write_problem
from svc.kernel.store.store import Store
from svc.kernel.values.errors import OperatorError
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.timestamps import timestamp
from svc.kernel.work.clock import seconds_behind
from svc.kernel.work.leader import LEADER, Leadership
from svc.serve.service import DRAIN_MARGIN_S, Service
from svc.serve.service_parts import network_watch
from svc.serve.serving import read_tls, run_until_signaled, sockets_for
from svc.workers.bus import reach
from svc.workers.parent import Parent, ignore_signals
from svc.workers.shared_memory import SharedMemory, WorkerSlot
from svc.world import World

log = structlog.get_logger()

LEADER_LOCK = f"{LEADER}.lock"
"""In the data directory: held by the worker that does what only one of them may do."""
PARENT_MARGIN_S = 3.0
"""After the limits of the workers' own drain, before the parent ends those that still run."""
GEN2_THRESHOLD = 100
"""Full searches for garbage are this many times rarer than those of the middle generation; Python's own is 10."""


def serve_directory(
    directory: Path,
    config: Config,
    read: ReadConfig,
    check: EarlyIntegrityCheck | None,
    *,
    init: bool,
    as_json: bool,
    copy: bool,
) -> int:
    """Serve a data directory until SIGTERM, alone in it; returns the exit status. Returns in each worker, too.

    `check` is the integrity check of its store that has begun; the rest are options of `svc serve`.
    """
    load_patterns()
    world = World.real()
    written_ms, at_s = last_write_ms(directory), world.elapsed_s()
    wait_s = config.takeover_wait_s
    with locked_directory(directory, config, world, "svc serve", create=init, copy=copy, wait_s=wait_s):
        workers = config.worker_count(len(os.sched_getaffinity(0)))
        sockets = None
        if (problem := witness.went_back(directory / "store")) is not None:  # before anything is committed
            log.critical("the store is older than it was", because=problem)
        if trio.run(disk_obstacle, directory, config, world) is not None:
            sockets = sockets_for(config.bind, config.metrics_bind)
            waiting = partial(disk_obstacle, directory, config, world)
            if not trio.run(can_serve, waiting, sockets.clients, read_tls(config), world):
                return 0
        with (
            opened_to_serve(directory, config, world, create=init) as found,
            reach(directory, WorkerSlot()) as bus,
        ):
            if check is None:
                found.store.engine.check(CheckDepth.BRANCHES)
            else:
                check.finish(found.store)
            if init:
                initialize(found, world, config.region, as_json=as_json)
            keep_settings(found, config)
            start = clock_at_start(found.store, written_ms, at_s)
            service = Service(config, world, found, directory, bus=bus, expected_ms=start.expected_ms(world))
            sockets = sockets or sockets_for(config.bind, config.metrics_bind)
            obstacle = partial(clock_obstacle, found.store, world, start.last_write_ms)
            if not trio.run(can_serve, obstacle, sockets.clients, read_tls(config), world):
                return 0
            if workers == 1:
                tune_garbage_collection()
                reload = Reload(service, config, read)
                trio.run(run_until_signaled, service, sockets, None, partial(read_tls, config), reload)
                return 0
        del found, service, bus  # made here so that what the settings get wrong ends the program, and no worker
        return _serve_with(workers, directory, config, read, sockets, start)


class ClockAtStart(NamedTuple):
    """The reference times with which a service compares its clock from its start on (decisions 17.3)."""

    last_write_ms: int | None
    """To the store, before this start."""
    believed_ms: int | None
    """When retention last believed the clock: one that has jumped ahead may have written since."""
    at_s: float
    """On the monotonic clock, which all processes of a machine share."""

    def expected_ms(self, world: World) -> int | None:
        """Return the least Unix ms that a correct clock shows now; `None` if nothing was written before."""
        if self.last_write_ms is None:
            return None
        known_ms = min(self.last_write_ms, self.last_write_ms if self.believed_ms is None else self.believed_ms)
        return known_ms + int((world.elapsed_s() - self.at_s) * 1000)


def clock_at_start(store: Store, written_ms: int | None, at_s: float) -> ClockAtStart:
    """Return the reference times of this store. `written_ms`: the last write to the store (Unix ms), read at `at_s` on
    the monotonic clock.
    """
    with store.read() as snapshot:
        return ClockAtStart(written_ms, last_believed_ms(snapshot), at_s)


async def disk_obstacle(directory: Path, config: Config, world: World) -> Obstructed | None:
    """Return why nothing can be stored, as the disk fails; `None` if a write was stored (decisions 17.4). To be called
    while this process does not have the store open.
    """
    because = await world.run_sync(partial(write_problem, directory / "store", config.map_bytes()))
    return None if because is None else Obstructed(f"the disk does not take a write: {because}", "failing")


async def clock_obstacle(store: Store, world: World, last_write_ms: int | None) -> Obstructed | None:
    """Return why the clock does not permit serving; `None` if it does, or an operator has confirmed it."""
    now_ms = world.now_ms()
    behind_s = seconds_behind(now_ms, last_write_ms)
    if not behind_s or last_write_ms is None:
        return None
    with store.read() as snapshot:
        confirmed_ms = clock_confirmation(snapshot)
    if abs(now_ms - confirmed_ms) < DAY_MS:
        return None
    return Obstructed(
        f"the clock says {timestamp(now_ms)}, {behind_s:.0f} s before the last write to the store: set it, or run "
        "`svc retention confirm` if it is right"
    )


class _Inherited(NamedTuple):
    parent: Parent
    shared: SharedMemory
    sockets: ListeningSockets
    network: NetworkWatch
    start: ClockAtStart


def _serve_with(
    workers: int, directory: Path, config: Config, read: ReadConfig, sockets: ListeningSockets, start: ClockAtStart
) -> int:
    """Run the parent of several workers to its end, or a worker to its own. Return the exit status."""
    read_tls(config)
    network = network_watch(config, directory)
    shared = SharedMemory(workers, World.real().entropy)
    drain_s = config.drain_limit_s + DRAIN_MARGIN_S + PARENT_MARGIN_S
    parent = Parent(workers, drain_s, sockets.close, hang_s=config.worker_hang_s, state_of=state_of)
    tune_garbage_collection()
    slot = parent.run()
    if isinstance(slot, int):
        return slot
    set_up_logging(config.log_format, slot.index)
    try:
        _work(slot, _Inherited(parent, shared, sockets, network, start), directory, config, read)
    except OperatorError as error:
        log.error("worker cannot serve", because=error.line)  # noqa: TRY400  said in full
        return error.exit_status
    finally:
        ignore_signals()
    return 0


def _work(slot: WorkerSlot, inherited: _Inherited, directory: Path, config: Config, read: ReadConfig) -> None:
    """Serve in this process, one of several workers, until it is to end."""
    world = World.real()
    parent, shared, sockets, network, start = inherited
    tls, obstacle = partial(read_tls, config), partial(disk_obstacle, directory, config, world)
    if not trio.run(can_serve, obstacle, sockets.clients, tls(), world, parent.lifeline):
        return
    with (
        opened_directory(directory, config, world, create=False) as found,
        files.locked(directory / LEADER_LOCK) as lock,
        reach(directory, slot) as bus,
    ):
        found.store.turns.bell = shared.bell
        service = Service(
            config,
            world,
            found,
            directory,
            slot=slot,
            bus=bus,
            buckets=shared.buckets,
            counts=shared.counts,
            network=network,
            leadership=Leadership(lock.acquire),
            worker_restarts=parent.board.restarts,
            expected_ms=start.expected_ms(world),
            pulse=parent.board,
            clock_memory=shared.clock,
        )

        async def mark(_: list[str]) -> None:
            parent.board.mark_serving(slot.index, world.elapsed_s())

        reload = Reload(service, config, read, slot.index)
        share = shared.connections.of(slot.index)
        trio.run(run_until_signaled, service, sockets, mark, tls, reload, parent.lifeline, share)


def tune_garbage_collection() -> None:
    """Make full runs of the garbage collector rare, since each blocks all requests. The objects of the program itself
    are excluded. Requests that are handled together hold more objects than `GEN0_THRESHOLD`, and nothing of it is
    garbage. Requests and connections leave no reference cycles, so that a full run (40 ms with a thousand
    connections) is needed only for the few that faults leave.
    """
    gc.collect()
    gc.freeze()
    _, gen1_threshold, _ = gc.get_threshold()
    gc.set_threshold(GEN0_THRESHOLD, gen1_threshold, GEN2_THRESHOLD)
