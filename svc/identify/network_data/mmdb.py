"""Databases of MaxMind's format (MaxMind DB File Format Specification 2.0): country, city, network (ASN).

What may live here: opening such a file, and reading the few facts used from the records of the known publishers. A
reader never sees the operator's file but its bytes, and it is the one in Python: the reader in C ends the process on
some corrupt files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from io import BytesIO
from ipaddress import IPv4Address
from itertools import islice
from typing import Any, Protocol, cast

import maxminddb

from svc.identify.data import read_tables
from svc.identify.network.facts import AutonomousSystem, Country
from svc.identify.network_data import NetworkFileError
from svc.kernel.net.addresses import Address

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
        """Return country and network of an address, `None` for each that the database does not have. Raises
        `LookupError` if the file is corrupt.
        """
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
