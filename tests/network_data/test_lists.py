"""Lists of addresses: what is read, what is refused, and that a set holds what a plain reading of the list says."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.network_data import NetworkFileError
from svc.identify.network_data.lists import AddressSet, crowded_networks, read_as_numbers, read_list, read_servers


def holds(listed: AddressSet, *addresses: str) -> list[bool]:
    return [ip_address(address) in listed for address in addresses]


def test_addresses_and_networks_of_both_families_are_read_and_comments_are_skipped():
    listed = read_list(
        b"\xef\xbb\xbf# exits\r\n\r\n 81.2.69.0/24 # a school\n81.2.70.1\n; old\n2a00:1450::/32\n2a03::1\n"
    )
    assert holds(listed, "81.2.69.0", "81.2.69.255", "81.2.70.1", "2a00:1450:ffff::1", "2a03::1") == [True] * 5
    assert holds(listed, "81.2.68.255", "81.2.70.0", "81.2.70.2", "2a00:1451::", "2a03::", "2a03::2") == [False] * 6


def test_a_network_may_have_host_bits():
    assert holds(read_list(b"81.2.69.160/24\n"), "81.2.69.1", "81.2.70.1") == [True, False]


def test_mapped_addresses_are_the_ipv4_addresses_that_a_visitor_with_them_has():
    content = b"::ffff:81.2.69.1\n::ffff:81.2.70.0/120\n::ffff:5103:1\n::fffe:81.2.69.1\n::ffff:99.0.0.0/104\n"
    listed, servers = read_servers(content)
    assert holds(listed, "81.2.69.1", "81.2.70.255", "81.3.0.1", "::fffe:81.2.69.1", "99.255.255.255") == [True] * 5
    assert holds(listed, "81.2.69.0", "81.2.71.0", "98.255.255.255", "100.0.0.0") == [False] * 4
    assert [str(IPv4Address(number)) for number in servers] == ["81.2.69.1", "81.3.0.1"]


def test_overlapping_or_adjacent_ranges_are_merged():
    listed = read_list(b"81.2.69.0/25\n81.2.69.128/25\n81.2.69.7\n2a00::/33\n2a00:0:8000::/33\n")
    assert len(listed) == 2
    assert holds(listed, "81.2.69.127", "81.2.69.128", "2a00:0:ffff::1") == [True] * 3


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b"81.2.69.1\nnonsense\n", 2, "nonsense"),
        (b"<!DOCTYPE html>\n", 1, "DOCTYPE"),
        (b"# one\n81.2.69\n", 2, "81.2.69"),
        (b"81.2.69.01\n", 1, "81.2.69.01"),
        (b"81.2.69.0/33\n", 1, "/33"),
        (b"81.2.69.0/\n", 1, "81.2.69.0/"),
        (b"81.2.69.0/\xd9\xa3\n", 1, "neither"),
        (b"81.2.69.1 81.2.69.2\n", 1, "one a line"),
        (b"fe80::1%eth0\n", 1, "fe80"),
        (b"0.0.0.0/0\n", 1, "/8"),
        (b"::/0\n", 1, "/16"),
        (b"::ffff:0:0/103\n", 1, "/8"),
        (b"81.2.69.1\n\xff\xfe\n", 2, "not text"),
        (b"", None, "holds no address"),
        (b"# only words\n", None, "holds no address"),
    ],
)
def test_an_invalid_list_is_rejected_with_its_line(content: bytes, line: int | None, says: str):
    with pytest.raises(NetworkFileError, match=says) as refused:
        read_list(content)
    assert refused.value.line == line


V4 = st.tuples(st.integers(0, (1 << 10) - 1), st.integers(24, 32)).map(
    lambda pair: ip_network((0x51024000 + pair[0], pair[1]), strict=False)
)
V6 = st.tuples(st.integers(0, (1 << 10) - 1), st.integers(120, 128)).map(
    lambda pair: ip_network(((0x2A00 << 112) + pair[0], pair[1]), strict=False)
)


@given(st.lists(V4 | V6, min_size=1, max_size=12), st.integers(0, (1 << 10) - 1))
def test_a_set_contains_exactly_the_listed_networks(networks, place):
    listed = read_list("\n".join(map(str, networks)).encode())
    for address in (IPv4Address(0x51024000 + place), IPv6Address((0x2A00 << 112) + place)):
        assert (address in listed) == any(address in network for network in networks)


def test_servers_are_the_addresses_that_a_list_names_individually():
    listed, servers = read_servers(b"81.2.69.9\n81.2.69.8/32\n81.2.69.9 # again\n81.2.70.0/24\n2a00::1\n")
    assert [str(IPv4Address(number)) for number in servers] == ["81.2.69.8", "81.2.69.9"]
    assert holds(listed, "81.2.70.7", "2a00::1") == [True, True]
    assert listed.addresses4 == 258


def test_a_network_is_crowded_by_distinct_addresses_of_all_lists_together():
    first, second, third = (int(IPv4Address(text)) for text in ("81.2.69.1", "81.2.69.200", "81.2.70.1"))
    assert crowded_networks([[first], [first, third]], 2) == frozenset()
    assert crowded_networks([[first], [second, third]], 2) == {first >> 8}
    assert crowded_networks([[first], [second, third]], 1) == {first >> 8, third >> 8}


def test_as_numbers_are_read_bare_with_their_prefix_and_from_csv():
    assert read_as_numbers(b"# ours\nAS64496\n64497 # a\nas64498, Somebody\n; x\n") == {64496, 64497, 64498}
    assert read_as_numbers(b'ASN,Entity\r\n64496,"A, B"\r\n"64497","C"\r\n') == {64496, 64497}


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b"64496\n81.2.69.160\n", 2, "not an AS number"),
        (b"64496\nASN,Entity\n", 2, "not an AS number"),
        (b"0\n", 1, "not an AS number"),
        (b"4294967296\n", 1, "not an AS number"),
        (b"<html>\n", 1, "such as AS64496"),
        (b"ASN,Entity\n", None, "holds no AS number"),
        (b"64496\n\xff\n", 2, "not text"),
    ],
)
def test_an_invalid_as_number_list_is_rejected_with_its_line(content: bytes, line: int | None, says: str):
    with pytest.raises(NetworkFileError, match=says) as refused:
        read_as_numbers(content)
    assert refused.value.line == line
