"""What must be true of the tokens of visitors: each leads to those that have it, and is one browser's.

Memory is bounded by one visitor; of a token as many records are read as its block lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from svc.identify.matching import EMPTY_BLOCK, Visitor
from svc.identify.matching.blocks import BLOCK_LENGTH, token_key
from svc.identify.matching.tokens import DEVICE, IN_DOUBT, RENEWED, STRANGERS, TOKENS, UNKNOWN_ORIGIN, Token
from svc.identify.tables import BLOCKS, ERASURES, VISITORS
from svc.kernel.store.snapshot import Snapshot

_PROBATIONS: Final = frozenset((*range(IN_DOUBT + 1), RENEWED, STRANGERS))


def token_faults(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Yield a sentence for each fault in the tokens of an organization's visitors."""
    for (_, visitor_number), visitor in snapshot.scan(VISITORS, number):
        if snapshot.has(ERASURES, number, visitor.visitor_id.encode()):
            continue  # an erasure takes it out of its blocks first
        name = f"visitor {visitor.visitor_id}"
        for fault in _kept(visitor):
            yield f"{name} has {fault}"
        for token in visitor.tokens:
            if token.probation == STRANGERS:
                continue  # the token belongs to another visitor, or will
            block = snapshot.get(BLOCKS, number, token_key(token.hash)) or EMPTY_BLOCK
            if visitor_number not in block.numbers and len(block.numbers) < BLOCK_LENGTH:
                yield f"{name} is not found by a token that it has"
            for other in block.numbers:
                if other < visitor_number and _is_proven_of(snapshot.get(VISITORS, number, other), visitor, token):
                    yield f"{name} and visitor {other} of organization {number} have a token of one browser"


def _kept(visitor: Visitor) -> Iterator[str]:
    """Yield the faults that the visitor's record shows without any other row."""
    if len(visitor.tokens) > TOKENS:
        yield f"{len(visitor.tokens)} tokens, of which {TOKENS} are kept"
    if any(count > 1 for count in Counter(token.hash for token in visitor.tokens).values()):
        yield "a token twice"
    if any(token.probation not in _PROBATIONS for token in visitor.tokens):
        yield "a token on probation for longer than any is"
    devices = [token for token in visitor.tokens if token.origin == DEVICE]
    if len(devices) > 1:
        yield "two device ids"
    if any(token.probation or token.private or token.key for token in devices):
        yield "a device id that is treated as a token"


def _is_proven_of(other: Visitor | None, visitor: Visitor, token: Token) -> bool:
    """Return whether both visitors have the token as proof of who they are. It is none beside a device id, or if an
    earlier version stored it.
    """
    theirs = None if other is None or other.device or visitor.device else other.token(token.hash)
    return theirs is not None and all(one.probation == 0 and one.origin != UNKNOWN_ORIGIN for one in (theirs, token))


RULES = {"tokens": token_faults}
