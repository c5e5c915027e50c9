"""The look-up in everything that is in use: built-in ranges, lists and databases, compiled into one immutable object.

What may live here: the look-up, whether what it looks in is there and recent, and the actor that keeps it up to date. A
look-up takes a few microseconds and none for addresses seen lately; replacing the data is replacing the object.

`NetworkWatch` takes up network files that were replaced, added or removed, without a restart. It owns what is read of
the folder, and the look-up in force, which others read and never keep. It receives and sends no messages; it looks at
the folder periodically, on a thread, and logs. A file that cannot be used is named in the log, once, and what was read
of it before stays in force.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, cast

import iporigin
import structlog
import trio

from svc.identify.network.facts import Known, Range, Ranges
from svc.identify.network_data.folder import NOTHING, AsList, Entry, FilesInUse, ListFile, read_folder
from svc.identify.network_data.lists import Database, crowded_networks
from svc.kernel.net.addresses import Address
from svc.world import RunSync

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


log = structlog.get_logger()


class NetworkWatch:
    """Keeps the address look-up up to date with the files of a folder; `data` is the look-up in force."""

    def __init__(
        self, directory: Path | None, built_in: BuiltInRanges | None, vpn_neighbors: int = VPN_NEIGHBORS
    ) -> None:
        """Use only the built-in ranges without a directory; `vpn_neighbors` as for `NetworkData`. Read nothing yet."""
        self._directory = directory
        self._compiled = partial(NetworkData, built_in, vpn_neighbors=vpn_neighbors)
        self._reading = NOTHING
        self._listing_failed = False
        self._soon = trio.Event()
        self.data = self._compiled(NOTHING)

    @property
    def ranges(self) -> Ranges | None:
        """The look-up for the next address; `None` without data. Do not keep it: it is replaced as a whole."""
        return self.data or None

    def read_now(self) -> None:
        """Read the folder on this thread, before the first request. Log unusable files, and that there is no data."""
        self._take_up(self._read_again(self._reading))
        if self.ranges is None:
            log.warning("no network data: every identification is unavailable and free", reason="no_network_data")

    def look_now(self) -> None:
        """Make `run` check the folder now instead of at the end of the interval."""
        self._soon.set()

    async def run(self, run_sync: RunSync, interval_s: float) -> None:
        """Check the folder every `interval_s` seconds, and after `look_now`; return at once if there is none."""
        while self._directory is not None:
            with trio.move_on_after(interval_s):
                await self._soon.wait()
            self._soon = trio.Event()
            self._take_up(await run_sync(partial(self._read_again, self._reading)))

    def _read_again(self, before: FilesInUse) -> tuple[FilesInUse, NetworkData | None] | OSError:
        """Read the folder, on a thread. Return its content, and the look-up if that has changed."""
        if self._directory is None:
            return before, None
        try:
            after = read_folder(self._directory, before)
        except OSError as error:
            return error
        return after, None if after is before else self._compiled(after)

    def _take_up(self, looked: tuple[FilesInUse, NetworkData | None] | OSError) -> None:
        if isinstance(looked, OSError):
            if not self._listing_failed:
                log.error("cannot list the network files, keeping the loaded ones", problem=str(looked))
            self._listing_failed = True
            return
        self._listing_failed = False
        after, data = looked
        before, self._reading = self._reading, after
        if data is not None:
            self.data = data
            _log_changes(before, after)


def _log_changes(before: FilesInUse, after: FilesInUse) -> None:
    for name in before.keys() - after.keys():
        log.info("network file removed", file=name)
    for name, entry in after.items():
        if before.get(name) != entry:
            _log_file(name, entry)


def _log_file(name: str, entry: Entry) -> None:
    source = entry.source
    if entry.problem is not None:
        in_force = "nothing of it is in use" if source is None else "what was read of it before stays in use"
        line = {} if entry.problem.line is None else {"line": entry.problem.line}
        log.error("network file rejected", file=name, problem=entry.problem.says, **line, in_force=in_force)
    elif source is not None:
        built_at = source.built_at.isoformat()
        log.info("network file in use", file=name, kind=source.kind, entries=source.entries, built_at=built_at)
