"""The parent of several workers: forks them, hands signals on, and replaces those that die.

It opens no store and runs no event loop: what it holds is the listening sockets, the lock of the data directory and
the memory that the workers share. Everything else belongs to the workers, so that there is little here to fail.

    parent = Parent(workers=4, drain_s=13)
    outcome = parent.run()       returns a `WorkerSlot` in each worker, and in the parent the exit status, at the end
"""

from __future__ import annotations

import math
import os
import select
import signal
from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from svc.workers import hangups
from svc.workers.pulse import PulseBoard, notify
from svc.workers.shared_memory import WorkerSlot
from svc.world import elapsed_s

log = structlog.get_logger()

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 30.0
GOOD_AFTER_S = 30.0
"""Of service, for each failure of a worker that ended by itself."""
LOOK_S = 1.0
"""Between two looks at the pulse of the workers."""
WAITS_FOR_DISK = "D"
"""State of a process in an uninterruptible wait."""
_ENDING = (signal.SIGTERM, signal.SIGINT)
_HANDLED = {*_ENDING, signal.SIGHUP, signal.SIGCHLD}


def pause_s(failures: int) -> float:
    """Return the seconds until a worker is started again: 0.1 after one failure (`failures_after`), twice as long after
    each further one, at most 30.
    """
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (min(failures, 20) - 1))


def failures_after(failures: int, served_s: float, *, was_killed: bool) -> int:
    """Return the number of failures to count after one more death. Each second of service cancels an earlier failure,
    so that a worker that is killed now and then restarts at once, but one that dies as soon as it serves does not. For
    a worker that ends by itself, for example because the disk fails, it takes `GOOD_AFTER_S`: each start sends again
    what was not recorded.
    """
    return max(0, failures - int(served_s / (1.0 if was_killed else GOOD_AFTER_S))) + 1


class _Worker(msgspec.Struct):
    index: int
    pid: int | None = None
    failures: int = 0
    start_at_s: float = 0.0
    """When it is to be started, where it does not run."""


class Parent:
    """Runs `workers` processes until SIGTERM or SIGINT, and then waits until they have drained. `drain_s`: seconds
    after which a worker that still runs is killed. `on_stop`: called first, in the parent, to close what it holds open
    for the workers.

    A worker whose loop has not run for `hang_s` seconds is killed and replaced, unless `state_of` reports that its pid
    waits for the disk: the next worker would wait too.
    """

    def __init__(
        self,
        workers: int,
        drain_s: float,
        on_stop: Callable[[], None] = lambda: None,
        *,
        hang_s: float = math.inf,
        state_of: Callable[[int], str] = lambda _: "",
    ) -> None:
        self.board = PulseBoard(workers)
        self._workers = [_Worker(index) for index in range(workers)]
        self._drain_s = drain_s
        self._on_stop = on_stop
        self._hang_s, self._state_of = hang_s, state_of
        self._waiting_for_disk: set[int] = set()
        """Pids of workers that hang and were not killed."""
        self._is_ready = False
        self._kill_at_s: float | None = None
        self._clean = True
        self.lifeline, self._held = os.pipe()
        """A worker reads the end of this file when the parent has died, however it died."""
        self._signaled, self._signal = os.pipe()

    def run(self) -> WorkerSlot | int:
        """In each worker, return its slot at once, with SIGTERM, SIGINT and SIGHUP blocked until the worker handles
        them. In the parent, return the exit status when every worker has ended: 0 if each ended without an error after
        the signal.
        """
        self._listen_to_signals()
        while True:
            for worker in self._workers:
                if worker.pid is None and not self._is_stopping and worker.start_at_s <= elapsed_s():
                    worker.pid = self._fork()
                    if not worker.pid:
                        return WorkerSlot(worker.index, len(self._workers))
            for number in self._wait_for_signals():
                self._handle(signal.Signals(number))
            self._reap()
            self._look_at_pulse()
            if self._is_stopping and all(worker.pid is None for worker in self._workers):
                return 0 if self._clean else 1
            if self._kill_at_s is not None and elapsed_s() >= self._kill_at_s:
                log.error("workers did not drain in time, killing them", seconds=self._drain_s)
                self._kill()

    @property
    def _is_stopping(self) -> bool:
        return self._kill_at_s is not None

    def _look_at_pulse(self) -> None:
        """Tell the service manager that the service lives, and replace workers that hang (decisions 17.4)."""
        if self._is_stopping:
            return
        if not self._is_ready and self.board.are_all_serving():
            self._is_ready = True
            notify("READY=1")
        notify("WATCHDOG=1")
        for worker in self._workers:
            silent_s = self.board.silent_s(worker.index, elapsed_s())
            if worker.pid is None or silent_s <= self._hang_s:
                continue
            if self._state_of(worker.pid) == WAITS_FOR_DISK:
                if worker.pid not in self._waiting_for_disk:
                    self._waiting_for_disk.add(worker.pid)
                    log.critical("worker hangs: the disk does not respond", worker=worker.index, pid=worker.pid)
                continue
            log.error("worker hangs, replacing", worker=worker.index, pid=worker.pid, silent_s=round(silent_s, 1))
            os.kill(worker.pid, signal.SIGKILL)

    def _listen_to_signals(self) -> None:
        """Turn each signal into a byte in a pipe: another thread may get it, such as the one that writes the log."""
        os.set_blocking(self._signal, False)
        os.set_blocking(self._signaled, False)
        signal.set_wakeup_fd(self._signal, warn_on_full_buffer=False)
        for number in _HANDLED:
            signal.signal(number, _nothing)
        hangups.release()

    def _fork(self) -> int:
        """Fork a worker; return its pid, 0 in the worker. No signal is lost before the worker has its own handler."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        pid = os.fork()
        if pid:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
            return pid
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        for descriptor in (self._held, self._signaled, self._signal):
            os.close(descriptor)
        return 0

    def _wait_for_signals(self) -> bytes:
        """Wait for signals until there is something else to do. Return their numbers."""
        due = [worker.start_at_s for worker in self._workers if worker.pid is None]
        next_s = min(due, default=math.inf) if self._kill_at_s is None else self._kill_at_s
        timeout = min(LOOK_S, max(0.0, next_s - elapsed_s()))
        ready, _, _ = select.select([self._signaled], [], [], timeout)
        return os.read(self._signaled, 4096) if ready else b""

    def _handle(self, number: signal.Signals) -> None:
        if number == signal.SIGHUP:
            self._send(signal.SIGHUP)
        elif number in _ENDING and self._is_stopping:
            self._kill()  # who asks twice does not want to wait
        elif number in _ENDING:
            notify("STOPPING=1")
            self._kill_at_s = elapsed_s() + self._drain_s
            self._on_stop()
            self._send(signal.SIGTERM)

    def _kill(self) -> None:
        self._kill_at_s = math.inf
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        for worker in self._workers:
            if worker.pid is not None:
                os.kill(worker.pid, number)  # not reaped yet, so that the pid is nobody else's

    def _reap(self) -> None:
        """Reap every process that has ended: as pid 1 of a container also those that are not workers."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for worker in self._workers:
                if worker.pid == pid:
                    self._reap_worker(worker, os.waitstatus_to_exitcode(status))

    def _reap_worker(self, worker: _Worker, code: int) -> None:
        pid, worker.pid = worker.pid, None
        cause: dict[str, Any] = {"status": code} if code >= 0 else {"signal": signal.strsignal(-code)}
        served_s = self.board.note_death(worker.index, elapsed_s(), replaced=not self._is_stopping)
        if self._is_stopping:
            if code:
                self._clean = False
                log.error("worker exited with an error", worker=worker.index, pid=pid, **cause)
            return
        worker.failures = failures_after(worker.failures, served_s, was_killed=code < 0)
        wait_s = pause_s(worker.failures)
        worker.start_at_s = elapsed_s() + wait_s
        log.error(
            "worker died, restarting",
            worker=worker.index,
            pid=pid,
            **cause,
            served_s=round(served_s, 1),
            in_s=wait_s,
        )


def ignore_signals() -> None:
    """Ignore all signals in a worker that has drained, so that none changes its exit status."""
    for number in _HANDLED - {signal.SIGCHLD}:
        signal.signal(number, signal.SIG_IGN)


def _nothing(*_: object) -> None:
    """Ignore a signal: it is read from the pipe, or comes to a worker that drains already."""
