"""How many jobs run again where four nodes write for one organization at the same instant (ADR 139, 159).

Four stores on one database, in one process, are handed a group of identifications each, all at once, and the next ones
when these are committed. `--stream` is a folder with a stream of simulated visits (`bench.linkage.streams`), of which
each node has every fourth visit.

    python -m bench.reruns [--rounds 40] [--group 12] [--stream DIR...]
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import trio

from bench.linkage.streams import client_token, read_stream
from bench.reports import submitted
from bench.usage import read_options
from svc.features.identification import hints
from svc.features.identification.transaction import Recorded, identify
from svc.features.tables import TABLES
from svc.identify.history.visitor_numbers import TAKEN_AT_ONCE, NextNumber, VisitorNumbers
from svc.identify.identification import assess
from svc.identify.matching import Statistics
from svc.identify.model import RequestFacts
from svc.kernel.store.group import Write
from svc.kernel.store.postgresql.engine import PostgresqlEngine
from svc.kernel.store.postgresql.store import PostgresqlStore
from tests.store.postgresql.test_identified_by_nodes import AT_MS, WORLD, at_once, nodes
from tests.support.live import report
from tests.support.postgresql import Cluster
from tests.support.worlds import Everywhere

NODES = 4
KNOWN = 4_000
"""Visits of a stream that are written before it is measured: nobody is known at first."""
RETURN = 150
"""Devices that return."""


class Visit(NamedTuple):
    ip: str
    signals: dict[str, Any]
    at_ms: int = AT_MS


def written(visit: Visit, next_number: NextNumber) -> Write[Recorded]:
    ip, signals, at_ms = visit
    facts = RequestFacts(ip=ip, user_agent=signals.get("userAgent") or "")
    submission = submitted(WORLD, signals, facts, at_ms=at_ms)
    assessment = assess(submission, Everywhere())
    job = partial(identify, assessment=assessment, statistics=Statistics(), next_number=next_number)
    return Write(job, 1, hint=partial(hints.identification, assessment=assessment))


def device(number: int, ip: str) -> Visit:
    return Visit(ip, {**report(number % 200), "client_token": f"{number:032x}"})


def own(number: int) -> str:
    return f"81.{number >> 8 & 255}.{number & 255}.160"


def made_up() -> dict[str, Iterator[Visit]]:
    chance = random.Random(3)
    return {
        "new devices, networks of their own": (device(number, own(number)) for number in count(1_000)),
        f"{RETURN} devices that return": (
            device(number, own(number)) for number in iter(partial(chance.randrange, RETURN), -1)
        ),
        "new devices behind one address": (device(number, "81.2.69.160") for number in count(1_000)),
        "new devices of a carrier's /22": (
            device(number, f"81.2.{chance.randrange(4)}.{chance.randrange(256)}") for number in count(1_000)
        ),
    }


def streamed(folder: Path) -> Iterator[Visit]:
    for request in read_stream(folder).requests:
        token = {"client_token": client_token(request.storage_id)} if request.storage_id else {}
        at_ms = int(1000 * datetime.fromisoformat(request.at).timestamp())
        yield Visit(request.ip, {**request.signals, **token}, at_ms)


class Plan(NamedTuple):
    known: int
    """Visits that are written before anything is measured."""
    rounds: int
    group: int


async def measured(cluster: Cluster, database: str, visits: Iterator[Visit], plan: Plan) -> str:
    async with nodes(cluster, database, NODES) as stores:
        hands = [VisitorNumbers(TAKEN_AT_ONCE) for _ in stores]
        for _ in range(plan.known // (NODES * plan.group)):
            await in_one_round(stores, hands, visits, plan.group)
        before = counted(stores)
        for _ in range(plan.rounds):
            await in_one_round(stores, hands, visits, plan.group)
        jobs, runs, groups, trips, ahead = (after - then for after, then in zip(counted(stores), before, strict=True))
    return f"{jobs:>6}{100 * (runs - jobs) / jobs:>10.1f} %{100 * ahead / groups:>10.0f} %{trips / groups:>10.1f}"


def counted(stores: list[PostgresqlStore]) -> tuple[int, ...]:
    counts = [store.exchanges() for store in stores]
    rows = [(each.jobs, each.runs, each.groups, each.round_trips, each.ahead) for each in counts]
    return tuple(map(sum, zip(*rows, strict=True)))


async def in_one_round(
    stores: list[PostgresqlStore], hands: list[VisitorNumbers], visits: Iterator[Visit], group: int
) -> None:
    numbers = [hand.hand_out([1] * group) for hand in hands]
    taken = list(islice(visits, NODES * group))
    given = [
        [written(*each) for each in zip(taken[place::NODES], numbers[place], strict=True)] for place in range(NODES)
    ]
    for hand, own_numbers, found in zip(hands, numbers, await at_once(stores, given), strict=True):
        for next_number, recorded in zip(own_numbers, found, strict=True):
            hand.give_back(1, next_number, recorded.new_number)


def main() -> None:
    options = read_options(__doc__)
    cells = [(name, visits, 0) for name, visits in made_up().items()]
    cells += [(f"stream {folder.name}", streamed(folder), KNOWN) for folder in options.stream]
    print(f"{'':<40}{'jobs':>6}{'again':>12}{'ahead':>12}{'trips':>10}")
    cluster = Cluster()
    with closing(cluster):
        for name, visits, known in cells:
            with cluster.database() as database:
                with closing(PostgresqlEngine.open(cluster.url(database))) as engine:
                    engine.open_tables([table.name for table in TABLES], create=True)
                plan = Plan(known, options.rounds, options.group)
                print(f"{name:<40}{trio.run(measured, cluster, database, visits, plan)}", flush=True)


if __name__ == "__main__":
    main()
