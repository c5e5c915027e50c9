"""Names to addresses by the system's resolver, such that names that never answer cost nobody else anything.

What may live here: the threads that look names up. What the addresses are good for is judged elsewhere.
"""

from __future__ import annotations

import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from math import ceil
from typing import cast
from weakref import WeakValueDictionary

import trio

from svc.kernel.net.addresses import read_address

LOOKUP_LIMIT_S = 3
"""For one name."""
POOL_THREADS = 32
"""Names that are looked up at once, in each of the two pools."""
SHARES = 4
"""Of a pool. An organization has one, however many names it has that never answer."""
REMEMBERED = 4096
"""Names of which it is known that they answered last time."""


Resolver = Callable[[str, int], Awaitable[tuple[str, ...]]]
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


class _Share:
    """An organization's share of a pool: what `trio.to_thread` asks of a limiter."""

    def __init__(self, threads: int, pool: trio.CapacityLimiter) -> None:
        self._own, self._pool = trio.CapacityLimiter(threads), pool

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        """Wait for a thread of the share, then for one of the pool."""
        await self._own.acquire_on_behalf_of(borrower)
        try:
            await self._pool.acquire_on_behalf_of(borrower)
        except trio.Cancelled:
            self._own.release_on_behalf_of(borrower)
            raise

    def release_on_behalf_of(self, borrower: object) -> None:
        """Give the thread back, which may be long after its caller has left."""
        self._pool.release_on_behalf_of(borrower)
        self._own.release_on_behalf_of(borrower)


class _Pool:
    """Threads, of which each organization may take its share."""

    def __init__(self, threads: int) -> None:
        self._all, self._share = trio.CapacityLimiter(threads), ceil(threads / SHARES)
        self._shares: WeakValueDictionary[int, _Share] = WeakValueDictionary()
        """Those that are in use: a look-up keeps its share until its thread is back."""

    def share_of(self, organization: int) -> trio.CapacityLimiter:
        """Return what limits a look-up for this organization."""
        share = self._shares.get(organization)
        if share is None:
            share = self._shares[organization] = _Share(self._share, self._all)
        return cast("trio.CapacityLimiter", share)  # `trio.to_thread` takes whatever has the two methods


class _Question:
    """A look-up shared by all who ask meanwhile."""

    def __init__(self) -> None:
        self.ended = trio.Event()
        self.found: tuple[str, ...] | None = None
        """`None` where its caller was cancelled: the next one asks."""


class SystemResolver:
    """Looks names up on threads of its own, for at most `limit_s` each. An address is its own answer, without a thread.

    Callers that ask for a name, for one organization, while it is looked up share that look-up: its answer arrives
    after each of them has asked. No answer is kept for later callers.

    A thread cannot be stopped: a name whose server never answers holds one until the system gives up, 10 to 30 s
    later. So names that answered last time have a pool of their own, which those others cannot fill; a name whose
    thread is still out after its time was up is not asked again before that thread is back; and an organization has a
    share of each pool, since a domain has any number of names that answer once.
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
        self._proven = _Pool(pool_threads)
        self._unproven = _Pool(pool_threads)
        self._answered: OrderedDict[str, None] = OrderedDict()
        self._out: dict[object, str] = {}
        self._overdue: set[object] = set()
        self._asking: dict[tuple[str, int], _Question] = {}
        """By name and the organization for which it is asked: none waits in the queue of another one."""

    async def __call__(self, host: str, organization: int, /) -> tuple[str, ...]:
        """Look a name up for an organization (its number); empty when it does not resolve or takes longer than
        `limit_s`.
        """
        if host[-1:].isdigit() or ":" in host:  # else no address, and most are none
            address = read_address(host)
            if address is not None:
                return (str(address),)
        place = host, organization
        while (asked := self._asking.get(place)) is not None:
            await asked.ended.wait()
            if asked.found is not None:
                return asked.found
        question = self._asking[place] = _Question()
        try:
            question.found = await self._ask(host, organization)
        finally:
            del self._asking[place]
            question.ended.set()
        return question.found

    async def _ask(self, host: str, organization: int) -> tuple[str, ...]:
        self._overdue.intersection_update(self._out)
        if any(self._out.get(lookup) == host for lookup in self._overdue):
            return ()
        pool = self._proven if host in self._answered else self._unproven
        lookup = object()
        found: tuple[str, ...] = ()
        with trio.move_on_after(self._limit_s) as scope:
            found = await trio.to_thread.run_sync(
                partial(self._run, lookup, host), abandon_on_cancel=True, limiter=pool.share_of(organization)
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
