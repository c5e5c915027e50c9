"""Nodes that send webhooks together, of which one is killed and one stands still: each delivery is logged once, and
sent twice only where it was in flight.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest
import trio

from svc.features.webhooks.queues import ORGANIZATION_SLOTS
from tests.spec.test_nodes import metrics
from tests.store.postgresql.nodes import until
from tests.support.due import ORGANIZATION_ID, Due, certified
from tests.support.postgresql import Cluster
from tests.support.process import Served, run
from tests.support.receivers import THANKS, Responder, receiver
from tests.test_recover_at_once import spread

ENDPOINTS, EACH = 10, 80
EACH_AFTERWARDS = 20
"""When nobody dies any more: what is shown is who sends, not how long."""
DELIVERED = 'svc_webhook_attempts_total{result="delivered"}'


@pytest.mark.slow(17)
@pytest.mark.one_case("deaths of nodes")
async def test_nodes_share_the_endpoints_and_take_over_those_of_a_killed_or_stopped_node(
    cluster: Cluster, database: str, tmp_path: Path
):
    url = cluster.url(database)
    tls, settings = certified(tmp_path)
    settings["SVC_STORE"] = str(url)
    heard = [Responder(THANKS) for _ in range(ENDPOINTS)]
    async with AsyncExitStack() as stack:
        ports = [await stack.enter_async_context(receiver(one, tls)) for one in heard]
        due = await trio.to_thread.run_sync(
            Due, tmp_path / "data", [f"https://127.0.0.1:{port}/" for port in ports], url
        )
        nodes = [await trio.to_thread.run_sync(partial(Served, due.data, **settings)) for _ in range(3)]
        for node in nodes:
            stack.callback(node.kill_all, [])

        def arrived() -> int:
            return sum(len(one.requests) for one in heard)

        killed, stopped, going_on = nodes
        await spread(nodes)
        await fill(due, url, EACH)
        await until(lambda: arrived() > ENDPOINTS * EACH // 4, 60)
        killed.kill()
        await until(lambda: arrived() > ENDPOINTS * EACH // 2, 60)
        os.kill(stopped.pid, signal.SIGSTOP)
        await spread([going_on])
        os.kill(stopped.pid, signal.SIGCONT)
        await until(lambda: all(len(ids(one)) == EACH for one in heard), 60)
        await spread([stopped, going_on])
        before = metrics(stopped).get(DELIVERED, 0)
        await fill(due, url, EACH_AFTERWARDS)
        await until(lambda: all(len(ids(one)) == EACH + EACH_AFTERWARDS for one in heard), 60)
        assert metrics(stopped)[DELIVERED] > before, "it sends again"
        assert [await trio.to_thread.run_sync(node.terminate) for node in (stopped, going_on)] == [0, 0]
    logged = await trio.to_thread.run_sync(due.logged)
    assert set(map(tuple, logged.values())) == {("delivered",)}
    assert len(logged) == ENDPOINTS * (EACH + EACH_AFTERWARDS)
    assert arrived() - len(logged) <= 2 * ORGANIZATION_SLOTS
    await trio.to_thread.run_sync(partial(run, "check", "--data", str(due.data), "--store", str(url)))


def ids(one: Responder) -> Counter[str]:
    return Counter(request.headers["x-svc-event-id"] for request in one.requests)


async def fill(due: Due, url: object, each: int) -> None:
    """And a command that changes something, so that the nodes look."""
    await trio.to_thread.run_sync(due.fill, each)
    command = partial(run, "org", "rate-limit", ORGANIZATION_ID, "0", "--data", str(due.data), "--store", str(url))
    await trio.to_thread.run_sync(command)
