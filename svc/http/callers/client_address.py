"""The address that a request came from, behind proxies (decisions 2.10)."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network

from svc.kernel.net.addresses import parse_ip, read_address


def client_address(peer: str, forwarded_for: str | None, trusted: Sequence[IPv4Network | IPv6Network]) -> str:
    """Return the address that a request came from (decisions 2.10): the peer's, unless the peer is a trusted proxy.

    Then the right-most address of `X-Forwarded-For` that is not itself trusted. Entries to the left of one that is not
    an address are not believed: then the nearest address that is known is returned. Empty elements are ignored (RFC
    9110, 5.6.1.2).
    """
    nearest = parse_ip(peer) or peer
    if not trusted or forwarded_for is None or not is_trusted(nearest, trusted):
        return nearest
    for entry in filter(None, map(str.strip, reversed(forwarded_for.split(",")))):
        address = parse_ip(_without_port(entry))
        if address is None:
            return nearest
        nearest = address
        if not is_trusted(address, trusted):
            return address
    return nearest


def is_trusted(text: str, trusted: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Return whether the address in `text` lies in one of the networks; `False` for text that is not an address."""
    address = read_address(text)
    return address is not None and any(address in network for network in trusted)


def _without_port(entry: str) -> str:
    """Remove the port that some proxies write: `192.0.2.1:4711` or `[2001:db8::1]:4711`."""
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        return host if not rest or (rest[0] == ":" and rest[1:].isdecimal()) else entry
    host, colon, port = entry.rpartition(":")
    return host if colon and ":" not in host and port.isdecimal() else entry
