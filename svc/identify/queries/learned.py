"""The rows of what matching has learned: which belong to a scope, and how one scope starts from another.

Production learns from production alone. Other environments start from what production knew, and keep their own: tests
and anybody with a development key can then not wear down what production recognizes.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

import msgspec

from svc.identify.matching import Statistics
from svc.identify.tables import STATISTICS
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.fields import Environment

SHARED = 0
"""In the place of a class: the row that all classes share."""
PRODUCTION, OTHERS = range(2)


def scope_of(environment: Environment) -> int:
    """Return the scope of the statistics of this environment: `PRODUCTION` or `OTHERS`."""
    return PRODUCTION if environment == "production" else OTHERS


def load_statistics(snapshot: Snapshot, organization: int, scope: int) -> Statistics:
    """Return the statistics of a scope, no class loaded. Without a row it starts from production's."""
    own = snapshot.get(STATISTICS, organization, scope, SHARED)
    if own is not None or scope == PRODUCTION:
        return Statistics(own)
    return Statistics(snapshot.get(STATISTICS, organization, PRODUCTION, SHARED), of_another_scope=True)


def class_row(snapshot: Snapshot, organization: int, scope: int, family: int, known: Statistics) -> bytes | None:
    """Return the row of a class: of `scope` if its statistics, `known`, have it, else of production, or `None`."""
    if not known.has_own(family):
        if scope == PRODUCTION or not load_statistics(snapshot, organization, PRODUCTION).has_own(family):
            return None
        scope = PRODUCTION
    return snapshot.get(STATISTICS, organization, scope, family)


def load_class(snapshot: Snapshot, organization: int, scope: int, family: int, into: Statistics) -> None:
    """Load a class of devices into the statistics of its scope; do nothing if it has no row."""
    raw = class_row(snapshot, organization, scope, family, into)
    if raw is not None:
        into.load(family, raw)


def store_statistics(
    transaction: Transaction,
    organization: int,
    scope: int,
    statistics: Statistics,
    changed: Iterable[int],
    given_up: Iterable[int],
) -> None:
    """Write the shared row and those of the classes `changed`, and delete those of the classes `given_up`."""
    transaction.put(STATISTICS, (organization, scope, SHARED), statistics.shared_bytes())
    for family in changed:
        transaction.put(STATISTICS, (organization, scope, family), statistics.class_bytes(family))
    for family in given_up:
        transaction.delete(STATISTICS, organization, scope, family)


def delete_corrupt(transaction: Transaction, organization: int) -> int:
    """Delete an organization's unreadable rows and return their number; what they held is learned again."""
    stem = STATISTICS.key.prefix(organization)
    corrupt: list[tuple[Any, ...]] = []
    for key, value in takewhile(lambda row: row[0].startswith(stem), transaction.unchecked(STATISTICS, stem)):
        parts = STATISTICS.key.unpack(key)
        try:
            _try_row(parts[-1], STATISTICS.decode(key, value))
        except (CorruptionError, msgspec.DecodeError):
            corrupt.append(parts)
    for parts in corrupt:
        transaction.delete(STATISTICS, *parts)
    return len(corrupt)


def _try_row(family: int, raw: bytes) -> None:
    """Decode a row. Raises `msgspec.DecodeError`."""
    if family == SHARED:
        Statistics(raw)
    else:
        Statistics().load(family, raw)
