"""Decisions of one ruleset beside those before it: how many changed, from what to what, and by which rule.

What may live here: (decision before, decision after) of an identification -> counts and examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import msgspec

from svc.features.rules.language.conditions import compile_once
from svc.features.weights.preview import most_frequent_first
from svc.identify.events.event_row import DecisionBody
from svc.identify.events.hour_counts import matched_rules
from svc.identify.model import Decision
from svc.identify.records import Event
from svc.kernel.values.timestamps import timestamp
from svc_replay.store import Tried
from svc_replay.verdicts import Examples

_DIFFERENT = {
    "labels.visitor": "a replay has no labels",
    "labels.account": "a replay has no labels",
    "environment": "it is development in a replay",
}
"""Variable of a condition -> what a replay has in its place."""
_OF_DATABASES = dict.fromkeys(
    ("address.country", "address.asn", "address.asn_name"), "the built-in data have none: give --network"
)
NONE = "none"
"""In the place of an action: no rule decided."""


class DecisionMove(msgspec.Struct, frozen=True):
    """Identifications that went from one action to another."""

    before: str = msgspec.field(name="from")
    after: str = msgspec.field(name="to")
    count: int


class RuleChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule decided in both runs. `mode` is that of the later one; `gone` = it is not in it."""

    rule: str
    rule_id: str
    mode: str
    before: int
    """Identifications that it decided."""
    after: int
    """The same of the later run; of a rule in shadow mode, those that it matched."""
    errors: int = 0
    """Identifications of the later run for which its evaluation failed."""


class ChangedDecision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An identification whose decision changed. A decision is left out if no rule made one."""

    request_id: str
    """Of the event that was replayed, else of the replay."""
    occurred_at: str
    before: DecisionBody | None = None
    after: DecisionBody | None = None


class DecisionComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between the decisions of two runs."""

    compared: int
    changed: int
    """Another action, or another rule."""
    before: dict[str, int]
    """Action -> identifications; `none` = no rule decided."""
    after: dict[str, int]
    moves: tuple[DecisionMove, ...]
    """From which action to which, most frequent first."""
    by_rule: tuple[RuleChange, ...]
    """Rules of the later run in their order, then those that are gone."""
    examples: tuple[ChangedDecision, ...]
    """Oldest first, of each kind of change some."""
    warnings: tuple[str, ...]
    """As `warnings_of`."""


def warnings_of(tried: Tried, *, has_databases: bool) -> Iterator[str]:
    """Yield a sentence for each variable that a rule, which was checked, reads itself or by a list, and that is another
    in a replay than when the events arrived. It begins with `rules[n]`. `has_databases`: whether a folder of network
    data is named.
    """
    different = _DIFFERENT if has_databases else _DIFFERENT | _OF_DATABASES
    for position, rule in enumerate(tried.rules):
        condition = compile_once(rule.condition)
        names = condition.names | {f"address.{one.kind}" for one in tried.lists if one.name in condition.lists}
        for name, says in different.items():
            if name in names:
                yield f"rules[{position}] reads {name}: {says}"


class Decisions:
    """Counts what differs. Give it each identification once, in the order of the later run."""

    def __init__(self, tried: Tried, most_examples: int, *, has_databases: bool) -> None:
        self._tried, self._has_databases = tried, has_databases
        self._compared = self._changed = 0
        self._actions: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self._moves: Counter[tuple[str, str]] = Counter()
        self._matched: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self._errors: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._examples = Examples[ChangedDecision](most_examples)

    def note(self, request_id: str | UUID, before: Decision | None, event: Event) -> None:
        """Count an identification, given its previous decision and the event with its present one."""
        after = event.verdict.decision
        self._compared += 1
        actions = tuple(NONE if one is None else one.action for one in (before, after))
        for counts, action in zip(self._actions, actions, strict=True):
            counts[action] += 1
        if before is not None:
            self._matched[0][before.rule_id] += 1
            self._names[before.rule_id] = before.rule
        self._matched[1].update(matched_rules(after, event.shadow))
        self._errors.update(event.rule_errors)
        kind = (*actions, *("" if one is None else one.rule_id for one in (before, after)))
        if len(set(kind[:2])) == len(set(kind[2:])) == 1:
            return
        self._changed += 1
        if actions[0] != actions[1]:
            self._moves[actions[0], actions[1]] += 1
        self._examples.keep(
            kind,
            lambda: ChangedDecision(
                request_id=str(request_id),
                occurred_at=timestamp(event.occurred_at_ms),
                before=_body(before),
                after=_body(after),
            ),
        )

    def summary(self) -> DecisionComparison:
        """Return the totals over all identifications noted so far."""
        return DecisionComparison(
            compared=self._compared,
            changed=self._changed,
            before=dict(self._actions[0].most_common()),
            after=dict(self._actions[1].most_common()),
            moves=tuple(DecisionMove(*actions, count) for actions, count in most_frequent_first(self._moves)),
            by_rule=self._by_rule(),
            examples=self._examples.chosen(),
            warnings=tuple(warnings_of(self._tried, has_databases=self._has_databases)),
        )

    def _by_rule(self) -> tuple[RuleChange, ...]:
        modes = {rule.id: (rule.name, rule.mode) for rule in self._tried.rules}
        gone = {rule_id: (name, "gone") for rule_id, name in self._names.items() if rule_id not in modes}
        return tuple(
            RuleChange(
                rule=name,
                rule_id=rule_id,
                mode=mode,
                before=self._matched[0][rule_id],
                after=self._matched[1][rule_id],
                errors=self._errors[rule_id],
            )
            for rule_id, (name, mode) in (modes | gone).items()
        )


def _body(decision: Decision | None) -> DecisionBody | None:
    return None if decision is None else DecisionBody(decision.action, decision.rule_id, decision.rule)
