"""The look-up in everything that is in use: built-in ranges, lists and databases, compiled into one immutable object.

What may live here: the look-up, and whether what it looks in is there and recent. A look-up takes a few microseconds
and none for addresses seen lately; replacing the data is replacing the object.
"""

from __future__ import annotations

from datetime import date, timedelta
from functools import lru_cache
from typing import Literal

from svc.domain.addresses import Address
from svc.domain.network import Known
from svc.network_data.builtin import BuiltInRanges
from svc.network_data.folder import ListFile, Reading
from svc.network_data.mmdb import Database

CACHED_ADDRESSES = 16_384

State = Literal["ok", "missing", "stale"]


class NetworkData:
    """A `svc.domain.network.Ranges` over the sources in use; addresses seen lately are cached. False where there is no
    source.
    """

    def __init__(self, built_in: BuiltInRanges | None, reading: Reading) -> None:
        """Of two databases that know the country, or the network, of an address the one built later is believed."""
        sources = [entry.source for entry in reading.values() if entry.source is not None]
        self._built_in = built_in
        self._lists = tuple(source for source in sources if isinstance(source, ListFile))
        databases = [source for source in sources if isinstance(source, Database)]
        self._databases = tuple(sorted(databases, key=lambda database: database.built_at, reverse=True))
        self._built: tuple[date, ...] = tuple(source.built_at for source in (built_in, *sources) if source is not None)
        self.find = lru_cache(maxsize=CACHED_ADDRESSES)(self._find)

    def __bool__(self) -> bool:
        """Whether there is anything to look in."""
        return bool(self._built)

    def state(self, today: date, stale_days: int) -> State:
        """`missing` without any source, `stale` when any source is more than `stale_days` days old, else `ok`
        (decisions 9.1).
        """
        if not self._built:
            return "missing"
        return "stale" if is_stale(min(self._built), today, stale_days) else "ok"

    def _find(self, address: Address, /) -> Known | None:
        ranges = [source.found for source in self._lists if address in source.addresses]
        if self._built_in is not None and (found := self._built_in.find(address)) is not None:
            ranges.append(found)
        country, system = None, None
        for database in self._databases:
            its_country, its_system = database.find(address)
            country = country or its_country
            system = system or its_system
        if not ranges and country is None and system is None:
            return None
        return Known(tuple(ranges), country, system)


def is_stale(built_at: date, today: date, stale_days: int) -> bool:
    """Whether data of that day are more than `stale_days` days old."""
    return today - built_at > timedelta(days=stale_days)
