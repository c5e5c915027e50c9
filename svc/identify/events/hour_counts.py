"""What an hour's identifications add up to: the counters behind statistics (ADR 37).

What may live here: the counts of a stretch of time, how one event changes them, and their bytes. Counts are sums, so
that those of a day are those of its hours, and an event that is deleted is subtracted again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from svc.identify.model import Decision, ShadowMatch
from svc.identify.records import Event

K = TypeVar("K")

NOT_SCORED = "not_scored"
"""The level of events that were not scored."""
SCORE_BUCKETS = (0, 1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 150, 200, 300, 500)
"""Where the buckets of the histogram of scores begin; the last one has no end. Zero has one of its own."""


class HourCounts(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The events of one hour and environment. Entries of the dictionaries are above zero. Appended to, never moved."""

    identifications: int = 0
    new: int = 0
    """Identifications of new visitors that can be recognized. The sum with the two below is all identifications."""
    returning: int = 0
    unidentifiable: int = 0
    amount_micros: int = 0
    """Sum of the prices."""
    levels: dict[str, int] = {}
    """Level, or `NOT_SCORED` -> events."""
    scores: dict[int, int] = {}
    """Start of the bucket in `SCORE_BUCKETS` -> events; those that were not scored are in none."""
    signals: dict[str, int] = {}
    """Signal -> events in which it fired. Events stored by 0.1.0 name none."""
    countries: dict[str, int] = {}
    """Country code -> events; those of an unknown country are in none."""
    kinds: dict[str, int] = {}
    """Visitor kind -> events."""
    rules: dict[str, int] = {}
    """Rule -> events that it decided, or matched in shadow mode."""
    rule_errors: dict[str, int] = {}
    """Rule -> events for which its evaluation failed."""
    decisions: dict[str, int] = {}
    """Action -> events that a rule decided so; those that none decided are in none."""
    groups: dict[str, int] = {}
    """Group of signals -> events in which one of them fired."""

    def plus(self, event: Event) -> HourCounts:
        """Return the counts with one more event."""
        return self._with(event, 1)

    def minus(self, event: Event) -> HourCounts:
        """Return the counts without an event that is in them; any other gives wrong and maybe negative ones."""
        return self._with(event, -1)

    def pack(self) -> bytes:
        """Return MessagePack: every identification reads and writes these, and CBOR takes ten times as long."""
        return _encode(self)

    @staticmethod
    def unpack(raw: bytes) -> HourCounts:
        """Return the counts that `pack` was called on. Raises `ValueError`."""
        try:
            return _decode(raw)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from error

    def _with(self, event: Event, change: int) -> HourCounts:
        verdict, country = event.verdict, event.country_code
        identifiable, is_new, score = verdict.identifiable, verdict.visitor_is_new, verdict.suspect_score
        decided = () if verdict.decision is None else (verdict.decision.action,)
        return HourCounts(
            identifications=self.identifications + change,
            new=self.new + change if identifiable and is_new else self.new,
            returning=self.returning + change if identifiable and not is_new else self.returning,
            unidentifiable=self.unidentifiable if identifiable else self.unidentifiable + change,
            amount_micros=self.amount_micros + change * event.price_micros,
            levels=_changed(self.levels, (verdict.suspect_level or NOT_SCORED,), change),
            scores=_changed(self.scores, () if score is None else (score_bucket(score),), change),
            signals=_changed(self.signals, [fired.signal for fired in verdict.signals or ()], change),
            countries=_changed(self.countries, () if country is None else (country,), change),
            kinds=_changed(self.kinds, (event.visitor_kind,), change),
            rules=_changed(self.rules, matched_rules(verdict.decision, event.shadow), change),
            rule_errors=_changed(self.rule_errors, event.rule_errors, change),
            decisions=_changed(self.decisions, decided, change),
            groups=_changed(self.groups, [trigger.signal for trigger in verdict.triggers], change),
        )


NOTHING = HourCounts()


def sum_of(parts: Iterable[HourCounts]) -> HourCounts:
    """Return the counts of all of them."""
    columns = zip(*map(msgspec.structs.astuple, (NOTHING, *parts)), strict=True)
    return HourCounts(**dict(zip(HourCounts.__struct_fields__, map(_total, columns), strict=True)))


def score_bucket(score: int) -> int:
    """Return where the bucket of a score, which is at least 0, begins."""
    return SCORE_BUCKETS[bisect_right(SCORE_BUCKETS, score) - 1]


def matched_rules(decision: Decision | None, shadow: Sequence[ShadowMatch]) -> list[str]:
    """Return ids of the rules that an event counts for: that which decided, and those that matched in shadow mode."""
    return [*([] if decision is None else [decision.rule_id]), *(match.rule_id for match in shadow)]


def _changed(counts: dict[K, int], names: Sequence[K], change: int) -> dict[K, int]:
    if not names:
        return counts
    changed = counts.copy()
    for name in names:
        count = changed.get(name, 0) + change
        if count:
            changed[name] = count
        else:
            del changed[name]
    return changed


def _total(column: Sequence[Any]) -> Any:
    if isinstance(column[0], int):
        return sum(column)
    summed: dict[Any, int] = {}
    for counts in column:
        for name, count in counts.items():
            summed[name] = summed.get(name, 0) + count
    return summed


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(HourCounts).decode
