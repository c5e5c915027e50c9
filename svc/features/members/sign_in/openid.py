"""Signing in by an OpenID provider: what one attempt is bound to, and the identity in its ID token (decisions
15.4, docs/adr/0121).

What may live here: pure functions, and the protocol of what talks to the provider (`provider.py`).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from svc.kernel.access.members import LONGEST_MEMBER_NAME, canonical_email
from svc.kernel.access.roles import ROLES, Role
from svc.kernel.values.encodings import base64url, seal, unseal
from svc.kernel.values.fields import is_visible

ATTEMPT_MS = 10 * 60_000
"""From going to the provider until coming back."""
LEEWAY_MS = 60_000
"""By which the clocks of two nodes may differ: one begins an attempt, another ends it (decisions 15.4)."""
SEED_BYTES = 32
LONGEST_PAGE = 512
CONSOLE_PAGE = r"^/console(?:/[A-Za-z0-9_-]+)*(?:#[!-~]*)?$(?!\n)"
"""A page of the console, with its fragment: where a sign-in may lead."""
_MAC_BYTES = 16
_LONGEST_SUBJECT = 255
"""OpenID Connect Core 1.0, section 2: `sub`."""


class Attempt(NamedTuple):
    """One attempt to sign in. State, nonce and PKCE verifier follow from the seed by a key of this service: the browser
    has the seed alone, and nobody can make them from it.
    """

    seed: bytes
    began_at_ms: int
    state: str
    nonce: str
    verifier: str
    """43 characters (RFC 7636, 4.1)."""
    redirect_uri: str
    page: str
    """Page of the console that was asked for (`CONSOLE_PAGE`); empty = none."""


class Identity(NamedTuple):
    """The identity in a verified ID token."""

    subject: str
    """Issuer and `sub`, which no other person has."""
    email: str
    """As of `canonical_email`."""
    is_email_verified: bool
    """Whether the provider says that it has checked the address."""
    name: str
    role: Role


NoIdentityCode = Literal["unavailable", "refused", "no_role", "expired", "elsewhere"]


class NoIdentity(NamedTuple):
    """Why the sign-in failed."""

    code: NoIdentityCode
    """`unavailable`: the provider does not respond as it should. `refused`: it, its token or this service says no.
    `no_role`: it names no role that is mapped. `expired`: the browser has no attempt that holds. `elsewhere`: another
    site began.
    """
    reason: str
    """For the log."""


class Provider(Protocol):
    """Talks to the OpenID provider. Nothing raises for what the provider does."""

    issuer: str
    organization_id: str
    """The organization whose members sign in through it."""

    async def authorization_url(self, attempt: Attempt) -> str | NoIdentity:
        """Return where to send the browser."""
        ...

    async def identify(self, attempt: Attempt, response: Mapping[str, str], now_ms: int) -> Identity | NoIdentity:
        """Return the identity that the provider's response asserts. `response`: the query parameters with which it sent
        the browser back.
        """
        ...


def openid_key(pepper: bytes) -> bytes:
    """Derive from the pepper the 32-byte key that protects every OpenID sign-in attempt of this installation."""
    return hmac.digest(pepper, b"svc openid 1", "sha256")


def new_attempt(key: bytes, seed: bytes, now_ms: int, redirect_uri: str, page: str = "") -> Attempt:
    """Return an attempt that begins now. `seed`: 32 random bytes. `redirect_uri`: where the provider sends the browser
    to; `page`: which page of the console is shown then.
    """

    def derived(name: bytes) -> str:
        return base64url(hmac.digest(key, b"\n".join((name, redirect_uri.encode(), seed)), "sha256"))

    return Attempt(seed, now_ms, derived(b"state"), derived(b"nonce"), derived(b"verifier"), redirect_uri, page)


def write_attempt(key: bytes, attempt: Attempt) -> str:
    """Return what the browser keeps of an attempt: opaque text, authenticated, good for its redirect URI alone."""
    content = attempt.seed + attempt.began_at_ms.to_bytes(8) + attempt.page.encode()
    return seal(key, content, _MAC_BYTES, attempt.redirect_uri.encode() + b"\n")


def read_attempt(key: bytes, text: str, now_ms: int, redirect_uri: str) -> Attempt | None:
    """Return the attempt of a text that `write_attempt` made for this redirect URI within the last `ATTEMPT_MS`, or a
    node whose clock differs by `LEEWAY_MS` at most; `None` for any other.
    """
    content = unseal(key, text, _MAC_BYTES, redirect_uri.encode() + b"\n")
    if content is None or len(content) < SEED_BYTES + 8:
        return None
    began_at_ms = int.from_bytes(content[SEED_BYTES : SEED_BYTES + 8])
    if not -LEEWAY_MS <= now_ms - began_at_ms < ATTEMPT_MS + LEEWAY_MS:
        return None
    return new_attempt(key, content[:SEED_BYTES], began_at_ms, redirect_uri, content[SEED_BYTES + 8 :].decode())


def role_of(claims: Mapping[str, Any], name: str, roles: Mapping[str, Role]) -> Role | None:
    """Return the strongest role that the claim gives; `None` if it gives none. The claim is a text or a list of texts.
    A name with dots leads into objects, such as `realm_access.roles`; their members' names may have dots, too: at each
    level the longest one that is there counts (decisions 15.4).
    """
    found: Any = claims
    parts = name.split(".")
    while parts:
        members: Mapping[str, Any] = found if isinstance(found, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]  any JSON
        longest = next((n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in members), None)
        if longest is None:
            return None
        found, parts = members[".".join(parts[:longest])], parts[longest:]
    values: list[Any] = found if isinstance(found, list) else [found]  # pyright: ignore[reportUnknownVariableType]  any JSON
    given: set[Role] = {roles[value] for value in values if isinstance(value, str) and value in roles}
    return min(given, key=ROLES.index, default=None)


def identity_of(
    claims: Mapping[str, Any], issuer: str, role_claim: str, roles: Mapping[str, Role]
) -> Identity | NoIdentity:
    """Return the identity that the claims of a verified ID token assert. The address is `email`, else
    `preferred_username` if that is an e-mail address, which counts as unverified.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT:
        return NoIdentity("refused", "the ID token has no `sub`")
    role = role_of(claims, role_claim, roles)
    if role is None:
        return NoIdentity("no_role", f"the claim {role_claim} of the ID token gives no role")
    said = claims.get("email")
    given = said if isinstance(said, str) else claims.get("preferred_username")
    email = canonical_email(given) if isinstance(given, str) else None
    if email is None:
        return NoIdentity("refused", "the ID token has no e-mail address")
    name = claims.get("name")
    called = name.strip()[:LONGEST_MEMBER_NAME] if isinstance(name, str) else ""
    is_verified = isinstance(said, str) and claims.get("email_verified") is True
    return Identity(f"{issuer}\n{subject}", email, is_verified, called if is_visible(called) else email, role)
