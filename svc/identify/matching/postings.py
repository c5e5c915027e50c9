"""Postings: under which block keys a visit adds its visitor, and whether its record is worth writing.

What may live here: what follows from a record before and after a visit. Whose visit it is, `recognition` decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from svc.identify.matching import blocks
from svc.identify.matching.blocks import (
    BlockKey,
    attribute_keys,
    exact_key,
    network_key,
    same_attribute_keys,
    token_key,
)
from svc.identify.matching.tokens import told_apart

if TYPE_CHECKING:
    from collections.abc import Iterable

    from svc.identify.matching.features import Features
    from svc.identify.matching.visitor import Visitor

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
    same_class = visitor.family == features.family
    keys: list[BlockKey] = []
    is_remembered = visitor.listed and features.exact in visitor.exact_hashes
    if not is_remembered:
        keys.append(exact_key(features.exact))
    is_comparable = visitor.listed and same_class and visitor.collector == features.collector
    if not is_comparable or features.values != visitor.values:  # most return as they were
        standing = same_attribute_keys(features.values, visitor.values) if is_comparable else ()
        covered = attribute_keys(features.family, features.collector, features.values)
        keys += [key for key in covered if key[0] not in standing]
    if not same_class or features.near_network not in dict(visitor.networks):
        keys.append(network_key(features.family, features.near_network))
    keys += [token_key(key) for key in features.keys if visitor.token(key) is None and after.token(key) is not None]
    return keys


def postings_of(keys: Iterable[BlockKey], weight: float, *, listed: bool) -> tuple[tuple[BlockKey, float], ...]:
    """Return the postings under those keys in whose blocks a visitor may stand, who is `listed` or not."""
    return tuple((key, weight) for key in keys if listed or key[0] in _KINDS_OF_UNLISTED)
