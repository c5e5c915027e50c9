"""The file of `svc replay --weights`: other risk weights to score with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from svc.cli.output import CommandError
from svc.domain.model import PLATFORMS, Platform
from svc.domain.refusals import Refusal
from svc.domain.scoring.score import Weights, default_profile
from svc.domain.scoring.signals import Mode
from svc.domain.scoring.weights import StoredWeights, changed, resolve
from svc.domain.text_files import NotTextError, decode_text
from svc.http.management.schema import SaveWeightsBody
from svc.http.management.weights import weights_change

_SHAPE = (
    'write {"web": {"suspect_threshold": 40, "weights": {"tor": 50}}}, as for PUT .../risk-weights/{platform}, or give '
    "the response of GET .../risk-weights"
)


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
    try:
        named = _platforms(decode_text(path.read_bytes()))
    except NotTextError as error:
        raise CommandError(f"{path} {error}") from error
    except msgspec.DecodeError as error:
        raise CommandError(f"{path}: {error}; {_SHAPE}") from error
    return {platform: _stored(path, platform, given) for platform, given in named.items()}


def profiles(stored: dict[Platform, StoredWeights]) -> dict[Platform, Weights]:
    """Platform -> weights in force with these configurations; the defaults where a platform has none."""
    return {platform: resolve(None, stored.get(platform), platform) for platform in PLATFORMS}


def _platforms(content: str) -> Mapping[Platform, SaveWeightsBody]:
    if "platforms" not in msgspec.json.decode(content, type=dict[str, msgspec.Raw]):
        return msgspec.json.decode(content, type=dict[Platform, SaveWeightsBody])
    listed = msgspec.json.decode(content, type=_Response).platforms
    return {one.platform: msgspec.convert(one, SaveWeightsBody, from_attributes=True) for one in listed}


def _stored(path: Path, platform: Platform, given: SaveWeightsBody) -> StoredWeights:
    """The revision of `given` is not looked at: nothing is saved."""
    stored = changed(None, default_profile(platform), weights_change(given), platform, 0)
    if isinstance(stored, Refusal):
        faults = ", ".join(f"{detail.field} ({detail.issue})" for detail in stored.details)
        raise CommandError(f"{path}: {platform}: {faults}; `svc signals` lists the signals of each platform")
    return stored
