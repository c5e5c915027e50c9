"""Databases of MaxMind's format: what is written reads back, and what the known publishers write is understood."""

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.network.facts import AutonomousSystem, Country
from svc.identify.network_data import NetworkFileError
from svc.identify.network_data.lists import Database
from tests.support.mmdb_writer import Tree

V4, V6 = IPv4Address("81.2.69.160"), IPv6Address("2a00:1450::1")
BUILT_AT_S = 1_767_225_600


def database(record: dict[str, Any], *addresses: str) -> bytes:
    """The record at the addresses, and at no others."""
    tree = Tree()
    for address in addresses or (str(V4), str(V6)):
        tree.add(int(ip_address(address)), int(ip_address(address)), record)
    return tree.content("a test", BUILT_AT_S)


@pytest.mark.parametrize(
    ("record", "code", "name"),
    [
        ({"country": {"iso_code": "GB", "names": {"en": "Britain", "de": "Britannien"}}}, "GB", "Britain"),
        ({"country": {"iso_code": "GB"}, "registered_country": {"iso_code": "US"}}, "GB", "United Kingdom"),
        ({"country_code": "GB"}, "GB", "United Kingdom"),
        ({"country": "gb", "continent": "EU"}, "GB", "United Kingdom"),
        ({"country": "United Kingdom", "country_code": "GB"}, "GB", "United Kingdom"),
        ({"country_code": "ZZ"}, "ZZ", None),
        ({"city": {"names": {"en": "Bath"}}, "country": {"iso_code": "GB"}}, "GB", "United Kingdom"),
    ],
)
def test_countries_of_all_publishers_are_understood(record: dict[str, Any], code: str, name: str | None):
    read = Database(database(record), "c.mmdb")
    assert read.kind == "country"
    assert read.built_at.isoformat() == "2026-01-01"
    for address in (V4, V6):
        assert read.find(address) == (Country(code, name, "c.mmdb"), None)


@pytest.mark.parametrize(
    ("record", "number", "name"),
    [
        ({"autonomous_system_number": 20712, "autonomous_system_organization": "A & A"}, 20712, "A & A"),
        ({"asn": "AS20712", "as_name": "A & A", "as_domain": "aa.net.uk"}, 20712, "A & A"),
        ({"autonomous_system_number": 20712}, 20712, None),
        ({"autonomous_system_number": 4_294_967_295, "autonomous_system_organization": "Ü" * 500}, 4_294_967_295,
         "Ü" * 200),
    ],
)  # fmt: skip
def test_networks_of_all_publishers_are_understood(record: dict[str, Any], number: int, name: str | None):
    read = Database(database(record), "a.mmdb")
    assert read.kind == "asn"
    assert read.find(V4) == (None, AutonomousSystem(number, name, "a.mmdb"))
    assert read.find(IPv4Address("81.2.69.161")) == (None, None)


def test_one_file_may_contain_both():
    read = Database(database({"country_code": "GB", "asn": "AS20712", "as_name": "A & A"}), "both.mmdb")
    assert read.kind == "country and asn"
    assert read.find(V6) == (
        Country("GB", "United Kingdom", "both.mmdb"),
        AutonomousSystem(20712, "A & A", "both.mmdb"),
    )


@pytest.mark.parametrize(
    "record",
    [
        {"country": {"iso_code": 7}},
        {"country": {"iso_code": "GBR"}},
        {"country": []},
        {"country_code": "G1"},
        {"autonomous_system_number": 0},
        {"asn": "AS" + "9" * 5000},
        {"asn": "ASx"},
        {"is_anonymous": 1},
        {},
    ],
)
def test_a_database_of_another_type_is_rejected(record: dict[str, Any]):
    with pytest.raises(NetworkFileError, match="neither a country nor"):
        Database(database(record), "x.mmdb")


def test_a_truncated_or_invalid_file_is_rejected():
    whole = database({"country_code": "GB"})
    for content in (b"", b"<html>", whole[: len(whole) // 2], whole[:-40], whole[:64] + whole[-120:]):
        with pytest.raises(NetworkFileError, match="not a complete MaxMind database"):
            Database(content, "x.mmdb")


SPANS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60)), min_size=1, max_size=8)


@pytest.mark.parametrize("base", [0x51024500, 0x2A001450 << 96])
@given(spans=SPANS, place=st.integers(0, 500))
def test_reading_restores_what_was_written(base: int, spans: list[tuple[int, int]], place: int):
    tree, ranges, taken = Tree(), [], 0
    for number, (gap, length) in enumerate(spans, 1):
        first = taken + gap
        taken = first + length + 1
        ranges.append((first, taken - 1, number))
        tree.add(base + first, base + taken - 1, {"autonomous_system_number": number})
    read = Database(tree.content("t", BUILT_AT_S), "t.mmdb")
    expected = next((number for first, last, number in ranges if first <= place <= last), None)
    _, system = read.find(ip_address(base + place))
    assert (None if system is None else system.number) == expected


def test_overlapping_ranges_raise_an_error():
    tree = Tree()
    tree.add(16, 31, {"asn": 1})
    for first, last in ((16, 31), (20, 20), (0, 63), (31, 32)):
        with pytest.raises(ValueError, match="overlap"):
            tree.add(first, last, {"asn": 2})
    for first, last in ((5, 4), (-1, 4), (0, 1 << 128)):
        with pytest.raises(ValueError, match="no range"):
            tree.add(first, last, {"asn": 2})
