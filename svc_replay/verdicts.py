"""Two runs over the same identifications side by side: whose verdicts differ, in which direction, and by which signal.

What may live here: the verdict of one run x that of another -> what changed. Other weights on stored observations are
`svc.features.weights.preview`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from operator import itemgetter
from typing import Generic, Literal, TypeVar, get_args

import msgspec

from svc.features.weights.preview import (
    LevelCounts,
    LevelMove,
    WeightDifference,
    most_frequent_first,
    some_of_each,
    weight_differences,
)

T = TypeVar("T")

DEFAULT_EXAMPLES = 10

LinkChange = Literal["joined", "separated", "moved"]
"""`joined`: it is now of the same visitor as an earlier identification, and was of none; `separated`: the other way
round; `moved`: its visitor's identification before it is another one than it was."""


class RunVerdict(msgspec.Struct, frozen=True, gc=False):
    """The result of one run for one identification."""

    request_id: str
    occurred_at: str
    visitor_id: str
    visitor_is_new: bool
    score: int | None
    """`None` = not scored."""
    level: str
    """A suspect level, or `not_scored`."""
    signals: tuple[tuple[str, int], ...]
    """(signal, weight), heaviest first."""


class VisitorChanges(msgspec.Struct, frozen=True, kw_only=True):
    """How differently the two runs assigned visitors. The partitions are the same if the last three numbers are 0."""

    before: int
    """Visitors in the earlier run."""
    after: int
    new_to_known: int
    """Identifications of a visitor that was new, and now is known."""
    known_to_new: int
    joined: int
    separated: int
    moved: int


class SignalChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one signal."""

    signal: str
    appeared: int = 0
    """Identifications in which it counts now and did not."""
    disappeared: int = 0
    reweighted: int = 0
    """Counted in both, with another weight."""
    level_changed: int = 0
    """Of all these, those whose suspect level differs."""


class ChangedVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """An identification on which the runs differ."""

    before: RunVerdict
    after: RunVerdict
    link: LinkChange | None
    because: tuple[WeightDifference, ...]
    """Signals that count differently, the largest difference first."""


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two runs."""

    compared: int
    only_before: int
    """Identifications that the later run does not have, or rejected."""
    only_after: int
    changed: int
    """Another level, new instead of known or the reverse, or another visitor."""
    before: LevelCounts
    after: LevelCounts
    moves: tuple[LevelMove, ...]
    """From which level to which, most frequent first."""
    score_raised: int
    score_lowered: int
    visitors: VisitorChanges
    by_signal: tuple[SignalChanges, ...]
    """Those with most changed levels first."""
    examples: tuple[ChangedVerdict, ...]
    """Oldest first, of each kind of change some."""


class Examples(Generic[T]):
    """Up to `most` examples, of each kind some."""

    def __init__(self, most: int) -> None:
        self._most, self._found = most, 0
        self._kept: dict[tuple[str, ...], list[tuple[int, T]]] = {}

    def keep(self, kind: tuple[str, ...], make: Callable[[], T]) -> None:
        """Make the next example of a kind, and keep it unless there are enough of this kind."""
        kept = self._kept.setdefault(kind, [])
        self._found += 1
        if len(kept) < self._most:
            kept.append((self._found, make()))

    def chosen(self) -> tuple[T, ...]:
        """Return those to show, in the order in which they were found."""
        return tuple(one for _, one in sorted(some_of_each(self._kept.values(), self._most), key=itemgetter(0)))


class Comparison:
    """Counts what differs. Give it each identification that both runs have once, in the order of the later run."""

    def __init__(self, most_examples: int = DEFAULT_EXAMPLES) -> None:
        self._compared = self._changed = self._raised = self._lowered = 0
        self._levels: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self._moves: Counter[tuple[str, str]] = Counter()
        self._novelty: Counter[tuple[bool, bool]] = Counter()
        self._links: Counter[LinkChange] = Counter()
        self._last: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._signals: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._examples = Examples[ChangedVerdict](most_examples)

    def note(self, before: RunVerdict, after: RunVerdict) -> None:
        """Count one identification as both runs judged it."""
        self._compared += 1
        for counts, verdict in zip(self._levels, (before, after), strict=True):
            counts[verdict.level] += 1
        because = weight_differences(dict(before.signals), dict(after.signals))
        level_changed = before.level != after.level
        if level_changed:
            self._moves[before.level, after.level] += 1
        if before.score is not None and after.score is not None:
            self._raised += after.score > before.score
            self._lowered += after.score < before.score
        self._note_signals(because, level_changed=level_changed)
        link = self._link(before.visitor_id, after.visitor_id)
        novelty = (before.visitor_is_new, after.visitor_is_new)
        if link is not None:
            self._links[link] += 1
        if before.visitor_is_new != after.visitor_is_new:
            self._novelty[novelty] += 1
        elif link is None and not level_changed:
            return
        self._changed += 1
        kind = (before.level, after.level, link or "", str(novelty))
        self._examples.keep(kind, lambda: ChangedVerdict(before=before, after=after, link=link, because=because))

    def summary(self, only_before: int = 0, only_after: int = 0) -> RunComparison:
        """Return the totals over all identifications noted so far. Copy into them `only_before` and `only_after`, the
        numbers of identifications that only one run has.
        """
        return RunComparison(
            compared=self._compared,
            only_before=only_before,
            only_after=only_after,
            changed=self._changed,
            before=LevelCounts(**self._levels[0]),
            after=LevelCounts(**self._levels[1]),
            moves=tuple(
                LevelMove(*levels, count)  # pyright: ignore[reportArgumentType]  levels, or `not_scored`
                for levels, count in most_frequent_first(self._moves)
            ),
            score_raised=self._raised,
            score_lowered=self._lowered,
            visitors=VisitorChanges(
                before=len(self._last[0]),
                after=len(self._last[1]),
                new_to_known=self._novelty[True, False],
                known_to_new=self._novelty[False, True],
                **{change: self._links[change] for change in get_args(LinkChange)},
            ),
            by_signal=self._by_signal(),
            examples=self._examples.chosen(),
        )

    def _link(self, before: str, after: str) -> LinkChange | None:
        was, now = (last.get(visitor_id) for last, visitor_id in zip(self._last, (before, after), strict=True))
        self._last[0][before] = self._last[1][after] = self._compared
        if was == now:
            return None
        if was is None:
            return "joined"
        return "separated" if now is None else "moved"

    def _note_signals(self, because: tuple[WeightDifference, ...], *, level_changed: bool) -> None:
        for each in because:
            counts = self._signals[each.signal]
            counts["reweighted" if each.before and each.after else "appeared" if each.after else "disappeared"] += 1
            counts["level_changed"] += level_changed

    def _by_signal(self) -> tuple[SignalChanges, ...]:
        changes = [SignalChanges(signal=signal, **counts) for signal, counts in self._signals.items()]
        return tuple(
            sorted(
                changes,
                key=lambda one: (-one.level_changed, -(one.appeared + one.disappeared + one.reweighted), one.signal),
            )
        )
