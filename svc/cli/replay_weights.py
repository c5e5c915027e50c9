"""The file of `svc replay --weights`: other risk weights to score with."""

from __future__ import annotations

from pathlib import Path

import msgspec

from svc.cli.output import CommandError
from svc.domain.model import PLATFORMS, Platform
from svc.domain.refusals import Refusal
from svc.domain.scoring import Weights, default_profile
from svc.domain.signals import Mode
from svc.domain.weights import StoredWeights, WeightsChange, changed, resolve

_SHAPE = (
    'write {"web": {"suspect_threshold": 40, "weights": {"tor": 50}}}, as for PUT .../risk-weights/{platform}, or give '
    "the response of GET .../risk-weights"
)


class PlatformWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One platform: the body of the `PUT` of risk weights. What is not named keeps its default."""

    suspect_threshold: int | None = None
    weights: dict[str, int] = {}
    vpn_weights_mode: Mode | None = None
    residential_proxy_weights_mode: Mode | None = None
    revision: int | None = None
    """Not looked at: nothing is saved."""


class _Listed(msgspec.Struct, frozen=True):
    """One platform of the response of the `GET`, which says more than is needed."""

    platform: Platform
    suspect_threshold: int
    weights: dict[str, int]
    vpn_weights_mode: Mode
    residential_proxy_weights_mode: Mode


class _Response(msgspec.Struct, frozen=True):
    platforms: tuple[_Listed, ...]


def read_weights(path: Path) -> dict[Platform, StoredWeights]:
    """Platform -> its configuration, for the platforms that the file names. Raises `CommandError` with what is wrong
    and what to write instead.
    """
    content = path.read_bytes()
    try:
        named = _platforms(content)
    except msgspec.DecodeError as error:
        raise CommandError(f"{path}: {error}; {_SHAPE}") from error
    return {platform: _stored(path, platform, given) for platform, given in named.items()}


def profiles(stored: dict[Platform, StoredWeights]) -> dict[Platform, Weights]:
    """What is in force on every platform with these configurations."""
    return {platform: resolve(None, stored.get(platform), platform) for platform in PLATFORMS}


def _platforms(content: bytes) -> dict[Platform, PlatformWeights]:
    if "platforms" not in msgspec.json.decode(content, type=dict[str, msgspec.Raw]):
        return msgspec.json.decode(content, type=dict[Platform, PlatformWeights])
    listed = msgspec.json.decode(content, type=_Response).platforms
    return {
        one.platform: PlatformWeights(
            suspect_threshold=one.suspect_threshold,
            weights=one.weights,
            vpn_weights_mode=one.vpn_weights_mode,
            residential_proxy_weights_mode=one.residential_proxy_weights_mode,
        )
        for one in listed
    }


def _stored(path: Path, platform: Platform, given: PlatformWeights) -> StoredWeights:
    change = WeightsChange(
        threshold=given.suspect_threshold,
        weights=given.weights,
        vpn_mode=given.vpn_weights_mode,
        residential_proxy_mode=given.residential_proxy_weights_mode,
    )
    stored = changed(None, default_profile(platform), change, platform, 0)
    if isinstance(stored, Refusal):
        faults = ", ".join(f"{detail.field} ({detail.issue})" for detail in stored.details)
        raise CommandError(f"{path}: {platform}: {faults}; `svc signals` lists the signals of each platform")
    return stored
