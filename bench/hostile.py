"""Honest clients beside 2,000 hostile sockets: their times, the server's descriptors, and the end of the server.

A real `svc serve`; the sockets are held by a process of their own, which opens each again some seconds after the server
has closed it. The honest ask at a fixed rate, half of them on a new connection for each request (`bench.beside`).

    python -m bench.hostile [--sockets 2000] [--reopen-s 5.0] [--seconds 8.0] [--rate 50.0] [--kinds KIND,KIND]
"""

from __future__ import annotations

import os
import random
import resource
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection

import trio

from bench.beside import Attack, attacked, compare, honest
from bench.serving import Server, prepare
from bench.usage import read_options

BASELINE_S = 20.0
"""How long the descriptors are watched after an attack."""
OPENED_WITHIN_S = 8.0
"""All hostile sockets; at once, they would all run out of time at once too."""
SETTLED_S = OPENED_WITHIN_S + 2


async def silent(_: trio.SocketStream, __: str) -> None:
    return


async def trickling(stream: trio.SocketStream, _: str) -> None:
    await _drip(stream, b"POST /api/v1/identify HTTP/1.1\r\nHost: a\r\nX-Slow: " + b"x" * 1_000)


async def slow_body(stream: trio.SocketStream, api_key: str) -> None:
    """With a public key, which anybody can read in the page."""
    await stream.send_all(_head(api_key, 1_000))
    await _drip(stream, b"{" + b" " * 900)


async def never_reading(stream: trio.SocketStream, _: str) -> None:
    await stream.send_all(b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: a\r\n\r\n" * 4)
    await trio.sleep_forever()


async def unauthorized(stream: trio.SocketStream, _: str) -> None:
    """An early 401; the client goes on with its body all the same."""
    await stream.send_all(_head("none", 900_000))
    await _drip(stream, b"x" * 1_000)


async def too_large(stream: trio.SocketStream, api_key: str) -> None:
    """An early 413, the same way."""
    await stream.send_all(_head(api_key, 1 << 40))
    await _drip(stream, b"x" * 1_000)


def _head(api_key: str, length: int) -> bytes:
    return (
        "POST /api/v1/identify HTTP/1.1\r\nHost: a\r\nOrigin: https://shop.example\r\n"
        f"Content-Type: application/json\r\nX-Api-Key: {api_key}\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


async def _drip(stream: trio.SocketStream, data: bytes) -> None:
    for position in range(len(data)):
        await stream.send_all(data[position : position + 1])
        await trio.sleep(1)


Kind = Callable[[trio.SocketStream, str], Awaitable[None]]
KINDS: dict[str, Kind] = {
    "silent": silent,
    "trickling": trickling,
    "slow body": slow_body,
    "never reading": never_reading,
    "early 401": unauthorized,
    "early 413": too_large,
}


def hold(kinds: Sequence[str], sockets: int, reopen_s: float, api_key: str, port: int, told: Connection) -> None:
    """Hold a number of sockets, of each kind in turn: an `Attack`."""
    os.nice(10)  # what it takes of its core is not to be taken from the honest
    raise_limit()

    async def hold_all() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(sockets):
                nursery.start_soon(_hold, KINDS[kinds[number % len(kinds)]], port, reopen_s, api_key)
            with trio.open_signal_receiver(signal.SIGTERM) as ended:
                await anext(ended)
            told.send({})
            nursery.cancel_scope.cancel()

    trio.run(hold_all)


def raise_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _hold(kind: Kind, port: int, reopen_s: float, api_key: str) -> None:
    await trio.sleep(random.random() * OPENED_WITHIN_S)
    while True:
        try:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
        except OSError:
            pass
        else:
            async with stream:
                await _until_closed(stream, kind, api_key)
        await trio.sleep(random.uniform(0.5, 1.5) * reopen_s)


async def _until_closed(stream: trio.SocketStream, kind: Kind, api_key: str) -> None:
    async with trio.open_nursery() as nursery:

        async def act() -> None:
            try:
                await kind(stream, api_key)
            except trio.BrokenResourceError:
                nursery.cancel_scope.cancel()

        nursery.start_soon(act)
        if kind is not never_reading:
            try:
                while await stream.receive_some():
                    pass
            except trio.BrokenResourceError:
                pass
            nursery.cancel_scope.cancel()


def _part_cores(pid: int) -> None:
    """One for the server, the others for its clients: what an attack costs its sender is not the server's doing."""
    first, *others = sorted(os.sched_getaffinity(0))
    if others:
        os.sched_setaffinity(pid, {first})
        os.sched_setaffinity(0, others)


def main() -> None:
    given = read_options(__doc__)
    raise_limit()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        api_key = prepare(directory)
        attacks: dict[str, Attack] = {
            kind: partial(hold, [*KINDS] if kind == "all" else [kind], given.sockets, given.reopen_s, api_key)
            for kind in (given.kinds.split(",") if given.kinds else [*KINDS, "all"])
        }
        server = Server.serving(directory)
        try:
            _part_cores(server.process.pid)
            measure = partial(honest, server, api_key, given.seconds, given.rate, fresh=True)
            measure()  # opens what a service opens once
            baseline = server.descriptors()
            compare(server, attacks, measure, 1, settle_s=SETTLED_S)
            every = partial(hold, [*KINDS], given.sockets, given.reopen_s, api_key)
            with attacked(server.port, every, SETTLED_S):
                began = time.monotonic()
            while server.descriptors() > baseline and time.monotonic() - began < BASELINE_S:
                time.sleep(0.05)
            print(f"after all of them {time.monotonic() - began:.1f} s until no more descriptors than before")
            with attacked(server.port, every, SETTLED_S):
                began = time.monotonic()
                server.stop()
                print(f"SIGTERM with all of them open: the process ended after {time.monotonic() - began:.1f} s")
        finally:
            server.process.kill()


if __name__ == "__main__":
    main()
