"""Where a webhook may go: the form of a target URL, and which addresses may be dialed (decisions 8.7).

What may live here: rules about targets. The table of special networks is that of `svc.kernel.net.addresses`; what
an operator may open beside it, and what nobody may, is said here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import quote

from svc.kernel.net.addresses import METADATA_ADDRESSES, Address, Networks, is_public, read_address
from svc.kernel.net.origins import normalize_origin

MAX_URL_LENGTH = 2048
"""Characters of a target URL."""


ALWAYS_PORT = 443
FIRST_FREE_PORT = 1024
"""Ports below it belong to other services, which a webhook must not be able to probe."""


class TargetPolicy(NamedTuple):
    """The targets that webhooks may have besides public addresses and the usual ports (decisions 8.7)."""

    networks: Networks = ()
    """Opened by the operator."""
    ports: frozenset[int] = frozenset()
    """Opened by the operator, beside 443 and those above 1023."""
    is_own: Callable[[Address], bool] = lambda _: False
    """Whether an address is one of this machine's: not public, whatever range it is in."""


class Target(NamedTuple):
    """The parts of a target URL that a request needs."""

    host: str
    """ASCII, lower case, without brackets: what is looked up, and what the certificate must name."""
    port: int
    authority: str
    """For the `Host` header: IPv6 in brackets, the port unless it is 443."""
    path: str
    """Path and query, ASCII, never empty."""


_FORM = re.compile(r"(https://[^/?#]+)([/?][^#]*)?", re.IGNORECASE)


def read_target(url: str) -> Target | None:
    """Parse an `https` URL without user info and fragment, of at most 2,048 characters; return `None` for anything
    else. Unusual spellings of an address (`2130706433`, `0x7f.1`) are treated as names here: they are judged by what
    they resolve to.
    """
    if len(url) > MAX_URL_LENGTH or any(character <= " " or character == "\x7f" for character in url):
        return None
    match = _FORM.fullmatch(url)
    origin = match and normalize_origin(match[1])
    if match is None or origin is None:
        return None
    authority = origin.removeprefix("https://")
    path = match[2] or "/"
    if path.startswith("?"):
        path = "/" + path
    try:
        path = quote(path, safe="!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
    except UnicodeEncodeError:  # a lone surrogate
        return None
    if authority.startswith("["):
        host, _, port = authority[1:].partition("]")
    else:
        host, _, port = authority.partition(":")
    return Target(host, int(port.removeprefix(":") or 443), authority, path)


def may_use(port: int, policy: TargetPolicy) -> bool:
    """Return whether this port may be used: 443, any above 1023, and those that the operator allows (decisions 8.7)."""
    return port == ALWAYS_PORT or port >= FIRST_FREE_PORT or port in policy.ports


def addresses_to_dial(answers: Iterable[str], policy: TargetPolicy) -> tuple[Address, ...] | None:
    """Return the addresses to dial, in the order of the DNS answers; `None` if any of them must not be dialed, since a
    name that also resolves to an internal address is a mistake or an attack.
    """
    addresses: list[Address] = []
    for answer in answers:
        address = read_address(answer)  # a scoped address (`fe80::1%eth0`) is none
        if address is None or not may_dial(address, policy):
            return None
        addresses.append(address)
    return tuple(addresses)


def may_dial(address: Address, policy: TargetPolicy) -> bool:
    """Return whether webhooks may be sent to this address: a public one of another machine, or one in a network that
    the operator opened, but never a metadata service (decisions 8.7).
    """
    if is_public(address) and not policy.is_own(address):
        return True
    return address not in METADATA_ADDRESSES and any(address in network for network in policy.networks)
