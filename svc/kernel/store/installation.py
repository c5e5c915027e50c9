"""What a store notes of its installation: its version, the region of its keys, the pepper that they are hashed with,
and the limits that the service last ran with.

All stand in `META`. It holds whole numbers alone: the region is part of a key there, `region/us`; of the pepper it has
32 bits of a digest, and the share of one organization is in millionths. A server of another region, or with another
pepper, would refuse every key (decisions 2.11).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from svc.kernel.access.tables import KEYS
from svc.kernel.store.files import durable_files
from svc.kernel.store.schema.table import Migration, Table, installed
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.store.steps import QUIET, Steps, counted
from svc.kernel.store.store import Store
from svc.kernel.store.tables import META
from svc.kernel.values.errors import OperatorError

V = TypeVar("V")


class NewerStoreError(OperatorError):
    """The store was written by a later version of the service."""


class OlderStoreError(OperatorError):
    """The store was written by an earlier version of the service, and has to be upgraded first."""


def refuse_newer(version: int, known: int) -> None:
    """Raise `NewerStoreError` if the store's version is above `known`, the latest that this program knows."""
    if version > known:
        raise NewerStoreError(
            f"the store has version {version} and this program knows {known}: "
            "run the newer program, or restore a backup that this one made"
        )


def migrate(transaction: Transaction, migrations: Sequence[Migration], steps: Steps = QUIET) -> None:
    """Run the missing migrations of the store in the caller's transaction. Version N is the result of the first N
    migrations. `steps` gets a stage for each, of all rows of the store: a migration may scan some of them, or some
    twice. Raises `NewerStoreError`.
    """
    version = transaction.get(META, "version") or 0
    refuse_newer(version, len(migrations))
    watched = _Watched(transaction, steps)
    for number, migration in enumerate(migrations[version:], start=version + 1):
        if version:
            steps.stage(f"upgrading to version {number}", sum(map(transaction.writer.count, installed().names)))
        migration(watched)
        transaction.put(META, ("version",), number)


class _Watched(Transaction):
    """A transaction that reports how many rows were scanned in it."""

    def __init__(self, transaction: Transaction, steps: Steps) -> None:
        super().__init__(transaction.writer)
        self._steps = steps

    def scan(self, table: Table[V], *prefix: Any, start: Any = None) -> Iterator[tuple[tuple[Any, ...], V]]:
        return counted(super().scan(table, *prefix, start=start), self._steps)


PEPPER_BYTES = 32
_PREFIX = "region/"


class WrongRegionError(OperatorError):
    """The store belongs to another region than the server's."""


def region_of(snapshot: Snapshot) -> str | None:
    """Return the region that the store belongs to; `None` before the first use."""
    regions = [name.removeprefix(_PREFIX) for (name,), _ in snapshot.scan(META) if name.startswith(_PREFIX)]
    return regions[0] if regions else None


def claim_region(transaction: Transaction, region: str) -> None:
    """Record the region at the first use of a store, and refuse any other from then on. A store without an active key
    of its region may change it, since no key is refused by that. Raises `WrongRegionError`.
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
    """Record the region of a store that lacks it: that of its active keys, if all have the same."""
    regions = _active_regions(transaction)
    if len(regions) == 1:
        transaction.put(META, (_PREFIX + regions.pop(),), 1)


def _active_regions(snapshot: Snapshot) -> set[str]:
    return {key.region for _, key in snapshot.scan(KEYS) if key.status == "active"}


def pepper_mark(pepper: bytes) -> int:
    """Return a 32-bit digest of a pepper: a store is not opened with another one, which makes every key invalid."""
    return int.from_bytes(hmac.digest(pepper, b"svc store mark 1", "sha256")[:4])


_FORMER = "former_pepper_mark/"


def former_pepper_marks(snapshot: Snapshot) -> tuple[int, ...]:
    """Return the marks of the peppers that `put_new_pepper` replaced."""
    return tuple(int(name.removeprefix(_FORMER)) for (name,), _ in snapshot.scan(META) if name.startswith(_FORMER))


def put_new_pepper(store: Store, path: Path, entropy: Callable[[int], bytes], revoke_all: Callable[[], V]) -> V:
    """Create a pepper for a store whose own is lost or compromised, bind the store to it, and write it to `path` with
    mode 0600. What was made with the old one is void: keys, signing secrets, deferred tokens, cursors. `revoke_all`
    revokes every key, so that no active one cannot be verified; return what it returns. Nothing is revoked where the
    file cannot be written (`OSError`). Run it again after an interruption: until it completes, the store cannot be
    opened.
    """
    pepper = entropy(PEPPER_BYTES)
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    durable_files.write(beside, pepper)

    def mark(transaction: Transaction) -> None:
        former = transaction.get(META, "pepper_mark")
        if former is not None:
            transaction.put(META, (f"{_FORMER}{former}",), 1)
        transaction.put(META, ("pepper_mark",), pepper_mark(pepper))

    revoked = revoke_all()
    store.write_one_now(mark)
    durable_files.rename(beside, path)
    return revoked


_CAPACITY, _SHARE = "served_capacity_bytes", "served_share_millionths"


class ServedLimits(NamedTuple):
    """What an organization's share of the store follows from, for commands that run beside the service."""

    capacity_bytes: int
    """How large the store could become when the service started: `Store.capacity_bytes`."""
    store_share: float
    """The setting."""


def served_limits(snapshot: Snapshot) -> ServedLimits | None:
    """Return the limits of the last start; `None` before the first one."""
    capacity_bytes, share = snapshot.get(META, _CAPACITY), snapshot.get(META, _SHARE)
    return None if capacity_bytes is None or share is None else ServedLimits(capacity_bytes, share / 1e6)


def record_limits(transaction: Transaction, limits: ServedLimits) -> None:
    """Store the limits of a service that starts; write nothing if they are stored already."""
    if served_limits(transaction) != limits:
        transaction.put(META, (_CAPACITY,), limits.capacity_bytes)
        transaction.put(META, (_SHARE,), round(limits.store_share * 1e6))


CLOCK_CONFIRMED = "clock_confirmed"


def clock_confirmation(snapshot: Snapshot) -> int:
    """Return when an operator last confirmed the clock, in Unix ms by that clock; 0 = never."""
    return snapshot.get(META, CLOCK_CONFIRMED) or 0


def confirm_clock(transaction: Transaction, now_ms: int) -> None:
    """Record that an operator confirms that the clock is right."""
    transaction.put(META, (CLOCK_CONFIRMED,), now_ms)
