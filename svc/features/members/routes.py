"""Members of an organization: invited, changed and removed, by admins (decisions 15.2)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from svc.features.members import jobs as members
from svc.features.members.bodies import (
    InvitedMemberBody,
    InviteMemberBody,
    MemberBody,
    MembersBody,
    UpdateMemberBody,
    member_row,
)
from svc.features.members.jobs import MemberChange, MemberFields
from svc.features.members.queries import members_of
from svc.http.change import caller_of, change
from svc.http.route import ORGANIZATION, Call, Route, Services
from svc.kernel.access.credentials import digest
from svc.kernel.access.members import INVITATION_MS, MEMBER_PREFIX, Member, canonical_email
from svc.kernel.access.sessions import new_token
from svc.kernel.net.origins import normalize_origin
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import sent
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
    token, expires_at_ms = (
        new_token("invitation", organization.id, services.world.entropy(32)),
        call.at_ms + INVITATION_MS,
    )
    hashed = digest(services.policy.pepper, token)
    invited = await change(
        services, call, partial(job, number=organization.number, digest=hashed, expires_at_ms=expires_at_ms)
    )
    if isinstance(invited, Refusal):
        return invited
    return InvitedMemberBody(
        member=member_row(invited),
        invitation_url=invitation_url(services.public_url or _origin(call), token),
        expires_at=timestamp(expires_at_ms),
    )


def invitation_url(origin: str, token: str) -> str:
    """Return the link itself. The token is the fragment, which no browser sends and no log has."""
    return f"{origin}/console#{token}"


def _origin(call: Call) -> str:
    """Where the caller reaches this service, by its own `Host`, which tells nobody else anything."""
    if call.site is not None and call.site.origin is not None:
        return call.site.origin
    host = call.headers.get("host", "")
    is_plain = call.headers.get("x-forwarded-proto", "").strip().lower() != "https"
    return normalize_origin(f"{'http' if is_plain else 'https'}://{host}") or ""


async def update_member(services: Services, call: Call) -> MemberBody | Refusal:
    """`PATCH .../members/{member_id}`: name, role or status; in force from the member's next request on. `404`, `409
    last_admin` or `member_invited`.
    """
    body: UpdateMemberBody = call.body
    fields = MemberFields(sent(body.name), sent(body.role), sent(body.status))
    changed = await _changed(services, call, partial(members.change_member, fields=fields))
    return changed if isinstance(changed, Refusal) else member_row(changed.member)


async def remove_member(services: Services, call: Call) -> Refusal | None:
    """`DELETE .../members/{member_id}`: `204`; its sessions end. `404`, `409 last_admin`."""
    removed = await _changed(services, call, members.remove_member, may_use_reserve=True)
    return removed if isinstance(removed, Refusal) else None


async def _changed(
    services: Services, call: Call, job: Callable[..., MemberChange | Refusal], *, may_use_reserve: bool = False
) -> MemberChange | Refusal:
    caller = caller_of(call)
    of_member = partial(
        job,
        number=caller.organization.number,
        member_id=call.path["member_id"],
        by_member=caller.member is not None,
    )
    changed = await change(services, call, of_member, may_use_reserve=may_use_reserve)
    if isinstance(changed, MemberChange):
        for ended in changed.ended_sessions:
            services.end_viewers(ended)
    return changed


_MEMBER = ORGANIZATION + "/members/{member_id}"
_LAST = "No act of a member may leave the organization without an active admin (`409 last_admin`)."

_route = partial(Route, tag="Management: members", kinds=("management",), needs="administer")
ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="listMembers",
        path=ORGANIZATION + "/members",
        summary="List members",
        description="Oldest first, those that are invited or suspended among them.",
        handler=list_members,
        response=MembersBody,
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
        response=InvitedMemberBody,
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
        response=InvitedMemberBody,
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
        response=MemberBody,
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
)
