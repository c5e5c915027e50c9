"""What identifications came to, counted once they are on disk. Owned by the visitor index; nothing here is stored."""

from __future__ import annotations

from collections import Counter

import msgspec

from svc.domain.identification import Duplicate, Identified
from svc.domain.quotas import QUOTAS, Quota
from svc.store.transactions.identification import Recorded

BANDS = ((100, "100"), (95, "95-99"), (90, "90-94"), (85, "85-89"), (0, "0"))
"""Where confidences begin, and what they are counted as."""
NOT_SCORED = "none"
NEWS_S = 60.0
"""How long nothing is logged again of an organization that goes on being refused."""


class IdentificationStatistics(msgspec.Struct, frozen=True):
    """Identifications since the start, by result. Refused ones count only in `quotas`."""

    matched: dict[tuple[str, str], int]
    """By how the visitor was found or why it was not, and by band of confidence."""
    levels: dict[str, int]
    """By suspect level; `NOT_SCORED` without one."""
    signals: dict[str, int]
    """Triggers, by signal: those with a weight in force."""
    networks: dict[tuple[str, str], int]
    """By state of the network facts, and the reason where there are none."""
    duplicates: int
    """Answered from an earlier one with the same `Idempotency-Key`."""
    flooding: int
    """From an address that floods (`history.is_flooding`)."""
    quotas: dict[Quota, int]
    """Identifications that met a quota of their organization, by quota."""


class IdentificationCounters:
    """Counts identifications by result, and limits how often a refused organization is logged."""

    def __init__(self) -> None:
        self._matched: Counter[tuple[str, str]] = Counter()
        self._levels: Counter[str] = Counter()
        self._signals: Counter[str] = Counter()
        self._networks: Counter[tuple[str, str]] = Counter()
        self._duplicates = 0
        self._flooding = 0
        self._quotas: Counter[Quota] = Counter(dict.fromkeys(QUOTAS, 0))
        self._told_at: dict[int, float] = {}

    def note(self, recorded: Recorded) -> None:
        """Count one outcome of a commit. A refusal counts only where it met a quota."""
        outcome = recorded.outcome
        if recorded.quota is not None:
            self._quotas[recorded.quota] += 1
        if isinstance(outcome, Duplicate):
            self._duplicates += 1
        if not isinstance(outcome, Identified):
            return
        verdict = outcome.verdict
        self._matched[verdict.linkage, band(verdict.visitor_confidence)] += 1
        self._networks[verdict.state, verdict.reason or ""] += 1
        self._levels[verdict.suspect_level or NOT_SCORED] += 1
        for fired in verdict.signals or ():
            self._signals[fired.signal] += 1
        self._flooding += recorded.flooding

    def is_news(self, organization: int, now_s: float) -> bool:
        """Whether nothing was logged of this organization for `NEWS_S`; `True` starts the next such period at
        `now_s`.
        """
        told_at = self._told_at.get(organization)
        if told_at is not None and now_s - told_at < NEWS_S:
            return False
        self._told_at[organization] = now_s
        return True

    def statistics(self) -> IdentificationStatistics:
        """A copy of all counts since the start. Every quota is in it, also with 0; other names only once they were
        counted.
        """
        return IdentificationStatistics(
            matched=dict(self._matched),
            levels=dict(self._levels),
            signals=dict(self._signals),
            networks=dict(self._networks),
            duplicates=self._duplicates,
            flooding=self._flooding,
            quotas=dict(self._quotas),
        )


def band(confidence: int) -> str:
    """The label in `BANDS` for a visitor confidence of 0 to 100, such as `90-94`."""
    return next(name for start, name in BANDS if confidence >= start)
