"""Counts of outcomes by day, and the performance that follows from them (decisions 14.1, 14.2).

What may live here: counts of outcomes by what they are judged by, and the arithmetic of precision and recall.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import sqrt
from typing import Final, Literal, NamedTuple, TypeVar

import msgspec

from svc.features.labels.outcomes import Facts
from svc.identify.events.hour_counts import NOT_SCORED, SCORE_BUCKETS, HourCounts, score_bucket
from svc.identify.model import LABELS, Label

K = TypeVar("K", str, int)

Kind = Literal["signals", "groups", "rules", "levels"]
KINDS: Final[tuple[Kind, ...]] = ("signals", "groups", "rules", "levels")
"""What performance is measured of."""
_Z: Final = 1.959963984540054
"""Of 95 %: the 0.975 quantile of the normal distribution."""


class OutcomeCounts(msgspec.Struct, frozen=True, array_like=True):
    """Number of events, in all and by name. Entries are above zero. Append fields, never move them."""

    events: int = 0
    signals: dict[str, int] = {}
    groups: dict[str, int] = {}
    rules: dict[str, int] = {}
    levels: dict[str, int] = {}
    scores: dict[int, int] = {}
    """Start of the bucket in `SCORE_BUCKETS` -> events; those that were not scored are in none."""

    def adding(self, facts: Iterable[Facts], sign: int = 1) -> OutcomeCounts:
        """Return the counts with these events added, or with `sign` -1 subtracted."""
        events = self.events
        counts = {kind: Counter[str](getattr(self, kind)) for kind in KINDS}
        scores = Counter(self.scores)
        for each in facts:
            events += sign
            for kind in KINDS:
                for name in _names(each, kind):
                    counts[kind][name] += sign
            if each.score is not None:
                scores[score_bucket(each.score)] += sign
        by_name = {kind: {name: n for name, n in counts[kind].items() if n} for kind in KINDS}
        return OutcomeCounts(events, **by_name, scores={start: n for start, n in scores.items() if n})


class DayOutcomes(msgspec.Struct, frozen=True, array_like=True):
    """Counts of the outcomes of one UTC day and environment. Append fields, never move them."""

    archived: OutcomeCounts = OutcomeCounts()
    """Of events that are deleted. Those that are stored are in the counters of their hours."""
    fraud: OutcomeCounts = OutcomeCounts()
    """Of labeled events, whether stored or archived."""
    legitimate: OutcomeCounts = OutcomeCounts()

    def pack(self) -> bytes:
        """Return the counts as MessagePack, as for the counters of hours."""
        return _encode(self)

    @staticmethod
    def unpack(raw: bytes) -> DayOutcomes:
        """Return the counts in these bytes. Raises `ValueError` for other bytes."""
        try:
            return _decode(raw)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from error

    def archiving(self, facts: Iterable[Facts], sign: int = 1) -> DayOutcomes:
        """Return the counts with these archived outcomes added, or with `sign` -1 subtracted."""
        return msgspec.structs.replace(self, archived=self.archived.adding(facts, sign))

    def labeling(self, facts: Facts, sign: int = 1) -> DayOutcomes:
        """Return the counts with the label of an outcome added, or with `sign` -1 subtracted."""
        if facts.label == "fraud":
            return msgspec.structs.replace(self, fraud=self.fraud.adding([facts], sign))
        return msgspec.structs.replace(self, legitimate=self.legitimate.adding([facts], sign))


NO_OUTCOMES: Final = DayOutcomes()


class LabelCounts(msgspec.Struct, frozen=True, array_like=True):
    """The labeled events of a visitor or an account. Append fields, never move them."""

    fraud: int = 0
    legitimate: int = 0

    def adding(self, label: Label, sign: int) -> LabelCounts:
        """Return the counts with one more of a label (`sign` 1), or one fewer (-1)."""
        return msgspec.structs.replace(self, **{label: getattr(self, label) + sign})

    @property
    def names(self) -> list[str]:
        """Return the labels that it has."""
        return [name for name in ("fraud", "legitimate") if getattr(self, name) > 0]


class Line(NamedTuple):
    """The performance of one signal, group, rule or level. Fractions are `None` where there is nothing to divide by."""

    name: str
    events: int
    fraud: int
    legitimate: int
    precision: float | None
    """Of its labeled events, those that are fraud."""
    precision_low: float | None
    precision_high: float | None
    """95 % interval by Wilson (J. Am. Stat. Assoc. 22, 1927)."""
    recall: float | None
    """Of all fraud, that which it has."""

    @property
    def labeled(self) -> int:
        """Return the number of its labeled events."""
        return self.fraud + self.legitimate


class ScoreBucket(NamedTuple):
    """The labeled events whose scores lie between two bounds."""

    start: int
    end: int | None
    """Exclusive; `None` = no end."""
    fraud: int
    legitimate: int


class Performance:
    """What a window of time adds up to, one row after the other."""

    def __init__(self) -> None:
        self.events = self.fraud = self.legitimate = 0
        self._events: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
        self._labeled: dict[Label, dict[Kind, Counter[str]]] = {
            "fraud": {kind: Counter() for kind in KINDS},
            "legitimate": {kind: Counter() for kind in KINDS},
        }
        self._scores: dict[Label, Counter[int]] = {"fraud": Counter(), "legitimate": Counter()}

    def add_hour(self, counts: HourCounts) -> None:
        """Add stored events."""
        self.events += counts.identifications
        for kind in KINDS:
            self._events[kind].update(getattr(counts, kind))

    def add_day(self, day: DayOutcomes) -> None:
        """Add archived events, and labels."""
        self.events += day.archived.events
        self.fraud += day.fraud.events
        self.legitimate += day.legitimate.events
        for kind in KINDS:
            self._events[kind].update(getattr(day.archived, kind))
            self._labeled["fraud"][kind].update(getattr(day.fraud, kind))
            self._labeled["legitimate"][kind].update(getattr(day.legitimate, kind))
        self._scores["fraud"].update(day.fraud.scores)
        self._scores["legitimate"].update(day.legitimate.scores)

    def add(self, other: Performance) -> None:
        """Add the sums of another stretch of time."""
        self.events += other.events
        self.fraud += other.fraud
        self.legitimate += other.legitimate
        for kind in KINDS:
            _add(self._events[kind], other._events[kind])
        for label in LABELS:
            for kind in KINDS:
                _add(self._labeled[label][kind], other._labeled[label][kind])
            _add(self._scores[label], other._scores[label])

    def scores(self) -> list[ScoreBucket]:
        """Return the labeled events that were scored, by score: every bucket, lowest first."""
        ends = (*SCORE_BUCKETS[1:], None)
        fraud, legitimate = self._scores["fraud"], self._scores["legitimate"]
        return [
            ScoreBucket(start, end, fraud[start], legitimate[start])
            for start, end in zip(SCORE_BUCKETS, ends, strict=True)
        ]

    def lines(self, kind: Kind, names: Iterable[str] = ()) -> list[Line]:
        """Return a line for each of `names`, and for each other that any event has, most events first."""
        fraud, legitimate = self._labeled["fraud"][kind], self._labeled["legitimate"][kind]
        found = dict.fromkeys((*names, *sorted({*self._events[kind], *fraud, *legitimate})))
        found.pop(NOT_SCORED, None)
        lines = [line(name, self._events[kind][name], fraud[name], legitimate[name], self.fraud) for name in found]
        return lines if names else sorted(lines, key=lambda each: (-each.events, each.name))


def _add(counts: Counter[K], more: Counter[K]) -> None:
    """Add counts like `Counter.update`, in half the time."""
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


def line(name: str, events: int, fraud: int, legitimate: int, all_fraud: int) -> Line:
    """Return the performance of a group of `events`, of which these many are labeled `fraud` and `legitimate`.
    `all_fraud`: the events labeled fraud in all groups.
    """
    labeled = fraud + legitimate
    interval = wilson(fraud, labeled)
    return Line(
        name=name,
        events=events,
        fraud=fraud,
        legitimate=legitimate,
        precision=fraud / labeled if labeled else None,
        precision_low=None if interval is None else interval[0],
        precision_high=None if interval is None else interval[1],
        recall=fraud / all_fraud if all_fraud else None,
    )


def wilson(successes: int, trials: int) -> tuple[float, float] | None:
    """Return the 95 % interval of a fraction (Wilson 1927); `None` without trials."""
    if not trials:
        return None
    share, spread = successes / trials, _Z * _Z / trials
    center = share + spread / 2
    half = _Z * sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return max(0.0, (center - half) / (1 + spread)), min(1.0, (center + half) / (1 + spread))


def _names(facts: Facts, kind: Kind) -> tuple[str, ...]:
    if kind == "levels":
        return (facts.level or NOT_SCORED,)
    return getattr(facts, kind)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(DayOutcomes).decode
