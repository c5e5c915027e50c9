"""Members: people who sign in to the console of an organization, and the invitations by which they come (decisions 15).

What may live here: the records, what an e-mail address is, what follows from a member's fields, and the forms of the
settings of an OpenID provider. Passwords and codes are in `svc.features.members.sign_in`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

import idna
import msgspec

from svc.kernel.access.credentials import ApiKey
from svc.kernel.access.roles import ROLES, Role
from svc.kernel.values.ids import DAY_MS

MEMBER_PREFIX = "mem_"
INVITATION_MS = 7 * DAY_MS
MAX_MEMBERS = 500
"""Members of one organization."""
LONGEST_EMAIL = 254
LONGEST_MEMBER_NAME = 100

MemberStatus = Literal["invited", "active", "suspended"]
"""`invited`: has no way to sign in yet. `suspended`: may not sign in until an admin allows it again."""

_EMAIL = re.compile(r"[^\s@\x00-\x1f\x7f\"(),:;<>\[\\\]]{1,64}@[^\s@\x00-\x1f\x7f\"(),:;<>\[\\\]]+\.[^\s@.]{2,63}")


class UsedAttempt(msgspec.Struct, frozen=True, array_like=True):
    """An attempt to sign in by the OpenID provider that succeeded. Append fields with defaults, never move them."""

    began_at_ms: int
    seed_digest: bytes
    """The first 8 bytes of SHA-256 of `openid.Attempt.seed`."""


class Member(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A member as stored. Times are Unix milliseconds. Append fields with defaults, never move them."""

    id: str
    email: str
    """As from `canonical_email`."""
    name: str
    role: Role
    status: MemberStatus
    created_at_ms: int
    created_by: str | None = None
    """The id of the member who invited it."""
    password: bytes | None = None
    """As from `passwords.stored_password`; `None` = it cannot sign in by a password."""
    code_generation: int | None = None
    """Of its secret for one-time codes (`passwords.code_secret`); `None` = it signs in without a code."""
    offered_generation: int = 0
    """Of the secret that was offered last."""
    last_code: int = -1
    """The latest time step whose code was used: that and earlier ones count no more."""
    subject: str | None = None
    """Its identity at the OpenID provider: issuer and `sub`; `None` = it does not sign in there."""
    last_signed_in_at_ms: int | None = None
    former_last_attempt_ms: int = -1
    """Of store version 6. Not read any more."""
    attempts: tuple[UsedAttempt, ...] = ()
    """Recent sign-ins through the OpenID provider: each attempt counts once."""
    recovery: tuple[bytes, ...] = ()
    """Digests of its recovery codes that were not used (`second_factor.recovery_digest`)."""

    @property
    def has_totp(self) -> bool:
        """Whether it needs a one-time code to sign in by a password."""
        return self.code_generation is not None


class Invitation(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A one-use invitation as stored, but for its token. Append fields with defaults, never move them."""

    member_id: str
    expires_at_ms: int

    def has_ended(self, now_ms: int) -> bool:
        """Return whether it has expired; its member may have been removed before."""
        return now_ms >= self.expires_at_ms


def canonical_email(text: str) -> str | None:
    """Return an e-mail address in its one spelling: NFC, lower case, no spaces around it, the domain as people read it
    (IDNA); `None` for what is none, and for text that only looks like one, as with a KELVIN SIGN in the place of a `k`
    or a character that nobody sees (decisions 15.4). Whether mail reaches anybody there, nothing here asks.
    """
    given = text.strip()
    spelled = unicodedata.normalize("NFC", given)
    if not spelled.isprintable() or any(made.isascii() for made in set(spelled) - set(given)):
        return None
    local, at, domain = spelled.lower().rpartition("@")
    spelled = f"{local}{at}{_domain(domain)}"
    return spelled if len(spelled) <= LONGEST_EMAIL and _EMAIL.fullmatch(spelled) is not None else None


def _domain(text: str) -> str:
    if text.isascii() and "xn--" not in text:
        return text
    try:
        return idna.decode(idna.encode(text))
    except idna.IDNAError:
        return ""  # no domain


def email_digest(email: str) -> bytes:
    """Return 32 bytes by which the store finds the members with an address, which must be canonical."""
    return hashlib.sha256(email.encode()).digest()


def standing_key(member: Member, number: int) -> ApiKey:
    """Return what a member is to the routes that take a management key: one with the member's id, name and role, which
    was never issued and has no secret. `number` is the organization's.
    """
    return ApiKey(
        id=member.id,
        organization=number,
        kind="management",
        name=member.name,
        environment=None,
        region="",
        role=member.role,
        platforms=(),
        allowed_origins=(),
        prefix="",
        last4="",
        created_at_ms=member.created_at_ms,
    )


def is_provider_url(url: str, *, loopback: bool = False) -> bool:
    """Return whether a URL is over TLS or, where `loopback` allows it, by plain HTTP on this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if not url.isascii() or not host or parts.username is not None or parts.fragment:
        return False
    return parts.scheme == "https" or (loopback and parts.scheme == "http" and _is_this_machine(host))


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def read_roles(texts: tuple[str, ...]) -> dict[str, Role]:
    """Return the setting `console_oidc_roles`, `value=role` each: which role a value of the claim gives. Raises
    `ValueError` for a text of another form, and for a value that is there twice.
    """
    roles: dict[str, Role] = {}
    for text in texts:
        value, _, role = text.rpartition("=")
        if not value or role not in ROLES or value in roles:
            raise ValueError(f"{text!r} is not a value of the claim, = and one of {', '.join(ROLES)}, each value once")
        roles[value] = role
    return roles
