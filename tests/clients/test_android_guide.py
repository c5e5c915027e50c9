"""docs/android.md names what the Android SDK has, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from svc.features.refusals import CATALOG

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "android.md").read_text()
SDK = ROOT / "clients" / "android"
API = (SDK / "core/src/main/kotlin/svc/visitor/Api.kt").read_text()
FLAGS = set(
    re.findall(r'Source\("(\w+)"\)', (SDK / "android/src/main/kotlin/svc/visitor/android/Checks.kt").read_text())
)
OWN_CODES = {
    "offline",
    "network",
    "timeout",
    "bad_response",
    "aborted",
    "pin_mismatch",
    "invalid_options",
    "internal_error",
}


def section(title: str) -> str:
    return GUIDE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def names_of_rows(title: str) -> set[str]:
    cells = re.findall(r"^\| ([^|]*) \|", section(title), re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)(?:\(…\))?`", cell.partition(":")[0])}


def test_every_option_is_in_the_table():
    builder = API.partition("    class Builder(")[2].partition("    private companion object {")[0]
    options = set(re.findall(r"^        fun (\w+)\(", builder, re.MULTILINE)) - {"build", "bridge"}
    assert names_of_rows("Options") == options
    assert len(options) > 10


def test_every_flag_is_in_the_table():
    assert names_of_rows("Integrity flags") == FLAGS | {"mitm"}


def test_every_code_exists():
    told = names_of_rows("Errors")
    assert told >= OWN_CODES
    assert told - OWN_CODES <= set(CATALOG)


def test_one_version_stands_everywhere():
    (version,) = set(re.findall(r"svc\.visitor:svc-android(?:-ktx)?:([\d.]+)", GUIDE))
    visitor = (SDK / "android/src/main/kotlin/svc/visitor/SvcVisitor.kt").read_text()
    assert f'VERSION = "{version}"' in visitor
    assert f"<version>{version}</version>" in (SDK / "pom.xml").read_text()
    assert f"svc.visitor:svc-android:{version}" in (SDK / "sample/app/build.gradle.kts").read_text()
