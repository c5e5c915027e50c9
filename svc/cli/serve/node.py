"""`svc serve` on a database: one process, which is one of the nodes that serve it (docs/postgresql.md).

A node holds no lock. What only one of them may do goes with a lease; who they are and how many, with heartbeats; what
they say to each other, with notices.
"""

from __future__ import annotations

import os
import signal
import socket
from contextlib import closing
from functools import partial
from pathlib import Path

import structlog
import trio

from svc.cli.serve.reload import ReadConfig, Reload
from svc.cli.store.initialize import initialize
from svc.cli.store.upgrade import LoggedSteps, keep_settings
from svc.command.data_directory import opened_directory
from svc.features.tables import TABLES
from svc.http.server.listening import ListeningSockets
from svc.http.waiting import Obstructed, can_serve
from svc.identify.useragent import load_patterns
from svc.kernel.config import Config, ConfigError
from svc.kernel.config_loading import ONE_PROCESS
from svc.kernel.limits.ratelimit import DividedBuckets, MemoryBuckets
from svc.kernel.store.directory import Opened, is_initialized
from svc.kernel.store.engine import EngineError, UnavailableError
from svc.kernel.store.installation import NewerStoreError
from svc.kernel.store.opening import open_store
from svc.kernel.store.postgresql.cluster.leases import NEXT_STEP, ClockOffset, Lease, offset_now_s
from svc.kernel.store.postgresql.cluster.nodes import Node, PepperMark, PepperReplacedError
from svc.kernel.store.postgresql.cluster.notices import Notices
from svc.kernel.store.postgresql.cluster.partitions import PartitionLeases
from svc.kernel.store.postgresql.connection.errors import DISK_FULL, READ_ONLY, ConnectionLostError, SqlError
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.wire import Timeouts, Wire
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.store.postgresql.store import PostgresqlStore
from svc.kernel.store.postgresql.trial_write import try_write_now
from svc.kernel.store.postgresql.version import READ_VERSION, OtherVersionError, refuse_other
from svc.kernel.values.errors import DirectoryError, OperatorError
from svc.kernel.work.clock import BEHIND_MS
from svc.kernel.work.leader import LEADER, Leadership
from svc.serve.metrics.store import NodeSources
from svc.serve.service import NodeParts, Service
from svc.serve.serving import read_tls, run_until_signaled, sockets_for
from svc.workers.nodes import NodeBus
from svc.world import World, pause

log = structlog.get_logger()

NUMBER_BYTES = 7
AGAIN_S = 1.0
"""Before the next attempt to start, when the database went away during the last one."""
TRIAL_WRITE = Timeouts(statement_s=2.0, lock_s=2.0, idle_s=5.0, answer_s=3.0)
_SAID_AT_OPENING = (DISK_FULL, READ_ONLY, "42P01")
"""SQLSTATEs that are no obstacle here: a standby and a missing table end the start with a clearer message, and with a
full disk reads are served."""


class NoStoreError(DirectoryError):
    """The service was started on a database without a store: status 2, since the same start would fail again."""

    exit_status = 2


def serve_node(directory: Path, config: Config, url: StoreUrl, read: ReadConfig, *, init: bool, as_json: bool) -> int:
    """Serve a database as one of its nodes until SIGTERM; returns the exit status. The data directory has the pepper
    and the network data of this node. Raises `OperatorError`.
    """
    if config.workers != 1:
        raise ConfigError(f"workers = {config.workers}: {ONE_PROCESS}")
    load_patterns()
    world = World.real()
    sockets: ListeningSockets | None = None
    obstacle = partial(_obstacle, url, world)
    while True:
        if trio.run(obstacle) is not None:
            sockets = sockets or sockets_for(config.bind, config.metrics_bind)
            if not trio.run(can_serve, obstacle, sockets.clients, read_tls(config), world):
                return 0
        try:
            pepper = _prepare(directory, config, url, world, init=init, as_json=as_json)
            sockets = sockets or sockets_for(config.bind, config.metrics_bind)
            trio.run(partial(_serve, directory, config, url, read, world, pepper, sockets))
        except (DirectoryError, EngineError) as error:
            if not _is_away(error) and not _is_away(error.__cause__):
                unservable = DirectoryError(f"{url} cannot be served: {error}")
                raise error if isinstance(error, DirectoryError) else unservable from error
            log.warning("the database went away during the start, trying again", because=str(error))
            pause(AGAIN_S)
        else:
            return 0


def _is_away(error: BaseException | None) -> bool:
    return isinstance(error, ConnectionLostError | UnavailableError) and not isinstance(error, OtherVersionError)


async def _obstacle(url: StoreUrl, world: World) -> Obstructed | None:
    """Return why this node cannot serve yet: the database does not respond, as while it starts, or takes no write, or
    the clock is far behind its clock (decisions 17.3, 17.4). Leave errors that waiting cannot mend to `_prepare`, which
    raises them.
    """
    try:
        offset_s = await world.run_sync(partial(offset_now_s, url, world.now_ms))
        because = await world.run_sync(partial(_write_problem, url))
    except ConnectionLostError as error:
        return Obstructed(f"{url} does not respond: {error}")
    except EngineError:
        return None
    if offset_s * 1000 < -BEHIND_MS:
        return Obstructed(f"the clock is {-offset_s:.0f} s behind the database's: {NEXT_STEP}")
    return None if because is None else Obstructed(f"{url} does not take a write: {because}", "failing")


def _write_problem(url: StoreUrl) -> str | None:
    """Try a write to every table; return why it fails. Return `None` if it succeeds, or if there is no store of this
    version yet. Raises `EngineError`.
    """
    with closing(Wire.connect_now(url, TRIAL_WRITE)) as wire:
        try:
            (found,) = wire.exchange_now([READ_VERSION])
            refuse_other(found)
        except (SqlError, OtherVersionError):
            return None
        try:
            if found.rows:
                try_write_now(wire)
        except SqlError as error:
            return None if error.state in _SAID_AT_OPENING else str(error)
    return None


def _prepare(directory: Path, config: Config, url: StoreUrl, world: World, *, init: bool, as_json: bool) -> bytes:
    """Make the store with `init`, upgrade an older one, and return the pepper. Nodes that start together wait for each
    other's fences.
    """
    if is_initialized(url):
        open_store(url, world.run_sync, steps=LoggedSteps()).close()
    elif not init:
        raise NoStoreError(
            f"{url} holds no store of this service: `svc serve --init` or `svc org create` makes one, and "
            "`svc store move` brings that of a data directory along"
        )
    with opened_directory(directory, config, world, create=init) as found:
        if init:
            initialize(found, world, config.region, as_json=as_json)
        keep_settings(found, config)
        return found.pepper


async def _serve(
    directory: Path,
    config: Config,
    url: StoreUrl,
    read: ReadConfig,
    world: World,
    pepper: bytes,
    sockets: ListeningSockets,
) -> None:
    index = int.from_bytes(world.entropy(NUMBER_BYTES))
    name = f"{socket.gethostname()}/{os.getpid()}/{index:x}"
    connect = partial(Wire.connect, url)
    lease, partitions = Lease(LEADER, name), PartitionLeases(name)

    def jitter() -> float:
        return world.entropy(1)[0] / 255

    clock = ClockOffset(world.now_ms)
    node = Node(connect, name, [lease], jitter, partitions=partitions, pepper=PepperMark(pepper), clock=clock)
    notices = Notices(connect, jitter, lambda: node.living > 1)

    def is_answered() -> bool:
        return node.is_answered() and clock.offset_s * 1000 > -BEHIND_MS

    await node.beat()  # before anything is admitted, it is known among how many
    with closing(opened_store(url, config, world)) as store:
        sources = NodeSources(node.statistics, notices.statistics, store.exchanges)
        service = Service(
            config,
            world,
            Opened(store, pepper, directory),
            directory,
            bus=NodeBus(notices, index, partitions),
            buckets=DividedBuckets(MemoryBuckets(), lambda: node.living),
            leadership=Leadership(lease.is_held, lease.lost),
            expected_ms=world.now_ms() - int(clock.offset_s * 1000),
            node=NodeParts(sources, is_answered, partitions, store.kept_by(lease)),
        )
        reload = Reload(service, config, read)
        log.info("node", name=name, nodes=node.living, database=str(url))
        problems: list[OperatorError] = []
        async with trio.open_nursery() as nursery:

            async def run_node() -> None:
                try:
                    await node.run()
                except PepperReplacedError as error:
                    problems.append(error)
                    nursery.cancel_scope.cancel()

            async def drain_for_another_version() -> None:
                problems.append(NewerStoreError(await store.other_version()))
                log.error("the store has another version, draining", because=str(problems[-1]))
                signal.raise_signal(signal.SIGTERM)

            nursery.start_soon(run_node)
            nursery.start_soon(drain_for_another_version)
            await run_until_signaled(service, sockets, None, partial(read_tls, config), reload)
            nursery.cancel_scope.cancel()
    if problems:
        raise problems[0]


def opened_store(url: StoreUrl, config: Config, world: World) -> PostgresqlStore:
    """Return the store of a database that is ready to be served. Raises `EngineError`."""
    engine = PostgresqlEngine.open(url, map_bytes=config.map_bytes())
    engine.open_tables([table.name for table in TABLES])
    connections = config.store_connections
    return PostgresqlStore(
        engine,
        url,
        world,
        writers=connections,
        readers=connections,
        organizations_per_group=config.organizations_per_transaction,
    )
