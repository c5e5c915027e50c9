"""Results of identifications, counted once they are on disk. Owned by the visitor index; nothing here is stored."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy

import msgspec

from svc.features.identification.transaction import Recorded
from svc.identify.identification import Duplicate, Identified
from svc.kernel.limits.quotas import QUOTAS, Quota

BANDS = ((100, "100"), (95, "95-99"), (90, "90-94"), (85, "85-89"), (0, "0"))
"""Where confidences begin, and what they are counted as."""
NOT_SCORED = "none"
NEWS_S = 60.0
"""How long nothing is logged again of an organization that goes on being refused."""


class IdentificationStatistics(msgspec.Struct):
    """Identifications since the start, by result. Refused ones count only in `quotas`."""

    matched: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter[tuple[str, str]])
    """By how the visitor was found or why it was not, and by band of confidence."""
    levels: Counter[str] = msgspec.field(default_factory=Counter[str])
    """By suspect level; `NOT_SCORED` without one."""
    signals: Counter[str] = msgspec.field(default_factory=Counter[str])
    """Triggers, by signal: those with a weight in force."""
    networks: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter[tuple[str, str]])
    """By state of the network facts, and the reason where there are none."""
    duplicates: int = 0
    """Responded to from an earlier one with the same `Idempotency-Key`."""
    flooding: int = 0
    """From an address that floods (`history.evidence.is_flooding`)."""
    quotas: Counter[Quota] = msgspec.field(default_factory=lambda: Counter(dict.fromkeys(QUOTAS, 0)))
    """Identifications that met a quota of their organization, by quota."""


class IdentificationCounters:
    """Counts identifications by result, and limits how often a refused organization is logged."""

    def __init__(self) -> None:
        self._counted = IdentificationStatistics()
        self._logged_at: dict[int, float] = {}

    def note(self, recorded: Recorded) -> None:
        """Count one outcome of a commit. A refusal counts only where it met a quota."""
        outcome, counted = recorded.outcome, self._counted
        if recorded.quota is not None:
            counted.quotas[recorded.quota] += 1
        if isinstance(outcome, Duplicate):
            counted.duplicates += 1
        if not isinstance(outcome, Identified):
            return
        verdict = outcome.verdict
        counted.matched[verdict.linkage, band(verdict.visitor_confidence)] += 1
        counted.networks[verdict.state, verdict.reason or ""] += 1
        counted.levels[verdict.suspect_level or NOT_SCORED] += 1
        for fired in verdict.signals or ():
            counted.signals[fired.signal] += 1
        counted.flooding += recorded.flooding

    def is_news(self, organization: int, now_s: float) -> bool:
        """Return whether nothing was logged of this organization for `NEWS_S`; `True` starts the next such period at
        `now_s`.
        """
        logged_at = self._logged_at.get(organization)
        if logged_at is not None and now_s - logged_at < NEWS_S:
            return False
        self._logged_at[organization] = now_s
        return True

    def statistics(self) -> IdentificationStatistics:
        """Return a copy of all counts since the start. Every quota is in it, also with 0; other names only once they
        were counted.
        """
        return deepcopy(self._counted)


def band(confidence: int) -> str:
    """Return the label in `BANDS` for a visitor confidence of 0 to 100, such as `90-94`."""
    return next(name for start, name in BANDS if confidence >= start)
