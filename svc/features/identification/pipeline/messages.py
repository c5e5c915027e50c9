"""The types of the identification pipeline, in the order in which they travel: Identify -> Admitted -> Assessed;
and the counts of its results.

An `Assessed` can only be made from an `Admitted` and that only from an `Identify`, so nothing is assessed that was not
admitted and nothing recorded that was not assessed. Each carries the one `Reply` of the caller.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import NamedTuple, get_args

import msgspec

from svc.features.identification.transaction import Recorded
from svc.identify.identification import Assessment, Duplicate, Identified, Refused, Submission
from svc.identify.model import RULE_ACTIONS, Level
from svc.identify.scoring.signals import CATALOG
from svc.kernel.limits.quotas import QUOTAS, Quota
from svc.kernel.limits.ratelimit import Bound
from svc.kernel.work.mailbox import Reply


class Admission(NamedTuple):
    """The organization's rate limit at the moment of admission: the headers of decisions 3.10."""

    limit_per_s: int
    """0 = none."""
    remaining: int


class RateLimited(NamedTuple):
    """Refused by a rate limit: `429`, nothing stored (decisions 4)."""

    retry_after_s: int
    reached: Bound


class Failed(NamedTuple):
    """The request failed inside the service; its reason is in the log."""

    code: str
    """`internal_error`, or `service_unavailable` when trying again may help."""
    unreachable: bool = False
    """The store did not respond: nothing can be asked of it for the response either."""


class PipelineResult(NamedTuple):
    """The response of the pipeline to an `Identify`: the rate limit at admission, and the outcome."""

    admission: Admission
    outcome: Identified | Duplicate | Refused | RateLimited | Failed


class Identify(NamedTuple):
    """A request at the entry of the pipeline: its key is valid and its body could be read."""

    submission: Submission
    limit_per_s: int
    """The organization's rate limit now."""
    address: str | None
    """The visitor's, shortened to what is counted as one, where it has a limit of its own (decisions 4)."""
    reply: Reply[PipelineResult]


class Admitted(NamedTuple):
    """An `Identify` that passed the rate limits."""

    submission: Submission
    admission: Admission
    reply: Reply[PipelineResult]

    def respond(self, outcome: Identified | Duplicate | Refused | Failed) -> None:
        """Send the outcome to the caller, with the rate limit as it was at admission. Call this once."""
        self.reply.set(PipelineResult(self.admission, outcome))


class Assessed(NamedTuple):
    """An `Admitted` with everything that can be derived from its report without the store; the transaction is still to
    be made.
    """

    assessment: Assessment
    admitted: Admitted


BANDS = ((100, "100"), (95, "95-99"), (90, "90-94"), (85, "85-89"), (0, "0"))
"""Where confidences begin, and what they are counted as."""
NOT_SCORED = "none"
NOT_DECIDED = "none"
NEWS_S = 60.0
"""How long nothing is logged again of an organization that goes on being refused."""


class IdentificationStatistics(msgspec.Struct):
    """Identifications since the start, by result. Refused ones count only in `quotas`."""

    matched: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter[tuple[str, str]])
    """By how the visitor was found or why it was not, and by band of confidence."""
    levels: Counter[str] = msgspec.field(
        default_factory=lambda: Counter(dict.fromkeys((*get_args(Level), NOT_SCORED), 0))
    )
    """By suspect level; `NOT_SCORED` without one."""
    signals: Counter[str] = msgspec.field(default_factory=lambda: Counter(dict.fromkeys(CATALOG, 0)))
    """Triggers, by signal: those with a weight in force."""
    decisions: Counter[str] = msgspec.field(
        default_factory=lambda: Counter(dict.fromkeys((*RULE_ACTIONS, NOT_DECIDED), 0))
    )
    """By what a rule decided; `NOT_DECIDED` where none matched."""
    shadow: Counter[str] = msgspec.field(default_factory=lambda: Counter(dict.fromkeys(RULE_ACTIONS, 0)))
    """Matches of rules in shadow mode, by what they would have decided."""
    rule_errors: int = 0
    """Evaluations of rules and of webhook filters that failed."""
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
        counted.decisions[NOT_DECIDED if verdict.decision is None else verdict.decision.action] += 1
        if recorded.event is not None:
            for match in recorded.event.shadow:
                counted.shadow[match.action] += 1
            counted.rule_errors += len(recorded.event.rule_errors)
        counted.flooding += recorded.flooding

    def is_news(self, organization: int, now_s: float) -> bool:
        """Return whether nothing was logged of the organization for `NEWS_S`; if so, the next period begins."""
        logged_at = self._logged_at.get(organization)
        if logged_at is not None and now_s - logged_at < NEWS_S:
            return False
        self._logged_at[organization] = now_s
        return True

    def statistics(self) -> IdentificationStatistics:
        """Return a copy of all counts since the start. Every quota is in it; other names once they were counted."""
        return deepcopy(self._counted)


def band(confidence: int) -> str:
    """Return the label in `BANDS` for a visitor confidence of 0 to 100, such as `90-94`."""
    return next(name for start, name in BANDS if confidence >= start)
