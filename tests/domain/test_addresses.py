from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.http.callers.client_address import client_address
from svc.kernel.net.addresses import is_public, parse_ip

TRUSTED = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("81.2.69.160", "81.2.69.160"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("::ffff:81.2.69.160", "81.2.69.160"),
    ],
)
def test_an_address_has_one_canonical_form(text: str, canonical: str):
    assert parse_ip(text) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1.2.3.4",
        "1.2.3",
        "1.2.3.4.5",
        "01.2.3.4",
        "0x7f.1",
        "2130706433",
        "fe80::1%eth0",
        "1.2.3.4:80",
        "[::1]",
        "a",
    ],
)
def test_text_that_is_not_an_ip_literal_is_rejected(text: str):
    assert parse_ip(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1", "10.1.2.3", "100.64.0.1", "169.254.169.254", "172.31.255.255", "192.168.0.1", "192.0.2.7",
        "198.19.0.1", "203.0.113.5", "224.0.0.1", "255.255.255.255", "0.0.0.0", "168.63.129.16",
        "::1", "::", "fe80::1", "fc00::1", "ff02::1", "64:ff9b::1.2.3.4", "::127.0.0.1", "2001::1", "2001:db8::1",
        "2002:7f00:1::", "3fff::1", "2620:4f:8000::1",
    ],
)  # fmt: skip
def test_special_addresses_are_not_public(text: str):
    assert not is_public(ip_address(text))


@pytest.mark.parametrize(
    "text", ["81.2.69.160", "8.8.8.8", "172.32.0.1", "192.0.3.1", "2a00:1450:4009::1", "2606:4700::1"]
)
def test_ordinary_addresses_are_public(text: str):
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("81.2.69.160", "1.1.1.1", "81.2.69.160"),
        ("10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.1", "8.8.8.8, 81.2.69.160", "81.2.69.160"),
        ("10.0.0.1", "8.8.8.8, 81.2.69.160, 10.2.2.2", "81.2.69.160"),
        ("10.0.0.1", "8.8.8.8,fd00::7", "8.8.8.8"),
        ("10.0.0.1", "10.5.5.5", "10.5.5.5"),
        ("10.0.0.1", "8.8.8.8, nonsense", "10.0.0.1"),
        ("10.0.0.1", "8.8.8.8, nonsense, 10.3.3.3", "10.3.3.3"),
        ("10.0.0.1", "81.2.69.160:4711", "81.2.69.160"),
        ("10.0.0.1", "[2a00:1450:4009::1]:443", "2a00:1450:4009::1"),
        ("10.0.0.1", "2a00:1450:4009::1", "2a00:1450:4009::1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("::ffff:10.0.0.1", "81.2.69.160", "81.2.69.160"),
    ],
)
def test_the_client_is_the_rightmost_address_that_is_not_a_trusted_proxy(peer: str, forwarded: str | None, client: str):
    assert client_address(peer, forwarded, TRUSTED) == client


def test_without_trusted_proxies_no_header_is_trusted():
    assert client_address("127.0.0.1", "81.2.69.160", ()) == "127.0.0.1"


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_raises_an_exception(peer: str, forwarded: str):
    client_address(peer, forwarded, TRUSTED)
    client_address("10.0.0.1", forwarded, TRUSTED)
    parse_ip(forwarded)
