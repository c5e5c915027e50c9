"""What watching costs: a scrape of a large store, and the log line and the counts of one request.

A store with a million due deliveries and a million events is made in the temporary directory, then scraped while a
watch measures how late the loop is; in the same run, what a request adds to the log and to the counters, in CPU time.

    python -m bench.metrics [--rows 1000000] [--organizations 1000] [--scrapes 20]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import UUID

import structlog
import trio

from svc.census import take_census
from svc.cli.logs import AsyncLogWriter, set_up_logging
from svc.config import Config
from svc.domain.histogram import WAIT_S, Histogram
from svc.domain.webhooks.records import MAX_ENDPOINTS
from svc.http.traffic import Traffic
from svc.service import Service
from svc.store.directory import Opened, open_directory
from svc.store.segments import Digests
from svc.store.snapshot import Transaction
from svc.store.tables import DUE, ENDPOINTS, EVENT_TAIL
from svc.store.transactions.accounts import create_organization
from svc.store.transactions.webhook_endpoints import Issued, NewEndpoint, create_endpoint
from svc.world import World, twenty_characters

EVENT = "identification.completed"
ROWS_A_COMMIT = 20_000
CALLS = 5_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="due deliveries, and as many events")
    parser.add_argument("--organizations", type=int, default=1_000, help="each with ten endpoints")
    parser.add_argument("--scrapes", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
        trio.run(_run, Path(directory), options)


async def _run(directory: Path, options: argparse.Namespace) -> None:
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy, durable=False)
    try:
        _fill(found, world, options.organizations, options.rows)
        await _scrape(found, world, options.scrapes)
    finally:
        found.store.close()
    await _request()


def _fill(found: Opened, world: World, organizations: int, rows: int) -> None:
    now_ms = world.now_ms()
    makers: list[Callable[[Transaction], object]] = [partial(_organization, world=world) for _ in range(organizations)]
    for start in range(0, rows, ROWS_A_COMMIT):
        numbers = range(start, min(start + ROWS_A_COMMIT, rows))
        makers.append(partial(_rows, numbers=numbers, organizations=organizations, now_ms=now_ms))
    for maker in makers:
        found.store.write_one_now(maker)


def _organization(transaction: Transaction, world: World) -> None:
    organization_id = "org_" + twenty_characters(world.entropy)
    made = create_organization(
        transaction, organization_id=organization_id, name="b", now_ms=world.now_ms(), rate_limit_per_s=0
    )
    for _ in range(MAX_ENDPOINTS):
        new = NewEndpoint(
            id="whk_" + twenty_characters(world.entropy),
            url="https://receiver.example/",
            description="",
            environment="live",
            events=(EVENT,),
        )
        assert isinstance(create_endpoint(transaction, made.number, new, b"", world.now_ms()), Issued)


def _rows(transaction: Transaction, numbers: range, organizations: int, now_ms: int) -> None:
    """One due delivery and one event each; what a scrape looks at of them, their keys."""
    for number in numbers:
        organization, endpoint = 1 + number % organizations, 1 + number // organizations % MAX_ENDPOINTS
        raw_id = UUID(int=number + 1).bytes
        transaction.put(DUE, (organization, endpoint, now_ms - number % 60_000, raw_id, 0), b"")
        transaction.put(EVENT_TAIL, (organization, 0, now_ms, raw_id), Digests(()))


async def _scrape(found: Opened, world: World, scrapes: int) -> None:
    """The service is not running: nothing else is on the loop but the watch."""
    service = Service(Config(), world, found)
    late: list[float] = []
    with found.store.read() as snapshot:
        endpoints, due = snapshot.count(ENDPOINTS), snapshot.count(DUE)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_watch, late)
        await trio.sleep(0.1)
        late.clear()
        whole, alone, cpu = [], [], []
        size = 0
        for _ in range(scrapes):
            began, used = time.perf_counter(), time.process_time()
            size = len(await service.metrics.expose())
            whole.append(time.perf_counter() - began)
            cpu.append(time.process_time() - used)
            began = time.process_time()
            await take_census(found.store, world.now_ms())
            alone.append(time.process_time() - began)
            await trio.sleep(0.02)
        nursery.cancel_scope.cancel()
    print(f"{endpoints:,} endpoints, {due:,} due deliveries and as many events; {scrapes} scrapes of {size:,} bytes")
    print(f"  scrape          {_ms(whole)} ms from asked to answered, {_ms(cpu)} ms of CPU")
    print(f"  of it endpoints {_ms(alone)} ms of CPU")
    print(f"  loop            held for {1000 * max(late):.1f} ms of CPU at most")


async def _watch(late: list[float]) -> None:
    """As often as the loop lets it: what others computed in between, whatever else the machine was doing."""
    while True:
        began = time.process_time()
        await trio.lowlevel.checkpoint()
        late.append(time.process_time() - began)


async def _request() -> None:
    """What a request adds, in microseconds of CPU."""
    sink = Path("/dev/null").open("w")  # noqa: SIM115, ASYNC230  for as long as the program runs
    stderr, sys.stderr = sys.stderr, sink
    set_up_logging("json")
    sys.stderr = stderr
    lines = AsyncLogWriter(sink, str)
    world = World.real()
    request_id = world.request_id(world.now_ms())
    log = structlog.get_logger()
    histogram = Histogram(WAIT_S)
    quiet, loud = Traffic("none"), Traffic("all")

    def pass_through(traffic: Traffic) -> None:
        passing = traffic.began(request_id, 0)
        passing.operation_id = "identify"
        traffic.ended(passing, 200)

    def measure() -> None:
        histogram.observe(trio.current_time() - trio.current_time())

    print(
        f"\nper request, CPU: each wait {_each(measure):.1f} us; "
        f"counted {_each(partial(pass_through, quiet)):.1f} us, with its line {_each(partial(pass_through, loud)):.1f}"
    )
    fields = {"request_id": str(request_id), "operation": "identify", "status": 200, "duration_ms": 8.7}
    print(f"a line alone {_each(partial(log.info, 'request', **fields)):.1f} us, of it writing ", end="")
    print(f"{_each(partial(lines.write, 'x' * 300)):.1f}")


def _each(call: Callable[[], object]) -> float:
    """Microseconds of CPU; the best of three."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        for _ in range(CALLS):
            call()
        best = min(best, (time.process_time() - began) / CALLS)
    return 1e6 * best


def _ms(seconds: list[float]) -> str:
    return f"{1000 * statistics.median(seconds):.1f} (at most {1000 * max(seconds):.1f})"


if __name__ == "__main__":
    main()
