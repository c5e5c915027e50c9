"""One serving process: its sockets, its certificate, its signals. With several workers each of them is one."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import structlog
import trio

from svc.http.server.capacity import EdgeLimits
from svc.http.server.listening import (
    Certificate,
    CertificateError,
    ListeningSockets,
    inherited_sockets,
    open_sockets,
    read_certificate,
)
from svc.http.server.server import Edge, addresses, open_listeners
from svc.identify.useragent import load_patterns
from svc.kernel.config import Config, ConfigError
from svc.kernel.values.timestamps import timestamp, unix_ms, utc
from svc.serve.service import Listeners, Service
from svc.workers import hangups
from svc.workers.pulse import HangWatch, notify
from svc.workers.shared_memory import ConnectionShare

log = structlog.get_logger()

ALIVE_S = 1.0
"""Between two messages to the service manager that this process lives."""


def sockets_for(bind: str, metrics_bind: str) -> ListeningSockets:
    """Return the sockets that systemd passed, and of those that it did not, new ones on these addresses. An empty
    `metrics_bind` is not an address. Raises `ConfigError`.
    """
    try:
        clients, metrics = inherited_sockets(os.environ)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if not clients:
        clients = listen(bind)
    if not metrics and metrics_bind:
        metrics = listen(metrics_bind, "--metrics-bind")
    return ListeningSockets(clients, metrics)


def listen(bind: str, option: str = "--bind") -> list[socket.socket]:
    """Listen on HOST:PORT, as `listening.open_sockets` does. Raises `ConfigError`, which names `option`, if that is not
    possible.
    """
    try:
        return open_sockets(bind, EdgeLimits().backlog)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from error
    except OSError as error:
        variable = "SVC_" + option.removeprefix("--").replace("-", "_").upper()
        problem = f"cannot listen on {bind}: {error.strerror or error}; choose another with {option} or {variable}"
        raise ConfigError(problem) from error


async def run_until_signaled(
    service: Service,
    sockets: ListeningSockets,
    once_serving: Callable[[list[str]], Awaitable[None]] | None = None,
    tls: ReadTls | None = None,
    reload: Callable[[Listeners], None] | None = None,
    lifeline: int | None = None,
    share: ConnectionShare | None = None,
) -> None:
    """Serve on the sockets until SIGTERM or SIGINT, then drain and return.

    `once_serving` runs beside it when it is up, and is given the addresses of the metrics. `tls` reads what is served
    with. `reload` is called at each SIGHUP; without it SIGHUP ends the process as it does others. `lifeline` is a file
    whose end says that the parent has died, which is as a SIGTERM. `share` is what a worker has of the connections.
    """
    shutdown = trio.Event()
    certificate = None if tls is None else tls()
    load_patterns()
    context = None if certificate is None else certificate.context
    listeners = open_listeners(sockets.clients, ssl_context=context, share=share)
    if certificate is not None:
        note_certificate(service, certificate)
    on_hangup = None if reload is None else partial(reload, listeners)
    metrics = open_listeners(sockets.metrics) if sockets.metrics else None
    async with trio.open_nursery() as nursery:
        async with trio.open_nursery() as watching:
            await watching.start(_watch_signals, shutdown, on_hangup)
            watching.start_soon(HangWatch(service.services.world).run)
            if lifeline is not None:
                watching.start_soon(_watch_parent, lifeline, shutdown)
            else:
                watching.start_soon(_notify_alive)
            edge: Edge = await nursery.start(partial(service.run, listeners, shutdown, metrics=metrics))
            metrics_at = host_port(addresses(metrics or []))
            log.info("serving", addresses=host_port(edge.addresses), metrics=metrics_at)
            if once_serving is not None:
                await once_serving(metrics_at)
            if lifeline is None:
                notify("READY=1")
            await shutdown.wait()
            watching.cancel_scope.cancel()
            if lifeline is None:
                notify("STOPPING=1")
        log.info("draining")
    done = service.services.store.statistics()
    log.info("stopped", commits=done.commits, jobs=done.jobs, repeated=done.repeated)


def host_port(found: list[Any]) -> list[str]:
    """Return addresses of sockets, as `getsockname` gives them, in the form `HOST:PORT`; IPv6 in brackets."""
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port, *_ in found]


async def _watch_signals(
    shutdown: trio.Event,
    on_hangup: Callable[[], None] | None,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    handled = {signal.SIGTERM, signal.SIGINT} | ({signal.SIGHUP} if on_hangup else set[signal.Signals]())
    with trio.open_signal_receiver(*handled) as signals:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)  # a worker is born with them blocked
        if on_hangup is not None:
            hangups.release()
        task_status.started()
        async for received in signals:
            if received != signal.SIGHUP:
                shutdown.set()
                return
            if on_hangup is not None:
                on_hangup()


async def _notify_alive() -> None:
    """Tell the service manager that the loop runs, so that it does not replace this process."""
    while True:
        notify("WATCHDOG=1")
        await trio.sleep(ALIVE_S)


async def _watch_parent(lifeline: int, shutdown: trio.Event) -> None:
    await trio.lowlevel.wait_readable(lifeline)
    log.error("the parent died, draining")
    shutdown.set()


ReadTls = Callable[[], Certificate | None]
"""The certificate to serve with, `None` for plain HTTP. Raises `ConfigError`."""


def read_tls(config: Config) -> Certificate | None:
    """Return the certificate that the settings name, read now; `None` if they name none. Raises `ConfigError`."""
    certfile, keyfile = config.tls_certfile, config.tls_keyfile
    if certfile is None and keyfile is None:
        if config.hsts_max_age_s:
            raise ConfigError("hsts_max_age_s needs tls_certfile; behind a reverse proxy, the proxy sends the header")
        return None
    if certfile is None or keyfile is None:
        missing = "tls_certfile" if certfile is None else "tls_keyfile"
        raise ConfigError(f"tls_certfile and tls_keyfile go together, and {missing} is not set")
    try:
        return read_certificate(Path(certfile), Path(keyfile))
    except CertificateError as error:
        raise ConfigError(f"tls_certfile, tls_keyfile: {error}") from error


def note_certificate(service: Service, certificate: Certificate) -> None:
    """Show in the metrics when the certificate that is served expires; log a warning where clients reject it now."""
    service.certificate_expires_ms = unix_ms(certificate.not_after)
    if not certificate.is_valid(utc(service.services.world.now_ms())):
        log.warning(
            "certificate not valid now: clients reject it",
            not_before=timestamp(unix_ms(certificate.not_before)),
            not_after=timestamp(unix_ms(certificate.not_after)),
        )
