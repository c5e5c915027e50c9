"""Whether workers live: memory in which each says so, a thread that logs the stack of an event loop that hangs,
and what is reported to systemd.

What may live here: the memory, what is read from it, that thread, and the datagrams to systemd. Who writes is
`svc/kernel/work/store_watch.py`; a worker that is blocked is replaced by `parent.py`. All of it is monotonic seconds
(`World.elapsed_s`), which the processes of a machine share; 0 = none.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import select
import socket
import stat
import sys
import threading
import traceback
from contextlib import suppress

import structlog
import trio

from svc.world import World, elapsed_s

SILENT_S = 6.0
"""A worker whose loop has not run for so long has died or hangs: its commit is not known to be under way."""


class PulseBoard:
    """Memory that a parent and its workers share: whether each worker serves and is alive, and how often it was
    replaced.
    """

    def __init__(self, workers: int) -> None:
        memory = memoryview(mmap.mmap(-1, 8 * 5 * workers))
        self._serving_since, self._beaten_at, self._commit_since, self._leader_since = (
            memory[8 * workers * row : 8 * workers * (row + 1)].cast("d") for row in range(4)
        )
        self._restarts = memory[8 * workers * 4 :].cast("Q")

    def mark_serving(self, index: int, now_s: float) -> None:
        """Record that the worker with this index serves from now on."""
        self._serving_since[index] = self._beaten_at[index] = now_s

    def are_all_serving(self) -> bool:
        """Return whether every worker serves."""
        return all(self._serving_since)

    def beat(self, index: int, now_s: float, commit_since_s: float | None) -> None:
        """Record a heartbeat of the worker's loop, and since when a commit of it is under way."""
        self._beaten_at[index] = now_s
        self._commit_since[index] = commit_since_s or 0.0

    def mark_leader(self, index: int, now_s: float) -> None:
        """Record that this worker, and no other, is the leader from now on."""
        for other in range(len(self._leader_since)):
            self._leader_since[other] = now_s if other == index else 0.0

    def silent_s(self, index: int, now_s: float) -> float:
        """Return the seconds for which the loop of a worker that serves has not run; 0 if it does not serve yet."""
        return max(0.0, now_s - self._beaten_at[index]) if self._serving_since[index] else 0.0

    def silences_s(self, now_s: float) -> list[float]:
        """Return `silent_s` of every worker, in order of index."""
        return [self.silent_s(index, now_s) for index in range(len(self._beaten_at))]

    def leader_silent_s(self, now_s: float) -> float:
        """Return `silent_s` of the leader; 0 while there is none."""
        return max(
            (self.silent_s(index, now_s) for index, since_s in enumerate(self._leader_since) if since_s), default=0.0
        )

    def oldest_commit_s(self, now_s: float) -> float:
        """Return the age in seconds of the oldest commit that is under way in any worker; 0 if there is none. A worker
        whose loop is silent does not count: it may have died, and what waits for its lock reports its own commit.
        """
        marks = zip(self._commit_since, self._beaten_at, strict=True)
        return max(
            (now_s - since_s for since_s, beat_s in marks if since_s and now_s - beat_s <= SILENT_S), default=0.0
        )

    def restarts(self) -> list[int]:
        """Return how often each worker was replaced, since the start of the parent."""
        return list(self._restarts)

    def note_death(self, index: int, now_s: float, *, replaced: bool) -> float:
        """Record that a worker died; only the parent calls this. Return for how many seconds it had served."""
        since = self._serving_since[index]
        self._serving_since[index] = self._beaten_at[index] = self._commit_since[index] = 0.0
        self._restarts[index] += replaced
        return now_s - since if since else 0.0


log = structlog.get_logger()

LOOK_S = 1.0
HANG_S = 10.0
"""A loop that has not run for so long hangs."""
_STANDARD_ERROR = 2


class HangWatch:
    """Logs the stack of an event loop that hangs, before the process is replaced and the stack is lost. The loop is
    that of the thread that creates the object. A separate thread checks every second. It needs the GIL, which a call
    into C may hold: LMDB does where it takes a reader slot and the disk does not respond. `faulthandler` needs none: it
    writes the stacks of all threads to standard error, behind a line `Timeout`, once this thread has not run either.
    """

    def __init__(self, world: World, hang_s: float = HANG_S, look_s: float = LOOK_S) -> None:
        self._world, self._hang_s, self._look_s = world, hang_s, look_s
        self._beaten_at_s = world.elapsed_s()
        self._loop = threading.get_ident()
        self._is_over = threading.Event()

    async def run(self) -> None:
        """Run on the loop until cancelled; each hang is logged once, with the stack of the loop."""
        thread = threading.Thread(target=self._look, name="hang watch", daemon=True)
        thread.start()
        try:
            while True:
                self._beaten_at_s = self._world.elapsed_s()
                await trio.sleep(self._look_s)
        finally:
            self._is_over.set()
            thread.join()

    def _look(self) -> None:
        said, armed_at_s, output = False, elapsed_s(), _unblocking(_STANDARD_ERROR)
        while not self._is_over.wait(self._look_s):
            if self._may_arm(armed_at_s):
                with suppress(RuntimeError):  # there is no memory for another thread
                    faulthandler.dump_traceback_later(self._hang_s, file=output)
                armed_at_s = elapsed_s()
            silent_s = self._world.elapsed_s() - self._beaten_at_s
            hangs = silent_s > self._hang_s
            if hangs and not said:
                log.critical("the event loop hangs", seconds=round(silent_s, 1), stack=self._stack())
            said = hangs
        if self._may_arm(armed_at_s):
            faulthandler.cancel_dump_traceback_later()
            if output != _STANDARD_ERROR:
                os.close(output)

    def _may_arm(self, armed_at_s: float) -> bool:
        """Return whether the time of the dump may be set again. That waits, with the GIL, for stacks that are being
        written: not while nobody reads the log.
        """
        return elapsed_s() - armed_at_s < self._hang_s or _takes_output(_STANDARD_ERROR)

    def _stack(self) -> str:
        """Return the stack, innermost first, as lines `file:line function`: a text, as what logs for people expects."""
        frame = sys._current_frames().get(self._loop)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  documented
        return "\n".join(f"{at.filename}:{at.lineno} {at.name}" for at in reversed(traceback.extract_stack(frame)))


def _unblocking(descriptor: int) -> int:
    """Return another descriptor of the same pipe, whose writes never block; the given one if it is no pipe.

    `faulthandler` reads the frames of other threads without the GIL. If its write blocked on a full pipe, the loop
    could go on in between and free those frames, and the process would end by SIGSEGV. What does not fit is lost.
    """
    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # no such file system, or standard error is closed
        pass
    return descriptor


def _takes_output(descriptor: int) -> bool:
    """Return whether a write to the descriptor would not block."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(0))


def notify(state: str) -> None:
    """Send a state of the service, such as `READY=1`, to systemd (sd_notify(3), `Type=notify`) in one datagram. Do
    nothing without NOTIFY_SOCKET. Never raises: a manager that does not listen is no reason to end.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # of the abstract namespace
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
        manager.setblocking(False)
        manager.sendto(state.encode(), address)
