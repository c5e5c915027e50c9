"""Network facts: what is known of the address that a request came from (signals.md 3).

What may live here: the meaning of what a look-up finds. The look-up itself is passed in, so that this stays pure.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from svc.domain.addresses import Address, is_public, read_address
from svc.domain.model import Network

RELAYS = frozenset({"Apple Private Relay"})
"""Providers whose exits are privacy relays: they hide the person and keep the region."""


class Range(NamedTuple):
    """The range that holds an address."""

    kind: str
    """`tor`, `vpn`, `hosting`, `cdn` or `bot`."""
    provider: str


class Ranges(Protocol):
    """A look-up of address ranges; a few microseconds, never a network call."""

    def find(self, address: Address, /) -> Range | None: ...


def read_network(ip: str, ranges: Ranges | None) -> Network:
    """What is known of an address, or why nothing can be (decisions 3.4). Never raises."""
    if ranges is None:
        return _NO_DATA
    address = read_address(ip)
    if address is None or not is_public(address):
        return _PRIVATE
    try:
        found = ranges.find(address)
    except (ValueError, OSError, LookupError):
        return _FAILED
    return _ORDINARY if found is None else _meaning(found)


def _meaning(found: Range) -> Network:
    """A content network's address is a machine in a data centre as much as a hosting company's is."""
    match found.kind:
        case "tor":
            return _TOR
        case "vpn":
            return _RELAY if found.provider in RELAYS else _VPN
        case "hosting" | "cdn":
            return Network(state="enriched", hosting=True, asn_name=found.provider)
        case "bot":
            return Network(state="enriched", crawler_of=found.provider, asn_name=found.provider)
        case _:
            return _ORDINARY


_NO_DATA = Network(state="unavailable", reason="no_network_data")
_PRIVATE = Network(state="unavailable", reason="private_address")
_FAILED = Network(state="unavailable", reason="lookup_failed")
_ORDINARY = Network(state="enriched")
_TOR = Network(state="enriched", tor=True)
_VPN = Network(state="enriched", vpn=True)
_RELAY = Network(state="enriched", relay=True)
