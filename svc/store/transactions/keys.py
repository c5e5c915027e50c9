"""API keys: issue, revoke, change. Use is noted at most once a minute, with what the key was used for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Literal

import msgspec

from svc.domain.credentials import Key, KeyKind
from svc.domain.model import PLATFORMS
from svc.domain.refusals import Refusal, invalid
from svc.store.snapshot import Transaction
from svc.store.tables import KEY_IDS, KEYS, ORGANIZATION_KEYS, WEIGHTS
from svc.store.views import find_key_of, find_sdk_key, keys_of, scan_keys, weights_key

LAST_USED_STEP_MS = 60_000
"""`last_used_at` is written at most this often per key (decisions 2.3)."""


MOST_ACTIVE_KEYS = 200
"""Keys of an organization that are not revoked, of all kinds together (decisions 2.5)."""


def issue_key(transaction: Transaction, key: Key, digest: bytes) -> Key | Refusal:
    """As `store_key`, up to the limit. A key that has expired counts until it is revoked."""
    active = (known for known in scan_keys(transaction, key.organization) if known.status == "active")
    if next(islice(active, MOST_ACTIVE_KEYS - 1, None), None) is not None:
        return Refusal("key_limit")
    return store_key(transaction, key, digest)


def store_key(transaction: Transaction, key: Key, digest: bytes) -> Key:
    """Store a new key under the digest of its secret, of an organization that is known to have few."""
    transaction.put(KEYS, (digest,), key)
    transaction.put(KEY_IDS, (key.id,), digest)
    transaction.put(ORGANIZATION_KEYS, (key.organization, key.created_at_ms, key.id), digest)
    return key


def revoke_key(transaction: Transaction, key_id: str, now_ms: int) -> Key | Literal["unknown", "revoked_before"]:
    """Permanent, and in force from the next request on: nothing caches a key."""
    digest = transaction.get(KEY_IDS, key_id)
    key = None if digest is None else transaction.get(KEYS, digest)
    if digest is None or key is None:
        return "unknown"
    if key.status == "revoked":
        return "revoked_before"
    revoked = msgspec.structs.replace(key, revoked_at_ms=now_ms)
    transaction.put(KEYS, (digest,), revoked)
    return revoked


def revoke_all_keys(transaction: Transaction, number: int, now_ms: int) -> int:
    """Every key of an organization that is not revoked yet; how many there were."""
    active = [key for key in keys_of(transaction, number) if key.status == "active"]
    for key in active:
        revoke_key(transaction, key.id, now_ms)
    return len(active)


def revoke_key_of(
    transaction: Transaction, number: int, kinds: Sequence[KeyKind], key_id: str, now_ms: int
) -> Key | Refusal:
    """As `revoke_key`, for an organization's own automation: another's key, or one of another kind, is not there."""
    key = find_key_of(transaction, number, key_id, kinds)
    if key is None:
        return Refusal("not_found")
    revoked = revoke_key(transaction, key_id, now_ms)
    if isinstance(revoked, Key):
        return revoked
    return Refusal("proxy_key_revoked" if key.kind == "proxy" else "sdk_key_revoked")


def replace_origins(
    transaction: Transaction, number: int, key_id: str, allowed_origins: tuple[str, ...]
) -> Key | Refusal:
    """The whole new list of a public key, normalised already. Secret keys have none: they are refused with any."""
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


def forget_key(transaction: Transaction, key: Key, digest: bytes) -> None:
    """Delete a key with its weights, as if it had never been."""
    transaction.delete(KEYS, digest)
    transaction.delete(KEY_IDS, key.id)
    transaction.delete(ORGANIZATION_KEYS, key.organization, key.created_at_ms, key.id)
    for platform in PLATFORMS:
        transaction.delete(WEIGHTS, *weights_key(key.organization, key.id, platform))


def note_use(transaction: Transaction, digest: bytes, now_ms: int) -> None:
    """Renew `last_used_at` of a key that is still there, unless a request that overlapped has done it just now."""
    key = transaction.get(KEYS, digest)
    if key is not None and use_is_due(key, now_ms):
        transaction.put(KEYS, (digest,), msgspec.structs.replace(key, last_used_at_ms=now_ms))


def use_is_due(key: Key, now_ms: int) -> bool:
    return key.last_used_at_ms is None or now_ms - key.last_used_at_ms >= LAST_USED_STEP_MS
