"""The listening socket of a simulated service: workers accept from it, and clients come from within the process."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

import trio


class SharedSocket:
    """The socket. While it `is_kept`, which is by the parent of several workers, connections that none accepts wait;
    else they end with the last worker that accepts.
    """

    def __init__(self, *, is_kept: bool) -> None:
        self.is_kept = is_kept
        self._connecting, self._incoming = trio.open_memory_channel[socket.socket](1000)
        self._listeners = 0

    def listener(self) -> WorkerListener:
        """A worker's listener on the socket."""
        self._listeners += 1
        return WorkerListener(self, self._incoming.clone())

    def connect(self) -> socket.socket:
        """A client's end of a new connection. Raises `ConnectionRefusedError` where nobody listens."""
        ours, theirs = socket.socketpair()
        try:
            self._connecting.send_nowait(ours)
        except trio.BrokenResourceError:
            ours.close()
            theirs.close()
            raise ConnectionRefusedError from None
        return theirs

    def left(self) -> None:
        """A worker accepts no more."""
        self._listeners -= 1
        if not self._listeners and not self.is_kept:
            self.close()

    def close(self) -> None:
        """With the connections that nobody has accepted."""
        with suppress(trio.WouldBlock, trio.ClosedResourceError, trio.EndOfChannel):
            while True:
                self._incoming.receive_nowait().close()
        self._incoming.close()


class WorkerListener(trio.abc.Listener[trio.abc.Stream]):
    """A worker's listener."""

    share = None
    """Workers take turns at the socket without counting."""

    def __init__(self, shared: SharedSocket, incoming: trio.MemoryReceiveChannel[socket.socket]) -> None:
        self._shared = shared
        self._incoming = incoming
        self._is_open = True
        self.socket = self

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 80)

    async def accept(self) -> trio.abc.Stream:
        return ServerStream(await self._incoming.receive())

    async def aclose(self) -> None:
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """As the kernel closes it when its process ends."""
        if self._is_open:
            self._is_open = False
            self._incoming.close()
            self._shared.left()


class ServerStream(trio.abc.Stream):
    """The service's end of a connection: a socket that says it comes from this machine's port."""

    def __init__(self, ours: socket.socket) -> None:
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        self.socket = _Named(self._stream.socket)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return await self._stream.receive_some(max_bytes)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Named:
    """As a TCP socket of loopback."""

    family = socket.AF_INET

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def getpeername(self) -> tuple[str, int]:
        return ("127.0.0.1", 40_000)

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 80)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
