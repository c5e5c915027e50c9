"""The packages for developers, of Python and npm: each carries the text of the licence, and reads alone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools.node_client import PACKAGES
from tools.web import find_node

ROOT = Path(__file__).parents[1]
LICENSE = (ROOT / "LICENSE").read_bytes()
FOLDERS = (ROOT / "clients" / "python", *PACKAGES)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_a_package_has_the_licence_and_a_page_without_links_to_files_elsewhere(folder: Path):
    """A package is unpacked where nothing of this repository is."""
    assert (folder / "LICENSE").read_bytes() == LICENSE
    links = re.findall(r"\]\((?!https?:|#)([^)]*)\)", (folder / "README.md").read_text())
    assert [link for link in links if not (folder / link).resolve().is_relative_to(folder)] == []


@pytest.mark.slow(5)
def test_the_wheel_of_the_library_carries_the_licence(tmp_path: Path):
    source = ROOT / "clients" / "python"
    copy = tmp_path / "python"
    for file in (source / "pyproject.toml", source / "README.md", source / "LICENSE", *source.glob("svc_client/*.py")):
        (copy / file.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
        (copy / file.relative_to(source)).write_bytes(file.read_bytes())
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(tmp_path), str(copy)]
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *build], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE")]
        assert archive.read(name) == LICENSE


@pytest.mark.slow(5)
@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_an_npm_package_carries_the_licence(folder: Path):
    node = find_node()
    if node is None:
        pytest.skip("there is no npm")
    command = [*node.npm, "pack", "--dry-run", "--json", "--ignore-scripts"]
    done = subprocess.run(command, cwd=folder, env=node.environment, check=True, capture_output=True)
    (packed,) = json.loads(done.stdout)
    assert "LICENSE" in {file["path"] for file in packed["files"]}
