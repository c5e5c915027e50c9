"""IP addresses as text and as numbers: one spelling, and which of them are public.

What may live here: rules about addresses that need no data but the metadata addresses of clouds. `ipaddress.is_global`
is not used: it calls NAT64, 6to4, IPv4-compatible and multicast forms global, all of which lead to somewhere else than
they seem to.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address

_BIND = re.compile(r"(\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<host>[^:\[\]]*)):(?P<port>[0-9]{1,5})")
LONGEST_LITERAL = 45
"""Characters of an IPv6 address that ends in a dotted IPv4 one."""

MAPPED_BITS = 96
"""Of `::ffff:0:0/96`, below which the IPv4-mapped addresses are."""

_SPECIAL_V4 = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
    "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
)  # fmt: skip
"""IANA's special-purpose registry (RFC 6890), 6to4 relays, and the one address that Azure answers on."""
_GLOBAL_V6 = IPv6Network("2000::/3")
_SPECIAL_V6 = ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
"""Teredo and protocol assignments, documentation, 6to4, AS112, documentation again."""


def parse_ip(text: str) -> str | None:
    """Return one IPv4 or IPv6 literal in its canonical spelling; `None` for anything else, zone ids included."""
    return _spell(text) if len(text) <= LONGEST_LITERAL else None


def read_address(text: str) -> Address | None:
    """Return the address in the text, `None` for any other; an IPv4-mapped one becomes the IPv4 address."""
    return _read(text) if len(text) <= LONGEST_LITERAL else None


@lru_cache(maxsize=4096)
def _read(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return None
        return address.ipv4_mapped or address
    return address


@lru_cache(maxsize=4096)
def _spell(text: str) -> str | None:
    address = _read(text)
    return None if address is None else str(address)


def is_within(text: str, network: str) -> bool:
    """Return whether `text` is an address in a network or address. Raises `ValueError` for what is no network."""
    address = read_address(text)
    return address is not None and address in _network(network)


_network = lru_cache(maxsize=64)(ip_network)


def unmapped(network: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
    """Return a network of IPv4-mapped addresses as the IPv4 network, as they are read; any other as it is."""
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is None:
        return network
    return IPv4Network((int(mapped), network.prefixlen - MAPPED_BITS))


def is_public(address: Address) -> bool:
    """Return whether a host on the internet can have it: it is not private, reserved, multicast or translated."""
    number = int(address)
    if isinstance(address, IPv4Address):
        return not _covers(_V4, number)
    return address in _GLOBAL_V6 and not _covers(_V6, number)


def read_bind(text: str) -> tuple[str | None, int]:
    """Return (host, port) of `HOST:PORT` or `[IPV6]:PORT`; no host = every address. Raises `ValueError`."""
    parts = _BIND.fullmatch(text)
    if parts is None or int(parts["port"]) > 65_535:
        raise ValueError(f"{text!r} is not host:port. Write for example '127.0.0.1:8080', '[::1]:8080' or ':8080'.")
    return parts["ipv6"] or parts["host"] or None, int(parts["port"])


_Spans = tuple[list[int], list[int]]


def _spans(networks: Sequence[str]) -> _Spans:
    """Return starts and ends of networks that do not overlap, ascending."""
    ordered = sorted((ip_network(network) for network in networks), key=lambda network: int(network.network_address))
    return [int(network.network_address) for network in ordered], [int(network[-1]) for network in ordered]


def _covers(spans: _Spans, number: int) -> bool:
    starts, ends = spans
    index = bisect_right(starts, number) - 1
    return index >= 0 and number <= ends[index]


_V4 = _spans(_SPECIAL_V4)
_V6 = _spans(_SPECIAL_V6)


METADATA = {
    "169.254.169.254": "AWS, Google Cloud, Azure and others",
    "169.254.170.2": "AWS ECS",
    "169.254.170.23": "AWS EKS",
    "169.254.0.23": "Tencent Cloud",
    "169.254.42.42": "Scaleway",
    "168.63.129.16": "Azure",
    "100.100.100.200": "Alibaba Cloud",
    "192.0.0.192": "Oracle Cloud",
    "fd00:ec2::254": "AWS",
    "fd00:ec2::23": "AWS EKS",
    "fd20:ce::254": "Google Cloud",
    "fd00:42::42": "Scaleway",
    "fd00:c1::a9fe:a9fe": "Oracle Cloud",
}
"""Addresses on which a machine's provider hands out the machine's credentials, and whose. Never dialed."""


_EMBEDDING = ("::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::")
"""Prefixes, 96 bits long, behind which a translator finds an IPv4 address (RFC 4291, 6145, 6052, 8215)."""


def _spellings(address: Address) -> list[Address]:
    if isinstance(address, IPv6Address):
        return [address]
    number = int(address)
    embedded = [IPv6Address(int(IPv6Address(prefix)) | number) for prefix in _EMBEDDING]
    six_to_four = IPv6Address(0x2002 << 112 | number << 80)
    return [address, *embedded, six_to_four]


METADATA_ADDRESSES = {
    spelling: whose
    for text, whose in METADATA.items()
    for spelling in _spellings(IPv6Address(text) if ":" in text else IPv4Address(text))
}


def metadata_opened(networks: Networks) -> str | None:
    """Return the first metadata address, in any spelling, that is in these networks, and its owner; else `None`."""
    for address, whose in METADATA_ADDRESSES.items():
        if any(address in network for network in networks):
            return f"{address} ({whose})"
    return None


Networks = Sequence[IPv4Network | IPv6Network]
