"""The composition root: opens the store, makes the mailboxes, runs the nurseries, drains, closes.

Shutdown drains by closing rather than by cancelling: the edge stops accepting and finishes its requests, the first
mailbox is closed, its end travels stage by stage, and then the store is closed. One limit stands around it all.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog
import trio

from svc.actors import retention, settler, upkeep
from svc.actors.network_watch import NetworkWatch
from svc.actors.outbox import Outbox
from svc.actors.pipeline import Pipeline
from svc.actors.refusal_log import RefusalLog
from svc.actors.supervisor import supervise
from svc.config import Config, ConfigError
from svc.domain import deferred
from svc.domain.attestation import Trust, published_trust, read_revoked, read_roots
from svc.domain.model import Report, RequestFacts
from svc.domain.useragent import read_agent
from svc.domain.webhooks.signature import secrets_key
from svc.domain.webhooks.transport_types import Transport
from svc.http.app import App
from svc.http.authentication import Gate
from svc.http.edge import Edge, EdgeLimits, open_listeners, serve
from svc.http.endpoint import Services
from svc.http.exchange import edge_refusal
from svc.network_data.builtin import BuiltInRanges
from svc.store.directory import Opened, open_directory
from svc.store.store import DEFAULT_MAP_BYTES
from svc.webhook_transport.connections import tls_context
from svc.webhook_transport.resolver import SystemResolver
from svc.webhook_transport.transport import WebhookTransport
from svc.world import World

T = TypeVar("T")
log = structlog.get_logger()

_ANYBODY = RequestFacts(ip="127.0.0.1", user_agent="Mozilla/5.0")
DRAIN_MARGIN_S = 2.0
"""Beyond `drain_limit_s`, for the stages behind the edge to end and the last commit to be made."""


class Service:
    """One server over one open data directory."""

    def __init__(
        self,
        config: Config,
        world: World,
        opened: Opened,
        directory: Path | None = None,
        transport: Transport | None = None,
    ) -> None:
        """`directory` is the data directory, for the network files in it; `transport` sends webhooks in the place of
        the network. Raises `ConfigError`.
        """
        self._config = config
        self._world = world
        self._store = opened.store
        built_in = BuiltInRanges() if config.network_builtin else None
        self._network = NetworkWatch(config.network_files(directory), built_in)
        self._network.read_now()
        self._receivers = webhook_transport(config, world)
        secrets = secrets_key(opened.pepper)
        self.outbox = Outbox(opened.store, world, transport or self._receivers, secrets)
        self.refusals = RefusalLog(opened.store, world, self.outbox.nudge)
        self.pipeline = Pipeline(
            opened.store,
            lambda: self._network.ranges,
            read_trust(config),
            admission_capacity=config.admission_capacity,
            stage_capacity=config.stage_capacity,
            batch_limit=config.batch_limit,
            nudge=self.outbox.nudge,
        )
        self.services = Services(
            world=world,
            store=opened.store,
            admission=self.pipeline.admission,
            gate=Gate(opened.pepper, config.region, config.networks(), config.connection_os_header),
            deferred_key=deferred.signing_key(opened.pepper),
            network_data=self.network_data,
            note_refusal=self.refusals.note,
            request_timeout_s=config.request_timeout_s,
        )

    async def run(
        self,
        listeners: Listeners,
        shutdown: trio.Event,
        *,
        task_status: trio.TaskStatus[Edge] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until `shutdown`, then drain. The store stays open: whoever opened it closes it."""
        limits = self._edge_limits()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(supervise, "upkeep", partial(upkeep.run, self._store))
            watch = partial(self._network.run, self._world.run_sync, self._config.network_interval_s)
            nursery.start_soon(supervise, "network watch", watch)
            sweeper = partial(retention.run, self._store, self._world, self._config.visitor_retention_days)
            nursery.start_soon(supervise, "retention", sweeper)
            nursery.start_soon(supervise, "settler", partial(settler.run, self._store, self._world))
            nursery.start_soon(supervise, "outbox", self.outbox.run)
            nursery.start_soon(supervise, "refusal log", self.refusals.run)
            nursery.start_soon(self._bound_the_drain, shutdown, nursery.cancel_scope)
            async with trio.open_nursery() as pipeline:
                pipeline.start_soon(self.pipeline.run)
                refuse = partial(edge_refusal, self.services.world)
                await serve(
                    App(self.services), listeners, limits, refuse=refuse, shutdown=shutdown, task_status=task_status
                )
                self.pipeline.admission.close()
            await self.outbox.drain()
            nursery.cancel_scope.cancel()
        await self._receivers.aclose()

    async def _bound_the_drain(self, shutdown: trio.Event, scope: trio.CancelScope) -> None:
        await shutdown.wait()
        scope.deadline = trio.current_time() + self._config.drain_limit_s + DRAIN_MARGIN_S

    def _edge_limits(self) -> EdgeLimits:
        return EdgeLimits(
            max_connections=self._config.max_connections,
            request_timeout_s=self._config.request_timeout_s,
            write_timeout_s=self._config.write_timeout_s,
            keep_alive_timeout_s=self._config.keep_alive_timeout_s,
            drain_timeout_s=self._config.drain_limit_s,
        )

    def network_data(self) -> str:
        """`ok`, `missing` or `stale`, now."""
        today = datetime.fromtimestamp(self._world.now_ms() / 1000, UTC).date()
        return self._network.data.state(today, self._config.network_stale_days)


def webhook_transport(config: Config, world: World) -> WebhookTransport:
    """The way to receivers, as the settings open it."""
    ca_file = None if config.webhook_ca_file is None else Path(config.webhook_ca_file)
    return WebhookTransport(SystemResolver(), config.webhook_networks(), tls_context(ca_file), world.now_ms)


def read_trust(config: Config) -> Trust:
    """What attestations are measured against, from the files that the settings name. Raises `ConfigError`."""
    roots, revoked = config.attestation_roots_file, config.attestation_status_file
    return Trust(
        roots=published_trust().roots if roots is None else _read_file("attestation_roots_file", roots, read_roots),
        revoked=frozenset() if revoked is None else _read_file("attestation_status_file", revoked, read_revoked),
        packages=frozenset(config.attestation_packages),
        signing_digests=frozenset(map(bytes.fromhex, config.attestation_digests)),
    )


def _read_file(setting: str, file: str, read: Callable[[bytes], frozenset[T]]) -> frozenset[T]:
    try:
        return read(Path(file).read_bytes())
    except OSError as error:
        raise ConfigError(f"{setting}: cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{setting}: {file}: {error}") from error


@contextmanager
def opened_directory(directory: Path, config: Config, world: World, *, create: bool = True) -> Generator[Opened]:
    """A data directory with these settings, closed at the end."""
    opened = open_directory(
        directory,
        world.run_sync,
        world.entropy,
        pepper_file=None if config.pepper_file is None else Path(config.pepper_file),
        map_bytes=int(config.map_gib * (DEFAULT_MAP_BYTES // 64)),
        create=create,
    )
    try:
        yield opened
    finally:
        opened.store.close()


Listeners = list[trio.SocketListener] | list[trio.SSLListener[trio.SocketStream]]


async def listen(bind: str) -> Listeners:
    """Listen on HOST:PORT. Raises `ConfigError` where that cannot be."""
    try:
        return await open_listeners(bind, EdgeLimits().backlog)
    except ValueError as error:
        raise ConfigError(f"bind: {error}") from error
    except OSError as error:
        raise ConfigError(f"cannot listen on {bind}: {error.strerror or error}; choose another with --bind") from error


async def run_until_signalled(
    service: Service, bind: str, once_serving: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Serve on `bind` until SIGTERM or SIGINT, then drain and return. `once_serving` runs beside it when it is up."""
    shutdown = trio.Event()
    read_agent(_ANYBODY, Report())  # loads the patterns: half a second that no visitor should wait for
    listeners = await listen(bind)
    async with trio.open_nursery() as nursery:
        await nursery.start(_watch_signals, shutdown)
        edge: Edge = await nursery.start(partial(service.run, listeners, shutdown))
        log.info("serving", addresses=[f"{host}:{port}" for host, port, *_ in edge.addresses])
        if once_serving is not None:
            await once_serving()
        await shutdown.wait()
        log.info("draining")
    done = service.services.store.statistics()
    log.info("stopped", commits=done.commits, jobs=done.jobs)


async def _watch_signals(
    shutdown: trio.Event, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            shutdown.set()
            return
