"""Webhooks sent by one, two and three nodes on one PostgreSQL: CPU of each delivery, and who sent how many.

Real services and a real database on this machine, and receivers over TLS in a process of their own. Each count of nodes
has its turn in each round. Rates are of one machine on which all of it shares the cores: CPU is what compares.

    python -m bench.webhook_nodes [--deliveries 3000] [--rounds 2] [--nodes 1 2 3]
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import trio

from bench.far_side import far_side
from bench.groups import server_cpu_of
from bench.measures import cpu_s
from tests.store.postgresql.nodes import until
from tests.support.due import ORGANIZATION_ID, Due
from tests.support.postgresql import Cluster
from tests.support.process import Served
from tests.support.process import run as run_command
from tests.test_recover_at_once import delivered, spread

ENDPOINTS = 10


class Row(NamedTuple):
    """One run."""

    nodes: int
    per_s: float
    node_us: float
    """CPU of all nodes for each delivery."""
    database_us: float
    sent: list[int]
    """By each node."""
    duplicates: int


async def run(cluster: Cluster, database: str, directory: Path, nodes: int, deliveries: int) -> Row:
    """Fill the queues of ten endpoints beside nodes that have their shares, and let them send."""
    url = cluster.url(database)
    async with far_side(directory, ["healthy"] * ENDPOINTS) as far, AsyncExitStack() as stack:
        due = await trio.to_thread.run_sync(Due, directory / "data", far.urls, url)
        settings = {
            "SVC_STORE": str(url),
            "SVC_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
            "SVC_WEBHOOK_CA_FILE": str(far.ca_file),
        }
        served: list[Served] = []
        for _ in range(nodes):
            served.append(await trio.to_thread.run_sync(partial(Served, due.data, **settings)))
            stack.callback(served[-1].kill)
        await spread(served)
        before = [cpu_s(each.pid) for each in served]  # one that looks meanwhile begins to send
        await trio.to_thread.run_sync(due.fill, deliveries // ENDPOINTS)
        database_before = server_cpu_of(cluster)
        command = partial(
            run_command, "org", "rate-limit", ORGANIZATION_ID, "0", "--data", str(due.data), SVC_STORE=str(url)
        )
        began = trio.current_time()
        await trio.to_thread.run_sync(command)  # the nodes look now
        ended = await far.arrived(deliveries, 300)
        assert ended is not None, "not all have arrived within five minutes"
        seconds = trio.current_time() - began
        await until(lambda: sum(map(delivered, served)) == deliveries, 60)
        sent = [int(delivered(each)) for each in served]
        used = sum(cpu_s(each.pid) for each in served) - sum(before)
        database_used = server_cpu_of(cluster) - database_before
        arrivals = await far.arrivals()
    per = 1e6 / deliveries
    return Row(nodes, deliveries / seconds, used * per, database_used * per, sent, len(arrivals) - deliveries)


async def measure(options: argparse.Namespace) -> None:
    cluster = Cluster(durable=True)
    try:
        for _ in range(options.rounds):
            for nodes in options.nodes:
                with cluster.database() as database, tempfile.TemporaryDirectory() as directory:
                    row = await run(cluster, database, Path(directory), nodes, options.deliveries)
                print(
                    f"{row.nodes} nodes: {row.per_s:,.0f}/s, CPU of each delivery: nodes {row.node_us:,.0f} us, "
                    f"database {row.database_us:,.0f} us; sent {row.sent}, {row.duplicates} twice",
                    flush=True,
                )
    finally:
        cluster.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--deliveries", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 3])
    trio.run(measure, parser.parse_args())


if __name__ == "__main__":
    main()
