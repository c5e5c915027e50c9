"""Renderings: which images and sounds the devices of one release compute, so that an invented one stands out.

What may live here: the bounded tables of canvas and audio values by release, what they answer, and how they learn.
Pure.

A release is an engine with its major version, a system and a graphics renderer. Its devices compute few values. The
share of them that have a value of their own is how likely the next one has another (Good, Biometrika 1953), so that a
release with many such tells nothing. Only devices that came back on another day say so: what a program invents does not
come back, and must not make the release look as if it varied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from svc.identify.model import Attribute

if TYPE_CHECKING:
    from svc.identify.matching.features import Features

ENOUGH_DEVICES: Final = 50
"""Of a release that have a value, before another one is unseen (decisions 18.6)."""
MAX_SINGLE: Final = 0.02
"""Of the devices of a release that came back, the share that may have a value of their own, beside one such device."""
MAX_RELEASES: Final = 128
MAX_VALUES: Final = 48
"""Values of a release. Of more, those of one device that did not come back go first."""
COMPUTED: Final = (Attribute.CANVAS, Attribute.AUDIO)
"""What is compared."""

Rendered = Literal["", "new", "back", "moved"]
"""What a visit teaches: nothing; the values of a new device; that a device came back on another day, with the release
that it had or with another one."""


class Values(msgspec.Struct, gc=False):
    """The values of one attribute."""

    devices: int = 0
    seen: dict[int, int] = msgspec.field(default_factory=dict[int, int])
    """Value -> devices that had it first; the latest last."""
    back: dict[int, int] = msgspec.field(default_factory=dict[int, int])
    """Value -> devices that came back with it."""


class Rendering(msgspec.Struct, gc=False):
    """What the devices of a release compute, for each attribute of `COMPUTED`."""

    values: list[Values] = msgspec.field(default_factory=lambda: [Values() for _ in COMPUTED])


Renderings = dict[int, Rendering]
"""Release -> what it computes; the latest last."""


def unseen(renderings: Renderings, features: Features) -> tuple[Attribute, ...]:
    """Return the attributes whose value no known device of the release has, where enough are known; about 1 µs."""
    known = renderings.get(features.release) if features.release else None
    if known is None:
        return ()
    return tuple(
        attribute
        for attribute, values in zip(COMPUTED, known.values, strict=True)
        if features.values[attribute] and features.values[attribute] not in values.seen and _is_settled(values)
    )


def _is_settled(values: Values) -> bool:
    if values.devices < ENOUGH_DEVICES:
        return False
    single = sum(count == 1 for count in values.back.values())
    return single <= 1 + MAX_SINGLE * sum(values.back.values())


def learn(renderings: Renderings, features: Features, rendered: Rendered) -> None:
    """Count a device. Of too many releases, the one that was seen longest ago goes, small ones first."""
    if not features.release:
        return
    known = renderings.pop(features.release, None) or Rendering()
    renderings[features.release] = known
    if len(renderings) > MAX_RELEASES:
        oldest = list(renderings)[:-1]
        small = (each for each in oldest if max(one.devices for one in renderings[each].values) < ENOUGH_DEVICES)
        del renderings[next(small, oldest[0])]
    for attribute, values in zip(COMPUTED, known.values, strict=True):
        value = features.values[attribute]
        if not value:
            continue
        if rendered != "back" or value not in values.seen:
            values.devices += 1
            values.seen[value] = values.seen.pop(value, 0) + 1
        if rendered != "new":
            values.back[value] = values.back.get(value, 0) + 1
        _keep_bounded(values)


def _keep_bounded(values: Values) -> None:
    if len(values.seen) > MAX_VALUES:
        seen = values.seen
        dispensable = (each for each, count in seen.items() if count == 1 and each not in values.back)
        gone = next(dispensable, None) or min(seen, key=seen.__getitem__)
        del seen[gone]
        values.back.pop(gone, None)
