"""Keys of browsers that are revoked: what first signed in a window of time proves nothing any more (decisions 18.2).

What may live here: finding such keys, and revoking them a bounded number of visitors at a time. What a revoked key is
worth decides `svc.identify.matching`. It is an admin's answer to a script that ran on the customer's pages: such a
script may have planted a key of its own, or signed a renewal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import msgspec

from svc.identify.matching import Visitor
from svc.identify.matching import tokens as of_tokens
from svc.identify.matching.tokens import Token
from svc.identify.tables import VISITORS
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import EVENT_ROWS, items_of_step

REVOKED_AT_ONCE = items_of_step(EVENT_ROWS)
"""Visitors that one commit changes. Each is one row, of which some take as long as the rows of an event."""


class Signed(NamedTuple):
    """When keys first signed: from `from_ms` on, and before `to_ms`, in Unix milliseconds."""

    from_ms: int
    to_ms: int

    def has(self, token: Token) -> bool:
        """Return whether the key of this token may prove something, and first signed then. Its second counts whole."""
        if not token.key or token.has_no_proof:
            return False
        return self.from_ms < 1000 * (token.key_s + 1) and 1000 * token.key_s < self.to_ms


def keys_behind(
    snapshot: Snapshot, after: int, count: int, *, number: int, signed: Signed
) -> Iterator[tuple[int, int]]:
    """Yield (number, how many such keys it has) of up to `count` visitors of the organization, in the order of their
    numbers, behind the number `after`.
    """
    for (_, visitor_number), visitor in islice(snapshot.scan(VISITORS, number, start=(number, after + 1)), count):
        yield visitor_number, sum(map(signed.has, visitor.tokens))


def revoke_keys(transaction: Transaction, number: int, signed: Signed, visitors: Iterable[int], now_ms: int) -> int:
    """Revoke such keys of at most `REVOKED_AT_ONCE` visitors, by their numbers; return how many were revoked. The next
    report that one of them signs is unproven, and its browser is asked to renew it.
    """
    revoked = 0
    for one in islice(visitors, REVOKED_AT_ONCE):
        visitor = transaction.get(VISITORS, number, one)
        if visitor is None:
            continue  # it was erased meanwhile
        keys = sum(map(signed.has, visitor.tokens))
        if keys:
            transaction.put(VISITORS, (number, one), _without_keys(visitor, signed, now_ms))
            revoked += keys
    return revoked


def _without_keys(visitor: Visitor, signed: Signed, now_ms: int) -> Visitor:
    tokens = tuple(of_tokens.revoked(token, now_ms // 1000) if signed.has(token) else token for token in visitor.tokens)
    return msgspec.structs.replace(visitor, tokens=tokens)
