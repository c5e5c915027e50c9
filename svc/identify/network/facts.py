"""Network facts: what is known of the address that a request came from (docs: network-accuracy.md).

What may live here: the meaning of what a look-up finds, also of a network's name. The look-up itself is passed in, so
that this stays pure.

Names come from `svc/identify/data/networks.toml`. A network that also serves homes must not be there: one wrong name
flags a whole country's people, and one missing name only a company's machines. Transit networks are left out for the
same reason: whole offices go online through Cogent, GTT, Lumen or Zayo.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

import msgspec

from svc.identify.data import read_tables
from svc.identify.model import Network
from svc.kernel.net.addresses import Address, is_public, read_address

RELAYS = frozenset({"Apple Private Relay"})
"""Providers whose exits are privacy relays: they hide the person and keep the region."""

STANDS_THERE = frozenset({"tor", "vpn", "relay", "hosting", "cdn", "bot"})
"""Kinds of ranges that tell what stands at an address, and so tell more than the name of the network around it."""


NO_VPN_NEIGHBOR = frozenset({"tor", "relay", "bot"})
"""Kinds of ranges beside which an address is not a VPN's for its neighbors alone."""


class Range(NamedTuple):
    """One range of addresses, as one source names it."""

    kind: str
    """`tor`, `vpn`, `relay`, `proxy`, `hosting`, `cdn`, `bot`, `residential_proxy`, `attack` or `spam`; `vpn_neighbor`
    for an address between listed VPN servers.
    """
    provider: str
    source: str = ""
    """The file, for people who ask why."""


class Country(NamedTuple):
    """Where an address is, as one source says."""

    code: str
    """ISO 3166-1 alpha-2, upper case."""
    name: str | None
    source: str


class AutonomousSystem(NamedTuple):
    """The network (AS) that announces an address to the internet, as one source says."""

    number: int
    name: str | None
    source: str
    listed: tuple[Range, ...] = ()
    """What lists of AS numbers say of it."""


class Known(NamedTuple):
    """What all sources together say of one address."""

    ranges: tuple[Range, ...] = ()
    country: Country | None = None
    system: AutonomousSystem | None = None


class Ranges(Protocol):
    """A look-up of addresses; a few microseconds, never a network call. `None` where no source knows anything."""

    def find(self, address: Address, /) -> Known | None:
        """Return what the sources say of this address, or `None`. Raises `ValueError`, `OSError`, `LookupError`."""
        ...

    def publishes(self, operator: str, /) -> bool:
        """Return whether a source has the addresses of this operator's crawlers: others are spoofed."""
        ...


def read_network(ip: str, ranges: Ranges | None) -> Network:
    """Return the facts of an address, or `unavailable` with the reason (decisions 3.4). Never raises."""
    if ranges is None:
        return _NO_DATA
    address = read_address(ip)
    if address is None or not is_public(address):
        return _PRIVATE
    try:
        known = ranges.find(address)
    except (ValueError, OSError, LookupError):
        return _FAILED
    return _ORDINARY if known is None else _meaning(known)


def all_ranges(known: Known) -> tuple[Range, ...]:
    """Return the ranges found, and those that follow from them and from the network: addresses between listed VPN
    servers are a VPN's unless a range says otherwise, and the network's kind counts if there is no range.
    """
    stands_there = neighbor = False
    for found in known.ranges:
        stands_there = stands_there or found.kind in STANDS_THERE
        neighbor = neighbor or found.kind == "vpn_neighbor"
    ranges = _resolved(known.ranges) if neighbor else known.ranges
    system = known.system
    if system is None or stands_there:
        return ranges
    kind = None if system.name is None else kind_of_network(system.name)
    if kind is not None:
        return (*ranges, Range(kind, system.name or "", f"name of AS{system.number} in {system.source}"))
    return (*ranges, *_believed(system)) if system.listed else ranges


def _resolved(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """Replace `vpn_neighbor` by `vpn`, or drop it if the address is known to be something else."""
    something_else = any(found.kind in NO_VPN_NEIGHBOR for found in ranges)
    kept = (found for found in ranges if not (something_else and found.kind == "vpn_neighbor"))
    return tuple(found._replace(kind="vpn") if found.kind == "vpn_neighbor" else found for found in kept)


def _believed(system: AutonomousSystem) -> tuple[Range, ...]:
    """Return what lists of AS numbers say of a network; nothing if its name is an access provider's. Such lists are
    made against abuse, and name access networks, too.
    """
    return () if system.name is not None and connects_people(system.name) else system.listed


def _meaning(known: Known) -> Network:
    """Derive the network facts. A CDN's address counts as hosting: it is a machine in a data center, too."""
    ranges = all_ranges(known)
    kinds = {"relay" if found.kind == "vpn" and found.provider in RELAYS else found.kind for found in ranges}
    country, system = known.country, known.system
    return Network(
        state="enriched",
        country_code=None if country is None else country.code,
        country_name=None if country is None else country.name,
        asn=None if system is None else str(system.number),
        asn_name=(system.name if system is not None else None) or _provider(ranges, "hosting", "cdn", "bot"),
        tor="tor" in kinds,
        vpn="vpn" in kinds,
        relay="relay" in kinds,
        proxy="proxy" in kinds,
        hosting="hosting" in kinds or "cdn" in kinds,
        crawlers_of=tuple(found.provider for found in ranges if found.kind == "bot" and found.provider),
        residential_proxy="residential_proxy" in kinds,
        attack_source="attack" in kinds,
        spam_source="spam" in kinds,
    )


def _provider(ranges: tuple[Range, ...], *kinds: str) -> str | None:
    """Return the operator of the first range of these kinds that names one; lists do not."""
    return next((found.provider for found in ranges if found.kind in kinds and found.provider), None)


_NO_DATA = Network(state="unavailable", reason="no_network_data")
_PRIVATE = Network(state="unavailable", reason="private_address")
_FAILED = Network(state="unavailable", reason="lookup_failed")
_ORDINARY = Network(state="enriched")


CACHED_NAMES = 8_192
"""Distinct names kept: the visitors of a site come from few thousand networks."""

LONGEST_NAME = 200
"""Characters looked at."""


@lru_cache(maxsize=CACHED_NAMES)
def kind_of_network(name: str) -> Literal["hosting", "vpn"] | None:
    """Return the kind of addresses that the name of a network (AS) indicates; `None` unless the name is unambiguous."""
    words = _words(name)
    if _VPN.search(words) is not None:
        return "vpn"
    if _HOSTING_COMPANY.search(words) is not None:
        return "hosting"
    return "hosting" if _HOSTING_WORD.search(words) is not None and _ACCESS_WORD.search(words) is None else None


@lru_cache(maxsize=CACHED_NAMES)
def connects_people(name: str) -> bool:
    """Return whether the name of a network (AS) is one of access: a telephone company, a school, a hotel."""
    return _ACCESS_WORD.search(_words(name)) is not None


def _words(name: str) -> str:
    return " ".join(_WORD.findall(name[:LONGEST_NAME].lower()))


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `networks.toml`."""

    vpn_services: list[str]
    hosting_companies: list[str]


def _whole_words(names: list[str]) -> str:
    return rf"\b(?:{'|'.join(sorted(names, key=len, reverse=True))})\b"


_TABLES = read_tables("networks", _Tables)
_WORD = re.compile(r"[^\W_]+")
_VPN = re.compile(rf"{_whole_words(_TABLES.vpn_services)}|\bvpn\b")
_HOSTING_COMPANY = re.compile(_whole_words(_TABLES.hosting_companies))
_HOSTING_WORD = re.compile(
    r"(?<!ec)host(?!a?els?\b)|\bserver|servers\b|(?<!\bst )cloud|\bdata ?cent|\bidc\b"
    r"|\bvps|vps\b|\bvds\b|\bcolo\b|colocation|\bcdn|\bdedi(?:cated)?\b|\bhebergement\b|\bhospedagem\b|\bseedbox"
)
"""Words that hosting companies put into their names."""
_ACCESS_WORD = re.compile(
    r"tele[ck]om|\btel\b|telefon|communication|broad ?band|\bcable|wireless|wi ?fi|mobile|cellular|fib(?:er|re|ra)"
    r"|\bisps?\b|\bwisp|internet (?:service )?provider|internet services?\b|universit|school|college|hospital|hotel"
    r"|\bbank\b|ministry|government|\bnetcom\b|\bgpon\b|\bftth\b|\bdsl\b|\bonline\b|afrihost"
)
"""Words of those who connect people: beside one of these, a word of hosting is one service of many."""
