"""The fair queue: how many requests begin in one pass of the loop, and whose is next.

A pass of the loop lasts as long as everything that is ready to run in it, and an identification takes some eight
passes. If every request began at once, a flood of cheap requests would make every pass long. So while several owners
send, a round begins in every third pass: one request of each organization that has any, and one of all addresses that
have. While one owner sends alone, its requests begin at once: they are handled together and committed together.

A long response is written in pieces, each of which takes a turn as a request does.

The owner of a request is the organization of its key, if the key was valid lately, and else its address. Anybody can
have many addresses: they take turns, so that together they delay an organization as little as one.

Owns the queues of requests that wait to begin, and which keys were valid lately. Knowing a key here gives it a turn and
nothing else: every request is authenticated in its own right.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable
from hashlib import blake2b
from math import inf

import trio

from svc.kernel.limits.turns import Turns

PASSES = 3
"""A round begins once in this number of passes."""
CONTENDED_FOR_S = 1.0
"""How long requests take turns after two owners sent within this time."""
KEYS_REMEMBERED = 4_096
HEAD_BYTES = 16_384
_API_KEY = re.compile(rb"\r\nx-api-key:[ \t]*([!-~]{1,256})", re.IGNORECASE)


class _Ticket:
    """A request that waits in the queue."""

    __slots__ = ("called", "is_gone")

    def __init__(self) -> None:
        self.called = trio.Event()
        self.is_gone = False


class KnownKeys:
    """The organizations of the latest `KEYS_REMEMBERED` valid keys, by a digest of the key's text."""

    def __init__(self) -> None:
        self._organizations: OrderedDict[bytes, int] = OrderedDict()

    def note(self, api_key: str, organization: int) -> None:
        """Remember a key that has just been authenticated, with its organization's number."""
        digest = _digest(api_key.encode())
        self._organizations[digest] = organization
        self._organizations.move_to_end(digest)
        if len(self._organizations) > KEYS_REMEMBERED:
            self._organizations.popitem(last=False)

    def owner(self, data: bytes | bytearray, address: str) -> Hashable:
        """Return the owner whose turn a request takes, given its first bytes: the organization's number if `HEAD_BYTES`
        contain a known key, else the address.
        """
        found = _API_KEY.search(data, 0, HEAD_BYTES)
        return address if found is None else self._organizations.get(_digest(found[1]), address)


class FairQueue:
    """Lets requests of one edge begin in turn. `run` must run as long as anybody may wait in `enter`."""

    def __init__(self) -> None:
        self._organizations: Turns[Hashable, _Ticket] = Turns()
        self._addresses: Turns[Hashable, _Ticket] = Turns()
        self._is_free = True
        """Whether nobody has begun since the last round."""
        self._used = trio.Event()
        self._last_owner: Hashable = None
        self._last_at = self._contended_until = -inf

    async def enter(self, owner: Hashable) -> None:
        """Wait until the owner's next request may begin: at once while one owner sends alone. An address is a text, an
        organization any other type.
        """
        if not self._is_contended(owner):
            return
        if self._is_free and not self._anybody_waits():
            self._is_free = False
            self._used.set()
            return
        ticket = _Ticket()
        (self._addresses if isinstance(owner, str) else self._organizations).add(owner, ticket)
        self._used.set()
        try:
            await ticket.called.wait()
        except trio.Cancelled:
            ticket.is_gone = True
            raise

    async def run(self) -> None:
        """Let a round of waiting requests begin in one of every `PASSES` passes of the loop, until cancelled."""
        while True:
            if self._is_free and not self._anybody_waits():
                self._used = trio.Event()
                await self._used.wait()
            for _ in range(PASSES):
                await trio.lowlevel.checkpoint()
            self._is_free = not self._call_round()

    def _is_contended(self, owner: Hashable) -> bool:
        now = trio.current_time()
        if owner != self._last_owner and now - self._last_at < CONTENDED_FOR_S:
            self._contended_until = now + CONTENDED_FOR_S
        self._last_owner, self._last_at = owner, now
        return now < self._contended_until

    def _anybody_waits(self) -> bool:
        return bool(self._organizations or self._addresses)

    def _call_round(self) -> bool:
        """Let the next request of each organization begin, and one of all addresses; return whether there was any."""
        called = [_call_next(self._organizations) for _ in range(self._organizations.owners)]
        return any([*called, _call_next(self._addresses)])


def _call_next(turns: Turns[Hashable, _Ticket]) -> bool:
    """Call the next request that has not gone; return whether there was one."""
    while turns:
        ticket = turns.take()
        if not ticket.is_gone:
            ticket.called.set()
            return True
    return False


def _digest(api_key: bytes) -> bytes:
    return blake2b(api_key, digest_size=16).digest()
