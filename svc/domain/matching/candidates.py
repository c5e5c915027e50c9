"""Candidates: which blocks and records are read to find the visitor of a report.

What may live here: what is read, and in which order. What is made of it is `recognition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from svc.domain.matching import blocks, parameters
from svc.domain.matching.blocks import EMPTY_BLOCK, Block, BlockKey, block_keys, token_key

if TYPE_CHECKING:
    from svc.domain.matching.features import Features
    from svc.domain.matching.visitor import Visitor

_ALWAYS_LISTED: Final = (blocks.EXACT, blocks.NETWORK)
"""Kinds whose newest visitors are worth reading however long the block is."""


class Index(Protocol):
    """What the store offers inside a transaction, bound to one organization. What was read once costs nothing again."""

    def block(self, key: BlockKey) -> Block:
        """The block under this key; an empty one when there is none."""
        ...

    def visitor(self, number: int) -> Visitor | None:
        """The record of a visitor; `None` for a number that is not taken, or whose visitor was deleted."""
        ...


def likely_visitors(features: Features, read: Mapping[BlockKey, Block]) -> list[int]:
    """Numbers of the visitors whose records `match_visitor` will most likely read, the likeliest first, given every
    block of a report. It may read others.
    """
    for key in features.keys:
        known = read.get(token_key(key))
        if known is not None and known.numbers:
            return [known.numbers[0]]
    found = {key[0]: block for key, block in read.items() if key[0] != blocks.TOKEN}
    exact = found.get(blocks.EXACT, EMPTY_BLOCK).numbers
    if len(exact) == 1 and exact[0] in found.get(blocks.NETWORK, EMPTY_BLOCK).numbers:
        return [exact[0]]
    return likely_numbers(found, parameters.RECORDS_READ - 1)


def read_blocks(index: Index, features: Features) -> dict[int, Block]:
    """The blocks of a report by kind, without that of the token, which proves and is not compared."""
    return {key[0]: index.block(key) for key in block_keys(features) if key[0] != blocks.TOKEN}


def device_counts(read: dict[int, Block]) -> dict[int, float]:
    """By kind, how many devices a block stands for."""
    return {kind: block.count for kind, block in read.items()}


def read_records(index: Index, numbers: Iterable[int]) -> list[tuple[int, Visitor]]:
    """(number, record) of these visitors, in their order, without those that were deleted."""
    return [(number, visitor) for number in numbers if (visitor := index.visitor(number)) is not None]


def likely_numbers(read: dict[int, Block], most: int) -> list[int]:
    """Numbers of the visitors that stand in most of these blocks, then in the order in which blocks list them; at most
    so many.

    A block of more devices than it lists says that its values are common; it is counted but not searched. The few
    devices of the report's network go before others, so that no flood of copies from elsewhere crowds out its owner.
    """
    votes: dict[int, int] = {}
    for kind, block in read.items():
        is_whole = block.count <= parameters.BLOCK_LENGTH
        if is_whole or kind in _ALWAYS_LISTED:
            weight = parameters.NETWORK_VOTES if is_whole and kind == blocks.NETWORK else 1
            for number in block.numbers:
                votes[number] = votes.get(number, 0) + weight
    bar = max(votes.values(), default=0) - parameters.VOTES_WITHIN
    numbers = [number for number, counted in votes.items() if counted >= bar]
    if len(numbers) > most:
        numbers.sort(key=votes.__getitem__, reverse=True)  # stable: ties stay in order
    return numbers[:most]
