"""`svc data update`: what is fetched, what is used of it, and what stays when a source breaks."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Generator
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

import pytest

from svc.features.webhooks.transport.connections import tls_context
from svc.identify.network_data import update as fetching
from svc.identify.network_data.folder import FolderError, kept_files, locked_folder, put, read_folder, read_source
from svc.identify.network_data.sources import BY_NAME, SOURCES, Source, addresses, whole
from svc.identify.network_data.update import (
    FetchError,
    Mirror,
    Publishers,
    UpdateError,
    UpdateOutcome,
    check_url,
    fetch,
    origin_of,
    update,
    wanted,
)
from tests.network_data.servers import Page, Publisher, connect_proxy
from tests.support.mmdb_writer import Tree

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 8, 9, 12, tzinfo=UTC)


def listed(count: int, first: str = "81.2.0.1") -> bytes:
    """So many addresses that do not touch."""
    start = int(ip_address(first))
    return "".join(f"{ip_address(start + 2 * place)}\n" for place in range(count)).encode()


def database(built_at_s: int, networks: int = 40) -> bytes:
    tree = Tree()
    for place in range(networks):
        tree.add(0x51020000 + 512 * place, 0x510200FF + 512 * place, {"country_code": "GB"})
    return tree.content("country", built_at_s)


@pytest.fixture
def publisher(tmp_path: Path) -> Generator[Publisher]:
    with Publisher(tmp_path).serving() as serving:
        yield serving


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "network"
    made.mkdir()
    return made


def source(publisher: Publisher, name: str = "tor-exits", *paths: str, **changes: object) -> Source:
    urls = tuple(f"{publisher.url}{path}" for path in paths or (f"/{name}",))
    fields = {"convert": addresses, "at_least": 10, "most_addresses": 1000, "most_bytes": 100_000, "checksum_url": None}
    return BY_NAME[name]._replace(urls=urls, **{**fields, **changes})  # type: ignore[arg-type]


def run(folder: Path, publisher: Publisher, *sources: Source, now: datetime = NOW) -> list[UpdateOutcome]:
    origin = Publishers(lambda url, most: fetch(url, publisher.tls, most, 5))
    return list(update(folder, sources, origin, now))


def one(folder: Path, publisher: Publisher, wanted: Source, now: datetime = NOW) -> UpdateOutcome:
    (outcome,) = run(folder, publisher, wanted, now=now)
    return outcome


# What is fetched, and what it becomes


def test_a_list_is_installed_with_its_checksum_and_credit_and_then_updated(publisher: Publisher, folder: Path):
    publisher.pages["/tor-exits"] = Page(b"# comment\n" + listed(20))
    first = one(folder, publisher, source(publisher))
    assert (first.result, first.problem, first.before) == ("installed", None, None)
    content = (folder / "tor-exits.txt").read_bytes()
    assert kept_files(folder) == {"tor-exits.txt": hashlib.sha256(content).hexdigest()}
    assert subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, check=False).returncode == 0
    assert "MIT" in (folder / "CREDITS-free.md").read_text()
    publisher.pages["/tor-exits"] = Page(listed(25))
    second = one(folder, publisher, source(publisher), LATER)
    assert second.result == "updated"
    assert second.before is not None
    assert second.after is not None
    assert (second.before.entries, second.before.built_at.isoformat()) == (20, "2026-08-01")
    assert (second.after.entries, second.after.built_at.isoformat()) == (25, "2026-08-09")
    entry = read_folder(folder)["tor-exits.txt"]
    assert entry.problem is None
    assert set(read_folder(folder)) == {"tor-exits.txt"}


def test_a_request_reveals_nothing_about_this_machine(publisher: Publisher, folder: Path):
    publisher.pages["/tor-exits"] = Page(listed(20))
    one(folder, publisher, source(publisher))
    ((_, headers),) = publisher.requests
    assert {name.lower() for name in headers} == {"host", "user-agent", "accept-encoding"}
    assert headers["User-Agent"].startswith("svc/")


def test_parts_are_joined_and_a_discontinued_one_is_named_and_omitted(publisher: Publisher, folder: Path):
    publisher.pages |= {"/a": Page(listed(20)), "/b": Page(listed(10, "81.3.0.1"))}
    three = source(publisher, "vpn-firstparty", "/a", "/b", "/gone")
    outcome = one(folder, publisher, three)
    assert outcome.result == "installed"
    assert outcome.after is not None
    assert outcome.after.entries == 30
    assert outcome.problem is not None
    assert "/gone: the server said 404" in outcome.problem
    publisher.pages["/b"] = Page(b"", 500)
    before = (folder / "vpn-firstparty.txt").read_bytes()
    assert one(folder, publisher, three).result == "failed"
    assert (folder / "vpn-firstparty.txt").read_bytes() == before


def test_an_unchanged_list_keeps_its_date_unless_its_source_rarely_changes(publisher: Publisher, folder: Path):
    publisher.pages |= {"/tor-exits": Page(listed(20)), "/relay-icloud": Page(listed(20))}
    both = [source(publisher), source(publisher, "relay-icloud")]
    run(folder, publisher, *both)
    outcomes = run(folder, publisher, *both, now=LATER)
    assert [outcome.result for outcome in outcomes] == ["unchanged", "unchanged"]
    times = [datetime.fromtimestamp((folder / one.file).stat().st_mtime, UTC) for one in both]
    assert times == [NOW, LATER]


def test_a_date_from_the_server_is_used_but_never_one_in_the_future(publisher: Publisher, folder: Path):
    for stated, expected in (
        ("Wed, 01 Jul 2026 10:00:00 GMT", "2026-07-01"),
        ("Wed, 01 Jul 2037 10:00:00 GMT", "2026-08-09"),
        ("some day", "2026-08-09"),
    ):
        page = Page(listed(20 + len(expected + stated)), headers=(("Last-Modified", stated),))
        publisher.pages["/tor-exits"] = page
        outcome = one(folder, publisher, source(publisher), LATER)
        assert outcome.after is not None
        assert outcome.after.built_at.isoformat() == expected


def test_a_database_is_verified_against_the_checksum_of_its_publisher(publisher: Publisher, folder: Path):
    content = database(1_780_000_000)
    checked = source(publisher, "country", convert=whole, checksum_url=f"{publisher.url}/sum", at_least=10)
    publisher.pages |= {"/country": Page(content), "/sum": Page(b"0" * 64 + b"  user-country.mmdb\n")}
    outcome = one(folder, publisher, checked)
    assert outcome.result == "failed"
    assert "SHA-256" in (outcome.problem or "")
    assert not (folder / "country.mmdb").exists()
    digest = hashlib.sha256(content).hexdigest()
    publisher.pages["/sum"] = Page(f"{digest}  user-country.mmdb\n".encode())
    assert one(folder, publisher, checked).result == "installed"
    older = database(1_770_000_000)
    publisher.pages |= {"/country": Page(older), "/sum": Page(hashlib.sha256(older).hexdigest().encode())}
    assert one(folder, publisher, checked).result == "older"
    assert (folder / "country.mmdb").read_bytes() == content


# What is not used


@pytest.mark.parametrize(
    ("page", "says"),
    [
        (Page(b"<!DOCTYPE html>\n" + listed(30)), "DOCTYPE"),
        (Page(listed(30) + b"\xff\xfe\x00"), "not as expected"),
        (Page(b""), "no address"),
        (Page(listed(14)), "remove the file and update again"),
        (Page(listed(400)), "remove the file and update again"),
        (Page(listed(5)), "fewer than 10"),
        (Page(listed(28) + b"10.0.0.0/8\n"), "more than 1,000"),
        (Page(listed(28) + b"0.0.0.0/0\n"), "0.0.0.0/0"),
        (Page(listed(30)[:-4] + b"x\n"), "neither an address"),
        (Page(b"#" * 100_001), "larger than 100,000 bytes"),
        (Page(listed(30), headers=(("Content-Length", "999999"),)), "cannot be fetched"),
        (Page(listed(30), headers=(("Content-Encoding", "gzip"),)), "compressed"),
        (Page(listed(30), 500), "the server said 500"),
        (Page(listed(30), 404), "the server said 404"),
        (Page(b"", 302, (("Location", "http://localhost/tor"),)), "not an https:// URL"),
        (Page(b"", 302, (("Location", "/tor-exits"),)), "redirects more than"),
        (Page(b"", 302), "the server said 302"),
    ],
)
def test_an_unreadable_or_suspicious_download_changes_nothing_and_others_are_updated(
    publisher: Publisher, folder: Path, page: Page, says: str
):
    publisher.pages |= {"/tor-exits": Page(listed(30)), "/relay-icloud": Page(listed(30))}
    both = [source(publisher), source(publisher, "relay-icloud")]
    run(folder, publisher, *both)
    before = read_folder(folder)
    publisher.pages |= {"/tor-exits": page, "/relay-icloud": Page(listed(31))}
    broken, other = run(folder, publisher, *both, now=LATER)
    assert broken.result == "failed"
    assert says in (broken.problem or "")
    assert other.result == "updated"
    after = read_folder(folder, before)
    assert after["tor-exits.txt"] is before["tor-exits.txt"]
    assert after["relay-icloud.txt"] is not before["relay-icloud.txt"]


def test_a_corrupt_installed_file_is_replaced_whatever_its_size(publisher: Publisher, folder: Path):
    publisher.pages["/tor-exits"] = Page(listed(30))
    one(folder, publisher, source(publisher))
    (folder / "tor-exits.txt").write_bytes(b"\x00\xff")
    assert one(folder, publisher, source(publisher), LATER).result == "updated"
    assert read_folder(folder)["tor-exits.txt"].problem is None


def test_an_operator_file_is_never_replaced(publisher: Publisher, folder: Path):
    (folder / "tor-exits.txt").write_text("81.2.69.160\n")
    publisher.pages["/tor-exits"] = Page(listed(30))
    outcome = one(folder, publisher, source(publisher))
    assert outcome.result == "failed"
    assert "was not put there by `svc`" in (outcome.problem or "")
    assert publisher.requests == []
    assert (folder / "tor-exits.txt").read_text() == "81.2.69.160\n"


def test_databases_installed_before_checksums_existed_are_replaced(publisher: Publisher, folder: Path):
    (folder / "CREDITS-free.md").write_text("# Where these databases are from\n\n## country.mmdb\n\nAn npm package.\n")
    (folder / "country.mmdb").write_bytes(database(1_770_000_000, 400))
    publisher.pages["/country"] = Page(database(1_780_000_000, 20))
    outcome = one(folder, publisher, source(publisher, "country", convert=whole, at_least=10))
    assert (outcome.result, outcome.problem) == ("updated", None)


def test_a_database_of_another_kind_is_not_accepted(publisher: Publisher, folder: Path):
    publisher.pages["/asn"] = Page(database(1_780_000_000))
    outcome = one(folder, publisher, source(publisher, "asn", convert=whole))
    assert "kind country" in (outcome.problem or "")


def test_a_stalled_server_times_out(publisher: Publisher):
    publisher.pages["/slow"] = Page(listed(100), hangs=True)
    with pytest.raises(FetchError, match=r"not fetched within 0\.2 s"):
        fetch(f"{publisher.url}/slow", publisher.tls, 100_000, 0.2)


def test_the_proxy_of_the_environment_is_used(publisher: Publisher, monkeypatch: pytest.MonkeyPatch):
    publisher.pages["/list"] = Page(listed(20))
    with connect_proxy() as (url, asked):
        monkeypatch.setenv("HTTPS_PROXY", url)
        monkeypatch.setenv("NO_PROXY", "")
        assert fetch(f"{publisher.url}/list", publisher.tls, 10_000).content == listed(20)
        monkeypatch.setenv("NO_PROXY", "localhost")
        assert fetch(f"{publisher.url}/list", publisher.tls, 10_000).content == listed(20)
    assert asked == [publisher.url.removeprefix("https://")]


def test_a_server_without_a_trusted_certificate_is_rejected(publisher: Publisher):
    publisher.pages["/list"] = Page(listed(100))
    with pytest.raises(FetchError, match="certificate"):
        fetch(f"{publisher.url}/list", tls_context(), 100_000)
    assert publisher.requests == []


@pytest.mark.parametrize("url", ["http://lists.example/tor", "ftp://lists.example/tor", "file:///etc/passwd", "https:"])
def test_only_https_is_used(url: str):
    with pytest.raises(FetchError, match="not an https:// URL"):
        check_url(url)


@pytest.mark.parametrize("url", ["https://[bad", "https://lists.example:99999/tor", "https://lists.example:port/"])
def test_an_invalid_url_is_reported(url: str):
    with pytest.raises(FetchError, match="is not a URL"):
        check_url(url)


def test_an_unusable_proxy_or_redirect_is_reported(publisher: Publisher, monkeypatch: pytest.MonkeyPatch):
    publisher.pages["/list"] = Page(b"", 302, (("Location", "/\xfc"),))
    with pytest.raises(FetchError, match="not ASCII"):
        fetch(f"{publisher.url}/list", publisher.tls, 10_000)
    monkeypatch.setenv("NO_PROXY", "")
    for proxy, says in (("socks5://127.0.0.1:1", "names no http"), ("127.0.0.1:1", "cannot be fetched")):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        with pytest.raises(FetchError, match=says):
            fetch(f"{publisher.url}/list", publisher.tls, 10_000)


def test_a_password_in_a_url_is_rejected_and_not_printed():
    with pytest.raises(FetchError) as rejected:
        check_url("https://me:secret@lists.example/tor")
    assert "secret" not in str(rejected.value)


# Interruptions, and two at a time


@pytest.mark.slow(2)
@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_killed_update_leaves_a_valid_file_which_the_next_one_replaces(publisher: Publisher, folder: Path, step: int):
    """Each of the three files that a replacement writes, at the moment before it takes its name."""
    publisher.pages["/tor-exits"] = Page(listed(20))
    one(folder, publisher, source(publisher))
    before = (folder / "tor-exits.txt").read_bytes()
    code = f"""
import os, pathlib
from svc.identify.network_data import folder
take_name, left = pathlib.Path.replace, [{step}]
def dying(path, target):
    left[0] -= 1
    if left[0] == 0:
        os._exit(9)
    return take_name(path, target)
pathlib.Path.replace = dying
folder.put(pathlib.Path({str(folder)!r}), "tor-exits.txt", b"81.2.0.1\\n", "credit")
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert (folder / "tor-exits.txt").read_bytes() == before
    assert {name: entry.problem for name, entry in read_folder(folder).items()} == {"tor-exits.txt": None}
    publisher.pages["/tor-exits"] = Page(listed(21))
    assert one(folder, publisher, source(publisher), LATER).result == "updated"
    assert subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, check=False).returncode == 0


def test_two_commands_never_change_one_folder_at_the_same_time(folder: Path):
    with pytest.raises(BlockingIOError), locked_folder(folder):
        raise BlockingIOError  # of what is done there, not of the lock
    with locked_folder(folder), pytest.raises(FolderError, match="another command"), locked_folder(folder):
        pass
    with locked_folder(folder):
        pass


def test_a_corrupt_checksum_list_is_reported(folder: Path):
    (folder / "SHA256SUMS").write_text("nonsense\n")
    with pytest.raises(FolderError, match="line 1 is not a checksum"):
        kept_files(folder)


# Mirrors


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    made = tmp_path / "mirror"
    made.mkdir()
    for file, content in (("tor-exits.txt", listed(500)), ("relay-icloud.txt", listed(600))):
        put(made, file, content, "credit", NOW)
    (made / "attack.txt").write_text("81.2.69.160\n")
    return made


def test_an_installed_folder_is_a_mirror_for_others(mirror: Path, folder: Path):
    origin = origin_of(str(mirror), lambda: pytest.fail("no TLS is needed"))
    sources = wanted(folder, (), origin)
    assert [source.file for source in sources] == ["tor-exits.txt", "relay-icloud.txt"]
    assert [outcome.result for outcome in update(folder, sources, origin, LATER)] == ["installed", "installed"]
    assert {path.name for path in folder.glob("[!.]*")} == {path.name for path in mirror.glob("[!.]*")} - {"attack.txt"}
    assert datetime.fromtimestamp((folder / "tor-exits.txt").stat().st_mtime, UTC) == NOW


def test_a_mirror_is_served_over_https_too(mirror: Path, folder: Path, publisher: Publisher):
    publisher.pages |= {f"/lists/{path.name}": Page(path.read_bytes()) for path in mirror.iterdir()}
    origin = origin_of(f"{publisher.url}/lists/", lambda: publisher.tls)
    assert [outcome.result for outcome in update(folder, wanted(folder, (), origin), origin, NOW)] == ["installed"] * 2


def test_a_mirror_file_that_does_not_match_its_checksum_is_not_used(mirror: Path, folder: Path):
    (mirror / "tor-exits.txt").write_bytes(listed(500) + b"81.9.0.1\n")
    (mirror / "relay-icloud.txt").unlink()
    origin = origin_of(str(mirror), lambda: pytest.fail("no TLS is needed"))
    changed, missing = update(folder, wanted(folder, (), origin), origin, NOW)
    assert "SHA-256" in (changed.problem or "")
    assert missing.result == "failed"
    assert read_folder(folder) == {}


def test_an_outdated_mirror_changes_nothing(mirror: Path, folder: Path):
    put(folder, "tor-exits.txt", listed(510), BY_NAME["tor-exits"].credit, LATER)
    origin = origin_of(str(mirror), lambda: pytest.fail("no TLS is needed"))
    outcomes = {
        outcome.source.name: outcome.result for outcome in update(folder, [BY_NAME["tor-exits"]], origin, LATER)
    }
    assert outcomes == {"tor-exits": "older"}
    assert (folder / "tor-exits.txt").read_bytes() == listed(510)


@pytest.mark.parametrize("checksums", [None, b"nonsense\n", b"\xff\n", b"0" * 64 + b"  ../escaped\n", b"#" * 70_000])
def test_a_folder_without_checksums_is_not_a_mirror(tmp_path: Path, checksums: bytes | None):
    if checksums is not None:
        (tmp_path / "SHA256SUMS").write_bytes(checksums)
    with pytest.raises(UpdateError, match=r"is not a mirror.*SHA256SUMS"):
        origin_of(str(tmp_path), lambda: pytest.fail("no TLS is needed"))


# Which sources


def test_requested_and_installed_sources_are_fetched(mirror: Path, folder: Path):
    publishers = Publishers(lambda url, most: pytest.fail("nothing is asked"))
    assert {one.name for one in wanted(folder, (), publishers)} == {one.name for one in SOURCES if one.recommended}
    put(folder, "vpn-x4bnet.txt", listed(20), "credit")
    put(folder, "hosting-x4bnet.txt", listed(20), "credit")
    (folder / "hosting-x4bnet.txt").unlink()
    names = {one.name for one in wanted(folder, ("tor-exits",), publishers)}
    assert names == {"tor-exits", "vpn-x4bnet"}
    put(folder, "vpn-x4bnet.txt", listed(21), "credit")
    assert set(kept_files(folder)) == {"vpn-x4bnet.txt"}
    origin = Mirror(str(mirror), lambda file, most: fetching.Fetched((mirror / file).read_bytes(), None))
    assert {one.name for one in wanted(folder, ("asn",), origin)} == {"asn", "vpn-x4bnet"}
    (missing, _) = update(folder, wanted(folder, ("asn",), origin), origin, NOW)
    assert "has no asn.mmdb" in (missing.problem or "")
    with pytest.raises(UpdateError, match=r"no source 'tor'.*svc data sources"):
        wanted(folder, ("tor",), publishers)


def test_every_source_has_valid_names_limits_and_addresses():
    assert len(BY_NAME) == len({source.file for source in SOURCES}) == len(SOURCES)
    for source in SOURCES:
        assert all(check_url(url) for url in (*source.urls, *filter(None, [source.checksum_url])))
        assert source.license in source.credit
        assert source.at_least > 0
        if not source.file.endswith(".mmdb"):
            content = b"64496\n" if source.file.startswith("asn-") else b"81.2.69.160\n"
            assert read_source(source.file, content, NOW.date()).entries == 1


def test_published_formats_are_converted_to_lists():
    tor = BY_NAME["tor-exits"]
    published = b"fingerprint, ipaddr, port\nAA, 81.2.69.161, 9001\nBB, 2001:db8::1, 444\nCC, 81.2.69.161, 80\n"
    assert tor.convert(tor, [published]).splitlines()[2:] == [b"2001:db8::1", b"81.2.69.161"]
    with pytest.raises(ValueError, match="header"):
        tor.convert(tor, [b"ipaddr\n81.2.69.161\n"])
    proxies = BY_NAME["residential-proxy-avastel"]
    published = b"# x\nip_address;autonomous_system;confidence\n81.2.69.0/24;A;1.0\n81.2.70.0/24;B;0.6\n"
    assert proxies.convert(proxies, [published]).splitlines()[2:] == [b"81.2.69.0/24"]


def test_published_crawler_ranges_are_converted_to_a_list():
    kimi = BY_NAME["crawler-Kimi"]
    parts = [
        b'{"made": "2026-01-01", "prefixes": [{"ipv4Prefix": "81.2.69.0/24"}, {"ipv6Prefix": "2001:db8::/48"}]}',
        b'{"prefixes": [{"ipv4Prefix": "81.2.69.0/24"}, {"service": "unknown"}]}',
    ]
    content = kimi.convert(kimi, parts)
    assert content.splitlines()[2:] == [b"2001:db8::/48", b"81.2.69.0/24"]
    assert read_source(kimi.file, content, NOW.date()).entries == 2
    for broken in (b"<html>", b'{"prefixes": 1}', b"[]"):
        with pytest.raises(ValueError, match="not a JSON document"):
            kimi.convert(kimi, [broken])


def test_consumer_networks_are_left_out_of_the_hosting_networks():
    hosting = BY_NAME["asn-hosting"]
    published = b'ASN,Entity\n64496,"A, B\x1b[2J LLC"\n6939,"Hurricane"\n64497,"Some ISP, NG"\n64496,"again"\n'
    assert hosting.convert(hosting, [published]).splitlines()[2:] == [b"AS64496 # A, B[2J LLC"]
    for broken in (b"64496,A\n", b"ASN,Entity\nAS one,A\n"):
        with pytest.raises(ValueError, match=r"header|AS number"):
            hosting.convert(hosting, [broken])
