"""The stack of a hung event loop is logged, once for each hang."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import structlog
import trio

from svc.workers.pulse import HANG_S, HangWatch
from svc.world import World

LOOK_S = 0.001
PATIENCE_S = 30


class Monotonic:
    """A monotonic clock that the test sets. It counts the checks of the thread that watches."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.checks = 0
        self._loop = threading.get_ident()
        self._checked = threading.Condition()

    def elapsed_s(self) -> float:
        if threading.get_ident() != self._loop:
            with self._checked:
                self.checks += 1
                self._checked.notify_all()
        return self.now_s

    def hang(self, seconds: float) -> None:
        """Block the loop, on which it is called, until that much time has passed and the thread has seen it."""
        self.now_s += seconds
        with self._checked:
            seen = self.checks + 2  # the first one may have read the time before
            assert self._checked.wait_for(lambda: self.checks >= seen, timeout=PATIENCE_S)

    async def run_on(self) -> None:
        """Let the loop run until the thread has seen that it does."""
        seen = self.checks + 3
        with trio.fail_after(PATIENCE_S):
            while self.checks < seen:  # noqa: ASYNC110  counted by a thread
                await trio.sleep(LOOK_S)


@pytest.fixture
def logged() -> Any:
    logged: list[dict[str, Any]] = []

    def processor(_: Any, __: str, event: dict[str, Any]) -> Any:
        logged.append(event)
        raise structlog.DropEvent

    structlog.configure(processors=[processor], cache_logger_on_first_use=False)
    yield logged
    structlog.reset_defaults()


async def hang_for(hangs: list[float]) -> None:
    """The watch beside a loop that hangs so often and so long, and runs in between until that was seen."""
    monotonic = Monotonic()
    real = World.real()
    world = World(real.now_ms, real.entropy, real.run_sync, elapsed_s=monotonic.elapsed_s)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(HangWatch(world, look_s=LOOK_S).run)
        await trio.testing.wait_all_tasks_blocked()
        for seconds in hangs:
            monotonic.hang(seconds)
            await monotonic.run_on()
        nursery.cancel_scope.cancel()


def test_the_stack_of_a_hung_loop_is_logged_once_for_each_hang(logged: list[dict[str, Any]]):
    trio.run(hang_for, [HANG_S + 1, HANG_S + 5])
    assert [(one["event"], one["seconds"]) for one in logged] == [
        ("the event loop hangs", HANG_S + 1),
        ("the event loop hangs", HANG_S + 5),
    ]
    assert any(line.endswith(" hang") for line in logged[0]["stack"])


def test_a_loop_that_is_late_but_does_not_hang_logs_nothing(logged: list[dict[str, Any]]):
    trio.run(hang_for, [HANG_S - 1, HANG_S - 1])
    assert logged == []
