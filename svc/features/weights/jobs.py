"""Weights of organizations and of their SDK keys: save and restore (decisions 6.3). In force from the next commit on.

`key_id=None` stands for the organization's own configuration. Nothing caches a configuration but by its bytes.
"""

from __future__ import annotations

from svc.identify.queries.weights import stored_weights, weights_in_force, weights_key
from svc.identify.scoring.score import StoredWeights, WeightsChange, changed, faulty
from svc.identify.tables import WEIGHTS
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.queries import find_sdk_key
from svc.kernel.values.fields import Platform
from svc.kernel.values.refusals import Refusal


def save_weights(
    transaction: Transaction, number: int, key_id: str | None, platform: Platform, change: WeightsChange, now_ms: int
) -> StoredWeights | Refusal:
    """Store a change to the weights in force as the next revision (decisions 6.3). Refusals: see `changed_weights`."""
    saved = changed_weights(transaction, number, key_id, platform, change, now_ms)
    if isinstance(saved, StoredWeights):
        transaction.put(WEIGHTS, weights_key(number, key_id, platform), saved)
    return saved


def changed_weights(
    snapshot: Snapshot, number: int, key_id: str | None, platform: Platform, change: WeightsChange, now_ms: int
) -> StoredWeights | Refusal:
    """Return the result of a change to the weights in force; write nothing. `404 not_found` or `409 sdk_key_revoked`
    for a key that cannot be changed, `422` or `409 revision_conflict`: see `weights.changed`.
    """
    refusal = faulty(change, platform) or _unchangeable(snapshot, number, key_id)
    if refusal is not None:
        return refusal
    stored = stored_weights(snapshot, number, key_id, platform)
    in_force = weights_in_force(snapshot, number, key_id, platform)
    return changed(stored, in_force, change, platform, now_ms)


def restore_weights(transaction: Transaction, number: int, key_id: str | None, platform: Platform) -> Refusal | None:
    """Delete the configuration of an SDK key, or of the organization with `key_id=None`, for a platform, so that its
    parent's is in force (decisions 6.3). Return `None` when done, even if nothing was stored; `404 not_found` or `409
    sdk_key_revoked` for a key that cannot be changed.
    """
    refusal = _unchangeable(transaction, number, key_id)
    if refusal is None:
        transaction.delete(WEIGHTS, *weights_key(number, key_id, platform))
    return refusal


def _unchangeable(snapshot: Snapshot, number: int, key_id: str | None) -> Refusal | None:
    """Return a refusal for an unknown key (`not_found`) and for a revoked one, which stays as it is (interface 3)."""
    if key_id is None:
        return None
    key = find_sdk_key(snapshot, number, key_id)
    if key is None:
        return Refusal("not_found")
    return Refusal("sdk_key_revoked") if key.status == "revoked" else None
