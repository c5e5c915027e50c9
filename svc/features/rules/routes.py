"""Rules of an organization: read, saved as a whole, and tried on the newest events (decisions 13).

Conditions are compiled one by one, after the revision was compared, and a preview reads its events in slices of time:
identifications go on in between. Both have a price in the organization's allowance of work (docs/adr/0172).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from svc.features.accounts.queries import environments_of
from svc.features.events.routes import newest_positions
from svc.features.lists.standing import ruleset_warnings
from svc.features.rules.checking import check_drafts, condition_warnings, everything_warning, label_warnings
from svc.features.rules.compiling import compile_rules
from svc.features.rules.jobs import (
    SAVED_SINCE,
    as_it_arrived,
    checked_rules,
    facts_now,
    list_prefixes,
    ruleset_in_force,
    save_rules,
)
from svc.features.rules.language.conditions import compile_once
from svc.features.rules.ruleset import MAX_RULES, Decided, Prepared, Rule, RuleMode, Ruleset, evaluate, prepared
from svc.http.callers.limits import EVENT_WORK
from svc.http.change import caller_of, change
from svc.http.route import ORGANIZATION, Call, Route, Services
from svc.identify.events.hour_counts import matched_rules
from svc.identify.model import Decision, RuleAction
from svc.identify.queries import events
from svc.identify.queries.events import EventPosition
from svc.identify.queries.hours import hours_behind
from svc.identify.records import Event
from svc.identify.velocity.counts import EnvironmentKind
from svc.kernel.access.roles import may
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.queries import organization
from svc.kernel.values.fields import RequestId, about, id_form
from svc.kernel.values.ids import DAY_MS, HOUR_MS
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.struct_fields import body_of, record_of, sent
from svc.kernel.work.slices import in_slices, in_turns, scanned
from svc.world import twenty_characters

MAX_PREVIEWED = 10_000
EXAMPLES = 5
"""Of each rule of a preview."""

RuleId = Annotated[str, about("Id of the rule.", "rul_0qppzPLvL54VURDkQrfS", form=id_form("rul_"))]
RuleName = Annotated[str, about("Its name: unique, up to 80 characters.", "Fifth account of a browser")]
Condition = Annotated[
    str,
    about("When it matches, in CEL (the Common Expression Language).", 'velocity.visitor.accounts["30d"] >= 5'),
]
Action = Annotated[RuleAction, about("What it decides.", "review")]
Mode = Annotated[
    RuleMode, about("`shadow`: it is evaluated and counted, and decides nothing. `off`: neither.", "active")
]
Note = Annotated[str, Meta(max_length=500), about("For people.", "Asked for by the payments team.")]


A_RULESET = [
    {
        "name": "Fifth account",
        "condition": 'velocity.visitor.accounts["30d"] >= 5',
        "action": "review",
        "mode": "shadow",
    }
]


_A_WARNING = ["rules[0]: line 1, column 10: no event has 'hihg' there, since it is not a level"]


class RuleFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A rule as it is sent. One with the `id` of a rule that is in force takes its part."""

    id: RuleId | UnsetType = UNSET
    name: RuleName
    condition: Condition
    action: Action
    mode: Mode = "active"
    note: Note = ""
    counts: Annotated[Any, about("Ignored, so that a rule can be sent as it was read.", None)] = None


class RulesBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole ruleset as it shall be, and the revision that it follows."""

    revision: Annotated[int, about("The revision that was read.", 0)]
    rules: Annotated[
        tuple[RuleFields, ...], about("All rules, in their order: the first that matches decides.", A_RULESET)
    ]


class PreviewBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules that are tried. Nothing is saved."""

    rules: Annotated[tuple[RuleFields, ...], about("All rules, in their order.", A_RULESET)]


class RuleCounts(msgspec.Struct, frozen=True):
    """Recent results of a rule."""

    matched_24h: Annotated[
        int, about("Events of the last 24 hours, from a full hour on, that it decided or matched in shadow mode.", 12)
    ]
    matched_30d: Annotated[int, about("The same of the last 30 days.", 340)]
    errors_24h: Annotated[int, about("Events of the last 24 hours for which its evaluation failed.", 0)]


class RevisionRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of a revision."""

    id: RuleId
    name: RuleName
    condition: Condition
    action: Action
    mode: Mode
    note: Note


class RuleRow(RevisionRule, frozen=True, kw_only=True):
    """A rule that is in force."""

    counts: Annotated[RuleCounts, about("Whole hours: those that the window touches.")]


class RulesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The ruleset of one kind of environment."""

    environment: Annotated[EnvironmentKind, about("`live` is production, `test` staging and development.", "live")]
    revision: Annotated[int, about("Grows by one at each save; 0 = the initial ruleset.", 3)]
    rules: Annotated[tuple[RuleRow, ...], about("In their order: the first active one that matches decides.")]
    warnings: Annotated[tuple[str, ...] | UnsetType, about("What may not be meant: see previews.", _A_WARNING)] = UNSET


class PreviewedRule(msgspec.Struct, frozen=True, kw_only=True):
    """The results that a rule would have had."""

    rule_id: RuleId | UnsetType = UNSET
    name: RuleName
    matches: Annotated[int, about("Events that it would have decided, or matched in shadow mode.", 12)]
    examples: Annotated[tuple[RequestId, ...], about("The newest of them.")]
    errors: Annotated[int, about("Events on which its evaluation failed: it does not match then.", 0)]
    error: Annotated[str | UnsetType, about("Why, on the newest of them.", "the event has no account.id")] = UNSET


class RulesPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The results that the newest events would have had."""

    events: Annotated[int, about("Events that were looked at.", 10_000)]
    rules: Annotated[tuple[PreviewedRule, ...], about("In the order in which they were sent.")]
    before: Annotated[dict[str, int], about("Action -> events as they were decided; `none` = by no rule.", {"none": 9})]
    after: Annotated[dict[str, int], about("The same by these rules.", {"review": 1, "none": 8})]
    warnings: Annotated[
        tuple[str, ...] | UnsetType,
        about("In words: rules that match every event or read labels, literals that no event can have.", _A_WARNING),
    ] = UNSET


class RulesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which ruleset is meant."""

    environment: Annotated[
        Literal["live", "test"], about("`live` is production, `test` staging and development.", "live")
    ] = "live"


async def read_rules(services: Services, call: Call) -> RulesAnswer | Refusal:
    """`GET .../rules`: the ruleset in force, with the recent results of its rules."""
    number, kind = call.organization.number, call.query.environment
    return await _shown(services, call, await services.store.query(partial(ruleset_in_force, number=number, kind=kind)))


async def put_rules(services: Services, call: Call) -> RulesAnswer | Refusal:
    """`PUT .../rules`: the whole ruleset (decisions 13.1). `409 revision_conflict`, `422` with every fault, `429` after
    much work; `403 insufficient_role` for a change of rules that decide, except by an admin (15.1).
    """
    query: RulesQuery = call.query
    body: RulesBody = call.body
    caller = caller_of(call)
    number, kind = caller.organization.number, query.environment
    in_force = await services.store.query(partial(ruleset_in_force, number=number, kind=kind))
    if in_force.revision != body.revision:
        return Refusal("revision_conflict", explanation=SAVED_SINCE)
    rules = given_rules(body.rules, new_rule_id(services))
    kept = [rule for _, rule in rules]
    is_draft = not may(caller.key.role, "administer")
    if is_draft and _deciding(in_force.rules) != _deciding(kept):
        return Refusal("insufficient_role", explanation=ONLY_DRAFTS)
    refusal = await compile_rules(services, number, kept, call.at_ms)
    if refusal is not None:
        return refusal

    def job(transaction: Transaction) -> Ruleset | Refusal:
        refusal = checked_rules(transaction, number, kind, rules)
        if refusal is None and is_draft:
            before = ruleset_in_force(transaction, number, kind).rules
            refusal = check_drafts(kept, before, list_prefixes(transaction, number))
        if refusal is not None:
            return refusal
        return save_rules(transaction, number, kind, body.revision, kept, caller.key.id, call.at_ms)

    saved = await change(services, call, job)
    if isinstance(saved, Refusal):
        return saved
    warnings = (*ruleset_warnings(saved), *condition_warnings(kept, kind))
    return replace(await _shown(services, call, saved), warnings=warnings or UNSET)


def _deciding(rules: Sequence[Rule]) -> list[Rule]:
    return [rule for rule in rules if rule.mode == "active"]


ONLY_DRAFTS = (
    "Your role saves rules in the modes shadow and off, and leaves active ones and their order as they are. Propose "
    "the change to an admin."
)


async def preview_rules(services: Services, call: Call) -> RulesPreview | Refusal:
    """`POST .../rules/preview`: the results that the newest 10,000 events would have had, with their stored velocity,
    and lists and labels as they are now. Refused as a save is; `429` while another long read of the organization runs,
    and after much work.
    """
    query: RulesQuery = call.query
    body: PreviewBody = call.body
    number, kind = call.organization.number, query.environment
    given = given_rules(body.rules)
    rules = [rule for _, rule in given]
    refusal = await compile_rules(services, number, rules, call.at_ms)
    refusal = refusal or await services.store.query(partial(checked_rules, number=number, kind=kind, rules=given))
    refusal = refusal or call.turn.refusal()
    if refusal is not None:
        return refusal
    with call.turn.exclusive():
        places = await newest_positions(
            services, call.turn, number, environments_of(kind), call.at_ms, most=MAX_PREVIEWED
        )
        services.limits.work_refusal(number, EVENT_WORK * len(places), call.at_ms)
        tried = Ruleset(revision=0, rules=tuple(rules))
        tally = await _tally(services, call, prepared(rules, compile_once), places)
    return _previewed(tally, body.rules, tried, kind)


def given_rules(
    rules: Sequence[RuleFields], new_id: Callable[[int], str] = "rules[{}]".format
) -> list[tuple[str | None, Rule]]:
    """Return (id that was sent, rule) of each, up to the first of too many. `new_id`: the id of a rule without one, by
    its place; without it that of a rule that is only tried.
    """
    given = enumerate(rules[: MAX_RULES + 1])
    return [(sent(rule.id), record_of(Rule, rule, id=sent(rule.id) or new_id(at))) for at, rule in given]


def new_rule_id(services: Services) -> Callable[[int], str]:
    """Return a function that makes the id of a rule that was sent without one."""
    return lambda _: "rul_" + twenty_characters(services.world.entropy)


class _Tally:
    def __init__(self) -> None:
        self.looked_at = 0
        self.before = Counter[str]()
        self.after = Counter[str]()
        self.matches = Counter[str]()
        self.errors = Counter[str]()
        self.reasons: dict[str, str] = {}
        self.examples: defaultdict[str, list[str]] = defaultdict(list)

    def note(self, request_id: UUID, event: Event, decided: Decided) -> None:
        """Count an event and the result that it would have had."""
        self.looked_at += 1
        self.before[_action(event.verdict.decision)] += 1
        self.after[_action(decided.decision)] += 1
        for rule_id in matched_rules(decided.decision, decided.shadow):
            self.matches[rule_id] += 1
            if len(self.examples[rule_id]) < EXAMPLES:
                self.examples[rule_id].append(str(request_id))
        self.errors.update(decided.errors)
        for rule_id, reason in zip(decided.errors, decided.reasons, strict=True):
            self.reasons.setdefault(rule_id, reason)


async def _tally(services: Services, call: Call, tried: Prepared, places: Sequence[EventPosition]) -> _Tally:
    tally = _Tally()
    decided = partial(_decided, call.organization.number, call.at_ms, tried)
    slices = in_slices(services.world, services.store, places, decided)
    async with aclosing(in_turns(slices, call.turn.held)) as parts:
        async for found in parts:
            for each in found:
                if each is not None:
                    tally.note(*each)
    return tally


def _decided(
    number: int, now_ms: int, tried: Prepared, snapshot: Snapshot, places: Sequence[EventPosition]
) -> Iterator[tuple[UUID, Event, Decided] | None]:
    """Yield what the rules decide about each of these events; `None` for one that is gone."""
    owner = organization(snapshot, number)
    for each in events.read_each(snapshot, places):
        if each is None:
            yield None
        else:
            facts = facts_now(snapshot, owner, as_it_arrived(each.event), now_ms)
            yield each.request_id, each.event, evaluate(tried, facts)


def _previewed(tally: _Tally, sent_rules: Sequence[RuleFields], tried: Ruleset, kind: EnvironmentKind) -> RulesPreview:
    rules = tried.rules
    everything = [at for at, rule in enumerate(rules) if 0 < tally.looked_at == tally.matches[rule.id]]
    warnings = [*map(everything_warning, everything), *label_warnings(rules)]
    return RulesPreview(
        events=tally.looked_at,
        rules=tuple(
            PreviewedRule(
                rule_id=sent_rule.id,
                name=sent_rule.name,
                matches=tally.matches[rule.id],
                examples=tuple(tally.examples[rule.id]),
                errors=tally.errors[rule.id],
                error=tally.reasons.get(rule.id, UNSET),
            )
            for sent_rule, rule in zip(sent_rules, rules, strict=True)
        ),
        before=dict(tally.before),
        after=dict(tally.after),
        warnings=tuple(dict.fromkeys((*warnings, *ruleset_warnings(tried), *condition_warnings(rules, kind)))) or UNSET,
    )


def _action(decision: Decision | None) -> str:
    return "none" if decision is None else decision.action


async def _shown(services: Services, call: Call, ruleset: Ruleset) -> RulesAnswer:
    """Return a ruleset with its counts, which are sums of whole hours: of those that the last 24 hours touch, and of
    those that are wholly within 30 days, before which nothing is listed.
    """
    number, now_ms, kind = call.organization.number, call.at_ms, call.query.environment
    month, day, failed = Counter[str](), Counter[str](), Counter[str]()
    for environment in environments_of(kind):
        scan = partial(hours_behind, number=number, environment=environment, to_ms=now_ms + 1)
        slices = scanned(services.world, services.store, scan, max(now_ms - 30 * DAY_MS - 1, 0))
        async with aclosing(in_turns(slices, call.turn.held)) as parts:
            async for some in parts:
                for began_ms, counts in some:
                    month.update(counts.rules)
                    if began_ms > now_ms - DAY_MS - HOUR_MS:
                        day.update(counts.rules)
                        failed.update(counts.rule_errors)
    rows = (
        body_of(RuleRow, rule, counts=RuleCounts(day[rule.id], month[rule.id], failed[rule.id]))
        for rule in ruleset.rules
    )
    return RulesAnswer(environment=kind, revision=ruleset.revision, rules=tuple(rows))


_route = partial(Route, tag="Management: rules", kinds=("management",), query=RulesQuery)
ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="getRules",
        path=ORGANIZATION + "/rules",
        summary="Read the rules",
        handler=read_rules,
    ),
    _route(
        operation_id="saveRules",
        method="PUT",
        path=ORGANIZATION + "/rules",
        summary="Save the rules",
        description=(
            "The whole ruleset, in force from the next request on: a rule that is not sent is gone, also one that the "
            "organization started with. Send the `revision` that you read: another one is `409 revision_conflict`. A "
            "condition that cannot be used is `invalid_condition`; `message` has line and column. Only admins "
            "change active rules and their order, and use more than 80 % of what a ruleset may have. Where the rules "
            "could cost more than 2 ms of CPU an event, the first that goes beyond is `too_expensive`."
        ),
        handler=put_rules,
        needs="draft",
        body=RulesBody,
        errors=("revision_conflict",),
    ),
    _route(
        operation_id="previewRules",
        method="POST",
        needs="read",
        path=ORGANIZATION + "/rules/preview",
        summary="Try rules on the newest events",
        description=(
            "On the newest 10,000 events of that kind of environment, with their stored velocity, without what was "
            "set later, and with lists and labels as they are now. Refused as saving the rules would be."
        ),
        handler=preview_rules,
        body=PreviewBody,
    ),
)
