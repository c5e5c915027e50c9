"""Ports for programs that have to be told one."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path

FIRST = 20_000
_LAST = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]) - 1
_chance = random.Random(os.getpid())


def free_port() -> int:
    """A port that nobody listens on, below those that the kernel gives to clients: no connection takes it before the
    program does that is told it.
    """
    while True:
        port = _chance.randint(FIRST, max(FIRST + 1000, _LAST))
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
