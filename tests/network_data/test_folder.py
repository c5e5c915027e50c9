"""The folder: what each file is by its name, and what stays in use when files change, break and go."""

import os
from datetime import date
from ipaddress import ip_address
from pathlib import Path

import pytest

from svc.identify.network.facts import Known, Range, read_network
from svc.identify.network_data.folder import LIST_KINDS, NOTHING, FilesInUse, read_folder, signatures_of
from svc.identify.network_data.lists import Database
from svc.identify.network_data.lookup import BuiltInRanges, NetworkData
from tests.support.mmdb_writer import Tree

IP = ip_address("81.2.69.160")


def country(code: str, built_at_s: int = 1_767_225_600) -> bytes:
    tree = Tree()
    tree.add(int(IP), int(IP), {"country_code": code})
    return tree.content("country", built_at_s)


def known(reading: FilesInUse) -> Known | None:
    return NetworkData(None, reading).find(IP)


def problem(reading: FilesInUse, name: str) -> str:
    found = reading[name].problem
    assert found is not None
    return found.says


@pytest.mark.parametrize(
    ("name", "found"),
    [
        *((f"{prefix}.txt", Range(kind, "", f"{prefix}.txt")) for prefix, kind in LIST_KINDS.items()),
        ("torbulkexitlist.txt", Range("tor", "", "torbulkexitlist.txt")),
        ("VPN-ranges 2.TXT", Range("vpn", "", "VPN-ranges 2.TXT")),
        ("crawler-Common_Crawl.txt", Range("bot", "Common Crawl", "crawler-Common_Crawl.txt")),
    ],
)
def test_the_name_of_a_list_gives_the_kind_of_its_addresses(tmp_path: Path, name: str, found: Range):
    (tmp_path / name).write_text("81.2.69.0/24\n")
    assert known(read_folder(tmp_path)) == Known((found,))


def test_a_name_without_a_kind_is_rejected_and_documentation_files_are_ignored(tmp_path: Path):
    for name in ("README", "LICENSE.txt", "CREDITS-free.md", "notes.md", ".tor.txt.part"):
        (tmp_path / name).write_text("81.2.69.160\n")
    assert read_folder(tmp_path) == {}
    for name in ("exits.txt", "asn.csv", "country.mmdb.gz"):
        (tmp_path / name).write_text("81.2.69.160\n")
        assert "residential-proxy*.txt" in problem(read_folder(tmp_path), name)


def test_a_missing_folder_is_empty_and_a_path_that_is_not_a_folder_is_an_error(tmp_path: Path):
    assert read_folder(tmp_path / "none") == {}
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        read_folder(tmp_path / "file")


def test_a_file_that_is_renamed_while_the_folder_is_listed_leaves_the_others(tmp_path: Path):
    (tmp_path / "tor.txt").write_text("81.2.69.1\n")
    (tmp_path / "vpn.txt.new").write_text("81.2.69.2\n")
    with os.scandir(tmp_path) as found:
        listed = list(found)
    (tmp_path / "vpn.txt.new").rename(tmp_path / "vpn.txt")
    assert list(signatures_of(listed)) == ["tor.txt"]


def test_an_unchanged_folder_is_not_read_again(tmp_path: Path):
    (tmp_path / "tor.txt").write_text("81.2.69.160\n")
    first = read_folder(tmp_path)
    assert read_folder(tmp_path, first) is first
    (tmp_path / "vpn.txt").write_text("81.2.69.160\n")
    second = read_folder(tmp_path, first)
    assert second["tor.txt"] is first["tor.txt"]


def test_a_broken_file_is_rejected_and_the_earlier_data_stays(tmp_path: Path):
    file = tmp_path / "tor.txt"
    file.write_text("81.2.69.160\n")
    before = read_folder(tmp_path)
    file.write_text("81.2.69.160\n81.2.69.161\nnonsense\n")
    broken = read_folder(tmp_path, before)
    assert broken["tor.txt"].problem is not None
    assert broken["tor.txt"].problem.line == 3
    assert known(broken) == known(before) == Known((Range("tor", "", "tor.txt"),))
    file.write_text("81.2.69.161\n")
    mended = read_folder(tmp_path, broken)
    assert mended["tor.txt"].problem is None
    assert known(mended) is None


def test_a_file_that_was_never_valid_is_not_used(tmp_path: Path):
    (tmp_path / "tor.txt").write_text("nonsense\n")
    (tmp_path / "country.mmdb").write_bytes(country("GB")[:100])
    reading = read_folder(tmp_path)
    assert not NetworkData(None, reading)
    assert NetworkData(None, reading).state(date(2026, 1, 1), 180) == "missing"


def test_a_removed_file_is_dropped(tmp_path: Path):
    (tmp_path / "tor.txt").write_text("81.2.69.160\n")
    before = read_folder(tmp_path)
    (tmp_path / "tor.txt").unlink()
    assert known(read_folder(tmp_path, before)) is None


def test_a_database_overwritten_in_place_stays_usable(tmp_path: Path):
    """Under a memory map of the file itself this would end the process."""
    file = tmp_path / "country.mmdb"
    file.write_bytes(country("GB"))
    reading = read_folder(tmp_path)
    source = reading["country.mmdb"].source
    assert isinstance(source, Database)
    os.truncate(file, 0)
    found, _ = source.find(IP)
    assert found is not None
    assert found.code == "GB"
    assert "not a complete MaxMind database" in problem(read_folder(tmp_path, reading), "country.mmdb")


def test_a_file_replaced_by_one_of_the_same_size_and_time_is_detected(tmp_path: Path):
    file, other = tmp_path / "country.mmdb", tmp_path / ".country.mmdb"
    for path, code in ((file, "GB"), (other, "SE")):
        path.write_bytes(country(code))
        os.utime(path, ns=(1, 1))
    before = read_folder(tmp_path)
    other.replace(file)
    after = known(read_folder(tmp_path, before))
    assert after is not None
    assert after.country is not None
    assert after.country.code == "SE"


def test_of_two_databases_the_newer_build_is_used(tmp_path: Path):
    (tmp_path / "a.mmdb").write_bytes(country("GB", 1_700_000_000))
    (tmp_path / "b.mmdb").write_bytes(country("SE", 1_767_225_600))
    found = known(read_folder(tmp_path))
    assert found is not None
    assert found.country is not None
    assert found.country.source == "b.mmdb"


def test_all_entries_about_an_address_are_kept(tmp_path: Path):
    (tmp_path / "tor.txt").write_text("185.220.101.1\n")
    (tmp_path / "attack.txt").write_text("185.220.101.0/24\n")
    found = NetworkData(BuiltInRanges(), read_folder(tmp_path)).find(ip_address("185.220.101.1"))
    assert found is not None
    assert [(one.kind, one.source) for one in found.ranges] == [
        ("attack", "attack.txt"), ("tor", "tor.txt"), ("tor", "built-in ranges"),
    ]  # fmt: skip


def test_data_is_as_old_as_its_oldest_part(tmp_path: Path):
    (tmp_path / "country.mmdb").write_bytes(country("GB", 1_767_225_600))
    data = NetworkData(None, read_folder(tmp_path))
    assert data.state(date(2026, 1, 31), 30) == "ok"
    assert data.state(date(2026, 2, 1), 30) == "stale"
    assert data.state(date(2026, 2, 1), 10**12) == "ok", "a limit that no age reaches"
    (tmp_path / "tor.txt").write_text("81.2.69.160\n")
    os.utime(tmp_path / "tor.txt", (1_700_000_000, 1_700_000_000))
    assert NetworkData(None, read_folder(tmp_path)).state(date(2026, 1, 31), 30) == "stale"
    assert NetworkData(None, NOTHING).state(date(2026, 1, 31), 30) == "missing"


def test_an_address_in_a_network_with_several_listed_vpn_servers_is_a_vpn(tmp_path: Path):
    (tmp_path / "vpn-a.txt").write_text("81.2.69.1\n81.2.70.1\n81.2.71.0/25\n")
    (tmp_path / "vpn-b.txt").write_text("81.2.69.200\n81.2.70.1\n")
    reading = read_folder(tmp_path)
    data = NetworkData(None, reading)
    for ip, vpn in (("81.2.69.160", True), ("81.2.70.160", False), ("81.2.71.160", False), ("81.2.69.1", True)):
        assert read_network(ip, data).vpn is vpn, ip
    found = data.find(IP)
    assert found is not None
    assert [(one.kind, one.source) for one in found.ranges] == [
        ("vpn_neighbor", "2 or more listed VPN servers in its /24")
    ]
    assert not read_network(str(IP), NetworkData(None, reading, vpn_neighbors=0)).vpn
    assert not read_network(str(IP), NetworkData(None, reading, vpn_neighbors=3)).vpn


def test_networks_by_as_number_have_the_flags_of_their_list(tmp_path: Path):
    tree = Tree()
    for place, name in enumerate(("Some Company", "Some Telecom", None)):
        record = {"autonomous_system_number": 64496 + place}
        tree.add(int(IP) + place, int(IP) + place, record | ({"autonomous_system_organization": name} if name else {}))
    (tmp_path / "asn.mmdb").write_bytes(tree.content("asn", 1_767_225_600))
    assert not read_network(str(IP), NetworkData(None, read_folder(tmp_path))).hosting
    (tmp_path / "asn-hosting.csv").write_text("ASN,Entity\n64496,A\n64497,B\n64498,C\n")
    reading = read_folder(tmp_path)
    data = NetworkData(None, reading)
    assert [read_network(str(IP + place), data).hosting for place in range(3)] == [True, False, True]
    (tmp_path / "asn-vpn.txt").write_text("AS64496\n")
    assert read_network(str(IP), NetworkData(None, read_folder(tmp_path))).vpn
    dates = {file: kind for file, kind, _ in data.dates}
    assert dates == {"asn.mmdb": "asn", "asn-hosting.csv": "asn-hosting"}
