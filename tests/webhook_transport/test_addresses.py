"""Which addresses are dialed: none that is not public, in whatever form and at whatever moment (reliability R8)."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from itertools import product

import pytest

from svc.features.webhooks.transport.resolver import SystemResolver
from tests.support.receivers import THANKS, Responder, receiver, response
from tests.webhook_transport.loopback import NAME, Authority, Dialed, Names, issue_of, sending

PUBLIC_V4, PUBLIC_V6 = "81.2.69.160", "2a00:1450:4001:80b::200e"

HOSTILE = [
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "168.63.129.16",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.31.196.1", "192.52.193.1",
    "192.88.99.1", "192.168.1.1", "192.175.48.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
    "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "fe80::1",
    "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "100::1", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::",
    "2620:4f:8000::1", "3fff::1", "4000::1",
]  # fmt: skip
"""One of each range that is special, and the forms in which an address hides within another."""

RECORDS = {
    "alone": lambda hostile: (hostile,),
    "after a public address": lambda hostile: (PUBLIC_V4, PUBLIC_V6, hostile),
    "before a public address": lambda hostile: (hostile, PUBLIC_V6, PUBLIC_V4),
}
STAGES = ("create", "delivery", "retry")

CASES = list(product(HOSTILE, RECORDS, STAGES))


def test_there_are_at_least_200_cases():
    assert len(CASES) >= 200


@pytest.mark.slow
async def test_no_private_address_is_dialed_in_any_case(authority: Authority):
    """The name turns hostile at one stage. All dials are real; those to public addresses lead to loopback."""
    async with receiver(Responder(response("500 Internal Server Error")), authority.server(NAME)) as port:
        for hostile, records, stage in CASES:
            turned = STAGES.index(stage)
            answers = [(PUBLIC_V4,)] * turned + [RECORDS[records](hostile)] * (len(STAGES) - turned)
            backend, names = Dialed(leading_to=port), Names(**{NAME: answers})
            async with sending(authority, names, backend, networks=()) as sender:
                url = f"https://{NAME}/{hostile}"
                created = await issue_of(url, names)
                attempts = [await sender.post(url, b"{}", {}, 1) for _ in STAGES[1:]]
            case = f"{hostile} {records}, from {stage} on"
            assert created == ("not_public_address" if stage == "create" else None), case
            blocked = [attempted.error == "blocked_address" for attempted in attempts]
            assert blocked == [turned <= 1, turned <= 2], case
            assert set(backend.dials) <= {PUBLIC_V4}, case
            assert len(backend.dials) == max(0, turned - 1), case


async def test_a_persistent_connection_does_not_bypass_the_check_of_a_rebound_name(authority: Authority):
    names = Names(**{NAME: [(PUBLIC_V4,), ("127.0.0.1",), (PUBLIC_V4,)]})
    hears = Responder(THANKS)
    async with receiver(hears, authority.server(NAME)) as port:
        backend = Dialed(leading_to=port)
        async with sending(authority, names, backend, networks=()) as sender:
            errors = [(await sender.post(f"https://{NAME}/", b"{}", {}, 1)).error for _ in range(3)]
    assert errors == [None, "blocked_address", None]
    assert len(hears.requests) == 2
    assert backend.dials == [PUBLIC_V4]


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "LOCALHOST", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.1",
        "0", "①②⑦.0.0.1", "127。0。0。1", "\uff11\uff12\uff17.0.0.1", "[::1]",
        "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[::]",
    ],
)  # fmt: skip
async def test_unusual_notations_are_resolved_by_the_system_and_then_checked(authority: Authority, host: str):
    resolver, backend = SystemResolver(), Dialed()
    assert await issue_of(f"https://{host}:8443/x", resolver) == "not_public_address"
    async with sending(authority, resolver, backend, networks=()) as sender:
        assert (await sender.post(f"https://{host}:8443/x", b"{}", {}, 1)).error == "blocked_address"
    assert backend.dials == []


@pytest.mark.parametrize(
    "url",
    [
        "http://receiver.test/", "ftp://receiver.test/", "receiver.test", "", "https://", "https:///x",
        "https://user@receiver.test/", "https://user:word@receiver.test/", "https://@receiver.test/",
        "https://receiver.test/#part", "https://receiver.test#", "https://receiver.test:0/",
        "https://receiver.test:65536/", "https://receiver.test:https/", "https://receiver.test\\@elsewhere.test/",
        "https://re ceiver.test/", "https://receiver.test/a b", "https://receiver.test/\r\nX: y",
        "https://receiver.test/\x00", "https://receiver.test/\ud800", "https://nowhere.test/", "https://-.test/",
        "https://[fe80::1%25eth0]/", "https://[::1/", "https://receiver.test/".ljust(2049, "x"),
    ],
)  # fmt: skip
async def test_an_invalid_target_is_refused_before_it_is_stored_and_never_dialed(authority: Authority, url: str):
    names, backend = Names(**{NAME: (PUBLIC_V4,)}), Dialed()
    assert await issue_of(url, names) == "invalid_url"
    async with sending(authority, names, backend) as sender:
        assert (await sender.post(url, b"{}", {}, 1)).error in ("blocked_address", "dns_error")
    assert backend.dials == []


@pytest.mark.parametrize(
    "url",
    [
        "https://receiver.test", "HTTPS://Receiver.TEST/", "https://receiver.test:8443/a?b=c&d=%20", "https://receiver.test?q",
        "https://receiver.test/\u00fc/".ljust(2048, "x"),
    ],
)  # fmt: skip
async def test_an_https_url_whose_name_resolves_to_public_addresses_is_a_valid_target(url: str):
    names = Names(**{NAME: (PUBLIC_V4, PUBLIC_V6)})
    assert await issue_of(url, names) is None


@pytest.mark.parametrize("port", [1, 22, 80, 444, 1023])
async def test_a_port_of_another_service_is_neither_stored_nor_dialed_unless_opened(authority: Authority, port: int):
    """Decisions 8.7."""
    names, url = Names(**{NAME: (PUBLIC_V4,)}), f"https://{NAME}:{port}/"
    backend = Dialed()
    assert await issue_of(url, names) == "invalid_url"
    async with sending(authority, names, backend) as sender:
        assert (await sender.post(url, b"{}", {}, 1)).error == "blocked_address"
    assert backend.dials == []
    assert await issue_of(url, names, ports=frozenset({port})) is None
    for usual in (443, 1024, 65535):
        assert await issue_of(f"https://{NAME}:{usual}/", names) is None


async def test_an_address_of_this_machine_is_not_public(authority: Authority):
    """Decisions 8.7: unless the operator opens its network."""
    names = Names(**{NAME: (PUBLIC_V6, PUBLIC_V4)})
    own = ip_address(PUBLIC_V4)
    assert await issue_of(f"https://{NAME}/", names, is_own=own.__eq__) == "not_public_address"
    opened = [ip_network(PUBLIC_V4)]
    assert await issue_of(f"https://{NAME}/", names, opened, is_own=own.__eq__) is None


async def test_only_a_private_network_opened_by_the_operator_can_be_reached(authority: Authority):
    names = Names(**{NAME: ("10.1.2.3",), "other.test": ("10.2.2.3",)})
    opened = (ip_network("10.1.0.0/16"),)
    async with receiver(Responder(THANKS), authority.server(NAME)) as port:
        backend = Dialed(leading_to=port)
        async with sending(authority, names, backend, networks=opened) as sender:
            assert (await sender.post(f"https://{NAME}/", b"{}", {}, 1)).error is None
            assert (await sender.post("https://other.test/", b"{}", {}, 1)).error == "blocked_address"
    assert backend.dials == ["10.1.2.3"]
    assert await issue_of(f"https://{NAME}/", names, opened) is None
    assert await issue_of("https://other.test/", names, opened) == "not_public_address"


@pytest.mark.parametrize(
    "metadata", ["169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fd00:ec2::254"]
)
async def test_metadata_addresses_stay_blocked_even_where_everything_is_open(authority: Authority, metadata: str):
    everything, backend = (ip_network("0.0.0.0/0"), ip_network("::/0")), Dialed()
    async with sending(authority, Names(**{NAME: (metadata,)}), backend, networks=everything) as sender:
        assert (await sender.post(f"https://{NAME}/", b"{}", {}, 1)).error == "blocked_address"
    assert backend.dials == []
