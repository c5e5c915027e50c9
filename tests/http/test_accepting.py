"""Connections that wait are accepted several at a time, so that a burst delays the next client only briefly."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import trio

from svc.http.server.listening import AT_ONCE, PlainListener

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
