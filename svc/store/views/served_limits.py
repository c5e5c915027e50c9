"""The limits that the service last ran with, kept in the store for the commands beside it.

A command may run without the service's settings: what it would say of the store's capacity would be that of defaults.
`META` holds whole numbers alone, so the share of one organization is kept in millionths.
"""

from __future__ import annotations

from typing import NamedTuple

from svc.store.schema.tables import META
from svc.store.snapshot import Snapshot, Transaction

_CAPACITY, _SHARE = "served_capacity_bytes", "served_share_millionths"


class ServedLimits(NamedTuple):
    """The limits from which one organization's share of the store follows."""

    capacity_bytes: int
    """How large the store could become when the service started: `Store.capacity_bytes`."""
    store_share: float
    """The setting."""


def served_limits(snapshot: Snapshot) -> ServedLimits | None:
    """The limits of the last start; `None` before the first one."""
    capacity_bytes, share = snapshot.get(META, _CAPACITY), snapshot.get(META, _SHARE)
    return None if capacity_bytes is None or share is None else ServedLimits(capacity_bytes, share / 1e6)


def record_limits(transaction: Transaction, limits: ServedLimits) -> None:
    """Store the limits of a service that starts; writes nothing where they are stored already."""
    if served_limits(transaction) != limits:
        transaction.put(META, (_CAPACITY,), limits.capacity_bytes)
        transaction.put(META, (_SHARE,), round(limits.store_share * 1e6))
