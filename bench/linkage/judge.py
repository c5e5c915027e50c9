"""The judge: compares the ids that were answered with the truth, visit by visit.

Visits come in time order. A "return" is a visit of a browser that was there before; "changed" are the returns whose
report differs from the one before. Every return ends in one of four ways, and every first visit in one of two:

    relinked      the id of this browser's previous visit
    older id      an id that this browser had before that
    false new     an id that nobody had before
    false merge   an id that others had and this browser never: the only way in which a first visit goes wrong

Pairs: of all pairs of visits that share an id, how many share a browser (precision), and the reverse (recall).

Tracking and ownership follow Vastel et al., "FP-STALKER: Tracking Browser Fingerprint Evolutions", IEEE S&P 2018,
section V: the visits with one id are a chain; a browser is tracked in it for (its visits in the chain - 1) x days
between visits; its average tracking is the mean over the chains that it is in, its maximum the longest; a chain is
owned by the browser with most visits in it, its ownership is that share. Where visits come at any time, the days are
those between a browser's first and last visit in the chain. Means are over browsers that were seen twice at least.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.linkage.streams import Visit

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Answer:
    visitor: Hashable
    confidence: int = 0
    """0 for a new visitor; else how sure the method says that it is, in per cent. Methods that say nothing leave 0."""


@dataclass(slots=True)
class Ends:
    """How returns ended, counted."""

    returns: int = 0
    relinked: int = 0
    older_id: int = 0
    false_new: int = 0
    false_merge: int = 0

    def add(self, *, relinked: bool, older: bool, new: bool) -> None:
        self.returns += 1
        if relinked:
            self.relinked += 1
        elif older:
            self.older_id += 1
        elif new:
            self.false_new += 1
        else:
            self.false_merge += 1


@dataclass(slots=True)
class Verdict:
    """What a method was worth on a stream. Counts are of visits; shares are properties, `None` where undefined."""

    visits: int = 0
    browsers: int = 0
    ids: int = 0
    all_returns: Ends = field(default_factory=Ends)
    changed: Ends = field(default_factory=Ends)
    first_visits: int = 0
    first_right: int = 0
    pairs_right: int = 0
    pairs_answered: int = 0
    pairs_true: int = 0
    average_days: float | None = None
    maximum_days: float | None = None
    possible_days: float | None = None
    ownership: float | None = None
    causes: dict[str, Ends] = field(default_factory=dict)
    """Returns by what had happened since the last visit; one with several causes counts for each."""
    confidences: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Confidence -> (visits answered with it, those whose id this browser had before)."""

    @property
    def relinked(self) -> float | None:
        return share(self.all_returns.relinked, self.all_returns.returns)

    @property
    def relinked_changed(self) -> float | None:
        return share(self.changed.relinked, self.changed.returns)

    @property
    def false_new(self) -> float | None:
        """Of all returns."""
        return share(self.all_returns.false_new, self.all_returns.returns)

    @property
    def false_merge(self) -> float | None:
        """Of all visits, first ones included."""
        return share(self.all_returns.false_merge + self.first_visits - self.first_right, self.visits)

    @property
    def first_visit_right(self) -> float | None:
        return share(self.first_right, self.first_visits)

    @property
    def pair_precision(self) -> float | None:
        return share(self.pairs_right, self.pairs_answered)

    @property
    def pair_recall(self) -> float | None:
        return share(self.pairs_right, self.pairs_true)

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "visits": self.visits,
            "browsers": self.browsers,
            "ids": self.ids,
            "returns": self.all_returns.returns,
            "changed_returns": self.changed.returns,
            "relinked": self.relinked,
            "relinked_changed": self.relinked_changed,
            "false_new": self.false_new,
            "false_merge": self.false_merge,
            "first_visit_right": self.first_visit_right,
            "pair_precision": self.pair_precision,
            "pair_recall": self.pair_recall,
            "average_tracking_days": self.average_days,
            "maximum_tracking_days": self.maximum_days,
            "possible_tracking_days": self.possible_days,
            "ownership": self.ownership,
            "causes": {
                cause: {
                    "returns": ends.returns,
                    "relinked": share(ends.relinked, ends.returns),
                    "older_id": share(ends.older_id, ends.returns),
                    "false_new": share(ends.false_new, ends.returns),
                    "false_merge": share(ends.false_merge, ends.returns),
                }
                for cause, ends in sorted(self.causes.items())
            },
            "confidence": {
                str(confidence): {"visits": visits, "right": share(right, visits)}
                for confidence, (visits, right) in sorted(self.confidences.items())
            },
        }


def judge(
    visits: Sequence[Visit],
    answers: Iterable[Answer],
    every_days: float | None = None,
    *,
    counted: Callable[[Visit], bool] = lambda _: True,
) -> Verdict:
    """`every_days`: days between two visits of a browser, where they come in a fixed rhythm. `counted`: the browsers to
    judge; the others are there as well, to be merged with, but their own visits do not count.
    """
    verdict = Verdict()
    judged = {visit.browser for visit in visits if counted(visit)}
    known: set[Hashable] = set()
    previous: dict[str, tuple[Hashable, str]] = {}
    spans: dict[tuple[str, Hashable], list[float]] = {}
    held: Counter[tuple[str, Hashable]] = Counter()
    for visit, answer in zip(visits, answers, strict=True):
        browser, visitor = visit.browser, answer.visitor
        if browser in judged:
            own = (browser, visitor) in held
            _count(verdict, visit, answer, previous.get(browser), new=visitor not in known, own=own)
        known.add(visitor)
        previous[browser] = (visitor, visit.report)
        held[browser, visitor] += 1
        spans.setdefault((browser, visitor), [visit.at_s, visit.at_s])[1] = visit.at_s
    _compare_pairs(verdict, held, judged)
    own_spans = {pair: span for pair, span in spans.items() if pair[0] in judged}
    _track(verdict, held, own_spans, every_days)
    return verdict


def _count(
    verdict: Verdict, visit: Visit, answer: Answer, previous: tuple[Hashable, str] | None, *, new: bool, own: bool
) -> None:
    verdict.visits += 1
    if previous is None:
        verdict.first_visits += 1
        verdict.first_right += new
    else:
        last_visitor, last_report = previous
        how = {"relinked": answer.visitor == last_visitor, "older": own, "new": new}
        verdict.all_returns.add(**how)
        if visit.report != last_report:
            verdict.changed.add(**how)
        for cause in visit.causes or ("nothing",):
            verdict.causes.setdefault(cause, Ends()).add(**how)
    if not new and answer.confidence:
        answered, right = verdict.confidences.get(answer.confidence, (0, 0))
        verdict.confidences[answer.confidence] = (answered + 1, right + own)


def _compare_pairs(verdict: Verdict, held: Counter[tuple[str, Hashable]], judged: set[str]) -> None:
    """Pairs of visits with at least one of a judged browser; ids that a judged browser had."""
    by_browser: Counter[str] = Counter()
    by_visitor: Counter[Hashable] = Counter()
    others: Counter[Hashable] = Counter()
    most: dict[Hashable, int] = {}
    for (browser, visitor), count in held.items():
        by_visitor[visitor] += count
        most[visitor] = max(most.get(visitor, 0), count)
        if browser in judged:
            by_browser[browser] += count
        else:
            others[visitor] += count
    ids = [visitor for visitor, count in by_visitor.items() if count > others[visitor]]
    verdict.browsers, verdict.ids = len(by_browser), len(ids)
    verdict.pairs_right = _pairs(count for (browser, _), count in held.items() if browser in judged)
    verdict.pairs_answered = _pairs(by_visitor.values()) - _pairs(others.values())
    verdict.pairs_true = _pairs(by_browser.values())
    if ids:
        verdict.ownership = sum(most[visitor] / by_visitor[visitor] for visitor in ids) / len(ids)


def _track(
    verdict: Verdict,
    held: Counter[tuple[str, Hashable]],
    spans: dict[tuple[str, Hashable], list[float]],
    every_days: float | None,
) -> None:
    chains: dict[str, list[float]] = defaultdict(list)
    seen: dict[str, list[float]] = {}
    visits: Counter[str] = Counter()
    for (browser, visitor), (first_s, last_s) in spans.items():
        count = held[browser, visitor]
        chains[browser].append((last_s - first_s) / DAY_S if every_days is None else (count - 1) * every_days)
        visits[browser] += count
        whole = seen.setdefault(browser, [first_s, last_s])
        whole[0], whole[1] = min(whole[0], first_s), max(whole[1], last_s)
    returning = [browser for browser, count in visits.items() if count > 1]
    if not returning:
        return
    possible = (
        (seen[browser][1] - seen[browser][0]) / DAY_S if every_days is None else (visits[browser] - 1) * every_days
        for browser in returning
    )
    verdict.average_days = sum(sum(chains[browser]) / len(chains[browser]) for browser in returning) / len(returning)
    verdict.maximum_days = sum(max(chains[browser]) for browser in returning) / len(returning)
    verdict.possible_days = sum(possible) / len(returning)


def share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _pairs(counts: Iterable[int]) -> int:
    return sum(count * (count - 1) // 2 for count in counts)
