"""What reading events back costs in a large store, and what an event takes on disk.

A bounded generator fills a store with events of the last 29 days: real records through the store's own writer, reports
of 2 kB, a tenth as many visitors as events, a few of them busy. Then one client asks a server of its own, over HTTP:
pages, filters, two filters together. Statistics are summed in this process, from the counters.

    python -m bench.events [--events 10000 100000 1000000] [--requests 400]
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from bench.identify import ENVIRONMENT, Server
from bench.measures import quantile
from bench.reports import device_report
from svc.features.keys.command import issue_key
from svc.features.organizations.command import create_organization
from svc.features.retention.jobs import expired_by_key
from svc.features.tables import TABLES
from svc.identify.events.archive import deflate
from svc.identify.events.hour_counts import sum_of
from svc.identify.index.queries import Scope
from svc.identify.indexing.jobs import rebuild_indexes, step
from svc.identify.model import EventSignal, EventTrigger, Level, Verdict
from svc.identify.network_data.mmdb import COUNTRY_NAMES
from svc.identify.queries.events import put_event
from svc.identify.queries.hours import hours
from svc.identify.records import Document, Event, WeightsSnapshot
from svc.identify.scoring.score import default_weights
from svc.identify.tables.events import DOCUMENTS, EVENTS
from svc.identify.tables.weights import WEIGHTS_SNAPSHOTS
from svc.kernel.store.directory import open_directory
from svc.kernel.store.reading import read_only
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.tables import ORGANIZATIONS
from svc.kernel.values.environments import ENVIRONMENTS
from svc.kernel.values.timestamps import timestamp
from svc.world import World, twenty_characters

DAYS = 29
DAY_MS = 24 * 3600 * 1000
A_COMMIT = 2000
"""Events of one commit of the generator."""
BATCHES_SWEPT = 1000
REPORTS = 500
"""Different reports in the archive."""
WEIGHTS = b"w" * 16
LEVELS: tuple[Level | None, ...] = ("low", "medium", "high", None)
SHARES = (85, 8, 3, 4)
SCORES: dict[Level | None, int | None] = {"low": 0, "medium": 40, "high": 70, None: None}
TRIGGERS = {
    "medium": (EventTrigger("bot", 40, "high"),),
    "high": (EventTrigger("bot", 40, "high"), EventTrigger("tor", 30, "high")),
}

SIGNALS = {
    "medium": (EventSignal("headless", "bot", 40, "high"),),
    "high": (EventSignal("headless", "bot", 40, "high"), EventSignal("tor", "network", 30, "high")),
}
COUNTRIES = tuple(sorted(COUNTRY_NAMES))[:120]


class AttemptRecord(NamedTuple):
    """What the generator made, as far as the questions need it."""

    organization_id: str
    secret: str
    visitors: list[str]
    """The busiest first."""
    request_ids: list[str]
    """Some of those that the key may read."""
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, nargs="+", default=[1_000_000], help="sizes of stores, one after another")
    parser.add_argument("--requests", type=int, default=400, help="of each kind")
    options = parser.parse_args()
    ENVIRONMENT["SVC_READ_RATE"] = "0"
    for count in options.events:
        with tempfile.TemporaryDirectory(prefix="svc-bench-") as directory:
            measure(Path(directory), count, options.requests)


def measure(directory: Path, count: int, requests: int) -> None:
    """Fill a store with so many events, and ask it everything."""
    made = fill(directory, count)
    print(f"{count:,} events made in {made.seconds:.0f} s, {len(made.visitors):,} visitors\n")
    sizes(directory / "store", count)
    server = Server.serving(directory)
    try:
        ask(server, made, requests)
    finally:
        server.stop()
    statistics(directory / "store", requests)
    sweep(directory)
    rebuild(directory)


def statistics(directory: Path, times: int) -> None:
    """What the statistics of 30 days take: every hour is read, and all are summed."""
    taken_ms: list[float] = []
    hours_read = 0
    with read_only(directory, live=True) as store:
        for _ in range(times):
            began = time.process_time()
            with store.read() as snapshot:
                found = hours(snapshot, 1, "production", World.real().now_ms() - 30 * DAY_MS, World.real().now_ms())
            total = sum_of(counts for _, counts in found)
            taken_ms.append((time.process_time() - began) * 1000)
            hours_read = len(found)
    taken_ms.sort()
    print(
        f"statistics of 30 days: {hours_read} hours, {total.identifications:,} events, "
        f"CPU p50 {quantile(taken_ms, 0.5):.2f} ms, p99 {quantile(taken_ms, 0.99):.2f} ms"
    )


def rebuild(directory: Path) -> None:
    """What `svc store rebuild-indexes` takes."""
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy)
    began, cpu = time.perf_counter(), time.process_time()
    rebuilt = found.store.change_log(rebuild_indexes)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    found.store.close()
    print(f"rebuild: {rebuilt:,} events in {seconds:.1f} s ({cpu:.1f} s of CPU)\n")


def sweep(directory: Path) -> None:
    """What one batch of the retention sweeper takes, on the disk: some of the oldest, as if days had passed."""
    world = World.real()
    found = open_directory(directory, world.run_sync, world.entropy)
    now_ms = world.now_ms() + 4 * DAY_MS
    with found.store.read() as snapshot:
        ((number,), _), *_ = snapshot.scan(ORGANIZATIONS)
        task = next(task for task in expired_by_key(snapshot, number, now_ms) if task.name == EVENTS.name)
    taken_ms: list[float] = []
    start: tuple[Any, ...] | None = task.start
    while start is not None and len(taken_ms) < BATCHES_SWEPT:
        began = time.perf_counter()
        start = found.store.write_one_now(partial(task.step, start)).resume
        taken_ms.append((time.perf_counter() - began) * 1000)
    found.store.close()
    taken_ms.sort()
    middle, last = quantile(taken_ms, 0.5), quantile(taken_ms, 0.99)
    print(f"\nsweeper: {len(taken_ms)} batches of events, p50 {middle:.2f} ms, p99 {last:.2f} ms")


def fill(directory: Path, count: int) -> AttemptRecord:
    """A store with so many events of one organization, oldest first."""
    world, chance = World.real(), random.Random(5)
    began = time.perf_counter()
    found = open_directory(directory, world.run_sync, world.entropy, durable=False)
    organization = create_organization(found, world, "bench", credit=0, rate_limit=0)
    _, secret = issue_key(
        found, world, kind="secret", environment="production", organization=organization.number, name="b", region="us"
    )
    visitors = [twenty_characters(chance.randbytes) for _ in range(max(1, count // 10))]
    archives = [deflate(json.dumps(device_report(number)).encode()) for number in range(REPORTS)]
    weights = WeightsSnapshot(default_weights("web"))
    found.store.write_now([partial(Transaction.put, table=WEIGHTS_SNAPSHOTS, key=(WEIGHTS,), value=weights)])
    request_ids: list[str] = []
    rows = events(World.real(), chance, visitors, count)  # whose ids begin in the past
    while batch := list(islice(rows, A_COMMIT)):
        found.store.write_one_now(partial(record, number=organization.number, batch=batch, archives=archives))
        request_ids += [str(request_id) for request_id, given in batch[:9] if given.environment == "production"]
    for scope in (Scope(organization.number, place) for place in range(len(ENVIRONMENTS))):
        while found.store.write_now([partial(step, scope=scope, before_ms=World.real().now_ms())]) == [True]:
            pass  # as the indexer
    found.store.close()
    return AttemptRecord(organization.id, secret, visitors, request_ids, time.perf_counter() - began)


def events(world: World, chance: random.Random, visitors: list[str], count: int) -> Iterator[tuple[UUID, Event]]:
    """(request id, event), evenly over the days up to now."""
    end_ms = world.now_ms()
    for number in range(count):
        at_ms = end_ms - DAYS * DAY_MS * (count - number) // count
        yield world.request_id(at_ms), event(chance, at_ms, visitors[int(len(visitors) * chance.random() ** 2)])


def event(chance: random.Random, at_ms: int, visitor_id: str) -> Event:
    (level,) = chance.choices(LEVELS, SHARES)
    return Event(
        environment="production" if chance.random() < 0.95 else "staging",
        verdict=Verdict(
            visitor_id=visitor_id,
            state="enriched",
            reason=None,
            suspect_score=SCORES[level],
            suspect_level=level,
            triggers=() if level is None else TRIGGERS.get(level, ()),
            identifiable=True,
            visitor_is_new=False,
            visitor_confidence=100,
            linkage="token",
            signals=SIGNALS.get(level, ()) if level else (),
        ),
        occurred_at_ms=at_ms,
        platform="web",
        sdk_platform="web",
        sdk_version="0.1.0",
        origin="https://shop.example",
        tag=f"account {int(20_000 * chance.random() ** 2)}" if chance.random() < 0.5 else None,
        ip_address=f"81.{chance.randrange(8)}.{int(256 * chance.random() ** 2)}.{chance.randrange(256)}",
        country_code=COUNTRIES[int(len(COUNTRIES) * chance.random() ** 3)],
        country_name="United Kingdom",
        asn="20712",
        asn_name="Andrews & Arnold Ltd",
        anonymity_network="tor" if level == "high" else None,
        agent="Chrome",
        agent_version="137.0.0.0",
        os="Windows",
        device_kind="desktop",
        visitor_kind="human" if level == "low" else "automation",
        key_id="key_0123456789abcdefGHIJ",
        price_micros=3000,
    )


def record(transaction: Transaction, number: int, batch: list[tuple[UUID, Event]], archives: list[bytes]) -> None:
    for request_id, given in batch:
        put_event(transaction, number, request_id, given)
        document = Document(
            signals=archives[request_id.int % len(archives)],
            sdk_platform="web",
            sdk_version="0.1.0",
            tag=given.tag,
            suspect_threshold=30,
            weights_scope="default",
            weights_digest=WEIGHTS,
            evidence={fired.signal: ("seen",) for fired in given.verdict.signals or ()},
        )
        transaction.put(DOCUMENTS, (number, request_id.bytes), document)


def sizes(directory: Path, count: int) -> None:
    """Bytes of each table, per event."""
    with read_only(directory, live=True) as store, store.read() as snapshot:
        print(f"{'':20}{'bytes per event':>16}")
        total = 0
        for table in TABLES:
            used = snapshot.size(table)
            total += used
            if snapshot.count(table) >= count:
                print(f"{table.name:20}{used / count:16.0f}")
        print(f"{'all':20}{total / count:16.0f}\n{'file':20}{store.used_bytes / count:16.0f}\n")


def ask(server: Server, made: AttemptRecord, requests: int) -> None:
    """Ask each kind of question so often, one after the other, and print how long the answers took."""
    chance = random.Random(6)
    since = {"from": timestamp(World.real().now_ms() - (DAYS * DAY_MS))}
    busy = {"visitor": made.visitors[0]}

    def anyone() -> dict[str, Any]:
        return since | {"visitor": chance.choice(made.visitors)}

    questions: dict[str, Callable[[], str]] = {
        "no event (healthz)": lambda: "/healthz",
        "first page": lambda: _list({}),
        "first page of 200": lambda: _list({"limit": 200}),
        "page 50 at 200": lambda: _list(since | {"limit": 200, "page": 50}),
        "offset 10,000, 1 row": lambda: _list(since | {"limit": 1, "page": 10_001}),
        "a visitor": lambda: _list(anyone()),
        "the busiest visitor": lambda: _list(since | busy),
        "a level (high)": lambda: _list(since | {"level": "high"}),
        "a visitor at a level": lambda: _list(since | busy | {"level": "high"}),
        "a tag": lambda: _list(since | {"tag": f"account {chance.randrange(20_000)}"}),
        "the busiest tag": lambda: _list(since | {"tag": "account 0"}),
        "an address": lambda: _list(since | {"ip_address": f"81.{chance.randrange(8)}.0.{chance.randrange(256)}"}),
        "a country": lambda: _list(since | {"country": chance.choice(COUNTRIES)}),
        "a signal": lambda: _list(since | {"signal": "tor"}),
        "a kind": lambda: _list(since | {"kind": "human"}),
        "a kind, 200 rows": lambda: _list(since | {"kind": "human", "limit": 200}),
        "country and kind": lambda: _list(since | {"country": COUNTRIES[0], "kind": "human"}),
        "signal and country": lambda: _list(since | {"signal": "tor", "country": COUNTRIES[100]}),
        "level and country": lambda: _list(since | {"level": "high", "country": COUNTRIES[100]}),
        "visitor and country": lambda: _list(since | busy | {"country": COUNTRIES[50]}),
        "never together": lambda: _list(since | {"signal": "tor", "kind": "human"}),
        "one event": lambda: f"/events/{chance.choice(made.request_ids)}",
    }
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    print(f"{'':22}{'p50 ms':>8}{'p99 ms':>8}{'CPU ms':>8}{'bytes':>10}{'not 200':>9}")
    for name, question in questions.items():
        times: list[float] = []
        size = refused = 0
        spent = 0.0
        for number in range(-20, requests):  # the first ones warm caches up
            if number == 0:
                spent = sum(server.cpu())
            path = "/api/v1" + question()
            began = time.perf_counter()
            connection.request("GET", path, headers={"x-api-key": made.secret})
            response = connection.getresponse()
            body = response.read()
            if number >= 0:
                times.append(1000 * (time.perf_counter() - began))
                size += len(body)
                refused += response.status != 200
        times.sort()
        p50, p99 = quantile(times, 0.5), quantile(times, 0.99)
        cpu_ms = 1000 * (sum(server.cpu()) - spent) / requests
        print(f"{name:22}{p50:8.2f}{p99:8.2f}{cpu_ms:8.2f}{size / requests:10,.0f}{refused:9}")


def _list(query: dict[str, Any]) -> str:
    return "/events?" + urlencode(query)


if __name__ == "__main__":
    main()
