"""Weights that an organization's own labels suggest (decisions 14.3).

What may live here: labeled outcomes and the weights in force in, other weights with precision and recall of both out.
What fits them is scikit-learn with scipy, of the optional extra `analysis`: they are imported when weights are fitted.

A logistic regression with non-negative coefficients and an L2 penalty is fitted to which signals fired. Its
coefficients are scaled so that the threshold keeps its meaning: as much of the fraud reaches it as now. A signal that
fired in fewer than 10 labeled events keeps its weight. Precision and recall are those of folds that were left out of
the fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

import msgspec

from svc.domain.labels.outcomes import Outcome
from svc.domain.model import Platform
from svc.domain.scoring.score import Weights
from svc.domain.scoring.signals import MAX_WEIGHT, signal_names

LEAST_LABELS: Final = 50
"""Events of each label."""
LEAST_EVENTS: Final = 10
"""Labeled events in which a signal fired, below which its weight stays."""
FOLDS: Final = 5
REPEATS: Final = 5
_PENALTY: Final = 1.0
"""Of the sum of squared coefficients, halved; the loss is summed over events, as with scikit-learn's `C` = 1."""
EXTRA: Final = "svc-visitor-id[analysis]"


class Quality(NamedTuple):
    """How well a score at or above the threshold tells fraud."""

    precision: float | None
    """Of the labeled events that reach it, those that are fraud; `None` = none reaches it."""
    recall: float | None
    """Of the fraud, that which reaches it."""


class SuggestedWeight(msgspec.Struct, frozen=True, kw_only=True):
    """The weight of one signal, now and as suggested."""

    signal: str
    before: int
    after: int
    events: int
    """Labeled events in which it fired."""
    fraud: int
    """Of these, fraud."""


class Suggestion(NamedTuple):
    """What the labels suggest for one platform."""

    fraud: int
    legitimate: int
    threshold: int
    weights: list[SuggestedWeight]
    """Of the signals that fired often enough, in the order of the catalog."""
    today: Quality
    suggested: Quality
    """Both by cross-validation."""


class Labeled(NamedTuple):
    """The labeled and scored events of one platform."""

    fired: list[frozenset[str]]
    is_fraud: list[bool]

    @property
    def fraud(self) -> int:
        """How many are fraud."""
        return sum(self.is_fraud)

    @property
    def legitimate(self) -> int:
        """How many are legitimate."""
        return len(self.is_fraud) - self.fraud

    @property
    def is_enough(self) -> bool:
        """Whether weights can be suggested from them."""
        return min(self.fraud, self.legitimate) >= LEAST_LABELS


def labeled_of(outcomes: Iterable[Outcome], platform: Platform) -> Labeled:
    """Return those of these outcomes that are labeled, scored and of this platform."""
    found = Labeled([], [])
    for outcome in outcomes:
        facts = outcome.facts
        if facts.label is not None and facts.score is not None and facts.platform == platform:
            found.fired.append(frozenset(facts.signals))
            found.is_fraud.append(facts.label == "fraud")
    return found


def is_installed() -> bool:
    """Return whether the library that fits weights can be imported."""
    return find_spec("sklearn") is not None


def _library(name: str) -> Any:
    """A module of the extra. Raises `ImportError` without it."""
    return import_module(name)


def suggest(labeled: Labeled, weights: Weights, platform: Platform) -> Suggestion:
    """Return weights for a platform, fitted to its labeled events, of which there must be enough. Takes up to some
    seconds. Raises `ImportError` without the extra.
    """
    events = Counter(name for fired in labeled.fired for name in fired)
    names = [name for name in signal_names(platform) if events[name] >= LEAST_EVENTS]
    data = _arrays(labeled, names, weights)
    counts = [0] * 6
    folds = _library("sklearn.model_selection").RepeatedStratifiedKFold
    for train, test in folds(n_splits=FOLDS, n_repeats=REPEATS, random_state=0).split(data.x, data.y):
        after = _fitted(data.part(train), weights.threshold)
        left_out = data.part(test)
        for at, scores in enumerate((left_out.x @ data.before + left_out.rest, left_out.x @ after + left_out.rest)):
            reached = scores >= weights.threshold
            counts[3 * at] += int((reached & left_out.y).sum())
            counts[3 * at + 1] += int(reached.sum())
            counts[3 * at + 2] += int(left_out.y.sum())
    after = _fitted(data, weights.threshold)
    frauds = Counter(
        name for fired, is_fraud in zip(labeled.fired, labeled.is_fraud, strict=True) if is_fraud for name in fired
    )
    return Suggestion(
        fraud=labeled.fraud,
        legitimate=labeled.legitimate,
        threshold=weights.threshold,
        weights=[
            SuggestedWeight(
                signal=name,
                before=weights.weights.get(name, 0),
                after=int(weight),
                events=events[name],
                fraud=frauds[name],
            )
            for name, weight in zip(names, after, strict=True)
        ],
        today=_quality(counts[:3]),
        suggested=_quality(counts[3:]),
    )


def _quality(counts: Sequence[int]) -> Quality:
    right, reached, fraud = counts
    return Quality(right / reached if reached else None, right / fraud if fraud else None)


class _Data(NamedTuple):
    """Events as arrays of numpy."""

    x: Any
    """Events by signals that are fitted: whether it fired."""
    y: Any
    """Whether it is fraud."""
    rest: Any
    """What the other signals add to the score, by the weights in force."""
    before: Any
    """The weights in force of those that are fitted."""

    def part(self, indexes: Any) -> _Data:
        """Some of the events."""
        return _Data(self.x[indexes], self.y[indexes], self.rest[indexes], self.before)


def _arrays(labeled: Labeled, names: Sequence[str], weights: Weights) -> _Data:
    numpy = _library("numpy")
    fitted = frozenset(names)
    return _Data(
        x=numpy.array([[name in fired for name in names] for fired in labeled.fired], dtype=float).reshape(
            len(labeled.fired), len(names)
        ),
        y=numpy.array(labeled.is_fraud),
        rest=numpy.array([sum(weights.weights.get(name, 0) for name in fired - fitted) for fired in labeled.fired]),
        before=numpy.array([weights.weights.get(name, 0) for name in names]),
    )


def _fitted(data: _Data, threshold: int) -> Any:
    """Weights of whole numbers whose score finds as much of the fraud as the weights in force do."""
    numpy = _library("numpy")
    coefficients = _regression(data, threshold)
    if not coefficients.any():
        return data.before
    wanted = int(((data.x @ data.before + data.rest >= threshold) & data.y).sum())
    best: tuple[float, int, Any] | None = None
    for cut in sorted(set((data.x @ coefficients)[data.y]), reverse=True):  # the larger, the smaller the weights
        if cut <= 0:
            break
        weights = numpy.clip(numpy.ceil(coefficients * (threshold / cut) - _ROUNDING), 0, MAX_WEIGHT)
        reached = data.x @ weights + data.rest >= threshold
        found, all_reached = int((reached & data.y).sum()), int(reached.sum())
        if found >= wanted and found:
            precision = found / all_reached
            if best is None or (precision, found) > best[:2]:
                best = precision, found, weights
    return data.before if best is None else best[2]


_ROUNDING: Final = 1e-6


def _regression(data: _Data, threshold: int) -> Any:
    """The coefficients of the signals: none is negative. What the others add to the score has one of its own, so that
    nothing of theirs is ascribed to a signal beside them; it is not used.
    """
    numpy, expit = _library("numpy"), _library("scipy.special").expit
    rows = numpy.column_stack([data.x, data.rest / threshold, data.y])
    patterns, times = numpy.unique(rows, axis=0, return_counts=True)
    x, y = patterns[:, :-1], patterns[:, -1]

    def loss(values: Any) -> tuple[float, Any]:
        linear = x @ values[1:] + values[0]
        penalty = _PENALTY * values[1:] @ values[1:] / 2
        slope = times * (expit(linear) - y)
        total = float((times * (numpy.logaddexp(0, linear) - y * linear)).sum() + penalty)
        return total, numpy.concatenate([[slope.sum()], x.T @ slope + _PENALTY * values[1:]])

    width = x.shape[1]
    bounds = [(None, None), *[(0, None)] * width]
    solved = _library("scipy.optimize").minimize(
        loss, numpy.zeros(width + 1), jac=True, bounds=bounds, method="L-BFGS-B"
    )
    return solved.x[1:-1]
