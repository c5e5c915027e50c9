"""Keys of browsers that are revoked: what first signed in a window of time proves nothing any more (decisions 18.2).

What may live here: finding such keys and revoking them, a bounded number of visitors at a time. What a revoked key is
worth decides `svc.identify.matching`. It is an admin's answer to a script that ran on the customer's pages: such a
script may have planted a key of its own, or signed a renewal.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import msgspec

from svc.identify.matching import Visitor
from svc.identify.matching import tokens as of_tokens
from svc.identify.matching.tokens import Token
from svc.identify.tables import VISITORS
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import items_of_step

MAX_READ = items_of_step(2)
"""Visitors that one step reads, and changes."""


class Signed(NamedTuple):
    """When keys first signed: from `from_ms` on, and before `to_ms`, in Unix milliseconds."""

    from_ms: int
    to_ms: int

    def has(self, token: Token) -> bool:
        """Return whether the key of this token may prove something, and first signed then. Its second counts whole."""
        if not token.key or token.has_no_proof:
            return False
        return self.from_ms < 1000 * (token.key_s + 1) and 1000 * token.key_s < self.to_ms


class Found(NamedTuple):
    """What one step found."""

    visitors: tuple[int, ...]
    """Numbers of visitors with such keys."""
    keys: int
    after: int | None
    """The number after which the next step begins; `None` = there are no more visitors."""


def find_keys(snapshot: Snapshot, number: int, signed: Signed, after: int = 0) -> Found:
    """Look through at most `MAX_READ` visitors of the organization, from the number `after` on."""
    rows = list(islice(snapshot.scan(VISITORS, number, start=(number, after + 1)), MAX_READ))
    keys = {key[1]: sum(map(signed.has, visitor.tokens)) for key, visitor in rows}
    last = rows[-1][0][1] if len(rows) == MAX_READ else None
    return Found(tuple(one for one, count in keys.items() if count), sum(keys.values()), last)


def revoke_keys(transaction: Transaction, number: int, signed: Signed, visitors: Iterable[int], now_ms: int) -> int:
    """Revoke such keys of at most `MAX_READ` visitors, by their numbers; return how many were revoked. The next
    report that one of them signs is unproven, and its browser is asked to renew it.
    """
    revoked = 0
    for one in islice(visitors, MAX_READ):
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
