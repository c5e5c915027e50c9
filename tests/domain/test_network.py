"""What the sources say of an address, and what it means."""

import pytest

from svc.identify.network.facts import (
    AutonomousSystem,
    Country,
    Known,
    Range,
    all_ranges,
    kind_of_network,
    read_network,
)
from svc.kernel.net.addresses import Address


class Finding:
    """A look-up that finds the same for every address, or fails."""

    def __init__(self, found: Known | Exception | None) -> None:
        self.found = found

    def find(self, _: Address, /) -> Known | None:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def publishes(self, _: str, /) -> bool:
        return True


FLAGS = ("tor", "vpn", "relay", "proxy", "hosting", "residential_proxy", "attack_source", "spam_source")


@pytest.mark.parametrize(
    ("ranges", "network", "flags"),
    [
        ([Range("tor", "Tor")], "tor", {"tor"}),
        ([Range("vpn", "Mullvad")], "vpn", {"vpn"}),
        ([Range("vpn", "Apple Private Relay")], "vpn", {"relay"}),
        ([Range("relay", "")], "vpn", {"relay"}),
        ([Range("proxy", "")], "proxy", {"proxy"}),
        ([Range("hosting", "Hetzner")], "hosting", {"hosting"}),
        ([Range("cdn", "Fastly")], "hosting", {"hosting"}),
        ([Range("bot", "Googlebot")], None, set()),
        ([Range("residential_proxy", "")], None, {"residential_proxy"}),
        ([Range("attack", "")], None, {"attack_source"}),
        ([Range("spam", "")], None, {"spam_source"}),
        ([Range("vpn_neighbor", "")], "vpn", {"vpn"}),
        ([Range("vpn_neighbor", ""), Range("hosting", "")], "vpn", {"vpn", "hosting"}),
        ([Range("vpn_neighbor", ""), Range("tor", "")], "tor", {"tor"}),
        ([Range("vpn_neighbor", ""), Range("relay", "")], "vpn", {"relay"}),
        ([Range("vpn_neighbor", ""), Range("bot", "Googlebot")], None, set()),
        ([Range("attack", ""), Range("hosting", ""), Range("tor", "")], "tor", {"attack_source", "hosting", "tor"}),
        ([Range("something new", "X")], None, set()),
        ([], None, set()),
    ],
)
def test_a_range_sets_the_flags_of_its_kind(ranges: list[Range], network: str | None, flags: set[str]):
    facts = read_network("81.2.69.160", Finding(Known(tuple(ranges))))
    assert facts.state == "enriched"
    assert facts.anonymity_network == network
    assert {name for name in FLAGS if getattr(facts, name)} == flags


def test_an_address_unknown_to_all_sources_is_enriched_nevertheless():
    facts = read_network("81.2.69.160", Finding(None))
    assert (facts.state, facts.anonymity_network) == ("enriched", None)


def test_each_range_of_a_crawler_names_its_operator():
    ranges = (Range("bot", "Anthropic"), Range("hosting", "AWS"), Range("bot", "ClaudeBot"))
    assert read_network("81.2.69.160", Finding(Known(ranges))).crawlers_of == ("Anthropic", "ClaudeBot")


def test_country_and_network_are_reported_as_the_databases_have_them():
    known = Known((), Country("SE", "Sweden", "c.mmdb"), AutonomousSystem(3301, "Telia Company AB", "a.mmdb"))
    facts = read_network("81.2.69.160", Finding(known))
    assert (facts.country_code, facts.country_name) == ("SE", "Sweden")
    assert (facts.asn, facts.asn_name) == ("3301", "Telia Company AB")
    assert facts.anonymity_network is None


def test_a_network_named_after_hosting_is_hosting_with_the_name_as_its_source():
    known = Known((), None, AutonomousSystem(24940, "Hetzner Online GmbH", "a.mmdb"))
    assert read_network("81.2.69.160", Finding(known)).hosting
    assert all_ranges(known) == (Range("hosting", "Hetzner Online GmbH", "name of AS24940 in a.mmdb"),)


@pytest.mark.parametrize("kind", ["tor", "vpn", "relay", "bot"])
def test_a_specific_range_takes_precedence_over_the_network_name(kind: str):
    known = Known((Range(kind, "X"),), None, AutonomousSystem(24940, "Hetzner Online GmbH", "a.mmdb"))
    assert not read_network("81.2.69.160", Finding(known)).hosting


def test_an_attack_source_keeps_its_other_network_facts():
    known = Known((Range("attack", ""),), None, AutonomousSystem(24940, "Hetzner Online GmbH", "a.mmdb"))
    facts = read_network("81.2.69.160", Finding(known))
    assert (facts.attack_source, facts.hosting) == (True, True)


def test_the_reason_for_missing_network_data_is_given():
    assert read_network("81.2.69.160", None).reason == "no_network_data"
    assert read_network("127.0.0.1", Finding(None)).reason == "private_address"
    assert read_network("not an address", Finding(None)).reason == "private_address"
    assert read_network("81.2.69.160", Finding(LookupError("damaged"))).reason == "lookup_failed"
    assert read_network("81.2.69.160", None).state == "unavailable"


@pytest.mark.parametrize(
    "name",
    [
        "Amazon.com, Inc.", "OVH SAS", "DIGITALOCEAN-ASN", "Google LLC", "Servers.com, Inc.", "HOSTKEY B.V.",
        "Some Unheard-of Web Hosting Ltd.", "Blue Cloud Technology Co.,Ltd", "Metro Data Center LLC", "VpsQuan L.L.C.",
        "Hydra Communications Ltd", "CHINANET Jiangx province IDC network",
    ],
)  # fmt: skip
def test_names_of_hosting_companies_are_recognized(name: str):
    assert kind_of_network(name) == "hosting"


@pytest.mark.parametrize("name", ["PacketHub S.A.", "Proton AG", "Acme VPN Services Inc."])
def test_names_of_vpn_services_are_recognized(name: str):
    assert kind_of_network(name) == "vpn"


@pytest.mark.parametrize(
    "name",
    [
        "Comcast Cable Communications, LLC", "Deutsche Telekom AG", "Google Fiber Inc.", "AFRIHOST SP (PTY) LTD",
        "MTN Network Solutions (Cameroon)", "Echostar Broadcasting Corporation", "CITY OF ST. CLOUD", "Hostel Net",
        "SkyCloud Broadband", "Leibniz-Rechenzentrum", "Cogent Communications", "GTT Communications Inc.",
        "Observer Media", "Orange S.A.", "Novphone VPNX", "", "\x00" * 100_000,
    ],
)  # fmt: skip
def test_names_of_residential_and_business_providers_are_not_classified(name: str):
    assert kind_of_network(name) is None


def test_a_network_list_applies_unless_a_range_or_the_name_contradicts_it():
    listed = (Range("hosting", "", "AS64496 in asn-hosting.txt"),)
    for name, ranges, hosting in (
        ("Some Company", (), True),
        (None, (), True),
        ("Some Telecom", (), False),
        ("Some University", (), False),
        ("Some Company", (Range("tor", "Tor"),), False),
        ("Some Company", (Range("attack", ""),), True),
    ):
        known = Known(ranges, None, AutonomousSystem(64496, name, "asn.mmdb", listed))
        assert read_network("81.2.69.160", Finding(known)).hosting is hosting, (name, ranges)
    known = Known((), None, AutonomousSystem(64496, "Acme VPN Services", "asn.mmdb", listed))
    facts = read_network("81.2.69.160", Finding(known))
    assert (facts.vpn, facts.hosting) == (True, False)
