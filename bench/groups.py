"""Nodes that identify on one PostgreSQL: round trips, runs and conflicts of their groups, and CPU of both sides.

Each node is a process that assesses visits and commits them, 32 at a time, as the service does without HTTP. It starts
a database of its own on this machine, with fsync, and stops it. In the end every sum is what its rows add up to.

    python -m bench.groups [--nodes 2] [--organizations 32] [--together 16] [--batches 40] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import trio

from bench.measures import cpu_s
from bench.reports import device_report, submission_of
from svc.actors.visitor_index import ClassKey, Frequencies
from svc.cli.records.organizations import create_organization
from svc.domain.identification import Assessment, Submission, assess
from svc.store import hints
from svc.store.check.invariants import violations
from svc.store.opening import open_store
from svc.store.postgresql.connection.url import store_url
from svc.store.postgresql.engine import PostgresqlEngine
from svc.store.postgresql.store import ORGANIZATIONS_PER_GROUP, PostgresqlStore
from svc.store.schema.tables import TABLES
from svc.store.store import Store
from svc.store.transactions.identification import Recorded, identify
from svc.store.views.learned import PRODUCTION
from svc.world import World
from tests.support.postgresql import Cluster
from tests.support.worlds import Everywhere
from tests.support.writes import writes

BATCH, AT_ONCE, DEVICES = 32, 4, 500


class Node:
    """One of the processes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._world, self._options = World.real(), options
        url = store_url(options.node)
        engine = PostgresqlEngine.open(url)
        engine.open_tables([table.name for table in TABLES])
        self._store = PostgresqlStore(engine, url, self._world, organizations_per_group=options.together)
        self._frequencies = Frequencies(self._store)
        self._chance = random.Random(options.seed)

    async def run(self) -> dict[str, Any]:
        """Introduce the devices, then measure."""
        await self._batches(DEVICES // BATCH)
        before, cpu, began = self._store.exchanges(), time.process_time(), time.perf_counter()
        await self._batches(self._options.batches)
        seconds, cpu, after = time.perf_counter() - began, time.process_time() - cpu, self._store.exchanges()
        self._store.close()
        groups, jobs = after.groups - before.groups, after.jobs - before.jobs
        return {
            "identifications": jobs,
            "seconds": seconds,
            "jobs_a_group": jobs / groups,
            "trips_a_group": (after.round_trips - before.round_trips) / groups,
            "runs_a_job": (after.runs - before.runs) / jobs,
            "retries": after.retries,
            "unfenced": after.unfenced,
            "cpu_us": 1e6 * cpu / jobs,
        }

    async def _batches(self, count: int) -> None:
        free = trio.Semaphore(AT_ONCE)
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                await free.acquire()
                nursery.start_soon(self._record, [assess(self._visit(), Everywhere()) for _ in range(BATCH)], free)
                await trio.lowlevel.checkpoint()

    async def _record(self, assessments: list[Assessment], free: trio.Semaphore) -> None:
        keys = [ClassKey(one.submission.organization, PRODUCTION, one.features.family) for one in assessments]
        jobs = [
            partial(identify, assessment=assessment, statistics=await self._frequencies.of(key))
            for key, assessment in zip(keys, assessments, strict=True)
        ]
        outcomes = await self._store.write(
            writes(
                jobs,
                organizations=[key.organization for key in keys],
                hints=[partial(hints.identification, assessment=assessment) for assessment in assessments],
            ),
            urgent=True,
        )
        for key, recorded in zip(keys, outcomes, strict=True):
            assert isinstance(recorded, Recorded), recorded
            await self._frequencies.learn(key, recorded)
        free.release()

    def _visit(self) -> Submission:
        device = self._chance.randrange(DEVICES)
        organization = 1 + self._chance.randrange(self._options.organizations)
        return submission_of(self._world, organization, device, device_report(device))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """What each node measured, all at the same time; CPU of the database in microseconds for each identification, those
    before the measurement included; and what is wrong with the store in the end.
    """
    world, cluster = World.real(), Cluster(durable=True)
    try:
        with cluster.database() as database, tempfile.TemporaryDirectory() as directory:
            url = cluster.url(database)

            def open_engine(_: Path, /, **how: Any) -> PostgresqlEngine:
                return PostgresqlEngine.open(url, **how)

            store = open_store(Path(directory), world.run_sync, open_engine=open_engine)
            for number in range(options.organizations):
                create_organization(_Found(store), world, f"bench {number}", credit=10**12, rate_limit=0)
            before = server_cpu_of(cluster)
            command = [sys.executable, "-m", "bench.groups", "--node", str(url)]
            command += ["--organizations", str(options.organizations), "--batches", str(options.batches)]
            command += ["--together", str(options.together)]
            nodes = [
                subprocess.Popen([*command, "--seed", str(seed)], stdout=subprocess.PIPE)
                for seed in range(options.nodes)
            ]
            rows = [json.loads(node.communicate()[0]) for node in nodes]
            made = sum(row["identifications"] for row in rows) + options.nodes * (DEVICES // BATCH) * BATCH
            database_us = 1e6 * (server_cpu_of(cluster) - before) / made
            with store.read() as snapshot:
                wrong = list(violations(snapshot))
            store.close()
    finally:
        cluster.close()
    return {"nodes": rows, "database_cpu_us": database_us, "violations": wrong}


class _Found:
    """What commands ask of an open data directory."""

    directory = database = None

    def __init__(self, store: Store) -> None:
        self.store = store


def server_cpu_of(cluster: Cluster) -> float:
    """Seconds that the server and its sessions have used, those that have ended included."""
    children = Path(f"/proc/{cluster.pid}/task/{cluster.pid}/children").read_text().split()
    return cpu_s(cluster.pid, with_ended=True) + sum(cpu_s(int(child)) for child in children)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--organizations", type=int, default=32)
    parser.add_argument("--together", type=int, default=ORGANIZATIONS_PER_GROUP, help="organizations in a group")
    parser.add_argument("--batches", type=int, default=40, help="of 32 identifications, for each node")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--node", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.node:
        print(json.dumps(trio.run(Node(options).run)))
        return
    measured = measure(options)
    if options.json:
        print(json.dumps(measured))
        return
    for row in measured["nodes"]:
        print("  ".join(f"{name} {value:.2f}" for name, value in row.items()))
    print(f"database {measured['database_cpu_us']:.0f} us; violations: {measured['violations'] or 'none'}")


if __name__ == "__main__":
    main()
