"""What other weights would make of identifications that are stored, before anybody saves them.

What may live here: stored observations x two configurations -> what would change. Nothing is detected again, and no
clock, store or request is known here: the console's preview and `svc replay` feed it. The score is that of
`identify/scoring/score.py`, with its modes, silencing rules and threshold, so that weights once saved give exactly what
was previewed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest
from typing import Annotated, NamedTuple, TypeVar, get_args
from uuid import UUID

import msgspec

from svc.identify.model import Level, Observation
from svc.identify.records import Document, Event
from svc.identify.scoring.score import Score, Weights, score
from svc.identify.scoring.signals import SignalName, weighs_twice
from svc.kernel.values.fields import Platform, RequestId, Timestamp, about, open_to
from svc.kernel.values.timestamps import timestamp

L = TypeVar("L", bound=str)
E = TypeVar("E")

MAX_EVENTS = 10_000
"""Events that a preview compares: the newest ones."""
MAX_EXAMPLES = 20

SuspectLevel = Annotated[Level, about("Suspect level.", "medium", form=open_to(*get_args(Level)))]
WeightBefore = Annotated[int, about("What it adds to a score now.", 40)]
WeightAfter = Annotated[int, about("What it would add.", 25)]


class LevelCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many identifications have which suspect level."""

    low: Annotated[int, about("Below the threshold.", 9100)] = 0
    medium: Annotated[int, about("From the threshold to below twice of it.", 640)] = 0
    high: Annotated[int, about("From twice the threshold.", 250)] = 0
    not_scored: Annotated[int, about("Reports that could not be read as one.", 10)] = 0


class LevelMove(msgspec.Struct, frozen=True):
    """Identifications that would go from one suspect level to another."""

    before: Annotated[SuspectLevel, about("With the weights in force now.")] = msgspec.field(name="from")
    after: Annotated[SuspectLevel, about("With the other weights.")] = msgspec.field(name="to")
    count: Annotated[int, about("How many.", 120)]


class SignalEffect(msgspec.Struct, frozen=True):
    """A signal that would add another weight than it does now."""

    signal: SignalName
    before: WeightBefore
    after: WeightAfter
    count: Annotated[int, about("Identifications in which it was noticed and counts differently.", 310)]
    changed: Annotated[int, about("Those of them whose suspect level would change, for this signal or another.", 120)]


class ScoredAs(msgspec.Struct, frozen=True):
    """A score and its level."""

    score: Annotated[int, about("Sum of the weights of the signals that fired.", 40)]
    level: SuspectLevel


class WeightDifference(msgspec.Struct, frozen=True):
    """A signal of one identification that would add another weight; 0 = it does not count."""

    signal: SignalName
    before: WeightBefore
    after: WeightAfter


class LevelExample(msgspec.Struct, frozen=True, kw_only=True):
    """One identification whose suspect level would change."""

    request_id: RequestId
    occurred_at: Annotated[Timestamp, about("When the request arrived.")]
    before: Annotated[ScoredAs, about("What the weights in force now make of it.")]
    after: Annotated[ScoredAs, about("What the other weights would make of it.")]
    because: Annotated[
        tuple[WeightDifference, ...],
        about("Signals that count differently, the largest difference first; none where only the threshold differs."),
    ]


class WeightsPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What weights would change, had they been in force."""

    events: Annotated[int, about("Identifications that were compared.", 10000)]
    compared_without_document: Annotated[
        int,
        about(
            "Those without an archived report: only the signals that fired then are known, so that one which had no "
            "weight then is missing.",
            0,
        ),
    ]
    not_comparable: Annotated[
        int, about("Not compared and not in `events`: neither a report nor signals are stored, only groups.", 0)
    ]
    before: Annotated[LevelCounts, about("With the weights in force now.")]
    after: Annotated[LevelCounts, about("With the other weights.")]
    changed: Annotated[int, about("Identifications whose suspect level would change.", 120)]
    moves: Annotated[tuple[LevelMove, ...], about("From which level to which, most frequent first.")]
    by_signal: Annotated[
        tuple[SignalEffect, ...], about("Signals that count differently, those with most changed levels first.")
    ]
    examples: Annotated[
        tuple[LevelExample, ...], about("At most 20 whose level would change, newest first; of each move some.")
    ]


class Observed(NamedTuple):
    """What was noticed in one identification."""

    observations: tuple[Observation, ...]
    is_complete: bool
    """Whether signals that had no weight then are among them."""


def observed(event: Event, document: Document | None) -> Observed | None:
    """Return the observations of a stored identification: all of them from its document; without a document, only those
    that fired. `None` if neither is stored, as for an event of 0.1.0 whose document was dropped. A document does not
    have the confidence of each signal, on which no score depends.
    """
    if document is not None:
        return Observed(tuple(Observation(name, "low", checks) for name, checks in document.evidence.items()), True)
    if event.verdict.signals is None:
        return None
    return Observed(tuple(Observation(fired.signal, fired.confidence) for fired in event.verdict.signals), False)


class _Comparison(NamedTuple):
    """The scores of one set of signals under both configurations."""

    before: Score
    after: Score
    because: tuple[WeightDifference, ...]


class Preview:
    """Counts the results that identifications of one platform would have with the weights `after`, instead of `before`,
    which are in force now.

    Give it each identification once, newest first; many have noticed the same signals, and each such set is scored
    once.
    """

    def __init__(self, platform: Platform, before: Weights, after: Weights) -> None:
        self._platform: Platform = platform
        self._before, self._after = before, after
        self._comparisons: dict[frozenset[tuple[str, bool]], _Comparison] = {}
        self._counts: Counter[frozenset[tuple[str, bool]]] = Counter()
        self._examples: dict[tuple[Level, Level], list[LevelExample]] = {}
        self._not_scored = self._without_document = self._not_comparable = 0

    def note(self, request_id: UUID, event: Event, document: Document | None) -> None:
        """Count one stored identification; `document` is its archive, `None` if there is none that can be read."""
        if event.verdict.suspect_score is None:
            self._not_scored += 1
            return
        found = observed(event, document)
        if found is None:
            self._not_comparable += 1
            return
        self._without_document += not found.is_complete
        signals = frozenset((observation.signal, weighs_twice(observation)) for observation in found.observations)
        comparison = self._comparisons.get(signals)
        if comparison is None:
            comparison = self._comparisons[signals] = self._compare(found.observations)
        self._counts[signals] += 1
        before, after = comparison.before, comparison.after
        if before.level == after.level:
            return
        examples = self._examples.setdefault((before.level, after.level), [])
        if len(examples) < MAX_EXAMPLES:
            examples.append(
                LevelExample(
                    request_id=str(request_id),
                    occurred_at=timestamp(event.occurred_at_ms),
                    before=ScoredAs(before.score, before.level),
                    after=ScoredAs(after.score, after.level),
                    because=comparison.because,
                )
            )

    def summary(self) -> WeightsPreview:
        """Return the totals over all identifications counted so far."""
        before: Counter[str] = Counter(not_scored=self._not_scored)
        after: Counter[str] = Counter(not_scored=self._not_scored)
        moves: Counter[tuple[Level, Level]] = Counter()
        for signals, count in self._counts.items():
            comparison = self._comparisons[signals]
            before[comparison.before.level] += count
            after[comparison.after.level] += count
            if comparison.before.level != comparison.after.level:
                moves[comparison.before.level, comparison.after.level] += count
        return WeightsPreview(
            events=before.total(),
            compared_without_document=self._without_document,
            not_comparable=self._not_comparable,
            before=LevelCounts(**before),
            after=LevelCounts(**after),
            changed=moves.total(),
            moves=tuple(LevelMove(*levels, count) for levels, count in most_frequent_first(moves)),
            by_signal=self._by_signal(),
            examples=tuple(
                sorted(
                    some_of_each((self._examples[levels] for levels, _ in most_frequent_first(moves)), MAX_EXAMPLES),
                    key=lambda example: (example.occurred_at, example.request_id),
                    reverse=True,
                )
            ),
        )

    def _compare(self, observations: tuple[Observation, ...]) -> _Comparison:
        before = score(observations, self._before, self._platform)
        after = score(observations, self._after, self._platform)
        now = {trigger.signal: trigger.weight for trigger in before.triggers}
        then = {trigger.signal: trigger.weight for trigger in after.triggers}
        return _Comparison(before, after, weight_differences(now, then))

    def _by_signal(self) -> tuple[SignalEffect, ...]:
        noticed: Counter[WeightDifference] = Counter()
        moved: Counter[WeightDifference] = Counter()
        for signals, count in self._counts.items():
            comparison = self._comparisons[signals]
            for difference in comparison.because:
                noticed[difference] += count
                if comparison.before.level != comparison.after.level:
                    moved[difference] += count
        effects = [
            SignalEffect(each.signal, each.before, each.after, count, moved[each]) for each, count in noticed.items()
        ]
        return tuple(sorted(effects, key=lambda effect: (-effect.changed, -effect.count, effect.signal)))


def weight_differences(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[WeightDifference, ...]:
    """Return the signals that have one weight (0 = none) before and another after, the largest difference first."""
    differences = [
        WeightDifference(name, before.get(name, 0), after.get(name, 0))
        for name in before.keys() | after.keys()
        if before.get(name, 0) != after.get(name, 0)
    ]
    return tuple(sorted(differences, key=lambda each: (-abs(each.after - each.before), each.signal)))


def most_frequent_first(moves: Counter[tuple[L, L]]) -> list[tuple[tuple[L, L], int]]:
    """Return ((level before, level after), count) of all moves, most frequent first, ties by level."""
    return sorted(moves.items(), key=lambda move: (-move[1], move[0]))


def some_of_each(kinds: Iterable[list[E]], most: int) -> list[E]:
    """Return at most `most` examples, taken from each kind in turn, so that one of a rare kind is among them: first the
    first of each kind, in the order of the kinds. Fewer where there are no more.
    """
    return [example for example in chain.from_iterable(zip_longest(*kinds)) if example is not None][:most]
