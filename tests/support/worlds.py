"""Worlds for tests: one whose every choice is a seed, and one that is real but for a clock that can be set."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
import trio

from svc.kernel.store.store import Store
from svc.world import World

T = TypeVar("T")

EPOCH_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z, when virtual time begins."""


def seeded_entropy(seed: int) -> Callable[[int], bytes]:
    return random.Random(seed).randbytes


def sim_world(seed: int) -> World:
    """Virtual time, seeded ids, and a "thread" that takes a random while and then runs inline."""
    chance = random.Random(seed)

    async def run_sync(function: Callable[[], T], /, **_: Any) -> T:
        await trio.sleep(chance.uniform(0.0003, 0.02))
        return function()

    def now_ms() -> int:
        return EPOCH_MS + (round(trio.current_time() * 1000) if trio.lowlevel.in_trio_run() else 0)

    def elapsed_s() -> float:
        return trio.current_time() if trio.lowlevel.in_trio_run() else 0.0

    return World(now_ms, chance.randbytes, run_sync, elapsed_s=elapsed_s)


class SettableClock:
    """Unix milliseconds, and the seconds of a monotonic clock: both stand still until they are moved."""

    def __init__(self, now_ms: int = EPOCH_MS) -> None:
        self._now_ms = now_ms
        self.elapsed_s = 0.0

    @property
    def now_ms(self) -> int:
        return self._now_ms

    @now_ms.setter
    def now_ms(self, now_ms: int) -> None:
        """Until then time passes, on both clocks; an earlier time is set, and no time passes."""
        self.elapsed_s += max(0.0, (now_ms - self._now_ms) / 1000)
        self._now_ms = now_ms

    def set(self, now_ms: int) -> None:
        """Somebody sets the wall clock: no time passes."""
        self._now_ms = now_ms

    def jump(self, *, seconds: float = 0, hours: float = 0, days: float = 0) -> None:
        """Somebody sets the wall clock ahead by so much, or back: no time passes."""
        self._now_ms += round((seconds + (24 * days + hours) * 3600) * 1000)

    def advance(self, *, seconds: float = 0, hours: float = 0) -> None:
        """Time passes, on both clocks."""
        self._now_ms += round((seconds + hours * 3600) * 1000)
        self.elapsed_s += max(0.0, seconds + hours * 3600)


def settable_world(clock: SettableClock) -> World:
    """Real threads and real entropy under a clock of the test's own."""
    real = World.real()
    return World(lambda: clock.now_ms, real.entropy, real.run_sync, elapsed_s=lambda: clock.elapsed_s)


async def inline(function: Callable[[], T], /, **_: Any) -> T:
    """A `run_sync` without a thread and without a wait."""
    return function()


class Everywhere:
    """Ranges that know nothing of any address: it could be looked up, and so it costs."""

    def find(self, _: object, /) -> None: ...

    def publishes(self, _: str, /) -> bool:
        return True


@contextmanager
def failing(store: Store, error: Exception, *methods: str) -> Generator[list[float]]:
    """These methods of the store raise `error` in the block. When they did, in seconds."""
    raised_at_s: list[float] = []

    async def fail(*_: Any, **__: Any) -> Any:
        raised_at_s.append(trio.current_time())
        raise error

    with pytest.MonkeyPatch.context() as patch:
        for method in methods:
            patch.setattr(store, method, fail)
        yield raised_at_s


class HeldThreads:
    """A `run_sync` that can be held: commits wait until they are let go, so that a test decides who overtakes whom."""

    def __init__(self) -> None:
        self.gate = trio.Event()
        self.gate.set()
        self.waiting = 0

    def hold(self) -> None:
        self.gate = trio.Event()

    def release(self) -> None:
        self.gate.set()

    async def __call__(self, function: Callable[[], Any], /, **_: Any) -> Any:
        self.waiting += 1
        await self.gate.wait()
        self.waiting -= 1
        assert threading.current_thread() is threading.main_thread()
        return function()
