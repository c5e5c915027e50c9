"""`svc webhook recover` beside a service that runs: what it queues is sent at once, whichever process sends it.

The services here never look by themselves at what other processes have committed: only being told makes them send.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.values.partitions import PARTITIONS
from tests.spec.test_nodes import metrics
from tests.store.postgresql.nodes import until
from tests.support.due import Due, certified
from tests.support.postgresql import Cluster
from tests.support.process import Served, run
from tests.support.receivers import THANKS, Responder, receiver

NEVER_LOOKING = (
    "import svc.cli; from svc.features.webhooks.sending import outbox; outbox.POLL_INTERVAL_S = 10**9; svc.cli.main()"
)
PROGRAM = [sys.executable, "-c", NEVER_LOOKING]
LIMIT_S = 60


@contextmanager
def serving(data: Path, processes: int, settings: dict[str, str]) -> Generator[list[Served]]:
    servers = [Served(data, program=PROGRAM, **settings) for _ in range(processes)]
    try:
        yield servers
        assert [server.terminate() for server in servers] == [0] * processes
    finally:
        for server in servers:
            server.kill_all([])


async def spread(servers: Sequence[Served]) -> None:
    """Until every node has its part of the shares."""
    part = PARTITIONS / len(servers)
    held = partial(map, lambda server: metrics(server)["svc_webhook_shares_held"], servers)
    await until(lambda: all(abs(shares - part) < 1 for shares in held()), LIMIT_S)


async def arrived(heard: Sequence[Responder], each: int) -> None:
    await until(lambda: [len(one.requests) for one in heard] == [each] * len(heard), LIMIT_S)


async def recovers(due: Due, heard: Sequence[Responder], settings: dict[str, str]) -> None:
    for _, endpoint in due.endpoints:
        command = partial(run, "webhook", "recover", endpoint.id, "--since", "1h", "--data", str(due.data), **settings)
        await trio.to_thread.run_sync(command)
    await arrived(heard, 5)
    for one in heard:
        assert set(Counter(request.headers["x-svc-event-id"] for request in one.requests).values()) == {1}


@pytest.mark.slow(2)
@pytest.mark.one_case("recovered at once")
async def test_two_workers_send_recovered_deliveries_at_once(tmp_path: Path):
    tls, settings = certified(tmp_path)
    heard = Responder(THANKS)
    async with receiver(heard, tls) as port:
        due = await trio.to_thread.run_sync(Due, tmp_path / "data", [f"https://127.0.0.1:{port}/"])
        await trio.to_thread.run_sync(partial(due.fill, 5, failed=True))
        with serving(due.data, 1, settings | {"SVC_WORKERS": "2"}) as (server,):
            await trio.to_thread.run_sync(server.wait_for_workers, 2)
            await recovers(due, [heard], {})


@pytest.mark.slow(8)
@pytest.mark.one_case("recovered at once")
async def test_two_nodes_send_recovered_deliveries_at_once(cluster: Cluster, database: str, tmp_path: Path):
    """Of two endpoints in shares of different nodes."""
    url: StoreUrl = cluster.url(database)
    tls, settings = certified(tmp_path)
    settings["SVC_STORE"] = str(url)
    heard = [Responder(THANKS), Responder(THANKS)]
    async with receiver(heard[0], tls) as one, receiver(heard[1], tls) as two:
        urls = [f"https://127.0.0.1:{port}/" for port in (one, two)]
        due = await trio.to_thread.run_sync(Due, tmp_path / "data", urls, url)
        await trio.to_thread.run_sync(partial(due.fill, 5, failed=True))
        with serving(due.data, 2, settings) as servers:
            await spread(servers)
            await recovers(due, heard, {"SVC_STORE": str(url)})
            await until(lambda: [delivered(server) for server in servers] == [5, 5])


def delivered(server: Served) -> float:
    return metrics(server).get('svc_webhook_attempts_total{result="delivered"}', 0)
