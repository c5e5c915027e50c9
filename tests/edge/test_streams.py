"""Streams at the edge: responses without an end of their own. What ends them, and whom they may not hold up."""

from __future__ import annotations

import socket
import ssl
import struct
from typing import Any

import pytest
import trio

from svc.http.server.messages import Reply, Request
from tests.edge.world import JUMPS_S, Running, get, running_edge

LARGE = bytes(1 << 20)


class Streamer:
    """An application whose every response is a stream: parts as they are handed to it, or more than a client takes."""

    def __init__(self) -> None:
        self.parts, self._taken = trio.open_memory_channel[bytes](8)
        self.open = self.stopped = self.sent = 0

    async def __call__(self, request: Request, reply: Reply) -> None:
        self.open += 1
        try:
            reply.begin(200, [], is_stream=True)
            await reply.send(b"hello")
            while True:
                await reply.send(LARGE if request.path == b"/large" else await self._taken.receive())
                self.sent += 1
        except trio.EndOfChannel:
            await reply.end()
        except trio.Cancelled:
            self.stopped += 1
            raise
        finally:
            self.open -= 1


HELLO = b"5\r\nhello\r\n"


async def begun(world: Running, path: str = "/", context: ssl.SSLContext | None = None) -> Any:
    """A client that has read the beginning of a stream."""
    client = await world.connect(context)
    await client.send(get(path))
    received = b""
    while not received.endswith(HELLO) and path != "/large":
        received += await client.stream.receive_some()
    assert path == "/large" or received.startswith(b"HTTP/1.1 200")
    return client


async def test_the_parts_of_a_stream_are_sent_as_they_come_and_its_connection_is_reused() -> None:
    app = Streamer()
    async with running_edge(app) as world:
        client = await begun(world)
        await app.parts.send(b"more")
        assert await client.stream.receive_some() == b"4\r\nmore\r\n"
        app.parts.close()
        assert await client.stream.receive_some() == b"0\r\n\r\n"
        assert (await client.ask(get("/"))).body == b"hello"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["closes", "sends no more", "resets"])
async def test_a_stream_ends_at_once_when_its_client_disconnects(how: str) -> None:
    app = Streamer()
    async with running_edge(app) as world:
        client = await begun(world)
        if how == "sends no more":
            await client.stream.send_eof()
        else:
            if how == "resets":
                client.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        await world.until(lambda: app.stopped == 1)
        await world.until(lambda: world.edge.statistics().connections_open == 0)


@pytest.mark.parametrize("over_tls", [False, True])
async def test_the_drain_ends_streams_at_once_and_cleanly(
    tls_contexts: tuple[ssl.SSLContext, ssl.SSLContext], over_tls: bool
) -> None:
    served, trusting = tls_contexts
    app = Streamer()
    async with running_edge(app, drain_timeout_s=600, ssl_context=served if over_tls else None) as world:
        clients = [await begun(world, context=trusting if over_tls else None) for _ in range(3)]
        world.shutdown.set()
        for client in clients:
            received = b""
            while not received.endswith(b"0\r\n\r\n"):
                received += await client.stream.receive_some()
            assert received == b"0\r\n\r\n"
        await world.returned.wait()
    assert (app.open, app.stopped) == (0, 3)


@pytest.mark.parametrize("is_whole", [True, False])
async def test_a_file_has_its_end_in_the_drain_too_and_none_where_it_fails(is_whole: bool) -> None:
    """Anybody who reads it takes the end of the response for the end of the file."""
    goes_on = trio.Event()

    async def send_file(_: Request, reply: Reply) -> None:
        reply.begin(200, [])
        await reply.send(b"hello")
        await goes_on.wait()
        if not is_whole:
            raise ValueError("a row cannot be read")
        await reply.end(b"more")

    async with running_edge(send_file, drain_timeout_s=600) as world:
        client = await begun(world)
        world.shutdown.set()
        await world.until(lambda: world.edge._shared.draining)
        goes_on.set()
        received = b"".join([part async for part in client.stream])
        assert received == (b"4\r\nmore\r\n0\r\n\r\n" if is_whole else b"")
        await world.returned.wait()


async def test_a_viewer_that_does_not_read_does_not_delay_the_drain() -> None:
    app = Streamer()
    async with running_edge(app, write_timeout_s=600, drain_timeout_s=600) as world:
        await begun(world, "/large")
        await world.until(lambda: any(one.waits() is not None for one in connections(world)))
        world.shutdown.set()
        await world.returned.wait()
    assert (app.open, app.stopped) == (0, 1)


@pytest.mark.usefixtures("jumping_clock")
async def test_a_viewer_that_does_not_read_is_cut_off_and_uses_little_memory() -> None:
    app = Streamer()
    async with running_edge(app, write_timeout_s=0.2) as world:
        await begun(world, "/large")
        await world.until(lambda: world.edge.statistics().connections_cut_writing == 1)
        await world.until(lambda: app.open == 0)
    assert app.sent < 64, "the rest was never made"


async def test_a_stream_that_starts_during_the_drain_ends_at_once() -> None:
    app = Streamer()
    async with running_edge(app, drain_timeout_s=600) as world:
        client = await world.connect()
        await client.send(get("/")[:-2])
        await world.until(lambda: any(one.waits() is not None for one in connections(world)))
        world.shutdown.set()
        await world.until(lambda: world.edge._shared.draining)
        await client.send(b"\r\n")
        assert (await client.response()).closes
        await world.returned.wait()


async def test_a_stream_may_last_longer_than_the_request_timeout(mock_clock: Any) -> None:
    app = Streamer()
    async with running_edge(
        app, hang_s=JUMPS_S, request_timeout_s=10, keep_alive_timeout_s=10, write_timeout_s=5
    ) as world:
        client = await begun(world)
        for _ in range(3):
            mock_clock.jump(3600)
            await app.parts.send(b"more")
            assert await client.stream.receive_some() == b"4\r\nmore\r\n"


async def test_other_requests_are_served_beside_viewers_that_do_not_read() -> None:
    app = Streamer()
    async with running_edge(app, write_timeout_s=600) as world:
        for _ in range(4):
            await begun(world, "/large")
        reader = await begun(world)
        for _ in range(20):
            await app.parts.send(b"more")
            assert await reader.stream.receive_some() == b"4\r\nmore\r\n"


def connections(world: Running) -> list[Any]:
    return list(world.edge._shared.connections)
