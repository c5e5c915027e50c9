"""The caller of a request, and its visitor: keys, origins, platforms and forwarded visitor details.

What may live here: decisions over headers and a snapshot; a `Caller` or a `Refusal` comes out. Every refusal of a key
is `401 unauthorized`. Its message says what the request itself shows (no key, a mistyped one, one of another kind or
region), whether or not such a key exists (docs/adr/0076). What only the store knows is for the log and for
`identification.refused`; of that, only a development key that is otherwise valid is told the reason. Sources: interface
5, decisions 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from svc.http.callers.caller import AuthPolicy, Caller, HeaderMap, UsedSession
from svc.http.callers.client_address import client_address
from svc.http.callers.visitor_facts import VISITOR_HEADERS, bad_metadata, forwarded_facts, own_facts, page_context
from svc.identify.model import HeaderContext, RequestFacts, scoring_platform
from svc.kernel.access.credentials import ApiKey, Credential, KeyKind, beginning, digest, parse, redact
from svc.kernel.access.members import Member
from svc.kernel.access.roles import Permission, may
from svc.kernel.net.origins import MAX_LENGTH, normalize_origin, origin_allowed
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.refusals import Refusal

MAX_PLATFORM_LENGTH = 64


class AuthRequest(NamedTuple):
    """What authenticates a request: its headers, the address of its connection, and the policy and keys now
    in force.
    """

    policy: AuthPolicy
    snapshot: Snapshot
    headers: HeaderMap
    peer: str
    now_ms: int


class FoundKey(NamedTuple):
    """A valid key, and the digest under which the store has it."""

    key: ApiKey
    digest: bytes


def authenticate(request: AuthRequest, kinds: Sequence[KeyKind]) -> Caller | Refusal:
    """Authenticate a request by its key, before anything else is checked (decisions 1.8, 2.7-2.11). `kinds`: the key
    kinds that the route accepts. Refusals: `401 unauthorized` for any reason, `422 invalid_visitor_metadata` if a proxy
    or server forwarded malformed details.
    """
    headers = request.headers
    found = find_key(request, headers.get("x-api-key"), kinds)
    if isinstance(found, Refusal):
        return found
    key = found.key
    if key.kind == "public":
        return _browser(request, found)
    if key.kind == "management":
        if "origin" in headers:  # however valid it is (interface 5, rule 2)
            return _unauthorized("a management key was sent with an Origin header", key)
        return caller_with(request, found)
    if key.kind == "secret" and "origin" in headers and not _from_the_reference(key, headers):
        return _refused_origin(
            "a secret key was sent with an Origin header", "Secret keys are for servers.", key, headers["origin"]
        )
    return _server(request, found)


def platform_refusal(caller: Caller, platform: str | None) -> Refusal | None:
    """Return `401` for a public key, sent or forwarded, that does not have the platform by which the request would be
    scored, or that came without an origin for the web (decisions 2.7); `None` if it passes. `platform` is
    `sdk.platform` or the header's, `None` = `web`.
    """
    if caller.applied.kind != "public":
        return None
    profile = scoring_platform(platform or "web", caller.origin)
    if profile in caller.applied.platforms and (caller.origin is not None or profile != "web"):
        return None
    if caller.origin is None:
        return _refused_origin(
            f"no Origin header, and the platform {profile} is not one of the key's native ones",
            "Send it from a page, or name in sdk.platform a native platform (ios, android) that the key has.",
            caller.key,
        )
    return _refused_origin(
        f"the origin's platform is {profile}, which is not one of the key's",
        "What a page sends is always for the web. Issue a key with that platform.",
        caller.key,
        caller.origin,
    )


def forbidden(caller: Caller, organization_id: str | None, permission: Permission | None) -> Refusal | None:
    """Return `404 not_found` if the path names another organization than the caller's, `403 insufficient_role` if the
    caller's role lacks the `permission` (`None` = any role may), and `None` if the request is permitted.
    """
    if organization_id is not None and organization_id != caller.organization.id:
        return Refusal("not_found")
    return None if permission is None or may(caller.key.role, permission) else Refusal("insufficient_role")


def claimed_platform(headers: HeaderMap) -> str | None:
    """Return the platform in `x-svc-sdk-platform`, `None` if it is missing or over 64 characters."""
    claimed = headers.get("x-svc-sdk-platform")
    return claimed if claimed and len(claimed) <= MAX_PLATFORM_LENGTH else None


def sender(policy: AuthPolicy, headers: HeaderMap, peer: str) -> str:
    """Return the address that a request came from: the peer's, or the one that a trusted proxy forwards (decisions
    2.10).
    """
    return client_address(peer, headers.get("x-forwarded-for"), policy.trusted_proxies)


def find_key(
    request: AuthRequest, presented: str | None, kinds: Sequence[KeyKind], where: str = "This route"
) -> FoundKey | Refusal:
    """Return a valid key by its secret; `401 unauthorized` for any other text. `where` takes keys of these kinds: how
    the message begins.
    """
    credential = _readable(request.policy, presented, kinds, where)
    return credential if isinstance(credential, Refusal) else _look_up(request, credential)


def _readable(policy: AuthPolicy, presented: str | None, kinds: Sequence[KeyKind], where: str) -> Credential | Refusal:
    """Check what a key says without a look-up, which its sender may be told (docs/adr/0076)."""
    if not presented:
        explanation = f"{where} takes {_named(kinds)}, and none was sent. Send it in the header x-api-key."
        return _unauthorized("no key", explanation=explanation)
    credential = parse(presented)
    if credential is None:
        explanation = (
            "What was sent is not a whole key: it is mistyped, or a part is missing. Copy all of it, from svc_ on."
        )
        return _unauthorized("not a key of this service, or mistyped", explanation=explanation)
    if credential.kind not in kinds:
        explanation = f"{where} takes {_named(kinds)}, and the one sent is {_named((credential.kind,))}."
        return _unauthorized(f"a {credential.kind} key is not for this route", explanation=explanation)
    if credential.region != policy.region:
        explanation = (
            f"The key is of the region {credential.region}, and this is the API of another one. Send it to its own."
        )
        return _unauthorized(f"the key is of region {credential.region}", explanation=explanation)
    return credential


def _named(kinds: Sequence[KeyKind]) -> str:
    """Return a phrase such as `a public (svc_pk_...), secret (svc_sk_...) or proxy key (svc_px_...)`."""
    *others, last = (f"{kind} ({beginning(kind)}...)" for kind in kinds)
    last = last.replace(" ", " key ", 1)
    return f"a {' or '.join(filter(None, (', '.join(others), last)))}"


def _look_up(request: AuthRequest, credential: Credential) -> FoundKey | Refusal:
    key_digest = digest(request.policy.pepper, credential.secret)
    key = lookups.find_key(request.snapshot, key_digest)
    if key is None:
        return _unauthorized("unknown key")
    if not key.usable(request.now_ms):
        return _unauthorized("the key is revoked or expired", key)
    if lookups.is_removed(request.snapshot, key.organization):
        return _unauthorized("the organization was removed", key)
    return FoundKey(key, key_digest)


def caller_with(
    request: AuthRequest,
    found: FoundKey,
    *,
    applied: FoundKey | None = None,
    origin: str | None = None,
    facts: RequestFacts | None = None,
    session: UsedSession | None = None,
    member: Member | None = None,
) -> Caller:
    """Return the caller with this key, whose validity and place in the request were checked before. `applied`: the key
    whose settings apply, by default `found`; `facts`: by default those of the request.
    """
    applied = applied or found
    return Caller(
        key=found.key,
        digest=found.digest,
        applied=applied.key,
        applied_digest=applied.digest,
        organization=lookups.organization(request.snapshot, found.key.organization),
        origin=origin,
        facts=facts or _own_facts(request),
        session=session,
        member=member,
    )


def _browser(request: AuthRequest, found: FoundKey) -> Caller | Refusal:
    sent = request.headers.get("origin")
    origin = None if sent is None else normalize_origin(sent)
    refusal = _origin_refusal(found.key, sent, origin)
    if refusal is not None:
        return refusal
    context = page_context(origin, request.headers.get("host", ""))
    return caller_with(request, found, origin=origin, facts=_own_facts(request, context))


def _server(request: AuthRequest, found: FoundKey) -> Caller | Refusal:
    """Authenticate a proxy or a customer's server, with the visitor details that it forwards (decisions 2.9)."""
    key, headers, applied = found.key, request.headers, None
    forwarded_key = headers.get("x-svc-public-key") if key.kind == "proxy" else None
    if forwarded_key is not None:
        applied = find_key(request, forwarded_key, ("public",), where="The header x-svc-public-key")
        if isinstance(applied, Refusal):
            return applied
        if (applied.key.organization, applied.key.environment) != (key.organization, key.environment):
            return _unauthorized("the forwarded public key is of another organization or environment", key)
    facts, sent, origin = None, None, None
    if key.kind != "secret" or any(name in headers for name in VISITOR_HEADERS):
        sent = headers.get("x-svc-visitor-origin")
        origin = None if sent is None else normalize_origin(sent)
        facts = forwarded_facts(key, headers, origin)
        if sent is not None and origin is None and not isinstance(facts, Refusal):
            facts = bad_metadata("x-svc-visitor-origin", "invalid_origin")
        if isinstance(facts, Refusal):
            return msgspec.structs.replace(facts, key=key)
    if applied is not None:
        refusal = _origin_refusal(applied.key, sent, origin)
        if refusal is not None:
            return refusal
    return caller_with(request, found, applied=applied, origin=origin, facts=facts)


def _origin_refusal(key: ApiKey, sent: str | None, origin: str | None) -> Refusal | None:
    """Refuse an origin that the key does not allow, as far as headers alone decide it (decisions 2.7)."""
    assert key.environment is not None
    if sent is None:
        if all(platform == "web" for platform in key.platforms):
            next_step = "Send it from a page, or with an Origin header that the key allows."
            return _refused_origin("no Origin header, and the key is for the web only", next_step, key)
        return None
    if origin is None:
        next_step = "Serve the page over http or https: files and sandboxed frames have no origin."
        return _refused_origin("the Origin header holds no origin that a key can allow", next_step, key, sent)
    if not origin_allowed(origin, key.allowed_origins, key.environment):
        return _refused_origin("the origin is not in the key's list", "Add it to the key's allowed origins.", key, sent)
    return None


def _own_facts(request: AuthRequest, context: HeaderContext | None = None) -> RequestFacts:
    policy = request.policy
    return own_facts(request.headers, request.peer, policy.trusted_proxies, policy.connection, context=context)


def _from_the_reference(key: ApiKey, headers: HeaderMap) -> bool:
    """Return whether a development key is used from the page `/docs` of this very service (decisions 2.8).

    The scheme is the one that the browser sends, since a reverse proxy may have ended TLS.
    """
    origin = normalize_origin(headers["origin"])
    if key.environment != "development" or origin is None:
        return False
    scheme = origin.partition("://")[0]
    return scheme in ("http", "https") and origin == normalize_origin(f"{scheme}://{headers.get('host', '')}")


def _unauthorized(reason: str, key: ApiKey | None = None, explanation: str = "") -> Refusal:
    return Refusal("unauthorized", reason=reason if key is None else f"{reason} ({key.id})", explanation=explanation)


def _refused_origin(reason: str, next_step: str, key: ApiKey, origin: str | None = None) -> Refusal:
    """Refuse a valid key from a wrong origin. Its owner may be notified; a development key's caller sees the reason."""
    shown = None if origin is None else redact(origin[:MAX_LENGTH].encode("ascii", "backslashreplace").decode())
    said = reason if shown is None else f"{reason}: {shown!r}"
    explanation = f"This development key was refused: {said}. {next_step}" if key.environment == "development" else ""
    return Refusal("unauthorized", reason=said, key=key, origin=shown, explanation=explanation)
