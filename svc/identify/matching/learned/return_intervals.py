"""What returns teach: after how many days visitors come back, which TLS handshakes they show, and how often a
token that joined a visitor is another device's.

What may live here: the counts of absences that ended in a proven return, the factors by which they correct the built-in
belief about recency, and a bounded table of handshakes. Pure but for what learns; nothing here knows a report.

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
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from svc.identify.matching import parameters
from svc.identify.matching.parameters import APART, APART_OF_CLASS, APART_REMEMBERED, CHANGE_DAYS

_DAY_S: Final = 86_400
ROW_OF_DAY: Final = tuple(
    min(range(len(CHANGE_DAYS)), key=lambda row: abs(CHANGE_DAYS[row] - day)) for day in range(CHANGE_DAYS[-1] + 1)
)
"""Days of absence -> the row of `CHANGE_DAYS` that they belong to."""
_ROWS: Final = len(CHANGE_DAYS)
_DAYS_IN_ROW: Final = tuple(ROW_OF_DAY.count(row) for row in range(_ROWS))


def usual_recency(gap_days: float) -> float:
    """Return the built-in belief: how much likelier than others a visitor that has been away for so long is to come
    now.
    """
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
