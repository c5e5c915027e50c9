"""The turnstile: how many requests begin in one pass of the loop, and whose is next.

A pass of the loop lasts as long as everything that is ready to run in it, and an identification takes some ten passes.
If whoever sends begins at once, a flood of cheap requests makes every pass long. So few requests begin in a pass, of
each organization in turn; those that nobody is known to have sent share the turns of their address.

Owns the queue of requests that wait to begin, and which keys were valid lately. Knowing a key here gives it a turn and
nothing else: every request is authenticated in its own right.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable
from hashlib import blake2b

import trio

from svc.domain.turns import Turns

AT_ONCE = 8
"""Requests that begin in one pass."""
KEYS_REMEMBERED = 4_096
HEAD_BYTES = 16_384
_API_KEY = re.compile(rb"\r\nx-api-key:[ \t]*([!-~]{1,256})", re.IGNORECASE)


class _Ticket:
    """One request that waits."""

    __slots__ = ("called", "is_gone")

    def __init__(self) -> None:
        self.called = trio.Event()
        self.is_gone = False


class KnownKeys:
    """Keys that were valid lately, by a digest of their text, and whose they are."""

    def __init__(self) -> None:
        self._organizations: OrderedDict[bytes, int] = OrderedDict()

    def note(self, api_key: str, organization: int) -> None:
        """The key has just been found valid."""
        digest = _digest(api_key.encode())
        self._organizations[digest] = organization
        self._organizations.move_to_end(digest)
        if len(self._organizations) > KEYS_REMEMBERED:
            self._organizations.popitem(last=False)

    def owner(self, data: bytes | bytearray, address: str) -> Hashable:
        """Whose turn a request takes that begins with these bytes: an organization's number, else the address."""
        found = _API_KEY.search(data, 0, HEAD_BYTES)
        return address if found is None else self._organizations.get(_digest(found[1]), address)


class Turnstile:
    """One for each edge. `run` must run as long as anybody may wait."""

    def __init__(self) -> None:
        self._turns: Turns[Hashable, _Ticket] = Turns()
        self._left = AT_ONCE
        self._used = trio.Event()

    async def enter(self, owner: Hashable) -> None:
        """Returns when the owner's next request may begin: at once, where nobody waits and this pass has room."""
        if self._left and not self._turns:
            self._left -= 1
            self._used.set()
            return
        ticket = _Ticket()
        self._turns.add(owner, ticket)
        self._used.set()
        try:
            await ticket.called.wait()
        except trio.Cancelled:
            ticket.is_gone = True
            raise

    async def run(self) -> None:
        """Until cancelled: let the next ones in, once in each pass."""
        while True:
            if not self._turns and self._left == AT_ONCE:
                self._used = trio.Event()
                await self._used.wait()
            await trio.lowlevel.checkpoint()
            self._left = AT_ONCE
            while self._left and self._turns:
                ticket = self._turns.take()
                if not ticket.is_gone:
                    ticket.called.set()
                    self._left -= 1


def _digest(api_key: bytes) -> bytes:
    return blake2b(api_key, digest_size=16).digest()
