"""A service that is killed repeatedly under load, ten receivers that fail by seed, and what must come of it.

What may live here: one run of it and the comparison at its end. How often it is killed is up to the caller.
"""

from __future__ import annotations

import json
import random
import ssl
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import UUID

import trio
import trustme
from trio.testing import wait_all_tasks_blocked

from svc.features.webhooks.commands.forwarding import verify_delivery
from svc.features.webhooks.content.envelope import identification_event_id, secrets_key
from svc.features.webhooks.jobs.endpoints import Issued, NewEndpoint, create_endpoint
from svc.features.webhooks.queues import ENDPOINT_SLOTS, ORGANIZATION_SLOTS
from svc.features.webhooks.records import Attempt
from svc.features.webhooks.tables import ATTEMPTS, DELIVERIES, DUE
from svc.identify.tables import EVENTS
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.ids import made_at_ms
from svc.kernel.values.timestamps import timestamp
from svc.world import World
from tests.support.acknowledged import VICTIMS, kill_one, lost_or_billed_twice, shop
from tests.support.journal import Journal, load, settle
from tests.support.process import Served, run, run_json
from tests.support.receivers import Request, read_request, response

COMPLETED = "identification.completed"
RECEIVERS = 10
DRAIN_S = 600
"""For everything to come to its end: the wait after the third failure, and time for a slow machine."""
PAUSE_S = 0.1
"""Of each client after an answer: ten deliveries for each have to be sent, too."""

_AUTHORITY = "ca.pem"

Status = Literal["200", "500", "410", "drop"]
Pair = tuple[int, str]
"""(endpoint number, event id)"""

_LINES: dict[Status, bytes] = {
    "200": response("200 OK"),
    "500": response("500 Internal Server Error"),
    "410": response("410 Gone"),
}


class Arrival(NamedTuple):
    status: Status
    counted: bool
    """Whether the attempt counts. Where a connection that was kept dies before it answers, the same attempt comes again
    on a new one."""
    at_s: float
    """By the clock of the loop."""


class Fickle:
    """Ten receivers behind one port, told apart by path. What each answers is a matter of seed, event and how often."""

    def __init__(self, seed: int, failing_arrivals: int) -> None:
        self._seed = seed
        self._failing_arrivals = failing_arrivals
        self.secrets: dict[int, str] = {}
        self.arrivals: dict[Pair, list[Arrival]] = {}
        self.bodies: dict[str, bytes] = {}
        self.faults: list[str] = []
        self.kind = False
        """Answer 200 from now on."""
        self.last_s = float("-inf")
        """When the last webhook arrived."""
        self._world = World.real()

    async def serve(self, tls: ssl.SSLContext, stream: trio.SocketStream) -> None:
        """One connection, until either side ends it."""
        secured = trio.SSLStream(stream, tls, server_side=True, https_compatible=True)
        first = True
        try:
            while (request := await read_request(secured)) is not None:
                chosen = self._hear(request, first=first)
                first = False
                if chosen == "drop":
                    return
                await secured.send_all(_LINES[chosen])
        except (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError):
            return
        finally:
            await trio.aclose_forcefully(stream)

    def _hear(self, request: Request, *, first: bool) -> Status:
        place, event_id = int(request.target.strip("/")), request.headers["x-svc-event-id"]
        at, signature = request.headers["x-svc-timestamp"], request.headers["x-svc-signature"]
        verdict = verify_delivery([self.secrets[place]], signature, at, request.body, self._world.now_ms() // 1000)
        if verdict != "valid":
            self.faults.append(f"{event_id} to endpoint {place}: {verdict}")
        if json.loads(request.body)["id"] != event_id:
            self.faults.append(f"{event_id} to endpoint {place} has another id in its body")
        if self.bodies.setdefault(event_id, request.body) != request.body:
            self.faults.append(f"{event_id} to endpoint {place} has other bytes than before")
        before = self.arrivals.setdefault((place, event_id), [])
        chosen = self._choose(place, event_id, len(before))
        before.append(Arrival(chosen, first or chosen != "drop", trio.current_time()))
        self.last_s = trio.current_time()
        return chosen

    def _choose(self, place: int, event_id: str, before: int) -> Status:
        if self.kind or before >= self._failing_arrivals:
            return "200"
        drawn = random.Random(f"{self._seed}/{place}/{event_id}/{before}").random()
        return "200" if drawn < 0.7 else "500" if drawn < 0.85 else "drop" if drawn < 0.96 else "410"


class Outcome(NamedTuple):
    """What came of a run. `faults` is what must not be, each as a sentence."""

    kills: int
    acknowledged: int
    """Identifications that a client was told of."""
    events: int
    deliveries: int
    failed: int
    """Of these, listed as such before they were recovered."""
    recovered: int
    duplicates: int
    """Arrivals of attempts that the log does not know: what was in flight at a kill."""
    most_in_flight: int
    """Of these, at one kill."""
    faults: list[str]


class Killed:
    """One run, over a fresh data directory."""

    def __init__(
        self, directory: Path, seed: int, failing_arrivals: int, tell: Callable[[str], None], *, workers: int = 1
    ) -> None:
        """With several workers one of `VICTIMS`, drawn by seed, is killed each time, and then the rest is stopped."""
        self.data = directory / "data"
        self.fickle = Fickle(seed, failing_arrivals)
        self.journal = Journal()
        self.api_key = ""
        self._workers = workers
        self._directory = directory
        self._chance = random.Random(seed)
        self._tell = tell
        self._unknown = Counter[Pair]()
        self._most_in_flight = 0
        self.faults: list[str] = []

    async def run(self, kills: int) -> Outcome:
        async with receiving(self.fickle, self._directory) as port:
            self._set_up(port)
            for number in range(kills):
                await self._kill(number)
            return await self._end(kills)

    def _set_up(self, port: int) -> None:
        self.api_key = shop(self.data)
        found = self._open()
        register(found, self.fickle, RECEIVERS, port)
        found.store.close()

    @asynccontextmanager
    async def _served(self) -> AsyncGenerator[Served]:
        settings = {"SVC_WORKERS": str(self._workers), **sending_to(self._directory)}
        server = await trio.to_thread.run_sync(partial(Served, self.data, **settings))
        try:
            yield server
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(server.kill)  # nothing, where it has ended

    async def _kill(self, number: int) -> None:
        seconds = self._chance.uniform(0.2, 1.5)
        async with self._served() as server:
            if self._workers == 1:
                await load(server, self.api_key, self.journal, number, seconds, pause_s=PAUSE_S)
            else:
                await trio.to_thread.run_sync(server.wait_for_workers, self._workers)
                victim = self._chance.choice(VICTIMS)
                kill = partial(kill_one, server, self.data, victim, [])
                await load(server, self.api_key, self.journal, number, seconds, pause_s=PAUSE_S, kill=kill)
                if victim != "parent":
                    assert await trio.to_thread.run_sync(server.terminate) == 0, "the service did not end well"
        await wait_all_tasks_blocked(0.05)  # what it had sent has arrived
        found = self._open()
        with found.store.read() as snapshot:
            unknown = unlogged(snapshot, self.fickle)
        found.store.close()
        in_flight, self._unknown = unknown - self._unknown, unknown
        of_one = Counter(place for place, _ in in_flight.elements())
        self._most_in_flight = max(self._most_in_flight, in_flight.total())
        if in_flight.total() > ORGANIZATION_SLOTS or max(of_one.values(), default=0) > ENDPOINT_SLOTS:
            self.faults.append(f"kill {number + 1} had more in flight than there are slots: {dict(of_one)}")
        self._tell(f"kill {number + 1}: {len(self.journal.answers)} acknowledged, {in_flight.total()} in flight")

    async def _end(self, kills: int) -> Outcome:
        """A last start, in which everything comes to its end; then what has failed is recovered beside the service."""
        async with self._served() as server:
            await settle(server, self.api_key, self.journal)
            found = self._open()
            failed = _ended_failed(await self._drained(found))
            self._tell(f"{len(failed)} deliveries are listed as failed; recovering them")
            self.fickle.kind = True
            recovered = await self._recover(failed)
            left = _ended_failed(await self._drained(found))
            self.faults += [f"{event_id} to {place} was recovered and has not arrived" for place, event_id in left]
            with found.store.read() as snapshot:
                events, deliveries = snapshot.count(EVENTS), snapshot.count(DELIVERIES)
            found.store.close()
            if await trio.to_thread.run_sync(server.terminate) != 0:
                self.faults.append("the service did not end well")
        await trio.to_thread.run_sync(partial(run, "check", "--data", str(self.data)))
        return Outcome(
            kills=kills,
            acknowledged=len(self.journal.answers),
            events=events,
            deliveries=deliveries,
            failed=len(failed),
            recovered=recovered,
            duplicates=self._unknown.total(),
            most_in_flight=self._most_in_flight,
            faults=self.faults + self.fickle.faults,
        )

    async def _drained(self, found: Opened) -> dict[Pair, str]:
        """The state of every delivery when nothing is on its way any more, compared with what everybody else says."""
        with trio.fail_after(DRAIN_S):
            while True:
                with found.store.read() as snapshot:
                    if not snapshot.count(DUE):
                        return self._compared(snapshot)
                await trio.sleep(0.1)

    async def _recover(self, failed: list[Pair]) -> int:
        """By the command line, beside the running service; how many it says."""
        recovered: list[int] = []
        since = timestamp(min((made_at_ms(UUID(event_id).bytes) for _, event_id in failed), default=0))

        async def recover(place: int) -> None:
            command = ("webhook", "recover", endpoint_id(place), "--since", since, "--data", str(self.data))
            recovered.append((await trio.to_thread.run_sync(partial(run_json, *command)))["recovered"])

        async with trio.open_nursery() as nursery:
            for place in sorted({place for place, _ in failed}):
                nursery.start_soon(recover, place)
        return sum(recovered)

    def _compared(self, snapshot: Snapshot) -> dict[Pair, str]:
        self.faults += lost_or_billed_twice(snapshot, self.journal)
        self.faults += undelivered(snapshot, self.fickle, RECEIVERS)
        again = unlogged(snapshot, self.fickle) - self._unknown
        self.faults += [f"{event_id} arrived at endpoint {place} again without a kill" for place, event_id in again]
        return delivery_states(snapshot)

    def _open(self) -> Opened:
        world = World.real()
        return open_directory(self.data, world.run_sync, world.entropy)


@asynccontextmanager
async def receiving(fickle: Fickle, folder: Path) -> AsyncGenerator[int]:
    """The port of the receivers while the block runs; `folder` is given the certificate of their authority."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / _AUTHORITY)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, partial(fickle.serve, tls), [listener])
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


def sending_to(folder: Path) -> dict[str, str]:
    """The settings with which a service sends to what is `receiving`."""
    return {"SVC_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8", "SVC_WEBHOOK_CA_FILE": str(folder / _AUTHORITY)}


def register(found: Opened, fickle: Fickle, receivers: int, port: int) -> None:
    """Make an endpoint for each of so many receivers."""
    for place in range(1, receivers + 1):
        url = f"https://127.0.0.1:{port}/{place}"
        new = NewEndpoint(id=endpoint_id(place), url=url, description="", environment="live", events=(COMPLETED,))
        job = partial(create_endpoint, number=1, new=new, secrets_key=secrets_key(found.pepper), now_ms=0)
        (issued,) = found.store.write_now([job])
        assert isinstance(issued, Issued)
        assert issued.registered.queue.endpoint == place
        fickle.secrets[place] = issued.secret


def unlogged(snapshot: Snapshot, fickle: Fickle) -> Counter[Pair]:
    """Arrivals of attempts that the log does not know."""
    arrived = {pair: sum(one.counted for one in arrivals) for pair, arrivals in fickle.arrivals.items()}
    return Counter(arrived) - Counter(_pair(attempt) for _, attempt in snapshot.scan(ATTEMPTS))


def undelivered(snapshot: Snapshot, fickle: Fickle, receivers: int) -> Iterator[str]:
    """What is neither delivered, and was answered so, nor listed as failed."""
    stored = [UUID(bytes=request_id) for (_, request_id), _ in snapshot.scan(EVENTS, 1)]
    states = delivery_states(snapshot)
    attempts = [attempt for _, attempt in snapshot.scan(ATTEMPTS)]
    listed = {_pair(attempt) for attempt in attempts if attempt.status == "failed"}
    events = [str(identification_event_id(COMPLETED, request_id)) for request_id in stored]
    for pair in product(range(1, receivers + 1), events):
        statuses = {arrival.status for arrival in fickle.arrivals.get(pair, ())}
        state = states.get(pair, "missing")
        if not (state == "delivered" and "200" in statuses) and not (state == "failed" and pair in listed):
            yield f"{pair[1]} to endpoint {pair[0]} is {state}, and was answered {statuses}"


def delivery_states(snapshot: Snapshot) -> dict[Pair, str]:
    return {
        (place, str(UUID(bytes=event_id))): delivery.state
        for (_, place, event_id, _), delivery in snapshot.scan(DELIVERIES, 1)
    }


def endpoint_id(place: int) -> str:
    return f"whk_{place:020}"


def _pair(attempt: Attempt) -> Pair:
    return attempt.endpoint, str(UUID(bytes=attempt.event_id))


def _ended_failed(states: dict[Pair, str]) -> list[Pair]:
    return [pair for pair, state in states.items() if state == "failed"]
