"""`kill -9` under load, again and again, at random moments; then what clients and receivers were told is compared.

R2, with webhooks: every one arrives, or is listed as failed and can be recovered. Ten receivers on loopback TLS answer
200, 500, 410 or drop by seed. R1, of identifications alone under a heavier load: none that was acknowledged is lost,
none is made or billed twice; the run with webhooks asks that too. `tests/crash` holds the short forms.

    python -m bench.kill [--kills N] [--seed 1] [--workers 1] [--failing-arrivals 3]
    python -m bench.kill [--identifications] [--kills N] [--seed 1] [--workers 1]
    python -m bench.kill [--nodes] [--kills N] [--seed 1]     two nodes on PostgreSQL: a node, the leader, the database
    python -m bench.kill [--nodes] [--victims VICTIM...] [--kills N] [--stop-s 60.0] [--clock-off-s 0]
    python -m bench.kill [--failover] [--kills N]             the primary, whose synchronous standby is promoted

100 kills, 300 of identifications alone, 90 of nodes, 5 failovers, where no number is given. With two workers a worker,
the leader or the parent is killed, drawn by seed; the others go on. The victim `stopped` is the leader, by SIGSTOP.
With `--clock-off-s` the first node's clock is so far ahead. After `--failing-arrivals` a receiver is done failing.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from functools import partial
from pathlib import Path

import trio

from bench.usage import read_options
from tests.support.acknowledged import Outcome as OfIdentifications
from tests.support.acknowledged import killed_under_load
from tests.support.killed import Killed
from tests.support.killed import Outcome as OfWebhooks
from tests.support.killed_nodes import VICTIMS, KilledNodes
from tests.support.killed_nodes import Outcome as OfNodes
from tests.support.postgresql import Cluster
from tests.support.standby import Pair

KEYS_AT_ONCE = 300
"""Idempotency keys that every client sends at the same time, after the last kill."""


def main() -> None:
    options = read_options(__doc__)
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as name:
        directory = Path(name)
        outcome: OfIdentifications | OfWebhooks | OfNodes
        if options.nodes or options.failover:
            outcome = _of_nodes(directory, options)
        elif options.identifications:
            outcome = trio.run(partial(_identifications, directory, options))
        else:
            killed = Killed(directory, options.seed, options.failing_arrivals, _tell, workers=options.workers)
            outcome = trio.run(killed.run, options.kills or 100)
    _print(outcome)
    for fault in outcome.faults[:20]:
        print(fault)
    raise SystemExit(f"{len(outcome.faults)} faults" if outcome.faults else 0)


async def _identifications(directory: Path, options: argparse.Namespace) -> OfIdentifications:
    keys = KEYS_AT_ONCE if options.workers > 1 else 0
    kills = options.kills or 300
    return await killed_under_load(
        directory, options.seed, kills, _tell, workers=options.workers, keys=keys, at_random=True
    )


def _of_nodes(directory: Path, options: argparse.Namespace) -> OfNodes:
    server = Pair() if options.failover else Cluster(durable=True)
    victims = ("database",) if options.failover else options.victims or VICTIMS
    try:
        with server.database() as database:
            killed = KilledNodes(
                directory,
                server,
                database,
                options.seed,
                _tell,
                victims=victims,
                stop_s=options.stop_s,
                clock_off_s=options.clock_off_s,
            )
            try:
                return trio.run(killed.run, options.kills or (5 if options.failover else 90))
            finally:
                killed.end()
    finally:
        server.close()


def _print(outcome: OfIdentifications | OfWebhooks | OfNodes) -> None:
    print()
    for field, value in outcome._asdict().items():
        if isinstance(value, list) and field == "back_s":
            _print_times("back after", value)
        elif isinstance(value, dict):
            for name, found in value.items():
                if isinstance(found, list):
                    _print_times(f"{field} {name}", found)
                else:
                    print(f"{field} {name:<20}{found:>6,}")
        elif isinstance(value, int):
            print(f"{field:<16}{value:>16,}")
        elif field != "faults":
            print(f"{field:<16}{value}")


def _print_times(name: str, times: list[float]) -> None:
    if times:
        print(f"{name:<24}{statistics.median(times):>8.2f} s in the middle, {max(times):.2f} s at most")


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
