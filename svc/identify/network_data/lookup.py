"""The look-up in everything that is in use: built-in ranges, lists and databases, compiled into one immutable object.

What may live here: the look-up, and whether what it looks in is there and recent. A look-up takes a few microseconds
and none for addresses seen lately; replacing the data is replacing the object.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, Literal, cast

import iporigin

from svc.identify.network.facts import Known, Range
from svc.identify.network_data.folder import AsList, FilesInUse, ListFile
from svc.identify.network_data.lists import Database, crowded_networks
from svc.kernel.net.addresses import Address

SOURCE = "built-in ranges"
_RESERVED_OR_UNKNOWN = ("reserved", "unknown")


class BuiltInRanges:
    """The address ranges that come with the program, those of the `iporigin` package: Tor, VPN, relays, hosting,
    content networks, crawlers. They are loaded once; a look-up takes about 5 microseconds.
    """

    def __init__(self) -> None:
        about = cast("dict[str, Any]", iporigin.dataset_info())  # untyped
        self.built_at: date = datetime.fromtimestamp(about["built_at"], UTC).date()
        self._count = about["ranges"]
        self.providers = frozenset(cast("list[str]", about["providers"]))
        """The operators of the services in the ranges; the operators of crawlers among others."""

    def __len__(self) -> int:
        return self._count

    def find(self, address: Address, /) -> Range | None:
        """Return the range that holds the address; `None` for addresses that are reserved or in no range."""
        origin = iporigin.classify(address)  # pyright: ignore[reportUnknownMemberType]  it is untyped
        return None if origin.kind in _RESERVED_OR_UNKNOWN else Range(origin.kind, origin.provider, SOURCE)


CACHED_ADDRESSES = 16_384
VPN_NEIGHBORS = 2
"""The default of `network_vpn_neighbors`; docs/adr/0028 has the figures."""

FilesState = Literal["ok", "missing", "stale"]


class NetworkData:
    """The `Ranges` of the sources in use; addresses seen lately are cached. False where there is no source."""

    def __init__(
        self, built_in: BuiltInRanges | None, reading: FilesInUse, *, vpn_neighbors: int = VPN_NEIGHBORS
    ) -> None:
        """Compile the data. Of two databases that know the country, or the network, of an address the newer one is
        believed.

        `vpn_neighbors`: the number of servers in one /24 on VPN lists from which the whole /24 is a VPN's; 0 = never.
        """
        sources = [entry.source for entry in reading.values() if entry.source is not None]
        self._built_in = built_in
        self._lists = tuple(source for source in sources if isinstance(source, ListFile))
        self._operators = frozenset(source.found.provider for source in self._lists if source.kind == "crawler")
        if built_in is not None:
            self._operators |= built_in.providers
        self._as_lists = tuple(source for source in sources if isinstance(source, AsList))
        servers = [listed.servers for listed in self._lists if listed.servers is not None]
        self._vpn_networks = crowded_networks(servers, vpn_neighbors) if vpn_neighbors else frozenset[int]()
        self._neighbor = Range("vpn_neighbor", "", f"{vpn_neighbors} or more listed VPN servers in its /24")
        databases = [source for source in sources if isinstance(source, Database)]
        self._databases = tuple(sorted(databases, key=lambda database: database.built_at, reverse=True))
        dates = [(source.name, source.kind, source.built_at) for source in sources]
        if built_in is not None:
            dates.append((SOURCE, "built-in", built_in.built_at))
        self.dates = tuple(dates)
        """(file, kind, date) of each source in use; the built-in ranges are a file of the kind `built-in`."""
        self.find = lru_cache(maxsize=CACHED_ADDRESSES)(self._find)

    def __bool__(self) -> bool:
        """Return whether there is any data."""
        return bool(self.dates)

    def publishes(self, operator: str, /) -> bool:
        """Return whether the data in use say which addresses a crawler's operator has (`Ranges.publishes`)."""
        return operator in self._operators

    def state(self, today: date, stale_days: int) -> FilesState:
        """Return `missing` without a source, `stale` if one is older than `stale_days`, else `ok` (decisions 9.1)."""
        if not self.dates:
            return "missing"
        return "stale" if is_stale(min(built_at for _, _, built_at in self.dates), today, stale_days) else "ok"

    def _find(self, address: Address, /) -> Known | None:
        ranges = [source.found for source in self._lists if address in source.addresses]
        if self._built_in is not None and (found := self._built_in.find(address)) is not None:
            ranges.append(found)
        if self._vpn_networks and address.version == 4 and int(address) >> 8 in self._vpn_networks:
            ranges.append(self._neighbor)
        country, system = None, None
        for database in self._databases:
            its_country, its_system = database.find(address)
            country = country or its_country
            system = system or its_system
        if system is not None and self._as_lists:
            system = system._replace(listed=self._listed(system.number))
        if not ranges and country is None and system is None:
            return None
        return Known(tuple(ranges), country, system)

    def _listed(self, number: int) -> tuple[Range, ...]:
        return tuple(
            Range(listed.says, "", f"AS{number} in {listed.name}")
            for listed in self._as_lists
            if number in listed.numbers
        )


def is_stale(built_at: date, today: date, stale_days: int) -> bool:
    """Return whether data of that day are more than `stale_days` days old."""
    return (today - built_at).days > stale_days
