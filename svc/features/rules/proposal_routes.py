"""Proposals of rules: draft rulesets that members submit for an admin's approval (decisions 15.1)."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.rules.compiling import compile_rules
from svc.features.rules.jobs import checked_rules, ruleset_in_force
from svc.features.rules.routes import (
    A_RULESET,
    Action,
    Condition,
    Mode,
    Note,
    RuleFields,
    RuleId,
    RuleName,
    RulesQuery,
    given_rules,
    new_rule_id,
)
from svc.features.rules.ruleset import LONGEST_PROPOSAL_NOTE, MAX_PROPOSALS, Proposal
from svc.features.rules.tables import RULE_PROPOSALS
from svc.http.change import caller_of, change, member_of
from svc.http.route import ORGANIZATION, Call, Route, Services
from svc.identify.velocity.counts import KINDS, EnvironmentKind
from svc.kernel.access.audit import Audited
from svc.kernel.access.roles import may
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.fields import A_MEMBER_ID, Timestamp, about, id_form
from svc.kernel.values.ids import ordered_id, raw_ordered_id
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import body_of

_AN_ID = "prop_0qppzPLvL54VURDkQrfS"
_Note = Annotated[
    str, Meta(max_length=LONGEST_PROPOSAL_NOTE), about("Why, for admins.", "Decided nothing wrong in shadow mode.")
]


class NewProposalBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole ruleset that is submitted for approval."""

    revision: Annotated[int, Meta(ge=0), about("Of the ruleset that it was made from.", 0)]
    rules: Annotated[tuple[RuleFields, ...], about("All rules, in their order, as a save takes them.", A_RULESET)]
    note: _Note = ""


class ProposedRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of a proposal."""

    id: (
        Annotated[RuleId, about("Left out of a rule that is not in force: a save of these rules makes it.")] | UnsetType
    ) = UNSET
    name: RuleName
    condition: Condition
    action: Action
    mode: Mode
    note: Note


class ProposalBody(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal."""

    id: Annotated[str, about("Id of the proposal.", _AN_ID, form=id_form("prop_"))]
    revision: Annotated[int, about("Of the ruleset that it was made from.", 3)]
    rules: Annotated[tuple[ProposedRule, ...], about("In their order.")]
    note: _Note
    created_at: Annotated[Timestamp, about("When it was made.")]
    author: (
        Annotated[str, about("The member who made it; left out where a management key did.", A_MEMBER_ID)] | UnsetType
    ) = UNSET


class ProposalsBody(msgspec.Struct, frozen=True):
    """The proposals for one kind of environment."""

    proposals: Annotated[tuple[ProposalBody, ...], about("Oldest first: at most 20.")]


async def list_proposals(services: Services, call: Call) -> ProposalsBody:
    """`GET .../rule-proposals`: what waits for an admin, oldest first."""
    query: RulesQuery = call.query
    place = KINDS.index(query.environment)
    number = call.organization.number

    def read(snapshot: Snapshot) -> tuple[ProposalBody, ...]:
        return tuple(_row(snapshot, number, query.environment, each) for each in _proposals(snapshot, number, place))

    return ProposalsBody(await services.store.query(read))


def _proposals(snapshot: Snapshot, number: int, place: int) -> list[Proposal]:
    rows = snapshot.scan(RULE_PROPOSALS, number, place)
    return [proposal for _, proposal in islice(rows, MAX_PROPOSALS)]


def _row(snapshot: Snapshot, number: int, kind: EnvironmentKind, proposal: Proposal) -> ProposalBody:
    return body_of(ProposalBody, proposal, rules=proposed_rules(snapshot, number, kind, proposal))


def proposed_rules(
    snapshot: Snapshot, number: int, kind: EnvironmentKind, proposal: Proposal
) -> tuple[ProposedRule, ...]:
    """Return the rules of a proposal as a save takes them."""
    in_force = {rule.id for rule in ruleset_in_force(snapshot, number, kind).rules}
    rules = (ProposedRule(**msgspec.structs.asdict(rule)) for rule in proposal.rules)
    return tuple(rule if rule.id in in_force else msgspec.structs.replace(rule, id=UNSET) for rule in rules)


async def propose(services: Services, call: Call) -> ProposalBody | Refusal:
    """`POST .../rule-proposals`: `201` with the new proposal. Refused as a save is, but for its revision, which may be
    an earlier one; `409 proposal_limit`.
    """
    query: RulesQuery = call.query
    body: NewProposalBody = call.body
    number, kind = call.organization.number, query.environment
    given = given_rules(body.rules, new_rule_id(services))
    refusal = await compile_rules(services, number, [rule for _, rule in given], call.at_ms)
    if refusal is not None:
        return refusal
    proposal = Proposal(
        id=ordered_id("prop", call.at_ms, services.world.entropy(16)),
        revision=body.revision,
        rules=tuple(rule for _, rule in given),
        note=body.note,
        created_at_ms=call.at_ms,
        author=member_of(call),
    )
    raw_id = raw_ordered_id("prop", proposal.id)

    def job(transaction: Transaction) -> ProposalBody | Refusal:
        refusal = checked_rules(transaction, number, kind, given)
        if body.revision > ruleset_in_force(transaction, number, kind).revision:
            refusal = invalid("revision", "out_of_range")
        place = KINDS.index(kind)
        if refusal is None and len(_proposals(transaction, number, place)) >= MAX_PROPOSALS:
            refusal = Refusal("proposal_limit")
        if refusal is not None:
            return refusal
        transaction.put(RULE_PROPOSALS, (number, place, raw_id), proposal)
        return _row(transaction, number, kind, proposal)

    return await change(services, call, job)


async def dismiss(services: Services, call: Call) -> Refusal | None:
    """`DELETE .../rule-proposals/{proposal_id}`: `204`, by an admin or its author. `404 not_found`, `403
    insufficient_role`.
    """
    query: RulesQuery = call.query
    key = call.organization.number, KINDS.index(query.environment), raw_ordered_id("prop", call.path["proposal_id"])

    def job(transaction: Transaction) -> Refusal | None:
        found = None if key[2] is None else transaction.get(RULE_PROPOSALS, *key)
        if found is None:
            return Refusal("not_found")
        is_own = found.author is not None and found.author == member_of(call)
        if not is_own and not may(caller_of(call).key.role, "administer"):
            return Refusal("insufficient_role")
        transaction.delete(RULE_PROPOSALS, *key)
        return None

    refusal = await change(services, call, job, may_use_reserve=True)
    return refusal if isinstance(refusal, Refusal) else None


_PROPOSALS = ORGANIZATION + "/rule-proposals"
_route = partial(
    Route,
    tag="Management: rules",
    kinds=("management",),
    query=RulesQuery,
    variables={"proposal_id": Annotated[str, about("Id of the proposal.", _AN_ID)]},
)
ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="listRuleProposals",
        path=_PROPOSALS,
        summary="List proposals of rules",
        description="What waits for an admin. A proposal is kept for 90 days.",
        handler=list_proposals,
    ),
    _route(
        operation_id="proposeRules",
        method="POST",
        path=_PROPOSALS,
        summary="Propose rules to an admin",
        description="Nothing is in force. Refused as saving the rules would be; at most 20 wait.",
        handler=propose,
        needs="draft",
        audited=Audited(made="id"),
        body=NewProposalBody,
        status=201,
        errors=("proposal_limit",),
    ),
    _route(
        operation_id="dismissRuleProposal",
        method="DELETE",
        path=_PROPOSALS + "/{proposal_id}",
        summary="Dismiss a proposal of rules",
        description="By an admin, or by its author.",
        handler=dismiss,
        needs="draft",
        status=204,
    ),
)
