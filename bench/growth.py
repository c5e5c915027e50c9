"""What a store grows by: bytes for an identification, a visitor, a delivery, by table, and the disk that months take.

One virtual day of one organization through the real transactions: reports of some 2 kB from devices that come back and
are updated now and then, each with an `Idempotency-Key`; some with a deferred report; one webhook endpoint that is sent
of every identification and answers. Bytes are whole pages, as the store's file has them.

    python -m bench.growth [--identifications 10000] [--new 0.1] [--seed 1]
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import trio

from bench.reports import device_report, identified, submitted
from bench.retention import EPOCH_MS, Everywhere, deferred, prepare
from bench.usage import read_options
from svc.features.events.change_jobs import supplement
from svc.features.tables import TABLES
from svc.features.webhooks.jobs.deliveries import AttemptRecord, log_attempt
from svc.features.webhooks.jobs.endpoints import NewEndpoint, create_endpoint
from svc.features.webhooks.queries import NoWork, next_delivery
from svc.features.webhooks.retries import AttemptResult
from svc.features.webhooks.tables import (
    ATTEMPT_COUNTS,
    ATTEMPTS,
    ATTEMPTS_BY_ENVIRONMENT,
    ATTEMPTS_BY_EVENT,
    DELIVERIES,
    WEBHOOK_EVENTS,
)
from svc.identify.identification import Submission
from svc.identify.matching import Statistics
from svc.identify.model import RequestFacts
from svc.identify.tables import (
    ADDRESSES,
    BLOCKS,
    DEFERRED_REPORTS,
    DOCUMENTS,
    EVENT_SEGMENTS,
    EVENT_TAIL,
    EVENTS,
    IDEMPOTENCY,
    REPORT_FINGERPRINTS,
    VISITOR_IDS,
    VISITORS,
)
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.reading import read_only
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.tables import LEDGER
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.partitions import EndpointKey
from svc.world import World

BATCH = 64
DEFERRED_SHARE = 0.05
UPDATED_SHARE = 0.1
"""Of the visits of a known device: those after an update of its browser."""
MONTH_DAYS = 30
GIB = 1 << 30


class Part(NamedTuple):
    """Tables that grow by the same thing and are kept for as long."""

    name: str
    tables: tuple[Table[Any], ...]
    per: str
    """`identification`, `visitor`, `delivery` or `deferred report`."""
    days: float
    """How long a row is kept, at most; 0 = for ever."""


OF_DELIVERIES = (DELIVERIES, ATTEMPTS, ATTEMPTS_BY_ENVIRONMENT, ATTEMPTS_BY_EVENT, ATTEMPT_COUNTS)
PARTS = (
    Part("event", (EVENTS,), "identification", 30),
    Part("archived report", (DOCUMENTS,), "identification", 30),
    Part("index of events", (EVENT_TAIL, EVENT_SEGMENTS), "identification", 30),
    Part("replay memory", (REPORT_FINGERPRINTS,), "identification", 60),
    Part("idempotency key", (IDEMPOTENCY,), "identification", 1.25),
    Part("address", (ADDRESSES,), "identification", 60),
    Part("ledger", (LEDGER,), "identification", 0),
    Part("webhook event", (WEBHOOK_EVENTS,), "delivery", 30),
    Part("delivery and attempt", OF_DELIVERIES, "delivery", 30),
    Part("deferred report", (DEFERRED_REPORTS,), "deferred report", 30),
    Part("visitor", (VISITORS, VISITOR_IDS), "visitor", 365),
    Part("blocks of matching", (BLOCKS,), "visitor", 365),
)


class Growth:
    """One organization's day."""

    def __init__(self, directory: Path, new_share: float, seed: int) -> None:
        self._chance = random.Random(seed)
        self._world = World(lambda: EPOCH_MS, self._chance.randbytes, trio.to_thread.run_sync)
        self._statistics = Statistics()
        self._new_share = new_share
        self._versions: list[int] = []
        """Of the browser of each device so far."""
        self.counts = {"identification": 0, "visitor": 0, "delivery": 0, "deferred report": 0}
        self.found: Opened = open_directory(
            directory, self._world.run_sync, self._world.entropy, durable=False, map_bytes=16 * GIB
        )
        self._do(_prepare)

    def live(self, count: int) -> None:
        """So many identifications over the day, and everything that follows from each."""
        visits = (self._submission(EPOCH_MS + number * DAY_MS // count) for number in range(count))
        while batch := list(islice(visits, BATCH)):
            self._identify(batch)
            self._deliver(batch[-1].at_ms)
        with self.found.store.read() as snapshot:
            self.counts["visitor"] = snapshot.count(VISITORS)

    def _identify(self, batch: list[Submission]) -> None:
        identified(self.found.store, batch, Everywhere(), self._statistics)
        self.counts["identification"] += len(batch)
        followed: list[Callable[[Transaction], Any]] = []
        for submission in batch:
            if self._chance.random() < DEFERRED_SHARE:
                report = deferred(self._chance, submission.at_ms)
                followed.append(partial(supplement, number=1, request_id=submission.request_id, report=report))
        outcomes = self.found.store.write_now(followed)
        assert not any(isinstance(outcome, Exception) for outcome in outcomes), outcomes
        self.counts["deferred report"] += len(followed)

    def _deliver(self, now_ms: int) -> None:
        """Every delivery that is due arrives, as the outbox writes it down."""
        queue = EndpointKey(1, 1)

        def deliver(transaction: Transaction) -> int:
            made = 0
            while not isinstance(claim := next_delivery(transaction, queue, now_ms, ()), NoWork):
                result = AttemptResult(1, claim.delivery.due_ms, now_ms, 20, 200, None)
                attempt_id = self._world.request_id(now_ms)
                log_attempt(
                    transaction, AttemptRecord(attempt_id, queue, claim.key, claim.endpoint, claim.event, result)
                )
                made += 1
            return made

        self.counts["delivery"] += self._do(deliver)

    def _do(self, job: Callable[[Transaction], Any]) -> Any:
        return self.found.store.write_one_now(job)

    def _submission(self, at_ms: int) -> Submission:
        number = self._device()
        signals = {**device_report(number), "client_token": f"{number:032x}", "nonce": self._chance.randbytes(8).hex()}
        signals["userAgent"] = signals["userAgent"].replace("137", str(self._versions[number]))
        return submitted(
            self._world,
            signals,
            at_ms=at_ms,
            key_id="key_x",
            sdk_version="1.0",
            origin="https://shop.example",
            tag=f"order {self._chance.getrandbits(32)}",
            idempotency=self._chance.randbytes(16),
            facts=RequestFacts(ip=f"81.{number % 200}.{number // 200 % 250}.{number % 250}"),
        )

    def _device(self) -> int:
        if not self._versions or self._chance.random() < self._new_share:
            self._versions.append(137)
            return len(self._versions) - 1
        number = self._chance.randrange(len(self._versions))
        self._versions[number] += self._chance.random() < UPDATED_SHARE
        return number


def _prepare(transaction: Transaction) -> None:
    prepare(transaction)
    new = NewEndpoint(
        id="whk_x",
        url="https://shop.example/",
        description="",
        environment="live",
        events=("identification.completed",),
    )
    create_endpoint(transaction, 1, new, b"", EPOCH_MS)


def table_bytes(directory: Path) -> dict[str, int]:
    """Table -> its pages, in bytes."""
    with read_only(directory / "store", live=True) as store, store.read() as snapshot:
        return {table.name: snapshot.size(table) for table in TABLES}


def each(part: Part, sizes: dict[str, int], counts: dict[str, int]) -> float:
    """Bytes of a part for one of what it grows by."""
    return sum(sizes[table.name] for table in part.tables) / counts[part.per]


def disk_gib(monthly: float, sizes: dict[str, int], counts: dict[str, int], months: int = 12) -> float:
    """After so many months of the same traffic: a store in which everything is kept for as long as it may be."""
    total = 0.0
    for part in PARTS:
        kept = min(part.days or months * MONTH_DAYS, months * MONTH_DAYS) / MONTH_DAYS
        total += monthly * counts[part.per] / counts["identification"] * kept * each(part, sizes, counts)
    return total / GIB


def lines(sizes: dict[str, int], counts: dict[str, int]) -> Iterator[str]:
    yield f"{'':22}{'bytes':>8}   for one"
    for part in PARTS:
        kept = f"{part.days:g} days" if part.days else "for ever"
        yield f"{part.name:22}{each(part, sizes, counts):8.0f}   {part.per}, {kept}"
    named = {table.name for part in PARTS for table in part.tables}
    yield f"{'everything else':22}{sum(size for name, size in sizes.items() if name not in named):8}   in all"
    for monthly in (1e6, 10e6, 50e6):
        webhooks = sum(each(part, sizes, counts) for part in PARTS if part.per == "delivery") * monthly / GIB
        yield (
            f"{monthly / 1e6:3.0f} M a month: {disk_gib(monthly, sizes, counts):7.1f} GiB after a year, "
            f"{webhooks:.1f} of it webhooks; {disk_gib(monthly, sizes, counts, months=1):.1f} after a month"
        )


def main() -> None:
    options = read_options(__doc__)
    with TemporaryDirectory(prefix="svc-bench-") as name:
        growth = Growth(Path(name), options.new, options.seed)
        growth.live(options.identifications)
        used = growth.found.store.statistics().used_bytes
        growth.found.store.close()
        sizes = table_bytes(Path(name))
    print(f"{growth.counts}; {used / 1e6:.1f} MB used, {sum(sizes.values()) / 1e6:.1f} MB in tables")
    print()
    print("\n".join(lines(sizes, growth.counts)))


if __name__ == "__main__":
    main()
