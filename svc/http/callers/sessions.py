"""Sessions of the console on the wire: the cookie, which connections may have one, and what keeps other sites out.

What may live here: decisions over headers and a snapshot; a `Caller` or a `Refusal` comes out. The routes that begin
and end sessions are in `features/members/sign_in/session_routes.py`. Source: docs/adr/0038.
"""

from __future__ import annotations

from svc.http.callers.authentication import AuthRequest, FoundKey, caller_with, sender
from svc.http.callers.caller import AuthPolicy, Caller, ConnectionSecurity, HeaderMap, Site, UsedSession
from svc.http.callers.client_address import is_trusted
from svc.kernel.access.credentials import digest
from svc.kernel.access.jobs import find_session, key_digest
from svc.kernel.access.sessions import organization_of
from svc.kernel.net.addresses import read_address
from svc.kernel.net.origins import is_loopback, normalize_origin
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.refusals import Refusal

COOKIES: dict[ConnectionSecurity, str] = {"https": "__Host-svc", "loopback": "svc-console"}
"""Name of the cookie by how the browser reached the service; an insecure connection has none."""
READING = ("GET", "HEAD")
SIGNED_OUT = "You are not signed in, or your session has ended. Sign in again."


def read_site(policy: AuthPolicy, headers: HeaderMap, scheme: str, peer: str) -> Site:
    """Return how the browser reached the service: `scheme` and `peer` are those of the connection. A trusted proxy that
    ended TLS says so with `X-Forwarded-Proto: https`, and passes `Host` on.
    """
    is_https = scheme == "https" or (
        headers.get("x-forwarded-proto", "").strip().lower() == "https" and is_trusted(peer, policy.trusted_proxies)
    )
    origin = normalize_origin(f"{'https' if is_https else 'http'}://{headers.get('host', '')}")
    address = sender(policy, headers, peer)
    is_local = origin is not None and is_loopback(origin) and _is_this_machine(peer) and _is_this_machine(address)
    return Site(
        transport="https" if is_https else "loopback" if is_local else "insecure",
        origin=origin,
        address=address,
        peer=peer,
    )


def _is_this_machine(text: str) -> bool:
    address = read_address(text)
    return address is not None and address.is_loopback


def authenticate_session(request: AuthRequest, site: Site, method: str) -> Caller | Refusal:
    """Authenticate a request by its session cookie. Refusals: `403 cross_origin_request` if it did not come from a page
    of this service, `401 unauthorized` if it has no valid session.
    """
    policy, snapshot = request.policy, request.snapshot
    token = presented_token(request.headers, site)
    if token is None:
        return signed_out("no key and no session")
    refusal = cross_origin_refusal(request.headers, site, method)
    if refusal is not None:
        return refusal
    row = session_row(policy, snapshot, token)
    found = None if row is None else find_session(snapshot, *row, request.now_ms)
    if row is None or found is None or (found.member is None and found.key.region != policy.region):
        return signed_out("unknown session, or it has ended")
    if found.session.secure != (site.transport == "https"):
        return signed_out("the session began over another kind of connection")
    key, member = found.key, found.member
    used = FoundKey(key, key_digest(snapshot, key) if member is None else b"")
    return caller_with(request, used, session=UsedSession(row[1], found.session), member=member)


def session_row(policy: AuthPolicy, snapshot: Snapshot, token: str) -> tuple[int, bytes] | None:
    """Return where the store has the session with this token: its organization's number and its digest. `None` for a
    text that is not a session token, or names no organization.
    """
    organization_id = organization_of("session", token)
    organization = None if organization_id is None else lookups.find_organization(snapshot, organization_id)
    return None if organization is None else (organization.number, digest(policy.pepper, token))


def cross_origin_refusal(headers: HeaderMap, site: Site, method: str) -> Refusal | None:
    """Return `403 cross_origin_request` unless the browser's headers say that a page of this service sent the request.
    A change needs `Sec-Fetch-Site: same-origin` and the `Origin` of this service. A read, which may be a navigation,
    needs neither, but must not have other values. A page cannot set any of these headers (Fetch, 2.2.2).
    """
    fetched, sent = headers.get("sec-fetch-site"), headers.get("origin")
    is_own_origin = sent is not None and site.origin is not None and normalize_origin(sent) == site.origin
    if method in READING:
        allowed = fetched in (None, "none", "same-origin") and (sent is None or is_own_origin)
    else:
        allowed = fetched == "same-origin" and is_own_origin
    return None if allowed else Refusal("cross_origin_request", reason="the request is not from a page of this service")


def presented_token(headers: HeaderMap, site: Site) -> str | None:
    """Return the value of the session cookie for this kind of connection; `None` if it is missing, or there twice."""
    return cookie_value(headers, COOKIES.get(site.transport))


def cookie_value(headers: HeaderMap, name: str | None) -> str | None:
    """Return the value of a cookie; `None` if it is missing, or there twice."""
    pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
    values = [value for found, _, value in pairs if found == name]
    return values[0] if len(values) == 1 else None


def cookie(site: Site, token: str) -> str:
    """Return the `Set-Cookie` that gives the browser a session. Raises `KeyError` for an insecure connection."""
    secure = "; Secure" if site.transport == "https" else ""
    return f"{COOKIES[site.transport]}={token}; Path=/; HttpOnly{secure}; SameSite=Strict"


def cleared_cookie(site: Site) -> str:
    """Return the `Set-Cookie` that takes the session from the browser. Raises `KeyError` for an insecure connection."""
    return f"{cookie(site, '')}; Max-Age=0"


def signed_out(reason: str) -> Refusal:
    """Return `401 unauthorized` for a request without a valid session. `reason` is for the log."""
    return Refusal("unauthorized", reason=reason, explanation=SIGNED_OUT)
