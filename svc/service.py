"""The composition root: opens the store, makes the mailboxes, runs the nurseries, drains, closes.

Shutdown drains by closing rather than by cancelling: the edge stops accepting and finishes its requests, the first
mailbox is closed, its end travels stage by stage, and then the store is closed. One limit stands around it all.
"""

from __future__ import annotations

import signal
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import structlog
import trio

from svc.actors import maintenance, retention, settler
from svc.actors.event_loop_lag import EventLoopLag
from svc.actors.live import LiveHub
from svc.actors.network_watch import NetworkWatch
from svc.actors.outbox import Outbox
from svc.actors.pipeline import Pipeline
from svc.actors.refusal_log import RefusalLog
from svc.actors.supervisor import supervise
from svc.config import Config, ConfigError
from svc.domain import deferred
from svc.domain.attestation.trust import (
    AppleTrust,
    Trust,
    apps_by_digest,
    published_trust,
    read_apple_roots,
    read_revoked,
    read_roots,
)
from svc.domain.model import Report, RequestFacts
from svc.domain.signed_verdict import verdict_key
from svc.domain.timestamps import timestamp
from svc.domain.useragent import read_agent
from svc.domain.webhooks.addresses import TargetPolicy
from svc.domain.webhooks.cursor import cursors_key
from svc.domain.webhooks.signature import secrets_key
from svc.domain.webhooks.transport_types import Transport
from svc.http import try_page
from svc.http.app import App
from svc.http.authentication import AuthPolicy
from svc.http.edge import Edge, EdgeLimits, addresses, open_listeners, serve
from svc.http.endpoint import Services, Webhooks
from svc.http.exchange import edge_refusal
from svc.http.limits import RequestLimits
from svc.http.scrape import Scrape
from svc.http.tls import Certificate, CertificateError, TlsListener, read_certificate
from svc.http.traffic import Traffic
from svc.http.turnstile import KnownKeys
from svc.metrics import Metrics, Sources
from svc.network_data.builtin import BuiltInRanges
from svc.store.directory import Opened
from svc.webhook_transport.connections import tls_context, usual_tls_context
from svc.webhook_transport.registration import check_target
from svc.webhook_transport.resolver import Resolver, SystemResolver
from svc.webhook_transport.transport import WebhookTransport
from svc.world import World

T = TypeVar("T")
log = structlog.get_logger()

_ANYBODY = RequestFacts(ip="127.0.0.1", user_agent="Mozilla/5.0")
METRICS_CONNECTIONS = 16
STREAMS_PART = 4
"""Live streams may take so small a part of the connections."""
DRAIN_MARGIN_S = 2.0
"""Beyond `drain_limit_s`, for the stages behind the edge to end and the last commit to be made."""


class Service:
    """One server over one open data directory: every actor, the HTTP application and what they share."""

    def __init__(
        self,
        config: Config,
        world: World,
        opened: Opened,
        directory: Path | None = None,
        transport: Transport | None = None,
        resolver: Resolver | None = None,
    ) -> None:
        """`directory` is the data directory, for the network files in it. `transport` sends webhooks, and `resolver`
        looks up their hosts, in place of the network's. Raises `ConfigError`.
        """
        self._config, self._world, self._store = config, world, opened.store
        self.traffic = Traffic(config.log_requests)
        self._edge: Edge | None = None
        self._progress = retention.Progress(world.now_ms())
        self._restarts: Counter[str] = Counter()
        self._loop_watch = EventLoopLag()
        self._network = network_watch(config, directory)
        resolver = resolver or SystemResolver()
        self._receivers = webhook_transport(config, world, resolver)
        secrets = secrets_key(opened.pepper)
        self.outbox = Outbox(opened.store, world, transport or self._receivers, secrets)
        self.refusals = RefusalLog(opened.store, world, self.outbox.nudge)
        self.live = LiveHub(max(1, config.max_connections // STREAMS_PART))
        self.pipeline = Pipeline(
            opened.store,
            lambda: self._network.ranges,
            read_trust(config),
            now_ms=world.now_ms,
            admission_capacity=config.admission_capacity,
            stage_capacity=config.stage_capacity,
            batch_limit=config.batch_limit,
            shares=config.shares(),
            quotas=config.quotas(),
            nudge=self.outbox.nudge,
            publish=self.live.publish,
        )
        self.services = Services(
            world=world,
            store=opened.store,
            admission=self.pipeline.admission,
            gate=AuthPolicy(opened.pepper, config.region, config.networks(), config.connection_os_header),
            deferred_key=deferred.signing_key(opened.pepper),
            verdict_key=verdict_key(opened.pepper),
            network_data=self.network_data,
            note_refusal=self.refusals.note,
            webhooks=Webhooks(
                outbox=self.outbox,
                secrets_key=secrets,
                cursors_key=cursors_key(opened.pepper),
                check_target=partial(check_target, resolver=resolver, reach=webhook_reach(config, world)),
            ),
            request_timeout_s=config.request_timeout_s,
            limits=RequestLimits(config.allowances(), config.shares()),
            quotas=config.quotas(),
            live=self.live,
            try_key=try_page.checked_key(opened, config.try_key, world.now_ms()),
        )
        self.metrics = Metrics(self._sources())

    def _sources(self) -> Sources:
        """What the metrics are read from."""
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
            restarts=self._restarts,
            loop=self._loop_watch,
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

        `metrics` are the listeners of the metrics; without them the event-loop lag is not measured either.
        """
        async with trio.open_nursery() as nursery:
            peripheral = self._peripheral()
            self._restarts.update(dict.fromkeys(peripheral, 0))  # a rate is not seen to rise from what was not there
            for name, run in peripheral.items():
                nursery.start_soon(supervise, name, run, self._restarts)
            if metrics is not None:
                nursery.start_soon(self._loop_watch.run)
                nursery.start_soon(self._serve_metrics, metrics)
            nursery.start_soon(self._bound_the_drain, shutdown, nursery.cancel_scope)
            async with trio.open_nursery() as pipeline:
                pipeline.start_soon(self.pipeline.run)
                async with trio.open_nursery() as front:
                    keys = KnownKeys()
                    app, limits = App(self.services, self.traffic, keys), self._edge_limits()
                    refuse = partial(edge_refusal, self._world)
                    edge: Edge = await front.start(
                        partial(serve, app, listeners, limits, refuse=refuse, shutdown=shutdown, keys=keys)
                    )
                    self._edge = edge
                    task_status.started(edge)
                self.pipeline.admission.close()
            await self.outbox.drain()
            nursery.cancel_scope.cancel()
        await self._receivers.aclose()

    def _peripheral(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """The actors whose failure must not stop identification, by name."""
        config, store, world = self._config, self._store, self._world
        return {
            "upkeep": partial(maintenance.run, store),
            "network watch": partial(self._network.run, world.run_sync, config.network_interval_s),
            "retention": partial(retention.run, store, world, config.visitor_retention_days, self._progress),
            "settler": partial(settler.run, store, world),
            "outbox": self.outbox.run,
            "refusal log": self.refusals.run,
        }

    async def _serve_metrics(self, listeners: Listeners) -> None:
        """Until cancelled: also while the service drains."""
        limits = EdgeLimits(max_connections=METRICS_CONNECTIONS)
        refuse = partial(edge_refusal, self._world)
        await serve(Scrape(self.metrics.expose), listeners, limits, refuse=refuse, shutdown=trio.Event())

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
        """The state of the network databases now: `ok`, `missing` or `stale` (decisions 9.1)."""
        today = datetime.fromtimestamp(self._world.now_ms() / 1000, UTC).date()
        return self._network.data.state(today, self._config.network_stale_days)

    def _network_files(self) -> Iterator[tuple[str, str, date]]:
        return self._network.data.dates()


def network_watch(config: Config, directory: Path | None) -> NetworkWatch:
    """A watch over the network data that the settings name, read once on the calling thread."""
    built_in = BuiltInRanges() if config.network_builtin else None
    watch = NetworkWatch(config.network_files(directory), built_in, config.network_vpn_neighbors)
    watch.read_now()
    return watch


def webhook_transport(config: Config, world: World, resolver: Resolver) -> WebhookTransport:
    """The transport of webhooks, with the policy and certificate authorities of the settings. Raises `OSError` for a CA
    file that cannot be read.
    """
    trusted = usual_tls_context() if config.webhook_ca_file is None else tls_context(Path(config.webhook_ca_file))
    return WebhookTransport(resolver, webhook_reach(config, world), trusted, world.now_ms)


def webhook_reach(config: Config, world: World) -> TargetPolicy:
    """Where webhooks may be sent, by the settings and this machine's own addresses (decisions 8.7)."""
    return TargetPolicy(config.webhook_networks(), frozenset(config.webhook_allow_ports), world.is_own_address)


def read_trust(config: Config) -> Trust:
    """The roots, revocations and apps by which attestations are judged, from the files that the settings name; the
    published roots where they name none. Raises `ConfigError`.
    """
    published = published_trust()
    roots, revoked = config.attestation_roots_file, config.attestation_status_file
    apple = config.attestation_apple_roots_file
    return Trust(
        roots=published.roots if roots is None else _read_file("attestation_roots_file", roots, read_roots),
        revoked=frozenset() if revoked is None else _read_file("attestation_status_file", revoked, read_revoked),
        packages=frozenset(config.attestation_packages),
        signing_digests=frozenset(map(bytes.fromhex, config.attestation_digests)),
        apple=AppleTrust(
            roots=published.apple.roots
            if apple is None
            else _read_file("attestation_apple_roots_file", apple, read_apple_roots),
            apps=apps_by_digest(config.attestation_apple_apps),
        ),
    )


def _read_file(setting: str, file: str, read: Callable[[bytes], T]) -> T:
    try:
        return read(Path(file).read_bytes())
    except OSError as error:
        raise ConfigError(f"{setting}: cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{setting}: {file}: {error}") from error


Listeners = list[trio.SocketListener] | list[TlsListener]


async def listen(bind: str, option: str = "--bind", *, ssl_context: ssl.SSLContext | None = None) -> Listeners:
    """Listen on HOST:PORT, as `edge.open_listeners`. Raises `ConfigError`, which names `option`, where that is not
    possible.
    """
    try:
        return await open_listeners(bind, EdgeLimits().backlog, ssl_context=ssl_context)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from error
    except OSError as error:
        problem = f"cannot listen on {bind}: {error.strerror or error}; choose another with {option}"
        raise ConfigError(problem) from error


async def run_until_signalled(
    service: Service,
    bind: str,
    metrics_bind: str,
    once_serving: Callable[[list[str]], Awaitable[None]] | None = None,
    tls: ReadTls | None = None,
) -> None:
    """Serve on `bind` until SIGTERM or SIGINT, then drain and return; metrics on `metrics_bind`, unless it is empty.

    `once_serving` runs beside it when it is up, and is given the addresses of the metrics. `tls` reads what is served
    with, now and again at each SIGHUP; without it SIGHUP ends the process as it does others.
    """
    shutdown = trio.Event()
    now_ms = service.services.world.now_ms
    certificate = None if tls is None else tls()
    read_agent(_ANYBODY, Report())  # loads the patterns: half a second that no visitor should wait for
    listeners = await listen(bind, ssl_context=None if certificate is None else certificate.context)
    if certificate is not None:
        _warn_of_dates(certificate, now_ms())
    renew = None if tls is None else partial(_renew, listeners, tls, now_ms)
    metrics = await listen(metrics_bind, "--metrics-bind") if metrics_bind else None
    async with trio.open_nursery() as nursery:
        await nursery.start(_watch_signals, shutdown, renew)
        edge: Edge = await nursery.start(partial(service.run, listeners, shutdown, metrics=metrics))
        metrics_at = written(addresses(metrics or []))
        log.info("serving", addresses=written(edge.addresses), metrics=metrics_at)
        if once_serving is not None:
            await once_serving(metrics_at)
        await shutdown.wait()
        log.info("draining")
    done = service.services.store.statistics()
    log.info("stopped", commits=done.commits, jobs=done.jobs)


def written(found: list[Any]) -> list[str]:
    """Addresses of sockets, as `getsockname` gives them, in the form `HOST:PORT`; IPv6 in brackets."""
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port, *_ in found]


async def _watch_signals(
    shutdown: trio.Event,
    on_hangup: Callable[[], None] | None,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    with_progress = {signal.SIGTERM, signal.SIGINT} | ({signal.SIGHUP} if on_hangup else set[signal.Signals]())
    with trio.open_signal_receiver(*with_progress) as signals:
        task_status.started()
        async for received in signals:
            if received != signal.SIGHUP:
                shutdown.set()
                return
            if on_hangup is not None:
                on_hangup()


ReadTls = Callable[[], Certificate | None]
"""The certificate to serve with, `None` for plain HTTP. Raises `ConfigError`."""


def read_tls(config: Config) -> Certificate | None:
    """The certificate that the settings name, read now; `None` where they name none. Raises `ConfigError`."""
    certfile, keyfile = config.tls_certfile, config.tls_keyfile
    if certfile is None and keyfile is None:
        return None
    if certfile is None or keyfile is None:
        missing = "tls_certfile" if certfile is None else "tls_keyfile"
        raise ConfigError(f"tls_certfile and tls_keyfile go together, and {missing} is not set")
    try:
        return read_certificate(Path(certfile), Path(keyfile))
    except CertificateError as error:
        raise ConfigError(f"tls_certfile, tls_keyfile: {error}") from error


def _renew(listeners: Listeners, tls: ReadTls, now_ms: Callable[[], int]) -> None:
    """Show who connects from now on what is in the files now; what is wrong with them changes nothing."""
    try:
        certificate = tls()
    except ConfigError as error:
        log.error("certificate reload failed, keeping the old one", because=str(error))  # noqa: TRY400  said in full
        return
    if certificate is None:
        log.warning("SIGHUP renews the certificate, and this service speaks plain HTTP")
        return
    for listener in listeners:
        if isinstance(listener, TlsListener):
            listener.use(certificate.context)
    log.info("certificate reloaded", not_after=_moment(certificate.not_after))
    _warn_of_dates(certificate, now_ms())


def _warn_of_dates(certificate: Certificate, now_ms: int) -> None:
    if not certificate.is_valid(datetime.fromtimestamp(now_ms / 1000, UTC)):
        log.warning(
            "certificate not valid now: clients reject it",
            not_before=_moment(certificate.not_before),
            not_after=_moment(certificate.not_after),
        )


def _moment(at: datetime) -> str:
    return timestamp(int(at.timestamp() * 1000))
