"""Connections that wait are accepted several at a time, so that a burst delays the next client only briefly."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import pytest
import structlog
import trio

from svc.http.server.listening import AT_ONCE, FULL_S, LEFT_S, PlainListener
from svc.workers.shared_memory import FEW, OpenConnections

BURST = 150


async def test_concurrent_connections_are_accepted_in_a_few_passes():
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=BURST))
        listening.setblocking(False)
        for _ in range(BURST):
            stack.enter_context(socket.create_connection(listening.getsockname()))
        listener, passes = PlainListener(listening), 0

        async def count() -> None:
            nonlocal passes
            while True:
                await trio.lowlevel.checkpoint()
                passes += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(count)
            streams = [await listener.accept() for _ in range(BURST)]
            assert passes <= 3 * (BURST // AT_ONCE + 1)
            with trio.move_on_after(0.01) as waiting:
                await listener.accept()
            assert waiting.cancelled_caught
            nursery.cancel_scope.cancel()
        assert len({stream.socket.getpeername() for stream in streams}) == BURST
        late = stack.enter_context(socket.create_connection(listening.getsockname()))
        last = await listener.accept()
        await last.send_all(b"served")
        assert late.recv(6) == b"served"
        for stream in (*streams, last):
            await stream.aclose()
        await listener.aclose()


async def test_workers_share_a_burst_of_connections_that_arrives_at_one_socket():
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=BURST))
        listening.setblocking(False)
        connections, all_taken = OpenConnections(3), trio.Event()
        listeners = [PlainListener(listening.dup(), connections.of(index)) for index in range(3)]
        taken: list[list[trio.SocketStream]] = [[] for _ in listeners]

        async def accept(listener: PlainListener, streams: list[trio.SocketStream]) -> None:
            while True:
                streams.append(await listener.accept())
                await trio.lowlevel.checkpoint()
                if sum(map(len, taken)) == BURST:
                    all_taken.set()

        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                for listener, streams in zip(listeners, taken, strict=True):
                    nursery.start_soon(accept, listener, streams)
                for _ in range(BURST):
                    stack.enter_context(socket.create_connection(listening.getsockname()))
                await all_taken.wait()
                nursery.cancel_scope.cancel()
        assert max(map(len, taken)) - min(map(len, taken)) <= AT_ONCE + FEW
        for stream in (stream for streams in taken for stream in streams):
            await stream.aclose()
        for listener in listeners:
            await listener.aclose()


async def test_a_connection_that_no_other_worker_takes_is_taken_by_one_that_has_more():
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=BURST))
        listening.setblocking(False)
        connections = OpenConnections(3)
        ours, hung = connections.of(0), connections.of(1)
        listener = PlainListener(listening, ours)
        with trio.fail_after(30):
            for _ in range(3 * AT_ONCE):
                stack.enter_context(socket.create_connection(listening.getsockname()))
            streams = [await listener.accept() for _ in range(3 * AT_ONCE)]
        assert ours.is_ahead()
        hung.stop()
        assert not ours.is_ahead(), "the third serves not yet, the second no more"
        for stream in streams:
            await stream.aclose()
        await listener.aclose()


@contextmanager
def _no_more_files() -> Generator[None]:
    free = os.dup(0)
    os.close(free)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("is_ahead", [False, True])
async def test_where_no_file_can_be_opened_one_line_says_so_and_connections_wait(
    is_ahead: bool, monkeypatch: pytest.MonkeyPatch
):
    """A second line says that they are accepted again: here at once."""
    monkeypatch.setattr("svc.kernel.limits.lasting.QUIET_S", 0.0)
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listening.setblocking(False)
        connections = OpenConnections(2)
        ours, _ = connections.of(0), connections.of(1)
        ours.add(FEW if is_ahead else 0)
        listener = PlainListener(listening, ours)
        client = stack.enter_context(socket.create_connection(listening.getsockname()))
        logs = stack.enter_context(structlog.testing.capture_logs())
        with _no_more_files(), trio.move_on_after(3 * FULL_S + 2 * LEFT_S):
            await listener.accept()
        with trio.fail_after(10):
            stream = await listener.accept()
        assert stream.socket.getpeername() == client.getsockname()
        assert [(line["event"], line.get("reason")) for line in logs] == [
            ("no connection can be accepted", "Too many open files"),
            ("connections are accepted again", None),
        ]
        assert "LimitNOFILE" in logs[0]["next_step"]
        await stream.aclose()
        await listener.aclose()


async def test_what_is_no_lack_of_room_is_raised():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        listener = PlainListener(listening)
        listening.shutdown(socket.SHUT_RDWR)
        with trio.fail_after(10), pytest.raises(OSError, match="Invalid argument"):
            await listener.accept()
        await listener.aclose()
