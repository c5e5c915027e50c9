"""The Swift package: sources that nothing here can compile, so that only what a text shows is checked."""

from __future__ import annotations

import plistlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.vectors import cases

PACKAGE = Path(__file__).parents[2] / "clients" / "ios"
SOURCES = sorted((PACKAGE / "Sources").rglob("*.swift"))
CORE = [path for path in SOURCES if path.parent.name == "SvcVisitorCore"]
APPLE_ONLY = [path for path in SOURCES if path.parent.name == "SvcVisitor"]
NEEDS_A_REASON = (
    "NSFileCreationDate", "NSFileModificationDate", "creationDate", "modificationDate", "fileModificationDate",
    "contentModificationDateKey", "getattrlist", "fstat(", "lstat(", "stat(", "systemUptime", "mach_absolute_time",
    "volumeAvailableCapacity", "volumeTotalCapacity", "systemFreeSize", "systemSize", "statfs", "statvfs",
    "activeInputModes", "UserDefaults",
)  # fmt: skip
"""Symbols for which Apple wants a reason (Describing use of required reason API)."""


@pytest.mark.parametrize("symbol", NEEDS_A_REASON)
def test_no_source_names_what_needs_a_reason(symbol: str):
    for path in SOURCES:
        assert not re.search(rf"(?<![\w.]){re.escape(symbol)}", path.read_text()), path.name


def test_the_privacy_manifest_declares_the_device_id_and_no_tracking():
    declared = plistlib.loads((PACKAGE / "Sources" / "SvcVisitor" / "PrivacyInfo.xcprivacy").read_bytes())
    assert declared["NSPrivacyTracking"] is False
    assert declared["NSPrivacyTrackingDomains"] == declared["NSPrivacyAccessedAPITypes"] == []
    (collected,) = declared["NSPrivacyCollectedDataTypes"]
    assert collected["NSPrivacyCollectedDataType"] == "NSPrivacyCollectedDataTypeDeviceID"
    assert collected["NSPrivacyCollectedDataTypeTracking"] is False


def test_the_core_needs_no_framework_of_apples_and_the_rest_is_small_and_guarded():
    assert CORE
    imported = {line.strip() for path in CORE for line in path.read_text().splitlines() if "import " in line}
    assert imported <= {"import Foundation", "import FoundationNetworking", "#if canImport(FoundationNetworking)"}
    assert sum(len(path.read_text().splitlines()) for path in APPLE_ONLY) <= 400
    for path in APPLE_ONLY:
        assert "#if canImport(UIKit) && canImport(DeviceCheck)\n" in path.read_text(), path.name


def test_the_package_is_said_to_be_sources_only():
    assert "**Sources only, not built or tested**" in (PACKAGE / "README.md").read_text()
    assert "Sources only, not built or tested." in (PACKAGE / "CHANGELOG.md").read_text()


def test_the_swift_tests_know_every_kind_of_case_for_swift():
    text = (PACKAGE / "Tests" / "SvcVisitorCoreTests" / "VectorsTests.swift").read_text()
    known = set(re.findall(r'case "(\w+)"', text))
    files = set(re.findall(r'run\("(\w+)"', text))
    for name in ("retry", "errors", "canonical", "report", "deferred", "token", "attestation", "apps"):
        kinds = {case["kind"] for case in cases(name) if "swift" in case.get("only", ["swift"])}
        assert kinds <= known, name
        assert (name in files) == bool(kinds), name


def test_the_core_shows_an_app_options_results_and_errors_alone():
    """Names such as `Json` and `Store` would be the app's otherwise."""
    for path in CORE:
        public = set(
            re.findall(r"^public (?:\w+ )*?(?:struct|class|enum|protocol|actor) (\w+)", path.read_text(), re.MULTILINE)
        )
        assert public <= {"SvcError", "SvcIdentification", "SvcAttestation", "SvcOptions"}, path.name
        assert "@_exported" not in path.read_text()
    visitor = (PACKAGE / "Sources" / "SvcVisitor" / "SvcVisitor.swift").read_text()
    for name in ("SvcError", "SvcIdentification", "SvcAttestation", "SvcOptions"):
        assert f"public typealias {name} = SvcVisitorCore.{name}\n" in visitor


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_text_for_people_has_a_word_of_the_language(path: Path):
    """Such as the access level `package`, which once took the place of `public` in a message, too."""
    texts = re.findall(r'"((?:[^"\\\n]|\\.)*)"', path.read_text())
    assert not [text for text in texts if re.search(r"\b(package|internal|fileprivate)\b[ ,.]", text)]


def test_nothing_rules_out_an_extension():
    for path in APPLE_ONLY:
        assert "UIApplication" not in path.read_text(), path.name


@pytest.mark.slow(300)
def test_the_core_is_built_and_tested_where_there_is_swift_and_the_script_says_so_where_there_is_none():
    done = subprocess.run(["sh", "build.sh"], cwd=PACKAGE, capture_output=True, text=True, check=False)
    if shutil.which("swift") is not None:
        assert done.returncode == 0, done.stdout + done.stderr
    else:
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("There is no Swift here: ")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_source_can_be_parsed(path: Path):
    grammar = pytest.importorskip("tree_sitter_swift", reason="tree-sitter-swift is not installed")
    tree_sitter = pytest.importorskip("tree_sitter")
    parser = tree_sitter.Parser(tree_sitter.Language(grammar.language()))
    assert not parser.parse(path.read_bytes()).root_node.has_error
