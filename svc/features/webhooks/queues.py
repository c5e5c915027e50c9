"""Which endpoint is next: a queue for each endpoint with work, and the limits between them (decisions 8.8).

The rules, without clock, store or network: an endpoint has 1 to 8 slots by how well it responds, one while it fails; an
organization has 32; there are 256 in all, of which failing endpoints together have a quarter and slow ones seven
eighths. The fewer are free, the fewer an endpoint may have: busy ones leave some for all others. Queues with due work
take turns. Whatever is asked here costs the same however many queues there are.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from typing import Generic, NamedTuple, TypeVar

import msgspec

from svc.features.webhooks.records import DeliveryKey, Endpoint, Health
from svc.features.webhooks.retries import AttemptResult
from svc.kernel.values.partitions import EndpointKey

H = TypeVar("H")

SLOTS = 256
ORGANIZATION_SLOTS = 32
FAILING_SLOTS = SLOTS // 4
SLOW_SLOTS = SLOTS * 7 // 8
SLOW_MS = 1_000
"""An endpoint is slow whose last attempt took so long."""
ENDPOINT_SLOTS = 8
FREE_PER_SLOT = 8
"""Free slots of all that an endpoint needs for each slot of its own. The first it may always have."""
FIRST_SLOTS = 2
SUCCESSES_PER_SLOT = 20

OUTAGE_FAILURES = 5
"""Failed attempts in a row from which an endpoint with a backlog is only probed."""
BACKLOG_OVER = 100
"""Due deliveries over which an endpoint has a backlog."""
PROBE_MS = 5_000
MAX_PROBE_MS = 300_000
OUTAGE_PROBES = 12
"""From one probe to the next is this part of the time that the outage has lasted, but not less than `PROBE_MS`, and not
more than `MAX_PROBE_MS`, which it is after an hour (decisions 17.7)."""


class ConcurrencyLimit(NamedTuple):
    """The number of deliveries to one endpoint that may be in flight: raised by successes, halved by
    overload (AIMD).
    """

    slots: int = FIRST_SLOTS
    successes: int = 0
    """In a row, since the window last changed."""
    opening: bool = False
    """After an outage it doubles with each success, until it is whole again."""

    def after(self, result: AttemptResult, *, recovered: bool) -> ConcurrencyLimit:
        """Return the limit after an attempt: one more slot for `SUCCESSES_PER_SLOT` successes in a row, half for a
        timeout, a 5xx or a 429. `recovered`: this success ended an outage, so the limit starts again from one, doubled
        with each success.
        """
        if result.error is None:
            if recovered or self.opening:
                slots = min(2 * (1 if recovered else self.slots), ENDPOINT_SLOTS)
                return ConcurrencyLimit(slots, opening=slots < ENDPOINT_SLOTS)
            if self.successes + 1 < SUCCESSES_PER_SLOT:
                return self._replace(successes=self.successes + 1)
            return ConcurrencyLimit(min(self.slots + 1, ENDPOINT_SLOTS))
        code = result.response_code or 0
        if result.error == "timeout" or code >= 500 or code == 429:
            return ConcurrencyLimit(max(self.slots // 2, 1))
        return ConcurrencyLimit(self.slots)


class EndpointQueue(msgspec.Struct, Generic[H], kw_only=True, eq=False):
    """The queue of one endpoint with work. `H`: the type of the sender's handle of an attempt in flight."""

    key: EndpointKey
    in_flight: dict[DeliveryKey, H] = {}
    limit: ConcurrencyLimit = ConcurrencyLimit()
    failing: bool = False
    """It has status `failing`, or has failed often enough in a row to be on the way there."""
    slow: bool = False
    """Its last attempt took `SLOW_MS` or longer."""
    probe_at_ms: int = 0
    """Of a backlog nothing is sent before."""
    backlogged: bool = False
    """A backlog was found in this outage. It is counted again after the next attempt, and not with each event
    that joins it.
    """
    due_ms: int | None = None
    """Nothing is due before; `None` = nothing waits."""
    queued: bool = False
    """It stands in line, for its turn or for a slot."""
    news: bool = False
    """It was offered or forgotten since it was taken."""

    @property
    def slots(self) -> int:
        """Return how many deliveries may be in flight now: one while the endpoint is failing."""
        return 1 if self.failing else self.limit.slots


class DeliveryScheduler(Generic[H]):
    """The queues of all endpoints with work, and the order in which they take turns."""

    def __init__(self) -> None:
        self._by_endpoint: dict[EndpointKey, EndpointQueue[H]] = {}
        self._asleep: list[tuple[int, EndpointKey]] = []
        """A heap; an entry that is not the queue's `due_ms` any more is stale."""
        self._ready: deque[EndpointQueue[H]] = deque()
        self._behind_organization: defaultdict[int, list[EndpointQueue[H]]] = defaultdict(list)
        self._behind_failing: deque[EndpointQueue[H]] = deque()
        self._behind_slow: deque[EndpointQueue[H]] = deque()
        self._organization_in_flight: Counter[int] = Counter()
        self._failing_in_flight: set[tuple[EndpointKey, DeliveryKey]] = set()
        self._slow_in_flight: set[tuple[EndpointKey, DeliveryKey]] = set()
        self._taken: dict[EndpointKey, tuple[bool, bool]] = {}
        """Those that were taken and not handed back yet, and whether they failed or were slow then: each may need a
        slot."""
        self.in_flight = 0
        self.organization_slots = ORGANIZATION_SLOTS

    def find(self, key: EndpointKey) -> EndpointQueue[H] | None:
        """Return the queue of this endpoint; `None` if it has neither work nor a learned concurrency limit."""
        return self._by_endpoint.get(key)

    def all(self) -> list[EndpointQueue[H]]:
        """Return all queues, in no particular order."""
        return list(self._by_endpoint.values())

    def offer(self, key: EndpointKey, due_ms: int) -> None:
        """Note that a delivery in this queue may be due from `due_ms` (Unix ms) on; create the queue if needed. A time
        that is too early costs one poll, one that is too late delays the delivery.
        """
        queue = self._by_endpoint.get(key)
        if queue is None:
            queue = self._by_endpoint[key] = EndpointQueue(key=key)
        queue.news = True
        if queue.due_ms is None or due_ms < queue.due_ms:
            self._due(queue, due_ms)

    def remove(self, key: EndpointKey) -> EndpointQueue[H] | None:
        """Stop sending to this endpoint, and drop what was learned about it. Return its queue, whose deliveries in
        flight still have to `end`; `None` if there is none.
        """
        queue = self._by_endpoint.get(key)
        if queue is not None:
            queue.due_ms, queue.limit, queue.news = None, ConcurrencyLimit(), True
            queue.failing = queue.slow = False
            self._drop_if_idle(queue)
        return queue

    def take(self, now_ms: int) -> EndpointQueue[H] | None:
        """Return the next queue in turn that may send at `now_ms` (Unix ms); `None` if no queue may. The caller must
        hand it back with `start`, `wait` or `again`; it may take several queues before.
        """
        while self._asleep and self._asleep[0][0] <= now_ms:
            due_ms, key = heapq.heappop(self._asleep)
            queue = self._by_endpoint.get(key)
            if queue is not None and queue.due_ms == due_ms:
                self._queue(queue)
        while self.in_flight + len(self._taken) < SLOTS:
            queue = self._next()
            if queue is None:
                return None
            queue.queued = False
            if queue.key in self._taken or queue.due_ms is None or len(queue.in_flight) >= self._slots_of(queue):
                continue  # it is handed back, or `offer` or `end` brings it back
            if queue.due_ms > now_ms:
                self._due(queue, queue.due_ms)
            elif self._slots_taken(queue.key.organization) >= self.organization_slots:
                queue.queued = True
                self._behind_organization[queue.key.organization].append(queue)
            elif queue.failing and not self._may_try_failing():
                queue.queued = True
                self._behind_failing.append(queue)
            elif queue.slow and not self._may_try_slow():
                queue.queued = True
                self._behind_slow.append(queue)
            else:
                queue.news = False
                self._taken[queue.key] = queue.failing, queue.slow
                return queue
        return None

    def start(self, queue: EndpointQueue[H], delivery: DeliveryKey, handle: H) -> None:
        """Note that a delivery of a queue from `take` is in flight, and move the queue to the end of the line.
        `handle`: what the sender keeps of the attempt.
        """
        del self._taken[queue.key]
        queue.in_flight[delivery] = handle
        self.in_flight += 1
        self._organization_in_flight[queue.key.organization] += 1
        if queue.failing:
            self._failing_in_flight.add((queue.key, delivery))
        if queue.slow:
            self._slow_in_flight.add((queue.key, delivery))
        self._queue(queue)

    def again(self, queue: EndpointQueue[H]) -> None:
        """Hand back a queue from `take` that must be looked at once more; it moves to the end of the line."""
        self._hand_back(queue)
        self._queue(queue)

    def wait(self, queue: EndpointQueue[H], due_ms: int | None) -> None:
        """Hand back a queue from `take` that has nothing to send before `due_ms` (Unix ms); with `None`, before `end`
        or `offer` is called for it.
        """
        self._hand_back(queue)
        queue.due_ms = None
        if due_ms is None:
            self._drop_if_idle(queue)
        else:
            self._due(queue, due_ms)

    def end(self, queue: EndpointQueue[H], delivery: DeliveryKey) -> None:
        """Note that the outcome of a delivery in flight is on disk. Raises `KeyError` if it was not started."""
        del queue.in_flight[delivery]
        self.in_flight -= 1
        if (queue.key, delivery) in self._failing_in_flight:
            self._failing_in_flight.remove((queue.key, delivery))
            if self._behind_failing:  # to the front: a queue that waits for these slots has had its turn before
                self._ready.appendleft(self._behind_failing.popleft())
        self._slow_in_flight.discard((queue.key, delivery))
        number = queue.key.organization
        self._organization_in_flight[number] -= 1
        if not self._organization_in_flight[number]:
            del self._organization_in_flight[number]
        self._ready.extend(self._behind_organization.pop(number, ()))
        if queue.due_ms is None:
            self._drop_if_idle(queue)
        else:
            self._queue(queue)

    def wake_at_ms(self) -> int | None:
        """Return the time (Unix ms) at which the next waiting queue has work; `None` if no queue waits for a time."""
        while self._asleep:
            due_ms, key = self._asleep[0]
            queue = self._by_endpoint.get(key)
            if queue is not None and queue.due_ms == due_ms and not queue.queued:
                return due_ms
            heapq.heappop(self._asleep)
        return None

    def _next(self) -> EndpointQueue[H] | None:
        if self._ready:
            return self._ready.popleft()
        if self._behind_failing and self._may_try_failing():
            return self._behind_failing.popleft()
        if self._behind_slow and self._may_try_slow():
            return self._behind_slow.popleft()
        return None

    def _slots_of(self, queue: EndpointQueue[H]) -> int:
        """Return how many deliveries of a queue may be in flight now: at least one, whose end brings the queue back."""
        free = SLOTS - self.in_flight - len(self._taken)
        return min(queue.slots, max(free // FREE_PER_SLOT, 1))

    def _slots_taken(self, organization: int) -> int:
        taken = sum(key.organization == organization for key in self._taken)
        return self._organization_in_flight[organization] + taken

    def _may_try_failing(self) -> bool:
        taken = sum(is_failing for is_failing, _ in self._taken.values())
        return len(self._failing_in_flight) + taken < FAILING_SLOTS

    def _may_try_slow(self) -> bool:
        return len(self._slow_in_flight) + sum(is_slow for _, is_slow in self._taken.values()) < SLOW_SLOTS

    def _hand_back(self, queue: EndpointQueue[H]) -> None:
        """Release a queue that was taken, and let the queues that wait for its organization's slots try again."""
        del self._taken[queue.key]
        self._ready.extend(self._behind_organization.pop(queue.key.organization, ()))

    def _drop_if_idle(self, queue: EndpointQueue[H]) -> None:
        """Forget a queue that knows nothing a new one would not."""
        if not queue.in_flight and queue.limit == ConcurrencyLimit() and not (queue.failing or queue.slow):
            self._by_endpoint.pop(queue.key, None)

    def _queue(self, queue: EndpointQueue[H]) -> None:
        if not queue.queued:
            queue.queued = True
            self._ready.append(queue)

    def _due(self, queue: EndpointQueue[H], due_ms: int) -> None:
        queue.due_ms = due_ms
        heapq.heappush(self._asleep, (due_ms, queue.key))


def adjust_concurrency(
    queue: EndpointQueue[H], result: AttemptResult, now_ms: int, *, failing: bool, failing_since_ms: int | None
) -> None:
    """Update a queue after an attempt: its concurrency limit and, while it fails, the time of the next probe.
    `failing`: whether the endpoint is failing after the attempt, according to the store; `failing_since_ms`: when its
    first failed attempt in a row began, by the wall clock (Unix ms), as `result` has its times.
    """
    queue.limit = queue.limit.after(result, recovered=result.error is None and queue.failing)
    queue.failing, queue.backlogged, queue.slow = failing, False, result.duration_ms >= SLOW_MS
    if failing:
        ended_ms = result.started_ms + result.duration_ms
        queue.probe_at_ms = now_ms + probe_after_ms(ended_ms - (failing_since_ms or ended_ms))
    else:
        queue.probe_at_ms = 0


def probe_after_ms(outage_ms: int) -> int:
    """Return the milliseconds from a failed probe to the next, after an outage of `outage_ms` (decisions 17.7)."""
    return min(max(outage_ms // OUTAGE_PROBES, PROBE_MS), MAX_PROBE_MS)


def organization_slots(senders: int) -> int:
    """Return how many deliveries of one organization one of `senders` processes may have in flight: its share of the
    limit for all, but at least as many as one endpoint may have.
    """
    return max(-(-ORGANIZATION_SLOTS // senders), ENDPOINT_SLOTS)


def is_failing(endpoint: Endpoint, health: Health) -> bool:
    """Return whether the endpoint is only probed, with one delivery at a time: its status is `failing`, or it had
    `OUTAGE_FAILURES` failed attempts in a row.
    """
    return endpoint.status == "failing" or health.failures >= OUTAGE_FAILURES
