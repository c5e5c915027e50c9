"""Weights that an organization's own labels suggest (decisions 14.3).

What may live here: labeled outcomes and the weights in force in, other weights with precision and recall of both out.
It takes seconds for a million labels: others may have their turn wherever it yields.

A logistic regression with non-negative coefficients and an L2 penalty is fitted to which signals fired, where one that
weighed twice counts 2. Its coefficients are scaled so that the threshold keeps its meaning: as much of the fraud
reaches it as now. A signal that fired in fewer than 10 labeled events keeps its weight. Precision and recall are those
of folds that were left out of the fit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import merge
from itertools import accumulate, islice, pairwise
from math import ceil, log
from operator import add, sub
from typing import Annotated, Final, NamedTuple, TypeVar

import msgspec

from svc.features.labels.outcomes import Outcome
from svc.features.labels.regression import ROWS, Block, Counts, block_of, fitted
from svc.identify.scoring.score import Weights
from svc.identify.scoring.signals import MAX_WEIGHT, signal_names
from svc.kernel.values.fields import Platform, about
from svc.kernel.values.steps import Steps
from svc.world import numbers_from

N = TypeVar("N", int, float)

LEAST_LABELS: Final = 50
"""Events of each label."""
LEAST_EVENTS: Final = 10
"""Labeled events in which a signal fired, below which its weight stays."""
FOLDS: Final = 5
REPEATS: Final = 5
_AT_ONCE: Final = 128
"""Sets of signals that are looked at before others may have their turn."""
_DEALT_AT_ONCE: Final = 2048
"""Events, likewise."""


class QualityBody(msgspec.Struct, frozen=True):
    """How well scores from the threshold on tell fraud, by cross-validation."""

    precision: Annotated[float | None, about("Of the labeled events that reach it, fraud; `null` = none does.", 0.9)]
    recall: Annotated[float | None, about("Of the fraud, that which reaches it.", 0.7)]


class SuggestedWeightBody(msgspec.Struct, frozen=True, kw_only=True):
    """One signal."""

    signal: Annotated[str, about("Name of the signal.", "headless")]
    before: Annotated[int, about("Its weight in force.", 30)]
    after: Annotated[int, about("The suggested one.", 42)]
    events: Annotated[int, about("Labeled events in which it fired: at least 10.", 120)]
    fraud: Annotated[int, about("Of these, fraud.", 110)]


class Suggestion(NamedTuple):
    """What the labels suggest for one platform."""

    fraud: int
    legitimate: int
    threshold: int
    weights: list[SuggestedWeightBody]
    """Of the signals that fired often enough, in the order of the catalog."""
    today: QualityBody
    suggested: QualityBody


Fired = tuple[str, ...]
"""Signals that fired together, by name; one that weighed twice is in it twice."""


class Labeled:
    """The labeled and scored events of one platform, as counts: of all that have the same signals, the events of either
    label. There are far fewer such kinds than events.
    """

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self.fraud_of = Counter[Fired]()
        self.legitimate_of = Counter[Fired]()

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Count those of these outcomes that are labeled, scored and of this platform."""
        for outcome in outcomes:
            facts = outcome.facts
            if facts.label is not None and facts.score is not None and facts.platform == self._platform:
                counts = self.fraud_of if facts.label == "fraud" else self.legitimate_of
                counts[tuple(sorted(facts.signals + facts.twice))] += 1

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


def suggest(labeled: Labeled, weights: Weights, platform: Platform) -> Steps[Suggestion]:
    """Return weights for a platform, fitted to its labeled events, of which there must be enough."""
    frauds, legitimates = Counter[str](), Counter[str]()
    for by_signal, counts in ((frauds, labeled.fraud_of), (legitimates, labeled.legitimate_of)):
        for at, (fired, events) in enumerate(counts.items()):
            by_signal.update(dict.fromkeys(fired, events))
            if not at % _AT_ONCE:
                yield
    events_of = frauds + legitimates
    names = [name for name in signal_names(platform) if events_of[name] >= LEAST_EVENTS]
    table = yield from table_of(labeled, names, weights)
    before = (0, *(weights.weights.get(name, 0) for name in names))
    start = [log(labeled.fraud / labeled.legitimate), *[0.0] * (len(names) + 1)]
    coefficients = yield from fitted(table.blocks, table.counts, start)
    after = yield from scaled(table, table.counts, coefficients, before)
    today = yield from _reaching(table, table.counts, before)
    sums = [0, 0]
    for repeat in range(REPEATS):
        for learned, left_out in (yield from folds_of(table.counts, numbers_from(repeat))):
            of_learned = yield from fitted(table.blocks, learned, coefficients)
            chosen = yield from scaled(table, learned, of_learned, before)
            for at, events in enumerate((yield from _reaching(table, left_out, chosen))):
                sums[at] += events
    return Suggestion(
        fraud=labeled.fraud,
        legitimate=labeled.legitimate,
        threshold=weights.threshold,
        weights=[
            SuggestedWeightBody(
                signal=name,
                before=weights.weights.get(name, 0),
                after=weight,
                events=events_of[name],
                fraud=frauds[name],
            )
            for name, weight in zip(names, after[1:], strict=True)
        ],
        today=_quality(today[0], today[1], labeled.fraud),
        suggested=_quality(sums[0], sums[1], REPEATS * labeled.fraud),
    )


def _quality(right: int, reached: int, fraud: int) -> QualityBody:
    return QualityBody(right / reached if reached else None, right / fraud if fraud else None)


class Table(NamedTuple):
    """Labeled events, one row for all that are alike here. The order of the events does not matter."""

    threshold: int
    blocks: list[Block]
    """Columns of rows: the intercept, the signals that are fitted, and `rest` in thresholds."""
    rest: list[list[int]]
    """Of each block and row, what the other signals add to the score, by the weights in force."""
    counts: list[Counts]
    """Of each block; fraud is positive."""


def table_of(labeled: Labeled, names: Sequence[str], weights: Weights) -> Steps[Table]:
    """Return the table whose signals are those of `names`: of these the weights are fitted."""
    columns = {name: at for at, name in enumerate(names, start=1)}
    alike: dict[int, tuple[tuple[int, ...], int, list[int]]] = {}  # by a number, which is quickly sorted
    at = 0
    for is_legitimate, counts in enumerate((labeled.fraud_of, labeled.legitimate_of)):
        for fired, events in counts.items():
            ones = (0, *sorted(columns[name] for name in fired if name in columns))
            rest = sum(weights.weights.get(name, 0) for name in fired if name not in columns)
            place = rest << 2 * len(columns) + 2 | sum(1 << 2 * column for column in ones)  # of each column two bits
            alike.setdefault(place, (ones, rest, [0, 0]))[2][is_legitimate] += events
            at += 1
            if not at % _AT_ONCE:
                yield
    table = Table(weights.threshold, [], [], [])
    places = yield from _in_order(alike)
    for start in range(0, len(places), ROWS):
        rows = [alike[place] for place in places[start : start + ROWS]]
        rest = [rest for _, rest, _ in rows]
        table.blocks.append(block_of([ones for ones, _, _ in rows], [more / weights.threshold for more in rest]))
        table.rest.append(rest)
        table.counts.append(Counts([fraud for _, _, (fraud, _) in rows], [sum(both) for _, _, both in rows]))
        yield
    return table


def _reaching(table: Table, counts: Sequence[Counts], weights: Sequence[int]) -> Steps[tuple[int, int]]:
    """Return how much of the fraud, and how many events, have a score at the threshold or above."""
    found = reached = 0
    for block, rests, count in zip(table.blocks, table.rest, counts, strict=True):
        for ones, rest, fraud, events in zip(block.ones, rests, count.positive, count.events, strict=True):
            if sum(map(weights.__getitem__, ones)) + rest >= table.threshold:
                found += fraud
                reached += events
        yield
    return found, reached


Fold = tuple[list[Counts], list[Counts]]
"""Events to fit, and events that are left out."""


def folds_of(counts: Sequence[Counts], draw: Callable[[], float]) -> Steps[list[Fold]]:
    """Return the folds of one cross-validation. Each has as much of the fraud as any other, and as many events."""
    frauds = yield from _dealt([count.positive for count in counts], draw)
    others = yield from _dealt([list(map(sub, count.events, count.positive)) for count in counts], draw)
    folds: list[Fold] = []
    for fraud_of, other_of in zip(frauds, others, strict=True):
        left_out = [
            Counts(fraud, list(map(add, fraud, other))) for fraud, other in zip(fraud_of, other_of, strict=True)
        ]
        learned = [
            Counts(list(map(sub, count.positive, out.positive)), list(map(sub, count.events, out.events)))
            for count, out in zip(counts, left_out, strict=True)
        ]
        folds.append((learned, left_out))
        yield
    return folds


def _dealt(events: Sequence[Sequence[int]], draw: Callable[[], float]) -> Steps[list[list[list[int]]]]:
    """Return how many events of each block and row come into each fold: one byte for each event says its fold, and the
    bytes are shuffled (Fisher and Yates).
    """
    total = sum(map(sum, events))
    fold_of = bytearray((bytes(range(FOLDS)) * (total // FOLDS + 1))[:total])
    for last in range(total - 1, 0, -1):
        other = int(draw() * (last + 1))
        fold_of[last], fold_of[other] = fold_of[other], fold_of[last]
        if not last % _DEALT_AT_ONCE:
            yield
    dealt: list[list[list[int]]] = [[] for _ in range(FOLDS)]
    end = 0
    for block in events:
        ends = list(accumulate(block, initial=end))
        for fold, blocks in enumerate(dealt):
            blocks.append([fold_of.count(fold, first, beyond) for first, beyond in pairwise(ends)])
            yield
        end = ends[-1]
    return dealt


def scaled(
    table: Table, counts: Sequence[Counts], coefficients: Sequence[float], before: tuple[int, ...]
) -> Steps[tuple[int, ...]]:
    """Return whole-number weights in proportion to the coefficients, whose score finds as much of the fraud as the
    weights in force: of these, the ones with the best precision. Return those in force where there are none.
    """
    wanted, _ = yield from _reaching(table, counts, before)
    slopes = [0.0, *coefficients[1:-1]]
    alike = yield from _alike(table, counts, slopes)
    scales = yield from _scales(alike, slopes, table.threshold)
    found, reached = [0] * len(scales), [0] * len(scales)
    for at, ((ones, rest), (fraud, events)) in enumerate(alike.items()):
        first = bisect_left(scales, table.threshold - rest, key=_score_of(ones))
        if first < len(scales):
            found[first] += fraud
            reached[first] += events
        if not at % _AT_ONCE:
            yield
    best = (0.0, 0, before)
    for fraud, events, weights in zip(accumulate(found), accumulate(reached), scales, strict=True):
        if fraud >= max(wanted, 1) and (fraud / events, fraud) > best[:2]:
            best = fraud / events, fraud, weights
    return best[2]


_Alike = dict[tuple[tuple[int, ...], int], tuple[int, int]]
"""Columns with a coefficient, and what other signals add to the score -> fraud and events."""


def _alike(table: Table, counts: Sequence[Counts], slopes: Sequence[float]) -> Steps[_Alike]:
    alike: _Alike = {}
    for block, rests, count in zip(table.blocks, table.rest, counts, strict=True):
        for ones, rest, fraud, events in zip(block.ones, rests, count.positive, count.events, strict=True):
            place = tuple(filter(slopes.__getitem__, ones)), rest
            others = alike.get(place, (0, 0))
            alike[place] = others[0] + fraud, others[1] + events
        yield
    return alike


def _scales(alike: _Alike, slopes: Sequence[float], threshold: int) -> Steps[list[tuple[int, ...]]]:
    """Return the weights with which one more kind of fraud reaches the threshold, the smallest first."""
    kinds = {ones for (ones, _), (fraud, _) in alike.items() if fraud}
    cuts = set[float]()
    for at, ones in enumerate(kinds):
        cuts.add(-sum(map(slopes.__getitem__, ones)))
        if not at % _AT_ONCE:
            yield
    cuts.discard(0.0)
    scales: list[tuple[int, ...]] = []
    for at, cut in enumerate((yield from _in_order(cuts))):
        scale = threshold / -cut
        weights = tuple(min(ceil(slope * scale - _ROUNDING), MAX_WEIGHT) if slope else 0 for slope in slopes)
        if [weights] != scales[-1:]:
            scales.append(weights)
        if not at % _AT_ONCE:
            yield
    return scales


def _in_order(items: Collection[N]) -> Steps[list[N]]:
    """Return the items sorted."""
    given, runs, ordered = iter(items), list[list[N]](), list[N]()
    while run := sorted(islice(given, ROWS)):
        runs.append(run)
        yield
    for item in merge(*runs):
        ordered.append(item)
        if not len(ordered) % ROWS:
            yield
    return ordered


def _score_of(ones: tuple[int, ...]) -> Callable[[Sequence[int]], int]:
    """Return what sums the weights of these columns."""
    return lambda weights: sum(map(weights.__getitem__, ones))


_ROUNDING: Final = 1e-6
