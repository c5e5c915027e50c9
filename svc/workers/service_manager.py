"""What systemd is told of the service: that it serves, lives and ends (sd_notify(3), `Type=notify`).

One datagram each. Without systemd, or another manager that sets NOTIFY_SOCKET, nothing happens.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def notify(state: str) -> None:
    """Send a state such as `READY=1`. Never raises: a manager that does not listen is no reason to end."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # of the abstract namespace
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
        manager.setblocking(False)
        manager.sendto(state.encode(), address)
