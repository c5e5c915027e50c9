"""Honest clients beside 2,000 hostile sockets: their times, the server's descriptors, and the end of the server.

A real `svc serve`; the sockets are held by a process of their own, which opens each again some seconds after the server
has closed it. The honest ask at a fixed rate, half of them on kept connections and half on a new one for each request,
as visitors do. Their times with an attack are divided by those of the quiet spells around it.

    python -m bench.hostile [--sockets 2000] [--reopen-s 5.0] [--seconds 8.0] [--rate 200.0] [--kinds KIND,KIND]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import trio

from bench.load import requests
from bench.measures import memory_mib, quantile
from bench.serving import Server, prepare, report_body
from bench.usage import read_options

HONEST = 32
GIVE_UP_S = 5.0
"""An honest client that waits longer counts as failed."""
BASELINE_S = 20.0
"""How long the descriptors are watched after an attack."""
OPENED_WITHIN_S = 8.0
"""All hostile sockets; at once, they would all run out of time at once too."""
PAUSE_S = OPENED_WITHIN_S + 2
"""Between an attack's beginning and the measuring."""


class Spell(NamedTuple):
    """What honest clients saw for a while."""

    times: list[float]
    """Seconds of each answered request, sorted; the connecting of new connections counts."""
    outcomes: Counter[str]
    cpu: float
    """Share of one core that the server took."""

    def quantile_ms(self, share: float) -> float:
        return 1e3 * quantile(self.times, share)


# The attack


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


def attack(kinds: list[str], port: int, sockets: int, reopen_s: float, api_key: str) -> None:
    """Hold so many sockets, of each kind in turn, until the process is ended."""
    os.nice(10)  # what it takes of its core is not to be taken from the honest
    raise_limit()

    async def hold_all() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(sockets):
                nursery.start_soon(_hold, KINDS[kinds[number % len(kinds)]], port, reopen_s, api_key)

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


# The honest


async def honest(server: Server, port: int, make_request: Callable[[], bytes], rate: float, seconds: float) -> Spell:
    spell = Spell([], Counter(), 0.0)
    before = server.cpu_s()
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for number in range(HONEST):
            starts = began + number / rate
            is_kept = number % 2 == 0
            nursery.start_soon(_ask_often, spell, port, make_request, starts, HONEST / rate, began + seconds, is_kept)
    spell.times.sort()
    return spell._replace(cpu=(server.cpu_s() - before) / (trio.current_time() - began))


async def _ask_often(
    spell: Spell, port: int, make_request: Callable[[], bytes], at: float, period: float, end: float, is_kept: bool
) -> None:
    """A request each period, or as soon as the one before it is over."""
    stream: trio.SocketStream | None = None
    while at < end:
        await trio.sleep_until(at)
        at = max(at + period, trio.current_time())
        began = time.perf_counter()
        outcome = "late"
        with trio.move_on_after(GIVE_UP_S):
            was_kept = stream is not None
            outcome, stream = await _ask(stream, port, make_request())
            if outcome == "closed" and was_kept:  # as any HTTP client does when a kept connection turns out to be gone
                spell.outcomes["asked again"] += 1
                outcome, stream = await _ask(None, port, make_request())
        spell.outcomes[outcome] += 1
        if outcome == "200":
            spell.times.append(time.perf_counter() - began)
        if stream is not None and (outcome != "200" or not is_kept):
            await trio.aclose_forcefully(stream)
            stream = None
    if stream is not None:
        await stream.aclose()


async def _ask(stream: trio.SocketStream | None, port: int, request: bytes) -> tuple[str, trio.SocketStream | None]:
    """(status, or what else became of it; the connection)"""
    received = b""
    try:
        stream = stream or await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(request)
        while data := await stream.receive_some():
            received += data
            head, blank, body = received.partition(b"\r\n\r\n")
            if blank and len(body) >= int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]):
                return head[9:12].decode(), stream
    except (OSError, trio.BrokenResourceError):
        pass
    return "closed", None


# The run


class Run:
    """One server under measurement."""

    def __init__(self, server: Server, api_key: str, options: argparse.Namespace) -> None:
        self.server = server
        self.port = server.port
        self.api_key = api_key
        self.options = options
        self._request = requests(api_key, [report_body(number, token=True) for number in range(500)], seed=1)

    def measure(self) -> Spell:
        options = self.options
        return trio.run(honest, self.server, self.port, self._request, options.rate, options.seconds)

    def descriptors(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.server.process.pid}/fd").iterdir())

    def memory_mb(self) -> float:
        return memory_mib(self.server.process.pid)

    @contextmanager
    def attacked(self, kinds: list[str]) -> Generator[None]:
        """A process that holds hostile sockets for the length of a block."""
        given = (kinds, self.port, self.options.sockets, self.options.reopen_s, self.api_key)
        process = multiprocessing.get_context("spawn").Process(target=attack, args=given, daemon=True)
        process.start()
        try:
            yield
        finally:
            process.kill()
            process.join()

    def baseline_s(self, baseline: int) -> float:
        """Seconds until no more descriptors are open than before the attack."""
        began = time.monotonic()
        while self.descriptors() > baseline and time.monotonic() - began < BASELINE_S:
            time.sleep(0.05)
        return time.monotonic() - began

    def end_s(self) -> float:
        """Seconds from SIGTERM to the end of the process, with every kind of socket open."""
        with self.attacked(list(KINDS)):
            time.sleep(PAUSE_S + 1)
            began = time.monotonic()
            self.server.stop()
            return time.monotonic() - began


def table(run: Run, kinds: list[str]) -> None:
    run.measure()  # warms caches up
    quiet = run.measure()
    baseline = run.descriptors()
    print(
        f"{'':15}{'p50 ms':>8}{'p99 ms':>8}{'CPU':>7}{'p50 x':>7}{'p99 x':>7}{'fds':>7}{'back s':>7}{'MB':>6}  honest"
    )
    print(_line("quiet", quiet))
    for kind in kinds:
        with run.attacked(list(KINDS) if kind == "all" else [kind]):
            time.sleep(PAUSE_S)
            attacked = run.measure()
            open_now, memory_mb = run.descriptors(), run.memory_mb()
        back_s = run.baseline_s(baseline)
        after = run.measure()
        ratios = [
            2 * attacked.quantile_ms(share) / (quiet.quantile_ms(share) + after.quantile_ms(share))
            for share in (0.5, 0.99)
        ]
        print(_line(kind, attacked, f"{ratios[0]:7.2f}{ratios[1]:7.2f}{open_now:7}{back_s:7.1f}{memory_mb:6.0f}"))
        print(_line("quiet", after), flush=True)
        quiet = after


def _part_cores(pid: int) -> None:
    """One for the server, the others for its clients: what an attack costs its sender is not the server's doing."""
    first, *others = sorted(os.sched_getaffinity(0))
    if others:
        os.sched_setaffinity(pid, {first})
        os.sched_setaffinity(0, others)


def _line(name: str, spell: Spell, more: str = " " * 34) -> str:
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in spell.outcomes.most_common())
    return f"{name:15}{spell.quantile_ms(0.5):8.2f}{spell.quantile_ms(0.99):8.2f}{spell.cpu:7.0%}{more}  {outcomes}"


def main() -> None:
    given = read_options(__doc__)
    raise_limit()
    print(f"{given.sockets} hostile sockets, {HONEST} honest clients, {given.rate:g} requests a second\n")
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        api_key = prepare(directory)
        server = Server.serving(directory)
        try:
            _part_cores(server.process.pid)
            run = Run(server, api_key, given)
            table(run, given.kinds.split(",") if given.kinds else [*KINDS, "all"])
            print(f"\nSIGTERM with all of them open: the process ended after {run.end_s():.1f} s")
        finally:
            server.process.kill()


if __name__ == "__main__":
    main()
