"""Chance: how many other devices of an organization look like a report, in what it and a visitor agree on.

What may live here: expected numbers of twins, from frequencies and block counts. Pure; nothing here knows a visitor.

Agreement is a bit mask over `Attribute`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from svc.identify.matching import blocks, parameters
from svc.identify.matching.learned.statistics import HARDWARE, LOCALE
from svc.identify.matching.parameters import ATTRIBUTE_COUNT
from svc.identify.model import Attribute

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from svc.identify.matching.features import Features
    from svc.identify.matching.learned.statistics import Statistics

Weights = tuple[tuple[int, float], ...]
"""(attribute, weight of its agreement)"""
BIT: Final = tuple(1 << attribute for attribute in range(ATTRIBUTE_COUNT))
ALL_AGREE: Final = (1 << ATTRIBUTE_COUNT) - 1


def bits_of(attributes: Sequence[Attribute]) -> int:
    """Return the bit mask in which exactly these attributes are set."""
    return sum(BIT[attribute] for attribute in attributes)


_HARDWARE_BITS: Final = bits_of(parameters.HARDWARE_PARTS)
_LOCALE_BITS: Final = bits_of(parameters.LOCALE_PARTS)
_LOCALE_AND_FIRST_BITS: Final = bits_of((*parameters.LOCALE_PARTS, Attribute.FIRST_LANGUAGE))
_COVERED_BITS: Final = tuple((kind, bits_of(covered)) for kind, covered in blocks.COVERED.items())
_WEIGHTS: Final[Weights] = tuple((int(attribute), parameters.AGREEMENT_WEIGHT[attribute]) for attribute in Attribute)


class _Parts(NamedTuple):
    """The parts that an agreement counts by: the same for every report and visitor."""

    hardware: bool
    locale: bool
    """Whether these agree as a whole, and so count jointly."""
    singly: Weights
    """The attributes that count singly then."""
    blocks: tuple[tuple[int, Weights], ...]
    """(kind, what it does not cover) of the blocks in which all stand that agree as much."""


_ALL_OF_IT: Final = ((blocks.EXACT, ()),)
"""As `_Parts.blocks`, of a report that was sent before."""


@lru_cache(maxsize=1024)
def _parts(agreement: int) -> _Parts:
    hardware = agreement & _HARDWARE_BITS == _HARDWARE_BITS
    locale = agreement & _LOCALE_BITS == _LOCALE_BITS
    jointly = (_HARDWARE_BITS if hardware else 0) | (_LOCALE_AND_FIRST_BITS if locale else 0)
    covering = tuple(
        (kind, _weights(agreement & ~covered)) for kind, covered in _COVERED_BITS if agreement & covered == covered
    )
    return _Parts(hardware, locale, _weights(agreement & ~jointly), covering)


def _weights(agreement: int) -> Weights:
    return tuple(weight for weight in _WEIGHTS if agreement & BIT[weight[0]])


class Chance:
    """The number of other devices that agree with a report by chance. `counts`: the counts of the report's blocks that
    were read, by kind of block.
    """

    def __init__(self, features: Features, counts: Mapping[int, float], statistics: Statistics) -> None:
        self.devices = max(statistics.devices(features.family), 1.0)
        self._log_devices = math.log(self.devices)
        self._logs = statistics.log_frequencies(features)
        self._log_version = math.log(statistics.version_share(features))
        self._counts = counts
        self._known: dict[tuple[int, bool, bool], float] = {}

    def distinct(self) -> bool:
        """Return whether the report distinguishes devices: fewer than e^-3 (0.05) other devices of its class are
        expected to have all its values.
        """
        return self._by_frequency(ALL_AGREE) < -3.0

    def log_share(self, agreement: int, *, same_version: bool) -> float:
        """Return the log of the share of the class's devices that agree on the attributes of this bit mask."""
        return self._by_frequency(agreement) - self._log_devices + (self._log_version if same_version else 0.0)

    def log_twins(self, agreement: int, *, same_version: bool, exact: bool) -> float:
        """Return the log of the expected number of *other* devices of the organization that agree on these attributes:
        class size times the frequencies of the agreed values, kept close to what the block counts show.
        """
        key = (agreement, same_version, exact)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._log_twins(agreement, same_version=same_version, exact=exact)
        return known

    def _log_twins(self, agreement: int, *, same_version: bool, exact: bool) -> float:
        expected = self._by_frequency(agreement)
        if same_version:
            expected += self._log_version
        if expected < 0.0:
            expected += min(parameters.RARE_TOGETHER, -0.5 * expected)
        at_least: float | None = None
        for kind, beside in _ALL_OF_IT if exact else _parts(agreement).blocks:
            count = self._counts.get(kind)
            if count is None:
                continue
            seen = max(count - 1.0, 0.0)
            expected = min(expected, math.log(seen + parameters.UNSEEN_TWINS))
            # Of those that the block shows, as many as agree on what it does not cover, too.
            agreeing = self._plus(math.log(seen), beside) if seen > 0.0 else -math.inf
            at_least = agreeing if at_least is None else min(at_least, agreeing)
        return expected if at_least is None else max(expected, at_least)

    def _by_frequency(self, agreement: int) -> float:
        logs = self._logs
        hardware, locale, singly, _ = _parts(agreement)
        jointly = self._log_devices + (logs[HARDWARE] if hardware else 0.0) + (logs[LOCALE] if locale else 0.0)
        return self._plus(jointly, singly)

    def _plus(self, total: float, weights: Weights) -> float:
        logs = self._logs
        for attribute, weight in weights:
            total += weight * logs[attribute]
        return total
