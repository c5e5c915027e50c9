"""How many bytes of bodies that are still arriving may be in memory (decisions 4).

What may live here: the count, for all and for each client. Who receives bodies is `svc/http/exchange.py`.
"""

from __future__ import annotations

from collections import Counter

CLIENT_SHARE = 0.25
"""What one client may have of it: an address, or the /64 of an IPv6 address."""


class BodyBudget:
    """Bytes of bodies in memory: `most_bytes` of all clients together, and a share of that of each."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held: Counter[str] = Counter()
        self.held_bytes = 0

    def take(self, client: str, size: int) -> bool:
        """Count so many more bytes of a client; false where there is no space for them, and nothing is counted."""
        own = self._held[client] + size
        if self.held_bytes + size > self._most_bytes or own > CLIENT_SHARE * self._most_bytes:
            return False
        self._held[client] = own
        self.held_bytes += size
        return True

    def release(self, client: str, size: int) -> None:
        """Bytes of a client that are not held any more."""
        self.held_bytes -= size
        self._held[client] -= size
        if not self._held[client]:
            del self._held[client]
