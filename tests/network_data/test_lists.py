"""Lists of addresses: what is read, what is refused, and that a set holds what a plain reading of the list says."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.network_data.lists import AddressSet, read_list
from svc.network_data.refused import NetworkFileError


def holds(listed: AddressSet, *addresses: str) -> list[bool]:
    return [ip_address(address) in listed for address in addresses]


def test_addresses_and_networks_of_both_families_are_read_and_comments_are_not():
    listed = read_list(
        b"\xef\xbb\xbf# exits\r\n\r\n 81.2.69.0/24 # a school\n81.2.70.1\n; old\n2a00:1450::/32\n2a03::1\n"
    )
    assert holds(listed, "81.2.69.0", "81.2.69.255", "81.2.70.1", "2a00:1450:ffff::1", "2a03::1") == [True] * 5
    assert holds(listed, "81.2.68.255", "81.2.70.0", "81.2.70.2", "2a00:1451::", "2a03::", "2a03::2") == [False] * 6


def test_a_network_may_have_bits_behind_its_prefix():
    assert holds(read_list(b"81.2.69.160/24\n"), "81.2.69.1", "81.2.70.1") == [True, False]


def test_ranges_that_overlap_or_touch_are_one():
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
        (b"81.2.69.1\n\xff\xfe\n", 2, "not text"),
        (b"", None, "holds no address"),
        (b"# only words\n", None, "holds no address"),
    ],
)
def test_what_is_no_list_is_refused_with_its_line(content: bytes, line: int | None, says: str):
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
def test_a_set_holds_what_a_plain_reading_of_the_list_says(networks, place):
    listed = read_list("\n".join(map(str, networks)).encode())
    for address in (IPv4Address(0x51024000 + place), IPv6Address((0x2A00 << 112) + place)):
        assert (address in listed) == any(address in network for network in networks)
