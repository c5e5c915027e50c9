"""Files of networks, and the look-up in them: plain lists, one address or network (CIDR) a line, and MaxMind databases.

What may live here: the reading of such a file and the look-up in it. Sets are immutable: sorted disjoint ranges in
arrays of numbers, 8 bytes a range for IPv4 and 32 for IPv6, searched by bisection in about a microsecond. Lists of
networks by their AS number are read here, too.
"""

from __future__ import annotations

import re
import struct
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from io import BytesIO
from ipaddress import IPv4Address
from itertools import islice
from socket import AF_INET, AF_INET6, inet_pton
from typing import Any, Protocol, cast

import maxminddb

from svc.identify.data import read_tables
from svc.identify.network.facts import AutonomousSystem, Country
from svc.identify.network_data import NetworkFileError
from svc.kernel.net.addresses import Address

MAX_RANGES = 8_000_000
"""Lines with an address that one list may have: about 1 GB while it is read, 64 MB when it is (IPv4)."""

SHORTEST_PREFIX = {32: 8, 128: 16}
"""By bits of an address. No list means more: such a line is a slip that would flag a good part of the internet."""

MAX_AS_NUMBERS = 200_000
"""More than there are in use."""

_IPV6_BYTES = 16
_MAPPED = 0xFFFF
"""The first 96 bits of the IPv4-mapped addresses, `::ffff:0:0/96`."""
_AS_NUMBER = re.compile(r'"?(?:AS)?([0-9]{1,10})"?(?:[\s,].*)?', re.ASCII | re.IGNORECASE)


class AddressSet:
    """The addresses of one list; `address in addresses` takes about a microsecond."""

    __slots__ = ("_ends4", "_ends6", "_starts4", "_starts6")

    def __init__(self, ranges4: Iterable[int], ranges6: Iterable[int]) -> None:
        """Take each range as one number: the bits of its first address, followed by those of its last."""
        self._starts4, self._ends4 = array("I"), array("I")
        for start, end in _disjoint(ranges4, 32):
            self._starts4.append(start)
            self._ends4.append(end)
        starts6, ends6 = bytearray(), bytearray()
        for start, end in _disjoint(ranges6, 128):
            starts6 += start.to_bytes(_IPV6_BYTES)
            ends6 += end.to_bytes(_IPV6_BYTES)
        self._starts6, self._ends6 = bytes(starts6), bytes(ends6)

    def __len__(self) -> int:
        """Return the number of disjoint ranges."""
        return len(self._starts4) + len(self._starts6) // _IPV6_BYTES

    def __contains__(self, address: Address) -> bool:
        if address.version == 4:
            number = int(address)
            index = bisect_right(self._starts4, number) - 1
            return index >= 0 and number <= self._ends4[index]
        packed = address.packed  # bytes of one length sort as the numbers they spell
        count = len(self._starts6) // _IPV6_BYTES
        index = bisect_right(range(count), packed, key=self._start6) - 1
        return index >= 0 and packed <= self._ends6[index * _IPV6_BYTES : (index + 1) * _IPV6_BYTES]

    @property
    def addresses4(self) -> int:
        """How many IPv4 addresses it holds."""
        return sum(self._ends4) - sum(self._starts4) + len(self._starts4)

    def _start6(self, index: int) -> bytes:
        return self._starts6[index * _IPV6_BYTES : (index + 1) * _IPV6_BYTES]


def read_list(content: bytes) -> AddressSet:
    """Return the addresses of a list; `#` and `;` begin a comment. Raises `NetworkFileError` at the first line that
    is not an address.

    A network may have bits set behind its prefix, as published lists do: it is the network that the address is in.
    """
    return AddressSet(*_ranges(content))


def read_servers(content: bytes) -> tuple[AddressSet, array[int]]:
    """Return the addresses of a list, and those of them that it names one by one: IPv4 as sorted distinct numbers.
    Raises `NetworkFileError` as `read_list` does.
    """
    ranges4, ranges6 = _ranges(content)
    single = {both & 0xFFFFFFFF for both in ranges4 if both >> 32 == both & 0xFFFFFFFF}
    return AddressSet(ranges4, ranges6), array("I", sorted(single))


def crowded_networks(servers: Iterable[Iterable[int]], at_least: int) -> frozenset[int]:
    """Return the first 24 bits of the /24 networks with `at_least` different addresses in all lists together."""
    counts = Counter(address >> 8 for address in set[int]().union(*servers))
    return frozenset(network for network, count in counts.items() if count >= at_least)


def read_as_numbers(content: bytes) -> frozenset[int]:
    """Return the AS numbers in a list: one on each line, as `AS64496` or `64496`. Text after a comma, a space, `#` or
    `;` is a comment. The first line may be a CSV header. Raises `NetworkFileError`.
    """
    numbers = set[int]()
    for line, entry in _entries(content):
        found = _AS_NUMBER.fullmatch(entry)
        number = int(found[1]) if found else 0
        if not 0 < number < 1 << 32:
            if not numbers and line == 1 and entry.upper().startswith("ASN"):
                continue
            raise NetworkFileError(f"{_shortened(entry)!r} is not an AS number; put one a line, such as AS64496", line)
        numbers.add(number)
        if len(numbers) > MAX_AS_NUMBERS:
            raise NetworkFileError(f"has more than {MAX_AS_NUMBERS:,} AS numbers, more than there are", line)
    if not numbers:
        raise NetworkFileError("holds no AS number; if that is meant, remove the file")
    return frozenset(numbers)


def _entries(content: bytes) -> Iterable[tuple[int, str]]:
    """Yield (line from 1, text without comment) of each line that has any. Raises `NetworkFileError`."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NetworkFileError("is not text; a list has one entry a line", line) from error
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.split("#", 1)[0].split(";", 1)[0].strip()
        if entry:
            yield number, entry


def _ranges(content: bytes) -> tuple[array[int], list[int]]:
    """Return the ranges of IPv4 and of IPv6, each as `_range` writes them. Raises `NetworkFileError`."""
    ranges4, ranges6 = array("Q"), list[int]()
    for number, entry in _entries(content):
        try:
            if ":" not in entry:
                ranges4.append(_range(entry, AF_INET, 32))
            elif (mapped := _mapped(found := _range(entry, AF_INET6, 128))) is None:
                ranges6.append(found)
            else:
                ranges4.append(mapped)
        except (OSError, ValueError) as error:
            raise NetworkFileError(_complaint(entry), number) from error
        if len(ranges4) + len(ranges6) > MAX_RANGES:
            raise NetworkFileError(
                f"has more than {MAX_RANGES:,} addresses; join them to networks, or split the file", number
            )
    if not ranges4 and not ranges6:
        raise NetworkFileError("holds no address; if that is meant, remove the file")
    return ranges4, ranges6


def _range(entry: str, family: int, bits: int) -> int:
    """Pack the entry's first and last address into one number. Raises `OSError` or `ValueError` if it has none."""
    address, slash, prefix = entry.partition("/")
    number = int.from_bytes(inet_pton(family, address))
    if not slash:
        return number << bits | number
    if not (prefix.isascii() and prefix.isdecimal() and SHORTEST_PREFIX[bits] <= int(prefix) <= bits):
        raise ValueError(prefix)
    rest = (1 << (bits - int(prefix))) - 1
    return (number & ~rest) << bits | number | rest


def _mapped(both: int) -> int | None:
    """Return a range of IPv4-mapped addresses as that of the IPv4 addresses which they are read as; `None` for any
    other. Raises `ValueError` if it is larger than a range of IPv4 may be.
    """
    first, last = both >> 128, both & (1 << 128) - 1
    if first >> 32 != _MAPPED:
        return None
    if last - first >= 1 << 32 - SHORTEST_PREFIX[32]:
        raise ValueError(both)
    return (first & 0xFFFFFFFF) << 32 | last & 0xFFFFFFFF


def _complaint(entry: str) -> str:
    return (
        f"{_shortened(entry)!r} is neither an address nor a network from /{SHORTEST_PREFIX[32]} (IPv4) or "
        f"/{SHORTEST_PREFIX[128]} (IPv6) on; put one a line, and comments behind #"
    )


def _shortened(entry: str) -> str:
    return entry if len(entry) <= 60 else entry[:57] + "..."


def _disjoint(ranges: Iterable[int], bits: int) -> Iterable[tuple[int, int]]:
    """Sort the ranges, and join those that overlap or touch."""
    mask = (1 << bits) - 1
    start, end = 0, -2
    for both in sorted(ranges):
        first, last = both >> bits, both & mask
        if first <= end + 1:
            end = max(end, last)
            continue
        if end >= 0:
            yield start, end
        start, end = first, last
    if end >= 0:
        yield start, end


COUNTRY_NAMES = read_tables("countries", dict[str, str])
"""ISO 3166-1 alpha-2 code -> short English name."""


MAX_BYTES = 1 << 30
LONGEST_NAME = 200
"""Characters of a network's or a country's name."""

_SAMPLE = 256
"""Records looked at to tell what a database knows."""
_PROBES = tuple(IPv4Address((first << 24) + 0x010101) for first in range(1, 224))
"""One address in each /8: a database that fails on one is corrupt."""

_CORRUPT = (
    maxminddb.InvalidDatabaseError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)
"""What reading a file raises that is not a whole database."""


class _Reader(Protocol):
    """The part of maxminddb's readers that is used here; their own types are recursive."""

    def metadata(self) -> Any: ...
    def get(self, address: Address, /) -> Any: ...
    def __iter__(self) -> Iterator[tuple[Any, Any]]: ...


class Database:
    """One open MaxMind database, kept in memory; some tens of microseconds a look-up."""

    def __init__(self, content: bytes, name: str) -> None:
        """Open a database. Raises `NetworkFileError`."""
        self.name = name
        try:
            self._reader = cast("_Reader", maxminddb.open_database(BytesIO(content), maxminddb.MODE_FD))  # pyright: ignore[reportUnknownMemberType]  PathLike without its argument
            about = self._reader.metadata()
            self.built_at: date = datetime.fromtimestamp(about.build_epoch, UTC).date()
            self.entries: int = about.node_count
            self._knows_ipv6 = about.ip_version == 6
            records = [record for _, record in islice(self._reader, _SAMPLE)]
            records += [self._reader.get(probe) for probe in _PROBES]
        except (*_CORRUPT, OSError) as error:
            raise NetworkFileError("is not a complete MaxMind database; download it again") from error
        has_country = any(_country(record, name) for record in records)
        has_system = any(_system(record, name) for record in records)
        if not has_country and not has_system:
            raise NetworkFileError(
                f"is a MaxMind database of the type {about.database_type!r}, whose records hold neither a country nor "
                "a network (ASN); remove it"
            )
        self.kind = " and ".join(kind for kind, has in (("country", has_country), ("asn", has_system)) if has)

    def find(self, address: Address) -> tuple[Country | None, AutonomousSystem | None]:
        """Return country and network of an address, each `None` if unknown. Raises `LookupError` if it is corrupt."""
        if address.version == 6 and not self._knows_ipv6:
            return None, None
        try:
            record = self._reader.get(address)
        except _CORRUPT as error:
            raise LookupError(f"{self.name} is corrupt") from error
        if record is None:
            return None, None
        return _country(record, self.name), _system(record, self.name)


def _country(record: Any, source: str) -> Country | None:
    """Return the country of the users of a network, not the one where it is registered.

    MaxMind and DB-IP nest (`country.iso_code`, `country.names.en`), ip-location-db and IPinfo do not (`country_code`).
    """
    if not isinstance(record, dict):
        return None
    fields = cast("Mapping[str, Any]", record)
    code, name = fields.get("country_code"), None
    nested = fields.get("country")
    if isinstance(nested, dict):
        country = cast("Mapping[str, Any]", nested)
        code = country.get("iso_code")
        names = country.get("names")
        name = cast("Mapping[str, Any]", names).get("en") if isinstance(names, dict) else None
    elif code is None:
        code = nested
    if not isinstance(code, str) or len(code) != 2 or not (code.isascii() and code.isalpha()):
        return None
    code = code.upper()
    return Country(code, name[:LONGEST_NAME] if isinstance(name, str) else COUNTRY_NAMES.get(code), source)


def _system(record: Any, source: str) -> AutonomousSystem | None:
    """Read `autonomous_system_number` (MaxMind, DB-IP, ip-location-db) or `asn` (IPinfo), such as `AS64496`."""
    if not isinstance(record, dict):
        return None
    fields = cast("Mapping[str, Any]", record)
    number = fields.get("autonomous_system_number", fields.get("asn"))
    if isinstance(number, str):
        digits = number.upper().removeprefix("AS")
        number = int(digits) if len(digits) <= 10 and digits.isascii() and digits.isdecimal() else None
    if not isinstance(number, int) or not 0 < number < 1 << 32:
        return None
    name = fields.get("autonomous_system_organization", fields.get("as_name"))
    return AutonomousSystem(number, name[:LONGEST_NAME] if isinstance(name, str) and name else None, source)
