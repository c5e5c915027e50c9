"""Lists of an organization: what an entry may be, in its one spelling, and what is kept of a list (decisions 12).

What may live here: kinds, values, records and limits of lists. Rules ask whether a value of an event is in a list; the
store has the entries.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from hashlib import sha256
from ipaddress import IPv6Address, ip_network
from typing import Final, Literal, get_args

import msgspec

from svc.identify.velocity.counts import ACCOUNT_ID
from svc.kernel.net.addresses import LONGEST_LITERAL, parse_ip, read_address, unmapped
from svc.kernel.net.origins import normalize_origin
from svc.kernel.values.encodings import base62
from svc.kernel.values.ids import is_visitor_id

ListKind = Literal["visitor", "account", "address", "country", "asn", "origin", "tag"]
LIST_KINDS: tuple[ListKind, ...] = get_args(ListKind)

FIRST_LISTS: Final[dict[str, ListKind]] = {
    "blocked_visitors": "visitor",
    "blocked_accounts": "account",
    "blocked_addresses": "address",
    "trusted_visitors": "visitor",
    "trusted_accounts": "account",
    "trusted_addresses": "address",
}
"""Name -> kind of the lists that every organization has (decisions 12.2)."""

MAX_LISTS = 100
"""Of an organization, the six included."""
MAX_ENTRIES = 100_000
"""Living ones of an organization, in all its lists."""
MAX_AT_ONCE = 1_000
"""Entries or values of one request."""
MOST_ASKED = 16
"""Sets of names that are remembered for the lists of an organization: two rulesets, and those that are tried."""
LONGEST_NOTE = 500
LONGEST_TAG = 1024

NAME_FORM: Final = r"^[a-z][a-z0-9_]{0,47}$(?!\n)"
_NAME = re.compile(NAME_FORM)
_COUNTRY = re.compile(r"[A-Za-z]{2}")
_ASN = re.compile(r"(?:[Aa][Ss])?([0-9]{1,20})")
_LAST_ASN = (1 << 32) - 1

Prefix = tuple[int, int]
"""Version and length of a network; an address is a network of all its bits."""


def is_list_name(text: str) -> bool:
    """Return whether a list may have this name (decisions 12.1)."""
    return _NAME.fullmatch(text) is not None


@lru_cache(maxsize=1024)
def first_list_id(number: int, name: str) -> str:
    """Return the id of one of `FIRST_LISTS` of the organization with this number: it follows from both, so that the
    list needs no row before it is used.
    """
    return "lst_" + base62(int.from_bytes(sha256(f"svc list {number} {name}".encode()).digest()), 20)


def canonical(kind: ListKind, text: str) -> str | None:
    """Return the one spelling of a value of such a list; `None` for text that is no such value (decisions 12.1)."""
    return _SPELLINGS[kind](text)


def searched(kind: ListKind, text: str) -> str:
    """Return the beginning of a value as it may be typed, in the spelling of entries as far as a beginning has one."""
    match kind:
        case "country":
            return text.upper()
        case "asn":
            return text[2:] if text[:2].upper() == "AS" else text
        case "address" | "origin":
            return text.lower()
        case _:
            return text


def _asn(text: str) -> str | None:
    found = _ASN.fullmatch(text)
    number = 0 if found is None else int(found[1])
    return str(number) if 0 < number <= _LAST_ASN else None


def _address(text: str) -> str | None:
    """Return an address, or a network without host bits, in canonical form. A network of IPv4-mapped addresses becomes
    an IPv4 network, as such addresses become IPv4 addresses.
    """
    if "/" not in text:
        return parse_ip(text)
    written, _, length = text.partition("/")
    if len(written) > LONGEST_LITERAL or "%" in written or not (length.isascii() and length.isdecimal()):
        return None
    try:
        network = unmapped(ip_network(text, strict=False))
    except ValueError:
        return None
    return str(network.network_address if network.prefixlen == network.max_prefixlen else network)


_SPELLINGS: dict[ListKind, Callable[[str], str | None]] = {
    "visitor": lambda text: text if is_visitor_id(text) else None,
    "account": lambda text: text if ACCOUNT_ID.fullmatch(text) else None,
    "address": _address,
    "country": lambda text: text.upper() if _COUNTRY.fullmatch(text) else None,
    "asn": _asn,
    "origin": lru_cache(maxsize=256)(normalize_origin),
    "tag": lambda text: text if 0 < len(text) <= LONGEST_TAG else None,
}


def prefix_of(value: str) -> Prefix:
    """Return the IP version and prefix length of an entry of a list of addresses."""
    network = ip_network(value)
    return network.version, network.prefixlen


def covering(address: str, prefixes: Iterable[Prefix]) -> Iterator[str]:
    """Yield the entry of each of these lengths that would include the address; none for text that is no address."""
    found = read_address(address)
    if found is None:
        return
    for version, length in prefixes:
        if version == found.version:
            hidden = found.max_prefixlen - length
            start = int(found) >> hidden << hidden
            spelled = ".".join(map(str, start.to_bytes(4))) if version == 4 else str(IPv6Address(start))
            yield f"{spelled}/{length}" if hidden else spelled


_CUT_BYTES = 320
"""Of a value in a key: LMDB's keys have 511 bytes at most."""


def entry_key(value: str) -> str:
    """Return what stands for a value in the keys of entries: the value itself or, if it is long, its beginning and a
    digest of the whole. Keys are unique, and sort by the first 320 bytes of the values.
    """
    if len(value.encode()) <= _CUT_BYTES:
        return value
    return f"{key_prefix(value)}\n{sha256(value.encode()).hexdigest()[:32]}"


def key_prefix(beginning: str) -> str:
    """Return a prefix of the keys of all values with this beginning; keys of other long values may have it too."""
    return beginning.encode()[:_CUT_BYTES].decode(errors="ignore")


class StoredList(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A list of an organization. Append fields with defaults, never move them."""

    id: str
    name: str
    """As in its key."""
    kind: ListKind
    created_at_ms: int | None
    """`None` = with its organization."""
    updated_at_ms: int | None
    """When its name or its entries were changed last; `None` = never."""
    entries: int = 0
    """Those that are stored; some of them may have expired."""
    prefixes: tuple[tuple[int, int, int], ...] = ()
    """Version, length and number of entries of the addresses and networks in it; of lists of other kinds empty."""

    @property
    def is_permanent(self) -> bool:
        """Return whether it is one of `FIRST_LISTS`, which can neither be deleted nor renamed."""
        return self.name in FIRST_LISTS

    def counting(self, *, added: Iterable[str] = (), removed: Iterable[str] = ()) -> StoredList:
        """Return the record after entries with these values were added and removed."""
        new, gone = list(added), list(removed)
        entries = self.entries + len(new) - len(gone)
        if self.kind != "address":
            return msgspec.structs.replace(self, entries=entries)
        counts = Counter({(version, length): count for version, length, count in self.prefixes})
        counts.update(map(prefix_of, new))
        counts.subtract(map(prefix_of, gone))
        prefixes = tuple((*prefix, count) for prefix, count in sorted(counts.items()) if count)
        return msgspec.structs.replace(self, entries=entries, prefixes=prefixes)


def first_list(number: int, name: str) -> StoredList:
    """Return one of `FIRST_LISTS` of an organization that has never used it. Raises `KeyError` for another name."""
    return StoredList(
        id=first_list_id(number, name), name=name, kind=FIRST_LISTS[name], created_at_ms=None, updated_at_ms=None
    )


class FilledList(msgspec.Struct, frozen=True, array_like=True):
    """What rules need of a list that has entries. Append fields with defaults, never move them."""

    name: str
    raw_id: bytes
    """Its id as it is stored in keys."""
    kind: ListKind
    prefixes: tuple[Prefix, ...] = ()
    """Those of the addresses and networks in it, each once; of lists of other kinds none."""


class FilledLists(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """The lists of an organization that have entries, expired ones included, in the order of their names."""

    lists: tuple[FilledList, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the lists."""
        return tuple(found.name for found in self.lists)

    @cached_property
    def by_name(self) -> dict[str, FilledList]:
        """Return each list under its name."""
        return {found.name: found for found in self.lists}

    def asked(self, names: frozenset[str]) -> dict[ListKind | Prefix, frozenset[bytes]]:
        """Return the ids of the lists of these names by their kind, those of addresses by each of their prefixes."""
        found = self._asked.get(names)
        if found is None:
            ids = defaultdict[ListKind | Prefix, set[bytes]](set)
            for each in (each for each in self.lists if each.name in names):
                for asked in each.prefixes if each.kind == "address" else (each.kind,):
                    ids[asked].add(each.raw_id)
            if len(self._asked) >= MOST_ASKED:
                self._asked.clear()
            found = self._asked[names] = {asked: frozenset(some) for asked, some in ids.items()}
        return found

    @cached_property
    def _asked(self) -> dict[frozenset[str], dict[ListKind | Prefix, frozenset[bytes]]]:
        """By names: those that the rulesets of an organization ask."""
        return {}


class Listing(msgspec.Struct, frozen=True, array_like=True):
    """That a list has a value. Append fields with defaults, never move them."""

    raw_list: bytes
    """The list's id as it is stored in keys."""
    expires_at_ms: int | None
    """As of its entry."""

    def is_living(self, now_ms: int) -> bool:
        """Return whether the entry has not expired."""
        return self.expires_at_ms is None or now_ms < self.expires_at_ms


class Listed(msgspec.Struct, frozen=True, array_like=True):
    """Which lists have a value, also those of other kinds that have the same text."""

    listings: tuple[Listing, ...]

    def without(self, raw_list: bytes) -> tuple[Listing, ...]:
        """Return the listings in other lists."""
        return tuple(each for each in self.listings if each.raw_list != raw_list)


class ListEntry(msgspec.Struct, frozen=True, array_like=True):
    """One entry of a list. Append fields with defaults, never move them."""

    value: str
    """As of `canonical`."""
    note: str
    expires_at_ms: int | None
    """From when on it is none any more; `None` = never."""
    created_at_ms: int
    created_by: str | None = None
    """The id of the member who added it; `None` = a management key or the command line did."""

    def is_living(self, now_ms: int) -> bool:
        """Return whether it has not expired."""
        return self.expires_at_ms is None or now_ms < self.expires_at_ms
