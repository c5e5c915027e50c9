"""Calibration: how often link decisions of one kind turned out right, so that 95 % means 95 %.

What may live here: the kinds of link decision, the built-in belief about each, and the counts of an organization that
correct it. Pure but for `Calibration.learn`; nothing here knows a visitor.

The odds that `decision` arrives at rest on attributes that are taken for independent, and on rates that differ between
populations; what is left of both shows as a bias that depends on the kind of evidence. Two steps take it out: a
logistic curve for each kind (Platt, "Probabilistic Outputs for Support Vector Machines", 1999), and the ratio of wrong
answers to those expected among the samples of this organization (a standardised ratio, shrunk towards one).

Samples come of visits that a token has proven. Each is judged as if it had come without the token, twice: as it is (a
return: right when the answer is the token's visitor), and with that visitor left out (a new device: no answer would be
right). The two count by how often such visits are returns.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from svc.domain.matching import parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

NEAR, CROWDED, WIDE, UNKNOWN, HIDDEN, FAR = range(6)
"""Whence the report comes: a network that the visitor used before, the same one shared with many devices, one in the
same wide network, unknown now as it was before (VPN, Tor, relay, proxy), unknown now or always before, elsewhere."""
SURROUNDINGS: Final = 6
KINDS: Final = 4 * SURROUNDINGS
"""Each of those with a changed report, then with one that was seen before; both without a token, then with one."""
BANDS: Final = len(parameters.BAND_EDGES) + 1


def kind_of(network_context: int, *, exact: bool, token: bool) -> int:
    """The kind of a link decision, 0 to `KINDS` - 1. `network_context` is one of `NEAR` to `FAR`; `exact`: the report
    was seen before; `token`: the visit brought a token that is not known.
    """
    return network_context + SURROUNDINGS * (exact + 2 * token)


def logit(probability: float) -> float:
    """Log odds of a probability, limited to about ±13.8 so that 0 and 1 stay finite."""
    bounded = min(max(probability, 1e-6), 1.0 - 1e-6)
    return math.log(bounded / (1.0 - bounded))


def expected(kind: int, probability: float, prior: float) -> float:
    """The built-in belief that an answer of this kind with this raw probability is right.

    `prior`: the share of returns among such visits. It counts in full, the evidence beside it at a discount.
    """
    intercept, slope = parameters.CALIBRATION[kind]
    before = logit(prior)
    return 1.0 / (1.0 + math.exp(-(before + intercept + slope * (logit(probability) - before))))


def band_of(probability: float) -> int:
    """Index, 0 to `BANDS` - 1, of the band in which a raw probability is counted (`parameters.BAND_EDGES`)."""
    return sum(probability >= edge for edge in parameters.BAND_EDGES)


class CalibrationSample(msgspec.Struct, frozen=True, gc=False):
    """One link decision whose truth is known. `prior` is the share of returns among such visits, `weight` how much the
    sample counts.
    """

    kind: int
    probability: float
    """Raw, as it was judged."""
    prior: float
    right: bool
    weight: float


class Calibration(msgspec.Struct, gc=False):
    """The counts of the calibration samples of one organization: `KINDS` times `BANDS` numbers, three times."""

    taken: int = 0
    samples: list[float] = msgspec.field(default_factory=lambda: [0.0] * (KINDS * BANDS), name="trials")
    wrong: list[float] = msgspec.field(default_factory=lambda: [0.0] * (KINDS * BANDS))
    expected_wrong: list[float] = msgspec.field(default_factory=lambda: [0.0] * (KINDS * BANDS))

    def learn(self, samples: Sequence[CalibrationSample]) -> None:
        """Count the samples of one visit. A cell that holds `SAMPLES_REMEMBERED` is halved first, so that old samples
        fade.
        """
        self.taken += 1
        for sample in samples:
            cell = sample.kind * BANDS + band_of(sample.probability)
            if self.samples[cell] >= parameters.SAMPLES_REMEMBERED:
                for counts in (self.samples, self.wrong, self.expected_wrong):
                    counts[cell] /= 2.0
            self.samples[cell] += sample.weight
            self.wrong[cell] += sample.weight * (not sample.right)
            self.expected_wrong[cell] += sample.weight * (1.0 - expected(sample.kind, sample.probability, sample.prior))

    def probability(self, kind: int, raw: float, prior: float) -> float:
        """The probability that a link decision of this kind with this raw probability is right, 0 to 1: the built-in
        belief, corrected by the ratio of wrong to expected wrong decisions of this organization.
        """
        cell = kind * BANDS + band_of(raw)
        right = expected(kind, raw, prior)
        if kind % SURROUNDINGS >= WIDE:
            # Nothing of this organization has confirmed the belief yet; it came from others.
            caution = parameters.CAUTION * parameters.CAUTION_SAMPLES / (parameters.CAUTION_SAMPLES + self.taken)
            right = right / (right + (1.0 - right) * math.exp(caution))
        shrink = parameters.CALIBRATION_SHRINK
        ratio = (self.wrong[cell] + shrink) / (self.expected_wrong[cell] + shrink)
        low, high = parameters.CALIBRATION_BOUNDS
        return max(1.0 - min(max(ratio, low), high) * (1.0 - right), 0.0)
