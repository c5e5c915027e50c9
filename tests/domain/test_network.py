import csv
from collections import defaultdict
from pathlib import Path

import pytest

from svc.domain.addresses import Address
from svc.domain.network import Range, read_network
from svc.ranges import BuiltInRanges


class OneRange:
    """A look-up that finds the same for every address, or fails."""

    def __init__(self, found: Range | Exception | None) -> None:
        self.found = found

    def find(self, _: Address, /) -> Range | None:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.mark.parametrize(
    ("found", "network", "flags"),
    [
        (Range("tor", "Tor"), "tor", {"tor"}),
        (Range("vpn", "Mullvad"), "vpn", {"vpn"}),
        (Range("vpn", "Apple Private Relay"), "vpn", {"relay"}),
        (Range("hosting", "Hetzner"), "hosting", {"hosting"}),
        (Range("cdn", "Fastly"), "hosting", {"hosting"}),
        (Range("bot", "Googlebot"), None, set()),
        (Range("something new", "X"), None, set()),
        (None, None, set()),
    ],
)
def test_a_range_means_what_its_kind_says(found: Range | None, network: str | None, flags: set[str]):
    facts = read_network("81.2.69.160", OneRange(found))
    assert facts.state == "enriched"
    assert facts.anonymity_network == network
    assert {name for name in ("tor", "vpn", "relay", "proxy", "hosting") if getattr(facts, name)} == flags


def test_a_crawlers_range_names_its_operator():
    assert read_network("81.2.69.160", OneRange(Range("bot", "Googlebot"))).crawler_of == "Googlebot"


def test_why_nothing_is_known_is_said():
    assert read_network("81.2.69.160", None).reason == "no_network_data"
    assert read_network("127.0.0.1", OneRange(None)).reason == "private_address"
    assert read_network("not an address", OneRange(None)).reason == "private_address"
    assert read_network("81.2.69.160", OneRange(ValueError("broken"))).reason == "lookup_failed"
    assert read_network("81.2.69.160", None).state == "unavailable"


@pytest.mark.slow
def test_the_built_in_ranges_find_what_they_are_for_and_leave_homes_alone(shared_data: Path):
    ranges = BuiltInRanges()
    flagged: dict[str, list[bool]] = defaultdict(list)
    with (shared_data / "network" / "addresses.csv").open() as file:
        for row in csv.DictReader(file):
            facts = read_network(row["ip"], ranges)
            flagged[row["label"]].append(facts.anonymity_network is not None)
    shares = {label: sum(hits) / len(hits) for label, hits in flagged.items()}
    assert shares["relay"] == 1
    assert shares["tor"] > 0.8
    assert shares["vpn"] > 0.6
    assert shares["hosting"] > 0.55
    assert shares["residential"] == 0
