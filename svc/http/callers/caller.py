"""Who calls: the values that authentication makes of a request, and handlers get.

What may live here: values. A command that runs a handler in its own process makes them itself, and so needs nothing of
what reads requests (ADR 83).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Literal, NamedTuple

import msgspec

from svc.identify.model import RequestFacts
from svc.kernel.access.audit import Actor
from svc.kernel.access.credentials import ApiKey
from svc.kernel.access.members import Member
from svc.kernel.access.sessions import Session
from svc.kernel.tenants.organization import Organization

HeaderMap = Mapping[str, str]
"""Lower-case names; a header that came twice is joined with a comma."""

ConnectionSecurity = Literal["https", "loopback", "insecure"]


class ConnectionHeaders(msgspec.Struct, frozen=True):
    """The headers, in lower case, in which a trusted proxy reports what it saw of the connection; `None` = not
    reported.
    """

    os: str | None = None
    """The operating system that made it."""
    tls: str | None = None
    """The fingerprint of its TLS handshake."""


class AuthPolicy(msgspec.Struct, frozen=True):
    """What authentication depends on beside the store: pepper, region, trusted proxies."""

    pepper: bytes
    region: str
    trusted_proxies: Sequence[IPv4Network | IPv6Network]
    connection: ConnectionHeaders = ConnectionHeaders()


class UsedSession(NamedTuple):
    """The session that a request came with, and the digest of its token."""

    digest: bytes
    session: Session


class Operator(NamedTuple):
    """Who runs a command, and which: what the audit log has of a change that the command makes."""

    actor: Actor
    command: str
    """Its words, such as `svc list create`."""
    asked: Mapping[str, Any] = {}
    """What the record says that was asked for, beside body and path."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The holder of a valid key or session, and the visitor that the request is about."""

    key: ApiKey
    """The key in `x-api-key`, or that of the session: of a member its `standing_key`."""
    digest: bytes
    applied: ApiKey
    """The key whose origins, platforms and weights apply: a forwarded public key, else the same."""
    applied_digest: bytes
    organization: Organization
    origin: str | None
    """The visitor's, normalized."""
    facts: RequestFacts
    session: UsedSession | None = None
    """Of the console; `None` where the key itself was presented."""
    member: Member | None = None
    """Whose session it is; `None` where it is that of a key."""
    operator: Operator | None = None
    """Who runs the command that calls the handler in its own process; `None` for a request."""

    @property
    def member_id(self) -> str | None:
        """Return the member to whom a change is attributed, `None` without one (interface 5, rule 8)."""
        return None if self.member is None else self.member.id


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """How a browser reached this service."""

    transport: ConnectionSecurity
    """`https`: its own TLS or that of a trusted proxy. `loopback`: plain HTTP from this very machine, and by such a
    name; a proxy on this machine does not make its clients local. `insecure`: any other plain HTTP."""
    origin: str | None
    """Of pages of this service: scheme and `Host` of the request, normalized; `None` where they make no origin."""
    address: str
    """The client's (decisions 2.10)."""
    peer: str
    """The address of the connection."""
