"""The table of networks that figures were measured with, as a database."""

from ipaddress import ip_address

from bench.detection.npm_databases import networks_database
from svc.network_data.mmdb import Database

BASE = int(ip_address("81.2.69.0"))
FILES = {
    "asn-ipv4-num.csv": (
        f'{BASE},{BASE + 255},20712,"Andrews & Arnold Ltd"\n'
        f'{BASE + 200},{BASE + 300},64496,"Later, Inc."\n'
        f"{BASE + 210},{BASE + 220},64497,Inside\n"
    ).encode(),
    "asn-ipv6-num.csv": f"{0x2A001450 << 96},{(0x2A001451 << 96) - 1},15169,Google LLC\n".encode(),
}


def test_in_overlapping_published_ranges_the_one_that_begins_first_applies():
    database = Database(networks_database(FILES), "asn.mmdb")
    for place, asn in ((160, 20712), (215, 20712), (255, 20712), (256, 64496), (300, 64496), (301, None)):
        _, system = database.find(ip_address(BASE + place))
        assert (system.number if system else None) == asn
    _, system = database.find(ip_address("2a00:1450::1"))
    assert system is not None
    assert (system.number, system.name) == (15169, "Google LLC")
