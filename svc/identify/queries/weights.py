"""Weights as they are stored, and as they are in force: functions of a snapshot."""

from __future__ import annotations

from typing import NamedTuple

from svc.identify.scoring.score import StoredWeights, Weights, resolve
from svc.identify.tables import WEIGHTS
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import PLATFORMS, Platform


class ScopeWeights(NamedTuple):
    """The weights of one platform, as an organization or one of its keys sees them."""

    platform: Platform
    stored: StoredWeights | None
    """The scope's own configuration; `None` when its parent's is in force."""
    in_force: Weights


def weights_key(number: int, key_id: str | None, platform: Platform) -> tuple[int, int, str]:
    """Return the key in `WEIGHTS` for a platform of an SDK key, or with `key_id=None` of the organization."""
    return number, PLATFORMS.index(platform), key_id or ""


def stored_weights(snapshot: Snapshot, number: int, key_id: str | None, platform: Platform) -> StoredWeights | None:
    """Return the configuration of an SDK key for a platform, or with `key_id=None` of the organization; `None` if it
    has none and the weights of its parent are in force.
    """
    return snapshot.get(WEIGHTS, *weights_key(number, key_id, platform))


def weights_in_force(snapshot: Snapshot, number: int, key_id: str | None, platform: Platform) -> Weights:
    """Return the weights in force for an SDK key, or with `key_id=None` for the organization (decisions 6.2)."""
    of_key = None if key_id is None else stored_weights(snapshot, number, key_id, platform)
    of_organization = stored_weights(snapshot, number, None, platform) if of_key is None else None
    return resolve(of_key, of_organization, platform)


def keys_with_weights(snapshot: Snapshot, number: int, platform: Platform) -> frozenset[str]:
    """Return the ids of the organization's SDK keys that have a configuration of their own for a platform."""
    stem = (number, PLATFORMS.index(platform))
    keys = snapshot.scan_keys_reverse(WEIGHTS, stem, (number, stem[1] + 1))
    return frozenset(key_id for _, _, key_id in keys if key_id)


def scope_weights(snapshot: Snapshot, number: int, key_id: str | None) -> tuple[ScopeWeights, ...]:
    """Return every platform's weights, as the organization (`key_id=None`) or one of its keys sees them."""
    return tuple(
        ScopeWeights(
            platform,
            stored_weights(snapshot, number, key_id, platform),
            weights_in_force(snapshot, number, key_id, platform),
        )
        for platform in PLATFORMS
    )
