"""Where a browser finds a service that listens at HOST:PORT."""

from __future__ import annotations

import socket
from pathlib import Path

from svc.cli.dev_keys import read_keys
from svc.config import Config
from svc.store.serve_lock import is_held_by


def local_url(config: Config, directory: Path) -> str:
    """Where the service of a data directory with these settings is on this machine, without a slash at the end. Of a
    running `svc dev`, which is given its address at the start, it is what that wrote beside its keys.
    """
    if is_held_by(directory, "svc dev") and (url := read_keys(directory).url):
        return url
    return f"{'http' if config.tls_certfile is None else 'https'}://{reachable(config.bind)[0]}"


def reachable(bind: str) -> tuple[str, str | None]:
    """HOST:PORT to open on this machine, and the one for other devices where the service listens on all addresses.

    `0.0.0.0`, `[::]` and no host stand for every address and are none that a browser can open.
    """
    host, _, port = bind.rpartition(":")
    if host == "[::]":
        family, loopback, outside = socket.AF_INET6, "[::1]", "2001:db8::1"
    elif host in ("", "0.0.0.0"):  # noqa: S104  compared, not listened on
        family, loopback, outside = socket.AF_INET, "127.0.0.1", "192.0.2.1"
    else:
        return bind, None
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((outside, 9))  # sends nothing: asks which address packets to elsewhere leave from
            address = probe.getsockname()[0]
    except OSError:
        return f"{loopback}:{port}", None
    return f"{loopback}:{port}", f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
