"""Postings: under which block keys a visit adds its visitor, and whether its record is worth writing.

What may live here: what follows from a record before and after a visit. Whose visit it is, `recognition` decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from svc.domain.matching import blocks
from svc.domain.matching.blocks import BlockKey, block_keys, token_key
from svc.domain.matching.tokens import told_apart

if TYPE_CHECKING:
    from collections.abc import Iterable

    from svc.domain.matching.features import Features
    from svc.domain.matching.visitor import Visitor

_KINDS_OF_UNLISTED: Final = (blocks.NETWORK, blocks.TOKEN)
"""Kinds of blocks in which a visitor stands that is not `listed`."""


def differs(after: Visitor, before: Visitor) -> bool:
    """Return whether more changed than the times and counts of visits."""
    return (
        after.values != before.values
        or told_apart(after.tokens, before.tokens)
        or after.networks != before.networks
        or after.addresses != before.addresses
        or after.exact_hashes != before.exact_hashes
        or after.browser_version != before.browser_version
        or after.os_release != before.os_release
        or after.family != before.family
        or after.collector != before.collector
        or after.listed != before.listed
    )


def keys_to_add(features: Features, visitor: Visitor, after: Visitor) -> list[BlockKey]:
    """Return the keys of the report under which this visitor does not stand yet, as far as its record tells: `visitor`
    is the one before this visit. Of token and device id those that the record has `after` it.
    """
    standing: set[int] = set()
    same_class = visitor.family == features.family
    if visitor.listed:
        if features.exact in visitor.exact_hashes:
            standing.add(blocks.EXACT)
        if same_class and visitor.collector == features.collector:
            standing |= blocks.same_attribute_keys(features.values, visitor.values)
    if same_class and features.near_network in dict(visitor.networks):
        standing.add(blocks.NETWORK)
    known = [token_key(key) for key in features.keys if visitor.token(key) or after.token(key) is None]
    return [key for key in block_keys(features) if key[0] not in standing and key not in known]


def postings_of(keys: Iterable[BlockKey], weight: float, *, listed: bool) -> tuple[tuple[BlockKey, float], ...]:
    """Return the postings under those keys in whose blocks a visitor may stand, who is `listed` or not."""
    return tuple((key, weight) for key in keys if listed or key[0] in _KINDS_OF_UNLISTED)
