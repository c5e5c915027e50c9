"""Stored weights: what an organization or one of its keys chose, whose choice is in force, and how it is changed.

What may live here: the stored configuration, its resolution and the rules of a change (decisions 6, interface 2.11).
What a configuration makes of signals lives in `scoring`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from svc.identify.scoring.score import Weights, WeightsScope, default_profile
from svc.identify.scoring.signals import MAX_WEIGHT, Mode, signal_names
from svc.kernel.values.fields import Platform
from svc.kernel.values.refusals import Detail, Refusal

SMALLEST_THRESHOLD: Final = 1
LARGEST_THRESHOLD: Final = 1000
_BOUNDS = (
    f"Weights must be 0 to {MAX_WEIGHT}, and suspect_threshold {SMALLEST_THRESHOLD} to {LARGEST_THRESHOLD}. Fix the "
    "fields listed in `details` and retry."
)


class StoredWeights(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The configuration of one scope and platform as it stands in the store. Append fields, never move them."""

    revision: int
    """1 for the first save; grows by one at each (decisions 6.3)."""
    threshold: int
    weights: dict[str, int]
    """Every signal that the platform had when this was saved; one that came later is absent and counts 0."""
    vpn_mode: Mode
    residential_proxy_mode: Mode
    updated_at_ms: int
    updated_by_user_id: str | None = None
    """The id of the member who saved it; `None` = a management key did."""


class WeightsChange(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that a save names; the others keep their value in force."""

    threshold: int | None = None
    weights: dict[str, int] = {}
    vpn_mode: Mode | None = None
    residential_proxy_mode: Mode | None = None
    revision: int | None = None
    """The stored revision that the caller has seen; `None` = whatever it is."""
    by: str | None = None
    """The id of the member who saves."""


def resolve(of_key: StoredWeights | None, of_organization: StoredWeights | None, platform: Platform) -> Weights:
    """Return the configuration in force, as a whole: the key's, else the organization's, else the default (decisions
    6.2).
    """
    if of_key is not None:
        return _in_force(of_key, "key")
    if of_organization is not None:
        return _in_force(of_organization, "organization")
    return default_profile(platform)


def _in_force(stored: StoredWeights, scope: WeightsScope) -> Weights:
    return Weights(
        threshold=stored.threshold,
        weights=stored.weights,
        vpn_mode=stored.vpn_mode,
        residential_proxy_mode=stored.residential_proxy_mode,
        scope=scope,
    )


def changed(
    stored: StoredWeights | None, in_force: Weights, change: WeightsChange, platform: Platform, now_ms: int
) -> StoredWeights | Refusal:
    """Return the configuration after applying the change to the weights in force. Refusals: `422 validation_error` with
    every fault of the change; `409 revision_conflict` if somebody else has saved since. `stored`: the scope's own
    configuration, `None` if it has none.
    """
    refusal = faulty(change, platform)
    if refusal is not None:
        return refusal
    revision = 0 if stored is None else stored.revision
    if change.revision not in (None, revision):
        return Refusal("revision_conflict")
    weights = {name: in_force.weights.get(name, 0) for name in signal_names(platform)}
    return StoredWeights(
        revision=revision + 1,
        threshold=in_force.threshold if change.threshold is None else change.threshold,
        weights=weights | change.weights,
        vpn_mode=change.vpn_mode or in_force.vpn_mode,
        residential_proxy_mode=change.residential_proxy_mode or in_force.residential_proxy_mode,
        updated_at_ms=now_ms,
        updated_by_user_id=change.by,
    )


def faulty(change: WeightsChange, platform: Platform) -> Refusal | None:
    """Return `422 validation_error` with every fault that a change has whatever is stored, in the names of the body
    (decisions 6.3); `None` if it has none.
    """
    names = signal_names(platform)
    faults: list[Detail] = []
    if change.threshold is not None and not SMALLEST_THRESHOLD <= change.threshold <= LARGEST_THRESHOLD:
        faults.append(Detail("suspect_threshold", "out_of_range", "body"))
    for name, weight in change.weights.items():
        if name not in names:
            faults.append(Detail(f"weights.{name}", "unknown_signal", "body"))
        elif not 0 <= weight <= MAX_WEIGHT:
            faults.append(Detail(f"weights.{name}", "out_of_range", "body"))
    bounds = _BOUNDS if any(fault.issue == "out_of_range" for fault in faults) else ""
    return Refusal("validation_error", tuple(faults), explanation=bounds) if faults else None
