"""The stack of a hung event loop is logged, once for each hang."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
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
    assert any(line.endswith(" hang") for line in logged[0]["stack"].splitlines())


def test_a_loop_that_is_late_but_does_not_hang_logs_nothing(logged: list[dict[str, Any]]):
    trio.run(hang_for, [HANG_S - 1, HANG_S - 1])
    assert logged == []


HOLDS_THE_GIL = """
import ctypes, sys, trio
from svc.command.logs import set_up_logging
from svc.workers.pulse import HangWatch
from svc.world import World

async def main():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(HangWatch(World.real(), hang_s=0.3, look_s=0.01).run)
        for _ in range(2):
            await trio.sleep(0.1)
            ctypes.PyDLL(None).usleep(600_000)
        await trio.sleep(0.1)
        nursery.cancel_scope.cancel()
    print("went on", flush=True)

set_up_logging(sys.argv[1])
trio.run(main)
"""


@pytest.mark.slow
def test_a_call_into_c_that_holds_the_gil_is_told_while_it_hangs_and_each_time():
    """As a page fault on a disk that does not respond."""
    command = [sys.executable, "-c", HOLDS_THE_GIL, "console"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    stacks = done.stderr.split("Timeout (0:00:00.3")[1:]
    assert [" in main\n" in each for each in stacks] == [True, True]
    assert "Exception in thread" not in done.stderr, "the watch goes on"


@pytest.mark.slow
def test_nobody_waits_for_stacks_that_nobody_reads_and_they_are_lost():
    """A write that blocked would go on when the log is read, on frames that are freed by then."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writes, bytes(4096))
    os.set_blocking(writes, True)
    command = [sys.executable, "-c", HOLDS_THE_GIL, "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writes) as process:
        os.close(writes)
        assert process.stdout is not None
        assert process.stdout.readline() == b"went on\n"
        with os.fdopen(reads, "rb") as log:
            assert b"Timeout" not in log.read()
    assert process.returncode == 0
