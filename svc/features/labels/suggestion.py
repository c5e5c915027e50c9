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
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

import msgspec

from svc.features.labels.outcomes import Outcome
from svc.identify.scoring.score import Weights
from svc.identify.scoring.signals import MAX_WEIGHT, signal_names
from svc.kernel.values.fields import Platform

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


class Labeled:
    """The labeled and scored events of one platform, as counts: of each set of signals that fired together, the events
    of either label. There are far fewer such sets than events.
    """

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self.fraud_of = Counter[frozenset[str]]()
        self.legitimate_of = Counter[frozenset[str]]()

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Count those of these outcomes that are labeled, scored and of this platform."""
        for outcome in outcomes:
            facts = outcome.facts
            if facts.label is not None and facts.score is not None and facts.platform == self._platform:
                counts = self.fraud_of if facts.label == "fraud" else self.legitimate_of
                counts[frozenset(facts.signals)] += 1

    @property
    def fraud(self) -> int:
        """Return how many are fraud."""
        return self.fraud_of.total()

    @property
    def legitimate(self) -> int:
        """Return how many are legitimate."""
        return self.legitimate_of.total()

    @property
    def is_enough(self) -> bool:
        """Return whether weights can be suggested from them."""
        return min(self.fraud, self.legitimate) >= LEAST_LABELS


def is_installed() -> bool:
    """Return whether the library that fits weights can be imported."""
    return find_spec("sklearn") is not None


def _library(name: str) -> Any:
    """Import a module of the extra. Raises `ImportError` without it."""
    return import_module(name)


def suggest(labeled: Labeled, weights: Weights, platform: Platform) -> Suggestion:
    """Return weights for a platform, fitted to its labeled events, of which there must be enough. Takes up to some
    seconds. Raises `ImportError` without the extra.
    """
    frauds, legitimates = _by_signal(labeled.fraud_of), _by_signal(labeled.legitimate_of)
    events = frauds + legitimates
    names = [name for name in signal_names(platform) if events[name] >= LEAST_EVENTS]
    data = _arrays(labeled, names, weights)
    counts = [0] * 6
    for train, test in _folds(data):
        after = _fitted(train, weights.threshold)
        for at, chosen in enumerate((data.before, after)):
            reached = test.x @ chosen + test.rest >= weights.threshold
            counts[3 * at] += int(test.fraud[reached].sum())
            counts[3 * at + 1] += int(test.events[reached].sum())
            counts[3 * at + 2] += int(test.fraud.sum())
    after = _fitted(data, weights.threshold)
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


def _by_signal(counts: Counter[frozenset[str]]) -> Counter[str]:
    """Return signal -> number of events in which it fired."""
    found = Counter[str]()
    for fired, events in counts.items():
        for name in fired:
            found[name] += events
    return found


def _quality(counts: Sequence[int]) -> Quality:
    right, reached, fraud = counts
    return Quality(right / reached if reached else None, right / fraud if fraud else None)


class _Data(NamedTuple):
    """Events as arrays of numpy, one row for all events that are alike here."""

    x: Any
    """Rows by signals that are fitted: whether it fired."""
    rest: Any
    """What the other signals add to the score, by the weights in force."""
    fraud: Any
    """Events of a row that are fraud."""
    legitimate: Any
    """Events of a row that are legitimate."""
    before: Any
    """The weights in force of the signals that are fitted."""

    @property
    def events(self) -> Any:
        """Return the events of each row."""
        return self.fraud + self.legitimate


def _arrays(labeled: Labeled, names: Sequence[str], weights: Weights) -> _Data:
    numpy = _library("numpy")
    fitted = frozenset(names)
    alike: dict[tuple[tuple[bool, ...], int], list[int]] = {}
    for is_fraud, counts in enumerate((labeled.legitimate_of, labeled.fraud_of)):
        for fired, events in counts.items():
            rest = sum(weights.weights.get(name, 0) for name in fired - fitted)
            alike.setdefault((tuple(name in fired for name in names), rest), [0, 0])[is_fraud] += events
    rows = sorted(alike.items())  # the order of the events does not matter, then
    return _Data(
        x=numpy.array([fired for (fired, _), _ in rows], dtype=float).reshape(len(rows), len(names)),
        rest=numpy.array([rest for (_, rest), _ in rows]),
        fraud=numpy.array([fraud for _, (_, fraud) in rows]),
        legitimate=numpy.array([legitimate for _, (legitimate, _) in rows]),
        before=numpy.array([weights.weights.get(name, 0) for name in names]),
    )


def _folds(data: _Data) -> Iterator[tuple[_Data, _Data]]:
    """Yield (events to fit, events that are left out) of repeated, stratified cross-validation."""
    numpy = _library("numpy")
    rows = numpy.arange(len(data.x))
    row_of = numpy.concatenate([numpy.repeat(rows, data.fraud), numpy.repeat(rows, data.legitimate)])
    is_fraud = numpy.arange(len(row_of)) < data.fraud.sum()
    folds = _library("sklearn.model_selection").RepeatedStratifiedKFold
    for _, test in folds(n_splits=FOLDS, n_repeats=REPEATS, random_state=0).split(row_of, is_fraud):
        fraud = numpy.bincount(row_of[test][is_fraud[test]], minlength=len(rows))
        legitimate = numpy.bincount(row_of[test][~is_fraud[test]], minlength=len(rows))
        left_out = data._replace(fraud=fraud, legitimate=legitimate)
        yield data._replace(fraud=data.fraud - fraud, legitimate=data.legitimate - legitimate), left_out


def _fitted(data: _Data, threshold: int) -> Any:
    """Return whole-number weights whose score finds as much of the fraud as the weights in force."""
    numpy = _library("numpy")
    coefficients = _regression(data, threshold)
    if not coefficients.any():
        return data.before
    wanted = int(data.fraud[data.x @ data.before + data.rest >= threshold].sum())
    best: tuple[float, int, Any] | None = None
    for cut in sorted(
        set((data.x @ coefficients)[data.fraud > 0]), reverse=True
    ):  # the larger, the smaller the weights
        if cut <= 0:
            break
        weights = numpy.clip(numpy.ceil(coefficients * (threshold / cut) - _ROUNDING), 0, MAX_WEIGHT)
        reached = data.x @ weights + data.rest >= threshold
        found, all_reached = int(data.fraud[reached].sum()), int(data.events[reached].sum())
        if found >= wanted and found:
            precision = found / all_reached
            if best is None or (precision, found) > best[:2]:
                best = precision, found, weights
    return data.before if best is None else best[2]


_ROUNDING: Final = 1e-6


def _regression(data: _Data, threshold: int) -> Any:
    """Return coefficients of the signals, none negative. The score of the signals that are not fitted has a coefficient
    of its own, which is dropped, so that their effect is not ascribed to a signal that fires beside them.
    """
    numpy, expit = _library("numpy"), _library("scipy.special").expit
    x = numpy.column_stack([data.x, data.rest / threshold])

    def loss(values: Any) -> tuple[float, Any]:
        linear = x @ values[1:] + values[0]
        penalty = _PENALTY * values[1:] @ values[1:] / 2
        slope = data.events * expit(linear) - data.fraud
        total = float((data.events * numpy.logaddexp(0, linear) - data.fraud * linear).sum() + penalty)
        return total, numpy.concatenate([[slope.sum()], x.T @ slope + _PENALTY * values[1:]])

    width = x.shape[1]
    bounds = [(None, None), *[(0, None)] * width]
    solved = _library("scipy.optimize").minimize(
        loss, numpy.zeros(width + 1), jac=True, bounds=bounds, method="L-BFGS-B"
    )
    return solved.x[1:-1]
