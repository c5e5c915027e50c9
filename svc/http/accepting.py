"""Accepting connections: several that wait, in one pass of the loop.

trio's listener accepts one connection in each pass. While passes are long, a client that connects behind some
hundred others would wait for some hundred passes before this service knows of it: the kernel's queue has no turns.
"""

from __future__ import annotations

import socket
from collections import deque

import trio

AT_ONCE = 8
"""Connections that are accepted in one pass. Few, so that workers who share the socket share a burst, too."""


class PlainListener(trio.abc.Listener[trio.SocketStream]):
    """As `trio.SocketListener`, for a socket that listens and does not block."""

    def __init__(self, plain: socket.socket) -> None:
        self._plain = plain
        self._inner = trio.SocketListener(trio.socket.from_stdlib_socket(plain))
        self._accepted: deque[trio.SocketStream] = deque()
        """Handed out before the loop goes on, so that none is left here when the listener is closed."""

    @property
    def socket(self) -> trio.socket.SocketType:
        """The socket that listens."""
        return self._inner.socket

    async def accept(self) -> trio.SocketStream:
        """The next connection; no checkpoint where it was accepted together with the one before. Raises `OSError`."""
        if self._accepted:
            return self._accepted.popleft()
        first = await self._inner.accept()
        for _ in range(AT_ONCE - 1):
            try:
                accepted, _ = self._plain.accept()
            except OSError:  # nobody waits; and what is wrong is wrong at the next call, which says so
                break
            accepted.setblocking(False)
            self._accepted.append(trio.SocketStream(trio.socket.from_stdlib_socket(accepted)))
        return first

    async def aclose(self) -> None:
        """Close the socket that listens; connections that were accepted go on."""
        await self._inner.aclose()
