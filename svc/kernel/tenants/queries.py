"""Read queries: functions of a snapshot. What they return is what the callers show; they change nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from svc.kernel.access.credentials import ApiKey, KeyKind
from svc.kernel.access.tables import KEY_IDS, KEYS, ORGANIZATION_KEYS
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot, all_present
from svc.kernel.tenants.billing import BillingChange, LedgerEntry, Settlement
from svc.kernel.tenants.organization import Organization
from svc.kernel.tenants.tables import (
    BALANCES,
    BILLING_CHANGES,
    CREDITS,
    LEDGER,
    ORGANIZATION_IDS,
    ORGANIZATIONS,
    SETTLEMENTS,
)
from svc.kernel.values.ids import DAY_MS, first_id, is_id, made_at_ms

KEYS_AT_ONCE = 32
"""Keys that are asked for together."""

SDK_KEYS: tuple[KeyKind, ...] = ("public", "secret")
"""Kinds of keys that have weights of their own."""


def find_key(snapshot: Snapshot, digest: bytes) -> ApiKey | None:
    """Return the key whose secret has this digest (`credentials.digest`), revoked or not; `None` if there is none."""
    return snapshot.get(KEYS, digest)


def organization(snapshot: Snapshot, number: int) -> Organization:
    """Return an organization by its number, removed or not. Raises `LookupError` for a number that was never given."""
    found = snapshot.get(ORGANIZATIONS, number)
    if found is None:
        raise LookupError(f"no organization has the number {number}")
    return found


def organizations(snapshot: Snapshot) -> list[int]:
    """Return the numbers of all organizations, oldest first, with removed and unreadable ones."""
    return [ORGANIZATIONS.key.unpack(raw)[0] for raw, _ in snapshot.unchecked(ORGANIZATIONS, b"")]


def is_removed(snapshot: Snapshot, number: int) -> bool:
    """Return whether the operator has removed the organization; `False` for a number that was never given."""
    found = snapshot.get(ORGANIZATIONS, number)
    return found is not None and found.removed_at_ms is not None


MAX_LOOKED_AT = 64
"""Organizations among which a single one in use is looked for; a store that had more is no single organization's."""


def share_in_force(snapshot: Snapshot, store_share: float) -> float:
    """Return the organization's share of the store: `store_share`, or all of it where no other one is in use."""
    found = snapshot.scan_past_corruption(ORGANIZATIONS, (0,), (0xFFFFFFFF,))
    looked_at = [row for _, row in islice(found, MAX_LOOKED_AT)]
    in_use = sum(isinstance(row, CorruptionError) or row.removed_at_ms is None for row in looked_at)
    is_alone = len(looked_at) < MAX_LOOKED_AT and in_use <= 1
    return max(1.0, store_share) if is_alone else store_share


def find_organization(snapshot: Snapshot, organization_id: str) -> Organization | None:
    """Return an organization by its public id, removed or not; `None` if there is none. Any text may be passed."""
    number = snapshot.get(ORGANIZATION_IDS, organization_id) if is_id("org_", organization_id) else None
    return None if number is None else organization(snapshot, number)


def all_organizations(snapshot: Snapshot) -> list[Organization]:
    """Return all organizations, oldest first, removed ones included."""
    return [found for _, found in snapshot.scan(ORGANIZATIONS)]


def balance(snapshot: Snapshot, number: int) -> int:
    """Return the sum of the ledger in micro-dollars, maybe negative. Raises as `known_balance` does."""
    return known_balance(snapshot.get(BALANCES, number))


def known_balance(micros: int | None) -> int:
    """Return a value of `BALANCES`. Raises `CorruptionError` for `None`: every organization has a balance."""
    if micros is None:
        raise CorruptionError("the balance of an organization is missing")
    return micros


def refuse_given(snapshot: Snapshot, table: Table[Any], *key: int) -> None:
    """Check that the next number of a table, the end of `key`, is free: raise `CorruptionError` if a row has this
    number or a larger one. The count of given numbers is then missing or old, and another record would be overwritten.
    """
    found = next(snapshot.scan_keys(table, key, (key[0] + 1,) if len(key) > 1 else None), None)
    if found is not None:
        raise CorruptionError(f"{table.name} has {found}, and fewer numbers were given")


def newest_settlements(snapshot: Snapshot, number: int, limit: int) -> list[tuple[int, Settlement]]:
    """Return (UTC day since 1970, its totals) of the last `limit` settled days, newest first."""
    rows = snapshot.scan_reverse(SETTLEMENTS, (number,), (number + 1,))
    return [(day, settled) for (_, day), settled in islice(rows, limit)]


def newest_credits(snapshot: Snapshot, number: int, from_day: int = 0) -> Iterator[tuple[int, LedgerEntry]]:
    """Yield (UTC day since 1970 that it counts for, credit), newest first, taken-back ones too, from `from_day` on."""
    for _, raw_id in snapshot.scan_keys_reverse(CREDITS, (number, first_id(from_day * DAY_MS)), (number + 1,)):
        line = snapshot.get(LEDGER, number, raw_id)
        if line is not None:
            yield made_at_ms(raw_id) // DAY_MS if line.day is None else line.day, line


def newest_billing_changes(snapshot: Snapshot, number: int, limit: int) -> list[BillingChange]:
    """Return the last changes of the billing status, newest first."""
    rows = snapshot.scan_reverse(BILLING_CHANGES, (number,), (number + 1,))
    return [change for _, change in islice(rows, limit)]


def keys_of(snapshot: Snapshot, number: int) -> list[ApiKey]:
    """Return all keys of an organization, oldest first, revoked ones included."""
    return list(scan_keys(snapshot, number))


def scan_keys(snapshot: Snapshot, number: int, after: ApiKey | None = None) -> Iterator[ApiKey]:
    """Yield the keys of an organization, oldest first, including revoked ones; with `after`, only those after it in
    that order. Raises `CorruptionError` also if the index names a key that is missing.
    """
    start = None if after is None else (number, after.created_at_ms, after.id)
    listed = (
        (key[-1], digest) for key, digest in snapshot.scan(ORGANIZATION_KEYS, number, start=start) if key != start
    )
    while some := [(key_id, snapshot.get(KEYS, digest)) for key_id, digest in islice(listed, KEYS_AT_ONCE)]:
        for _, key in all_present(some, "the key {} is missing, but an index has it".format):
            yield key


def find_key_by_id(snapshot: Snapshot, key_id: str) -> ApiKey | None:
    """Return a key by its id, revoked or not, else `None`. Raises `CorruptionError` if only its index row is there."""
    digest = snapshot.get(KEY_IDS, key_id) if is_id("key_", key_id) else None
    key = None if digest is None else snapshot.get(KEYS, digest)
    if digest is not None and key is None:
        raise CorruptionError(f"the key {key_id} is missing, but its row of {KEY_IDS.name} exists")
    return key


def find_key_of(snapshot: Snapshot, number: int, key_id: str, kinds: Sequence[KeyKind]) -> ApiKey | None:
    """Return a key of the organization and these kinds, revoked or not, as `find_key_by_id` does."""
    key = find_key_by_id(snapshot, key_id)
    return key if key is not None and key.organization == number and key.kind in kinds else None


def find_sdk_key(snapshot: Snapshot, number: int, key_id: str) -> ApiKey | None:
    """Return a public or secret key of the organization, revoked or not, by its id; `None` if there is none."""
    return find_key_of(snapshot, number, key_id, SDK_KEYS)
