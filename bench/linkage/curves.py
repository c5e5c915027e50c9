"""Fits the curves of calibration (`parameters.CALIBRATION`): how often link decisions of each kind turn out right.

    python -m bench.linkage.curves [--streams small every-7-days] [--data ../shared/data]

Puts the streams to the service's matching, with and without client tokens, with the devices that may be fitted on and
no others. Every visit that no token proves gives one sample: what kind of link decision it was, the probability before
calibration, and whether this browser had the visitor's id before. The fit is logistic (Newton's method, with a pull
towards the present curve that is worth `PULL` samples). Prints the tuple to put into `parameters`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from bench.linkage.inprocess import UncalibratedDecision, answers
from bench.linkage.streams import Stream, read_stream
from bench.usage import read_options
from svc.identify.matching import parameters
from svc.identify.matching.likelihood import KINDS, logit

STREAMS = ("small", "every-7-days")
PULL = 20.0
STEPS = 30
FEWEST_WRONG = 1
"""A kind with fewer wrong link decisions keeps the curve that it has."""


class Sample(NamedTuple):
    evidence: float
    """Log odds before calibration, less those of the prior."""
    prior: float
    """Log odds."""
    right: bool


def fitted_part(stream: Stream) -> Stream:
    """The stream of the devices that may be fitted on."""
    kept = [place for place, visit in enumerate(stream.visits) if not visit.held_out]
    return replace(
        stream, requests=[stream.requests[place] for place in kept], visits=[stream.visits[place] for place in kept]
    )


def samples(stream: Stream, *, with_tokens: bool) -> Iterator[tuple[int, Sample]]:
    """The kind of each link decision that named a visitor, and how it turned out."""
    judged: list[UncalibratedDecision] = []
    held: set[tuple[str, object]] = set()
    for visit, answer in zip(stream.visits, answers(stream, with_tokens=with_tokens, watch=judged.append), strict=True):
        for decision in judged:
            if decision.number is not None and decision.raw >= 0.02:
                prior = logit(decision.prior)
                right = (visit.browser, decision.number) in held
                yield decision.kind, Sample(logit(decision.raw) - prior, prior, right)
        judged.clear()
        held.add((visit.browser, answer.visitor))


def fit(found: Sequence[Sample], before: tuple[float, float], pull: float = PULL) -> tuple[float, float]:
    """Intercept and slope of the log odds of being right over `Sample.evidence`, the prior counted in full."""
    intercept, slope = before
    for _ in range(STEPS):
        gradient = [pull * (before[0] - intercept), pull * (before[1] - slope)]
        a, b, c = pull, 0.0, pull
        for evidence, prior, right in found:
            p = 1.0 / (1.0 + math.exp(-max(min(prior + intercept + slope * evidence, 30.0), -30.0)))
            gradient[0] += right - p
            gradient[1] += (right - p) * evidence
            weight = p * (1.0 - p)
            a, b, c = a + weight, b + weight * evidence, c + weight * evidence * evidence
        determinant = a * c - b * b
        step = ((c * gradient[0] - b * gradient[1]) / determinant, (a * gradient[1] - b * gradient[0]) / determinant)
        intercept, slope = intercept + step[0], max(slope + step[1], 0.1)
        if abs(step[0]) + abs(step[1]) < 1e-4:
            break
    return round(intercept, 1), round(slope, 2)


def curves(found: Iterable[tuple[int, Sample]]) -> list[tuple[float, float]]:
    """A curve for each kind, in the order of `parameters.CALIBRATION`."""
    by_kind: dict[int, list[Sample]] = defaultdict(list)
    for kind, sample in found:
        by_kind[kind].append(sample)
    fitted = list(parameters.CALIBRATION)
    for kind in range(KINDS):
        wrong = sum(not sample.right for sample in by_kind[kind])
        if wrong >= FEWEST_WRONG:
            fitted[kind] = fit(by_kind[kind], fitted[kind])
    return fitted


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(__doc__, arguments)
    streams = [fitted_part(read_stream(options.data / "linkage" / name)) for name in options.streams]
    found = (
        pair for stream in streams for with_tokens in (False, True) for pair in samples(stream, with_tokens=with_tokens)
    )
    print("CALIBRATION: Final = (")
    for curve in curves(found):
        print(f"    {curve},")
    print(")")


if __name__ == "__main__":
    main()
