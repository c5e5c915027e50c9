"""Two nodes on a database of their own, killed or stopped one after the other under load, and the database itself.

What may live here: one run of it, and the comparison at its end. How often something dies is up to the caller.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import httpx
import trio

from svc.features.webhooks.queues import ENDPOINT_SLOTS
from svc.features.webhooks.tables import DUE
from svc.identify.tables import EVENTS
from svc.kernel.store.directory import open_directory
from svc.kernel.store.postgresql.connection.url import StoreUrl, store_url
from svc.kernel.store.reading import read_only_database
from svc.world import World
from tests.support.acknowledged import lost_or_billed_twice, shop
from tests.support.journal import CLIENTS, Journal, Whole
from tests.support.killed import DRAIN_S, Fickle, Pair, receiving, register, sending_to, undelivered, unlogged
from tests.support.live import repeatable, report
from tests.support.process import PROGRAM, Served, run

Victim = Literal["node", "leader", "stopped", "database"]
"""A node that is not the leader, the leader, the leader by SIGSTOP for a while, the database."""

NODES = 2
RECEIVERS = 2
"""Of the first organization's webhooks, to which every other client belongs."""
NEIGHBORS = 4
"""Organizations of the other clients: nodes write for them together."""
VICTIMS: tuple[Victim, ...] = ("node", "leader", "database")
AGAIN_S = 0.02
"""Before a client sends again what was refused or cut off."""
PAUSE_S = 0.03
"""Of each client after an answer, unless a run says otherwise."""
BEHIND, PAUSE_BEHIND_S = 400, 1.0
"""So many webhooks that have not arrived, and the pause meanwhile: a leader sends fewer than clients can cause."""
FORGOTTEN_S = 60
"""A client that has had no answer for so long is forgotten, and the run has failed."""
TIMEOUT_S = 6
"""Of a request: a node that is stopped answers none."""
IN_PEACE_S = (0.3, 1.2)
"""Between a return to service and the next kill."""
NOT_RENEWED = "webhook partitions not renewed in time, their attempts are made again"
INTERRUPTIONS = {NOT_RENEWED: "a lost lease", "actor waits for the store": "no database"}
"""What a node says when it drops what it was sending: after a death, or where the machine is too busy for its lease."""
FAR_OFF = "the clock is far from the database's"
SENT_BEFORE_S = 0.3
"""So long after a death something may arrive that was sent before."""


class Death(NamedTuple):
    """When something was in flight that may come again."""

    from_s: float
    until_s: float
    """When all was well again."""
    cause: str


class Server(Protocol):
    """A database that can be killed: a `Cluster`, which recovers, or a `Pair`, of which the standby is promoted."""

    def url(self, database: str, /) -> StoreUrl: ...
    def execute(self, sql: str, database: str = ..., /) -> list[tuple[str | None, ...]]: ...
    def kill(self) -> None: ...
    def start(self) -> None:
        """Serve again after `kill`."""
        ...

    def mend(self) -> None:
        """After that, be ready for the next one."""
        ...


class Outcome(NamedTuple):
    """What came of a run. `faults` is what must not be, each as a sentence."""

    kills: int
    acknowledged: int
    """Idempotency keys of which a client was told."""
    sent_again: int
    """Requests that were cut off or answered 503, and sent again with the same key."""
    events: int
    with_webhooks: int
    """Events of the first organization: each has two."""
    arrivals: int
    """Of webhooks."""
    duplicates: int
    """Arrivals of attempts that the log does not know: what was in flight at a death."""
    duplicates_by: dict[str, int]
    """Of these, by what they were in flight at; where that was several things, at the first."""
    most_in_flight: int
    """Of these, at one death."""
    refused_as_old: int
    """Webhooks whose time a receiver would not accept: those of a leader whose clock is off."""
    back_s: dict[str, list[float]]
    """By victim: from its death until a client was told of an identification that began after it."""
    sending_s: dict[str, list[float]]
    """And until a webhook arrived that was sent after it."""
    faults: list[str]


class KilledNodes:
    """One run over a fresh database and data directory."""

    def __init__(
        self,
        directory: Path,
        server: Server,
        database: str,
        seed: int,
        tell: Callable[[str], None],
        *,
        victims: Sequence[Victim] = VICTIMS,
        stop_s: float = 60,
        clock_off_s: int = 0,
        pause_s: float = PAUSE_S,
    ) -> None:
        """`victims` die in turn. `clock_off_s` is how far the clock of the first node is ahead. Each client waits for
        `pause_s` after an answer.
        """
        self._directory = directory
        self._server = server
        self._database = database
        self._chance = random.Random(seed)
        self._tell = tell
        self._victims = victims
        self._stop_s = stop_s
        self._clock_off_s = clock_off_s
        self._is_clock_off = clock_off_s != 0
        self._pause_s = pause_s
        self._journal = Journal()
        self._fickle = Fickle(seed, failing_arrivals=0)
        self._nodes: list[Served] = []
        self._sent_again = self._told_of_webhooks = 0
        self._back_s: dict[str, list[float]] = {victim: [] for victim in victims}
        self._sending_s: dict[str, list[float]] = {victim: [] for victim in victims}
        self._deaths: list[Death] = []
        """And each time that a node dropped what it was sending."""
        self._started: list[Served] = []
        self._last_began_s = 0.0
        self._is_waiting = False
        """For a node that stands still and whose place has been taken: until it goes on, a little traffic will do."""

    @property
    def _url(self) -> str:
        return str(self._server.url(self._database))

    async def run(self, kills: int) -> Outcome:
        """Kill so often; then compare what clients and receivers were told with what is stored."""
        keys = [
            await trio.to_thread.run_sync(partial(shop, self._directory, name, SVC_STORE=self._url))
            for name in ("shop", *(f"neighbor {number}" for number in range(NEIGHBORS)))
        ]
        async with receiving(self._fickle, self._directory) as port:
            self._register(port)
            for number in range(NODES):
                self._nodes.append(await self._start(number))
            async with trio.open_nursery() as watching:
                watching.start_soon(self._watch)
                async with trio.open_nursery() as nursery:
                    for number in range(CLIENTS):
                        place = 1 + number // 2 % NEIGHBORS if number % 2 else 0
                        nursery.start_soon(self._client, keys[place], number)
                    for number in range(kills):
                        await self._die(number, self._victims[number % len(self._victims)])
                    await self._told_of_something_new()
                    self._journal.is_closed = True
                await self._mend_clock()
                await self._drained()
                watching.cancel_scope.cancel()
            faults = [
                f"node {number} ended with {status}"
                for number, node in enumerate(self._nodes)
                if (status := await trio.to_thread.run_sync(node.terminate))
            ]
        checking = partial(run, "check", "--data", str(self._directory), "--store", self._url)
        await trio.to_thread.run_sync(checking)
        return self._outcome(kills, faults)

    async def _mend_clock(self) -> None:
        """Start the node whose clock is off again, with the right one: one that is behind sends what others have made
        due when it is due by its own clock.
        """
        if self._clock_off_s:
            self._clock_off_s = 0
            await trio.to_thread.run_sync(self._nodes[0].terminate)
            self._nodes[0] = await self._start(0)

    def _outcome(self, kills: int, faults: list[str]) -> Outcome:
        with read_only_database(store_url(self._url)) as store, store.read() as snapshot:
            faults += lost_or_billed_twice(snapshot, self._journal)
            faults += undelivered(snapshot, self._fickle, RECEIVERS)
            again, events = unlogged(snapshot, self._fickle), snapshot.count(EVENTS)
            with_webhooks = sum(1 for _ in snapshot.scan(EVENTS, 1))
        faults += self._unexplained(again)
        if self._is_clock_off and not any(node.said(FAR_OFF) for node in self._started):
            faults.append("no node has said that its clock is far off")
        in_flight = Counter(death for pair in again for death in self._deaths_within(pair))
        most = max(in_flight.values(), default=0)
        if most > RECEIVERS * ENDPOINT_SLOTS:
            faults.append(f"{most} arrived twice because of one death, which is more than there are slots")
        old = [fault for fault in self._fickle.faults if self._is_clock_off and fault.endswith("too old or too new")]
        return Outcome(
            kills=kills,
            acknowledged=len(self._journal.answers),
            sent_again=self._sent_again,
            events=events,
            with_webhooks=with_webhooks,
            arrivals=sum(map(len, self._fickle.arrivals.values())),
            duplicates=again.total(),
            duplicates_by=Counter(
                within[0].cause for pair in again.elements() if (within := self._deaths_within(pair))
            ),
            most_in_flight=most,
            refused_as_old=len(old),
            back_s=self._back_s,
            sending_s=self._sending_s,
            faults=faults + [fault for fault in self._fickle.faults if fault not in old],
        )

    def _unexplained(self, again: Counter[Pair]) -> Iterator[str]:
        for pair, count in again.items():
            if count > len(self._deaths_within(pair)):
                yield f"{pair[1]} arrived at endpoint {pair[0]} {count} times too often, and not for a death"

    def _deaths_within(self, pair: Pair) -> list[Death]:
        """Those between an arrival of a webhook and its next one."""
        times = [arrival.at_s for arrival in self._fickle.arrivals[pair] if arrival.counted]
        return [
            death
            for first, second in pairwise(times)
            for death in self._deaths
            if first <= death.until_s and second >= death.from_s
        ]

    def end(self) -> None:
        """Kill what is left of a run that failed."""
        for node in self._nodes:
            node.kill_all([])

    def _register(self, port: int) -> None:
        world = World.real()
        url = store_url(self._url)
        found = open_directory(self._directory, world.run_sync, world.entropy, database=url)
        register(found, self._fickle, RECEIVERS, port)
        found.store.close()

    async def _start(self, place: int) -> Served:
        program = PROGRAM if place or not self._clock_off_s else [sys.executable, "-c", clock_off(self._clock_off_s)]
        settings = {"SVC_STORE": self._url, "SVC_LOG_REQUESTS": "none", **sending_to(self._directory)}
        node = await trio.to_thread.run_sync(partial(Served, self._directory, program=program, **settings))
        self._started.append(node)
        return node

    async def _watch(self) -> None:
        """Note when nodes drop what they are sending."""
        before, looked_s = Counter[tuple[int, str]](), trio.current_time()
        while True:
            await trio.sleep(0.25)
            for number, node in enumerate(self._started):
                for event, cause in INTERRUPTIONS.items():
                    said = node.said(event)
                    for line in said[before[number, event] :]:
                        from_s = looked_s - SENT_BEFORE_S - line.get("late_s", 0)
                        self._deaths.append(Death(from_s, trio.current_time(), cause))
                    before[number, event] = len(said)
            looked_s = trio.current_time()

    async def _die(self, number: int, victim: Victim) -> None:
        await self._told_of_something_new()
        await trio.sleep(self._chance.uniform(*IN_PEACE_S))
        await self._kill(victim)
        self._tell(
            f"{number + 1}, {victim}: back after {self._back_s[victim][-1]} s, webhooks after "
            f"{self._sending_s[victim][-1]} s; {len(self._journal.answers)} acknowledged"
        )

    async def _kill(self, victim: Victim) -> None:
        began_s = trio.current_time()
        if victim == "database":
            await trio.to_thread.run_sync(self._server.kill)
            await trio.to_thread.run_sync(self._server.start)
            await self._note_return(victim, began_s)
            await trio.to_thread.run_sync(self._server.mend)
        elif victim == "stopped":
            await self._stop(self._nodes[self._leader()], began_s)
        else:
            place = self._leader() if victim == "leader" else 1 - self._leader()
            await trio.to_thread.run_sync(self._nodes[place].kill)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._note_return, victim, began_s)
                self._nodes[place] = await self._start(place)
        self._deaths.append(Death(began_s, trio.current_time(), victim))

    async def _stop(self, node: Served, began_s: float) -> None:
        """Let a node stand still, with whatever it was at, and go on when another is the leader."""
        resigned = len(node.said("no longer the leader"))
        os.kill(node.pid, signal.SIGSTOP)
        try:
            await self._note_return("stopped", began_s)
            self._is_waiting = True
            await trio.sleep_until(began_s + self._stop_s - 2 * PAUSE_BEHIND_S)
            self._is_waiting = False
            await trio.sleep_until(began_s + self._stop_s)
        finally:
            os.kill(node.pid, signal.SIGCONT)
        await trio.to_thread.run_sync(node.wait_until_said, "no longer the leader", resigned + 1)

    async def _note_return(self, victim: Victim, began_s: float) -> None:
        await self._told_of_something_new(began_s)
        self._back_s[victim].append(round(trio.current_time() - began_s, 2))
        with trio.fail_after(FORGOTTEN_S):
            while self._fickle.last_s < began_s + SENT_BEFORE_S:  # noqa: ASYNC110  receivers tell nobody
                await trio.sleep(0.01)
        self._sending_s[victim].append(round(self._fickle.last_s - began_s, 2))

    def _leader(self) -> int:
        ((holder,),) = self._server.execute("select holder from svc.leases where name = 'keeper'", self._database)
        pids = [str(node.pid) for node in self._nodes]
        pid = (holder or "").split("/")[1]
        return pids.index(pid) if pid in pids else 0

    async def _told_of_something_new(self, since_s: float | None = None) -> None:
        """Until a client was told of an identification that was first sent from then, or now, on."""
        since_s = trio.current_time() if since_s is None else since_s
        with trio.fail_after(FORGOTTEN_S):
            while self._last_began_s < since_s:
                await self._journal.more()

    def _is_behind(self) -> bool:
        return RECEIVERS * self._told_of_webhooks - len(self._fickle.arrivals) > BEHIND

    async def _drained(self) -> None:
        """Until no webhook is due."""
        with trio.fail_after(DRAIN_S):
            while await trio.to_thread.run_sync(self._due):  # noqa: ASYNC110  the database tells nobody
                await trio.sleep(0.2)

    def _due(self) -> int:
        with read_only_database(store_url(self._url)) as store, store.read() as snapshot:
            return snapshot.count(DUE)

    async def _client(self, api_key: str, number: int) -> None:
        chance = random.Random(f"{self._chance.random()}/{number}")
        async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
            sent = 0
            while not self._journal.is_closed:
                key, device = f"{number}/{sent}", chance.randrange(200)
                sent, began_s = sent + 1, trio.current_time()
                place = chance.randrange(NODES)
                with trio.fail_after(FORGOTTEN_S):
                    while not await self._has_response(client, api_key, key, device, place):
                        self._sent_again += 1
                        place = 1 - place  # as a load balancer does: by chance it may be one that stands still for long
                        await trio.sleep(AGAIN_S)
                self._last_began_s = max(self._last_began_s, began_s)
                self._told_of_webhooks += number % 2 == 0
                await trio.sleep(PAUSE_BEHIND_S if self._is_waiting or self._is_behind() else self._pause_s)

    async def _has_response(self, client: httpx.AsyncClient, api_key: str, key: str, device: int, place: int) -> bool:
        headers = repeatable(api_key, key)
        body = {"sdk": {"platform": "web"}, "signals": report(device)}
        url = f"http://127.0.0.1:{self._nodes[place].port}/api/v1/identify"
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


def clock_off(seconds: int) -> str:
    """The program with a clock that is so far ahead."""
    return (
        "import svc.world; now_ms = svc.world.wall_clock_ms; "
        f"svc.world.wall_clock_ms = lambda: now_ms() + {1000 * seconds}; import svc.cli; svc.cli.main()"
    )
