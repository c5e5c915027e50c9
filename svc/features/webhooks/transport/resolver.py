"""Names to addresses by the system's resolver, such that names that never answer cost nobody else anything.

What may live here: the threads that look names up. What the addresses are good for is judged elsewhere.
"""

from __future__ import annotations

import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from svc.kernel.net.addresses import read_address

LOOKUP_LIMIT_S = 3
"""For one name."""
POOL_THREADS = 32
"""Names that are looked up at once, in each of the two pools."""
REMEMBERED = 4096
"""Names of which it is known that they answered last time."""


Resolver = Callable[[str], Awaitable[tuple[str, ...]]]
"""All addresses of a host, IPv4 and IPv6, as text and in the order to try them; none when it does not resolve. Never
raises for a name."""


def system_lookup(host: str) -> tuple[str, ...]:
    """Return the addresses that the system knows of a name, each once: hosts file, DNS, and old spellings of IPv4
    addresses; none for a name that does not resolve. Blocks the thread.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


class _Question:
    """A look-up shared by all who ask meanwhile."""

    def __init__(self) -> None:
        self.ended = trio.Event()
        self.found: tuple[str, ...] | None = None
        """`None` where its caller was cancelled: the next one asks."""


class SystemResolver:
    """Looks names up on threads of its own, for at most `limit_s` each. An address is its own answer, without a thread.

    Callers that ask for a name while it is looked up share that look-up: its answer arrives after each of them has
    asked. No answer is kept for later callers.

    A thread cannot be stopped: a name whose server never answers holds one until the system gives up, 10 to 30 s
    later. So names that answered last time have a pool of their own, which those others cannot fill; and a name whose
    thread is still out after its time was up is not asked again before that thread is back.
    """

    def __init__(
        self,
        look_up: Callable[[str], tuple[str, ...]] = system_lookup,
        *,
        limit_s: float = LOOKUP_LIMIT_S,
        pool_threads: int = POOL_THREADS,
    ) -> None:
        self._look_up = look_up
        self._limit_s = limit_s
        self._proven = trio.CapacityLimiter(pool_threads)
        self._unproven = trio.CapacityLimiter(pool_threads)
        self._answered: OrderedDict[str, None] = OrderedDict()
        self._out: dict[object, str] = {}
        self._overdue: set[object] = set()
        self._asking: dict[str, _Question] = {}

    async def __call__(self, host: str, /) -> tuple[str, ...]:
        """Look a name up; empty when it does not resolve or takes longer than `limit_s`."""
        if host[-1:].isdigit() or ":" in host:  # else no address, and most are none
            address = read_address(host)
            if address is not None:
                return (str(address),)
        while (asked := self._asking.get(host)) is not None:
            await asked.ended.wait()
            if asked.found is not None:
                return asked.found
        question = self._asking[host] = _Question()
        try:
            question.found = await self._ask(host)
        finally:
            del self._asking[host]
            question.ended.set()
        return question.found

    async def _ask(self, host: str) -> tuple[str, ...]:
        self._overdue.intersection_update(self._out)
        if any(self._out.get(lookup) == host for lookup in self._overdue):
            return ()
        pool = self._proven if host in self._answered else self._unproven
        lookup = object()
        found: tuple[str, ...] = ()
        with trio.move_on_after(self._limit_s) as scope:
            found = await trio.to_thread.run_sync(
                partial(self._run, lookup, host), abandon_on_cancel=True, limiter=pool
            )
        if scope.cancelled_caught and lookup in self._out:
            self._overdue.add(lookup)
        self._note(host, answered=bool(found))
        return found

    def _run(self, lookup: object, host: str) -> tuple[str, ...]:
        """Look a name up, on the thread. A look-up nobody waits for any more is left before it begins."""
        self._out[lookup] = host
        try:
            return self._look_up(host)
        finally:
            del self._out[lookup]

    def _note(self, host: str, *, answered: bool) -> None:
        self._answered.pop(host, None)
        if answered:
            self._answered[host] = None
            if len(self._answered) > REMEMBERED:
                self._answered.popitem(last=False)
