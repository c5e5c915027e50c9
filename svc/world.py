"""The doors to the outside: clock, ids, entropy, threads. Everything that two runs could differ in comes through here.

`World.real()` is the system; the simulation in `tests/support` is a seed. This is the only module that may import
`time`, `secrets`, `random` or `uuid`; a test holds to that.
"""

from __future__ import annotations

import random
import secrets
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from copy import copy
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Protocol, TypeVar
from uuid import UUID

if TYPE_CHECKING:
    from outcome import Outcome  # trio's own

T = TypeVar("T")


BEGIN_S = 0.001
"""How long at most the loop waits for a thread to begin its `Undisturbed` block: less than a commit of another process
takes, for which the thread may have to wait.
"""
PAUSE_S = 0.01
"""The longest time for which the loop is blocked by such a block."""


class Undisturbed:
    """A block of a function on a thread during which the loop is blocked (ADR 74).

    Code that lets go of the interpreter for a moment, many times, would wait each time until a busy loop lets go of it.
    One block, entered once.
    """

    def __init__(self, begin_s: float = BEGIN_S, pause_s: float = PAUSE_S) -> None:
        self._begin_s, self._pause_s = begin_s, pause_s
        self._began, self._ended = threading.Event(), threading.Event()

    def __enter__(self) -> None:
        self._began.set()

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def wait(self) -> None:
        """Block the calling thread until the block has ended, `pause_s` seconds at most; no longer than `begin_s` where
        it has not begun by then.
        """
        if self._began.wait(self._begin_s):
            self._ended.wait(self._pause_s)


class RunSync(Protocol):
    """Run a blocking function away from the loop, start to end on one thread. `undisturbed` is entered by it."""

    def __call__(self, function: Callable[[], T], /, *, undisturbed: Undisturbed | None = None) -> Awaitable[T]:
        """Run the function; return what it returns, and raise what it raises."""
        ...


LONGEST_LEAD_MS = 3_600_000
"""How far an id may be ahead of the clock (decisions 17.1): what is kept by the time of its id is kept that much longer
after a clock that ran ahead.
"""


STEP_MS = 1_000
"""Two readings of one clock differ by less."""


class RequestIds:
    """UUIDv7 (RFC 9562): 48 bits of Unix milliseconds, then a counter, then entropy.

    Ids of one process do not go backwards, also within a millisecond and when the clock does: the 12 bits after the
    version count up from a random start below 2,048 (method 1 of RFC 9562, 6.2), and when they are used up the
    embedded time moves on by a millisecond. A clock that is set back by more than `LONGEST_LEAD_MS` is followed.
    """

    def __init__(self, entropy: Callable[[int], bytes]) -> None:
        self._entropy = entropy
        self._last_ms = -1
        self._counter = 0

    def __call__(self, now_ms: int) -> UUID:
        """Return the next id. `now_ms` is Unix milliseconds; if it went back by an hour at most, the id keeps the
        latest time.
        """
        noise = int.from_bytes(self._entropy(10))
        if now_ms > self._last_ms or now_ms < self._last_ms - LONGEST_LEAD_MS:
            self._last_ms = now_ms
            self._counter = noise >> 69
        else:
            self._counter += 1
            if self._counter > 0xFFF:
                self._last_ms += 1
                self._counter = noise >> 69
        return UUID(
            int=self._last_ms << 80 | 0x7 << 76 | self._counter << 64 | 0b10 << 62 | noise & 0x3FFF_FFFF_FFFF_FFFF,
        )


def worked_s() -> float:
    """Return the seconds of CPU that the calling thread has used, from any start."""
    return time.thread_time()


def elapsed_s() -> float:
    """Return the seconds of a monotonic clock of unknown start, for programs that have no event loop: only differences
    mean anything.
    """
    return time.monotonic()


_of_machine = elapsed_s


class World:
    """What the service may ask of the machine it runs on.

    `now_ms()` is Unix time in milliseconds, read once per request and handed on; in a service it is bounded by a steady
    clock (`dated`), and `wall_ms()` is what the machine says. `elapsed_s()` is the monotonic clock,
    in seconds: only differences mean anything, and waiting is measured by it (decisions 17.1). `request_id(now_ms)` is
    the next UUIDv7. `entropy(n)` is `n` bytes nobody can guess. `run_sync(function)` runs a blocking function on a
    thread. `is_own_address(address)` says whether an address is one of this machine's now.
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        entropy: Callable[[int], bytes],
        run_sync: RunSync,
        is_own_address: Callable[[IPv4Address | IPv6Address], bool] = lambda _: False,
        elapsed_s: Callable[[], float] = elapsed_s,
    ) -> None:
        self.now_ms = self.wall_ms = now_ms
        self.elapsed_s = elapsed_s
        self.worked_s = worked_s if elapsed_s is _of_machine else elapsed_s
        """The CPU of this thread, by which slices of time are measured; where time is virtual, that time."""
        self.entropy = entropy
        self.request_id = RequestIds(entropy)
        self.run_sync = run_sync
        self.is_own_address = is_own_address

    @classmethod
    def real(cls) -> World:
        """Return the machine's own clock, entropy and threads."""
        return cls(wall_clock_ms, secrets.token_bytes, _on_a_thread, is_own_address)

    def wall_time_of(self, at_ms: int) -> int:
        """Return a recent time of `now_ms` as the machine's clock has it, in Unix ms: for what somebody else compares
        with a clock of their own, such as a signature or a one-time code. The two differ for an hour after a large
        step.
        """
        ahead_ms = self.wall_ms() - self.now_ms()
        return at_ms + ahead_ms if abs(ahead_ms) > STEP_MS else at_ms

    def dated(self, now_ms: Callable[[], int]) -> World:
        """Return this world with another `now_ms`; everything else, the generator of ids included, is shared."""
        dated = copy(self)
        dated.now_ms = now_ms
        return dated


# In the order of ASCII.
LETTERS_AND_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def twenty_characters(entropy: Callable[[int], bytes]) -> str:
    """Return 20 random letters and digits (119 bits), which follow the prefix of an id (decisions 1.1)."""
    return _in_base_62(int.from_bytes(entropy(16)), 20)


def visitor_id(entropy: Callable[[int], bytes], at_ms: int) -> str:
    """Return 20 letters and digits: 6 for the second of creation, then 14 random ones (83 bits). Ids created one after
    the other sort in that order, so that their rows share pages (ADR 72).
    """
    second = _in_base_62(max(at_ms, 0) // 1000, 6)[::-1]
    return second + _in_base_62(int.from_bytes(entropy(16)), 14)


def _in_base_62(number: int, length: int) -> str:
    """Return the lowest `length` digits of a number, the lowest first; `length` is even."""
    pairs: list[str] = []
    for _ in range(length // 2):
        number, pair = divmod(number, 62 * 62)
        pairs.append(_PAIRS[pair])
    return "".join(pairs)


_PAIRS = [low + high for high in LETTERS_AND_DIGITS for low in LETTERS_AND_DIGITS]
"""Two digits of every number below 62², the lower one first."""


def wall_clock_ms() -> int:
    """Return the Unix time of this machine in milliseconds."""
    return time.time_ns() // 1_000_000


def is_own_address(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an interface of this machine has the address now.

    To reach such an address the kernel would set out from that very address. Connecting a datagram socket asks for the
    route and sends nothing.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((str(address), _ANY_PORT))
            return ip_address(asking.getsockname()[0]) == address
    except OSError:  # no route, or no such family here
        return False


_ANY_PORT = 9


def numbers_from(seed: int) -> Callable[[], float]:
    """Return what draws numbers from 0 to 1, without 1: for a seed the same ones on every machine and by every version
    of Python, which promises that of no other method of its generator.
    """
    return random.Random(seed).random  # noqa: S311  nothing here has to be hard to guess


def pause(seconds: float) -> None:
    """Block the calling thread: for commands, between the steps of a long job or until another process ends."""
    time.sleep(seconds)


async def _on_a_thread(function: Callable[[], T], /, *, undisturbed: Undisturbed | None = None) -> T:
    import trio  # noqa: PLC0415  commands that have no event loop start faster without it

    if undisturbed is None:
        return await trio.to_thread.run_sync(function)
    task, token = trio.lowlevel.current_task(), trio.lowlevel.current_trio_token()
    # Not by `Outcome`: trio's thread has it in a frame to which the traceback of an exception leads back. That would be
    # a reference cycle, and whatever the traceback refers to would wait for the garbage collector.
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001  raised where it is waited for
            errors.append(error)

    def deliver(_: Outcome[None]) -> None:
        token.run_sync_soon(trio.lowlevel.reschedule, task)

    trio.lowlevel.start_thread_soon(run, deliver)
    undisturbed.wait()
    await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)
    if errors:
        raise errors.pop()
    return results.pop()
