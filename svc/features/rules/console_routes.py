"""Rules in the console: why an event was decided as it was, the revisions of a ruleset, the examples of a preview, and
what an editor asks for while somebody writes (decisions 13).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, get_args
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.events.routes import read_request_id
from svc.features.lists.lists import ListKind
from svc.features.lists.queries import list_names
from svc.features.rules.compiling import compile_rules, compile_saved
from svc.features.rules.explanation import Operand, Term, TermKind
from svc.features.rules.jobs import (
    ExplainedRule,
    author_name,
    checked_rules,
    explained,
    ruleset_at,
    ruleset_in_force,
    some_revisions,
)
from svc.features.rules.language.language import VARIABLES
from svc.features.rules.routes import (
    EXAMPLES,
    Action,
    Condition,
    Mode,
    PreviewBody,
    RevisionRule,
    RuleId,
    RuleName,
    RulesQuery,
    given_rules,
)
from svc.features.rules.ruleset import MAX_RULES, Ruleset
from svc.http.route import Call, Route, Services, console_route
from svc.identify.events.event_row import DecisionBody, decision_body
from svc.identify.model import Level
from svc.identify.queries.events import event_if_readable, readable_event
from svc.identify.records import Event
from svc.identify.velocity.counts import EnvironmentKind, kind_of
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values import fields
from svc.kernel.values.fields import A_KEY_ID, SUSPECT_SCORE, AccountId, RequestId, Timestamp, about, open_to
from svc.kernel.values.ids import is_id
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import body_of, present, sent
from svc.kernel.values.timestamps import timestamp
from svc.kernel.work.slices import all_in_slices

MAX_EXPLAINED = 10
"""Rules of one response that are explained beside the one that decided."""
MAX_REVISIONS = 20
"""Of one page: each may have a hundred rules."""
MAX_EXAMPLES = MAX_RULES * EXAMPLES


class OperandBody(msgspec.Struct, frozen=True):
    """One side of a comparison."""

    text: Annotated[str, about("As the condition has it.", 'velocity.visitor.accounts["30d"]')]
    value: Annotated[str | UnsetType, about("Its value; left out for a literal, and without a value.", "7")] = UNSET


class TermBody(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a condition. Its own parts follow it, one deeper."""

    depth: Annotated[int, about("0 for the condition as a whole.", 0)]
    kind: Annotated[TermKind, about("`all`, `any` and `not` are about the parts that follow.", "term")]
    text: Annotated[str, about("As the condition has it.", 'velocity.visitor.accounts["30d"] >= 5')]
    result: Annotated[bool | None, about("Its result; `null` where its evaluation fails.", True)]
    operator: Annotated[str | UnsetType, about("Of a comparison.", ">=")] = UNSET
    left: Annotated[OperandBody, about("Of a comparison.")] | UnsetType = UNSET
    right: Annotated[OperandBody, about("Of a comparison.", {"text": "5"})] | UnsetType = UNSET
    absent: (
        Annotated[tuple[str, ...], about("Variables of the part that the event has no value of.", ["account.id"])]
        | UnsetType
    ) = UNSET


class EventRule(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule makes of the event."""

    rule_id: RuleId
    name: RuleName
    action: Action
    mode: Mode
    condition: Condition
    matches: Annotated[bool | None, about("`null` where its evaluation fails.", True)]
    terms: (
        Annotated[tuple[TermBody, ...], about("Why, from the whole condition to its parts, where it is given.")]
        | UnsetType
    ) = UNSET


class EventRulesBody(msgspec.Struct, frozen=True, kw_only=True):
    """What the ruleset that was in force then makes of an event."""

    revision: (
        Annotated[int, about("Of the ruleset that decided then; left out where it is not kept any more.", 3)]
        | UnsetType
    ) = UNSET
    saved_at: Annotated[Timestamp, about("When it was saved; left out for the initial ruleset.")] | UnsetType = UNSET
    is_in_force: Annotated[bool, about("Whether it still decides.", True)]
    decision: Annotated[DecisionBody, about("What was decided then; left out where no rule matched.")] | UnsetType = (
        UNSET
    )
    rules: Annotated[tuple[EventRule, ...], about("In their order, with lists and labels as they are now.")]


class EventRulesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which rules are explained beside those that match."""

    rule_id: Annotated[RuleId, about("A rule whose terms are included, too.")] | UnsetType = UNSET


class SavedBy(msgspec.Struct, frozen=True):
    """The author of a revision."""

    id: Annotated[str, about("Id of the member or key; of a command the name of its user.", A_KEY_ID)]
    name: Annotated[str | UnsetType, about("Name of the member or key, while there is one.", "Ada Lovelace")] = UNSET


class RevisionBody(msgspec.Struct, frozen=True, kw_only=True):
    """A ruleset as it was saved."""

    revision: Annotated[int, about("0 is the initial ruleset.", 3)]
    saved_at: Annotated[Timestamp, about("When; left out for the initial ruleset.")] | UnsetType = UNSET
    saved_by: Annotated[SavedBy, about("By whom; left out for the initial ruleset.")] | UnsetType = UNSET
    rules: Annotated[tuple[RevisionRule, ...], about("In their order.")]


class RevisionsBody(msgspec.Struct, frozen=True, kw_only=True):
    """Revisions of a ruleset."""

    revisions: Annotated[tuple[RevisionBody, ...], about("Newest first; the first of all is in force.")]
    next_before: Annotated[int | UnsetType, about("`before` of the next page; left out on the last one.", 3)] = UNSET


class RevisionsQuery(RulesQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the revisions."""

    before: Annotated[int, Meta(ge=0), about("Only revisions below this one.", 3)] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=MAX_REVISIONS), about("How many, at most.", 10)] = 10


class ExamplesBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which events are shown: the examples of a preview."""

    request_ids: Annotated[tuple[RequestId, ...], Meta(max_length=MAX_EXAMPLES), about("Ids of the events.")]


class ExampleBody(msgspec.Struct, frozen=True, kw_only=True):
    """What an example of a preview is known by."""

    request_id: RequestId
    occurred_at: Annotated[Timestamp, about("When the request arrived.")]
    suspect_score: Annotated[int | None, SUSPECT_SCORE]
    suspect_level: Annotated[
        Level | UnsetType, about("Left out when not scored.", "medium", form=open_to(*get_args(Level)))
    ] = UNSET
    account_id: AccountId | UnsetType = UNSET
    action: fields.Action | UnsetType = UNSET


class ExamplesAnswer(msgspec.Struct, frozen=True):
    """Examples of a preview."""

    rows: Annotated[tuple[ExampleBody, ...], about("In the order of the ids, without events that are gone.")]


class VariableBody(msgspec.Struct, frozen=True):
    """A variable of conditions."""

    name: Annotated[str, about("As conditions write it.", "visitor.is_new")]
    type: Annotated[str, about("Its type in CEL.", "bool")]


class ListNameBody(msgspec.Struct, frozen=True):
    """A list that conditions may name."""

    name: Annotated[str, about("As in `in_list`.", "blocked_visitors")]
    kind: Annotated[ListKind, about("What its entries are.", "visitor")]


class LanguageBody(msgspec.Struct, frozen=True):
    """What conditions may name."""

    variables: Annotated[tuple[VariableBody, ...], about("In the order of the documentation.")]
    functions: Annotated[tuple[str, ...], about("Functions of conditions, beside those of CEL.", ['in_list("name")'])]
    lists: Annotated[tuple[ListNameBody, ...], about("In the order of their names.")]


FUNCTIONS = ('present("account.id")', 'in_list("blocked_visitors")', 'cidr(address.ip, "10.0.0.0/8")')


async def explain_event(services: Services, call: Call) -> EventRulesBody | Refusal:
    """`GET /console/api/events/{request_id}/rules`: what the ruleset of then makes of an event, and why. `404
    event_not_found`, `422 invalid_request_id`, or `invalid_value` for a `rule_id` that is none.
    """
    query: EventRulesQuery = call.query
    request_id = read_request_id(call.path["request_id"])
    if isinstance(request_id, Refusal):
        return request_id
    if query.rule_id is not UNSET and not is_id("rul_", query.rule_id):
        return invalid("rule_id", "invalid_value", "query")
    number = call.organization.number

    def find(snapshot: Snapshot) -> Event | None:
        return readable_event(snapshot, number, request_id, call.at_ms, services.event_retention_ms)

    def find_ruleset(snapshot: Snapshot) -> Ruleset | None:
        event = find(snapshot)
        return event and ruleset_at(snapshot, number, kind_of(event.environment), event.occurred_at_ms)

    ruleset = await services.store.query(find_ruleset)
    await compile_saved(services, ruleset.rules if ruleset else ())

    def read(snapshot: Snapshot) -> EventRulesBody | Refusal:
        event = find(snapshot)
        if event is None:
            return Refusal(
                "event_not_found", explanation="The organization has no such event, or its retention has ended."
            )
        return _explained(snapshot, number, event, ruleset, sent(query.rule_id), call.at_ms)

    return await services.store.query(read)


def _explained(
    snapshot: Snapshot, number: int, event: Event, ruleset: Ruleset | None, wanted: str | None, now_ms: int
) -> EventRulesBody:
    kind = kind_of(event.environment)
    decision = decision_body(event.verdict.decision)
    if ruleset is None:
        return EventRulesBody(is_in_force=False, decision=decision, rules=())
    found = explained(snapshot, number, ruleset, event, wanted, MAX_EXPLAINED, now_ms)
    return EventRulesBody(
        revision=ruleset.revision,
        saved_at=_saved_at(ruleset),
        is_in_force=ruleset.revision == ruleset_in_force(snapshot, number, kind).revision,
        decision=decision,
        rules=tuple(map(_rule, found)),
    )


def _rule(found: ExplainedRule) -> EventRule:
    terms = UNSET if found.term is None else tuple(_terms(found.term, 0))
    return body_of(EventRule, found.rule, rule_id=found.rule.id, matches=found.is_true, terms=terms)


def _terms(term: Term, depth: int) -> Iterator[TermBody]:
    yield TermBody(
        depth=depth,
        kind=term.kind,
        text=term.text,
        result=term.result,
        operator=term.operator or UNSET,
        left=_operand(term.left),
        right=_operand(term.right),
        absent=term.absent or UNSET,
    )
    for part in term.terms:
        yield from _terms(part, depth + 1)


def _operand(operand: Operand | None) -> OperandBody | UnsetType:
    return UNSET if operand is None else OperandBody(operand.text, present(operand.value))


def _saved_at(ruleset: Ruleset) -> str | UnsetType:
    return timestamp(ruleset.saved_at_ms) if ruleset.saved_at_ms else UNSET


async def list_revisions(services: Services, call: Call) -> RevisionsBody | Refusal:
    """`GET /console/api/rules/history`: the ruleset in force and those before it, newest first."""
    query: RevisionsQuery = call.query
    number = call.organization.number
    read = partial(_revisions, number=number, kind=query.environment, before=sent(query.before), limit=query.limit)
    return await services.store.query(read)


def _revisions(snapshot: Snapshot, number: int, kind: EnvironmentKind, before: int | None, limit: int) -> RevisionsBody:
    found = some_revisions(snapshot, number, kind, before, limit + 1)
    shown = found[:limit]
    return RevisionsBody(
        revisions=tuple(
            RevisionBody(
                revision=ruleset.revision,
                saved_at=_saved_at(ruleset),
                saved_by=_saved_by(snapshot, number, ruleset.saved_by),
                rules=tuple(RevisionRule(**msgspec.structs.asdict(rule)) for rule in ruleset.rules),
            )
            for ruleset in shown
        ),
        next_before=shown[-1].revision if len(found) > limit else UNSET,
    )


def _saved_by(snapshot: Snapshot, number: int, who: str) -> SavedBy | UnsetType:
    return SavedBy(who, present(author_name(snapshot, number, who))) if who else UNSET


async def check_rules(services: Services, call: Call) -> Refusal | None:
    """`POST /console/api/rules/check`: `204` for rules that could be saved; refused as a save is, and `429` after much
    work.
    """
    query: RulesQuery = call.query
    body: PreviewBody = call.body
    number = call.organization.number
    rules = given_rules(body.rules)
    refusal = await compile_rules(services, number, [rule for _, rule in rules], call.at_ms)
    return refusal or await services.store.query(
        partial(checked_rules, number=number, kind=query.environment, rules=rules)
    )


async def read_language(services: Services, call: Call) -> LanguageBody | Refusal:
    """`GET /console/api/rules/language`: what conditions may name."""
    names = await services.store.query(partial(list_names, number=call.organization.number))
    variables = tuple(VariableBody(name, of) for name, of in VARIABLES.items())
    return LanguageBody(variables, FUNCTIONS, tuple(ListNameBody(*each) for each in names.items()))


async def read_examples(services: Services, call: Call) -> ExamplesAnswer | Refusal:
    """`POST /console/api/rules/examples`: what the examples of a preview are known by, of any environment of the
    organization; those that it does not have are left out. `422 validation_error`.
    """
    body: ExamplesBody = call.body
    request_ids: list[UUID] = []
    for at, text in enumerate(body.request_ids):
        request_id = read_request_id(text)
        if isinstance(request_id, Refusal):
            return invalid(f"request_ids[{at}]", "invalid_value")
        request_ids.append(request_id)
    number = call.organization.number
    oldest_ms = call.at_ms - services.event_retention_ms

    def read(snapshot: Snapshot, some: Sequence[UUID]) -> Iterator[ExampleBody | None]:
        for request_id in some:
            event = event_if_readable(snapshot, number, request_id.bytes)
            if event is None or event.occurred_at_ms < oldest_ms:
                yield None
            else:
                yield body_of(ExampleBody, event, event.verdict, request_id=str(request_id))

    found = await all_in_slices(services.world, services.store, request_ids, read)
    return ExamplesAnswer(tuple(each for each in found if each is not None))


ROUTES: tuple[Route, ...] = (
    console_route(
        operation_id="explainConsoleEvent",
        path="/events/{request_id}/rules",
        summary="Explain the decision of an event",
        description=(
            "What each rule of the ruleset that was in force then makes of the event, with lists and labels as they "
            "are now: the one that decided, and those that would have matched after it, in shadow mode or turned off. "
            f"Terms are shown for the rule that decided, up to {MAX_EXPLAINED} others that match, and `rule_id`."
        ),
        handler=explain_event,
        query=EventRulesQuery,
        errors=("event_not_found", "invalid_request_id"),
    ),
    console_route(
        operation_id="listConsoleRevisions",
        path="/rules/history",
        summary="List revisions of the rules",
        description="The ruleset in force and the last 100 before it.",
        handler=list_revisions,
        query=RevisionsQuery,
    ),
    console_route(
        operation_id="checkConsoleRules",
        method="POST",
        path="/rules/check",
        summary="Check rules before they are saved",
        description="Refused as saving them would be; nothing is saved, and no event is looked at.",
        handler=check_rules,
        needs="read",
        query=RulesQuery,
        body=PreviewBody,
        status=204,
    ),
    console_route(
        operation_id="getConsoleLanguage",
        path="/rules/language",
        summary="Read what conditions may name",
        description="Variables with their types, functions, and lists.",
        handler=read_language,
    ),
    console_route(
        operation_id="readConsoleExamples",
        method="POST",
        path="/rules/examples",
        summary="Read the examples of a preview",
        description=f"Of up to {MAX_EXAMPLES} events; those that the organization does not have are left out.",
        handler=read_examples,
        needs="read",
        body=ExamplesBody,
    ),
)
