"""The region of a store, kept at its first use: a server of another region refuses every key in it (decisions 2.11).

`META` holds numbers alone, so the region is part of a key there: `region/us`.
"""

from __future__ import annotations

from svc.domain.errors import OperatorError
from svc.store.schema.tables import KEYS, META
from svc.store.snapshot import Snapshot, Transaction

_PREFIX = "region/"


class WrongRegionError(OperatorError):
    """The store belongs to another region than the server's."""


def region_of(snapshot: Snapshot) -> str | None:
    """The region that the store belongs to; `None` before the first use."""
    regions = [name.removeprefix(_PREFIX) for (name,), _ in snapshot.scan(META) if name.startswith(_PREFIX)]
    return regions[0] if regions else None


def claim_region(transaction: Transaction, region: str) -> None:
    """Keep the region at the first use of a store, and refuse any other from then on.

    A store without an active key of its region takes another one: nobody is refused by that. Raises
    `WrongRegionError`.
    """
    known = region_of(transaction)
    if known == region:
        return
    if known is not None:
        if known in _active_regions(transaction):
            raise WrongRegionError(
                f"the store has keys of region {known!r} and this program runs with region {region!r}, which refuses "
                f"all of them: set region = {known!r} (SVC_REGION={known}), or name another --data"
            )
        transaction.delete(META, _PREFIX + known)
    transaction.put(META, (_PREFIX + region,), 1)


def derive_region(transaction: Transaction) -> None:
    """Keep the region of a store that was made before regions were kept: that of its active keys, if all have one.

    Keys of several regions say nothing about the server; then the next use decides.
    """
    regions = _active_regions(transaction)
    if len(regions) == 1:
        transaction.put(META, (_PREFIX + regions.pop(),), 1)


def _active_regions(snapshot: Snapshot) -> set[str]:
    return {key.region for _, key in snapshot.scan(KEYS) if key.status == "active"}
