"""Installing the free databases, with a program in place of npm that packs what the test gives it."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from svc.network_data.folder import read_folder
from svc.network_data.free import FREE, NotInstalledError, Package, asn_database, country_database, install
from svc.network_data.lookup import NetworkData
from svc.network_data.writer import Tree
from tests.spec.commands import runner

BASE = int(ip_address("81.2.69.0"))
ASN_FILES = {
    "asn-ipv4-num.csv": (
        f'{BASE},{BASE + 255},20712,"Andrews & Arnold Ltd"\n'
        f'{BASE + 200},{BASE + 300},64496,"Later, Inc."\n'
        f"{BASE + 210},{BASE + 220},64497,Inside\n"
    ).encode(),
    "asn-ipv6-num.csv": f"{0x2A001450 << 96},{(0x2A001451 << 96) - 1},15169,Google LLC\n".encode(),
}


def tarball(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def country_files() -> dict[str, bytes]:
    tree = Tree()
    tree.add(BASE, BASE + 255, {"country_code": "GB"})
    return {"geo-whois-asn-country.mmdb": tree.content("country", 1_767_225_600), "../../escaped": b"x"}


def npm(place: Path, script: str) -> str:
    program = place / "npm"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def packed(place: Path, package: Package, content: bytes, **changes: Any) -> Package:
    """The package as a registry has it that serves this content."""
    (place / package.file).write_bytes(content)
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    return package._replace(**{"name": package.file, "integrity": f"sha512-{digest}", **changes})


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    place = tmp_path / "registry"
    place.mkdir()
    return place


def serving(registry: Path) -> str:
    """`npm pack NAME@VERSION` leaves the tarball where it is called, and says its name."""
    return npm(registry, f'[ "$1" = pack ] || exit 9\ncp "{registry}/${{2%@*}}" packed-1.0.tgz && echo packed-1.0.tgz')


def packages(registry: Path) -> list[Package]:
    country, asn = FREE
    return [packed(registry, country, tarball(country_files())), packed(registry, asn, tarball(ASN_FILES))]


def test_both_databases_and_their_credits_are_installed_and_found(registry: Path, tmp_path: Path):
    folder = tmp_path / "data" / "network"
    installed = install(folder, serving(registry), packages(registry))
    assert [(one.package.file, one.database.kind) for one in installed] == [
        ("country.mmdb", "country"),
        ("asn.mmdb", "asn"),
    ]
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert names == {"CREDITS-free.md", "SHA256SUMS", "asn.mmdb", "country.mmdb"}
    credit = (folder / "CREDITS-free.md").read_text()
    for named in ("CC BY 4.0", "CC0", "nro.net", "db-ip.com", "routeviews.org"):
        assert named in credit
    found = NetworkData(None, read_folder(folder)).find(ip_address("81.2.69.160"))
    assert found is not None
    assert found.country is not None
    assert found.system is not None
    assert (found.country.code, found.system.number, found.system.name) == ("GB", 20712, "Andrews & Arnold Ltd")


def test_in_overlapping_published_ranges_the_one_that_begins_first_applies(tmp_path: Path):
    (tmp_path / "asn.mmdb").write_bytes(asn_database(ASN_FILES))
    data = NetworkData(None, read_folder(tmp_path))
    for place, asn in ((215, 20712), (255, 20712), (256, 64496), (300, 64496), (301, None)):
        known = data.find(ip_address(BASE + place))
        assert (known.system.number if known and known.system else None) == asn


def test_an_installation_replaces_the_previous_one_and_keeps_operator_files(registry: Path, tmp_path: Path):
    folder = tmp_path / "network"
    folder.mkdir()
    (folder / "tor.txt").write_text("81.2.69.160\n")
    (folder / "asn.mmdb").write_bytes(b"old")
    install(folder, serving(registry), packages(registry))
    assert (folder / "tor.txt").read_text() == "81.2.69.160\n"
    assert all(entry.problem is None for entry in read_folder(folder).values())


def test_a_package_that_differs_from_the_pinned_one_is_not_installed(registry: Path, tmp_path: Path):
    country, asn = packages(registry)
    with pytest.raises(NotInstalledError, match="do not use it"):
        install(tmp_path / "network", serving(registry), [country, asn._replace(integrity=country.integrity)])
    assert not (tmp_path / "network").exists()


@pytest.mark.parametrize(
    ("files", "package"),
    [
        ({"README.md": b"moved"}, 0),
        ({"geo-whois-asn-country.mmdb": b"no database"}, 0),
        ({"asn-ipv4-num.csv": b"1,2\n", "asn-ipv6-num.csv": b""}, 1),
        ({"asn-ipv4-num.csv": b"", "asn-ipv6-num.csv": b""}, 1),
        ({"asn-ipv4-num.csv": b"\xff", "asn-ipv6-num.csv": b""}, 1),
    ],
)
def test_a_package_with_other_contents_is_not_installed(
    registry: Path, tmp_path: Path, files: dict[str, bytes], package: int
):
    with pytest.raises(NotInstalledError, match="is not as expected"):
        install(tmp_path / "network", serving(registry), [packed(registry, FREE[package], tarball(files))])
    assert not (tmp_path / "network").exists()


def test_an_invalid_tarball_is_not_installed(registry: Path, tmp_path: Path):
    with pytest.raises(NotInstalledError, match="is not as expected"):
        install(tmp_path / "network", serving(registry), [packed(registry, FREE[0], b"<html>")])


def test_a_country_package_is_installed_unchanged():
    files = country_files()
    assert country_database(files) is files["geo-whois-asn-country.mmdb"]


def test_the_command_reports_that_npm_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    run = runner(capsys, monkeypatch)
    run("data", "install", "free", "--data", tmp_path).assert_refused("no npm", FREE[0].name, "docs/network.md")


def test_the_command_shows_the_npm_error_and_the_manual_steps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    npm(tmp_path, 'echo "npm error code E404" >&2; exit 1')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    run = runner(capsys, monkeypatch)
    refused = run("data", "install", "free", "--data", tmp_path)
    refused.assert_refused("npm error code E404", FREE[0].version, "docs/network.md")
    assert not (tmp_path / "network").exists()


def test_the_command_rejects_a_registry_that_serves_other_contents(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    npm(tmp_path, "echo something else > packed.tgz")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    runner(capsys, monkeypatch)("data", "install", "free", "--data", tmp_path).assert_refused("do not use it")


def test_the_command_requires_the_data_directory(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SVC_DATA", raising=False)
    runner(capsys, monkeypatch)("data", "install", "free").assert_usage()


def test_the_pinned_packages_have_complete_versions_and_digests():
    for package in FREE:
        assert package.integrity.startswith("sha512-")
        assert len(base64.b64decode(package.integrity.removeprefix("sha512-"))) == 64
        assert package.version in package.credit
