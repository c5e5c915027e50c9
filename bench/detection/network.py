"""How much of labelled addresses is flagged: by the built-in ranges alone, and with databases of a folder.

    python -m bench.detection.network --data DATA [--network DIR]

`--network` names a folder of databases, such as `svc data install free` makes.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from bench.linkage.tables import Table
from svc.domain.model import Network
from svc.domain.network import read_network
from svc.network_data.builtin import BuiltInRanges
from svc.network_data.folder import NOTHING, read_folder
from svc.network_data.lookup import NetworkData

AIMS = {"tor": ".85", "vpn": ".85", "hosting": ".85", "relay": "1.0", "residential": "at most .001"}
LABELS = ("tor", "vpn", "hosting", "relay", "proxy", "crawler", "residential")


class Flagged(NamedTuple):
    """Shares of the addresses with one label."""

    addresses: int
    at_all: float
    """With any `anonymity_network`."""
    as_labelled: float | None
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
        shares = [text for cell in cells for text in (_share(cell.at_all), _share(cell.as_labelled))]
        rows.append((label, AIMS.get(label, "-"), f"{cells[0].addresses:,}", *shares))
    header = ("label", "aim", "addresses", *(text for name in columns for text in (f"{name}: flagged", "as labelled")))
    costs = ", ".join(f"{name} {cost:.1f} µs" for name, (_, cost) in results.items())
    note = (
        "Flagged: tor, vpn, proxy or hosting; a VPN's exit in a data centre may be known as either. As labelled: known "
        f"as what the label says. First look-up of an address: {costs}."
    )
    if network is None:
        note += " Without country and ASN databases; name their folder to measure with them."
    return Table("Networks by their addresses", tuple(header), rows, note=note)


def measure(addresses: list[tuple[str, str]], ranges: NetworkData) -> dict[str, Flagged]:
    """Label -> shares. `addresses` are (IP, label)."""
    by_label: dict[str, list[Network]] = defaultdict(list)
    for ip, label in addresses:
        by_label[label].append(read_network(ip, ranges))
    return {label: _flagged(label, facts) for label, facts in by_label.items()}


def _flagged(label: str, facts: list[Network]) -> Flagged:
    at_all = sum(one.anonymity_network is not None for one in facts) / len(facts)
    fact = {"crawler": "crawler_of", "residential": None}.get(label, label)
    as_labelled = None if fact is None else sum(bool(getattr(one, fact)) for one in facts) / len(facts)
    return Flagged(len(facts), at_all, as_labelled)


def _look_up_us(addresses: list[tuple[str, str]], ranges: NetworkData) -> float:
    """Mean microseconds of CPU of a look-up that no cache answers, its meaning included."""
    ranges.find.cache_clear()
    before = time.process_time()
    for ip, _ in addresses:
        read_network(ip, ranges)
    return (time.process_time() - before) / len(addresses) * 1e6


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="the shared data")
    options.add_argument("--network", type=Path, help="a folder of databases and lists")
    chosen = options.parse_args()
    print(network_table(chosen.data, chosen.network).text())


if __name__ == "__main__":
    main()
