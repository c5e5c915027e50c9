"""Signing in to the console: `POST`, `GET` and `DELETE /console/session` (docs/adr/0038).

A session begins with a member's password and one-time code, with a one-use link or with a management key, and has the
role of that member or key. Neither password nor key is kept by the browser.

Every attempt with a password costs one hash and one read of the store, and every wrong one gets the same words: nobody
learns whether an address has a member, a password is right, or a code is missing (docs/adr/0122).
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from svc.features.members.bodies import OwnPassword
from svc.features.members.jobs import find_member, members_with
from svc.features.members.sign_in.entering import (
    Entry,
    PasswordHasher,
    SessionBody,
    enter,
    entered,
    entry_refusal,
    former_session,
    refused,
    request_of,
    shown_session,
    site_of,
)
from svc.features.members.sign_in.passwords import LONGEST_PASSWORD, is_password
from svc.features.members.sign_in.second_factor import MAX_CODE_LENGTH, use_code
from svc.http.callers.authentication import AuthRequest, FoundKey, caller_with, find_key
from svc.http.callers.sessions import cleared_cookie, signed_out
from svc.http.change import caller_of, change
from svc.http.route import CONSOLE_ROOT, KEYED, Call, Outcome, Route, Services, console_route
from svc.kernel.access.credentials import ApiKey, digest
from svc.kernel.access.jobs import end_session, find_link, key_digest, usable_key, use_link
from svc.kernel.access.members import LONGEST_EMAIL, Member, canonical_email, email_digest, standing_key
from svc.kernel.access.sessions import new_session, organization_of
from svc.kernel.access.tables import MEMBERS
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants import queries as lookups
from svc.kernel.tenants.organization import Organization
from svc.kernel.values.fields import about
from svc.kernel.values.refusals import Refusal, invalid
from svc.kernel.values.struct_fields import fields_sent, sent

LINK_REFUSED = "The link was used before, has expired, or is mistyped. Make another one with `svc console link`."
KEY_REFUSED = "The key is not a management key of this service, or it was revoked or has expired."


class SignInBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `signIn`: a token, a key, or an address and a password."""

    token: Annotated[
        str | UnsetType, about("What follows `#` in a link of `svc console link`; it works once.", "svc_cl_...")
    ] = UNSET
    key: Annotated[str | UnsetType, about("A management key.", "svc_mk_us_...")] = UNSET
    email: (
        Annotated[str, Meta(max_length=4 * LONGEST_EMAIL), about("A member's address.", "ada@shop.example")] | UnsetType
    ) = UNSET
    password: OwnPassword | UnsetType = UNSET
    totp: (
        Annotated[
            str,
            Meta(max_length=MAX_CODE_LENGTH),
            about("A one-time code, where the member has set them up, or a recovery code in its place.", "287082"),
        ]
        | UnsetType
    ) = UNSET
    organization_id: (
        Annotated[
            str,
            Meta(max_length=200),
            about(
                "Which one, where several have a member with this address and password: its id, or its name in any "
                "case. The one that was signed in to last when left out.",
                "Example Shop",
            ),
        ]
        | UnsetType
    ) = UNSET


class FoundEntry(NamedTuple):
    """The API key that a sign-in presented, directly or by a one-use link, checked as far as reading allows.
    `owns_key`: the key was made for the link alone and is revoked when the session ends.
    """

    key: ApiKey
    link: bytes | None
    """Digest of the link's token; `None` where the key itself was presented."""
    owns_key: bool


async def sign_in(services: Services, call: Call) -> Outcome | Refusal:
    """`POST /console/session`: begin a session and end the one that the browser had. `403 secure_connection_required`,
    `403 cross_origin_request`, `401 unauthorized`, `429 rate_limited`.
    """
    body: SignInBody = call.body
    refusal = entry_refusal(services, call)
    if refusal is not None:
        return refusal
    if body.token is UNSET and body.key is UNSET and body.email is not UNSET and body.password is not UNSET:
        return await sign_in_by_password(services, call, body, body.email, body.password)

    def find(snapshot: Snapshot) -> tuple[FoundEntry, Entry] | Refusal:
        request = request_of(services, call, snapshot)
        asked = _asked(request, body)
        if isinstance(asked, Refusal):
            return asked
        caller = caller_with(request, FoundKey(asked.key, key_digest(snapshot, asked.key)))
        is_secure = site_of(call).transport == "https"
        session = new_session(call.at_ms, secure=is_secure, key_id=asked.key.id, owns_key=asked.owns_key)
        return asked, Entry(caller, session, former_session(request, call))

    found = await services.store.query(find)
    if isinstance(found, Refusal):
        return found
    asked, entry = found
    came = await enter(services, call, entry, partial(_complete_sign_in, asked=asked, now_ms=call.at_ms))
    return came if isinstance(came, Refusal) else entered(services, entry, came[1])


def _complete_sign_in(transaction: Transaction, asked: FoundEntry, now_ms: int) -> ApiKey | Refusal:
    number = asked.key.organization
    key = usable_key(transaction, number, asked.key.id, now_ms)
    if asked.link is not None and use_link(transaction, number, asked.link, now_ms) is None:
        return refused(LINK_REFUSED, "the link was used meanwhile")
    return key or refused(KEY_REFUSED, "the key was revoked meanwhile")


async def read_session(services: Services, call: Call) -> SessionBody | Refusal:
    """`GET /console/session`: the session of the request; `401 unauthorized` for a key without one."""
    caller = caller_of(call)
    if caller.session is None:
        return signed_out("a key without a session")
    return shown_session(caller, caller.session.session, services.policy.region)


async def sign_out(services: Services, call: Call) -> Refusal | Outcome | None:
    """`DELETE /console/session`: end the session of the request, and take the cookie from the browser. `204`."""
    caller = caller_of(call)
    if caller.session is None:
        return signed_out("a key without a session")
    number, ended = caller.organization.number, caller.session.digest
    done = await change(
        services, call, partial(end_session, number=number, digest=ended, now_ms=call.at_ms), may_use_reserve=True
    )
    if isinstance(done, Refusal):
        return done
    services.end_viewers(ended)
    return Outcome(None, status=204, headers={"Set-Cookie": cleared_cookie(site_of(call))})


def _asked(request: AuthRequest, body: SignInBody) -> FoundEntry | Refusal:
    """Return what a token or a key leads to now. Nothing is written for one that leads to nothing."""
    names = fields_sent(body).keys()
    match body:
        case SignInBody(token=str(token)) if names == {"token"}:
            return _of_link(request, token)
        case SignInBody(key=str(secret)) if names == {"key"}:
            found = find_key(request, secret.strip(), ("management",), where="The console")
            if isinstance(found, Refusal):
                return refused(found.explanation or KEY_REFUSED, found.reason)
            return FoundEntry(found.key, None, owns_key=False)
        case _:
            return invalid("", "invalid_value")


def _of_link(request: AuthRequest, token: str) -> FoundEntry | Refusal:
    policy, snapshot, now_ms = request.policy, request.snapshot, request.now_ms
    organization_id = organization_of("link", token)
    organization = None if organization_id is None else lookups.find_organization(snapshot, organization_id)
    if organization is None:
        return refused(LINK_REFUSED, "not a link of this service")
    number, link_digest = organization.number, digest(policy.pepper, token)
    link = find_link(snapshot, number, link_digest, now_ms)
    key = None if link is None else usable_key(snapshot, number, link.key_id, now_ms)
    if link is None or key is None or key.region != policy.region:
        return refused(LINK_REFUSED, "unknown link, or it has expired")
    return FoundEntry(key, link_digest, link.owns_key)


_route = partial(console_route, under=(CONSOLE_ROOT,))


MEMBER_REFUSED = (
    "The address, the password or the code is wrong. Who has set up one-time codes needs one each time, and each "
    "counts once. An admin of the organization can invite you again."
)


class Proven(NamedTuple):
    """A member whose password and code are right."""

    number: int
    """Of the organization."""
    member: Member
    code: str
    """Beside the password; of no account where the member needs none."""


async def sign_in_by_password(
    services: Services, call: Call, body: SignInBody, email: str, password: str
) -> Outcome | Refusal:
    """Begin a session of the member with this address and password. `401 unauthorized`, `429 rate_limited`, `503
    service_unavailable` where too many sign in at once.
    """
    email = canonical_email(email) or ""
    over = services.limits.account_refusal(email_digest(email), call.at_ms)
    if over is not None:
        return over
    hasher = services.part(PasswordHasher)
    hashed = await hasher.hash(email, password[: LONGEST_PASSWORD + 1])
    if isinstance(hashed, Refusal):
        return hashed
    code_ms = services.world.wall_time_of(call.at_ms)  # the authenticator has a clock of its own

    def find(snapshot: Snapshot) -> tuple[Proven, Entry] | Refusal:
        proven = _proven(snapshot, hasher.key, email, hashed, body, code_ms)
        return proven if isinstance(proven, Refusal) else (proven, entry_of(services, call, snapshot, proven[:2]))

    found = await services.store.query(find)
    if isinstance(found, Refusal):
        return found
    proven, entry = found
    job = partial(_record_sign_in, proven=proven, key=hasher.key, now_ms=call.at_ms, code_ms=code_ms)
    came = await enter(services, call, entry, job)
    return came if isinstance(came, Refusal) else entered(services, entry, came[1])


def entry_of(services: Services, call: Call, snapshot: Snapshot, who: tuple[int, Member]) -> Entry:
    """Return a session that begins now, of this member of the organization with this number."""
    number, member = who
    request = request_of(services, call, snapshot)
    caller = caller_with(request, FoundKey(standing_key(member, number), b""), member=member)
    session = new_session(call.at_ms, secure=site_of(call).transport == "https", member_id=member.id)
    return Entry(caller, session, former_session(request, call))


def _proven(
    snapshot: Snapshot, key: bytes, email: str, hashed: bytes, body: SignInBody, now_ms: int
) -> Proven | Refusal:
    """Return the member with this address and password, of the organization that is named; of several, the one who
    signed in last.
    """
    wanted = sent(body.organization_id)
    matching = [
        (number, member)
        for number, member in members_with(snapshot, email)
        if is_password(key, member.id, hashed, member.password)
        and member.status == "active"
        and (wanted is None or _is_called(lookups.organization(snapshot, number), wanted))
    ]
    if not matching:
        return refused(MEMBER_REFUSED, "no active member with this address and password")
    number, member = max(matching, key=lambda found: found[1].last_signed_in_at_ms or 0)
    code = sent(body.totp) or ""
    if member.code_generation is not None and use_code(member, key, code, now_ms) is None:
        return refused(MEMBER_REFUSED, f"the password of {member.id} is right, and the code is not")
    return Proven(number, member, code)


def _is_called(organization: Organization, wanted: str) -> bool:
    return wanted.casefold() in (organization.id.casefold(), organization.name.casefold())


def _record_sign_in(
    transaction: Transaction, proven: Proven, key: bytes, now_ms: int, code_ms: int
) -> Member | Refusal:
    """Record that the member has signed in and used its code, unless either has changed since it was read."""
    number, before, code = proven
    member = find_member(transaction, number, before.id)
    if member is None or member.status != "active" or _ways_in(member) != _ways_in(before):
        return refused(MEMBER_REFUSED, "the member was changed meanwhile")
    used = member if member.code_generation is None else use_code(member, key, code, code_ms)
    if used is None:
        return refused(MEMBER_REFUSED, "the code was used meanwhile")
    came = msgspec.structs.replace(used, last_signed_in_at_ms=now_ms)
    transaction.put(MEMBERS, (number, member.id), came)
    return came


def _ways_in(member: Member) -> tuple[bytes | None, int | None]:
    return member.password, member.code_generation


ROUTES: tuple[Route, ...] = (
    _route(
        kinds=(),
        operation_id="signIn",
        method="POST",
        path="/session",
        summary="Sign in",
        description=(
            "With a member's address and password, and a one-time code where it has set them up; with the one-use "
            "token of a link that `svc console link` made; or with a management key. The session is a cookie that no "
            "page can read; it ends 12 hours later, after 30 minutes without a request or an open live screen, by "
            "signing out, and with its member or key. The request must come from a page of this service, over HTTPS "
            "or on the machine itself."
        ),
        handler=sign_in,
        body=SignInBody,
        example='{"email": "ada@shop.example", "password": "correct horse battery staple"}',
        response=SessionBody,
        errors=(*KEYED, "secure_connection_required"),
    ),
    _route(
        operation_id="readSession",
        path="/session",
        summary="Read the session of this browser",
        description="It counts as use of the session.",
        handler=read_session,
    ),
    _route(
        operation_id="signOut",
        method="DELETE",
        needs="own",
        path="/session",
        summary="Sign out",
        description="The session ends at once, and so do its streams.",
        handler=sign_out,
        status=204,
    ),
)
