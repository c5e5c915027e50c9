"""Settings of an OpenID provider, as text and as what they mean."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from svc.kernel.access.roles import ROLES, Role


def is_provider_url(url: str, *, loopback: bool = False) -> bool:
    """Return whether the provider may be asked at a URL: over TLS, or by plain HTTP on this machine where `loopback`
    allows it.
    """
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
