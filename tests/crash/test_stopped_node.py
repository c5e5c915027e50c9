"""A node that SIGSTOP holds for longer than its leases, in the middle of a group and of webhook deliveries, and that
goes on: what it then wants to write is refused, and what it had in flight is made once more by another.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, closing
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio

from svc.identify.tables import EVENTS, IDEMPOTENCY
from svc.kernel.store.postgresql.cluster.leases import TERM_S
from svc.kernel.store.postgresql.cluster.partitions import lease_name
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.values import int4s
from svc.kernel.store.postgresql.connection.wire import Statement, Wire
from svc.kernel.store.postgresql.statements import BEGIN, COMMIT, TAKE_FENCES
from svc.kernel.store.reading import read_only_database
from svc.kernel.tenants.tables import BALANCES
from svc.kernel.values.partitions import partition_of
from tests.store.postgresql.nodes import until
from tests.support.acknowledged import CREDIT_USD, PRICE_MICROS, shop
from tests.support.due import ORGANIZATION_ID, Due, certified
from tests.support.journal import post
from tests.support.live import repeatable, report
from tests.support.postgresql import Cluster
from tests.support.process import Served, run
from tests.support.receivers import THANKS, read_request, receiver
from tests.test_recover_at_once import spread

ENDPOINTS, EACH = 6, 2
"""An endpoint that nothing was sent to yet has two in flight at first."""
SHOP = 2
"""The second organization."""


class Holding:
    """Receives, and does not respond before the test says so."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.may_answer = trio.Event()

    async def __call__(self, stream: trio.abc.Stream) -> None:
        while (request := await read_request(stream)) is not None:
            self.ids.append(request.headers["x-svc-event-id"])
            await self.may_answer.wait()
            await stream.send_all(THANKS)


@pytest.mark.slow(24)
@pytest.mark.one_case("deaths of nodes")
async def test_writes_of_a_node_that_was_stopped_within_a_group_are_rejected_when_it_resumes(
    cluster: Cluster, database: str, tmp_path: Path
):
    url = cluster.url(database)
    tls, settings = certified(tmp_path)
    settings["SVC_STORE"] = str(url)
    heard = [Holding() for _ in range(ENDPOINTS)]
    async with AsyncExitStack() as stack:
        ports = [await stack.enter_async_context(receiver(one, tls)) for one in heard]
        urls = [f"https://127.0.0.1:{port}/" for port in ports]
        due = await trio.to_thread.run_sync(Due, tmp_path / "data", urls, url)
        api_key = await trio.to_thread.run_sync(partial(shop, due.data, SVC_STORE=str(url)))
        nodes = [await trio.to_thread.run_sync(partial(Served, due.data, **settings)) for _ in range(2)]
        for node in nodes:
            stack.callback(node.kill_all, [])
        stopped, other = nodes
        await spread(nodes)
        assert (await identify(other, api_key, "before")).status_code == 200
        own = await trio.to_thread.run_sync(sent_by, cluster, database, stopped, due)
        assert 0 < len(own) < ENDPOINTS
        for place in set(range(ENDPOINTS)).difference(own):
            heard[place].may_answer.set()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fill, due, str(url))
            await until(lambda: all(len(heard[place].ids) == EACH for place in own), 60)
            refused: list[httpx.Response] = []
            await stop_within_a_group(cluster, database, stopped, partial(ask, stopped, api_key, refused), nursery)
            stopped_s = trio.current_time()
            for place in own:
                heard[place].may_answer.set()
            answer = await identify(other, api_key, "within")  # once the database has ended the other's group
            assert answer.status_code == 200
            await until(lambda: all(len(one.ids) >= EACH for one in heard), 60)
            await until(lambda: all(len(heard[place].ids) == 2 * EACH for place in own), 3 * TERM_S)
            await trio.sleep_until(stopped_s + 1.5 * TERM_S)
            os.kill(stopped.pid, signal.SIGCONT)
        assert refused[0].status_code == 503, "it has stood still for longer than it tries"
        again = refused[0]
        for _ in range(50):  # the write that stood still failed: the node tries one each second (17.4)
            again = await identify(stopped, api_key, "within")
            if again.status_code != 503:
                break
            await trio.sleep(0.2)
        assert (again.status_code, again.json()["request_id"]) == (200, answer.json()["request_id"])
        await spread(nodes)
        assert [await trio.to_thread.run_sync(node.terminate) for node in nodes] == [0, 0]
    for place, one in enumerate(heard):
        assert set(Counter(one.ids).values()) == {2 if place in own else 1}, "twice what was in flight, and only that"
    logged = await trio.to_thread.run_sync(due.logged)
    assert Counter(map(tuple, logged.values())) == {("delivered",): ENDPOINTS * EACH}
    billed_once(url)
    await trio.to_thread.run_sync(partial(run, "check", "--data", str(due.data), "--store", str(url)))


async def fill(due: Due, url: str) -> None:
    """And a command that changes something, so that the nodes look."""
    await trio.to_thread.run_sync(due.fill, EACH)
    command = partial(run, "org", "rate-limit", ORGANIZATION_ID, "0", "--data", str(due.data), "--store", url)
    await trio.to_thread.run_sync(command)


async def ask(node: Served, api_key: str, answers: list[httpx.Response]) -> None:
    answers.append(await identify(node, api_key, "within"))


async def stop_within_a_group(
    cluster: Cluster, database: str, node: Served, identifies: Callable[[], Awaitable[None]], nursery: trio.Nursery
) -> None:
    """By SIGSTOP, when it waits for the fence of its organization; which it then has, and no more than that."""
    with closing(await Wire.connect(cluster.url(database))) as fence:
        await fence.exchange([Statement(BEGIN), Statement(TAKE_FENCES, (int4s([SHOP]),))])
        nursery.start_soon(identifies)
        waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%writers%'"
        await until(lambda: cluster.execute(waiting), 10)
        os.kill(node.pid, signal.SIGSTOP)
        await fence.exchange([Statement(COMMIT)])


def billed_once(url: StoreUrl) -> None:
    """Two identifications of the shop, under two keys."""
    with read_only_database(url) as store, store.read() as snapshot:
        assert len(list(snapshot.scan(EVENTS, SHOP))) == len(list(snapshot.scan(IDEMPOTENCY, SHOP))) == 2
        assert snapshot.get(BALANCES, SHOP) == CREDIT_USD * 1_000_000 - 2 * PRICE_MICROS


def sent_by(cluster: Cluster, database: str, node: Served, due: Due) -> Sequence[int]:
    """Places of the endpoints whose shares a node has."""
    holders = dict(cluster.execute("select name, holder from svc.leases", database))
    return [
        place
        for place, (queue, _) in enumerate(due.endpoints)
        if f"/{node.pid}/" in (holders[lease_name(partition_of(queue))] or "")
    ]


async def identify(node: Served, api_key: str, key: str) -> httpx.Response:
    url, body = f"http://127.0.0.1:{node.port}/api/v1/identify", {"sdk": {"platform": "web"}, "signals": report(1)}
    return await post(url, body, repeatable(api_key, key), 60)
