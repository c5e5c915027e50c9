"""API keys: issue and revoke. Use is noted at most once a minute, inside the identification that used the key."""

from __future__ import annotations

from typing import Literal

import msgspec

from svc.domain.credentials import Key
from svc.store.snapshot import Transaction
from svc.store.tables import KEY_IDS, KEYS, ORGANIZATION_KEYS

LAST_USED_STEP_MS = 60_000
"""`last_used_at` is written at most this often per key (decisions 2.3)."""


def issue_key(transaction: Transaction, key: Key, digest: bytes) -> Key:
    """Store a new key under the digest of its secret."""
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


def note_use(transaction: Transaction, digest: bytes, now_ms: int) -> None:
    """Renew `last_used_at` of a key that is still there, unless a request that overlapped has done it just now."""
    key = transaction.get(KEYS, digest)
    if key is not None and use_is_due(key, now_ms):
        transaction.put(KEYS, (digest,), msgspec.structs.replace(key, last_used_at_ms=now_ms))


def use_is_due(key: Key, now_ms: int) -> bool:
    return key.last_used_at_ms is None or now_ms - key.last_used_at_ms >= LAST_USED_STEP_MS
