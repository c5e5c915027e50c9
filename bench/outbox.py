"""What the outbox costs: a million waiting deliveries, deliveries a second, and nine black holes beside one receiver.

The receivers are in memory, so that what is measured is the outbox and its store; the store is durable.

    python -m bench.outbox [--rows 1000000] [--events 20000]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import trio

from svc.actors.outbox import Outbox
from svc.domain.webhooks.envelope import seal
from svc.domain.webhooks.records import DeliveryKey, EndpointKey
from svc.domain.webhooks.signature import secrets_key
from svc.domain.webhooks.transport_types import Attempted
from svc.store.directory import Opened, open_directory
from svc.store.snapshot import Transaction
from svc.store.tables import DUE, WEBHOOK_EVENTS
from svc.store.transactions.accounts import create_organization
from svc.store.transactions.webhook_endpoints import NewEndpoint, create_endpoint
from svc.store.transactions.webhooks import enqueue, open_delivery
from svc.world import World

EVENT = "usage.daily_settled"
DATA = {"padding": "x" * 900}
"""About the size of `identification.completed`."""
ROWS_A_COMMIT = 20_000


class Instant:
    """Receivers that answer 200 at once, or that swallow everything for ten seconds."""

    def __init__(self) -> None:
        self.arrived: list[tuple[str, float]] = []
        self.holes: set[str] = set()
        self._awaited = 0
        self._reached = trio.Event()

    async def reached(self, count: int) -> None:
        """Until so many requests have arrived."""
        self._awaited, self._reached = count, trio.Event()
        await self._reached.wait()

    async def post(self, url: str, _: bytes, __: Mapping[str, str]) -> Attempted:
        self.arrived.append((url, time.perf_counter()))
        if len(self.arrived) == self._awaited:
            self._reached.set()
        if url in self.holes:
            await trio.sleep(10)
            return Attempted(None, "timeout", 10_000, None)
        await trio.lowlevel.checkpoint()
        return Attempted(200, None, 0, None)

    def to(self, url: str) -> list[float]:
        return [at for seen, at in self.arrived if seen == url]


class Bench:
    """A durable store with one organization in it."""

    def __init__(self, directory: str) -> None:
        self.world = World.real()
        self.found: Opened = open_directory(Path(directory), self.world.run_sync, self.world.entropy)
        self.transport = Instant()
        self.do(partial(create_organization, organization_id="org_bench", name="", now_ms=0, rate_limit_per_s=0))

    def do(self, job: Callable[[Transaction], Any]) -> Any:
        (outcome,) = self.found.store.write_now([job])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def endpoint(self, name: str) -> tuple[EndpointKey, str]:
        url = f"https://{name}.example/"
        new = NewEndpoint(id=f"whk_{name}", url=url, description="", environment="live", events=(EVENT,))
        issued = self.do(lambda txn: create_endpoint(txn, 1, new, b"", 0))
        return issued.registered.queue, url

    def outbox(self) -> Outbox:
        return Outbox(self.found.store, self.world, self.transport, secrets_key(self.found.pepper))

    def fill(self, queue: EndpointKey, count: int) -> None:
        """So many deliveries, each of an event of its own, all due."""
        now_ms = self.world.now_ms()

        def some(transaction: Transaction, many: int) -> None:
            for _ in range(many):
                event_id = self.world.request_id(now_ms)
                event = seal(event_id, EVENT, "live", "org_bench", DATA, now_ms)
                transaction.put(WEBHOOK_EVENTS, (queue.organization, event_id.bytes), event)
                open_delivery(transaction, queue, DeliveryKey(event_id.bytes, "auto"), now_ms)

        for begun in range(0, count, ROWS_A_COMMIT):
            self.do(partial(some, many=min(ROWS_A_COMMIT, count - begun)))


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def anonymous_mib() -> float:
    """Without the pages of the store's file, which the kernel takes back when it needs them."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


async def waiting(rows: int) -> None:
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        bench = Bench(directory)
        queues = [bench.endpoint(f"r{place}") for place in range(10)]
        for queue, _ in queues:
            bench.fill(queue, rows // len(queues))
        with bench.found.store.read() as snapshot:
            due = snapshot.count(DUE)
        before, began = anonymous_mib(), time.perf_counter()
        outbox = bench.outbox()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outbox.run)
            await bench.transport.reached(1)
            first = bench.transport.arrived[0][1]
            await trio.sleep(10)
            sent = len(bench.transport.arrived)
            nursery.cancel_scope.cancel()
        print(
            f"{due:,} due rows at ten endpoints: first delivery after {(first - began) * 1000:.1f} ms, "
            f"{sent / 10:,.0f} a second over ten seconds; memory {before:.0f} MiB before, {anonymous_mib():.0f} MiB "
            f"after ({resident_mib():.0f} MiB with mapped pages of the store)"
        )
        bench.found.store.close()


async def throughput(events: int) -> None:
    for endpoints in (1, 10):
        with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
            bench = Bench(directory)
            for place in range(endpoints):
                queue, _ = bench.endpoint(f"r{place}")
                bench.fill(queue, events // endpoints)
            outbox = bench.outbox()
            began = time.perf_counter()
            commits = bench.found.store.statistics().commits
            async with trio.open_nursery() as nursery:
                nursery.start_soon(outbox.run)
                await bench.transport.reached(events)
                nursery.cancel_scope.cancel()
            seconds = time.perf_counter() - began
            group = events / (bench.found.store.statistics().commits - commits)
            print(
                f"{events:,} deliveries, endpoints: {endpoints}: {events / seconds:,.0f} a second, "
                f"{group:.1f} attempts in a commit"
            )
            bench.found.store.close()


async def black_holes(holes: int) -> None:
    """Commit to POST at the healthy endpoint, 20 events a second to every endpoint for 20 seconds."""
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        bench = Bench(directory)
        _, healthy = bench.endpoint("healthy")
        bench.transport.holes = {bench.endpoint(f"hole{place}")[1] for place in range(holes)}
        outbox = bench.outbox()
        committed: list[float] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outbox.run)
            await trio.sleep(0.1)
            for number in range(400):
                fact = {"fact": number, **DATA}
                job = partial(_enqueue, data=fact, at_ms=bench.world.now_ms())
                (queues,) = await bench.found.store.write([job])
                assert isinstance(queues, tuple)
                committed.append(time.perf_counter())
                outbox.nudge(queues)
                await trio.sleep(0.05)
            await trio.sleep(0.2)
            nursery.cancel_scope.cancel()
        arrived = bench.transport.to(healthy)
        delays = sorted((at - then) * 1000 for then, at in zip(committed, arrived, strict=True))
        print(
            f"{holes} black holes and one healthy endpoint: commit to POST p50 {statistics.median(delays):.2f} ms, "
            f"p99 {delays[int(0.99 * len(delays))]:.2f} ms"
        )
        bench.found.store.close()


def _enqueue(transaction: Transaction, data: Any, at_ms: int) -> tuple[EndpointKey, ...]:
    return enqueue(transaction, 1, EVENT, "live", data, at_ms)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="deliveries that wait")
    parser.add_argument("--events", type=int, default=20_000, help="deliveries of each measurement of throughput")
    options = parser.parse_args()
    trio.run(throughput, options.events)
    trio.run(black_holes, 0)
    trio.run(black_holes, 9)
    trio.run(waiting, options.rows)


if __name__ == "__main__":
    main()
