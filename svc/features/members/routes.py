"""Members of an organization: invited, changed and removed by admins, and accepting invitations (decisions 15.2, 15.3);
and their names for the console.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

import msgspec

from svc.features.members import jobs as members
from svc.features.members.bodies import (
    AcceptInvitationBody,
    InvitationBody,
    InvitedMemberBody,
    InviteMemberBody,
    MemberBody,
    MembersBody,
    ReadInvitationBody,
    UpdateMemberBody,
    member_row,
)
from svc.features.members.jobs import MemberChange, accept_invitation, members_of
from svc.features.members.sign_in.entering import (
    Entry,
    PasswordHasher,
    SessionBody,
    change_ending_streams,
    end_viewers,
    enter,
    entered,
    entry_refusal,
    guessable,
    refused,
)
from svc.features.members.sign_in.passwords import is_guessable, stored_password
from svc.features.members.sign_in.session_routes import entry_of
from svc.http.change import caller_of, change
from svc.http.route import CONSOLE_ROOT, KEYED, ORGANIZATION, Call, Outcome, Route, Services, console_route
from svc.kernel.access.audit import Audited
from svc.kernel.access.credentials import digest
from svc.kernel.access.jobs import find_invitation
from svc.kernel.access.members import INVITATION_MS, MEMBER_PREFIX, Member, canonical_email
from svc.kernel.access.roles import may
from svc.kernel.access.sessions import console_url, new_token, organization_of
from svc.kernel.access.tables import INVITATIONS
from svc.kernel.net.origins import normalize_origin
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.fields import A_MEMBER_ID, about
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import body_of, fields_sent
from svc.kernel.values.timestamps import timestamp
from svc.world import twenty_characters


async def list_members(services: Services, call: Call) -> MembersBody | Refusal:
    """`GET .../members`: all of them, oldest first."""
    number = call.organization.number

    def read(snapshot: Snapshot) -> tuple[MemberBody, ...]:
        return tuple(map(member_row, members_of(snapshot, number)))

    return MembersBody(await services.store.query(read))


async def invite_member(services: Services, call: Call) -> InvitedMemberBody | Refusal:
    """`POST .../members`: `201` with the member and a link that works once within seven days. `409 member_exists` or
    `member_limit`, `422` (`invalid_value`) for what is not an e-mail address.
    """
    body: InviteMemberBody = call.body
    email = canonical_email(body.email)
    if email is None:
        return invalid("email", "invalid_value")
    caller = caller_of(call)
    member = Member(
        id=MEMBER_PREFIX + twenty_characters(services.world.entropy),
        email=email,
        name=body.name.strip(),
        role=body.role,
        status="invited",
        created_at_ms=call.at_ms,
        created_by=caller.member_id,
    )
    return await _invited(services, call, partial(members.invite, member=member))


async def invite_again(services: Services, call: Call) -> InvitedMemberBody | Refusal:
    """`POST .../members/{member_id}/invitation`: another link, in place of the former one: for a member who has lost a
    link, a password or the device with the codes. `404`, `409 member_suspended`.
    """
    return await _invited(services, call, partial(members.invite_again, member_id=call.path["member_id"]))


async def _invited(services: Services, call: Call, job: Callable[..., Member | Refusal]) -> InvitedMemberBody | Refusal:
    organization = call.organization
    token = new_token("invitation", organization.id, services.world.entropy(32))
    hashed, expires_at_ms = digest(services.policy.pepper, token), call.at_ms + INVITATION_MS
    of_member = partial(job, number=organization.number, digest=hashed, expires_at_ms=expires_at_ms)
    invited = await change(services, call, of_member)
    if isinstance(invited, Refusal):
        return invited
    return InvitedMemberBody(
        member=member_row(invited),
        invitation_url=console_url(services.public_url or _origin(call), token),
        expires_at=timestamp(expires_at_ms),
    )


def _origin(call: Call) -> str:
    """Return the origin at which the caller reached this service. A forged `Host` misleads nobody but the caller."""
    if call.site is not None and call.site.origin is not None:
        return call.site.origin
    host = call.headers.get("host", "")
    is_plain = call.headers.get("x-forwarded-proto", "").strip().lower() != "https"
    return normalize_origin(f"{'http' if is_plain else 'https'}://{host}") or ""


async def update_member(services: Services, call: Call) -> MemberBody | Refusal:
    """`PATCH .../members/{member_id}`: name, role or status; in force from the member's next request on. `404`, `409
    last_admin` or `member_invited`.
    """
    changed = await _changed(services, call, partial(members.change_member, fields=fields_sent(call.body)))
    return changed if isinstance(changed, Refusal) else member_row(changed.member)


async def remove_member(services: Services, call: Call) -> Refusal | None:
    """`DELETE .../members/{member_id}`: `204`; its sessions end. `404`, `409 last_admin`."""
    removed = await _changed(services, call, members.remove_member, may_use_reserve=True)
    return removed if isinstance(removed, Refusal) else None


async def _changed(
    services: Services, call: Call, job: Callable[..., MemberChange | Refusal], *, may_use_reserve: bool = False
) -> MemberChange | Refusal:
    caller = caller_of(call)
    number, by_member = caller.organization.number, caller.member is not None
    of_member = partial(job, number=number, member_id=call.path["member_id"], by_member=by_member)
    return await change_ending_streams(services, call, of_member, may_use_reserve=may_use_reserve)


_MEMBER = ORGANIZATION + "/members/{member_id}"
_LAST = "No act of a member may leave the organization without an active admin (`409 last_admin`)."

_MEMBER_ID = {"member_id": Annotated[str, about("Id of the member.", A_MEMBER_ID)]}
_route = partial(Route, tag="Management: members", kinds=("management",), needs="administer", variables=_MEMBER_ID)


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


async def read_invitation(services: Services, call: Call) -> InvitationBody | Refusal:
    """`POST /console/invitations/read`: to whom and to what an invitation is, without using it up. `401 unauthorized`
    for one that may not be used, `403` and `429` as in `signIn`.
    """
    body: ReadInvitationBody = call.body
    refusal = entry_refusal(services, call)
    if refusal is not None:
        return refusal

    hashed = digest(services.policy.pepper, body.token)

    def find(snapshot: Snapshot) -> InvitationBody | Refusal:
        found = _find_invited(snapshot, body.token, hashed, call.at_ms)
        if isinstance(found, Refusal):
            return found
        organization, member = found
        invitation = snapshot.get(INVITATIONS, organization.number, hashed)
        assert invitation is not None, "it was found in this snapshot"
        expires_at = timestamp(invitation.expires_at_ms)
        return body_of(InvitationBody, member, organization=organization.name, expires_at=expires_at)

    return await services.store.query(find)


INVITATION_REFUSED = "The invitation was used before, has expired, or is mistyped. Ask an admin to invite you again."


async def accept(services: Services, call: Call) -> Outcome | Refusal:
    """`POST /console/invitations`: the member has this password from now on; its former sessions end, and one begins.
    `422` (`invalid_value`) for a password that is easily guessed, `401 unauthorized` for an invitation that may not be
    used, `403` and `429` as in `signIn`.
    """
    body: AcceptInvitationBody = call.body
    refusal = entry_refusal(services, call)
    if refusal is not None:
        return refusal
    invitation = digest(services.policy.pepper, body.token)

    def find(snapshot: Snapshot) -> tuple[int, Member, Entry] | Refusal:
        found = _find_invited(snapshot, body.token, invitation, call.at_ms)
        if isinstance(found, Refusal):
            return found
        organization, member = found
        return organization.number, member, entry_of(services, call, snapshot, (organization.number, member))

    found = await services.store.query(find)
    if isinstance(found, Refusal):
        return found
    number, member, entry = found
    if is_guessable(body.password, member.email, member.name):
        return guessable("password")
    hashed = await services.part(PasswordHasher).hash(member.email, body.password)
    if isinstance(hashed, Refusal):
        return hashed
    password = stored_password(services.part(PasswordHasher).key, member.id, hashed)

    def job(transaction: Transaction) -> MemberChange | Refusal:
        accepted = accept_invitation(transaction, number, invitation, password, call.at_ms)
        return accepted or refused(INVITATION_REFUSED, "the invitation was used meanwhile")

    came = await enter(services, call, entry, job)
    if isinstance(came, Refusal):
        return came
    accepted, set_cookie = came
    entry = entry._replace(caller=msgspec.structs.replace(entry.caller, member=accepted.member))
    end_viewers(services, accepted)
    return entered(services, entry, set_cookie)


def _find_invited(snapshot: Snapshot, token: str, digest: bytes, now_ms: int) -> tuple[Organization, Member] | Refusal:
    """Return to what an invitation is, and whom; `401 unauthorized` for one that may not be used now."""
    organization_id = organization_of("invitation", token)
    organization = None if organization_id is None else lookups.find_organization(snapshot, organization_id)
    if organization is None:
        return refused(INVITATION_REFUSED, "not an invitation of this service")
    member = find_invitation(snapshot, organization.number, digest, now_ms)
    if member is None:
        return refused(INVITATION_REFUSED, "unknown invitation, or it has expired")
    return organization, member


ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="listMembers",
        path=ORGANIZATION + "/members",
        summary="List members",
        description="Oldest first, those that are invited or suspended among them.",
        handler=list_members,
    ),
    _route(
        operation_id="inviteMember",
        method="POST",
        path=ORGANIZATION + "/members",
        summary="Invite a member",
        description=(
            "The response has a link by which the member chooses a password and comes in. It works once, within seven "
            "days. The service sends no mail: hand the link over. At most 500 members per organization."
        ),
        handler=invite_member,
        body=InviteMemberBody,
        status=201,
        errors=("member_exists", "member_limit"),
    ),
    _route(
        operation_id="inviteMemberAgain",
        method="POST",
        path=_MEMBER + "/invitation",
        summary="Invite a member again",
        description=(
            "Another link, which takes the place of the former one: for a member without link, password or the device "
            "with the one-time codes. The member chooses a new password with it, then signs in without a code, and "
            "all its other sessions end."
        ),
        handler=invite_again,
        errors=("member_suspended",),
    ),
    _route(
        operation_id="updateMember",
        method="PATCH",
        path=_MEMBER,
        summary="Change a member",
        description=f"Name, role or status; in force from its next request on. {_LAST}",
        handler=update_member,
        body=UpdateMemberBody,
        errors=("last_admin", "member_invited"),
    ),
    _route(
        operation_id="removeMember",
        method="DELETE",
        path=_MEMBER,
        summary="Remove a member",
        description=f"Its sessions end at once. What it did stays attributed to its id. {_LAST}",
        handler=remove_member,
        status=204,
        errors=("last_admin",),
    ),
    console_route(
        operation_id="getConsolePeople",
        path="/people",
        summary="Read the names of members",
        description="Of everybody in the organization, for those who assign reviews and read notes.",
        handler=read_people,
    ),
    console_route(
        kinds=(),
        under=(CONSOLE_ROOT,),
        operation_id="readInvitation",
        method="POST",
        path="/invitations/read",
        summary="Read an invitation",
        description="To whom it is, and to what. It is not used up.",
        handler=read_invitation,
        body=ReadInvitationBody,
        example='{"token": "svc_ci_..."}',
        errors=(*KEYED, "secure_connection_required", "cross_origin_request"),
    ),
    console_route(
        kinds=(),
        under=(CONSOLE_ROOT,),
        operation_id="acceptInvitation",
        audited=Audited(made="member.id"),
        method="POST",
        path="/invitations",
        summary="Accept an invitation",
        description=(
            "Choose a password and sign in. An invitation works once. Where the member had a password, codes or "
            "sessions before, they end."
        ),
        handler=accept,
        body=AcceptInvitationBody,
        example='{"token": "svc_ci_...", "password": "..."}',
        response=SessionBody,
        errors=(*KEYED, "secure_connection_required", "cross_origin_request"),
    ),
)
