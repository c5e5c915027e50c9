"""Origins: their one spelling, and which of them a key accepts (decisions 2.6 and 2.7).

An origin is `scheme://host[:port]`, lower-cased, the host IDNA-encoded, the default port dropped. The host of an app's
own scheme need not be a name of DNS: Electron has apps at `app://-` and `app://.`. A pattern is an origin, or
`https://*.example.com`, which matches any depth below and not the apex. Which suffixes are public, such as `co.uk`, is
not known here (docs/adr/0020).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv6Address

import idna

from svc.kernel.values.fields import Environment

MAX_ORIGINS = 100
"""Allowed origins of one key."""
MAX_LENGTH = 300
"""Characters of an origin: a host name has at most 253."""

_FORM = re.compile(r"([a-z][a-z0-9+.-]*)://(\[[0-9a-f:.]+\]|[^\s/?#@:\[\]\\]+)(?::(\d{1,5}))?", re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_REGISTERED_NAME = re.compile(r"(?:[a-z0-9._~-]|%[0-9a-f]{2})+")
"""A host of RFC 3986 (`reg-name`) without punctuation that separates origins elsewhere or stands for others."""
_DNS_SCHEMES = frozenset({"http", "https", "ws", "wss", "ftp"})
"""Their hosts are addresses or names of DNS."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_NO_ORIGINS = frozenset(
    {"about", "blob", "data", "file", "filesystem", "javascript", "mailto", "vbscript", "view-source"}
)
"""Schemes of which browsers make no origin, or an opaque one that they send as `null`."""
_LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")


def normalize_origin(text: str) -> str | None:
    """Return the one spelling of an origin: lower case, IDNA-encoded, without the default port (decisions 2.6). `None`
    for other text, such as a path, a bare host, `null` or `*`.
    """
    return _normalize(text, wildcard=False)


def normalize_pattern(text: str) -> str | None:
    """Return the one spelling of an allowed origin, which may be `scheme://*.host` (decisions 2.6); else `None`."""
    return _normalize(text, wildcard=True)


def origin_allowed(origin: str, patterns: Sequence[str], environment: Environment) -> bool:
    """Return whether a key with these patterns accepts a normalized origin: without patterns none, but for a
    development key, which accepts loopback hosts on any port besides.
    """
    if environment == "development" and is_loopback(origin):
        return True
    return any(_matches(origin, pattern) for pattern in patterns)


def _matches(origin: str, pattern: str) -> bool:
    scheme, _, host = pattern.partition("://")
    if not host.startswith("*."):
        return origin == pattern
    return origin.startswith(f"{scheme}://") and origin.endswith(host[1:]) and len(origin) > len(pattern) - 1


def is_loopback(origin: str) -> bool:
    """Return whether a normalized origin is `localhost`, `127.0.0.1` or `[::1]`, on any port."""
    match = _FORM.fullmatch(origin)
    return match is not None and match[1] in ("http", "https") and match[2] in _LOOPBACK_HOSTS


@lru_cache(1_024)  # the same few pages send all requests
def _normalize(text: str, *, wildcard: bool) -> str | None:
    if len(text) > MAX_LENGTH:
        return None
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    scheme, host, port = match[1].lower(), match[2], match[3]
    stem = ""
    if wildcard and host.startswith("*."):
        stem, host = "*.", host[2:]
    encoded = _normalize_host(host, is_dns=bool(stem) or scheme in _DNS_SCHEMES)
    if scheme in _NO_ORIGINS or encoded is None or (stem and "." not in encoded):
        return None
    if port is not None and not 0 < int(port) < 65536:
        return None
    suffix = "" if port is None or int(port) == _DEFAULT_PORTS.get(scheme) else f":{int(port)}"
    return f"{scheme}://{stem}{encoded}{suffix}"


def _normalize_host(host: str, *, is_dns: bool) -> str | None:
    if host.startswith("["):
        try:
            return f"[{IPv6Address(host[1:-1]).compressed}]"
        except ValueError:
            return None
    lowered = host.lower()
    if not lowered.isascii():
        try:
            lowered = idna.encode(lowered, uts46=True).decode()
        except idna.IDNAError:
            return None
    if len(lowered) > 253:
        return None
    is_valid = all(map(_LABEL.fullmatch, lowered.split("."))) if is_dns else _REGISTERED_NAME.fullmatch(lowered)
    return lowered if is_valid else None
