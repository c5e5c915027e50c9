"""What all ways into the console share: which requests may try, the session that begins (docs/adr/0038), and the
hashing of passwords.

What may live here: nothing that tells who somebody is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, NamedTuple, TypeVar

import msgspec
import trio
from msgspec import UNSET, UnsetType

from svc.features.members.bodies import EmailText, MemberName
from svc.features.members.jobs import MemberChange
from svc.features.members.sign_in.passwords import password_hash, sign_in_key
from svc.features.organizations.bodies import MemberId
from svc.http.callers.authentication import AuthRequest
from svc.http.callers.caller import Caller, Site
from svc.http.callers.limits import RETRY_AFTER_S
from svc.http.callers.sessions import cookie, cross_origin_refusal, presented_token, session_row
from svc.http.change import change
from svc.http.route import Call, Outcome, Services
from svc.kernel.access.credentials import digest
from svc.kernel.access.jobs import begin_session, end_session
from svc.kernel.access.roles import ROLES, Role
from svc.kernel.access.sessions import IDLE_MS, Session, new_token
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.values.fields import A_KEY_ID, OrganizationId, Timestamp, about, id_form, open_to
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import body_of
from svc.kernel.values.timestamps import timestamp
from svc.world import RunSync


class PasswordHasher:
    """Hashes passwords on a thread, one at a time: a flood of sign-ins takes a core of a worker at most, and nothing of
    the loop. `key`: see `sign_in_key`.
    """

    def __init__(self, pepper: bytes, run_sync: RunSync) -> None:
        self.key = sign_in_key(pepper)
        self._run_sync = run_sync
        self._turn = trio.Lock()

    async def hash(self, email: str, password: str) -> bytes | Refusal:
        """Return the `password_hash` of these arguments, or `503 service_unavailable` if too many callers wait."""
        if self._turn.statistics().tasks_waiting >= MAX_WAITING_PASSWORDS:
            return Refusal("service_unavailable", retry_after_s=RETRY_AFTER_S, reason="too many sign-ins at once")
        async with self._turn:
            return await self._run_sync(partial(password_hash, self.key, email, password))


MAX_WAITING_PASSWORDS = 32
"""Passwords that wait to be hashed in one worker: about two seconds."""


T = TypeVar("T")

SessionRole = Annotated[Role, about("What it may do.", "admin", form=open_to(*ROLES))]


class SessionOrganization(msgspec.Struct, frozen=True):
    """The organization of a session."""

    id: OrganizationId
    name: Annotated[str, about("For people.", "Example Shop")]


class SessionKey(msgspec.Struct, frozen=True):
    """The management key of a session."""

    id: Annotated[str, about("Id of the key.", A_KEY_ID, form=id_form("key_"))]
    name: Annotated[str, about("For people.", "console link")]
    role: SessionRole
    last4: Annotated[str, about("The last four characters of its secret.", "x7Qa")]


class SessionMember(msgspec.Struct, frozen=True):
    """The member whose session it is."""

    id: Annotated[MemberId, about("Its id.")]
    email: EmailText
    name: MemberName
    role: SessionRole
    has_totp: Annotated[bool, about("Whether it needs a one-time code beside its password.", True)]
    recovery_codes_left: Annotated[int, about("Recovery codes that it has not used.", 9)]
    has_password: Annotated[bool, about("Whether it can sign in by a password.", True)]


class SessionBody(msgspec.Struct, frozen=True, kw_only=True):
    """A session of the console: of a member, or of a management key."""

    organization: Annotated[SessionOrganization, about("The organization that it acts on.")]
    role: SessionRole
    member: Annotated[SessionMember, about("Whose it is; left out for a key.")] | UnsetType = UNSET
    key: Annotated[SessionKey, about("Its management key; left out for a member.")] | UnsetType = UNSET
    region: Annotated[str, about("Of the service.", "us")]
    expires_at: Annotated[Timestamp, about("When it ends, however it is used.")]
    idle_minutes: Annotated[
        int, about("It ends earlier after so many minutes without a request or an open live screen.", 30)
    ]


class Entry(NamedTuple):
    """A member who may sign in, checked as far as reading allows."""

    caller: Caller
    session: Session
    replaced: tuple[int, bytes] | None
    """Where the session is that the browser had: its organization's number and its digest."""


def entry_refusal(services: Services, call: Call) -> Refusal | None:
    """Return what keeps a request from trying: `403 secure_connection_required`, `403 cross_origin_request`, `429
    rate_limited` for its address.
    """
    site = site_of(call)
    return (
        (Refusal("secure_connection_required") if site.transport == "insecure" else None)
        or cross_origin_refusal(call.headers, site, "POST")
        or services.limits.sign_in_refusal(site.address, call.at_ms)
    )


def request_of(services: Services, call: Call, snapshot: Snapshot) -> AuthRequest:
    """Return the headers, peer and time of a call, with the snapshot and policy, as the input of authentication."""
    return AuthRequest(services.policy, snapshot, call.headers, site_of(call).peer, call.at_ms)


def former_session(request: AuthRequest, call: Call) -> tuple[int, bytes] | None:
    """Return the key of the row of the browser's present session; `None` if it presents none."""
    before = presented_token(call.headers, site_of(call))
    return None if before is None else session_row(request.policy, request.snapshot, before)


async def enter(
    services: Services, call: Call, entry: Entry, job: Callable[[Transaction], T | Refusal]
) -> tuple[T, str] | Refusal:
    """Begin the session if `job` admits it in the same transaction, and end the browser's previous session. Return the
    result of the job and the `Set-Cookie` value. The audit log records it as an act of the caller.
    """
    site, number, replaced = site_of(call), entry.caller.organization.number, entry.replaced
    token = new_token("session", entry.caller.organization.id, services.world.entropy(32))
    hashed = digest(services.policy.pepper, token)

    def begin(transaction: Transaction) -> T | Refusal:
        outcome = job(transaction)
        if not isinstance(outcome, Refusal):
            if replaced is not None:
                end_session(transaction, *replaced, call.at_ms)
            begin_session(transaction, number, hashed, entry.session)
        return outcome

    outcome = await change(services, msgspec.structs.replace(call, caller=entry.caller), begin)
    if isinstance(outcome, Refusal):
        return outcome
    if replaced is not None:
        services.end_viewers(replaced[1])
    return outcome, cookie(site, token)


def shown_session(caller: Caller, session: Session, region: str) -> SessionBody:
    """Return a session of the caller, which has a role."""
    organization, key, member = caller.organization, caller.key, caller.member
    assert key.role is not None, "members and management keys have a role"
    shown = UNSET
    if member is not None:
        left, has_password = len(member.recovery), member.password is not None
        shown = body_of(SessionMember, member, recovery_codes_left=left, has_password=has_password)
    return SessionBody(
        organization=SessionOrganization(organization.id, organization.name),
        role=key.role,
        member=shown,
        key=SessionKey(key.id, key.name, key.role, key.last4) if member is None else UNSET,
        region=region,
        expires_at=timestamp(session.expires_at_ms),
        idle_minutes=IDLE_MS // 60_000,
    )


async def change_ending_streams(
    services: Services,
    call: Call,
    job: Callable[[Transaction], MemberChange | Refusal],
    *,
    may_use_reserve: bool = False,
) -> MemberChange | Refusal:
    """Run a job as `change` does, and end the streams of the sessions that it has ended."""
    changed = await change(services, call, job, may_use_reserve=may_use_reserve)
    if isinstance(changed, MemberChange):
        end_viewers(services, changed)
    return changed


def end_viewers(services: Services, changed: MemberChange) -> None:
    """End the streams of the sessions that a change has ended."""
    for ended in changed.ended_sessions:
        services.end_viewers(ended)


def entered(services: Services, entry: Entry, set_cookie: str) -> Outcome:
    """Return the response to a member who has signed in."""
    body = shown_session(entry.caller, entry.session, services.policy.region)
    return Outcome(body, headers={"Set-Cookie": set_cookie})


def refused(explanation: str, reason: str) -> Refusal:
    """Return `401 unauthorized`; `reason` is for the log."""
    return Refusal("unauthorized", reason=reason, explanation=explanation)


def guessable(field: str) -> Refusal:
    """Return `422` (`invalid_value`) for a new password that is easily guessed, in this field (decisions 15.3)."""
    return invalid(field, "invalid_value", explanation=GUESSABLE)


GUESSABLE = "This password is easily guessed: it is a very common one, or your own address or name. Choose another."


def site_of(call: Call) -> Site:
    """Return how the browser reached the service. Raises `AssertionError` for a route that is not the console's."""
    assert call.site is not None, "these routes are the console's"
    return call.site
