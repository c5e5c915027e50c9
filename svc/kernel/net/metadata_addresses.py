"""Addresses on which a machine's provider hands out its credentials: nothing is ever sent there."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from svc.kernel.net.addresses import Address

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
    """Return the first metadata address, in any spelling, that these networks would open, and its owner; `None` if
    there is none.
    """
    for address, whose in METADATA_ADDRESSES.items():
        if any(address in network for network in networks):
            return f"{address} ({whose})"
    return None


Networks = Sequence[IPv4Network | IPv6Network]
