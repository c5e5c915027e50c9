"""The outbox: sends what is due, and writes down what came of it.

Owns the queues: which endpoint has work, how many deliveries to it are in flight, and whose turn it is. The queue
itself is the store. Receives the queues to wake after commits, and endpoints that were changed or removed. Sends
nothing to other actors. Never holds what is not on disk, and never begins an attempt while an earlier one of the same
delivery is not written down: a crash repeats what was in flight, with the same id and bytes, and nothing else. Before
its first attempt it writes that delivery once more, as it is: where the disk takes no commit, what came of attempts
could not be written down, and a process that ends for it and is started again would make them at each start (ADR 163).

Several processes may send, each to the endpoints of its partitions (`partitions.py`). Of a partition that is lost, what
is in flight is abandoned: another process makes those attempts again. One that others wait for is given back when what
is in flight there is written down.

Nothing polls: it sleeps until the next delivery is due or `wake` is called. Nobody calls it for what another process,
such as the command line, has committed: for that it looks at the first row of each queue every `POLL_INTERVAL_S`, by
the clock of the loop. A read that fails is made again: it ends nothing that is in flight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from math import inf

import structlog
import trio

from svc.features.webhooks.content.envelope import attempt_request
from svc.features.webhooks.jobs.cleanup import sweep_removed
from svc.features.webhooks.jobs.deliveries import (
    AttemptOutcome,
    AttemptRecord,
    log_attempt,
    rewrite_delivery,
)
from svc.features.webhooks.queries import (
    AskedQueue,
    ClaimedDelivery,
    NoWork,
    first_removed,
    next_deliveries,
    poll_queues,
)
from svc.features.webhooks.queues import DeliveryScheduler, EndpointQueue, adjust_concurrency, organization_slots
from svc.features.webhooks.records import Attempted, AttemptError, AttemptStatus, DeliveryKey, Transport
from svc.features.webhooks.retries import AttemptResult
from svc.features.webhooks.sending.attempts import (
    EVERY_PARTITION,
    EndedAttempt,
    InFlight,
    OutboxStatistics,
    Partitions,
    bring_all_forward,
    make_all_due,
    ms_since,
    post,
)
from svc.features.webhooks.sending.patience import read, wait_for_store, write
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.group import LeaseEpoch, LeaseLostError, Write
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.store import Store
from svc.kernel.values.histogram import REQUEST_S, Histogram
from svc.kernel.values.partitions import EndpointKey, partition_of
from svc.kernel.work.clock import SteadyClock
from svc.kernel.work.mailbox import Mailbox
from svc.kernel.work.store_watch import CorruptRows
from svc.world import World

log = structlog.get_logger()

BRING_FORWARD_S = 60.0
"""Between two looks at what is due later than anything may be: a request that arrived before the clock was set back may
be stored after it."""
POLL_INTERVAL_S = 15.0
"""Between two looks for what other processes have committed."""
QUEUES_PER_POLL = 256
"""Queues looked at without a pause: about a millisecond."""
STARTS_PER_PASS = 8
"""Attempts begun without a pause: about a millisecond."""
BATCH = 64
"""Attempts written down in one commit."""
LATE_S = 60.0
"""A delivery that could have been sent so long ago is late."""
GATHER_S = 0.01
"""How long at most attempts that have ended wait for others, to be written down with them."""
SWEEP_ROWS = 128
"""Deliveries of removed endpoints deleted in one commit, each with two or three rows."""
DRAIN_S = 10.0
"""For what is in flight to end when the service ends: as long as an attempt may take."""


_Queue = EndpointQueue[InFlight]


class Outbox:
    """Sends webhook deliveries to the endpoints of its partitions. `transport`: makes the HTTP requests; `secrets_key`:
    see `envelope.secrets_key`; `public_url`: the setting, for links to the console.
    """

    def __init__(
        self,
        store: Store,
        world: World,
        transport: Transport,
        secrets_key: bytes,
        partitions: Partitions = EVERY_PARTITION,
        corrupt: CorruptRows | None = None,
        public_url: str | None = None,
    ) -> None:
        self._store = store
        self._world = world
        request = partial(attempt_request, secrets_key=secrets_key, public_url=public_url)
        self._post = partial(post, transport, request)
        self._partitions = partitions
        self._queues: DeliveryScheduler[InFlight] = DeliveryScheduler()
        self._ended_attempts = Mailbox[EndedAttempt](BATCH)
        self._awake = trio.Event()
        self._swept = trio.Event()
        self._drained = trio.Event()
        self._draining = False
        self._attempts: dict[AttemptStatus, int] = {"delivered": 0, "retrying": 0, "failed": 0}
        self._errors: Counter[AttemptError] = Counter()
        self._attempts_s = Histogram(REQUEST_S)
        self._clock = SteadyClock(world)
        self._corrupt = corrupt or CorruptRows()
        self._unreadable: set[EndpointKey] = set()
        """Endpoints with a corrupt row: nothing is sent to them while this process lives. What came of an attempt could
        not be written down, and it would be made again and again."""
        self._owed: set[EndpointKey] = set()
        """Endpoints of which what waits is being made due."""
        self._commits_before = store.commits
        """Of this process's store, when the outbox began to run: once there are more, the disk takes commits."""
        self._polled_at_s = world.elapsed_s()  # nothing is late before the first poll had a minute
        self._poll_at_s = -inf
        self._found_late = False

    def wake(self, queues: Iterable[EndpointKey]) -> None:
        """Send what is due in these queues now. Call this after the commit that queued it."""
        for queue in queues:
            self._queues.offer(queue, 0)
            self._awake.set()

    def removed(self, key: EndpointKey) -> None:
        """Cancel what is in flight to a removed endpoint, and delete its rows in the background. Call this after the
        commit that removed it.
        """
        queue = self._queues.remove(key)
        if queue is not None:
            for flight in queue.in_flight.values():
                flight.scope.cancel()
        self._swept.set()

    def poll(self) -> None:
        """Check every queue now for what another process may have committed."""
        self._poll_at_s = -inf
        self._swept.set()
        self._awake.set()

    async def drain(self) -> None:
        """Begin no more attempts; return when those in flight are written down, or after `DRAIN_S`."""
        self._draining = True
        if self._queues.in_flight:
            with trio.move_on_after(DRAIN_S):
                await self._drained.wait()

    def is_behind(self) -> bool:
        """Return whether, at the last poll, a delivery to an endpoint that responds was more than `LATE_S` late, or
        whether that poll itself was longer ago than that; before the first poll, whether the outbox was created longer
        ago than that. Deliveries to a paused or failing endpoint are not late: the outbox cannot send them.
        """
        return self._found_late or self._world.elapsed_s() - self._polled_at_s > LATE_S

    def statistics(self) -> OutboxStatistics:
        """Return a copy of the counts; `attempts` names every status, `errors` only those that occurred."""
        return OutboxStatistics(
            in_flight=self._queues.in_flight,
            queues=len(self._queues.all()),
            attempts=dict(self._attempts),
            errors=dict(self._errors),
            attempts_s=self._attempts_s.statistics(),
        )

    async def run(self) -> None:
        """Deliver until cancelled. It starts from what is on disk, also when it is called again after a failure."""
        self._queues = DeliveryScheduler()
        self._ended_attempts = Mailbox[EndedAttempt](BATCH)
        self._owed = set()
        self._commits_before = self._store.commits
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write_down, nursery)
            nursery.start_soon(self._sweep)
            nursery.start_soon(self._follow_partitions)
            self._poll_at_s = bring_at_s = -inf
            while True:
                self._awake = trio.Event()
                if self._world.elapsed_s() >= bring_at_s:
                    bring_at_s = self._world.elapsed_s() + BRING_FORWARD_S
                    await bring_all_forward(self._store, self._partitions, self._clock.now_ms)
                if self._world.elapsed_s() >= self._poll_at_s:
                    self._poll_at_s = self._world.elapsed_s() + POLL_INTERVAL_S
                    await self._poll()
                while not self._draining and await self._begin_some(nursery):
                    await trio.lowlevel.checkpoint()
                await self._rest()

    async def stand_by(self) -> None:
        """Check whether deliveries are late, and send none, until cancelled: another process sends them."""
        while True:
            await self._poll()
            await trio.sleep(POLL_INTERVAL_S)

    async def _poll(self) -> None:
        """Find every queue that has deliveries by its first row, and note whether any is late."""
        after, late = EndpointKey(0, 0), False
        late_ms = self._world.now_ms() - round(LATE_S * 1000)
        began_s = self._world.elapsed_s()
        while True:
            poll = partial(poll_queues, after=after, late_ms=late_ms, limit=QUEUES_PER_POLL)
            waiting, some_late = await read(self._store, poll)
            late = late or some_late
            for queue, due_ms in waiting.queues:
                if self._partitions.sends(queue) and queue not in self._unreadable:
                    self._queues.offer(queue, due_ms)
            if not waiting.has_more:
                break
            after = waiting.queues[-1][0]
            await trio.lowlevel.checkpoint()
        self._polled_at_s, self._found_late = began_s, late

    async def _begin_some(self, nursery: trio.Nursery) -> bool:
        """Begin up to `STARTS_PER_PASS` attempts, read together; return whether there may be more to begin."""
        now_ms = self._clock.now_ms()
        taken: list[tuple[_Queue, LeaseEpoch | None]] = []
        while len(taken) < STARTS_PER_PASS and (queue := self._queues.take(now_ms)) is not None:
            if self._partitions.sends(queue.key):
                taken.append((queue, self._partitions.lease(queue.key)))
            else:
                self._queues.wait(queue, None)
                self._queues.remove(queue.key)
        if not taken:
            return False
        # What is in flight now and ends meanwhile may look as if it were still due.
        asked = [AskedQueue(queue.key, frozenset(queue.in_flight), queue.backlogged) for queue, _ in taken]
        try:
            found = await self._next(asked, now_ms)
        except UnavailableError as error:
            for queue, _ in taken:
                self._queues.again(queue)  # what was read later may be another's by then
            await wait_for_store(self._store, error)
            return True
        claimed = [
            (one, lease) for one, (_, lease) in zip(found, taken, strict=True) if isinstance(one, ClaimedDelivery)
        ]
        if claimed and self._store.commits == self._commits_before:
            await self._write_first(*claimed[0])
            for queue, _ in taken:
                if queue.key in self._unreadable:
                    self._queues.wait(queue, None)
                else:
                    self._queues.again(queue)
            return True
        for (queue, lease), one in zip(taken, found, strict=True):
            self._begin(queue, lease, one, now_ms, nursery)
        return True

    async def _write_first(self, claim: ClaimedDelivery, lease: LeaseEpoch | None) -> None:
        """Rewrite a delivery to see whether the store takes a commit. Raises the store's error if it does not."""
        job = Write(partial(rewrite_delivery, queue=claim.queue, key=claim.key), claim.queue.organization, lease=lease)
        (outcome,) = await write(self._store, [job], self._partitions.drop)
        if isinstance(outcome, CorruptionError):
            self._set_aside(claim.queue, outcome)

    async def _next(self, asked: list[AskedQueue], now_ms: int) -> list[ClaimedDelivery | NoWork]:
        """Read the next delivery of each queue. A queue with a corrupt row is set aside and has none."""
        try:
            return await self._store.query(partial(next_deliveries, asked=asked, now_ms=now_ms))
        except CorruptionError as error:
            if len(asked) > 1:
                return [one for each in asked for one in await self._next([each], now_ms)]
            self._set_aside(asked[0].queue, error)
            return [NoWork(None)]

    def _set_aside(self, queue: EndpointKey, error: CorruptionError) -> None:
        self._corrupt.note("webhooks", queue.organization, error)
        self._unreadable.add(queue)

    def _begin(
        self,
        queue: _Queue,
        lease: LeaseEpoch | None,
        found: ClaimedDelivery | NoWork,
        now_ms: int,
        nursery: trio.Nursery,
    ) -> None:
        """Begin the next attempt of a queue that was taken, or hand it back."""
        if queue.news:  # it was offered or forgotten meanwhile, and may have been read before that
            self._queues.again(queue)
        elif isinstance(found, NoWork):
            self._queues.wait(queue, found.due_ms)
        elif found.failing and not queue.failing:
            queue.failing = True
            self._queues.again(queue)  # the slots of failing endpoints are fewer
        elif found.backlogged and now_ms < queue.probe_at_ms:
            queue.backlogged = True
            self._queues.wait(queue, queue.probe_at_ms)
        else:
            flight = InFlight(trio.CancelScope(), lease)
            self._queues.start(queue, found.key, flight)
            nursery.start_soon(self._attempt, found, flight)

    async def _rest(self) -> None:
        """Wait until something is due, for `wake` or the next poll, which no change of the wall clock puts off."""
        due_ms = None if self._draining else self._queues.wake_at_ms()
        rest_s = inf if due_ms is None else (due_ms - self._clock.now_ms()) / 1000
        with trio.move_on_after(max(0.0, min(rest_s, self._poll_at_s - self._world.elapsed_s()))):
            await self._awake.wait()

    async def _follow_partitions(self) -> None:
        """Abandon attempts in lost partitions, and poll for deliveries in new ones."""
        while True:
            self._queues.organization_slots = organization_slots(self._partitions.senders)
            await self._partitions.changed()
            for queue in self._queues.all():
                for flight in queue.in_flight.values():
                    if flight.lease is not None and self._partitions.is_lost(flight.lease):
                        flight.is_lost = True
                        flight.scope.cancel()
                if not self._partitions.sends(queue.key):
                    self._queues.remove(queue.key)
            self._give_back()
            self.poll()

    def _give_back(self) -> None:
        if self._partitions.leaving:
            busy = {partition_of(queue.key) for queue in self._queues.all() if queue.in_flight}
            self._partitions.give_back(partition for partition in self._partitions.leaving if partition not in busy)

    async def _attempt(self, claim: ClaimedDelivery, flight: InFlight) -> None:
        """Make one POST and hand its outcome to `_write_down`."""
        started_ms, began = self._world.now_ms(), trio.current_time()
        late_ms = self._clock.now_ms() - claim.delivery.due_ms
        attempt_id = self._world.request_id(started_ms)  # now, so that attempts are listed in the order of their times
        attempted: Attempted | None = None
        paused = claim.endpoint.status == "paused"
        with flight.scope:
            attempted = None if paused else await self._post(claim, self._world.wall_time_of(started_ms))
        if flight.is_lost:
            self._abandon(claim.queue, claim.key)
            return
        why_not = None if attempted is not None else "paused" if paused else "removed"
        attempted = attempted or Attempted(None, None, ms_since(began), None)
        result = AttemptResult(
            attempt=claim.delivery.attempts + 1,
            scheduled_ms=claim.delivery.due_ms,
            started_ms=started_ms,
            late_ms=late_ms,
            duration_ms=attempted.duration_ms,
            response_code=attempted.response_code,
            error=why_not or attempted.error,
            retry_after_s=attempted.retry_after_s,
        )
        record = AttemptRecord(attempt_id, claim.queue, claim.key, claim.endpoint, claim.event, result)
        await self._ended_attempts.put(EndedAttempt(record, flight.lease))

    async def _write_down(self, nursery: trio.Nursery) -> None:
        """Commit ended attempts in groups: while one is written, the next attempts to end gather for another."""
        while True:
            batch = await self._gathered()
            jobs = [
                Write(partial(log_attempt, made=made), made.queue.organization, lease=lease) for made, lease in batch
            ]
            outcomes = await write(self._store, jobs, self._partitions.drop)
            for (record, _), outcome in zip(batch, outcomes, strict=True):
                if isinstance(outcome, CorruptionError):
                    self._set_aside(record.queue, outcome)
                if isinstance(outcome, LeaseLostError | CorruptionError):
                    self._abandon(record.queue, record.key)
                elif self._ended(record, outcome):
                    self._owed.add(record.queue)
                    nursery.start_soon(self._send_waiting, record.queue)
            self._note_end()

    def _note_end(self) -> None:
        self._give_back()
        self._awake.set()
        if self._draining and not self._queues.in_flight:
            self._drained.set()

    async def _gathered(self) -> list[EndedAttempt]:
        """Return ended attempts: half of those in flight, so that one half is written down while the other is sent, or
        as many as end within `GATHER_S`. A commit costs as much as some seven attempts in it.
        """
        batch = await self._ended_attempts.batch(BATCH)
        with trio.move_on_after(GATHER_S):
            while len(batch) < min(self._queues.in_flight / 2, BATCH):
                batch += await self._ended_attempts.batch(BATCH - len(batch))
        return batch

    def _ended(self, record: AttemptRecord, outcome: AttemptOutcome) -> bool:
        """Count an attempt and update its queue; return whether it ended an outage."""
        self._attempts[outcome.status] += 1
        self._attempts_s.observe(record.result.duration_ms / 1000)
        if record.result.error is not None:
            self._errors[record.result.error] += 1
        queue = self._queues.find(record.queue)
        assert queue is not None, "a queue is kept while a delivery is in flight"
        was_failing = queue.failing
        if record.result.error not in ("paused", "removed"):
            self._learn(queue, record, outcome)
        self._queues.end(queue, record.key)
        if not self._partitions.sends(record.queue):
            self._queues.remove(record.queue)
        elif outcome.due_ms is not None:
            self._queues.offer(record.queue, outcome.due_ms)
        return record.result.error is None and (was_failing or outcome.health.owed) and record.queue not in self._owed

    async def _send_waiting(self, queue: EndpointKey) -> None:
        """Send at once whatever waits for an endpoint that accepts again (decisions 17.7)."""
        await make_all_due(self._store, self._partitions, queue, self._clock.now_ms())
        self._owed.discard(queue)
        self.wake((queue,))

    def _abandon(self, key: EndpointKey, delivery: DeliveryKey) -> None:
        """Forget an attempt in flight that is now another process's."""
        queue = self._queues.find(key)
        assert queue is not None, "a queue is kept while a delivery is in flight"
        self._queues.end(queue, delivery)
        self._note_end()

    def _learn(self, queue: _Queue, record: AttemptRecord, outcome: AttemptOutcome) -> None:
        was_failing, now_ms, since_ms = queue.failing, self._clock.now_ms(), outcome.health.failing_since_ms
        adjust_concurrency(queue, record.result, now_ms, failing=outcome.failing, failing_since_ms=since_ms)
        if was_failing != outcome.failing and outcome.failing == (record.result.error is not None):
            log.info("endpoint failing" if outcome.failing else "endpoint recovered", endpoint=record.endpoint.id)

    async def _sweep(self) -> None:
        """Delete what removed endpoints have left behind, some rows at a time so that nobody waits."""
        first = partial(first_removed, sends=self._partitions.sends)
        while True:
            self._swept = trio.Event()
            while (removed := await read(self._store, first)) is not None and self._partitions.sends(removed):
                sweep = partial(sweep_removed, queue=removed, limit=SWEEP_ROWS)
                job = Write(sweep, removed.organization, lease=self._partitions.lease(removed))
                await write(self._store, [job], self._partitions.drop)
            await self._swept.wait()
