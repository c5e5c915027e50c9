"""The refusal log: counts refused identifications, and queues the webhooks about them.

Owns what was refused since its last commit, per organization, key and code. Receives `note`, which never waits and
never fails. Wakes the outbox. Writes at most once a second, and nothing at all for organizations without a subscriber,
so that a flood of refusals costs neither those who send it nor anybody else. A crash loses the refusals of that last
second, an orderly end none; the event about those on disk is made at the end of their minute.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import partial
from math import inf

import msgspec
import trio

from svc.features.webhooks.jobs.refusals import Notified, note_refusal, notify_refusals
from svc.features.webhooks.queries import subscribers
from svc.features.webhooks.records import webhook_environment
from svc.features.webhooks.sending.patience import read
from svc.features.webhooks.tables import REFUSALS
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.group import Write
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.store import Store, StoreFullError
from svc.kernel.values.partitions import Wake
from svc.kernel.values.refusals import RefusedRequest
from svc.kernel.work.store_watch import CorruptRows
from svc.world import World

INTERVAL_S = 1.0
"""Between two commits."""
DRAIN_S = 2.0
"""For the last commit, when the service ends."""

Name = tuple[int, str]
"""Organization, and key and code as in `REFUSALS`."""


class RefusalLog:
    """Gathers refused requests for `identification.refused` (decisions 8.9). `wake` gets the queues that a commit
    added to.
    """

    def __init__(self, store: Store, world: World, wake: Wake, corrupt: CorruptRows | None = None) -> None:
        self._corrupt = corrupt or CorruptRows()
        self._store = store
        self._world = world
        self._wake = wake
        self._gathered: dict[Name, RefusedRequest] = {}
        self._due: list[tuple[int, Name]] = []
        """A heap of when a name's minute ends; the store says whether there is anything to notify of."""
        self._something = trio.Event()
        self._turn = trio.Lock()
        """Of the commit that is under way."""

    def note(self, request: RefusedRequest) -> None:
        """Count one refused request of a recognized key, without waiting. It is written to disk within about a second
        if the organization has a subscriber.
        """
        name = request.organization, request.name
        earlier = self._gathered.get(name)
        if earlier is not None:
            request = msgspec.structs.replace(request, count=request.count + earlier.count)
        self._gathered[name] = request
        self._something.set()

    async def run(self) -> None:
        """Write what was noted, until cancelled; first read from the store which minutes are still running. If the
        store is full or unavailable, try again. Raises any other exception of a transaction.
        """
        self._due = await read(
            self._store,
            lambda snapshot: [(kept.due_ms, (number, name)) for (number, name), kept in snapshot.scan(REFUSALS)],
        )
        heapq.heapify(self._due)
        while True:
            seconds = max(0.0, (self._due[0][0] - self._world.now_ms()) / 1000) if self._due else inf
            with trio.move_on_after(seconds):
                await self._something.wait()
            self._something = trio.Event()
            await self._write()
            await trio.sleep(INTERVAL_S)

    async def drain(self) -> None:
        """Write what was noted, after the last `note`; return when it is on disk, or after `DRAIN_S`."""
        with trio.move_on_after(DRAIN_S):
            await self._write()

    async def _write(self) -> None:
        """Store the gathered refusals, and queue notifications that are due."""
        async with self._turn:
            await self._write_gathered()

    async def _write_gathered(self) -> None:
        now_ms = self._world.now_ms()
        gathered, self._gathered = self._gathered, {}
        over: dict[Name, None] = {}
        while self._due and self._due[0][0] <= now_ms:
            over[heapq.heappop(self._due)[1]] = None
        notes = {name: request for name, request in gathered.items() if await self._is_wanted(request)}
        names = [*notes, *(name for name in over if name not in notes)]
        jobs = [
            partial(note_refusal, request=notes[name])
            if name in notes
            else partial(notify_refusals, organization=name[0], name=name[1], now_ms=now_ms)
            for name in names
        ]
        if not jobs:
            return
        outcomes: Sequence[Notified | Exception]
        try:
            outcomes = await self._store.write([Write(job, name[0]) for job, name in zip(jobs, names, strict=True)])
        except (StoreFullError, UnavailableError) as error:
            self._store.outage.stopped("refusals", error)
            outcomes = [error] * len(jobs)
        for name, outcome in zip(names, outcomes, strict=True):
            if isinstance(outcome, StoreFullError | UnavailableError):
                self._keep(name, notes.get(name), now_ms if name in over else None)
            elif isinstance(outcome, CorruptionError):
                self._corrupt.note("refusals", name[0], outcome)
            elif isinstance(outcome, Exception):
                raise outcome
            else:
                self._wake(outcome.queues)
                if outcome.due_ms is not None:
                    heapq.heappush(self._due, (outcome.due_ms, name))

    def _keep(self, name: Name, request: RefusedRequest | None, due_ms: int | None) -> None:
        """Keep a refusal or a due time for the next commit. What came meanwhile is the latest."""
        if request is not None:
            later = self._gathered.pop(name, None)
            self.note(request)
            if later is not None:
                self.note(later)
        if due_ms is not None:
            heapq.heappush(self._due, (due_ms, name))

    async def _is_wanted(self, request: RefusedRequest) -> bool:
        """Return whether anybody subscribes; false if that is unreadable."""
        environment, event_type = webhook_environment(request.environment), "identification.refused"
        find = partial(subscribers, number=request.organization, environment=environment, event_type=event_type)
        try:
            return bool(await read(self._store, find))
        except CorruptionError as error:
            self._corrupt.note("refusals", request.organization, error)
            return False
