"""Rules as they are kept, and what a ruleset decides of an event (decisions 13.1, 13.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import Any, Final, Literal, NamedTuple

import msgspec

from svc.features.rules.language.conditions import FAILURES, Condition, known
from svc.features.rules.language.cost import BUDGET, FILTER_BUDGET, fetched_units
from svc.features.rules.language.evaluation import Evaluation, InList, Values
from svc.identify.model import Decision, RuleAction, ShadowMatch
from svc.identify.records import Event
from svc.identify.velocity.counts import OTHERS, SUBJECTS, WINDOWS, Counts, Subject
from svc.kernel.values.ids import DAY_MS

RuleMode = Literal["active", "shadow", "off"]
MAX_RULES: Final = 100
"""Of an organization and kind of environment."""
MAX_NAME: Final = 80
"""Characters."""
MAX_PROPOSALS: Final = 20
"""Of an organization and kind of environment."""
PROPOSAL_MS: Final = 90 * DAY_MS
"""How long a proposal is kept that nobody takes or dismisses."""
LONGEST_PROPOSAL_NOTE: Final = 500
"""Characters."""


class Rule(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One rule. Append fields, never move them."""

    id: str
    name: str
    condition: str
    action: RuleAction
    mode: RuleMode = "active"
    note: str = ""


class Ruleset(msgspec.Struct, frozen=True, array_like=True, kw_only=True, dict=True):
    """The rules of an organization for one kind of environment, in their order. Append fields, never move them."""

    revision: int
    rules: tuple[Rule, ...]
    saved_at_ms: int = 0
    saved_by: str = ""
    """Id of the key that saved it; of a command the name of its user."""

    @property
    def is_prepared(self) -> bool:
        """Return whether its conditions are compiled."""
        return "prepared" in self.__dict__

    @cached_property
    def prepared(self) -> Prepared:
        """Return its rules ready for evaluation, compiled once for each process."""
        return prepared(self.rules, known)


class Proposal(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A whole ruleset that a member submits for an admin's approval. Append fields with defaults, never move them."""

    id: str
    revision: int
    """Of the ruleset that it was made from."""
    rules: tuple[Rule, ...]
    note: str
    created_at_ms: int
    author: str | None = None
    """The member who made it."""


def prepared(rules: Iterable[Rule], compiled: Callable[[str], Condition]) -> Prepared:
    """Return rules that are ready for evaluation. `compiled`: returns the condition of a text."""
    living = tuple((rule, compiled(rule.condition)) for rule in rules if rule.mode != "off")
    others = tuple(each for each in living if not each[1].is_any_of_lists)
    lists = frozenset[str]().union(*(each.lists for _, each in living))
    asked_alone = frozenset[str]().union(*(each.lists for _, each in living if each.is_any_of_lists))
    return Prepared(living, lists, _share(living), others, asked_alone)


class Prepared(NamedTuple):
    """A ruleset that is ready for evaluation."""

    rules: tuple[tuple[Rule, Condition], ...]
    """Active ones and shadows, in their order."""
    lists: frozenset[str]
    """Lists that any of them names."""
    share: int | None
    """Units that a rule may cost; `None` = the rules together may cost `BUDGET`, and can't cost more."""
    others: tuple[tuple[Rule, Condition], ...]
    """The rules that do more than ask whether a value is in any of some lists."""
    asked_alone: frozenset[str]
    """The lists that all of the rules but `others` name: nearly always an event is in none of them."""


def _share(rules: Sequence[tuple[Rule, Condition]]) -> int | None:
    """Return each rule's even share of the budget, for rules saved before there was one that exceed it together."""
    names = frozenset[str]().union(*(condition.names for _, condition in rules))
    units = fetched_units(names, {}) + sum(condition.units for _, condition in rules)
    return None if units <= BUDGET else BUDGET // len(rules)


class Decided(NamedTuple):
    """What a ruleset makes of an event."""

    decision: Decision | None
    shadow: tuple[ShadowMatch, ...] = ()
    errors: tuple[str, ...] = ()
    """Ids of the rules whose evaluation failed."""
    reasons: tuple[str, ...] = ()
    """Why, of each of `errors`."""


FIRST: Final = Ruleset(
    revision=0,
    rules=(
        Rule(
            id="rul_BlockedLists00000000",
            name="Blocked",
            condition='in_list("blocked_visitors") || in_list("blocked_accounts") || in_list("blocked_addresses")',
            action="block",
            note="Visitors, accounts and addresses of the blocked lists.",
        ),
        Rule(
            id="rul_TrustedLists00000000",
            name="Trusted",
            condition='in_list("trusted_visitors") || in_list("trusted_accounts") || in_list("trusted_addresses")',
            action="allow",
            note="Visitors, accounts and addresses of the trusted lists.",
        ),
    ),
)
"""What every organization starts with, blocked before trusted (decisions 13.3): see docs/adr/0168."""


def may_be_trusted(list_name: str, event: Event, *, is_verified: bool) -> bool:
    """Return whether the value of an event may be looked up in this list (decisions 13.3). A visitor can name any
    account, and send a token that is not its own: `trusted_accounts` needs an account from a secret key, or a pair of
    visitor and account that a backend verified before (`is_verified`); `trusted_visitors` an event without
    `token_conflict`.
    """
    if list_name == "trusted_accounts":
        return event.account_verified or is_verified
    if list_name == "trusted_visitors":
        return all(fired.signal != "token_conflict" for fired in event.verdict.signals or ())
    return True


class Ages(NamedTuple):
    """For how many days a visitor and an account have been known; `None` = there is none."""

    visitor: int | None = None
    account: int | None = None


LabelsOf = Callable[[Literal["visitor", "account"]], Sequence[str]]
"""What other events of a visitor or an account turned out to be, each label once."""


class _Sources(NamedTuple):
    """What variables are read of."""

    event: Event
    ages: Ages
    labels: LabelsOf


class Facts:
    """The facts about an event that conditions are evaluated on; `labels` are asked only where a condition names
    them. Nothing in it refers to itself: cycles are left to the garbage collector, which costs more than the rules.
    """

    def __init__(
        self,
        event: Event,
        ages: Ages,
        in_list: InList,
        in_any_list: Callable[[frozenset[str]], bool],
        labels: LabelsOf,
    ) -> None:
        self.event = event
        self.ages = ages
        self.in_list = in_list
        self.in_any_list = in_any_list
        self.values = Values(partial(_value, _Sources(event, ages, labels)))
        """The variables, each read once, however many ask."""


def evaluate(prepared: Prepared, facts: Facts) -> Decided:
    """Return the decision: the first active rule whose condition is true decides; shadows are evaluated as well."""
    if not prepared.rules:
        return NOTHING_DECIDED
    evaluation, rules = evaluation_of(facts, BUDGET), prepared.rules
    if prepared.asked_alone and not facts.in_any_list(prepared.asked_alone):
        rules = prepared.others
    decision: Decision | None = None
    shadow: list[ShadowMatch] = []
    failed: list[tuple[str, str]] = []
    share = prepared.share
    for rule, condition in rules:
        if decision is not None and rule.mode == "active":
            continue
        if share is not None:
            evaluation.units = share
        try:
            is_true = condition.evaluate(evaluation)
        except FAILURES as error:
            failed.append((rule.id, str(error)))
            continue
        if not is_true:
            continue
        if rule.mode == "active":
            decision = Decision(rule.action, rule.id, rule.name)
        else:
            shadow.append(ShadowMatch(rule.id, rule.name, rule.action))
    if not failed:
        return Decided(decision, tuple(shadow))
    errors, reasons = zip(*failed, strict=True)
    return Decided(decision, tuple(shadow), errors, reasons)


def matches(texts: Iterable[str], facts: Facts) -> dict[str, bool | None]:
    """Return for each filter whether it is true of an event; `None` if its evaluation fails. Variables and lists that
    several of them name are read once.
    """
    evaluation = evaluation_of(facts, FILTER_BUDGET)
    found: dict[str, bool | None] = {}
    for text in texts:
        evaluation.units = FILTER_BUDGET
        answer = known(text).ask(evaluation)
        found[text] = None if isinstance(answer, str) else answer
    return found


def evaluation_of(facts: Facts, units: int) -> Evaluation:
    """Return an evaluation about these facts that may cost a number of units."""
    return Evaluation(facts.values, facts.in_list, units)


def _value(facts: _Sources, name: str) -> Any:
    """Return a fact; `None` for an unknown name, which conditions saved by an earlier version may have."""
    read = _VALUES.get(name)
    return None if read is None else read(facts)


def with_decision(event: Event, decided: Decided) -> Event:
    """Return the event with the decision of the rules; the same object if they made none."""
    if decided == NOTHING_DECIDED:
        return event
    verdict = msgspec.structs.replace(event.verdict, decision=decided.decision)
    return msgspec.structs.replace(event, verdict=verdict, shadow=decided.shadow, rule_errors=decided.errors)


def with_errors(event: Event, failed: tuple[str, ...]) -> Event:
    """Return the event with more ids of rules and filters whose evaluation failed."""
    return msgspec.structs.replace(event, rule_errors=event.rule_errors + failed) if failed else event


NOTHING_DECIDED: Final = Decided(None)


def _velocity(facts: _Sources) -> dict[str, dict[str, dict[str, int]]] | None:
    """Return all counts of velocity; `None` for an event from before 0.3.0."""
    if facts.event.velocity is None:
        return None
    return {
        subject: {kind: _window(counts, place) for kind, place in _PLACES[subject].items()}
        for subject in SUBJECTS
        if (counts := _counts(facts.event, subject))
    }


def _counts(event: Event, subject: Subject) -> Counts | None:
    return getattr(event.velocity, subject)


def _window(counts: Counts, place: int) -> dict[str, int]:
    hour, day, month = WINDOWS
    first, second, third = counts.others[place] if place >= 0 else counts.events
    return {hour: first, day: second, month: third}


def _one_window(subject: Subject, place: int, facts: _Sources) -> dict[str, int] | None:
    counts = None if facts.event.velocity is None else _counts(facts.event, subject)
    return None if counts is None else _window(counts, place)


_PLACES: Final[dict[Subject, dict[str, int]]] = {
    subject: {kind: place for place, kind in enumerate(("events", *kinds), -1)} for subject, kinds in OTHERS.items()
}
"""Subject -> kind -> place in `Counts.others`; -1 = the events."""


_VALUES: Final[dict[str, Callable[[_Sources], Any]]] = {
    "score": lambda facts: facts.event.verdict.suspect_score,
    "level": lambda facts: facts.event.verdict.suspect_level,
    "signals": lambda facts: [fired.signal for fired in facts.event.verdict.signals or ()],
    "groups": lambda facts: [group.signal for group in facts.event.verdict.triggers],
    "visitor.id": lambda facts: facts.event.verdict.visitor_id,
    "visitor.is_new": lambda facts: facts.event.verdict.visitor_is_new,
    "visitor.confidence": lambda facts: facts.event.verdict.visitor_confidence,
    "visitor.identifiable": lambda facts: facts.event.verdict.identifiable,
    "visitor.age_days": lambda facts: facts.ages.visitor,
    "account.id": lambda facts: facts.event.account_id,
    "account.verified": lambda facts: None if facts.event.account_id is None else facts.event.account_verified,
    "account.age_days": lambda facts: facts.ages.account,
    "action": lambda facts: facts.event.action,
    "tag": lambda facts: facts.event.tag,
    "environment": lambda facts: facts.event.environment,
    "platform": lambda facts: facts.event.platform,
    "sdk_platform": lambda facts: facts.event.sdk_platform,
    "origin": lambda facts: facts.event.origin,
    "address.ip": lambda facts: facts.event.ip_address,
    "address.country": lambda facts: facts.event.country_code,
    "address.asn": lambda facts: facts.event.asn,
    "address.asn_name": lambda facts: facts.event.asn_name,
    "address.anonymity_network": lambda facts: facts.event.anonymity_network,
    "agent": lambda facts: facts.event.agent,
    "os": lambda facts: facts.event.os,
    "device_kind": lambda facts: facts.event.device_kind,
    "visitor_kind": lambda facts: facts.event.visitor_kind,
    "velocity": _velocity,
    **{
        f"velocity.{subject}.{kind}": partial(_one_window, subject, place)
        for subject, places in _PLACES.items()
        for kind, place in places.items()
    },
    "labels.visitor": lambda facts: list(facts.labels("visitor")),
    "labels.account": lambda facts: list(facts.labels("account")),
    "now": lambda facts: facts.event.occurred_at_ms * 1_000_000,
}
"""Name -> the value of an event. `now` is when it arrived: a preview of old events sees what they saw."""
