"""The Debian package: what is in it, and that it is the same at each build. `tests/test_debian_root.py` installs it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from svc.cli import program
from tools import debian, debian_copyright, reference, versions

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "ops" / "debian"
AT_S = 1_767_225_600
TRUE = shutil.which("true")
REASON = debian.missing() or ("there is no program `true`" if TRUE is None else None)
needs_tools = pytest.mark.skipif(REASON is not None, reason=REASON or "")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder like that of the executable. In place of the program is one of this machine that needs the C library
    alone, and there is one library.
    """
    folder = tmp_path / "tree"
    modules = folder / "lib" / "python3.11"
    for name, text in {
        "demo-1.2.dist-info/METADATA": "Metadata-Version: 2.4\nName: demo\nVersion: 1.2\nLicense-Expression: MIT\n",
        "demo-1.2.dist-info/RECORD": "demo-1.2.dist-info/licenses/LICENSE,,\n",
        "demo-1.2.dist-info/licenses/LICENSE": "Permission is hereby granted\n",
        "svc_visitor_id-1.0.dist-info/METADATA": "Metadata-Version: 2.4\nName: svc-visitor-id\nVersion: 1.0\n",
        "svc/web_static/sdk/LICENSES.txt": "svc.js contains:\n\npreact 10.0.0 (MIT)\n",
    }.items():
        (modules / name).parent.mkdir(parents=True, exist_ok=True)
        (modules / name).write_text(text)
    shutil.copy(TRUE or "", folder / "svc")
    (folder / "inventory.json").write_text(
        json.dumps({"python": {"version": "3.11.2", "package": ""}, "libraries": {"demo": "1.2"}, "shared": {}})
    )
    (folder / "link").symlink_to("inventory.json")
    return folder


def members(package: Path, which: str) -> dict[str, tuple[tarfile.TarInfo, bytes]]:
    """Of one of its two archives, `ctrl` or `fsys`."""
    told = subprocess.run(["dpkg-deb", f"--{which}-tarfile", package], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(told)) as archive:
        return {
            entry.name.removeprefix("./"): (entry, file.read() if (file := archive.extractfile(entry)) else b"")
            for entry in archive
            if entry.name != "."
        }


@needs_tools
@pytest.mark.slow
def test_two_builds_are_equal_whatever_the_mask_and_the_zone(tree: Path, tmp_path: Path):
    built: list[bytes] = []
    call = f"debian.build(Path({str(tree)!r}), Path('out'), {AT_S})"
    for number, zone in enumerate(("UTC", "Asia/Tokyo")):
        place = tmp_path / zone.replace("/", "-")
        place.mkdir()
        environment = {**os.environ, "TZ": zone, "PYTHONPATH": str(ROOT)}
        run = [sys.executable, "-c", f"from pathlib import Path; from tools import debian; {call}"]
        subprocess.run(run, cwd=place, env=environment, umask=0o077 * number, check=True)
        (made,) = (place / "out").iterdir()
        built.append(made.read_bytes())
    assert built[0] == built[1]


@needs_tools
@pytest.mark.slow
def test_the_package_has_the_program_and_what_a_debian_package_needs(tree: Path, tmp_path: Path):
    release = versions.version()
    library = f"usr/lib/svc/{release}"
    made = debian.build(tree, tmp_path / "out", AT_S)
    assert re.fullmatch(rf"svc-visitor-id_{re.escape(release)}_(amd64|arm64)\.deb", made.name)
    files = members(made, "fsys")
    assert {entry.mtime for entry, _ in files.values()} == {AT_S}
    assert {(entry.uname, entry.gname) for entry, _ in files.values()} == {("root", "root")}
    assert {entry.mode for entry, _ in files.values() if not entry.issym()} == {0o755, 0o644}
    assert files[f"{library}/svc"][1] == (tree / "svc").read_bytes()
    links = {name: entry.linkname for name, (entry, _) in files.items() if entry.issym()}
    assert links == {"usr/bin/svc": f"../lib/svc/{release}/svc", f"{library}/link": "inventory.json"}
    programs = {name for name, (entry, _) in files.items() if entry.isreg() and entry.mode == 0o755}
    assert programs == {f"{library}/svc", "usr/sbin/svc-admin"}
    assert {f"usr/lib/systemd/system/{name}" for name in debian.UNITS} <= files.keys()
    assert {"usr/share/man/man1/svc.1.gz", "usr/share/man/man8/svc-admin.8.gz"} <= files.keys()
    for place in debian.COMPLETIONS.values():
        assert b"_SVC_COMPLETE" in files[place][1]

    control = {name: content.decode() for name, (_, content) in members(made, "ctrl").items()}
    assert control["conffiles"] == "/etc/svc.toml\n"
    summed = dict(reversed(line.split("  ")) for line in control["md5sums"].splitlines())
    regular = {name: content for name, (entry, content) in files.items() if entry.isreg() and name != "etc/svc.toml"}
    assert summed == {name: hashlib.md5(content).hexdigest() for name, content in regular.items()}
    assert control.keys() == {"conffiles", "control", "md5sums", *debian.MAINTAINER_SCRIPTS}


@needs_tools
def test_the_c_library_that_is_asked_for_is_the_newest_that_a_file_of_the_tree_needs(tree: Path):
    found = debian.needs(tree)
    assert found.architecture in ("amd64", "arm64")
    assert (2, 0) < found.libc < (3, 0)
    assert f"libc6 (>= {found.libc[0]}.{found.libc[1]})" in debian.control(found, 1, "1.0.0")


@needs_tools
def test_a_tree_that_lacks_a_library_or_the_program_is_refused(tree: Path):
    content = (tree / "svc").read_bytes()
    (tree / "lib" / "other.so").write_bytes(content.replace(b"libc.so.6", b"libx.so.6"))
    with pytest.raises(debian.DebianError, match=r"lacks libx\.so\.6$"):
        debian.needs(tree)
    (tree / "lib" / "libx.so.6").write_bytes(content)
    assert debian.needs(tree)
    (tree / "svc").write_text("#!/bin/sh\n")
    with pytest.raises(debian.DebianError, match="has no executable svc"):
        debian.needs(tree)


def test_where_a_tool_is_missing_the_reason_names_it_and_its_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("PATH", "/nowhere")
    assert debian.main("tree", "folder") == 1
    said = "The Debian package is not built: there is no dpkg-deb (package dpkg) and no objdump (package binutils).\n"
    assert capsys.readouterr().err == said


def read(text: str) -> dict[str, list[tuple[str, str]]]:
    """Of a unit, what each section sets, in order."""
    found: dict[str, list[tuple[str, str]]] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line
        elif "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(section, []).append((key, value))
    return found


@pytest.mark.parametrize("name", debian.UNITS)
def test_a_unit_differs_from_that_of_ops_by_where_the_package_puts_things(name: str):
    text = debian.unit(name)
    assert "/opt/" not in text
    assert "/etc/systemd" not in text
    ours, packaged = read((ROOT / "ops" / name).read_text()), read(text)
    removed = {key: [pair for pair in pairs if pair not in packaged[key]] for key, pairs in ours.items()}
    added = {key: [pair for pair in pairs if pair not in ours[key]] for key, pairs in packaged.items()}
    starts = [pair for pair in removed.get("[Service]", []) if pair[0] == "ExecStart"]
    assert [pair for pairs in removed.values() for pair in pairs] == starts
    service = [
        ("ExecStartPre", "/bin/sh -c 'while [ -e /run/svc.upgrading ]; do sleep 0.2; done'"),
        ("Environment", "SVC_CONFIG=/etc/svc.toml"),
        *[(key, value.replace("/opt/svc/bin/svc", "/usr/bin/svc")) for key, value in starts],
    ]
    assert added.pop("[Unit]") == [("Documentation", "man:svc(1)")]
    assert added.pop("[Service]", []) == (service if name.endswith(".service") else [])
    assert not any(added.values())


@pytest.mark.parametrize("name", debian.UNITS)
def test_a_unit_starts_nothing_that_a_small_system_does_not_have(name: str):
    """`kill`, of procps, is not there where nothing but what Debian requires is."""
    commands = [
        shlex.split(value) for key, value in read(debian.unit(name)).get("[Service]", []) if key.startswith("Exec")
    ]
    assert {words[0] for words in commands} <= {"/usr/bin/svc", "/bin/sh"}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_units_of_the_package(tmp_path: Path):
    for name in debian.UNITS:
        (tmp_path / name).write_text(debian.unit(name).replace("/usr/bin/svc", shutil.which("true") or ""))
    copies = [str(tmp_path / name) for name in debian.UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *copies], capture_output=True, text=True, check=False
    )
    assert (done.returncode, [line for line in done.stderr.splitlines() if "svc" in line]) == (0, [])


def test_the_settings_file_has_every_setting_commented_out():
    text = debian.settings()
    assert tomllib.loads(text) == {}
    introduction, _, rest = text.partition("\n\n")
    assert rest == reference.settings_file().partition("\n\n")[2]
    assert all(line.startswith("#") for line in introduction.splitlines())


def test_scripts_are_valid_and_agree_on_the_file_that_units_wait_for():
    for script in SCRIPTS.iterdir():
        if script.read_text().startswith("#!/bin/sh"):
            subprocess.run(["sh", "-n", script], check=True)
    for name in ("prerm", "postinst"):
        assert "\nUPGRADING=/run/svc.upgrading\n" in (SCRIPTS / name).read_text()
    assert "/run/svc.upgrading" in debian.WAIT


def test_what_installing_tells_somebody_to_run_exists():
    told = re.findall(r"^ +svc-admin (\S+) (\S+)", (SCRIPTS / "postinst").read_text(), re.MULTILINE)
    assert told == [("org", "create"), ("key", "issue"), ("key", "issue"), ("member", "invite")]
    for group, command in told:
        assert command in program.commands[group].commands  # pyright: ignore[reportAttributeAccessIssue]  a group


@pytest.mark.skipif(shutil.which("dpkg-parsechangelog") is None, reason="dpkg-parsechangelog is not installed")
def test_the_changelog_is_in_debians_form(tmp_path: Path):
    file = tmp_path / "changelog"
    file.write_text(debian.changelog(AT_S))
    done = subprocess.run(["dpkg-parsechangelog", "-l", file], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert f"Version: {versions.version()}\n" in done.stdout
    assert "Date: Thu, 01 Jan 2026 00:00:00 +0000\n" in done.stdout
    assert f"Maintainer: {debian.MAINTAINER}\n" in done.stdout


@needs_tools
def test_the_copyright_file_lists_what_is_inside_and_has_its_texts(tree: Path):
    listed, _, texts = debian_copyright.page(tree).partition("=" * 78)
    assert re.findall(r"^  (.*)$", listed, re.MULTILINE) == [
        "Python 3.11.2: PSF-2.0",
        "demo 1.2: MIT",
        "scripts in svc/web_static/sdk: as listed there",
    ]
    assert "Apache-2.0" in listed
    for text in ("PYTHON SOFTWARE FOUNDATION LICENSE", "Permission is hereby granted", "preact 10.0.0 (MIT)"):
        assert text in texts


@needs_tools
def test_a_library_of_the_system_is_listed_with_its_package_or_refused(tree: Path):
    file = tree / "inventory.json"
    inventory = json.loads(file.read_text())
    file.write_text(json.dumps(inventory | {"shared": {"libz.so.1": "zlib=1.3"}}))
    if Path("/usr/share/doc/zlib1g/copyright").is_file():
        assert "\n  zlib 1.3 (libz.so.1): as its text says\n" in debian_copyright.page(tree)
    file.write_text(json.dumps(inventory | {"shared": {"libnobody-has.so.1": ""}}))
    with pytest.raises(debian_copyright.UnknownLicenseError, match=r"libnobody-has\.so\.1"):
        debian_copyright.page(tree)
