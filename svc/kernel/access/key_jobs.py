"""API keys: issue, revoke, change. Use is noted at most once a minute, with what the key was used for.

The active keys of an organization are counted in the transaction that changes them (`holdings`): issuing takes as
long whatever was revoked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from svc.kernel.access.credentials import ApiKey, KeyKind, is_key_id
from svc.kernel.access.tables import KEY_IDS, KEYS, ORGANIZATION_KEYS
from svc.kernel.limits.quotas import ActiveKeys, Holding, Quotas, may_issue, seconds_to_midnight
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.holding_jobs import holding, keep
from svc.kernel.tenants.queries import find_key_of, find_sdk_key, keys_of, scan_keys
from svc.kernel.values.ids import MAX_LEAD_MS
from svc.kernel.values.refusals import Refusal, invalid, over_day

LAST_USED_STEP_MS = 60_000
"""`last_used_at` is written at most this often per key (decisions 2.3)."""


def issue_key(
    transaction: Transaction, key: ApiKey, digest: bytes, keys_per_day: int = Quotas().keys_per_day
) -> ApiKey | Refusal:
    """Store a new key, as `store_key` does, within the limits of the organization (decisions 2.5): `409 key_limit` if
    it would have too many active keys, `429 rate_limited` until midnight UTC after `keys_per_day`.
    """
    held, active = _held(transaction, key.organization, key.created_at_ms)
    match may_issue(active.count, held.keys_issued, keys_per_day):
        case "active_keys":
            return Refusal("key_limit")
        case "keys_per_day":
            seconds = seconds_to_midnight(key.created_at_ms)
            what = f"the {keys_per_day} keys that it may issue today"
            return over_day(what, seconds, reason="over the day's limit of issued keys")
        case None:
            return store_key(transaction, key, digest)


def store_key(transaction: Transaction, key: ApiKey, digest: bytes) -> ApiKey:
    """Store a new key under the digest of its secret, and count it. Limits are not checked: this is for the first keys
    of an organization.
    """
    held, active = _held(transaction, key.organization, key.created_at_ms)
    active, issued = active.plus_key(key.expires_at_ms), held.keys_issued + 1
    keep(transaction, key.organization, msgspec.structs.replace(held, active_keys=active, keys_issued=issued))
    transaction.put(KEYS, (digest,), key)
    transaction.put(KEY_IDS, (key.id,), digest)
    transaction.put(ORGANIZATION_KEYS, (key.organization, key.created_at_ms, key.id), digest)
    return key


def revoke_key(
    transaction: Transaction, key_id: str, now_ms: int, by: str | None = None
) -> ApiKey | Literal["unknown", "revoked_before"]:
    """Revoke a key of any organization, irrevocably: it is refused from the next request on, since keys are not cached.
    `key_id` may be any text. `by`: the id of the member who revokes it.
    """
    digest = transaction.get(KEY_IDS, key_id) if is_key_id(key_id) else None
    key = None if digest is None else transaction.get(KEYS, digest)
    if digest is None or key is None:
        return "unknown"
    if key.status == "revoked":
        return "revoked_before"
    _uncount(transaction, key, now_ms)
    revoked = msgspec.structs.replace(key, revoked_at_ms=now_ms, revoked_by=by)
    transaction.put(KEYS, (digest,), revoked)
    return revoked


def revoke_all_keys(transaction: Transaction, number: int, now_ms: int) -> int:
    """Revoke every active key of an organization; returns how many there were."""
    active = [key for key in keys_of(transaction, number) if key.status == "active"]
    for key in active:
        revoke_key(transaction, key.id, now_ms)
    return len(active)


def revoke_key_of(
    transaction: Transaction, number: int, kinds: Sequence[KeyKind], key_id: str, now_ms: int, by: str | None = None
) -> ApiKey | Refusal:
    """Revoke a key as `revoke_key` does, and return the refusals of the HTTP API: `404 not_found` for a key of another
    organization or kind, `409` for one that was revoked before (decisions 2.5).
    """
    key = find_key_of(transaction, number, key_id, kinds)
    if key is None:
        return Refusal("not_found")
    revoked = revoke_key(transaction, key_id, now_ms, by)
    if isinstance(revoked, ApiKey):
        return revoked
    return Refusal("proxy_key_revoked" if key.kind == "proxy" else "sdk_key_revoked")


def replace_origins(
    transaction: Transaction, number: int, key_id: str, allowed_origins: tuple[str, ...]
) -> ApiKey | Refusal:
    """Replace the origins of a public key, given in normalized form. `404 not_found` for a key of another organization,
    `422` for a secret key, `409 sdk_key_revoked` for a revoked one.
    """
    key = find_sdk_key(transaction, number, key_id)
    if key is None:
        return Refusal("not_found")
    if key.kind != "public":
        return invalid("allowed_origins", "invalid_value")
    if key.status == "revoked":
        return Refusal("sdk_key_revoked")
    replaced = msgspec.structs.replace(key, allowed_origins=allowed_origins)
    transaction.put(KEYS, (transaction.get(KEY_IDS, key_id),), replaced)
    return replaced


def purge_key(transaction: Transaction, key: ApiKey, digest: bytes, now_ms: int) -> None:
    """Delete every row of a key, revoked or not, though not its weights; subtract it from the active keys if it was
    one. `digest`: the digest of its secret.
    """
    if key.status == "active":
        _uncount(transaction, key, now_ms)
    transaction.delete(KEYS, digest)
    transaction.delete(KEY_IDS, key.id)
    transaction.delete(ORGANIZATION_KEYS, key.organization, key.created_at_ms, key.id)


def note_use(transaction: Transaction, digest: bytes, now_ms: int) -> None:
    """Set `last_used_at` of a key to now; do nothing if the key is deleted, or another request set it less than a
    minute ago.
    """
    key = transaction.get(KEYS, digest)
    if key is not None and touch_is_due(key, now_ms):
        transaction.put(KEYS, (digest,), msgspec.structs.replace(key, last_used_at_ms=now_ms))


def touch_is_due(key: ApiKey, now_ms: int) -> bool:
    """Return whether `last_used_at` is at least a minute old, was never set (decisions 2.3), or was set by a clock that
    was ahead.
    """
    last_ms = key.last_used_at_ms
    return last_ms is None or not -MAX_LEAD_MS <= now_ms - last_ms < LAST_USED_STEP_MS


def counted_keys(snapshot: Snapshot, number: int, as_of_ms: int = 0) -> ActiveKeys:
    """Return the active keys of an organization at `as_of_ms` (Unix ms), by reading every key."""
    expiries: list[int] = []
    unlimited = 0
    for key in scan_keys(snapshot, number):
        if key.status == "revoked":
            continue
        if key.expires_at_ms is None:
            unlimited += 1
        elif key.expires_at_ms > as_of_ms:
            expiries.append(key.expires_at_ms)
    return ActiveKeys(unlimited, tuple(sorted(expiries)), as_of_ms)


def _held(transaction: Transaction, number: int, now_ms: int) -> tuple[Holding, ActiveKeys]:
    """Return what an organization holds today, and its keys that are active now."""
    held = holding(transaction, number)
    active = held.active_keys
    if active is None or active.is_ahead(now_ms):
        active = counted_keys(transaction, number)
    return held.on(now_ms), active.at(now_ms)


def _uncount(transaction: Transaction, key: ApiKey, now_ms: int) -> None:
    """Stop counting a key that is about to be revoked or deleted."""
    held, active = _held(transaction, key.organization, now_ms)
    active = active.minus_key(key.expires_at_ms)
    keep(transaction, key.organization, msgspec.structs.replace(held, active_keys=active))
