"""What retention reads and costs after a start, in a store as large as months made it.

Sweeps as the actor makes them: the first one that a store ever had, one after a restart, and one when the next pass is
due, before which some identifications come. Rows are those that jobs and queries read or look for; rests between steps
are left out.

    python -m bench.retention_starts [--visitors 100000] [--events 10] [--visits 2000] [--scratch DIR]
"""

from __future__ import annotations

import argparse
import logging
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import structlog
import trio

from bench.page_fill import EPOCH_MS, Countries
from bench.page_visits import Visits
from svc.actors import retention
from svc.domain.identification import assess
from svc.store.store import Store
from svc.store.transactions.retention import PASS_INTERVAL_MS
from tests.support.counted_store import CountedStore

VISITOR_DAYS = 365


def sweep(visits: Visits, now_ms: int, name: str) -> None:
    """One, as the actor makes it."""
    counted = CountedStore(visits.found.store)
    began_s = time.process_time()

    async def run() -> None:
        await retention.sweep(cast("Store", counted), now_ms, VISITOR_DAYS)

    trio.run(run)
    spent_s = time.process_time() - began_s
    most = ", ".join(f"{table} {rows:,}" for table, rows in counted.rows.most_common(5))
    print(f"| {name} | {counted.rows.total():,} | {spent_s:.3f} | {most} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--visitors", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=10, help="for each visitor")
    parser.add_argument("--visits", type=int, default=2000, help="before the next pass")
    parser.add_argument("--scratch", type=Path, default=None)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    retention.REST = 0.0
    with TemporaryDirectory(prefix="svc-bench-", dir=options.scratch) as name:
        events = options.visitors * options.events
        visits = Visits(Path(name), options.visitors, events, options.visits, seed=1, in_time=True)
        print(
            f"{options.visitors:,} visitors, {events:,} events\n\n| sweep | rows | CPU, s | most |\n|---|---:|---:|---|"
        )
        sweep(visits, EPOCH_MS + 60_000, "the first ever")
        sweep(visits, EPOCH_MS + 120_000, "after a restart")
        for _ in range(options.visits // 20):
            made = visits.group(20, 0.7)
            visits.commit([visits.job(kind, assess(one, Countries()), Counter(), Counter()) for kind, one in made])
        sweep(visits, EPOCH_MS + 60_000 + PASS_INTERVAL_MS, "the next pass")
        visits.found.store.close()


if __name__ == "__main__":
    main()
