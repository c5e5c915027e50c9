"""Webhooks from commit to receiver: a real service over a durable store, and real TLS to receivers in another process.

    python -m bench.webhooks [--quick] [--only MEASURE...]

The first byte of a delivery is taken when it has come through the receiver's TLS; the commit, when it is on the disk.
Times are of one machine on which service, receivers and load share the cores: compare them within one run.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager, redirect_stderr
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import structlog
import trio

from bench.far_side import HOSTILE, Arrival, FarSide, far_side
from bench.measures import memory_mib, quantile
from bench.serving import prepare
from bench.usage import read_options
from svc.command.logs import set_up_logging
from svc.features.webhooks.addresses import TargetPolicy
from svc.features.webhooks.jobs.endpoints import Issued, NewEndpoint, change_endpoint, create_endpoint
from svc.features.webhooks.queries import Registered
from svc.features.webhooks.records import Transport
from svc.features.webhooks.tables import ATTEMPTS, WEBHOOK_EVENTS
from svc.features.webhooks.transport.connections import tls_context
from svc.features.webhooks.transport.resolver import SystemResolver
from svc.features.webhooks.transport.transport import DEADLINE_S, WebhookTransport
from svc.http.server.server import open_listeners
from svc.kernel.config import Config
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.engine import Engine
from svc.serve.service import Service
from svc.serve.serving import listen
from svc.world import World
from tests.support.engines import Watched, opening

T = TypeVar("T")

COMPLETED = "identification.completed"
LOOPBACK = ("127.0.0.0/8",)
SPELLS = 3
"""Of hostile receivers, to tell memory that grows from memory that is used once."""


class Row(NamedTuple):
    """One line of the table."""

    what: str
    figure: str
    aim: str = ""


class Scale(NamedTuple):
    """How much of everything: the whole, or enough to see that it works."""

    seconds: float
    """Of each load."""
    deadline_s: float
    """Of an attempt at a hostile receiver."""
    turns: int
    """With black holes and without."""


WHOLE, QUICK = Scale(20, DEADLINE_S, 10), Scale(1, 1, 1)


class Noting(Watched):
    """The store's engine, which notes when the commit of each webhook event was on the disk."""

    def __init__(self, inner: Engine) -> None:
        super().__init__(inner, self._put)
        self.committed: dict[str, float] = {}
        """Id of the event -> monotonic seconds."""
        self._new: list[str] = []

    def _put(self, verb: str, table: str, key: bytes, _: bytes) -> bool:
        if verb == "put" and table == WEBHOOK_EVENTS.name:
            self._new.append(str(UUID(bytes=key[-16:])))
        return True

    def write(self, group: Callable[[Any], T], /, **options: Any) -> T:
        self._new.clear()
        result = super().write(group, **options)
        self.committed.update(dict.fromkeys(self._new, time.monotonic()))
        return result


class Running:
    """A service that serves, and when what it has committed was on the disk."""

    def __init__(self, found: Opened, port: int) -> None:
        assert isinstance(found.store.engine, Noting)
        self.found = found
        self.port = port
        self.committed = found.store.engine.committed

    def pause(self, places: Iterable[int], *, paused: bool) -> None:
        """Those of the endpoints that `subscribe` has made."""
        for place in places:
            change = partial(change_endpoint, number=1, endpoint_id=f"whk_{place}", fields={"paused": paused})
            assert isinstance(self.found.store.write_one_now(change), Registered)

    def delays_ms(self, arrivals: Sequence[Arrival]) -> list[float]:
        """Commit to first byte of those deliveries that have arrived, sorted."""
        return sorted((arrival.at - self.committed[arrival.event_id]) * 1000 for arrival in arrivals)


@asynccontextmanager
async def serving(directory: Path, far: FarSide, transport: Transport | None = None) -> AsyncGenerator[Running]:
    """The service of this data directory in this process, which may send to the far side."""
    config = Config(
        trusted_proxies=("127.0.0.1/32",), webhook_allow_networks=LOOPBACK, webhook_ca_file=str(far.ca_file)
    )
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy, open_engine=opening(Noting))
    shutdown = trio.Event()
    try:
        async with trio.open_nursery() as nursery:
            service = Service(config, world, found, transport=transport, resolver=SystemResolver())
            edge = await nursery.start(service.run, open_listeners(listen("127.0.0.1:0")), shutdown)
            yield Running(found, edge.addresses[0][1])
            shutdown.set()
    finally:
        found.store.close()


def subscribe(directory: Path, urls: Sequence[str]) -> None:
    """Endpoints of the first organization for identifications, one for each URL."""
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy)
    for place, url in enumerate(urls):
        new = NewEndpoint(id=f"whk_{place}", url=url, description="", environment="live", events=(COMPLETED,))
        job = partial(create_endpoint, number=1, new=new, secrets_key=b"", now_ms=world.now_ms())
        assert isinstance(found.store.write_one_now(job), Issued)
    found.store.close()


async def black_holes(directory: Path, scale: Scale) -> AsyncGenerator[Row]:
    """R6: what a healthy endpoint sees of nine that swallow everything for ten seconds.

    In turn, in one service: the nine are paused and resumed, so that what else the machine does falls on both.
    """
    home = _home(directory, "holes")
    api_key = await trio.to_thread.run_sync(prepare, str(home))
    async with far_side(home, ["healthy", *["never responds", "stalls TLS", "never accepts"] * 3]) as far:
        subscribe(home, far.urls)
        async with serving(home, far) as service:
            service.pause(range(1, 10), paused=True)
            await _warm_up(far, service, api_key, healthy=1)
            delays: dict[bool, list[float]] = {False: [], True: []}
            for turn in range(2 * scale.turns):
                beside = turn % 2 == 1
                service.pause(range(1, 10), paused=not beside)
                loaded = await far.load(service.port, api_key, per_s=20, seconds=scale.seconds / 4)
                ended = await far.arrived(loaded.accepted, 60)
                arrivals = await far.arrivals()
                assert ended is not None, f"the healthy endpoint was starved: {len(arrivals)} of {loaded}"
                delays[beside] += service.delays_ms(arrivals)
    for beside, times in delays.items():
        times.sort()
        yield Row(
            f"one healthy endpoint and {9 * beside} black holes, 20 identifications/s",
            f"p50 {quantile(times, 0.5):.1f} ms, p99 {quantile(times, 0.99):.1f} ms of {len(times):,}",
        )
    p50, p99 = (quantile(delays[True], part) / quantile(delays[False], part) for part in (0.5, 0.99))
    yield Row("nine black holes beside none", f"p50 x {p50:.2f}, p99 x {p99:.2f}", "p99 <= 2 x")


async def hostile(directory: Path, scale: Scale) -> AsyncGenerator[Row]:
    """R7: every attempt ends, and leaves no memory behind. The receivers are in another process: what grows is ours."""
    plays = [*HOSTILE, "stalls TLS", "never accepts"]
    home = _home(directory, "hostile")
    api_key = await trio.to_thread.run_sync(prepare, str(home))
    async with far_side(home, plays) as far:
        subscribe(home, far.urls)
        networks, world = Config(webhook_allow_networks=LOOPBACK).webhook_networks(), World.real()
        sender = WebhookTransport(
            SystemResolver(),
            TargetPolicy(networks),
            tls_context(far.ca_file),
            world.now_ms,
            deadline_s=scale.deadline_s,
        )
        async with serving(home, far, sender) as service:
            await far.load(service.port, api_key, per_s=1, seconds=1)
            with trio.move_on_after(2 * DEADLINE_S):
                await _attempted(service.found, len(plays))
            memory = [memory_mib(mapped=False)]
            for _ in range(SPELLS):
                await far.load(service.port, api_key, per_s=4, seconds=min(scale.seconds, 4))
                await trio.sleep(3 * scale.deadline_s)
                memory.append(memory_mib(mapped=False))
            with service.found.store.read() as snapshot:
                attempts = [attempt for _, attempt in snapshot.scan(ATTEMPTS)]
        await sender.aclose()
    for place, play in enumerate(plays):
        own = [attempt for attempt in attempts if attempt.endpoint == place + 1]
        longest = max(attempt.duration_ms for attempt in own) / 1000
        said = ", ".join(sorted({str(attempt.error) for attempt in own}))
        yield Row(play, f"{len(own)} attempts: {said}; the longest {longest:.2f} s", f"<= {scale.deadline_s + 0.5:g} s")
    spells = ", ".join(f"{mib:.1f}" for mib in memory)
    yield Row("memory before, and after each of three spells", f"{spells} MiB", "flat")


def _home(directory: Path, name: str) -> Path:
    home = directory / name
    home.mkdir()
    return home


async def _warm_up(far: FarSide, service: Running, api_key: str, healthy: int = 10) -> None:
    """Connections are made, patterns are read: what only the first requests pay."""
    loaded = await far.load(service.port, api_key, per_s=20, seconds=1)
    await far.arrived(healthy * loaded.accepted, 30)
    await far.arrivals()


async def _attempted(found: Opened, number: int) -> None:
    """Until so many attempts are in the log."""
    while True:
        with found.store.read() as snapshot:
            if snapshot.count(ATTEMPTS) >= number:
                return
        await trio.sleep(0.05)


MEASURES = {"black-holes": black_holes, "hostile": hostile}


async def measure(names: Sequence[str], scale: Scale) -> list[Row]:
    """Print each row when it is known; all of them."""
    rows: list[Row] = []
    for name in names:
        about, _, _ = (MEASURES[name].__doc__ or "").partition("\n")
        print(f"\n{name}: {about}", flush=True)
        with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
            async for row in MEASURES[name](Path(directory), scale):
                rows.append(row)
                print(f"  {row.what:<58}  {row.figure}{f'   (aim: {row.aim})' if row.aim else ''}", flush=True)
    return rows


@contextmanager
def unread_log() -> Generator[None]:
    """The service logs as it does everywhere, and nobody reads it."""
    before = sys.excepthook, logging.lastResort
    with Path(os.devnull).open("w") as nowhere:
        with redirect_stderr(nowhere):
            set_up_logging("json")
        sys.excepthook, logging.lastResort = before
        try:
            yield
        finally:
            structlog.reset_defaults()


def main() -> None:
    options = read_options(__doc__)
    scale = QUICK if options.quick else WHOLE
    with unread_log():
        trio.run(measure, options.only or list(MEASURES), scale)


if __name__ == "__main__":
    main()
