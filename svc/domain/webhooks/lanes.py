"""Who may send next: a lane for each endpoint with work, and the limits between them (decisions 8.8).

The rules, without clock, store or network: an endpoint has 1 to 8 slots by how well it answers, one while it fails; an
organization has 32; there are 256 in all, and failing endpoints together have a quarter of them. Lanes with due work
take turns. Whatever is asked here costs the same however many lanes there are.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Generic, NamedTuple, TypeVar

import msgspec

from svc.domain.webhooks.records import DeliveryKey, Endpoint, Health, LaneKey
from svc.domain.webhooks.schedule import Result

H = TypeVar("H")

SLOTS = 256
ORGANIZATION_SLOTS = 32
FAILING_SLOTS = SLOTS // 4
ENDPOINT_SLOTS = 8
FIRST_SLOTS = 2
SUCCESSES_PER_SLOT = 20

OUTAGE_FAILURES = 5
"""Failed attempts in a row from which an endpoint with a crowd waiting is only probed."""
CROWD = 100
"""Due deliveries over which they are a crowd."""
PROBE_MS = 5_000
LONGEST_PROBE_MS = 300_000
"""Between two probes: twice as long each time, up to this."""


class Window(NamedTuple):
    """How many deliveries to one endpoint may be in flight."""

    slots: int = FIRST_SLOTS
    successes: int = 0
    """In a row, since the window last changed."""
    opening: bool = False
    """After an outage it doubles with each success, until it is whole again."""

    def after(self, result: Result, *, healed: bool) -> Window:
        """One more slot for 20 successes, half for a timeout, a 5xx or a 429; from one on when it heals."""
        if result.error is None:
            if healed or self.opening:
                slots = min(2 * (1 if healed else self.slots), ENDPOINT_SLOTS)
                return Window(slots, opening=slots < ENDPOINT_SLOTS)
            if self.successes + 1 < SUCCESSES_PER_SLOT:
                return self._replace(successes=self.successes + 1)
            return Window(min(self.slots + 1, ENDPOINT_SLOTS))
        code = result.response_code or 0
        if result.error == "timeout" or code >= 500 or code == 429:
            return Window(max(self.slots // 2, 1))
        return Window(self.slots)


class Lane(msgspec.Struct, Generic[H], kw_only=True, eq=False):
    """One endpoint with work. `H` is whatever the sender keeps of an attempt in flight."""

    key: LaneKey
    in_flight: dict[DeliveryKey, H] = {}
    window: Window = Window()
    failing: bool = False
    """It has status `failing`, or has failed often enough in a row to be on the way there."""
    probes: int = 0
    """Failed probes of this outage."""
    probe_at_ms: int = 0
    crowded: bool = False
    """A crowd was found waiting in this outage. It is counted anew after the next attempt, and not with each event that
    joins it."""
    due_ms: int | None = None
    """Nothing is due before; `None` = nothing waits."""
    queued: bool = False
    """It stands in line, for its turn or for a slot."""

    @property
    def slots(self) -> int:
        return 1 if self.failing else self.window.slots


class Lanes(Generic[H]):
    """All endpoints with work, and whose turn it is."""

    def __init__(self) -> None:
        self._lanes: dict[LaneKey, Lane[H]] = {}
        self._asleep: list[tuple[int, LaneKey]] = []
        """A heap; an entry that is not the lane's `due_ms` any more is stale."""
        self._ready: deque[Lane[H]] = deque()
        self._behind_organization: dict[int, list[Lane[H]]] = {}
        self._behind_failing: deque[Lane[H]] = deque()
        self._organization_in_flight: dict[int, int] = {}
        self._failing_in_flight: set[tuple[LaneKey, DeliveryKey]] = set()
        self.in_flight = 0

    def find(self, key: LaneKey) -> Lane[H] | None:
        return self._lanes.get(key)

    def all(self) -> list[Lane[H]]:
        return list(self._lanes.values())

    def offer(self, key: LaneKey, due_ms: int) -> None:
        """Something may be due in this lane from then on. Saying so too early costs one look, too late costs time."""
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key=key)
        if lane.due_ms is None or due_ms < lane.due_ms:
            self._due(lane, due_ms)

    def forget(self, key: LaneKey) -> Lane[H] | None:
        """Nothing more is sent there, and nothing remembered. What is in flight still has to end."""
        lane = self._lanes.get(key)
        if lane is not None:
            lane.due_ms, lane.window, lane.failing = None, Window(), False
            self._drop_if_idle(lane)
        return lane

    def take(self, now_ms: int) -> Lane[H] | None:
        """The next lane in turn that may send now. It must be handed back: to `start`, `wait` or `again`."""
        while self._asleep and self._asleep[0][0] <= now_ms:
            due_ms, key = heapq.heappop(self._asleep)
            lane = self._lanes.get(key)
            if lane is not None and lane.due_ms == due_ms:
                self._queue(lane)
        while self.in_flight < SLOTS:
            lane = self._next()
            if lane is None:
                return None
            lane.queued = False
            if lane.due_ms is None or len(lane.in_flight) >= lane.slots:
                continue  # `offer` or `end` brings it back
            if lane.due_ms > now_ms:
                self._due(lane, lane.due_ms)
            elif self._organization_in_flight.get(lane.key.organization, 0) >= ORGANIZATION_SLOTS:
                lane.queued = True
                self._behind_organization.setdefault(lane.key.organization, []).append(lane)
            elif lane.failing and len(self._failing_in_flight) >= FAILING_SLOTS:
                lane.queued = True
                self._behind_failing.append(lane)
            else:
                return lane
        return None

    def start(self, lane: Lane[H], delivery: DeliveryKey, handle: H) -> None:
        """One of its deliveries is in flight; the lane goes to the end of the line."""
        lane.in_flight[delivery] = handle
        self.in_flight += 1
        number = lane.key.organization
        self._organization_in_flight[number] = self._organization_in_flight.get(number, 0) + 1
        if lane.failing:
            self._failing_in_flight.add((lane.key, delivery))
        self._queue(lane)

    def again(self, lane: Lane[H]) -> None:
        """It could not be judged yet; at the end of the line it will be."""
        self._queue(lane)

    def wait(self, lane: Lane[H], due_ms: int | None) -> None:
        """Nothing to send before this time, or before `end` or `offer` brings it back."""
        lane.due_ms = None
        if due_ms is None:
            self._drop_if_idle(lane)
        else:
            self._due(lane, due_ms)

    def end(self, lane: Lane[H], delivery: DeliveryKey) -> None:
        """A delivery in flight has ended, and what came of it is on disk."""
        del lane.in_flight[delivery]
        self.in_flight -= 1
        if (lane.key, delivery) in self._failing_in_flight:
            self._failing_in_flight.remove((lane.key, delivery))
            if self._behind_failing:  # to the front: whoever waits for these slots has had its turn before
                self._ready.appendleft(self._behind_failing.popleft())
        number = lane.key.organization
        left = self._organization_in_flight[number] - 1
        if left:
            self._organization_in_flight[number] = left
        else:
            del self._organization_in_flight[number]
        self._ready.extend(self._behind_organization.pop(number, ()))
        if lane.due_ms is None:
            self._drop_if_idle(lane)
        else:
            self._queue(lane)

    def wake_at_ms(self) -> int | None:
        """When the next sleeping lane has work; `None` = none has."""
        while self._asleep:
            due_ms, key = self._asleep[0]
            lane = self._lanes.get(key)
            if lane is not None and lane.due_ms == due_ms and not lane.queued:
                return due_ms
            heapq.heappop(self._asleep)
        return None

    def _next(self) -> Lane[H] | None:
        if self._ready:
            return self._ready.popleft()
        if self._behind_failing and len(self._failing_in_flight) < FAILING_SLOTS:
            return self._behind_failing.popleft()
        return None

    def _drop_if_idle(self, lane: Lane[H]) -> None:
        """Where it knows nothing that a new one would not."""
        if not lane.in_flight and lane.window == Window() and not lane.failing:
            del self._lanes[lane.key]

    def _queue(self, lane: Lane[H]) -> None:
        if not lane.queued:
            lane.queued = True
            self._ready.append(lane)

    def _due(self, lane: Lane[H], due_ms: int) -> None:
        lane.due_ms = due_ms
        heapq.heappush(self._asleep, (due_ms, lane.key))


def learn(lane: Lane[H], result: Result, now_ms: int, *, failing: bool) -> None:
    """What a lane knows after an attempt: its window, and while it fails when the next probe is due.

    `failing` is what the store says of the endpoint after the attempt.
    """
    lane.window = lane.window.after(result, healed=result.error is None and lane.failing)
    lane.failing, lane.crowded = failing, False
    if failing:
        lane.probe_at_ms = now_ms + min(PROBE_MS << min(lane.probes, 16), LONGEST_PROBE_MS)
        lane.probes += 1
    else:
        lane.probes = lane.probe_at_ms = 0


def is_failing(endpoint: Endpoint, health: Health) -> bool:
    """Whether it is sent to as one that fails: by its status, or by its failures before they have lasted."""
    return endpoint.status == "failing" or health.failures >= OUTAGE_FAILURES
