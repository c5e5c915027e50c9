"""Rules in transactions: what the ruleset in force makes of an event, and how a ruleset is saved (decisions 13).

Bounds: one row is read for the ruleset, and where a rule names a list that has entries, what `AskedLists` says. An
organization says in its own row which lists these are, and whether it has saved rules or used a list at all: otherwise
no other row is read. Where a condition names labels, two rows are read for the visitor or the account.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final, Literal, NamedTuple

import msgspec

from svc.features.labels.queries import labels_of
from svc.features.lists.lists import ListKind
from svc.features.lists.queries import AskedLists, asked_prefixes, lists_of
from svc.features.members.jobs import find_member
from svc.features.rules.checking import ListPrefixes, check_rules, filter_problem, unsavable
from svc.features.rules.explanation import Term, explain
from svc.features.rules.language.conditions import known
from svc.features.rules.language.cost import BUDGET
from svc.features.rules.ruleset import (
    FIRST,
    NOTHING_DECIDED,
    Ages,
    Decided,
    Facts,
    Rule,
    Ruleset,
    evaluate,
    evaluation_of,
    may_be_trusted,
)
from svc.features.rules.tables import RULESET_HISTORY, RULESETS
from svc.features.webhooks.queries import endpoints_of
from svc.identify.queries.velocity import KnownAccount, known_account, read_account
from svc.identify.records import Event
from svc.identify.tables import VISITOR_IDS, VISITORS
from svc.identify.velocity.counts import KINDS, EnvironmentKind, kind_of
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.organization import Organization
from svc.kernel.tenants.queries import find_key_of, organization
from svc.kernel.tenants.tables import ORGANIZATIONS
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.refusals import Refusal

MAX_REVISIONS = 100
"""Of a ruleset that are kept."""


def ruleset_in_force(snapshot: Snapshot, number: int, kind: EnvironmentKind) -> Ruleset:
    """Return the ruleset in force for one kind of environment of an organization."""
    return snapshot.get(RULESETS, number, KINDS.index(kind)) or FIRST


def facts_of(
    snapshot: Snapshot,
    owner: Organization,
    event: Event,
    visitor_first_s: int | None,
    account: KnownAccount,
    listed_ms: int,
) -> Facts:
    """Return the facts about an event of the organization `owner`, whose row is the one in this snapshot, that
    conditions are evaluated on. `visitor_first_s`: since when the visitor is known (Unix seconds); `account`: what is
    known of its account; `listed_ms`: the time by which entries of lists have expired or not.
    """
    at_s = event.occurred_at_ms // 1000
    ages = Ages(_days(visitor_first_s, at_s), _days(account.first_s, at_s))
    is_relied_on = partial(may_be_trusted, event=event, is_verified=account.is_verified)
    in_list = AskedLists(snapshot, owner, partial(listed_value, event), listed_ms, is_relied_on)
    return Facts(event, ages, in_list, in_list.any_of, partial(_labels, snapshot, owner.number, event))


def listed_value(event: Event, kind: ListKind) -> str | None:
    """Return the value of an event that may be in lists of a kind; `None` if it has none."""
    return event.verdict.visitor_id if kind == "visitor" else getattr(event, _LISTED_FIELDS[kind])


_LISTED_FIELDS: Final[dict[ListKind, str]] = {
    "account": "account_id",
    "address": "ip_address",
    "country": "country_code",
    "asn": "asn",
    "origin": "origin",
    "tag": "tag",
}


def _labels(snapshot: Snapshot, number: int, event: Event, subject: Literal["visitor", "account"]) -> Sequence[str]:
    subject_id = event.verdict.visitor_id if subject == "visitor" else event.account_id
    counts = labels_of(snapshot, number, kind_of(event.environment), subject, subject_id)
    return (counts if event.label is None else counts.adding(event.label, -1)).names


def decide_event(snapshot: Snapshot, owner: Organization, facts: Facts) -> Decided:
    """Return the decision of the ruleset in force on these facts; `owner` as of `facts_of`."""
    if not owner.has_rules:
        return NOTHING_DECIDED
    return evaluate(ruleset_in_force(snapshot, owner.number, kind_of(facts.event.environment)).prepared, facts)


def as_it_arrived(event: Event) -> Event:
    """Return a stored event with the account, action and tag that its request had. Whether it named an account is known
    by its velocity, which is that of its arrival; one that was replaced or removed is `REPLACED_ACCOUNT`.
    """
    said = event.as_sent
    if said is not None:
        account_id = event.account_id if said.is_same_account else REPLACED_ACCOUNT
        event = msgspec.structs.replace(
            event, account_id=account_id, account_verified=said.account_verified, action=said.action, tag=said.tag
        )
    if event.account_id is None or event.velocity is None or event.velocity.account is not None:
        return event
    return msgspec.structs.replace(event, account_id=None, account_verified=False)


REPLACED_ACCOUNT: Final = ""
"""In the place of an account that an event does not keep: no list, label or record has it, and no rule names it."""


def facts_now(snapshot: Snapshot, owner: Organization, event: Event, now_ms: int) -> Facts:
    """Return the facts of a stored event, with its velocity, and with the lists and the labels of other events as they
    are now; a visitor that was deleted meanwhile contributes none. `owner` as of `facts_of`.
    """
    number = owner.number
    visitor = snapshot.get(VISITOR_IDS, number, event.verdict.visitor_id.encode())
    found = None if visitor is None else snapshot.get(VISITORS, number, visitor)
    at_s = event.occurred_at_ms // 1000
    record = None
    if event.account_id is not None:
        record = read_account(snapshot, number, event.environment, event.account_id)
    first_s = None if found is None else found.first_seen_s
    is_changed = event.as_sent is not None and not event.account_verified
    verified_by_s = at_s - 1 if is_changed else at_s  # the event may itself have verified the pair, later
    return facts_of(snapshot, owner, event, first_s, known_account(record, visitor, verified_by_s), now_ms)


class ExplainedRule(NamedTuple):
    """The result of a rule for a stored event."""

    rule: Rule
    is_true: bool | None
    """`None` where its evaluation fails."""
    term: Term | None
    """Why; `None` where nobody asked."""


def explained(
    snapshot: Snapshot, number: int, ruleset: Ruleset, event: Event, wanted: str | None, most: int, now_ms: int
) -> list[ExplainedRule]:
    """Return the result of each rule of a ruleset, including rules that are off, for a stored event as it arrived.
    Terms are included for the rule with the id `wanted`, for the rule that decided, and for the first `most` others
    that match. Blocks the loop for some milliseconds.
    """
    facts = facts_now(snapshot, organization(snapshot, number), as_it_arrived(event), now_ms)
    decided = None if event.verdict.decision is None else event.verdict.decision.rule_id
    found: list[ExplainedRule] = []
    for rule in ruleset.rules:
        condition, evaluation = known(rule.condition), evaluation_of(facts, BUDGET)
        is_true = condition.ask(evaluation)
        is_explained = rule.id in (wanted, decided)
        if is_true is True and not is_explained and most:
            is_explained, most = True, most - 1
        term = explain(rule.condition, evaluation_of(facts, BUDGET)) if is_explained else None
        found.append(ExplainedRule(rule, None if isinstance(is_true, str) else is_true, term))
    return found


def _days(first_s: int | None, at_s: int) -> int | None:
    return None if first_s is None else max(0, at_s - first_s) * 1000 // DAY_MS


def save_rules(
    transaction: Transaction,
    number: int,
    kind: EnvironmentKind,
    revision: int,
    rules: Sequence[Rule],
    saved_by: str,
    now_ms: int,
) -> Ruleset | Refusal:
    """Store these rules as the next revision, in force from the next transaction on, and return the ruleset. Rules
    without an id get one. Where they are those in force, nothing is stored, and nobody's revision is outdated.
    Refusals: `409 revision_conflict` if another revision is in force; `422`: see `checked_rules`.
    """
    before = ruleset_in_force(transaction, number, kind)
    if before.revision != revision:
        return Refusal("revision_conflict", explanation=SAVED_SINCE)
    if before.rules == tuple(rules):
        return before
    saved = Ruleset(revision=revision + 1, rules=tuple(rules), saved_at_ms=now_ms, saved_by=saved_by)
    place = KINDS.index(kind)
    transaction.put(RULESET_HISTORY, (number, place, before.revision), before)
    if before.revision > MAX_REVISIONS:  # the first one stays: it tells that others were saved
        transaction.delete(RULESET_HISTORY, number, place, before.revision - MAX_REVISIONS)
    transaction.put(RULESETS, (number, place), saved)
    owner = organization(transaction, number)
    if not owner.has_rules:  # its identifications evaluate them from now on
        transaction.put(ORGANIZATIONS, (number,), msgspec.structs.replace(owner, has_rules=True))
    return saved


SAVED_SINCE = "Somebody else has saved since the revision you sent. Read the rules again and repeat your change."


def checked_rules(
    snapshot: Snapshot, number: int, kind: EnvironmentKind, rules: Sequence[tuple[str | None, Rule]]
) -> Refusal | None:
    """Check rules before they are saved; each comes with the id that the client sent, or `None` for a new rule. Return
    a `validation_error` that lists every fault, or `None` if all rules are valid.
    """
    ids = {rule.id for rule in ruleset_in_force(snapshot, number, kind).rules}
    return check_rules(rules, ids, list_prefixes(snapshot, number))


def unsavable_conditions(snapshot: Snapshot, number: int) -> list[str]:
    """Return the rules and filters of an organization that could not be saved again, in words."""
    lists = list_prefixes(snapshot, number)
    rules = [
        f"rule {name!r} ({kind})"
        for kind in KINDS
        for name in unsavable(ruleset_in_force(snapshot, number, kind).rules, lists)
    ]
    endpoints = (found.endpoint for found in endpoints_of(snapshot, number))
    filters = [
        f"the filter of {endpoint.id}"
        for endpoint in endpoints
        if endpoint.filter is not None and filter_problem(endpoint.filter, lists) is not None
    ]
    return rules + filters


def idle_lists(snapshot: Snapshot, number: int) -> list[str]:
    """Return the lists that every organization has, of those with entries, that no active rule of production names:
    their entries decide nothing.
    """
    rules = ruleset_in_force(snapshot, number, "live").rules
    asked = {name for rule in rules if rule.mode == "active" for name in known(rule.condition).lists}
    filled = (name for name, found in lists_of(snapshot, number).items() if found.is_permanent and found.entries)
    return [name for name in filled if name not in asked]


def list_prefixes(snapshot: Snapshot, number: int) -> ListPrefixes:
    """Return the lists of the organization by name, with the prefix lengths that a question asks of each."""
    return {name: asked_prefixes(found) for name, found in lists_of(snapshot, number).items()}


def revisions(snapshot: Snapshot, number: int, kind: EnvironmentKind) -> list[Ruleset]:
    """Return the earlier rulesets that are kept, newest first, without the present one."""
    return list(_before(snapshot, number, kind, None))


def some_revisions(
    snapshot: Snapshot, number: int, kind: EnvironmentKind, before: int | None, limit: int
) -> list[Ruleset]:
    """Return at most `limit` rulesets with revisions below `before`, newest first; `None` = from the present one on."""
    present = [ruleset_in_force(snapshot, number, kind)] if before is None else []
    return [*present, *islice(_before(snapshot, number, kind, before), limit - len(present))]


def ruleset_at(snapshot: Snapshot, number: int, kind: EnvironmentKind, at_ms: int) -> Ruleset | None:
    """Return the ruleset that was in force at a time (Unix ms); `None` if it is no longer kept."""
    present = ruleset_in_force(snapshot, number, kind)
    if present.saved_at_ms <= at_ms:
        return present
    earlier = (found for found in _before(snapshot, number, kind, None) if found.saved_at_ms <= at_ms)
    return next(earlier, None)


_LAST_REVISION = 2**32 - 1
"""That a key of the history has room for."""


def _before(snapshot: Snapshot, number: int, kind: EnvironmentKind, revision: int | None) -> Iterator[Ruleset]:
    place = KINDS.index(kind)
    end = (number, place + 1) if revision is None else (number, place, min(revision, _LAST_REVISION))
    return (found for _, found in snapshot.scan_reverse(RULESET_HISTORY, (number, place), end))


def author_name(snapshot: Snapshot, number: int, who: str) -> str | None:
    """Return the name of the member or key that saved a ruleset (`Ruleset.saved_by`), while there is one."""
    found = find_member(snapshot, number, who) or find_key_of(snapshot, number, who, ("management",))
    return None if found is None else found.name


class RuleNames(NamedTuple):
    """Names of the rules of an organization, by id."""

    in_force: list[str]
    """Ids, in their order."""
    known: dict[str, str]
    """Also of former rules, by their last name."""


def rule_names(snapshot: Snapshot, number: int, kind: EnvironmentKind) -> RuleNames:
    """Return the names of the rules in the ruleset in force and in the revisions that are kept."""
    ruleset = ruleset_in_force(snapshot, number, kind)
    rulesets = [*reversed(revisions(snapshot, number, kind)), ruleset]
    known = {rule.id: rule.name for each in rulesets for rule in each.rules}
    return RuleNames([rule.id for rule in ruleset.rules], known)


def is_named(snapshot: Snapshot, number: int, name: str) -> bool:
    """Return whether a rule, even in shadow mode or off, or the filter of a webhook endpoint names a list."""
    rules = (rule.condition for kind in KINDS for rule in ruleset_in_force(snapshot, number, kind).rules)
    filters = (found.endpoint.filter for found in endpoints_of(snapshot, number))
    return any(name in known(text).lists for text in (*rules, *filter(None, filters)))
