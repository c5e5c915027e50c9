"""How a member signs in through the OpenID provider of the settings: `GET /console/oidc`, and the way back (decisions
15.4).

The browser keeps the seed of each attempt in a cookie of its own, for ten minutes, so that two tabs may sign in at once
and a page that is fetched ahead ends nothing; state, nonce and verifier follow from the seed. Responses
are redirects to the page of the console, which says what went wrong; the reason is in the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Annotated, NamedTuple, cast

import msgspec
import structlog
from msgspec import UNSET, Meta, UnsetType

from svc.features.members.jobs import add_member, is_last_admin, member_of_subject, member_with
from svc.features.members.sign_in.entering import Entry, enter, site_of
from svc.features.members.sign_in.openid import (
    ATTEMPT_MS,
    CONSOLE_PAGE,
    LEEWAY_MS,
    LONGEST_PAGE,
    SEED_BYTES,
    Attempt,
    Identity,
    NoIdentity,
    Provider,
    new_attempt,
    openid_key,
    read_attempt,
    write_attempt,
)
from svc.features.members.sign_in.session_routes import entry_of
from svc.http.callers.caller import Site
from svc.http.callers.sessions import COOKIES, cookie_value, cross_origin_refusal
from svc.http.route import CONSOLE_ROOT, Call, Outcome, Route, Services, console_route
from svc.kernel.access.audit import Audited
from svc.kernel.access.jobs import withdraw_invitations
from svc.kernel.access.members import MEMBER_PREFIX, Member, UsedAttempt
from svc.kernel.access.roles import Role
from svc.kernel.access.tables import MEMBERS
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.fields import about
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.struct_fields import fields_sent, sent
from svc.world import twenty_characters

log = structlog.get_logger()

CALLBACK = "/oidc/callback"
MAX_ATTEMPTS = 32
"""Attempts by which one member signs in within the life of an attempt."""


class OpenIdOption(msgspec.Struct, frozen=True):
    """The OpenID provider by which members sign in."""

    issuer: Annotated[str, about("Its issuer.", "https://id.shop.example")]


class SignInOptionsBody(msgspec.Struct, frozen=True):
    """By what members may sign in beside password, link and key."""

    openid: Annotated[OpenIdOption, about("Left out where the settings name none.")] | UnsetType = UNSET


class BeginQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where to go afterwards; and what a provider's own page of apps adds (OpenID Connect Core 1.0, section 4), which
    is not used.
    """

    iss: Annotated[str, about("The provider's issuer.", "https://id.shop.example")] | UnsetType = UNSET
    login_hint: Annotated[str, about("Who wants to sign in.", "ada@shop.example")] | UnsetType = UNSET
    next: (
        Annotated[
            str,
            Meta(pattern=CONSOLE_PAGE, max_length=LONGEST_PAGE),
            about("Page of the console to show then, with its fragment.", "/console#/events"),
        ]
        | UnsetType
    ) = UNSET
    target_link_uri: Annotated[str, about("Where to go then.", "https://svc.example/console")] | UnsetType = UNSET


class CallbackQuery(msgspec.Struct, frozen=True):
    """What the provider sends the browser back with. Parameters that are not named here are passed over."""

    state: Annotated[str, about("That of the attempt.", "4mXq0Wc7")] | UnsetType = UNSET
    code: Annotated[str, about("To be exchanged for the ID token.", "SplxlOBeZQQYbYS6WxSbIA")] | UnsetType = UNSET
    iss: Annotated[str, about("The provider's issuer (RFC 9207).", "https://id.shop.example")] | UnsetType = UNSET
    error: Annotated[str, about("What the provider refused.", "access_denied")] | UnsetType = UNSET


class Admitted(NamedTuple):
    """A member who may sign in."""

    member: Member
    """As it will be stored."""
    mapped: Role
    """The role that the provider gives. The member has another one where it is the last active admin."""
    before: Member | None
    """As it was; `None` for one whom this sign-in makes."""

    @property
    def id(self) -> str:
        """Return the member's id."""
        return self.member.id

    @property
    def kept(self) -> dict[str, Role]:
        """Return what log and audit say where the role was kept; empty where it was not."""
        return {} if self.mapped == self.member.role else {"kept_role": self.member.role, "mapped_role": self.mapped}

    @property
    def changed(self) -> Mapping[str, str]:
        """Return what the audit log says: the address by which a person comes in by the provider for the first time,
        the role where it is a new one, and that it was kept.
        """
        before, now = self.before, self.member
        if before is None or before.subject is None:
            return {"email": now.email, "role": now.role, **self.kept}
        return self.kept if before.role == now.role else {"role": now.role}


def provider_of(services: Services) -> Provider | None:
    """Return the provider by which members sign in as well; `None` = the settings name none."""
    return cast("Provider | None", services.parts.get(Provider))


async def read_options(services: Services, call: Call) -> SignInOptionsBody | Refusal:
    """`GET /console/sign-in`: whether there is a provider."""
    del call
    provider = provider_of(services)
    return SignInOptionsBody(UNSET if provider is None else OpenIdOption(provider.issuer))


async def begin(services: Services, call: Call) -> Refusal | Outcome | None:
    """`GET /console/oidc`: to the provider, with a new attempt. `404 not_found` without one, `403` and `429` as of
    `signIn`. Where another site leads a person here, such as the provider's page of apps, the page of the console asks
    first: no other site signs anybody in.
    """
    provider, site = _entered(services, call), site_of(call)
    if isinstance(provider, Refusal):
        return provider
    refusal = cross_origin_refusal(call.headers, site, "GET")
    if refusal is not None:
        is_person = call.headers.get("sec-fetch-mode") == "navigate"
        return _failed(call, NoIdentity("elsewhere", "another site began")) if is_person else refusal
    key = openid_key(services.policy.pepper)
    page = sent(call.query.next) or ""
    attempt = new_attempt(key, services.world.entropy(SEED_BYTES), call.at_ms, _redirect_uri(site), page)
    url = await provider.authorization_url(attempt)
    if isinstance(url, NoIdentity):
        return _failed(call, url)
    return Outcome(
        None,
        status=303,
        headers={"Location": url, "Set-Cookie": _cookie(site, attempt.state, write_attempt(key, attempt))},
    )


async def end(services: Services, call: Call) -> Refusal | Outcome | None:
    """`GET /console/oidc/callback`: back from the provider; a session begins where it names a role that is mapped. The
    browser comes from another site: it is known by its cookie.
    """
    provider, site = _entered(services, call), site_of(call)
    if isinstance(provider, Refusal):
        return provider
    query: CallbackQuery = call.query
    kept = cookie_value(call.headers, _cookie_name(site, sent(query.state) or ""))
    redirect_uri = _redirect_uri(site)
    attempt = None if kept is None else read_attempt(openid_key(services.policy.pepper), kept, call.at_ms, redirect_uri)
    if attempt is None:
        return _failed(call, NoIdentity("expired", "the browser has no such attempt of the last ten minutes"))
    identity = await provider.identify(attempt, fields_sent(query), services.world.wall_time_of(call.at_ms))
    if isinstance(identity, NoIdentity):
        return _failed(call, identity)
    came = await _complete_sign_in(services, call, provider, identity, attempt)
    if isinstance(came, Refusal):
        return _failed(call, NoIdentity("refused", came.reason or came.code))
    return Outcome(None, status=303, headers={"Location": attempt.page or CONSOLE_ROOT, "Set-Cookie": came})


def _entered(services: Services, call: Call) -> Provider | Refusal:
    """Return the provider by which this request may sign in, or what keeps it from trying."""
    provider, site = provider_of(services), site_of(call)
    if provider is None:
        return Refusal("not_found")
    if site.transport == "insecure" or site.origin is None:
        return Refusal("secure_connection_required")
    return services.limits.sign_in_refusal(site.address, call.at_ms) or provider


def _failed(call: Call, why: NoIdentity) -> Outcome:
    """Log the reason and redirect to the page, which says what to do: the reason is not for the browser."""
    log.info("sign-in by OpenID refused", request_id=str(call.request_id), code=why.code, reason=why.reason)
    return Outcome(None, status=303, headers={"Location": f"{CONSOLE_ROOT}#openid={why.code}"})


async def _complete_sign_in(
    services: Services, call: Call, provider: Provider, identity: Identity, attempt: Attempt
) -> str | Refusal:
    """Return the `Set-Cookie` of a session for the member with this identity, who is created if need be."""
    new_id = MEMBER_PREFIX + twenty_characters(services.world.entropy)
    admit = partial(_admit_member, identity=identity, attempt=attempt, new_id=new_id, now_ms=call.at_ms)

    def find(snapshot: Snapshot) -> Entry | Refusal:
        organization = lookups.find_organization(snapshot, provider.organization_id)
        if organization is None or organization.removed_at_ms is not None:
            return Refusal("not_found", reason="the organization of the settings was removed")
        number = organization.number
        admitted = admit(snapshot, number)
        if isinstance(admitted, Refusal):
            return admitted
        return entry_of(services, call, snapshot, (number, admitted.member))

    entry = await services.store.query(find)
    if isinstance(entry, Refusal):
        return entry
    number = entry.caller.organization.number

    def job(transaction: Transaction) -> Admitted | Refusal:
        admitted = admit(transaction, number)
        if isinstance(admitted, Refusal):
            return admitted
        if admitted.id != entry.session.member_id:
            return _no("the members were changed meanwhile")
        return _store(transaction, number, admitted)

    came = await enter(services, call, entry, job)
    if isinstance(came, Refusal):
        return came
    admitted, set_cookie = came
    if admitted.kept:
        log.warning(
            "sign-in by OpenID keeps the role of the last admin",
            request_id=str(call.request_id),
            member=admitted.id,
            reason="the organization would be left without an active admin",
            **admitted.kept,
        )
    return set_cookie


def _store(transaction: Transaction, number: int, admitted: Admitted) -> Admitted | Refusal:
    """Store the member who comes in, whose invitation is used up by that. Refusals: see `add_member`."""
    if admitted.before is None:
        added = add_member(transaction, number, admitted.member)
        return added if isinstance(added, Refusal) else admitted
    if admitted.before.status == "invited":
        withdraw_invitations(transaction, number, admitted.id)
    transaction.put(MEMBERS, (number, admitted.id), admitted.member)
    return admitted


def _admit_member(
    snapshot: Snapshot, number: int, identity: Identity, attempt: Attempt, new_id: str, now_ms: int
) -> Admitted | Refusal:
    """Return the member with this identity and the role that the provider gives now, unless that would leave the
    organization without an active admin (decisions 15.2). An invited member is known by its address where the provider
    has verified that; anyone else by the provider's subject alone.
    """
    before = member_of_subject(snapshot, number, identity.subject)
    if before is None:
        before = member_with(snapshot, number, identity.email)
        if before is not None and (before.subject is not None or not identity.is_email_verified):
            return _no(f"{before.id} has this address, and the provider does not say that it is the same person")
    member = before or Member(
        id=new_id,
        email=identity.email,
        name=identity.name,
        role=identity.role,
        status="active",
        created_at_ms=now_ms,
    )
    if member.status == "suspended":
        return _no(f"{member.id} is suspended")
    # An attempt that a clock far ahead began is over, too.
    recent = tuple(used for used in member.attempts if abs(now_ms - used.began_at_ms) <= ATTEMPT_MS + LEEWAY_MS)
    this = UsedAttempt(attempt.began_at_ms, hashlib.sha256(attempt.seed).digest()[:8])
    if this in recent:
        return _no(f"{member.id} has signed in by this attempt")
    if len(recent) == MAX_ATTEMPTS:
        return _no(f"{member.id} has signed in {MAX_ATTEMPTS} times in {ATTEMPT_MS // 60_000} minutes")
    signed_in = msgspec.structs.replace(
        member,
        role="admin" if is_last_admin(snapshot, number, member) else identity.role,
        status="active",
        subject=identity.subject,
        attempts=(*recent, this),
        last_signed_in_at_ms=now_ms,
    )
    return Admitted(signed_in, identity.role, before)


def _no(reason: str) -> Refusal:
    return Refusal("unauthorized", reason=reason)


def _redirect_uri(site: Site) -> str:
    return f"{site.origin}{CONSOLE_ROOT}{CALLBACK}"


def _cookie_name(site: Site, state: str) -> str:
    """Return the name of the cookie of the attempt with this state, which may be any text."""
    return f"{COOKIES[site.transport]}-openid-{state[:16]}"


def _cookie(site: Site, state: str, text: str) -> str:
    """Return the `Set-Cookie` of an attempt. It must come back from the provider's site, which `Strict` forbids."""
    secure = "; Secure" if site.transport == "https" else ""
    seconds = ATTEMPT_MS // 1000
    return f"{_cookie_name(site, state)}={text}; Path=/; HttpOnly{secure}; SameSite=Lax; Max-Age={seconds}"


_route = partial(console_route, kinds=(), under=(CONSOLE_ROOT,))
_way = partial(_route, status=303, errors=("secure_connection_required", "rate_limited", "not_found"))
ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="readSignInOptions",
        path="/sign-in",
        summary="Read by what members may sign in",
        description="Beside password, link and key: by the OpenID provider of the settings, if there is one.",
        handler=read_options,
    ),
    _way(
        operation_id="beginOpenId",
        path="/oidc",
        summary="Sign in with the OpenID provider",
        description=(
            "Leads a browser to the provider, and then to the page `next`. Its attempt is in a cookie of ten minutes. "
            "From another site, such as the provider's page of apps, it leads to the page of the console, which offers "
            "to sign in."
        ),
        handler=begin,
        query=BeginQuery,
    ),
    _way(
        operation_id="endOpenId",
        path=CALLBACK,
        summary="Come back from the OpenID provider",
        description=(
            "Register this path with the provider. It leads to the page of the console, with a session where the "
            "provider names a role that is mapped (`console_oidc_roles`)."
        ),
        handler=end,
        query=CallbackQuery,
        audited=Audited(outcome="changed"),
    ),
)
