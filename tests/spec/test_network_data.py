"""Signals.md 3, decisions 3.4 and 10: the operator's network files, in the service and on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import trio

from svc.identify.network_data.folder import put
from tests.network_data.servers import Page, Publisher
from tests.spec.commands import Run, run_beside, runner
from tests.support.live import PUBLIC_ADDRESS, Live, live_service, succeeded
from tests.support.mmdb_writer import Tree

pytestmark = pytest.mark.any_store

ADDRESS = int.from_bytes(map(int, PUBLIC_ADDRESS.split(".")))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("SVC_DATA", str(tmp_path))
    monkeypatch.setenv("SVC_NETWORK_STALE_DAYS", "30")
    return runner(capsys, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "network"
    made.mkdir()
    return made


def database(record: dict[str, Any]) -> bytes:
    tree = Tree()
    tree.add(ADDRESS - 8, ADDRESS + 8, record)
    return tree.content("a test", 1_767_225_600)


async def ask(live: Live, secret: str) -> dict[str, Any]:
    headers = {"x-svc-visitor-ip": PUBLIC_ADDRESS, "x-svc-visitor-user-agent": "x"}
    return succeeded(await live.identify(secret, origin=None, headers=headers))


@pytest.mark.slow(0.5)
async def test_a_running_service_loads_new_files_and_bills_only_successful_lookups(folder: Path, directory: Path):
    """Decisions 3.4: `unavailable` is free; the first file ends that, without a restart."""
    settings: dict[str, Any] = {"network_directory": str(folder), "network_interval_s": 0.02}
    async with live_service(directory, network_builtin=False, **settings) as live:
        _, secret = live.issue("secret", "production")
        before = live.balance()
        answer = await ask(live, secret)
        assert (answer["state"], answer["reason"]) == ("unavailable", "no_network_data")
        assert live.balance() == before
        (folder / "tor.txt").write_text(f"{PUBLIC_ADDRESS}\n")
        with trio.fail_after(60):
            while (answer := await ask(live, secret))["state"] == "unavailable":
                pass
        assert "tor" in {trigger["signal"] for trigger in answer["triggers"]}
        assert live.balance() < before


async def test_data_from_the_databases_is_stored_with_the_event(folder: Path, directory: Path):
    """Interface 2.4: country, network and its name."""
    (folder / "country.mmdb").write_bytes(database({"country_code": "GB"}))
    (folder / "asn.mmdb").write_bytes(database({"asn": "AS20712", "as_name": "A & A"}))
    async with live_service(directory, network_directory=str(folder)) as live:
        _, secret = live.issue("secret")
        await ask(live, secret)
        ((_, event),) = live.events()
        assert (event.country_code, event.country_name) == ("GB", "United Kingdom")
        assert (event.asn, event.asn_name) == ("20712", "A & A")


def test_data_status_shows_type_and_age_of_each_file(run: Run, folder: Path):
    (folder / "country.mmdb").write_bytes(database({"country_code": "GB"}))
    (folder / "tor.txt").write_text("81.2.69.160\n81.2.70.0/24\n")
    (folder / "vpn.txt").write_text("81.2.69.160\nnonsense\n")
    status = run("data", "status", "--json").json
    assert status["network_data"] == "stale"
    assert status["directory"] == str(folder)
    country, tor, vpn = status["files"]
    assert (country["file"], country["kind"], country["built_at"]) == ("country.mmdb", "country", "2026-01-01")
    assert country["stale"] is True
    assert country["age_days"] > 30
    assert (tor["kind"], tor["entries"], tor["age_days"], tor["stale"]) == ("tor", 2, 0, False)
    assert "kind" not in vpn
    assert "line 2" in vpn["problem"]
    text = run("data", "status").out
    for said in ("country.mmdb", "2026-01-01", "tor.txt", "line 2: 'nonsense'"):
        assert said in text


def test_data_status_reports_that_traffic_is_free_without_network_data(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SVC_NETWORK_BUILTIN", "false")
    status = run("data", "status", "--json").json
    assert status["network_data"] == "missing"
    assert "free" in status["identifications"]
    assert "free" in run("data", "status").out


def test_data_check_shows_the_source_file_of_each_fact(run: Run, folder: Path):
    (folder / "country.mmdb").write_bytes(database({"country_code": "GB"}))
    (folder / "asn.mmdb").write_bytes(database({"asn": "AS24940", "as_name": "Hetzner Online GmbH"}))
    (folder / "attack.txt").write_text("81.2.69.0/24\n")
    checked = run("data", "check", PUBLIC_ADDRESS, "--json").json
    assert checked == {
        "ip": PUBLIC_ADDRESS,
        "state": "enriched",
        "country_code": "GB",
        "country_name": "United Kingdom",
        "asn": "24940",
        "asn_name": "Hetzner Online GmbH",
        "hosting": True,
        "attack_source": True,
        "anonymity_network": "hosting",
        "sources": [
            {"fact": "attack", "says": "", "source": "attack.txt"},
            {"fact": "hosting", "says": "Hetzner Online GmbH", "source": "name of AS24940 in asn.mmdb"},
            {"fact": "country", "says": "GB", "source": "country.mmdb"},
            {"fact": "asn", "says": "24940 Hetzner Online GmbH", "source": "asn.mmdb"},
        ],
    }
    assert "attack.txt" in run("data", "check", PUBLIC_ADDRESS).out


def test_data_check_names_each_operator_whose_crawlers_an_address_has(run: Run, folder: Path):
    for name in ("Anthropic", "ClaudeBot"):
        (folder / f"crawler-{name}.txt").write_text(f"{PUBLIC_ADDRESS}\n")
    checked = run("data", "check", PUBLIC_ADDRESS, "--json").json
    assert (checked["crawler_of"], checked["asn_name"]) == ("Anthropic, ClaudeBot", "Anthropic")


def test_data_check_of_a_private_address_queries_no_source(run: Run, folder: Path):
    (folder / "attack.txt").write_text("10.0.0.0/8\n")
    checked = run("data", "check", "10.0.0.1", "--json").json
    assert checked == {"ip": "10.0.0.1", "state": "unavailable", "reason": "private_address"}


def test_a_folder_elsewhere_is_named_by_a_setting(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tor.txt").write_text("81.2.69.160\n")
    monkeypatch.setenv("SVC_NETWORK_DIRECTORY", str(elsewhere))
    assert run("data", "check", PUBLIC_ADDRESS, "--json").json["tor"] is True
    (tmp_path / "file").touch()
    monkeypatch.setenv("SVC_NETWORK_DIRECTORY", str(tmp_path / "file"))
    run("data", "status").assert_refused("cannot list", str(tmp_path / "file"))


# `svc data update`


def servers(count: int) -> bytes:
    return "".join(f"81.2.{place // 128}.{2 * (place % 128)}\n" for place in range(count)).encode()


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    made = tmp_path / "mirror"
    made.mkdir()
    put(made, "tor-exits.txt", servers(12_000), "credit")
    return made


@pytest.mark.slow
async def test_a_running_service_loads_the_files_of_an_update(folder: Path, mirror: Path, directory: Path):
    settings: dict[str, Any] = {"network_directory": str(folder), "network_interval_s": 0.02}
    async with live_service(directory, **settings) as live:
        _, secret = live.issue("secret")
        assert "tor" not in {trigger["signal"] for trigger in (await ask(live, secret))["triggers"]}
        updated = await run_beside("data", "update", "--data", directory, "--from", mirror, "--json")
        (file,) = updated.json["files"]
        assert (file["file"], file["result"], file["entries"]) == ("tor-exits.txt", "installed", 12_000)
        with trio.fail_after(60):
            while "tor" not in {trigger["signal"] for trigger in (await ask(live, secret))["triggers"]}:
                pass
        exposed = (await live.service.metrics.expose()).decode()
        assert re.search(r'svc_network_data_age_seconds\{file="tor-exits.txt",kind="tor"\} 0\.0', exposed)


def test_an_update_reports_changes_and_fails_with_a_line_for_each_failed_source(run: Run, folder: Path, mirror: Path):
    put(mirror, "relay-icloud.txt", servers(400), "credit")
    assert run("data", "update", "--from", mirror).status == 0
    put(mirror, "relay-icloud.txt", servers(410), "credit")
    put(mirror, "tor-exits.txt", servers(4_000), "credit")
    ran = run("data", "update", "--from", mirror, "--json")
    assert ran.status == 1
    tor, relay = json.loads(ran.out)["files"]
    assert (tor["result"], "entries" in tor) == ("failed", False)
    assert "remove the file and update again" in tor["problem"]
    assert (relay["result"], relay["entries_before"], relay["entries"]) == ("updated", 400, 410)
    first, last = ran.err.splitlines()
    assert first.startswith("svc: tor-exits.txt: what was fetched has 4,000 entries")
    assert last == "svc: 1 of 2 files could not be updated in full"
    assert run("data", "check", "81.2.0.0", "--json").json["tor"] is True


@pytest.mark.slow(0.1)
def test_an_update_over_https_trusts_only_the_given_authorities(run: Run, folder: Path, mirror: Path, tmp_path: Path):
    with Publisher(tmp_path).serving() as publisher:
        publisher.pages |= {f"/{path.name}": Page(path.read_bytes()) for path in mirror.iterdir()}
        run("data", "update", "--from", publisher.url).assert_refused("is not a mirror", "certificate")
        assert run("data", "update", "--from", publisher.url, "--ca-file", publisher.ca_file).status == 0
    assert (folder / "tor-exits.txt").exists()


def test_an_update_that_cannot_start_gives_the_reason(
    run: Run, mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run("data", "update", "--from", "http://mirror.example").assert_refused("not an https:// URL")
    run("data", "update", "--from", tmp_path / "nowhere").assert_refused("is not a mirror", "SHA256SUMS")
    run("data", "update", "--from", "https://localhost:1", "--ca-file", mirror / "tor-exits.txt").assert_refused(
        "holds no"
    )
    monkeypatch.setenv("SVC_NETWORK_SOURCES", "tor-exits,tor")
    run("data", "update", "--from", mirror).assert_refused(
        "network_sources: there is no source 'tor'", "svc data sources"
    )
    monkeypatch.delenv("SVC_DATA")
    run("data", "update", "--from", mirror).assert_usage()


def test_the_sources_are_listed_with_license_and_address(run: Run):
    sources = {source["name"]: source for source in run("data", "sources", "--json").json["sources"]}
    assert sources["tor-exits"]["license"] == "MIT"
    assert all(url.startswith("https://") for source in sources.values() for url in source["urls"])
    assert not sources["vpn-x4bnet"]["recommended"]
    assert "tor-exits" in run("data", "sources").out
