"""A release: its files are equal whenever they are built, and the workflows that build it trust nothing that moves."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import archives, executable, release, versions

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ZIZMOR = shutil.which("zizmor", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
PINNED = re.compile(r"uses: [a-z0-9-]+/[a-z0-9-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")

LOG = """# Changelog

What users notice.

## 1.2.0 (unreleased)

**Added**
- A thing.

## 1.1.0 (2026-01-01)

- Older.
"""


@pytest.mark.parametrize(("wanted", "section"), [("1.2.0", "**Added**\n- A thing.\n"), ("1.1.0", "- Older.\n")])
def test_the_notes_are_the_section_of_the_version(wanted: str, section: str):
    assert versions.section_of(LOG, wanted) == section


@pytest.mark.parametrize("wanted", ["1.2", "1.2.00", "1.0.0", ".*"])
def test_a_version_without_a_section_is_refused(wanted: str):
    with pytest.raises(versions.ChangelogError, match="has no section"):
        versions.section_of(LOG, wanted)


def test_this_version_has_a_section_and_a_tag_of_another_builds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert versions.section_of((ROOT / "CHANGELOG.md").read_text(), versions.version())
    assert release.main(str(tmp_path / "out"), "v0.0.1") == 1
    assert capsys.readouterr().err == f"the tag v0.0.1 is not v{versions.version()}, the version in pyproject.toml\n"
    assert not (tmp_path / "out").exists()


def test_everything_has_the_version_of_the_service():
    assert versions.differing(versions.version()) == []


def test_a_version_is_written_into_every_place(tmp_path: Path):
    changelogs = [path for pattern in versions.CHANGELOGS for path in ROOT.glob(pattern)]
    for path in (*(ROOT / name for name in versions.PLACES), *changelogs):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    versions.write("7.8.9", tmp_path)
    assert versions.differing("7.8.9", tmp_path) == sorted(
        f"{path.relative_to(ROOT)} has no section of 7.8.9 at its top" for path in changelogs
    )
    described = tmp_path / "web" / "react" / "package.json"
    assert json.loads(described.read_text())["peerDependencies"] == {"react": ">=18", "@svc/web": "^7.8.9"}
    described.write_text(described.read_text().replace('"version"', '"vision"'))
    assert """web/react/package.json has no '"version": "{}"'""" in versions.differing("7.8.9", tmp_path)


@pytest.mark.parametrize("wanted", ["1.2", "v1.2.3", "1.2.3-rc1", ""])
def test_what_is_no_version_is_written_nowhere(wanted: str, capsys: pytest.CaptureFixture[str]):
    assert versions.main(wanted) == 2
    assert capsys.readouterr().err == f"{wanted!r} is not a version such as 1.2.0\n"


def tarball(names: list[str], at_s: int, owner: str, mode: int) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as out:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.uname, entry.uid, entry.mode = len(name), at_s, owner, at_s, mode
            out.addfile(entry, io.BytesIO(name.encode()))
    return made.getvalue()


def test_an_archive_is_the_same_no_matter_who_made_it_and_when():
    one = release.repacked(tarball(["a/b", "a/c"], 1, "me", 0o600), 1_767_225_600)
    other = release.repacked(tarball(["a/c", "a/b"], 2, "you", 0o664), 1_767_225_600)
    assert one == other
    with tarfile.open(fileobj=io.BytesIO(one)) as opened:
        assert [(entry.name, entry.mode, entry.mtime) for entry in opened] == [
            ("a/b", 0o644, 1_767_225_600),
            ("a/c", 0o644, 1_767_225_600),
        ]
        file = opened.extractfile("a/b")
        assert file is not None
        assert file.read() == b"a/b"


def test_a_wheel_is_the_same_whatever_the_umask_was():
    def wheel(mode: int) -> bytes:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as files:
            entry = zipfile.ZipInfo("svc/a.py", (2026, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            files.writestr(entry, b"pass\n" * 100)
        return made.getvalue()

    one = archives.rezipped(wheel(0o600))
    assert one == archives.rezipped(wheel(0o664)) == archives.rezipped(one)
    assert one != archives.rezipped(wheel(0o755)), "what may be run stays so"
    with zipfile.ZipFile(io.BytesIO(one)) as files:
        assert files.read("svc/a.py") == b"pass\n" * 100


def test_the_bill_of_materials_has_what_the_lock_pins_and_what_the_wheel_contains(tmp_path: Path):
    wheel = tmp_path / "svc.whl"
    with zipfile.ZipFile(wheel, "w") as files:
        files.writestr("svc/web_static/sdk/LICENSES.txt", "svc.js contains:\n\n@scope/one 2.0.0 (MIT)\n\nMIT License\n")
    lock = "Trio==0.31.0 \\\n    --hash=sha256:00\nMarkupSafe==3.0.1 \\\n    --hash=sha256:00\n"
    system = {
        "libz.so.1": "zlib=1:1.2.13.dfsg-1",
        "libssl.so.3": "openssl=3.0.19-1",
        "libcrypto.so.3": "openssl=3.0.19-1",
    }
    made = release.bill_of_materials(wheel, lock, "1.2.0", 1_767_225_600, {**system, "libodd.so": ""})
    assert made == release.bill_of_materials(wheel, lock, "1.2.0", 1_767_225_600, system)
    document: dict[str, Any] = json.loads(made)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["timestamp"] == "2026-01-01T00:00:00Z"
    found = {component["purl"]: component for component in document["components"]}
    assert set(found) == {
        "pkg:deb/debian/openssl@3.0.19-1",
        "pkg:deb/debian/zlib@1%3A1.2.13.dfsg-1",
        "pkg:npm/%40scope/one@2.0.0",
        "pkg:pypi/markupsafe@3.0.1",
        "pkg:pypi/trio@0.31.0",
    }
    assert found["pkg:npm/%40scope/one@2.0.0"]["licenses"] == [{"license": {"id": "MIT"}}]
    assert found["pkg:pypi/trio@0.31.0"]["licenses"] == [{"expression": "MIT OR Apache-2.0"}]
    assert found["pkg:deb/debian/zlib@1%3A1.2.13.dfsg-1"]["version"] == "1:1.2.13.dfsg-1", "as Debian writes it"
    assert document["dependencies"] == [{"ref": "svc", "dependsOn": sorted(found)}]


def test_the_bill_of_materials_of_this_version_has_every_library_of_the_image():
    pinned = re.findall(r"^([\w.-]+)==", executable.LOCK.read_text(), re.MULTILINE)
    wheel = io.BytesIO()
    zipfile.ZipFile(wheel, "w").close()
    document = json.loads(release.bill_of_materials(wheel, executable.LOCK.read_text(), "1", 0, {}))  # type: ignore[arg-type]
    found = {component["name"]: component["purl"] for component in document["components"]}
    assert {name for name, purl in found.items() if purl.startswith("pkg:pypi/")} == {name.lower() for name in pinned}
    assert found["openssl"].startswith("pkg:generic/openssl@"), "that of cryptography, which no system updates"


def test_the_sums_are_those_that_sha256sum_checks(tmp_path: Path):
    for name in ("b", "a"):
        (tmp_path / name).write_text(name)
    text = release.sums(tmp_path)
    (tmp_path / release.SUMS).write_text(text)
    assert text.splitlines()[0] == f"{hashlib.sha256(b'a').hexdigest()}  a"
    assert release.sums(tmp_path) == text, "not of itself"


@pytest.mark.long
@pytest.mark.slow(300)
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout: the time of the commit is not known")
def test_two_builds_of_a_release_are_equal_byte_by_byte(tmp_path: Path):
    """In another time zone, with another mask, and into another folder."""
    built: list[dict[str, bytes]] = []
    for number, zone in enumerate(("UTC", "Asia/Tokyo")):
        folder = tmp_path / str(number)
        subprocess.run(
            [sys.executable, "-m", "tools.release", folder],
            cwd=ROOT,
            env={**os.environ, "TZ": zone},
            umask=0o077 * number,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        built.append({path.name: path.read_bytes() for path in folder.iterdir()})
    one, other = built
    assert [name for name in one if one[name] != other.get(name)] == []
    assert one.keys() == other.keys()
    version = versions.version()
    assert {
        f"svc_visitor_id-{version}-py3-none-any.whl",
        f"svc_visitor_id-{version}.tar.gz",
        f"svc-{version}.Containerfile",
        f"svc-{version}.cdx.json",
        f"svc-chart-{version}.tgz",
        f"CHANGES-{version}.md",
        release.SUMS,
    } <= one.keys()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_by_its_commit_and_no_job_may_more_than_it_says(path: Path):
    text = path.read_text()
    assert len(re.findall(r"uses:", text)) == len(PINNED.findall(text)) > 0
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        may_write = name == "publish"
        assert may_write or job["permissions"] == {"contents": "read"}
        assert all("${{" not in step.get("run", "") for step in job["steps"]), "a script reads variables alone"


def test_the_workflows_ask_for_advisories_of_every_lock():
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    audited = next(line for line in text.splitlines() if "pip-audit --" in line)
    locks = {path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.lock"), *(ROOT / "ops").glob("*.lock"))}
    assert set(re.findall(r"-r (\S+)", audited)) == locks
    assert "npm audit --package-lock-only --prefix web" in text


@pytest.mark.skipif(ZIZMOR is None, reason="there is no zizmor on this machine")
def test_zizmor_finds_nothing_in_the_workflows():
    assert ZIZMOR is not None
    done = subprocess.run(
        [ZIZMOR, "--offline", "--no-progress", ROOT / ".github"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
