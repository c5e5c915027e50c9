"""For how long a group holds its organization's fence, and what passes in that time.

Two stores on one database, in one process, write groups of identifications in turn, so that each runs ahead (ADR 139):
devices that return each hour.
Nobody else is on the database, so nothing waits for the fence. Medians of the faster half, in milliseconds: a machine
that others use shows its better moments.

    python -m bench.fences [--jobs 64] [--groups 40]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from itertools import pairwise

import trio

from bench.usage import read_options
from svc.features.tables import TABLES
from svc.kernel.store.postgresql.connection.wire import Result, Statement, Wire
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.store.postgresql.statements import COMMIT, TAKE_FENCES
from svc.kernel.values.ids import HOUR_MS
from tests.store.postgresql.test_identified_by_nodes import AT_MS, nodes, visit
from tests.support.postgresql import Cluster

STEPS = ("reads and jobs", "own rows, fence, look", "jobs again", "writes and commit")


class Watch:
    """Notes when the exchanges of a group begin and end."""

    def __init__(self) -> None:
        self.before = Wire.exchange
        self.began = 0.0
        self.ends: list[float] = []

    @property
    def exchange(self) -> Callable[[Wire, Sequence[Statement]], Awaitable[list[Result]]]:
        async def exchange(wire: Wire, sent: Sequence[Statement]) -> list[Result]:
            fence, commit = any(one.sql == TAKE_FENCES for one in sent), sent[-1].sql == COMMIT
            if fence or commit:
                self.ends.append(time.perf_counter())
            found = await self.before(wire, sent)
            if fence or commit:
                self.ends.append(time.perf_counter())
            return found

        return exchange

    def steps(self) -> list[float]:
        """Milliseconds of each of `STEPS`."""
        times = [self.began, *self.ends]
        return [1000 * (after - before) for before, after in pairwise(times)]


async def measured(cluster: Cluster, database: str, jobs: int, groups: int) -> list[list[float]]:
    """`STEPS` of each group."""
    found: list[list[float]] = []
    async with nodes(cluster, database, 2) as stores:
        for store in stores:
            await store.write([visit(device) for device in range(1, jobs + 1)])
        for number in range(groups):
            given = [visit(device, at_ms=AT_MS + HOUR_MS * (number + 1)) for device in range(1, jobs + 1)]
            watch = Watch()
            Wire.exchange = watch.exchange  # pyright: ignore[reportAttributeAccessIssue]  put back below
            try:
                watch.began = time.perf_counter()
                await stores[number % 2].write(given)
            finally:
                Wire.exchange = watch.before
            found.append(watch.steps())
    return found


def main() -> None:
    options = read_options(__doc__)
    cluster = Cluster(durable=True)
    with closing(cluster), cluster.database() as database:
        with closing(PostgresqlEngine.open(cluster.url(database))) as engine:
            engine.open_tables([table.name for table in TABLES], create=True)
        found = trio.run(measured, cluster, database, options.jobs, options.groups)
    held_ms = whole_ms = 0.0
    for place, name in enumerate(STEPS):
        times = sorted(steps[place] for steps in found if len(steps) == len(STEPS))
        middle = statistics.median(times[: len(times) // 2])
        held_ms += middle * (place > 0)
        whole_ms += middle
        print(f"{name:<24}{middle:8.2f}")
    print(f"held for {held_ms:.1f} ms at most: {1000 * options.jobs / held_ms:,.0f} a second of one organization")
    print(f"were it held from the first read on, {whole_ms:.1f} ms: {1000 * options.jobs / whole_ms:,.0f} a second")


if __name__ == "__main__":
    main()
