"""The members of an organization, for the console: their names beside what they did, and the assignees of reviews."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec

from svc.features.members.queries import members_of
from svc.http.route import Call, Route, Services, console_route
from svc.kernel.access.members import Member
from svc.kernel.access.roles import may
from svc.kernel.values.fields import A_MEMBER_ID, about


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A member, as the other members see it."""

    id: Annotated[str, about("Id of the member.", A_MEMBER_ID)]
    name: Annotated[str, about("Its name.", "Ada Byron")]
    judges: Annotated[bool, about("Whether it may close reviews: not suspended, and no viewer.", True)]


class PeopleBody(msgspec.Struct, frozen=True, kw_only=True):
    """The members of an organization."""

    people: Annotated[tuple[Person, ...], about("Oldest first.")]


async def read_people(services: Services, call: Call) -> PeopleBody:
    """`GET /console/api/people`. Addresses and roles are for admins (`listMembers`)."""
    number = call.organization.number
    found = await services.store.query(partial(members_of, number=number))
    return PeopleBody(people=tuple(map(_person, found)))


def _person(member: Member) -> Person:
    judges = member.status != "suspended" and may(member.role, "judge")
    return Person(id=member.id, name=member.name, judges=judges)


ROUTES: tuple[Route, ...] = (
    console_route(
        operation_id="getConsolePeople",
        path="/people",
        summary="Read the names of members",
        description="Of everybody in the organization, for those who assign reviews and read notes.",
        handler=read_people,
        response=PeopleBody,
    ),
)
