"""Where visitors, accounts and addresses stand: their entries in the lists that every organization has, and what those
do by the ruleset in force.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.lists.bodies import EntryBody, entry_row
from svc.features.lists.lists import FIRST_LISTS, LONGEST_TAG, ListKind, canonical
from svc.features.lists.queries import find_entry, find_list, named_list
from svc.features.lists.standing import Effect, ListEffect, list_effects
from svc.features.rules.compiling import compile_in_force
from svc.features.rules.jobs import ruleset_in_force
from svc.http.route import Call, Route, Services, console_route
from svc.http.schema import InKind
from svc.identify.velocity.counts import EnvironmentKind
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import A_LIST_ID, about, id_form
from svc.kernel.values.refusals import Refusal, invalid


class StandingQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of the standing of a value."""

    environment: InKind = "live"
    kind: (
        Annotated[
            Literal["visitor", "account", "address"],
            about("Of which lists; of all six when left out.", "visitor"),
        ]
        | UnsetType
    ) = UNSET
    value: (
        Annotated[
            str, Meta(max_length=LONGEST_TAG), about("The value whose entries are wanted.", "0qppzPLvL54VURDkQrfS")
        ]
        | UnsetType
    ) = UNSET


class ListStandingBody(msgspec.Struct, frozen=True, kw_only=True):
    """A list, what an entry of it does, and the entry of the value."""

    id: Annotated[str, about("Id of the list.", A_LIST_ID, form=id_form("lst_"))]
    name: Annotated[str, about("Its name.", "blocked_visitors")]
    effect: Annotated[
        Effect,
        about(
            "`always`: a value in it is blocked or trusted. `sometimes`: the rule that reads it has more terms, or a "
            "rule above may decide first. `never`: no active rule decides so.",
            "never",
        ),
    ]
    reason: (
        Annotated[
            str, about("Why, in words; left out for `always`.", "No active rule reads it, so nothing is blocked.")
        ]
        | UnsetType
    ) = UNSET
    entry: Annotated[EntryBody, about("The entry of the value; left out where there is none.")] | UnsetType = UNSET


class StandingBody(msgspec.Struct, frozen=True, kw_only=True):
    """Where a value stands by the ruleset in force."""

    revision: Annotated[int, about("Of the ruleset.", 3)]
    lists: Annotated[tuple[ListStandingBody, ...], about("Of the kind, or all six.")]


async def read_standing(services: Services, call: Call) -> StandingBody:
    """`GET /console/api/standing`: what an entry of the lists of a kind does, and the entries of a value."""
    query: StandingQuery = call.query
    number, kind = call.organization.number, query.environment
    await compile_in_force(services, number, kind)
    read = partial(_standing, number=number, kind=kind, query=query, now_ms=call.at_ms)
    return await services.store.query(read)


def _standing(
    snapshot: Snapshot, number: int, kind: EnvironmentKind, query: StandingQuery, now_ms: int
) -> StandingBody:
    ruleset = ruleset_in_force(snapshot, number, kind)
    lists = tuple(
        _list(snapshot, number, effect, query, now_ms)
        for effect in list_effects(ruleset)
        if query.kind in (UNSET, FIRST_LISTS[effect.name])
    )
    return StandingBody(revision=ruleset.revision, lists=lists)


def _list(snapshot: Snapshot, number: int, effect: ListEffect, query: StandingQuery, now_ms: int) -> ListStandingBody:
    found = named_list(snapshot, number, effect.name)
    assert found is not None, "every organization has it"
    value = None if query.value is UNSET else canonical(found.kind, query.value)
    entry = None if value is None else find_entry(snapshot, number, found, value, now_ms)
    return ListStandingBody(
        id=found.id,
        name=effect.name,
        effect=effect.effect,
        reason=effect.reason or UNSET,
        entry=UNSET if entry is None else entry_row(entry),
    )


MAX_SUBJECTS = 100
"""Visitors, and accounts, of one question: as many as are linked in a graph."""
_Values = Annotated[
    tuple[Annotated[str, Meta(max_length=LONGEST_TAG)], ...],
    Meta(max_length=MAX_SUBJECTS),
]


class StandingsQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whose entries are wanted."""

    visitors: Annotated[_Values, about("Ids of visitors.", ["0qppzPLvL54VURDkQrfS"])] = ()
    accounts: Annotated[_Values, about("Ids of accounts.", ["user-8271"])] = ()
    list_id: (
        Annotated[
            str,
            about("Id of the only list that is asked; of those of blocked and trusted ones when left out.", A_LIST_ID),
        ]
        | UnsetType
    ) = UNSET


class StandingEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a list."""

    list_id: Annotated[str, about("Id of its list.", A_LIST_ID, form=id_form("lst_"))]
    list: Annotated[str, about("Name of its list.", "blocked_visitors")]
    entry: Annotated[EntryBody, about("The entry.")]


class StandingsBody(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of some visitors and accounts."""

    entries: Annotated[tuple[StandingEntry, ...], about("Of each list, in the order of the question.")]


async def read_standings(services: Services, call: Call) -> StandingsBody | Refusal:
    """`POST /console/api/standing`: the entries of some visitors and accounts. `422` (`invalid_value`) for a list that
    does not exist.
    """
    body: StandingsQuestion = call.body
    number = call.organization.number
    asked: dict[ListKind, tuple[str, ...]] = {"visitor": body.visitors, "account": body.accounts}

    def read(snapshot: Snapshot) -> StandingsBody | Refusal:
        if body.list_id is UNSET:
            lists = [named_list(snapshot, number, name) for name, kind in FIRST_LISTS.items() if kind in asked]
        else:
            lists = [find_list(snapshot, number, body.list_id)]
        found: list[StandingEntry] = []
        for each in lists:
            if each is None:
                return invalid("list_id", "invalid_value")
            for value in asked.get(each.kind, ()):
                entry = find_entry(snapshot, number, each, value, call.at_ms)
                if entry is not None:
                    found.append(StandingEntry(list_id=each.id, list=each.name, entry=entry_row(entry)))
        return StandingsBody(entries=tuple(found))

    return await services.store.query(read)


ROUTES: tuple[Route, ...] = (
    console_route(
        operation_id="getConsoleStanding",
        path="/standing",
        summary="Read where a value stands",
        description=(
            "Of the lists of blocked and trusted values that every organization has: whether an active rule of the "
            "ruleset in force reads them, whether a rule above may decide first, and the entries of a value."
        ),
        handler=read_standing,
        query=StandingQuery,
    ),
    console_route(
        operation_id="readConsoleStandings",
        method="POST",
        path="/standing",
        summary="Read the entries of some visitors and accounts",
        description="In the lists of blocked and trusted ones, or in one list; at most 100 of each.",
        handler=read_standings,
        needs="read",
        body=StandingsQuestion,
    ),
)
