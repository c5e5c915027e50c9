"""The composition root: opens the store, makes the mailboxes, runs the nurseries, drains, closes.

Shutdown drains by closing rather than by cancelling: the edge stops accepting and finishes its requests, the first
mailbox is closed, its end travels stage by stage, and then the store is closed. One limit stands around it all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
import trio

from svc.features.accounts import recounter
from svc.features.billing import settler
from svc.features.billing.credit_watch import CreditWatch
from svc.features.events.live import LiveHub
from svc.features.identification.pipeline.pipeline import Pipeline
from svc.features.labels.queries import PerformanceSums
from svc.features.members.sign_in.entering import PasswordHasher
from svc.features.members.sign_in.openid import Provider
from svc.features.retention import sweeper
from svc.features.routes import API, PATHS
from svc.features.try_page import routes as try_page
from svc.features.webhooks import routes as webhook_routes
from svc.features.webhooks.content.envelope import secrets_key
from svc.features.webhooks.records import Transport
from svc.features.webhooks.sending.attempts import EVERY_PARTITION, Partitions
from svc.features.webhooks.sending.outbox import Outbox
from svc.features.webhooks.sending.refusal_log import RefusalLog
from svc.features.webhooks.transport.resolver import Resolver, SystemResolver
from svc.features.webhooks.transport.transport import check_target
from svc.http.body import BodyBudget
from svc.http.callers.caller import AuthPolicy, ConnectionHeaders
from svc.http.callers.limits import RequestLimits
from svc.http.exchange import Exchange, application
from svc.http.pages.app import documentation, loaded_app, respond, site
from svc.http.responses import edge_refusal
from svc.http.route import Services, Webhooks
from svc.http.server.capacity import EdgeLimits, fitting
from svc.http.server.fair_queue import KnownKeys
from svc.http.server.listening import PlainListener, TlsListener
from svc.http.server.messages import Application
from svc.http.server.server import Edge, serve
from svc.http.traffic import Describe, Traffic, details
from svc.identify.indexing import indexer
from svc.identify.keys import deferred
from svc.identify.keys.signed_verdict import verdict_key
from svc.identify.network_data.watch import NetworkWatch
from svc.identify.recording.visitors import TAKEN_AT_ONCE
from svc.kernel.config import Config
from svc.kernel.limits.ratelimit import Buckets, MemoryBuckets
from svc.kernel.store.directory import Opened, date_last_write
from svc.kernel.store.store import Store
from svc.kernel.values.encodings import cursors_key
from svc.kernel.values.partitions import EndpointKey
from svc.kernel.values.timestamps import utc
from svc.kernel.work import leader
from svc.kernel.work.clock import ClockMemory, ClockWatch, ServiceClock
from svc.kernel.work.store_watch import CorruptRows, EventLoopLag, Pulse, StoreWatch, maintain
from svc.kernel.work.supervisor import supervise
from svc.serve.metrics.registry import Metrics, Sources
from svc.serve.metrics.scrape import Scrape, expected_hosts
from svc.serve.metrics.store import NodeSources
from svc.serve.relay import Relay
from svc.serve.service_parts import network_watch, openid_provider, read_trust, webhook_targets, webhook_transport
from svc.workers.bus import Alone, Bus
from svc.workers.pulse import PulseBoard
from svc.workers.shared_memory import Counts, WorkerSlot
from svc.world import World

T = TypeVar("T")
Listeners = list[PlainListener] | list[TlsListener]

METRICS_CONNECTIONS = 16
STREAMS_PART = 4
"""One in this number of connections may be a live stream."""
DRAIN_MARGIN_S = 2.0
"""Beyond `drain_limit_s`, for the stages behind the edge to end and the last commit to be made."""


class NodeParts(NamedTuple):
    """What a service has of the database that it serves as one of several nodes."""

    sources: NodeSources
    is_answered: Callable[[], bool]
    """Whether the database has answered lately."""
    partitions: Partitions
    """Of the endpoints: this process sends to those in them, and others to the rest."""
    kept: Store
    """The store, for what the leader runs: it refuses the writes of a process that is no longer the leader."""


_pages = cache(partial(loaded_app, site, documentation, api=API, reference=webhook_routes.document))
"""The application of the pages, which knows nothing of a service: its rules are compiled, and its files read, once in
a process."""


class Service:
    """One server over one open data directory: every actor, the HTTP application and what they share."""

    def __init__(  # noqa: PLR0913  what it is made of, and with whom it shares
        self,
        config: Config,
        world: World,
        opened: Opened,
        directory: Path | None = None,
        transport: Transport | None = None,
        resolver: Resolver | None = None,
        *,
        slot: WorkerSlot = WorkerSlot(),  # noqa: B008  immutable
        bus: Bus | None = None,
        buckets: Buckets | None = None,
        counts: Counts | None = None,
        network: NetworkWatch | None = None,
        leadership: leader.Leadership = leader.ONLY_PROCESS,
        node: NodeParts | None = None,
        worker_restarts: Callable[[], Sequence[int]] = lambda: [0],
        expected_ms: int | None = None,
        pulse: Pulse | None = None,
        clock_memory: ClockMemory | None = None,
    ) -> None:
        """Take `directory`, the data directory, for its network files. `transport` sends webhooks, and `resolver` looks
        up their hosts, in place of the network's. `slot` is this worker's, `bus` reaches the others, and `buckets` and
        `counts` are those of all. `network` has been read already. `leadership` says whether this process does what
        only one may do (`kernel/work/leader.py`); `node` is what it has of a database; `worker_restarts`, how often
        each worker was replaced; `expected_ms`, what a right clock shows now at least, by the last write to the store;
        `pulse` is that of all workers, `clock_memory` that of `ServiceClock`. Raises `ConfigError`.
        """
        self._clock_watch = ClockWatch(expected_ms or world.wall_ms(), world.elapsed_s())
        store = opened.store
        clock = ServiceClock(
            world.wall_ms, world.elapsed_s, clock_memory, written_ms=expected_ms, commits=lambda: store.commits
        )
        world = world.dated(clock.now_ms)
        config, buckets = divide_limits(config, slot.workers), buckets or MemoryBuckets()
        self._config, self._world, self._store = config, world, opened.store
        self.certificate_expires_ms = 0
        """When the certificate that is served with expires (Unix ms); 0 = plain HTTP."""
        self.traffic = Traffic(config.log_requests, _describe(config))
        self._edge: Edge | None = None
        self._corrupt = CorruptRows()
        self._progress = sweeper.Progress(world.now_ms(), self._corrupt)
        self._recounted = recounter.RecountProgress()
        self._restarts: Counter[str] = Counter()
        self._loop_watch = EventLoopLag()
        self._network = network or network_watch(config, directory)
        self._leadership, self._worker_restarts = leadership, worker_restarts
        resolver = resolver or SystemResolver()
        self._receivers = webhook_transport(config, world, resolver)
        self._node, self._kept_store = node, opened.store if node is None else node.kept
        partitions = EVERY_PARTITION if node is None else node.partitions
        transport, key = transport or self._receivers, secrets_key(opened.pepper)
        self.outbox = Outbox(opened.store, world, transport, key, partitions, self._corrupt, config.console_at())
        self._credit = CreditWatch(self._kept_store, world, self._corrupt)
        self.refusals = RefusalLog(self._kept_store, world, self._due, self._corrupt)
        self.live = LiveHub(max(1, config.max_connections // STREAMS_PART))
        self._bus = bus = bus or Alone()
        self.relay = Relay(bus, self.outbox, self.refusals, self.live)
        self.pipeline = self._pipeline(config, buckets, 1 if slot.workers == 1 else TAKEN_AT_ONCE)
        self._pulse, self._index = pulse or PulseBoard(slot.workers), slot.index
        date = _nothing if directory is None or node is not None else partial(date_last_write, directory)
        self.watch = StoreWatch(opened.store, clock, self._pulse, slot.index, date)
        self.services = self._services(config, opened, buckets, resolver)
        self.metrics = Metrics(self._sources(), slot, counts)
        self._shares_metrics = slot.workers > 1

    def _services(self, config: Config, opened: Opened, buckets: Buckets, resolver: Resolver) -> Services:
        connection = ConnectionHeaders(config.connection_os_header, config.connection_tls_header)
        return Services(
            world=self._world,
            store=opened.store,
            watch=self.watch,
            corrupt=self._corrupt,
            policy=AuthPolicy(opened.pepper, config.region, config.networks(), connection),
            deferred_key=deferred.signing_key(opened.pepper),
            verdict_key=verdict_key(opened.pepper),
            network_data=self.network_data,
            note_refusal=self.relay.refused,
            webhooks=self._webhooks(opened.pepper, resolver),
            request_timeout_s=config.request_timeout_s,
            limits=RequestLimits(config.allowances(), config.shares(), buckets),
            public_url=config.console_at(),
            quotas=config.quotas(),
            bodies=BodyBudget(config.body_budget_mib << 20),
            end_viewers=self.relay.ended,
            try_key=try_page.checked_key(opened, config.try_key, self._world.now_ms()),
            event_retention_ms=config.event_retention_ms(),
            is_store_answering=_yes if self._node is None else self._node.is_answered,
            parts={
                Pipeline: self.pipeline,
                LiveHub: self.live,
                PerformanceSums: PerformanceSums(),
                PasswordHasher: PasswordHasher(opened.pepper, self._world.run_sync),
                Provider: openid_provider(config, opened.store),
            },
        )

    def _due(self, queues: Iterable[EndpointKey]) -> None:
        self.relay.due(queues)

    def _pipeline(self, config: Config, buckets: Buckets, numbers_at_once: int) -> Pipeline:
        return Pipeline(
            self._store,
            lambda: self._network.ranges,
            read_trust(config),
            now_ms=self._world.now_ms,
            admission_capacity=config.admission_capacity,
            stage_capacity=config.stage_capacity,
            batch_limit=config.batch_limit,
            shares=config.shares(),
            quotas=config.quotas(),
            wake=self.relay.due,
            publish=self.relay.identified,
            buckets=buckets,
            numbers_at_once=numbers_at_once,
            corrupt=self._corrupt,
        )

    def _webhooks(self, pepper: bytes, resolver: Resolver) -> Webhooks:
        return Webhooks(
            due=self.relay.due,
            removed=self.relay.removed,
            is_behind=self.outbox.is_behind,
            secrets_key=secrets_key(pepper),
            cursors_key=cursors_key(pepper),
            check_target=partial(check_target, resolver=resolver, reach=webhook_targets(self._config, self._world)),
        )

    def _sources(self) -> Sources:
        return Sources(
            world=self._world,
            store=self._store,
            traffic=self.traffic,
            edge=lambda: None if self._edge is None else self._edge.statistics(),
            pipeline=self.pipeline,
            outbox=self.outbox,
            live=self.live,
            network_data=self.network_data,
            network_files=self._network_files,
            quotas=self._config.quotas(),
            retention=self._progress,
            recounted=self._recounted,
            credit=self._credit,
            restarts=self._restarts,
            worker_restarts=self._worker_restarts,
            loop=self._loop_watch,
            node=None if self._node is None else self._node.sources,
            watch=self.watch,
            certificate_expires_ms=lambda: self.certificate_expires_ms,
            corrupt=self._corrupt,
            is_leader=_yes if self._node is None else lambda: self._bus.is_leader,
        )

    async def run(
        self,
        listeners: Listeners,
        shutdown: trio.Event,
        *,
        metrics: Listeners | None = None,
        task_status: trio.TaskStatus[Edge] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until `shutdown` is set, then drain and return. The store stays open: the caller closes it. Raises what
        an actor raised, and then has stopped serving.

        `metrics` are the listeners of the metrics, which the leader serves for several workers; without them the
        event-loop lag is not measured either.
        """
        stand_by = partial(supervise, "outbox watch", self.outbox.stand_by, self._restarts, self._corrupt)
        if self._node is not None:
            stand_by = trio.sleep_forever  # the outbox runs
        async with trio.open_nursery() as nursery:
            for name, run in self._everywhere().items():
                self._restarts[name] += 0  # a rate is not seen to rise from what was not there
                nursery.start_soon(supervise, name, run, self._restarts, self._corrupt)
            nursery.start_soon(leader.run, self._leadership, stand_by, partial(self._keep, metrics))
            if metrics is not None:
                nursery.start_soon(self._loop_watch.run)
                if not self._shares_metrics:
                    nursery.start_soon(self._serve_metrics, metrics)
            nursery.start_soon(self._limit_drain, shutdown, nursery.cancel_scope)
            async with trio.open_nursery() as pipeline:
                pipeline.start_soon(self.pipeline.run)
                async with trio.open_nursery() as edge_nursery:
                    keys = KnownKeys()
                    pages = _pages(has_try=self.services.try_key is not None)
                    app = application(Exchange(self.services, self.traffic, keys, partial(respond, pages), PATHS))
                    served = self._served(app, listeners, self._edge_limits())
                    served = partial(served, shutdown=shutdown, keys=keys, always=_always(self._config))
                    edge: Edge = await edge_nursery.start(served)
                    self._edge = edge
                    task_status.started(edge)
                self.pipeline.admission.close()
            await self.refusals.drain()
            await self.outbox.drain()
            self.metrics.publish()
            nursery.cancel_scope.cancel()
        await self._receivers.aclose()

    async def _keep(self, metrics: Listeners | None) -> None:
        """Run, until cancelled, what only one process may run. Of several workers, serve the metrics of all."""
        self._bus.keep()
        self._pulse.mark_leader(self._index, self._store.elapsed_s())
        try:
            async with trio.open_nursery() as nursery:
                for name, run in self._kept().items():
                    self._restarts[name] += 0
                    nursery.start_soon(supervise, name, run, self._restarts, self._corrupt)
                if metrics is not None and self._shares_metrics:
                    nursery.start_soon(self._serve_metrics, metrics)
        finally:
            self._bus.resign()

    def _everywhere(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the actors of every worker, by name, whose failure must not stop identification."""
        return {
            **({} if self._node is None else {"outbox": self.outbox.run}),
            "store watch": self.watch.run,
            "relay": self.relay.run,
            "counts": self.metrics.run,
            "network watch": partial(self._network.run, self._world.run_sync, self._config.network_interval_s),
        }

    def _kept(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the actors that only the leader runs, by name."""
        config, store, world = self._config, self._kept_store, self._world
        return {
            "maintenance": partial(maintain, store, world.now_ms),
            "retention": partial(
                sweeper.run,
                store,
                world,
                config.visitor_retention_days,
                self._clock_watch,
                self._progress,
                event_ms=config.event_retention_ms(),
            ),
            "settler": partial(settler.run, store, world, self.relay.due, self._clock_watch, self._corrupt),
            "credit watch": self._credit.run,
            "indexer": partial(indexer.run, store, world, self._corrupt),
            "recounter": partial(recounter.run, store, world, self._clock_watch, self._recounted, self._corrupt),
            **({"outbox": self.outbox.run} if self._node is None else {}),
            "refusal log": self.refusals.run,
        }

    async def _serve_metrics(self, listeners: Listeners) -> None:
        """Serve the metrics until cancelled, also while the service drains."""
        limits = EdgeLimits(max_connections=METRICS_CONNECTIONS)
        hosts = expected_hosts(self._config.metrics_bind, self._config.metrics_hosts)
        scrape = Scrape(self.metrics.expose, hosts)
        await self._served(scrape, listeners, limits)(shutdown=trio.Event())

    def _served(self, app: Application, listeners: Listeners, limits: EdgeLimits) -> Callable[..., Awaitable[None]]:
        """Return `serve` with the arguments that both addresses share."""
        refuse = partial(edge_refusal, self._world)
        return partial(serve, app, listeners, limits, refuse=refuse, now_ms=self._world.now_ms)

    async def _limit_drain(self, shutdown: trio.Event, scope: trio.CancelScope) -> None:
        await shutdown.wait()
        if self._node is None:
            self.relay.end_together()  # of nodes, the leader may go on
        scope.deadline = trio.current_time() + self._config.drain_limit_s + DRAIN_MARGIN_S

    def _edge_limits(self) -> EdgeLimits:
        return EdgeLimits(
            max_connections=fitting(self._config.max_connections),
            request_timeout_s=self._config.request_timeout_s,
            write_timeout_s=self._config.write_timeout_s,
            keep_alive_timeout_s=self._config.keep_alive_timeout_s,
            drain_timeout_s=self._config.drain_limit_s,
        )

    def network_data(self) -> str:
        """Return the state of the network databases now: `ok`, `missing` or `stale` (decisions 9.1)."""
        today = utc(self._world.now_ms()).date()
        return self._network.data.state(today, self._config.network_stale_days)

    def use(self, config: Config) -> None:
        """Take over the settings of `svc.cli.serve.reload.WHILE_RUNNING`, and look for changed network files now."""
        self._config = config
        self.traffic.use(config.log_requests, _describe(config))
        self.services.limits.allow(config.allowances())
        self._network.look_now()

    def _network_files(self) -> tuple[tuple[str, str, date], ...]:
        return self._network.data.dates


def _nothing(_: int) -> None:
    """Do nothing: a database dates the last write of its store."""


def _yes() -> bool:
    return True


def _describe(config: Config) -> Describe | None:
    return details if config.log_format == "console" else None


def divide_limits(config: Config, workers: int) -> Config:
    """Return the settings for one of `workers` processes: `max_connections` and `admission_capacity` are divided by
    `workers`, at least 1 each; everything else is unchanged.
    """
    return msgspec.structs.replace(
        config,
        max_connections=max(1, config.max_connections // workers),
        admission_capacity=max(1, config.admission_capacity // workers),
    )


def _always(config: Config) -> list[tuple[bytes, bytes]]:
    """Return the headers of every response over TLS: HSTS (RFC 6797), if the settings ask for it."""
    seconds = config.hsts_max_age_s
    return [(b"strict-transport-security", b"max-age=%d" % seconds)] if seconds else []
