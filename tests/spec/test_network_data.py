"""Signals.md 3, decisions 3.4 and 10: the operator's network files, in the service and on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from svc.network_data.writer import Tree
from tests.spec.commands import Run, runner
from tests.support.live import PUBLIC_ADDRESS, Live, live_service

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
    answer = await live.identify(secret, origin=None, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_running_service_takes_up_files_and_bills_only_what_it_could_look_up(folder: Path, tmp_path: Path):
    """Decisions 3.4: `unavailable` is free; the first file ends that, without a restart."""
    settings: dict[str, Any] = {"network_directory": str(folder), "network_interval_s": 0.02}
    async with live_service(tmp_path, network_builtin=False, **settings) as live:
        _, secret = live.issue("secret", "production")
        before = live.balance()
        answer = await ask(live, secret)
        assert (answer["state"], answer["reason"]) == ("unavailable", "no_network_data")
        assert live.balance() == before
        (folder / "tor.txt").write_text(f"{PUBLIC_ADDRESS}\n")
        with trio.fail_after(5):
            while (answer := await ask(live, secret))["state"] == "unavailable":
                pass
        assert "tor" in {trigger["signal"] for trigger in answer["triggers"]}
        assert live.balance() < before


async def test_what_the_databases_know_is_kept_with_the_event(folder: Path, tmp_path: Path):
    """Interface 2.4: country, network and its name."""
    (folder / "country.mmdb").write_bytes(database({"country_code": "GB"}))
    (folder / "asn.mmdb").write_bytes(database({"asn": "AS20712", "as_name": "A & A"}))
    async with live_service(tmp_path, network_directory=str(folder)) as live:
        _, secret = live.issue("secret")
        await ask(live, secret)
        ((_, event),) = live.events()
        assert (event.country_code, event.country_name) == ("GB", "United Kingdom")
        assert (event.asn, event.asn_name) == ("20712", "A & A")


def test_data_status_tells_of_each_file_what_it_is_and_how_old(run: Run, folder: Path):
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


def test_data_status_says_that_traffic_is_free_where_nothing_is_known(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SVC_NETWORK_BUILTIN", "false")
    status = run("data", "status", "--json").json
    assert status["network_data"] == "missing"
    assert "free" in status["identifications"]
    assert "free" in run("data", "status").out


def test_data_check_says_which_file_each_fact_is_from(run: Run, folder: Path):
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


def test_data_check_of_an_address_that_nobody_can_have_asks_no_source(run: Run, folder: Path):
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
