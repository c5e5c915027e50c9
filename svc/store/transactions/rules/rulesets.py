"""Rules in transactions: what the ruleset in force makes of an event, and how a ruleset is saved (decisions 13).

Bounds: one row is read for the ruleset. An organization that has saved no rules and has no lists pays for that row and
one key alone; for each list that a rule names, what `views/lists.py` says; where one names labels, two rows for
the visitor or the account.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

from svc.domain.accounts.velocity import KINDS, EnvironmentKind, kind_of
from svc.domain.ids import DAY_MS
from svc.domain.records import Event
from svc.domain.refusals import Detail, Issue, Refusal
from svc.domain.rules.conditions import MAX_LENGTH, ConditionError, compiled
from svc.domain.rules.ruleset import (
    FIRST,
    MAX_NAME,
    MOST_RULES,
    NOTHING_DECIDED,
    Decided,
    Known,
    Rule,
    Ruleset,
    evaluate,
)
from svc.store.schema.tables import LISTS, RULESET_HISTORY, RULESETS, VISITOR_IDS, VISITORS
from svc.store.snapshot import Snapshot, Transaction
from svc.store.views.labels import labels_of
from svc.store.views.lists import contains, list_names, named_list
from svc.store.views.velocity import party_of, read_row

MOST_REVISIONS = 100
"""Of a ruleset that are kept."""


def ruleset_in_force(snapshot: Snapshot, number: int, kind: EnvironmentKind) -> Ruleset:
    """That of an organization for one kind of environment."""
    return snapshot.get(RULESETS, number, KINDS.index(kind)) or FIRST


def decide_event(
    snapshot: Snapshot, number: int, event: Event, visitor_first_s: int | None, account_first_s: int | None
) -> Decided:
    """What the ruleset in force makes of an event. The times say since when its visitor and its account are known."""
    ruleset = ruleset_in_force(snapshot, number, kind_of(event.environment))
    if ruleset is FIRST and next(snapshot.scan_keys(LISTS, (number,), (number + 1,)), None) is None:
        return NOTHING_DECIDED
    return _evaluated(snapshot, number, ruleset, event, visitor_first_s, account_first_s)


def decide_by(snapshot: Snapshot, number: int, ruleset: Ruleset, event: Event) -> Decided:
    """What a ruleset would make of a stored event now, with its velocity and the lists as they are."""
    visitor = snapshot.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
    known = None if visitor is None else snapshot.get(VISITORS, number, visitor)
    account_first_s = None
    if event.account_id is not None:
        account_first_s = read_row(
            snapshot, party_of(number, event, visitor), "account", event.occurred_at_ms // 1000
        ).first_s
    visitor_first_s = None if known is None else known.first_seen_s
    return _evaluated(snapshot, number, ruleset, event, visitor_first_s, account_first_s)


def _evaluated(
    snapshot: Snapshot,
    number: int,
    ruleset: Ruleset,
    event: Event,
    visitor_first_s: int | None,
    account_first_s: int | None,
) -> Decided:
    at_s, kind, names = event.occurred_at_ms // 1000, kind_of(event.environment), ruleset.prepared.names
    known = Known(_days(visitor_first_s, at_s), _days(account_first_s, at_s))
    if "labels.visitor" in names:
        counts = labels_of(snapshot, number, kind, "visitor", event.verdict.visitor_id)
        known = known._replace(visitor_labels=counts.names)
    if "labels.account" in names:
        counts = labels_of(snapshot, number, kind, "account", event.account_id)
        known = known._replace(account_labels=counts.names)
    return evaluate(ruleset, event, known, cache(partial(_is_listed, snapshot, number, event)))


def _days(first_s: int | None, at_s: int) -> int | None:
    return None if first_s is None else max(0, at_s - first_s) * 1000 // DAY_MS


def _is_listed(snapshot: Snapshot, number: int, event: Event, name: str) -> bool:
    found = named_list(snapshot, number, name)
    if found is None:
        return False
    value = {
        "visitor": event.verdict.visitor_id,
        "account": event.account_id,
        "address": event.ip_address,
        "country": event.country_code,
        "asn": event.asn,
        "origin": event.origin,
        "tag": event.tag,
    }[found.kind]
    return contains(snapshot, number, found, value, event.occurred_at_ms)


def save_rules(
    transaction: Transaction,
    number: int,
    kind: EnvironmentKind,
    revision: int,
    rules: Sequence[Rule],
    saved_by: str,
    now_ms: int,
) -> Ruleset | Refusal:
    """The ruleset with these rules, in force from the next transaction on. A rule without an id gets one before.

    `409 revision_conflict` where another revision is in force; `422` as of `checked_rules`.
    """
    before = ruleset_in_force(transaction, number, kind)
    if before.revision != revision:
        return Refusal("revision_conflict", explanation=SAVED_SINCE)
    saved = Ruleset(revision=revision + 1, rules=tuple(rules), saved_at_ms=now_ms, saved_by=saved_by)
    place = KINDS.index(kind)
    transaction.put(RULESET_HISTORY, (number, place, before.revision), before)
    if before.revision >= MOST_REVISIONS:
        transaction.delete(RULESET_HISTORY, number, place, before.revision - MOST_REVISIONS)
    transaction.put(RULESETS, (number, place), saved)
    return saved


SAVED_SINCE = "Somebody else has saved since the revision you sent. Read the rules again and repeat your change."


def checked_rules(
    snapshot: Snapshot, number: int, kind: EnvironmentKind, rules: Sequence[tuple[str | None, Rule]]
) -> Refusal | None:
    """Why rules cannot be saved, with every fault; each has the id that was sent. `None` where they can."""
    if len(rules) > MOST_RULES:
        return Refusal("validation_error", (Detail("rules", "too_long", "body"),))
    ids = {rule.id for rule in ruleset_in_force(snapshot, number, kind).rules}
    lists = list_names(snapshot, number)
    faults: list[Detail] = []
    problems: list[str] = []
    names: set[str] = set()
    given: set[str] = set()
    for position, (rule_id, rule) in enumerate(rules):
        where = f"rules[{position}]"
        for name, issue in _faults(rule_id, rule, ids - given, names):
            faults.append(Detail(f"{where}.{name}", issue, "body"))
        names.add(rule.name)
        given |= {rule_id} if rule_id is not None else set()
        problem = None if len(rule.condition) > MAX_LENGTH else _problem(rule.condition, lists.keys())
        if problem is not None:
            faults.append(Detail(f"{where}.condition", "invalid_condition", "body"))
            problems.append(f"{where}.condition: {problem}")
    return Refusal("validation_error", tuple(faults), explanation="; ".join(problems)) if faults else None


def _faults(rule_id: str | None, rule: Rule, ids: set[str], names: set[str]) -> list[tuple[str, Issue]]:
    found: list[tuple[str, Issue]] = []
    if rule_id is not None and rule_id not in ids:
        found.append(("id", "invalid_value"))
    if rule.name in names or not rule.name.strip():
        found.append(("name", "invalid_value"))
    if len(rule.name) > MAX_NAME:
        found.append(("name", "too_long"))
    if len(rule.condition) > MAX_LENGTH:
        found.append(("condition", "too_long"))
    return found


def _problem(condition: str, lists: object) -> str | None:
    try:
        found = compiled(condition)
    except ConditionError as error:
        return str(error)
    unknown = sorted(found.lists - set(lists))  # pyright: ignore[reportArgumentType]  keys of a dictionary
    return f"there is no list {unknown[0]!r}" if unknown else None


def revisions(snapshot: Snapshot, number: int, kind: EnvironmentKind) -> list[Ruleset]:
    """Those that were in force, newest first, without the present one."""
    place = KINDS.index(kind)
    return [found for _, found in snapshot.scan_reverse(RULESET_HISTORY, (number, place), (number, place + 1))]


class RuleNames(NamedTuple):
    """Names of the rules of an organization, by id."""

    in_force: list[str]
    """Ids, in their order."""
    known: dict[str, str]
    """Also of former rules, by their last name."""


def rule_names(snapshot: Snapshot, number: int, kind: EnvironmentKind) -> RuleNames:
    """Of the ruleset in force and of the revisions that are kept."""
    ruleset = ruleset_in_force(snapshot, number, kind)
    rulesets = [*reversed(revisions(snapshot, number, kind)), ruleset]
    known = {rule.id: rule.name for each in rulesets for rule in each.rules}
    return RuleNames([rule.id for rule in ruleset.rules], known)


def is_named(snapshot: Snapshot, number: int, name: str) -> bool:
    """Whether a rule names a list, also one in shadow mode or off."""
    return any(
        name in compiled(rule.condition).lists
        for kind in KINDS
        for rule in ruleset_in_force(snapshot, number, kind).rules
    )
