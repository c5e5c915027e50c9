"""From observations to a score: which signals are in force, what they weigh, and the level that follows.

What may live here: arithmetic over observations and a weights profile. Noticing things lives in `detection`; the names
and the default weights live in `signals`.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal

import msgspec

from svc.identify.model import EventSignal, EventTrigger, Level, Observation
from svc.identify.scoring.signals import CATALOG, MAX_WEIGHT, Mode, default_weights, weighs_twice
from svc.kernel.values.fields import PLATFORMS, Platform

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
