"""What one visit teaches, and what an organization's visits taught: after how many days visitors come back, which TLS
handshakes browsers show, how often a token that joined a visitor is another device's, and which images and sounds the
devices of a release compute.

What may live here: a lesson as data, made in the visit's transaction and applied once it is on the disk; and the
bounded tables that learn from it. Pure but for what learns.

A program that pretends to be a browser makes new visitors, and teaches the table of handshakes nothing. No list of
fingerprints is needed, and none ages.

A known visitor that has been away for g days is the likelier one to stand behind a visit, the more often visitors of
that absence come back on such a day (the hazard of a return, as in survival analysis). The built-in curve falls with
the absence, as visits to most sites do. A site that is used on workdays, or that sends a letter every week, is another
case: there, a visitor who was here a week ago is expected. ReturnIntervals only raises the odds of an expected visitor
(`parameters.RETURN_INTERVALS_BOUNDS`): one that comes back late, or early, is judged by the built-in curve.

The factors are observed over expected returns by days of absence (a standardized ratio, shrunk towards one), where the
expected ones follow the built-in curve and add up to the observed ones. Only returns that a token or the visitor's own
network has proven are counted: those that were judged by recency would confirm what they rest on.

A release is an engine with its major version, a system and a graphics renderer. Its devices compute few values. The
share of them that have a value of their own is how likely the next one has another (Good, Biometrika 1953), so that a
release with many such tells nothing. Only devices that came back on another day say so: what a program invents does not
come back, and must not make the release look as if it varied.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from svc.identify.matching import parameters
from svc.identify.matching.features import Features
from svc.identify.matching.parameters import APART, APART_OF_CLASS, APART_REMEMBERED, CHANGE_DAYS
from svc.identify.matching.visitor import Visitor
from svc.identify.model import Attribute

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


def unseen_renderings(renderings: Renderings, features: Features) -> tuple[Attribute, ...]:
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


def learn_rendering(renderings: Renderings, features: Features, rendered: Rendered) -> None:
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


_DAY_S: Final = 86_400
ROW_OF_DAY: Final = tuple(
    min(range(len(CHANGE_DAYS)), key=lambda row: abs(CHANGE_DAYS[row] - day)) for day in range(CHANGE_DAYS[-1] + 1)
)
"""Days of absence -> the row of `CHANGE_DAYS` that they belong to."""
_ROWS: Final = len(CHANGE_DAYS)
_DAYS_IN_ROW: Final = tuple(ROW_OF_DAY.count(row) for row in range(_ROWS))


def usual_recency(gap_days: float) -> float:
    """Return the built-in belief how much likelier than others a visitor away for so long is to come now."""
    low, high = parameters.GAP_BOUNDS
    return min(max(parameters.GAP_DAYS / (gap_days + parameters.GAP_DAYS / 3), low), high)


_USUAL: Final = tuple(usual_recency(day + 0.5) for day in CHANGE_DAYS)


class ReturnIntervals(msgspec.Struct, gc=False):
    """The returns of one scope of an organization by days of absence, in the rows of `CHANGE_DAYS`."""

    visits: float = 0.0
    """Visits that a return could follow."""
    returns: list[float] = msgspec.field(default_factory=lambda: [0.0] * _ROWS)
    since_s: int = 0
    """When the first visitor that came back was first seen; 0 = none came back."""
    factors: list[float] = msgspec.field(default_factory=lambda: [1.0] * _ROWS)

    def recency(self, gap_days: float) -> float:
        """Return how much likelier than others a visitor that has been away for so long is to come now."""
        return usual_recency(gap_days) * self.factors[ROW_OF_DAY[min(int(gap_days), CHANGE_DAYS[-1])]]

    def learn(self, days: int | None, first_seen_s: int, now_s: int) -> None:
        """Count a visit: a proven return, after a number of whole days, of a visitor that was first seen then.
        `days` is `None` if nothing is proven.
        """
        self.visits += 1.0
        if days is None:
            return
        self.since_s = min(self.since_s or first_seen_s, first_seen_s)
        self.returns[ROW_OF_DAY[min(days, CHANGE_DAYS[-1])]] += 1.0
        returned = sum(self.returns)
        if returned % parameters.RETURN_INTERVALS_EVERY < 1.0:
            self._refresh((now_s - self.since_s) / _DAY_S, returned)
        if returned >= parameters.RETURN_INTERVALS_MEMORY:
            self.visits /= 2.0
            self.returns = [count / 2.0 for count in self.returns]

    def _refresh(self, known_days: float, returned: float) -> None:
        """Compute the factors again, `known_days` after the first visit."""
        away, expected = max(self.visits, returned), [0.0] * _ROWS
        for row, count in enumerate(self.returns):
            # Of visits spread over the known days, so many are that old.
            at_risk = max(away - count / 2.0, 0.0) * max(1.0 - CHANGE_DAYS[row] / max(known_days, 1.0), 0.0)
            expected[row] = at_risk * _DAYS_IN_ROW[row] * _USUAL[row]
            away -= count
        scale = returned / max(sum(expected), 1e-9)
        shrink = parameters.RETURN_INTERVALS_SHRINK
        low, high = parameters.RETURN_INTERVALS_BOUNDS
        self.factors = [
            min(max((count + shrink) / (scale * share + shrink), low), high)
            for count, share in zip(self.returns, expected, strict=True)
        ]


Handshakes: TypeAlias = dict[int, dict[int, float]]
"""Major version of the browser -> 32-bit hash of the fingerprint -> visits."""

VERSIONS: Final = 8
FINGERPRINTS: Final = 24
"""Of one version: antivirus programs and companies' gateways put handshakes of their own in place of the browser's."""
ENOUGH: Final = 500
"""Visits of one version, before a handshake that none of them showed is called unusual."""
FADING: Final = 4_000.0
"""Visits of one version, from which on older ones count half."""


def learn_handshake(known: Handshakes, version: int, fingerprint: int) -> None:
    """Count one visit. The versions and fingerprints with the fewest visits are dropped where there are too many."""
    counts = known.get(version)
    if counts is None:
        if len(known) >= VERSIONS:
            del known[min(known, key=lambda other: (sum(known[other].values()), other))]
        counts = known[version] = {}
    if fingerprint not in counts and len(counts) >= FINGERPRINTS:
        del counts[min(counts, key=lambda other: (counts[other], other))]
    counts[fingerprint] = counts.get(fingerprint, 0.0) + 1.0
    if sum(counts.values()) > FADING:
        for each in counts:
            counts[each] /= 2


def is_unusual(known: Handshakes, version: int, fingerprint: int) -> bool:
    """Return whether none of the visits of this version, of which there are `ENOUGH`, showed this handshake."""
    counts = known.get(version)
    return counts is not None and fingerprint not in counts and sum(counts.values()) >= ENOUGH


class Successions(msgspec.Struct, gc=False):
    """Counts of tokens, of one class, or of all desktops or mobiles."""

    joined: float = 0.0
    """Tokens that joined a visitor beside an older one by likeness."""
    parted: float = 0.0
    """Those of them that turned out to be another device's."""

    def learn(self, joined: float, parted: float) -> None:
        """Count what one visit showed."""
        self.joined += joined
        self.parted += parted
        if self.joined > APART_REMEMBERED:
            self.joined /= 2.0
            self.parted /= 2.0


def share_apart(of_class: Successions, of_all: Successions) -> float:
    """Return the share, 0 to 1, of such tokens that are another device's. A class that saw few is taken for what all
    desktops, or all mobiles, are.
    """
    usual = (of_all.parted + APART[0]) / (of_all.joined + APART[1])
    share = (of_class.parted + APART_OF_CLASS * usual) / (of_class.joined + APART_OF_CLASS)
    return min(share, 1.0)


class StatisticsUpdate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one visit adds to the statistics. Data only, so that an undone transaction can drop it."""

    features: Features | None = None
    """`None`: nothing to learn."""
    new_devices: float = 0.0
    """How many devices the visit adds, by expectation, 0 to 1."""
    returned: float | None = None
    """Probability that it was a return, when it came without a known token and tells devices apart."""
    before: Visitor | None = None
    """The record that it surely belongs to, as it stood before the visit."""
    days: int = 0
    """Whole days since that visitor's last visit."""
    proven: bool = False
    """The link was proven by a token rather than judged."""
    returned_at_s: int = 0
    """When `before` came back, in seconds since 1970, where its token or its own network proves that; 0 = nothing."""
    twins_waited: bool = False
    """A token that had joined its visitor beside an older one came back for the first time, that one silent since."""
    twins_found: int = 0
    """How many such tokens turned out to be other devices', since the older one came back."""
    joined: bool = False
    """A new token joined its visitor beside an older one by likeness."""
    parted: float = 0.0
    """How many tokens that had joined so turned out to be another device's, by expectation, 0 to 1."""
    handshake: int = 0
    """32-bit hash of the fingerprint of its TLS handshake, where that is to be learned; 0 = nothing."""
    rendered: Rendered = ""
    """What it teaches of what devices compute."""


NOTHING: Final = StatisticsUpdate()
