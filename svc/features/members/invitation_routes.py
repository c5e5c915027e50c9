"""`POST /console/invitations`: who was invited chooses a password and comes in (decisions 15.3)."""

from __future__ import annotations

from functools import partial

import msgspec

from svc.features.members.bodies import AcceptInvitationBody
from svc.features.members.jobs import MemberChange, accept_invitation
from svc.features.members.sign_in.entering import Entry, SessionBody, enter, entered, entry_refusal, refused
from svc.features.members.sign_in.hasher import PasswordHasher
from svc.features.members.sign_in.password_routes import entry_of
from svc.features.members.sign_in.passwords import is_guessable, stored_password
from svc.http.route import CONSOLE_ROOT, KEYED, Call, Outcome, Route, Services, console_route
from svc.kernel.access.audit import Audited
from svc.kernel.access.credentials import digest
from svc.kernel.access.jobs import find_invitation
from svc.kernel.access.members import Member
from svc.kernel.access.sessions import organization_of
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.refusals import Refusal, invalid

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
        organization_id = organization_of("invitation", body.token)
        account = None if organization_id is None else lookups.find_account(snapshot, organization_id)
        if account is None:
            return refused(INVITATION_REFUSED, "not an invitation of this service")
        number = account.organization.number
        member = find_invitation(snapshot, number, invitation, call.at_ms)
        if member is None:
            return refused(INVITATION_REFUSED, "unknown invitation, or it has expired")
        return number, member, entry_of(services, call, snapshot, (number, member))

    found = await services.store.query(find)
    if isinstance(found, Refusal):
        return found
    number, member, entry = found
    if is_guessable(body.password, member.email, member.name):
        return invalid("password", "invalid_value")
    hashed = await services.part(PasswordHasher).hash(member.email, body.password)
    if isinstance(hashed, Refusal):
        return hashed
    password = stored_password(services.part(PasswordHasher).key, member.id, hashed)
    accepting = partial(_accept, number=number, digest=invitation, password=password, now_ms=call.at_ms)
    came = await enter(services, call, entry, accepting)
    if isinstance(came, Refusal):
        return came
    accepted, set_cookie = came
    entry = entry._replace(caller=msgspec.structs.replace(entry.caller, member=accepted.member))
    for ended in accepted.ended_sessions:
        services.end_viewers(ended)
    return entered(services, entry, set_cookie)


def _accept(
    transaction: Transaction, number: int, digest: bytes, password: bytes, now_ms: int
) -> MemberChange | Refusal:
    accepted = accept_invitation(transaction, number, digest, password, now_ms)
    return accepted or refused(INVITATION_REFUSED, "the invitation was used meanwhile")


ROUTES: tuple[Route, ...] = (
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
