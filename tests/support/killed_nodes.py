"""Two nodes on a database of their own, killed one after the other under load: a node, the keeper, the database.

What may live here: one run of it, and the comparison at its end. How often something is killed, whoever runs it says.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import httpx
import trio

from svc.store.postgresql.url import store_url
from svc.store.reading import read_only_database
from svc.store.tables import EVENTS
from tests.support.acknowledged import lost_or_billed_twice, shop
from tests.support.journal import CLIENTS, Journal, Whole
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, USER_AGENT, report
from tests.support.postgresql import Cluster
from tests.support.process import Served, run

NODES = 2
VICTIMS = ("node", "keeper", "database")
AGAIN_S = 0.02
"""Before a client sends again what was refused or cut off."""
FORGOTTEN_S = 60
"""A client that has had no answer for so long is forgotten, and the run has failed."""
IN_PEACE_S = (0.3, 1.2)
"""Between a return to service and the next kill."""


class Outcome(NamedTuple):
    """What came of a run. `faults` is what must not be, each as a sentence."""

    kills: int
    acknowledged: int
    """Idempotency keys of which a client was told."""
    sent_again: int
    """Requests that were cut off or answered 503, and sent again with the same key."""
    events: int
    longest_s: dict[str, float]
    """By victim: from its death until a client was told of an identification that began after it."""
    faults: list[str]


class KilledNodes:
    """One run over a fresh database and data directory."""

    def __init__(
        self, directory: Path, cluster: Cluster, database: str, seed: int, tell: Callable[[str], None]
    ) -> None:
        self._directory = directory
        self._cluster = cluster
        self._database = database
        self._url = str(cluster.url(database))
        self._chance = random.Random(seed)
        self._tell = tell
        self._journal = Journal()
        self._nodes: list[Served] = []
        self._sent_again = 0
        self._longest_s: dict[str, float] = dict.fromkeys(VICTIMS, 0.0)
        self._last_began_s = 0.0

    async def run(self, kills: int) -> Outcome:
        """Kill so often; then compare what clients were told with what is stored."""
        key = await trio.to_thread.run_sync(partial(shop, self._directory, SVC_STORE=self._url))
        for _ in range(NODES):
            self._nodes.append(await self._start())
        async with trio.open_nursery() as nursery:
            for number in range(CLIENTS):
                nursery.start_soon(self._client, key, number)
            for number in range(kills):
                await self._told_of_something_new()
                await trio.sleep(self._chance.uniform(*IN_PEACE_S))
                await self._kill(VICTIMS[number % len(VICTIMS)])
                self._tell(
                    f"kill {number + 1}: {len(self._journal.answers)} acknowledged, {self._sent_again} sent again"
                )
            await self._told_of_something_new()
            self._journal.is_closed = True
        faults = [
            f"node {number} ended with {status}"
            for number, node in enumerate(self._nodes)
            if (status := await trio.to_thread.run_sync(node.terminate))
        ]
        checking = partial(run, "check", "--data", str(self._directory), "--store", self._url)
        await trio.to_thread.run_sync(checking)
        with read_only_database(store_url(self._url)) as store, store.read() as snapshot:
            faults += lost_or_billed_twice(snapshot, self._journal)
            events = snapshot.count(EVENTS)
        return Outcome(kills, len(self._journal.answers), self._sent_again, events, self._longest_s, faults)

    def end(self) -> None:
        """Kill what is left of a run that failed."""
        for node in self._nodes:
            node.kill_all([])

    async def _start(self) -> Served:
        return await trio.to_thread.run_sync(
            partial(Served, self._directory, SVC_STORE=self._url, SVC_LOG_REQUESTS="none")
        )

    async def _kill(self, victim: str) -> None:
        place: int | None = None
        if victim == "database":
            await trio.to_thread.run_sync(self._cluster.kill)
        else:
            place = self._keeper() if victim == "keeper" else self._chance.randrange(NODES)
            await trio.to_thread.run_sync(self._nodes[place].kill)
        began_s = trio.current_time()
        if place is None:
            await trio.to_thread.run_sync(self._cluster.start)
        await self._told_of_something_new()
        self._longest_s[victim] = max(self._longest_s[victim], round(trio.current_time() - began_s, 2))
        if place is not None:
            self._nodes[place] = await self._start()

    def _keeper(self) -> int:
        ((holder,),) = self._cluster.execute("select holder from svc.leases", self._database)
        pids = [str(node.pid) for node in self._nodes]
        pid = (holder or "").split("/")[1]
        return pids.index(pid) if pid in pids else 0

    async def _told_of_something_new(self) -> None:
        """Until a client was told of an identification that was first sent from now on."""
        now_s = trio.current_time()
        with trio.fail_after(FORGOTTEN_S):
            while self._last_began_s < now_s:
                await self._journal.more()

    async def _client(self, api_key: str, number: int) -> None:
        chance = random.Random(f"{self._chance.random()}/{number}")
        async with httpx.AsyncClient(timeout=20) as client:
            sent = 0
            while not self._journal.is_closed:
                key, device = f"{number}/{sent}", chance.randrange(200)
                sent, began_s = sent + 1, trio.current_time()
                with trio.fail_after(FORGOTTEN_S):
                    while not await self._is_answered(client, api_key, key, device, chance):
                        self._sent_again += 1
                        await trio.sleep(AGAIN_S)
                self._last_began_s = max(self._last_began_s, began_s)

    async def _is_answered(
        self, client: httpx.AsyncClient, api_key: str, key: str, device: int, chance: random.Random
    ) -> bool:
        headers = {
            "x-api-key": api_key,
            "origin": ORIGIN,
            "idempotency-key": key,
            "user-agent": USER_AGENT,
            "x-forwarded-for": PUBLIC_ADDRESS,
        }
        body = {"sdk": {"platform": "web"}, "signals": report(device)}
        url = f"http://127.0.0.1:{chance.choice(self._nodes).port}/api/v1/identify"
        try:
            request = client.build_request("POST", url, json=body, headers=headers)
            request.stream = Whole(request.content)
            response = await client.send(request)
        except httpx.TransportError:
            return False
        if response.status_code == 503:
            assert int(response.headers["retry-after"]) >= 1
            return False
        assert response.status_code == 200, response.text
        self._journal.note(key, response.json()["request_id"])
        return True
