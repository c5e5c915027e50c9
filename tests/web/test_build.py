"""`tools.web`: what it does where there is no node, no registry, and nothing to do."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tools import web
from tools.web import Node, find_node, install


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(web, "WEB", tmp_path)
    (tmp_path / "package-lock.json").write_text("{}")
    return tmp_path


def npm(folder: Path, script: str) -> Node:
    """A node of which npm is this shell script."""
    program = folder / "npm"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return Node(Path("/nonexistent/node"), (str(program),))


def test_without_node_the_build_says_so_in_one_line_and_does_not_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(web, "find_node", lambda: None)
    assert web.main() == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("The web SDK and the pages are left out: there is no node from version 20 on")


def test_without_a_registry_the_build_says_so_in_one_line_and_does_not_fail(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    offline = npm(folder, "echo 'npm error code ENOTFOUND' >&2; exit 1")
    monkeypatch.setattr(web, "find_node", lambda: offline)
    monkeypatch.setattr(web, "INSTALLED", folder / "stamp")
    assert web.main() == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert "npm ci failed (npm error code ENOTFOUND)" in line
    assert not (folder / "stamp").exists(), "the next build tries again"


def test_packages_are_installed_again_only_when_the_lock_file_changed(folder: Path):
    counting = npm(folder, f'echo "$@" >> {folder}/calls')
    stamp = folder / "stamp"
    for _ in range(2):
        assert install(counting, folder, stamp) is None
    assert (folder / "calls").read_text() == "ci --no-audit --no-fund\n"
    (folder / "package-lock.json").write_text('{"lockfileVersion": 3}')
    assert install(counting, folder, stamp) is None
    assert len((folder / "calls").read_text().splitlines()) == 2


def test_an_outdated_node_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch):
    npm(folder, "exit 0")
    old = folder / "node"
    old.write_text("#!/bin/sh\necho v18.20.0\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    found = find_node()
    assert found is None or found.node != old
    old.write_text("#!/bin/sh\necho v20.0.0\n")
    found = find_node()
    assert found is not None
    assert found.node == old
