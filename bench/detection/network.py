"""How much of labeled addresses is flagged: by the built-in ranges alone, and with databases of a folder.

`--network` names a folder of databases, such as `svc data update` makes. A second table adds the lists of
DATA/network/lists one after the other. None of them is a source of the labels: a list finds all of its own labels,
which says nothing (DATA/network/lists/sources.md).
"""

from __future__ import annotations

import csv
import gzip
import time
from collections import defaultdict
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import NamedTuple

from bench.linkage.tables import Table
from svc.identify.model import Network
from svc.identify.network.facts import read_network
from svc.identify.network_data.folder import NOTHING, Entry, Signature, read_folder, read_source
from svc.identify.network_data.lists import Database
from svc.identify.network_data.lookup import VPN_NEIGHBORS, BuiltInRanges, NetworkData
from svc.identify.network_data.sources import SOURCES

AIMS = {"tor": ".85", "vpn": ".85", "hosting": ".85", "relay": "1.0", "residential": "at most .001"}
LABELS = ("tor", "vpn", "hosting", "relay", "proxy", "crawler", "residential")


class Flagged(NamedTuple):
    """Shares of the addresses with one label."""

    addresses: int
    at_all: float
    """With any `anonymity_network`."""
    as_labeled: float | None
    """With the very fact that the label names; `None` where it names none."""


def network_table(data: Path, network: Path | None = None) -> Table:
    """Shares flagged in `data`/network/addresses.csv, without and with the databases of the folder `network`."""
    with (data / "network" / "addresses.csv").open() as file:
        addresses = [(row["ip"], row["label"]) for row in csv.DictReader(file)]
    built_in = BuiltInRanges()
    columns = {"built-in ranges": NetworkData(built_in, NOTHING)}
    if network is not None:
        columns["with databases"] = NetworkData(built_in, read_folder(network))
    results = {name: (measure(addresses, ranges), _look_up_us(addresses, ranges)) for name, ranges in columns.items()}
    rows: list[tuple[str, ...]] = []
    for label in LABELS:
        cells = [result[label] for result, _ in results.values()]
        shares = [text for cell in cells for text in (_share(cell.at_all), _share(cell.as_labeled))]
        rows.append((label, AIMS.get(label, "-"), f"{cells[0].addresses:,}", *shares))
    header = ("label", "aim", "addresses", *(text for name in columns for text in (f"{name}: flagged", "as labeled")))
    costs = ", ".join(f"{name} {cost:.1f} µs" for name, (_, cost) in results.items())
    note = (
        "Flagged: tor, vpn, proxy or hosting; a VPN's exit in a data center may be known as either. As labeled: known "
        f"as what the label says. First look-up of an address: {costs}."
    )
    if network is None:
        note += " Without country and ASN databases; name their folder to measure with them."
    return Table("Networks by their addresses", tuple(header), rows, note=note)


def lists_table(data: Path, network: Path | None = None) -> Table:
    """What each list of `data`/network/lists adds to the built-in ranges and to the databases of the folder `network`;
    lists of its own are left out.
    """
    with (data / "network" / "addresses.csv").open() as file:
        addresses = [(row["ip"], row["label"]) for row in csv.DictReader(file)]
    built_in = BuiltInRanges()
    databases = NOTHING if network is None else read_folder(network)
    reading = {name: entry for name, entry in databases.items() if isinstance(entry.source, Database)}
    lists = _lists(data / "network" / "lists")
    vpn = {name: entry for name, entry in lists.items() if name.startswith("vpn-")}
    rows: list[tuple[str, ...]] = []

    def add(title: str, more: Mapping[str, Entry], *, neighbors: int = VPN_NEIGHBORS) -> None:
        found = NetworkData(built_in, {**reading, **more}, vpn_neighbors=neighbors)
        facts = [(label, read_network(ip, found)) for ip, label in addresses]
        by_label = measure(addresses, found)
        named = sum(one.anonymity_network == "vpn" and not one.relay for label, one in facts if label != "vpn")
        shares = [
            _share(by_label[label].at_all) for label in ("tor", "vpn", "hosting", "relay", "proxy", "residential")
        ]
        rows.append((title, *shares, _share(by_label["vpn"].as_labeled), str(named)))

    add("built-in ranges" + (" and databases" if reading else ""), {})
    before: dict[str, Entry] = {}
    for name in ("tor-exits.txt", "asn-hosting.txt", "relay-icloud.txt"):
        before[name] = lists[name]
        add(f"and {name}", before)
    for name, entry in vpn.items():
        add(f"and {name} alone", {**before, name: entry})
    add("and all VPN lists, listed addresses only", {**before, **vpn}, neighbors=0)
    add("and all VPN lists", {**before, **vpn})
    header = ("in use", "tor", "vpn", "hosting", "relay", "proxy", "residential", "vpn named vpn", "others named vpn")
    note = (
        "Shares flagged as tor, vpn, proxy or hosting, and of the VPNs those that are named so. Lists a month older "
        "than the labels, and no source of them; a list of AS numbers needs a database of networks."
    )
    return Table("What lists add", header, rows, note=note)


def _lists(folder: Path) -> dict[str, Entry]:
    """The lists that sources publish as `svc data update` would install them, by file."""
    entries: dict[str, Entry] = {}
    for source in SOURCES:
        packed, table = folder / f"{source.file}.gz", folder / f"{source.name}.csv"
        if packed.exists():
            content = gzip.decompress(packed.read_bytes())
        elif table.exists():
            content = source.convert(source, [table.read_bytes()])
        else:
            continue
        entries[source.file] = Entry(Signature(0, 0, 0), read_source(source.file, content, date.min))
    return entries


def measure(addresses: list[tuple[str, str]], ranges: NetworkData) -> dict[str, Flagged]:
    """Label -> shares. `addresses` are (IP, label)."""
    by_label: dict[str, list[Network]] = defaultdict(list)
    for ip, label in addresses:
        by_label[label].append(read_network(ip, ranges))
    return {label: _flagged(label, facts) for label, facts in by_label.items()}


def _flagged(label: str, facts: list[Network]) -> Flagged:
    at_all = sum(one.anonymity_network is not None for one in facts) / len(facts)
    fact = {"crawler": "crawlers_of", "residential": None}.get(label, label)
    as_labeled = None if fact is None else sum(bool(getattr(one, fact)) for one in facts) / len(facts)
    return Flagged(len(facts), at_all, as_labeled)


def _look_up_us(addresses: list[tuple[str, str]], ranges: NetworkData) -> float:
    """Mean microseconds of CPU of a look-up that no cache answers, its meaning included."""
    ranges.find.cache_clear()
    before = time.process_time()
    for ip, _ in addresses:
        read_network(ip, ranges)
    return (time.process_time() - before) / len(addresses) * 1e6


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
