"""Likelihoods: how likely a report's differences from a record are, how many others agree with it by chance, and how
often link decisions of one kind turn out right.

What may live here: the terms of a link decision. What follows from them is the business of `decision`. Agreement and
difference are bit masks over `Attribute`.

The odds that `decision` arrives at rest on attributes that are taken for independent, and on rates that differ between
populations; what is left of both shows as a bias that depends on the kind of evidence. A logistic curve for each kind
takes it out (Platt, "Probabilistic Outputs for Support Vector Machines", 1999). `bench.linkage.curves` fits them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from svc.identify.matching import blocks, parameters
from svc.identify.matching.changes import ChangeRow
from svc.identify.matching.features import Features
from svc.identify.matching.lessons import ROW_OF_DAY
from svc.identify.matching.parameters import ATTRIBUTE_COUNT
from svc.identify.matching.statistics import HARDWARE, LOCALE, Statistics
from svc.identify.matching.visitor import Visitor
from svc.identify.model import Attribute

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
    """The number of other devices that agree with a report by chance. `counts`: of its blocks, by kind."""

    def __init__(self, features: Features, counts: Mapping[int, float], statistics: Statistics) -> None:
        self.devices = max(statistics.devices(features.family), 1.0)
        self._log_devices = math.log(self.devices)
        self._logs = statistics.log_frequencies(features)
        self._log_version = math.log(statistics.version_share(features))
        self._counts = counts
        self._known: dict[tuple[int, bool, bool], float] = {}

    def distinct(self) -> bool:
        """Return whether fewer than e^-3 (0.05) other devices of the class are expected to have all its values."""
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


_FONTS, _REST = _SETS = int(Attribute.FONTS), int(Attribute.REST)
LEADERS: Final = tuple(
    tuple(
        0 if leader is None or (leader is Attribute.CANVAS and not upgraded) else BIT[leader]
        for leader in map(parameters.FOLLOWS.get, Attribute)
    )
    for upgraded in (False, True)
)
"""[version changed][attribute] -> bit of the attribute whose change explains it."""
INDEPENDENT: Final = sum(BIT[attribute] for attribute in Attribute if attribute not in parameters.FOLLOWS)


def differences(features: Features, visitor: Visitor) -> int:
    """Return the bit mask over `Attribute` of the values that changed or are no longer reported; a value that the
    visitor had before is not a change.
    """
    differing, attribute = 0, -1
    for new, old in zip(features.values, visitor.values, strict=True):
        attribute += 1
        if new != old and old and (attribute, new) not in visitor.former:
            differing |= BIT[attribute]
    return differing


def compare(features: Features, visitor: Visitor, logs: ChangeRow, leaders: tuple[int, ...]) -> tuple[float, int]:
    """Return the log likelihood of the differences if it is the same device, and the bit mask of the agreeing
    attributes. `logs`: a row of `change_table`; `leaders`: the mask of those that each attribute follows, 0 = none.
    """
    log_kept, log_changed = logs
    former = visitor.former
    likelihood, agreement = 0.0, 0
    for new, old, kept, bit in zip(features.values, visitor.values, log_kept, BIT, strict=True):
        if new == old:
            agreement |= bit
            if new:
                likelihood += kept
        elif new and old:
            attribute = bit.bit_length() - 1
            leader = leaders[attribute]
            followed = leader and not agreement & leader
            if former and (attribute, new) in former:
                likelihood += parameters.LOG_HABIT_FOLLOWED if followed else parameters.LOG_HABIT
                agreement |= bit
            elif followed:
                likelihood += parameters.LOG_FOLLOWED
            else:
                change = log_changed[attribute]
                if attribute in _SETS:
                    change += _set_correction(features, visitor, attribute)
                likelihood += change
                if former:
                    times = sum(known == attribute for known, _ in former)
                    likelihood += parameters.LOG_CHANGED_BEFORE * math.log1p(times)
    return likelihood, agreement


def _set_correction(features: Features, visitor: Visitor, attribute: int) -> float:
    """Return a correction for a changed set, by how much of it stayed."""
    if attribute == _FONTS:
        ours, theirs = features.font_sketch, visitor.font_sketch
        if ours and theirs:
            return parameters.LOG_NEAR_FONTS if _near(ours, theirs) else parameters.LOG_FAR_FONTS
    elif attribute == _REST:
        ours, theirs = features.rest_sketch, visitor.rest_sketch
        if ours and theirs:
            return parameters.LOG_NEAR_REST if _near(ours, theirs) else parameters.LOG_FAR_REST
    return 0.0


def row_of(gap_days: int) -> int:
    """Return the index in a `ChangeTable`, within one number of releases, of the row for a gap of `gap_days`."""
    return ROW_OF_DAY[min(gap_days, len(ROW_OF_DAY) - 1)]


def is_other_program(features: Features, visitor: Visitor, gap_s: int) -> bool:
    """Return whether the browser version fell by releases since the visitor's last visit, or rose by many within days:
    then it is another program with the same engine, such as an app with an engine of its own.
    """
    ours, theirs = features.browser_version, visitor.browser_version
    if not ours or not theirs:
        return False
    leapt = ours - theirs >= parameters.LEAPS_TENTHS and gap_s < parameters.LEAPS_WITHIN_S
    return leapt or theirs - ours >= parameters.FALLS_TENTHS


def changed_first(ahead: Visitor, behind: Visitor, features: Features) -> bool:
    """Return whether the report is what `behind` would send after the changes that `ahead` had already: two equal
    devices, of which one was updated before the other.
    """
    if 0 < features.browser_version < behind.browser_version or 0 < features.os_release < behind.os_release:
        return False
    former = ahead.former
    return all(
        new == old or not new or not old or (attribute, old) in former
        for attribute, (new, old) in enumerate(zip(features.values, behind.values, strict=True))
    )


def other_version(features: Features, visitor: Visitor) -> float:
    """Return the log likelihood of another browser or system version on the same device, lower for each version that
    decreased. The changes that a version causes in the report are not included.
    """
    downgrades = (0 < features.browser_version < visitor.browser_version) + (
        0 < features.os_release < visitor.os_release
    )
    likelihood = parameters.LOG_OTHER_VERSION + downgrades * parameters.LOG_VERSION_DOWN
    if features.browser_version and features.family == visitor.family:
        fallen = visitor.browser_version - features.browser_version - 10
        likelihood += parameters.LOG_TENTH_DOWN * max(fallen, 0)
    return likelihood


def _near(ours: int, theirs: int) -> bool:
    return 4 * (ours & theirs).bit_count() >= 3 * (ours | theirs).bit_count()


NEAR, CROWDED, WIDE, UNKNOWN, HIDDEN, FAR = range(6)
"""Where the report comes from: a network that the visitor used before, the same one shared with many devices, one in
the same wide network, unknown now as before (VPN, Tor, relay, proxy), unknown now or always before, elsewhere."""
SURROUNDINGS: Final = 6
KINDS: Final = 4 * SURROUNDINGS
"""Each of those with a changed report, then with one that was seen before; both without a token, then with one."""


def kind_of(network_context: int, *, exact: bool, token: bool) -> int:
    """Return the kind of a link decision, 0 to `KINDS` - 1. `network_context` is one of `NEAR` to `FAR`; `exact`: the
    report was seen before; `token`: the visit brought a token that is not known.
    """
    return network_context + SURROUNDINGS * (exact + 2 * token)


def logit(probability: float) -> float:
    """Log odds of a probability, limited to about ±13.8 so that 0 and 1 stay finite."""
    bounded = min(max(probability, 1e-6), 1.0 - 1e-6)
    return math.log(bounded / (1.0 - bounded))


def calibrated(kind: int, raw: float, prior: float, caution: float) -> float:
    """Return the probability that a link decision of this kind with this raw probability is right, 0 to 1.

    `prior`: the share of returns among such visits. It counts in full, the evidence beside it at a discount. `caution`:
    log odds taken off where the visitor is not known to be (`Statistics.caution`).
    """
    intercept, slope = parameters.CALIBRATION[kind]
    before = logit(prior)
    doubt = caution if kind % SURROUNDINGS >= WIDE else 0.0
    return 1.0 / (1.0 + math.exp(doubt - (before + intercept + slope * (logit(raw) - before))))
