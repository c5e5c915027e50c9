"""Renderings: which images and sounds the devices of one release compute, so that an invented one stands out.

What may live here: the bounded tables of canvas and audio values by release, what they answer, and how they
learn. Pure.

A release is an engine with its major version, a system and a graphics renderer. Its devices compute few values. A value
that none of them has shows an invention where new values hardly ever come: as many devices have a value of their own as
the next one will (Good, Biometrika 1953), so that a release with many such tells nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from svc.domain.model import Attribute

if TYPE_CHECKING:
    from svc.domain.matching.features import Features

ENOUGH_DEVICES: Final = 50
"""Of a release that have a value, before another one is unseen (decisions 18.6)."""
MAX_SINGLE: Final = 0.02
"""Share of its devices with a value of their own; a release with more has new ones all the time."""
MAX_RELEASES: Final = 128
MAX_VALUES: Final = 32
"""Values of a release. One with more tells nothing."""
COMPUTED: Final = {Attribute.CANVAS: "canvas_never_seen", Attribute.AUDIO: "audio_never_seen"}
"""What is compared -> the evidence of a value that no device has."""


class Rendering(msgspec.Struct, gc=False):
    """What the devices of a release compute."""

    values: list[dict[int, int]] = msgspec.field(default_factory=lambda: [{} for _ in COMPUTED])
    """Value -> devices, for each attribute of `COMPUTED`."""
    varies: bool = False
    """It had too many values."""


Renderings = dict[int, Rendering]
"""Release -> what it computes; the latest last."""


def unseen(renderings: Renderings, features: Features) -> tuple[str, ...]:
    """Return evidence of values that no known device of the release has, where enough are known; about 1 µs."""
    known = renderings.get(features.release) if features.release else None
    if known is None or known.varies:
        return ()
    return tuple(
        evidence
        for (attribute, evidence), values in zip(COMPUTED.items(), known.values, strict=True)
        if features.values[attribute] and features.values[attribute] not in values and _is_settled(values)
    )


def is_known(renderings: Renderings, features: Features) -> bool:
    """Return whether each value of the report is one of the release's."""
    known = renderings.get(features.release)
    return known is not None and all(
        not features.values[attribute] or features.values[attribute] in values
        for attribute, values in zip(COMPUTED, known.values, strict=True)
    )


def _is_settled(values: dict[int, int]) -> bool:
    devices = sum(values.values())
    single = sum(count == 1 for count in values.values())
    return devices >= ENOUGH_DEVICES and single <= MAX_SINGLE * devices


def learn(renderings: Renderings, features: Features) -> None:
    """Count a device. Of too many releases, the one that was seen longest ago goes, small ones first."""
    if not features.release:
        return
    known = renderings.pop(features.release, None) or Rendering()
    renderings[features.release] = known
    if len(renderings) > MAX_RELEASES:
        oldest = list(renderings)[:-1]
        del renderings[next((each for each in oldest if _devices(renderings[each]) < ENOUGH_DEVICES), oldest[0])]
    if known.varies:
        return
    for attribute, values in zip(COMPUTED, known.values, strict=True):
        value = features.values[attribute]
        if value:
            values[value] = values.get(value, 0) + 1
    if any(len(values) > MAX_VALUES for values in known.values):
        known.values, known.varies = [{} for _ in COMPUTED], True


def _devices(known: Rendering) -> int:
    return max(sum(values.values()) for values in known.values)
