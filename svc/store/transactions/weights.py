"""Weights of organizations and of their SDK keys: save and restore (decisions 6.3). In force from the next commit on.

`key_id=None` stands for the organization's own configuration. Nothing caches a configuration but by its bytes.
"""

from __future__ import annotations

from svc.domain.model import Platform
from svc.domain.refusals import Refusal
from svc.domain.weights import StoredWeights, WeightsChange, changed
from svc.store.snapshot import Transaction
from svc.store.tables import WEIGHTS
from svc.store.views import find_sdk_key, stored_weights, weights_in_force, weights_key


def save_weights(
    transaction: Transaction, number: int, key_id: str | None, platform: Platform, change: WeightsChange, now_ms: int
) -> StoredWeights | Refusal:
    """Store the change upon what is in force; a key that the organization does not have is `404 not_found`."""
    if key_id is not None and find_sdk_key(transaction, number, key_id) is None:
        return Refusal("not_found")
    stored = stored_weights(transaction, number, key_id, platform)
    in_force = weights_in_force(transaction, number, key_id, platform)
    saved = changed(stored, in_force, change, platform, now_ms)
    if isinstance(saved, StoredWeights):
        transaction.put(WEIGHTS, weights_key(number, key_id, platform), saved)
    return saved


def restore_weights(transaction: Transaction, number: int, key_id: str | None, platform: Platform) -> Refusal | None:
    """Back to the parent's configuration; where nothing is stored, nothing changes."""
    if key_id is not None and find_sdk_key(transaction, number, key_id) is None:
        return Refusal("not_found")
    transaction.delete(WEIGHTS, *weights_key(number, key_id, platform))
    return None
