"""From observations to a score: which signals are in force, what they weigh, and the level that follows.

What may live here: arithmetic over observations and a weights profile; and the profile that an organization or one of
its keys chose, as it is stored, resolved and changed (decisions 6, interface 2.11). Noticing things lives in
`detection`; the names and the default weights live in `signals`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Final, Literal

import msgspec

from svc.identify.model import EventSignal, EventTrigger, Level, Observation
from svc.identify.scoring.signals import CATALOG, MAX_WEIGHT, Mode, default_weights, signal_names, weighs_twice
from svc.kernel.values.fields import PLATFORMS, Platform
from svc.kernel.values.refusals import Detail, Refusal

DEFAULT_THRESHOLD = 30

WeightsScope = Literal["default", "organization", "key"]
"""Whose configuration is in force (interface 2.11)."""


class Weights(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The configuration that scores one platform. A signal that `weights` does not name counts 0 (decisions 6.2)."""

    threshold: int = DEFAULT_THRESHOLD
    weights: dict[str, int]
    vpn_mode: Mode = "method"
    residential_proxy_mode: Mode = "method"
    scope: WeightsScope = "default"

    @cached_property
    def digest(self) -> bytes:
        """16 bytes by which the store keeps `weights` once, however many documents name them."""
        return blake2b(msgspec.json.encode(self.weights, order="deterministic"), digest_size=16).digest()


class Score(msgspec.Struct, frozen=True):
    """The score of an identification: 0 or more, its level, and the signals that it is composed of (interface 2.2)."""

    score: int
    level: Level
    triggers: tuple[EventSignal, ...] = ()
    """Heaviest first, ties by name."""


def default_profile(platform: Platform) -> Weights:
    """Return the weights in force where neither the organization nor the key has its own (decisions 6.2)."""
    return _DEFAULT_PROFILES[platform]


def score(observations: Sequence[Observation], profile: Weights, platform: Platform) -> Score:
    """Return the sum of the weights in force, its level and its triggers (decisions 6.1)."""
    triggers = sorted(in_force(observations, profile, platform), key=_heaviest_first)
    total = sum(trigger.weight for trigger in triggers)
    return Score(total, level_of(total, profile.threshold), tuple(triggers))


def level_of(total: int, threshold: int) -> Level:
    """Return `low` below the threshold, `medium` below twice the threshold, `high` from there (decisions 3.7)."""
    if total < threshold:
        return "low"
    return "medium" if total < 2 * threshold else "high"


def in_force(observations: Sequence[Observation], profile: Weights, platform: Platform) -> list[EventSignal]:
    """Return the observations that count, in their own order: those whose signal exists on `platform`, weighs more than
    0, belongs to the active mode of its family, and is not silenced. Silencing depends on what the address *is*: an
    exit of Tor is not a VPN even if the profile gives Tor no weight.
    """
    observed = frozenset(observation.signal for observation in observations)
    tor, relay = "tor" in observed, "vpn_relay" in observed
    triggers: list[EventSignal] = []
    for observation in observations:
        signal = CATALOG.get(observation.signal)
        if signal is None or platform not in signal.weights:
            continue
        weight = profile.weights.get(signal.name, 0)
        if weight <= 0 or signal.mode not in (None, _active_mode(signal.group, profile)):
            continue
        if (tor and signal.group == "vpn") or (relay and signal.name == "vpn_public"):
            continue
        if weighs_twice(observation):
            weight = min(2 * weight, MAX_WEIGHT)
        triggers.append(EventSignal(signal.name, signal.group, weight, observation.confidence))
    return triggers


def group_triggers(triggers: Iterable[EventSignal]) -> tuple[EventTrigger, ...]:
    """Return one trigger per group: weights added, the highest confidence; heaviest first, ties by name."""
    groups: dict[str, EventTrigger] = {}
    for trigger in triggers:
        group = groups.get(trigger.group, EventTrigger(trigger.group, 0, "low"))
        groups[trigger.group] = EventTrigger(
            trigger.group,
            group.weight + trigger.weight,
            max(group.confidence, trigger.confidence, key=_RANK.__getitem__),
        )
    return tuple(sorted(groups.values(), key=_heaviest_first))


_RANK: dict[Level, int] = {"low": 0, "medium": 1, "high": 2}
_DEFAULT_PROFILES: dict[Platform, Weights] = {
    platform: Weights(weights=default_weights(platform)) for platform in PLATFORMS
}


def _active_mode(group: str, profile: Weights) -> Mode:
    return profile.residential_proxy_mode if group == "residential_proxy" else profile.vpn_mode


def _heaviest_first(trigger: EventSignal | EventTrigger) -> tuple[int, str]:
    return -trigger.weight, trigger.signal


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
    """Return the configuration in force: the key's, else the organization's, else the default (decisions 6.2)."""
    stored = of_organization if of_key is None else of_key
    if stored is None:
        return default_profile(platform)
    return Weights(
        threshold=stored.threshold,
        weights=stored.weights,
        vpn_mode=stored.vpn_mode,
        residential_proxy_mode=stored.residential_proxy_mode,
        scope="organization" if of_key is None else "key",
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
