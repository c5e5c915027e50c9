"""Receiving from a client that sends, leaves, or is gone already."""

from __future__ import annotations

import socket
import struct

import trio
from trio.testing import wait_all_tasks_blocked

from svc.http.server.connection import receive


def connected() -> tuple[trio.SocketStream, socket.socket]:
    """The server's side, and the client's."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        accepted, _ = listening.accept()
    return trio.SocketStream(trio.socket.from_stdlib_socket(accepted)), client


async def test_what_a_client_sends_is_received_and_nothing_once_it_has_left():
    server, client = connected()
    client.sendall(b"hello")
    assert await receive(server) == b"hello"
    client.close()
    assert await receive(server) == b""
    await server.aclose()


async def test_a_client_that_resets_its_connection_has_left():
    server, client = connected()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    assert await receive(server) == b""
    await server.aclose()


async def test_nothing_is_received_from_a_connection_closed_before_or_meanwhile():
    server, client = connected()
    received: list[bytes | bytearray] = []

    async def read() -> None:
        received.append(await receive(server))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        await server.aclose()
    await read()
    assert received == [b"", b""]
    client.close()
