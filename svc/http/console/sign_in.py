"""Signing in to the console: `POST`, `GET` and `DELETE /console/session` (docs/adr/0038).

A session begins with a one-use link or with a management key, and has that key's role. The key itself is not kept by
the browser.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from svc.domain.access.credentials import ApiKey, Role, digest
from svc.domain.access.sessions import IDLE_MS, Session, new_session, new_token, organization_of
from svc.domain.fields import A_KEY_ID, OrganizationId, Timestamp, about, id_form, open_to
from svc.domain.refusals import Refusal, invalid
from svc.domain.timestamps import timestamp
from svc.http.authentication import AuthPolicy, AuthRequest, Caller, FoundKey, caller_with, find_key
from svc.http.change import caller_of, change, touch_caller
from svc.http.route import CONSOLE_ROOT, KEYED, Call, Outcome, Route, Services, console_route
from svc.http.sessions import (
    Site,
    cleared_cookie,
    cookie,
    cross_origin_refusal,
    presented_token,
    session_row,
    signed_out,
)
from svc.store.snapshot import Snapshot, Transaction
from svc.store.transactions.sessions import begin_session, end_session, find_link, key_digest, usable_key, use_link
from svc.store.views import lookups

LINK_REFUSED = "The link was used before, has expired, or is mistyped. Make another one with `svc console link`."
KEY_REFUSED = "The key is not a management key of this service, or it was revoked or has expired."


class SignInBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `signIn`: one of the two."""

    token: Annotated[
        str | UnsetType, about("What follows `#` in a link of `svc console link`; it works once.", "svc_cl_...")
    ] = UNSET
    key: Annotated[str | UnsetType, about("A management key.", "svc_mk_us_...")] = UNSET


class SessionOrganization(msgspec.Struct, frozen=True):
    """The organization of a session."""

    id: OrganizationId
    name: Annotated[str, about("For people.", "Example Shop")]


class SessionKey(msgspec.Struct, frozen=True):
    """The management key of a session."""

    id: Annotated[str, about("Id of the key.", A_KEY_ID, form=id_form("key_"))]
    name: Annotated[str, about("For people.", "console link")]
    role: Annotated[Role, about("What it may do.", "admin", form=open_to("admin", "developer"))]
    last4: Annotated[str, about("The last four characters of its secret.", "x7Qa")]


class SessionBody(msgspec.Struct, frozen=True):
    """A session of the console."""

    organization: Annotated[SessionOrganization, about("The organization that it acts on.")]
    key: Annotated[SessionKey, about("Its management key.")]
    region: Annotated[str, about("Of the service.", "us")]
    expires_at: Annotated[Timestamp, about("When it ends, however it is used.")]
    idle_minutes: Annotated[int, about("It ends earlier after so many minutes without a request.", 30)]


class SignIn(NamedTuple):
    """A request to sign in, as far as it could be checked without writing."""

    number: int
    """Of the organization."""
    key: ApiKey
    link: bytes | None
    """Digest of the link's token; `None` where the key itself was presented."""
    owns_key: bool


async def sign_in(services: Services, call: Call) -> Outcome:
    """`POST /console/session`: begin a session and end the one that the browser had. `403 secure_connection_required`,
    `403 cross_origin_request`, `401 unauthorized`, `429 rate_limited`.
    """
    site = _site(call)
    refusal = (
        (Refusal("secure_connection_required") if site.transport == "insecure" else None)
        or cross_origin_refusal(call.headers, site, "POST")
        or services.limits.sign_in_refusal(site.address, call.at_ms)
    )
    if refusal is not None:
        return Outcome(refusal)
    policy = services.policy
    found = await services.store.query(partial(_found, policy=policy, site=site, call=call))
    if isinstance(found, Refusal):
        return Outcome(found)
    asked, signed_in, replaced = found
    token = new_token("session", signed_in.organization.id, services.world.entropy(32))
    session = new_session(asked.key.id, call.at_ms, secure=site.transport == "https", owns_key=asked.owns_key)
    token_digest = digest(policy.pepper, token)

    def job(transaction: Transaction) -> ApiKey | Refusal:
        key = usable_key(transaction, asked.number, asked.key.id, call.at_ms)
        if asked.link is not None and use_link(transaction, asked.number, asked.link, call.at_ms) is None:
            return _refused(LINK_REFUSED, "the link was used meanwhile")
        if key is None:
            return _refused(KEY_REFUSED, "the key was revoked meanwhile")
        if replaced is not None:
            end_session(transaction, *replaced, call.at_ms)
        begin_session(transaction, asked.number, token_digest, session)
        return key

    key = await change(services, msgspec.structs.replace(call, caller=signed_in), job)
    if isinstance(key, Refusal):
        return Outcome(key)
    if replaced is not None:
        services.end_viewers(replaced[1])
    return Outcome(_shown(signed_in, session), headers={"Set-Cookie": cookie(site, token)})


async def read_session(services: Services, call: Call) -> Outcome:
    """`GET /console/session`: the session of the request; `401 unauthorized` for a key without one."""
    caller = await touch_caller(services, call)
    if caller.session is None:
        return Outcome(signed_out("a key without a session"))
    return Outcome(_shown(caller, caller.session.session))


async def sign_out(services: Services, call: Call) -> Outcome:
    """`DELETE /console/session`: end the session of the request, and take the cookie from the browser. `204`."""
    caller = caller_of(call)
    if caller.session is None:
        return Outcome(signed_out("a key without a session"))
    number, ended = caller.organization.number, caller.session.digest
    done = await change(
        services, call, partial(end_session, number=number, digest=ended, now_ms=call.at_ms), may_use_reserve=True
    )
    if isinstance(done, Refusal):
        return Outcome(done)
    services.end_viewers(ended)
    return Outcome(None, status=204, headers={"Set-Cookie": cleared_cookie(_site(call))})


def _found(
    snapshot: Snapshot, policy: AuthPolicy, site: Site, call: Call
) -> tuple[SignIn, Caller, tuple[int, bytes] | None] | Refusal:
    """What the body leads to now, who that is, and where the session is that the browser has."""
    request = AuthRequest(policy, snapshot, call.headers, site.peer, call.at_ms)
    asked = _asked(request, call.body)
    if isinstance(asked, Refusal):
        return asked
    signed_in = caller_with(request, FoundKey(asked.key, key_digest(snapshot, asked.key)))
    before = presented_token(call.headers, site)
    return asked, signed_in, None if before is None else session_row(policy, snapshot, before)


def _asked(request: AuthRequest, body: SignInBody) -> SignIn | Refusal:
    """What the body leads to now. Nothing is written for a token or a key that leads to nothing."""
    policy, snapshot, now_ms = request.policy, request.snapshot, request.now_ms
    match body:
        case SignInBody(token=str(token), key=UnsetType()):
            organization_id = organization_of("link", token)
            account = None if organization_id is None else lookups.find_account(snapshot, organization_id)
            if account is None:
                return _refused(LINK_REFUSED, "not a link of this service")
            number, link_digest = account.organization.number, digest(policy.pepper, token)
            link = find_link(snapshot, number, link_digest, now_ms)
            key = None if link is None else usable_key(snapshot, number, link.key_id, now_ms)
            if link is None or key is None or key.region != policy.region:
                return _refused(LINK_REFUSED, "unknown link, or it has expired")
            return SignIn(number, key, link_digest, link.owns_key)
        case SignInBody(token=UnsetType(), key=str(secret)):
            found = find_key(request, secret.strip(), ("management",), where="The console")
            if isinstance(found, Refusal):
                return _refused(found.explanation or KEY_REFUSED, found.reason)
            return SignIn(found.key.organization, found.key, None, owns_key=False)
        case _:
            return invalid("", "invalid_value")


def _shown(caller: Caller, session: Session) -> SessionBody:
    organization, key = caller.organization, caller.key
    assert key.role is not None, "a management key has a role"
    return SessionBody(
        organization=SessionOrganization(organization.id, organization.name),
        key=SessionKey(key.id, key.name, key.role, key.last4),
        region=key.region,
        expires_at=timestamp(session.expires_at_ms),
        idle_minutes=IDLE_MS // 60_000,
    )


def _site(call: Call) -> Site:
    assert call.site is not None, "these routes are the console's"
    return call.site


def _refused(explanation: str, reason: str) -> Refusal:
    return Refusal("unauthorized", reason=reason, explanation=explanation)


_route = partial(console_route, under=(CONSOLE_ROOT,))
ROUTES: tuple[Route, ...] = (
    _route(
        kinds=(),
        operation_id="signIn",
        method="POST",
        path="/session",
        summary="Sign in",
        description=(
            "With the one-use token of a link that `svc console link` made, or with a management key. The session is a "
            "cookie that no page can read; it ends 12 hours later, after 30 minutes without a request, by signing out, "
            "and with its key. The request must come from a page of this service, over HTTPS or on the machine itself."
        ),
        handler=sign_in,
        body=SignInBody,
        example='{"key": "svc_mk_us_..."}',
        response=SessionBody,
        errors=(*KEYED, "secure_connection_required"),
    ),
    _route(
        operation_id="readSession",
        path="/session",
        summary="Read the session of this browser",
        description="It counts as use of the session.",
        handler=read_session,
        response=SessionBody,
    ),
    _route(
        operation_id="signOut",
        method="DELETE",
        path="/session",
        summary="Sign out",
        description="The session ends at once, and so do its streams.",
        handler=sign_out,
        status=204,
    ),
)
