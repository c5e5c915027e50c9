"""Calibration: how often link decisions of one kind turn out right, so that 95 % means 95 %.

What may live here: the kinds of link decision, and the belief about each. Pure; nothing here knows a visitor.

The odds that `decision` arrives at rest on attributes that are taken for independent, and on rates that differ between
populations; what is left of both shows as a bias that depends on the kind of evidence. A logistic curve for each kind
takes it out (Platt, "Probabilistic Outputs for Support Vector Machines", 1999). `bench.linkage.curves` fits them.
"""

from __future__ import annotations

import math
from typing import Final

from svc.identify.matching import parameters

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
