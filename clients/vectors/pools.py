"""Jobs in pools and readings of sources, on virtual time: what of `running` knows neither reports nor servers.

What may live here: who runs beside whom, what is given up, and who waits for what. What is due at the same millisecond
is done in the order in which it was set.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any, Protocol

IDENTIFYING = ("token", "android_id", "build", "app")
"""Read before everything else, and waited for longer."""
PATIENCE_MS = 10_000
"""For what identifies and hangs since an earlier report."""
SOURCE_MS, CHECK_MS = 200, 100
"""After that a source no longer holds up others; it is waited for all the same."""
FAULT = {"fault": "error"}
Event = Callable[[], None]


class Phone(Protocol):
    """What is read, and where it is noted."""

    clock: Clock
    reads: list[dict[str, Any]]

    def step(self, name: str) -> dict[str, Any]: ...
    def is_constant(self, name: str) -> bool: ...
    def value(self, name: str, step: dict[str, Any]) -> Any: ...


def nothing() -> None:
    pass


class Clock:
    """Events in order of their time."""

    def __init__(self) -> None:
        self.now, self._due, self._numbers = 0, list[tuple[int, int, Event]](), count()
        self._canceled: set[int] = set()

    def after(self, ms: int, event: Event) -> Event:
        """What it returns prevents the event."""
        number = next(self._numbers)
        heapq.heappush(self._due, (self.now + max(0, ms), number, event))
        return lambda: self._canceled.add(number)

    def run(self) -> None:
        while self._due:
            at, number, event = heapq.heappop(self._due)
            if number not in self._canceled:
                self.now = at
                event()


class Task:
    """One job of a pool: it takes as long as its script says, `None` for ever."""

    def __init__(
        self,
        limit: Callable[[], int],
        took: Callable[[], int | None],
        ended: Event,
        overdue: Event = nothing,
    ) -> None:
        self.limit, self.took, self.ended, self.overdue = limit, took, ended, overdue
        self.watchers: list[Event] = []


class WorkerPool:
    """Jobs of one kind, a fixed number at a time; one that outlives its limit is given up, and another replaces it."""

    def __init__(self, clock: Clock, size: int, spare: int) -> None:
        self._clock, self._size, self._spare = clock, size, spare
        self._queue: list[Task] = []
        self._running: list[Task] = []
        self._hung = 0

    def run(self, task: Task) -> None:
        self._queue.append(task)
        self._pump()

    def drop(self, task: Task) -> bool:
        """`False` where it has begun."""
        if task in self._queue:
            self._queue.remove(task)
            return True
        return False

    def after_these(self, then: Event) -> None:
        """Once each that runs has ended or is given up."""
        left = len(self._running)

        def one() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                then()

        for task in self._running:
            task.watchers.append(one)
        if left == 0:
            then()

    def _pump(self) -> None:
        most = self._size + self._spare
        while self._queue and len(self._running) < self._size and len(self._running) + self._hung < most:
            self._begin(self._queue.pop(0))

    def _begin(self, task: Task) -> None:
        self._running.append(task)

        def give_up() -> None:
            self._hung += 1
            self._leave(task)
            task.overdue()
            self._pump()

        def end() -> None:
            forgive()
            if task in self._running:
                self._leave(task)
            else:
                self._hung -= 1
            task.ended()
            self._pump()

        forgive = self._clock.after(task.limit(), give_up)
        took = task.took()
        if took is not None:
            self._clock.after(took, end)

    def _leave(self, task: Task) -> None:
        self._running.remove(task)
        for watcher in task.watchers:
            watcher()


class Steps:
    """What happens to the first, second, ... of something; the last for ever."""

    def __init__(self, steps: list[dict[str, Any]]) -> None:
        self._steps, self._taken = steps, 0

    def next(self) -> dict[str, Any]:
        self._taken += 1
        return self._steps[min(self._taken, len(self._steps)) - 1]


def took(step: dict[str, Any]) -> int | None:
    return None if step.get("hangs") else step.get("after_ms", 0)


class Reading:
    def __init__(self, name: str) -> None:
        self.name, self.is_late = name, False
        self.began: int | None = None
        self.waiting: list[Collection] = []
        self.task: Task


class Collection:
    """Who waits for values until a moment."""

    def __init__(self, done: Callable[[dict[str, Any]], None], seen: Callable[[str, Any], None]) -> None:
        self.done, self.seen = done, seen
        self.found: dict[str, Any] = {}
        self.open: dict[str, Reading] = {}
        self.awaited: set[str] = set()
        self.forgive: Event = nothing
        self.is_over = False


class Readings:
    """Sources that are read one by one, none twice at a time."""

    def __init__(self, phone: Phone, pool: WorkerPool) -> None:
        self._phone, self._clock, self._pool = phone, phone.clock, pool
        self._constants: dict[str, Any] = {}
        self._running: dict[str, Reading] = {}
        self.late: dict[str, Any] = {}

    def collect(
        self,
        names: list[str],
        ends_at: int,
        done: Callable[[dict[str, Any]], None],
        seen: Callable[[str, Any], None] = lambda _name, _value: None,
    ) -> Event:
        """What it returns ends the wait."""
        self_ = Collection(done, seen)
        first = sorted((name for name in names if name in IDENTIFYING), key=IDENTIFYING.index)
        for name in [*first, *(name for name in names if name not in IDENTIFYING)]:
            if name in self._constants:
                self_.found[name] = self._constants[name]
                continue
            known = self._running.get(name)
            if self._is_awaited(name, known):
                self_.awaited.add(name)
            reading = known or self._reading(name)
            reading.waiting.append(self_)
            self_.open[name] = reading
            if known is None:
                self._pool.run(reading.task)
        self_.forgive = self._clock.after(ends_at - self._clock.now, lambda: self._end(self_))
        if not self_.awaited:
            self._clock.after(0, lambda: self._end(self_))
        return lambda: self._stop(self_)

    def _is_awaited(self, name: str, known: Reading | None) -> bool:
        if known is not None and known.is_late:
            age = 0 if known.began is None else self._clock.now - known.began
            return name in IDENTIFYING and age < PATIENCE_MS
        return name not in self.late

    def _reading(self, name: str) -> Reading:
        reading = Reading(name)
        step: dict[str, Any] = {}

        def begin() -> int | None:
            reading.began = self._clock.now
            self._phone.reads.append({"at_ms": self._clock.now, "name": name})
            step.update(self._phone.step(name))
            return took(step)

        def end() -> None:
            del self._running[name]
            value = FAULT if step.get("fault") else self._phone.value(name, step)
            if value != FAULT:
                if self._phone.is_constant(name):
                    self._constants[name] = value
                if not reading.waiting:
                    self.late[name] = value
            for one in list(reading.waiting):
                self._take(one, name, value)

        limit = CHECK_MS if name.startswith("flags.") else SOURCE_MS
        reading.task = Task(lambda: limit, begin, end)
        self._running[name] = reading
        return reading

    def _take(self, one: Collection, name: str, value: Any) -> None:
        if name in one.open:
            one.open.pop(name).waiting.remove(one)
        self.late.pop(name, None)
        one.found[name] = value
        one.seen(name, value)
        if name in one.awaited:
            one.awaited.remove(name)
            if not one.awaited:
                self._end(one)

    def _end(self, one: Collection) -> None:
        if one.is_over:
            return
        for name in one.open:
            one.found[name] = self.late.pop(name, FAULT)
        self._stop(one)
        one.done(one.found)

    def _stop(self, one: Collection) -> None:
        one.is_over = True
        one.forgive()
        for name, reading in one.open.items():
            reading.waiting.remove(one)
            reading.is_late = True
            if not reading.waiting and self._pool.drop(reading.task):
                del self._running[name]
        one.open.clear()
