"""The web SDK: its own tests, its types and its package; and real visits of a headless Chromium to a real service."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.support.chromium import built, node
from tests.web.visits import Visits, seen_by
from tools.node_client import PACKAGES, WEB_PACKAGES, pack
from tools.web import INSTALLED, WEB, install

pytestmark = pytest.mark.slow(40)


# The workspace --------------------------------------------------------------------------------------------------------


def npm(*arguments: str, folder: Path = WEB) -> str:
    """What npm prints; it must end with status 0."""
    found = node()
    reason = install(found, WEB, INSTALLED)
    if reason is not None:
        pytest.skip(f"web is not installed: {reason}")
    done = subprocess.run(
        [*found.npm, *arguments],
        cwd=folder,
        env={**found.environment, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_unit_tests_of_the_workspace_pass():
    shown = npm("test")
    assert re.search(r"Tests +\d{3} passed \(\d{3}\)", shown), shown


def test_the_types_compile_and_those_of_the_package_are_enough_for_its_users():
    """The tests and the React package are compiled against the built types; the build has compiled the rest."""
    built()
    npm("run", "check:tests")


@pytest.mark.parametrize("package", WEB_PACKAGES)
def test_a_package_contains_its_named_files_and_requires_nothing_else(package: str):
    built()
    described = json.loads((WEB / package / "package.json").read_text())
    (packed,) = json.loads(npm("pack", "--dry-run", "--json", folder=WEB / package))
    files = {file["path"] for file in packed["files"]}
    named = {described["main"], described["types"]} | {
        target
        for entry in described["exports"].values()
        for target in ([entry] if isinstance(entry, str) else entry.values())
    }
    assert {name.removeprefix("./") for name in named} <= files
    assert {"README.md", "CHANGELOG.md"} <= files
    assert not [name for name in files if name.startswith(("src", "test"))]
    assert "dependencies" not in described
    assert described["sideEffects"] is False


def test_make_clients_puts_the_packages_where_the_guide_installs_them_from(tmp_path: Path):
    """`docs/frontend.md`: no index has them."""
    built()
    assert {WEB / name for name in ("sdk", "react", "vue", "svelte")} < set(PACKAGES)
    pack(node(), WEB / "react", tmp_path)
    (packed,) = tmp_path.glob("svc-react-*.tgz")
    assert packed.stat().st_size > 0


def test_no_served_file_has_a_name_on_block_lists():
    names = [file.name for file in built().rglob("*")]
    assert not [name for name in names if re.search(r"fingerprint|collect|analytics|track", name)]


@pytest.mark.parametrize("page", ["docs/frontend.md", "web/sdk/README.md"])
def test_the_guides_say_what_a_page_loads(page: str):
    (said,) = re.findall(r"^(\d+) kB \(gzip\)", (WEB.parent / page).read_text(), re.MULTILINE)
    script = (built() / "sdk" / "svc.esm.js").read_bytes()
    assert round(len(gzip.compress(script, 9)) / 1000) == int(said)


def test_the_licenses_of_bundled_code_are_included():
    text = (built() / "sdk" / "LICENSES.txt").read_text()
    assert text.count("Permission is hereby granted") == 2
    assert "preact" in (built() / "pages" / "LICENSES.txt").read_text()
    assert {"@fingerprintjs/botd 2.0.0 (MIT)", "@fingerprintjs/fingerprintjs 5.2.0 (MIT)"} <= set(text.splitlines())


@pytest.mark.parametrize("folder", [WEB, WEB / "browsers"], ids=lambda folder: folder.name)
def test_the_lock_file_has_hashes_and_no_download_urls(folder: Path):
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    installed = {name: entry for name, entry in packages.items() if "node_modules/" in name and "link" not in entry}
    assert installed
    assert all(entry["integrity"].startswith("sha512-") for entry in installed.values())
    assert not [name for name, entry in installed.items() if "resolved" in entry]
    assert "registry" not in (folder / "package-lock.json").read_text()


# Visits ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def visits(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Visits:
    return seen_by("sdk.mjs", tmp_path_factory, worker_id)


def test_the_first_visit_is_a_new_visitor_with_a_token_and_a_second_report(visits: Visits):
    first = visits["first"]
    assert first["result"]["visitor_is_new"] is True
    assert first["result"]["identifiable"] is True
    assert first["second"] is True
    assert first["timing"]["attempts"] == 1
    assert first["timing"]["sentBytes"] < first["timing"]["reportBytes"] / 2


def test_a_page_that_demands_trusted_types_is_read_in_full(visits: Visits):
    """Worker and iframe are made by the policy `svc`; nothing is violated."""
    visit = visits["trusted types"]
    assert visit["violations"] == []
    assert set(visit["timing"]["missed"]) <= ELSEWHERE
    assert not [note for note in visit["timing"]["notes"] if "policy" in note]
    assert visit["result"]["visitor_id"] == visits["first"]["result"]["visitor_id"]


ELSEWHERE = {"worker", "worker.graphics", "incognito", "bot.notificationPermissions"}
"""What other threads and processes find, for which a report does not wait."""
OF_THE_MOMENT = ("nonce", "collected_at", "client_proof")


def test_a_page_that_identifies_again_asks_once_for_what_it_cannot_change(visits: Visits):
    first, second = visits["single page"]["reports"]
    assert all(first[name] != second[name] for name in OF_THE_MOMENT)
    for sent in (first, second):
        for name in (*OF_THE_MOMENT, "client_token_is_new", "incognito"):
            sent.pop(name, None)
        sent["probes"]["contexts"].pop("worker")
        sent["botd"].pop("notificationPermissions", None)
    assert first == second
    assert visits["single page"]["workers"] == 1


@pytest.mark.parametrize(
    ("name", "confidence"),
    [
        ("again", 100),
        ("cleared", 85),  # its new token is certain once the former one was silent for three days
        ("global", 85),  # a classic script, which is not read as UTF-8 unless somebody says so
        ("restarted", 85),
        ("private", 85),
        ("no storage", 85),
        ("plain http", 85),
    ],
)
def test_the_same_browser_is_the_same_visitor(visits: Visits, name: str, confidence: int):
    visit = visits[name]
    assert visit["result"]["visitor_id"] == visits["first"]["result"]["visitor_id"]
    assert visit["result"]["visitor_is_new"] is False
    assert visit["result"]["visitor_confidence"] >= confidence


def test_the_policy_of_the_strictest_page_is_never_violated(visits: Visits):
    seen = {name: visit["violations"] for name, visit in visits.items() if visit.get("violations")}
    assert set(seen) == {"policy"}, "the page whose policy forbids the request itself"
    elsewhere = [text for text in visits["page"]["errors"] if "connect" not in text]
    assert elsewhere == []


FAULTS = {
    # visit: (code of the error, attempts of the SDK, requests that arrived, identifications)
    "503": (None, 2, 2, 1),
    "429": (None, 2, 2, 1),
    "reset": (None, None, 2, 1),
    "hang": ("timeout", 1, 1, 0),
    "wrong key": ("unauthorized", 1, None, 0),
    "wrong origin": ("unauthorized", 1, None, 0),
    "nobody": ("network", 3, None, 0),
    "second endpoint": (None, 2, None, 1),
    "offline": (None, 2, None, 1),
    "hidden": (None, 1, 1, 1),
    "policy": ("blocked_by_policy", 1, None, 0),
    "blocked request": ("network", 3, None, 0),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_network_fault_is_survived_or_explained(visits: Visits, name: str):
    code, attempts, arrived, identifications = FAULTS[name]
    visit = visits[name]
    if code is None:
        assert visit["result"]["visitor_id"] == visits["first"]["result"]["visitor_id"]
    else:
        assert (visit["error"]["name"], visit["error"]["code"]) == ("SvcError", code)
    assert attempts is None or visit["timing"]["attempts"] == attempts
    assert arrived is None or visit["arrived"] == arrived
    assert visit["keys"] <= 1, "one call, one Idempotency-Key"
    assert visit["identifications"] == identifications


@pytest.mark.parametrize("name", ["late", "lost"])
def test_a_response_that_is_lost_or_late_is_given_again_in_full(visits: Visits, name: str):
    """Decisions 3.2. Chromium repeats a POST on a connection that broke by itself: then the SDK sees a duplicate at its
    first attempt, and asks again.
    """
    visit = visits[name]
    assert visit["result"].keys() == visits["first"]["result"].keys() | {"duplicate"}
    assert visit["result"]["duplicate"] is True
    assert visit["result"]["visitor_id"] == visits["first"]["result"]["visitor_id"]
    assert visit["timing"]["attempts"] == 2
    assert visit["arrived"] in (2, 3)
    assert (visit["keys"], visit["identifications"]) == (1, 1)


def test_a_response_later_than_five_seconds_costs_the_page_no_more_than_these(visits: Visits):
    visit = visits["late"]
    assert visit["arrived"] == 2
    assert 5000 < visit["timing"]["totalMs"] < 9000
    assert visit["second"] is True, "the deferred token of the original is there"


def test_a_page_left_during_the_request_gets_no_result_and_is_identified_once(visits: Visits):
    visit = visits["navigation"]
    assert "result" not in visit
    assert (visit["arrived"], visit["identifications"]) == (1, 1)


def test_a_page_left_at_the_first_response_has_a_second_report(visits: Visits):
    supplement = visits["left"]["supplement"]
    assert supplement["tier"] == "deferred"
    assert supplement.keys() & {"permissions", "media", "storage"}


def test_the_hidden_page_reported_hidden_visibility(visits: Visits):
    assert visits["page"]["visibility"] == "hidden"


def test_a_refusal_says_what_to_do(visits: Visits):
    message = partial(_message, visits)
    assert "http://elsewhere.example" in message("wrong origin")
    assert "is it whole" in message("wrong key")
    assert "connect-src" in message("policy")
    assert "extension" in message("blocked request")
    assert visits["wrong key"]["error"]["requestId"]


def _message(visits: Visits, name: str) -> str:
    return visits[name]["error"]["message"]


def test_a_browser_without_storage_sends_no_token(visits: Visits):
    assert any("No token" in note for note in visits["no storage"]["timing"]["notes"])


def test_a_page_with_a_blocked_script_continues(visits: Visits):
    assert visits["blocked script"]["result"] is None
    assert visits["blocked script"]["identifications"] == 0


def test_an_earlier_collected_report_is_sent_at_once(visits: Visits):
    assert visits["preloaded"]["timing"]["waitedMs"] < visits["preloaded"]["timing"]["collectMs"]
