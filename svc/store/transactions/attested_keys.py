"""Attested keys of Apple devices: kept with the visitor that used them last, and purged with it.

A key that is kept reads at most 3 rows and writes or deletes at most 4, however many there are.
"""

from __future__ import annotations

from svc.domain.attestation.attested_key import MAX_KEYS_OF_VISITOR, AttestedKey, VisitorKeys
from svc.store.schema.tables import ATTESTED_KEYS, VISITOR_KEYS
from svc.store.snapshot import Snapshot, Transaction


def keep_key(
    transaction: Transaction, number: int, key_id: bytes, key: AttestedKey, before: AttestedKey | None
) -> None:
    """Write a key and list it with its visitor. `before`: what is kept of it now, maybe with another visitor. Of too
    many keys of one visitor the oldest is deleted.
    """
    transaction.put(ATTESTED_KEYS, (number, key_id), key)
    if before is not None and before.visitor_id == key.visitor_id:
        return
    if before is not None:
        _unlist(transaction, number, before.visitor_id, key_id)
    listed = (key_id, *_listed(transaction, number, key.visitor_id))
    for oldest in listed[MAX_KEYS_OF_VISITOR:]:
        transaction.delete(ATTESTED_KEYS, number, oldest)
    _list(transaction, number, key.visitor_id, listed[:MAX_KEYS_OF_VISITOR])


def has_keys(snapshot: Snapshot, number: int, visitor_id: str) -> bool:
    """Whether a key is kept with this visitor."""
    return bool(_listed(snapshot, number, visitor_id))


def purge_attested_key(transaction: Transaction, number: int, key_id: bytes, key: AttestedKey) -> None:
    """Delete one key."""
    transaction.delete(ATTESTED_KEYS, number, key_id)
    _unlist(transaction, number, key.visitor_id, key_id)


def purge_attested_keys(transaction: Transaction, number: int, visitor_id: str) -> None:
    """Delete all keys of a visitor; nothing where it has none."""
    listed = _listed(transaction, number, visitor_id)
    for key_id in listed:
        transaction.delete(ATTESTED_KEYS, number, key_id)
    if listed:
        _list(transaction, number, visitor_id, ())


def _listed(snapshot: Snapshot, number: int, visitor_id: str) -> tuple[bytes, ...]:
    found = snapshot.get(VISITOR_KEYS, number, visitor_id.encode())
    return () if found is None else found.key_ids


def _unlist(transaction: Transaction, number: int, visitor_id: str, key_id: bytes) -> None:
    left = tuple(other for other in _listed(transaction, number, visitor_id) if other != key_id)
    _list(transaction, number, visitor_id, left)


def _list(transaction: Transaction, number: int, visitor_id: str, key_ids: tuple[bytes, ...]) -> None:
    if key_ids:
        transaction.put(VISITOR_KEYS, (number, visitor_id.encode()), VisitorKeys(key_ids))
    else:
        transaction.delete(VISITOR_KEYS, number, visitor_id.encode())
