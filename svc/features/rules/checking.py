"""Whether a ruleset or a filter can be saved, and what its author should know (decisions 13.1, 13.4).

What may live here: rules as they were sent, beside what the organization has -> a refusal with every fault, or
warnings. Conditions are compiled here, some hundred microseconds each the first time: callers compile them one by one
before (`conditions.compile_once`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from svc.features.rules.language.conditions import OVER_BUDGET, Condition, compile_once, is_true_of_all
from svc.features.rules.language.cost import BUDGET, FILTER_BUDGET, UNITS_A_MS, fetched_units, in_ms
from svc.features.rules.language.language import MAX_LENGTH, ConditionError
from svc.features.rules.language.literals import warnings
from svc.features.rules.language.tree import called
from svc.features.rules.ruleset import MAX_NAME, MAX_RULES, Rule
from svc.identify.velocity.counts import EnvironmentKind
from svc.kernel.values.fields import is_visible
from svc.kernel.values.refusals import Detail, Issue, Refusal, invalid

ListPrefixes = Mapping[str, int]
"""Name of a list of the organization -> prefix lengths of addresses that it has, of one version; 0 of other lists."""
MAX_DRAFTED_RULES: Final = MAX_RULES * 8 // 10
DRAFT_BUDGET: Final = BUDGET * 8 // 10
"""Units up to which somebody may save rules that decide nothing: an admin can always add rules."""


class _Problem(NamedTuple):
    issue: Issue
    words: str


def check_rules(rules: Sequence[tuple[str | None, Rule]], ids: Collection[str], lists: ListPrefixes) -> Refusal | None:
    """Check rules before they are saved; each comes with the id that the client sent, or `None` for a new rule. `ids`
    are those of the rules in force. Return a `validation_error` that lists every fault, or `None` if all are valid.
    """
    if len(rules) > MAX_RULES:
        return invalid("rules", "too_long")
    faults: list[Detail] = []
    explained: list[str] = []
    names: set[str] = set()
    left = set(ids)
    budget = _Budget(lists)
    for position, (rule_id, rule) in enumerate(rules):
        where = f"rules[{position}]"
        faults += (Detail(f"{where}.{name}", issue, "body") for name, issue in _faults(rule_id, rule, left, names))
        names.add(rule.name)
        left.discard(rule_id or "")
        if len(rule.condition) <= MAX_LENGTH:
            problem = _problem(rule, lists, budget)
            if problem is not None:
                faults.append(Detail(f"{where}.condition", problem.issue, "body"))
                explained.append(f"{where}.condition: {problem.words}")
    return Refusal("validation_error", tuple(faults), explanation="; ".join(explained)) if faults else None


def check_drafts(rules: Sequence[Rule], in_force: Sequence[Rule], lists: ListPrefixes) -> Refusal | None:
    """Return why somebody who saves rules that decide nothing may not save this ruleset, which was checked: it would
    grow beyond the number of rules or the cost that leave some to an admin. `None` if it may be saved.
    """
    if len(rules) > max(MAX_DRAFTED_RULES, len(in_force)):
        why = f"your role may bring the ruleset to {MAX_DRAFTED_RULES} rules: the others are an admin's"
        return invalid("rules", "too_long", explanation=f"rules: {why}")
    units = _units(rules, lists)
    if units > max(DRAFT_BUDGET, _units(in_force, lists)):
        most = f"your role may bring the ruleset to {in_ms(DRAFT_BUDGET)} ms of an event"
        why = f"{most}, and it could take {in_ms(units)}: the rest is an admin's"
        return invalid("rules", "too_expensive", explanation=f"rules: {why}")
    return None


def _units(rules: Sequence[Rule], lists: ListPrefixes) -> int:
    """Return what a ruleset may cost, without rules that are off and those that could not be saved again."""
    budget = _Budget(lists)
    for rule in rules:
        found = _compiled(rule.condition, lists)
        if rule.mode != "off" and isinstance(found, Condition):
            budget.add(found)
    return budget.units


def filter_problem(condition: str, lists: ListPrefixes) -> tuple[Issue, str] | None:
    """Return why a filter of a webhook cannot be saved: the issue and words; `None` if it can."""
    found = _compiled(condition, lists)
    if isinstance(found, _Problem):
        return found
    units = found.units + fetched_units(found.names, {name: lists[name] for name in found.lists})
    return ("too_expensive", _too_expensive("the filter", units, FILTER_BUDGET)) if units > FILTER_BUDGET else None


def condition_warnings(rules: Sequence[Rule], kind: EnvironmentKind) -> Iterator[str]:
    """Yield a sentence for each of these rules, which were checked, that is true whatever an event has, and for each
    literal that no event of this kind of environment can have, beginning with `rules[n]`.
    """
    for position, rule in enumerate(rules):
        tree = compile_once(rule.condition).tree
        if tree is not None and rule.mode != "off" and is_true_of_all(tree):
            yield everything_warning(position)
        for sentence in () if tree is None else warnings(tree, kind):
            yield f"rules[{position}]: {sentence}"


def everything_warning(position: int) -> str:
    """Return the warning of a rule that matches every event."""
    return f"rules[{position}] matches every event"


def label_warnings(rules: Sequence[Rule]) -> Iterator[str]:
    """Yield a sentence for each of these rules, which were checked, of which a preview knows more than it knew then: it
    reads labels, which come after the events. It begins with `rules[n]`.
    """
    for position, rule in enumerate(rules):
        if not compile_once(rule.condition).names.isdisjoint(("labels.visitor", "labels.account")):
            yield f"rules[{position}] reads labels as they are now: when an event arrived, later ones were not known"


def unsavable(rules: Sequence[Rule], lists: ListPrefixes) -> list[str]:
    """Return the names of saved rules that could not be saved again: an earlier version took them (decisions 13.4)."""
    budget = _Budget(lists)
    return [rule.name for rule in rules if _problem(rule, lists, budget) is not None]


class _Budget:
    """The cost of the rules so far. Variables and lists that several rules name are fetched once."""

    def __init__(self, lists: ListPrefixes) -> None:
        self._lists = lists
        self._units = 0
        self._names: set[str] = set()
        self._asked: dict[str, int] = {}
        self._is_over = False

    @property
    def units(self) -> int:
        """What all cost."""
        return self._units + fetched_units(self._names, self._asked)

    def add(self, condition: Condition) -> None:
        """Count a rule."""
        self._units += condition.units
        self._names |= condition.names
        self._asked |= {name: self._lists[name] for name in condition.lists}

    def goes_over(self, condition: Condition) -> int | None:
        """Count a rule; return what all cost, in units, if this is the first that goes beyond `BUDGET`."""
        self.add(condition)
        units = self.units
        if self._is_over or units <= BUDGET:
            return None
        self._is_over = True
        return units


def _problem(rule: Rule, lists: ListPrefixes, budget: _Budget) -> _Problem | None:
    found = _compiled(rule.condition, lists)
    if isinstance(found, _Problem):
        return found
    units = None if rule.mode == "off" else budget.goes_over(found)
    if units is None:
        return None
    return _Problem("too_expensive", _too_expensive("with this rule the ruleset", units, BUDGET))


def _too_expensive(what: str, units: int, budget: int) -> str:
    return f"{what} could take {in_ms(units)} ms of an event, and {budget / UNITS_A_MS:g} are allowed: {OVER_BUDGET}"


def _compiled(condition: str, lists: ListPrefixes) -> Condition | _Problem:
    try:
        found = compile_once(condition)
    except ConditionError as error:
        return _Problem("too_expensive" if error.too_expensive else "invalid_condition", str(error))
    assert found.tree is not None, "it was compiled to be saved"
    for call in called("in_list", found.tree):
        name = call.parts[0]
        if name.value not in lists:
            return _Problem("invalid_condition", str(ConditionError(f"there is no list {name.value!r}", name.at)))
    return found


def _faults(rule_id: str | None, rule: Rule, ids: set[str], names: set[str]) -> Iterator[tuple[str, Issue]]:
    if rule_id is not None and rule_id not in ids:
        yield "id", "invalid_value"
    if rule.name in names or not is_visible(rule.name):
        yield "name", "invalid_value"
    if len(rule.name) > MAX_NAME:
        yield "name", "too_long"
    if len(rule.condition) > MAX_LENGTH:
        yield "condition", "too_long"
