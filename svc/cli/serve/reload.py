"""SIGHUP: what a running service takes over from its settings and files, and what it says of the rest.

What may live here: which settings can change while the service runs, and how a certificate is replaced. What cannot be
used changes nothing: the service goes on with what it has.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import structlog

from svc.command.logs import set_up_logging
from svc.http.server.listening import TlsListener
from svc.kernel.config import Config, ConfigError
from svc.kernel.values.timestamps import timestamp, unix_ms
from svc.serve.service import Listeners, Service
from svc.serve.serving import note_certificate, read_tls

log = structlog.get_logger()

ReadConfig = Callable[[], Config]
"""Reads the settings again. Raises `ConfigError`."""
WHILE_RUNNING = (
    "log_format",
    "log_requests",
    "client_rate",
    "read_rate",
    "management_rate",
    "work_rate",
    "network_stale_days",
    "tls_certfile",
    "tls_keyfile",
)
"""Settings that SIGHUP takes over; all others need a restart. TLS itself cannot be turned on or off."""


class Reload:
    """Takes over settings, network files and the certificate of a running service, each time it is called.

    `read` reads the settings as at the start and raises `ConfigError`. `worker` is the number of this one of several,
    which its log lines have.
    """

    def __init__(self, service: Service, config: Config, read: ReadConfig, worker: int | None = None) -> None:
        self._service = service
        self._config = config
        self._read = read
        self._worker = worker

    def __call__(self, listeners: Listeners) -> None:
        """Apply settings that can change while these listeners serve. Log those that need a restart."""
        before = self._config
        try:
            read = self._read()
        except ConfigError as error:
            log.error("settings reload failed, keeping the old ones", because=str(error))  # noqa: TRY400  said in full
            read = before
        self._config = _taken_over(before, read)
        set_up_logging(self._config.log_format, self._worker)
        self._service.use(self._config)
        changed, waiting = _different(before, self._config), _different(self._config, read)
        if read is not before:
            log.info("settings reloaded", changed=changed)
        if waiting:
            log.warning("settings changed that need a restart", settings=waiting)
        if not self._renew(listeners):
            self._config = msgspec.structs.replace(
                self._config, tls_certfile=before.tls_certfile, tls_keyfile=before.tls_keyfile
            )

    def _renew(self, listeners: Listeners) -> bool:
        """Use the certificate that is in the files now for new connections. Return `False`, and keep the old one, if it
        cannot be used.
        """
        try:
            certificate = read_tls(self._config)
        except ConfigError as error:
            log.error("certificate reload failed, keeping the old one", because=str(error))  # noqa: TRY400  said in full
            return False
        if certificate is None:
            return True
        for listener in listeners:
            if isinstance(listener, TlsListener):
                listener.use(certificate.context)
        log.info("certificate reloaded", not_after=timestamp(unix_ms(certificate.not_after)))
        note_certificate(self._service, certificate)
        return True


def _taken_over(before: Config, read: Config) -> Config:
    names = [name for name in WHILE_RUNNING if not name.startswith("tls_") or _serve_tls(before) == _serve_tls(read)]
    return msgspec.structs.replace(before, **{name: getattr(read, name) for name in names})


def _serve_tls(config: Config) -> bool:
    return config.tls_certfile is not None or config.tls_keyfile is not None


def _different(one: Config, other: Config) -> list[str]:
    return [name for name in one.__struct_fields__ if getattr(one, name) != getattr(other, name)]
