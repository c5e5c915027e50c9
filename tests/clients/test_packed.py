"""The packages for developers as they are packed and installed: with the license, and from no registry."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from tools.node_client import PACKAGES
from tools.web import WEB, find_node

ROOT = Path(__file__).parents[2]
LICENSE = (ROOT / "LICENSE").read_bytes()


@pytest.mark.slow(5)
def test_the_wheel_of_the_library_has_license_readme_types_and_no_address(tmp_path: Path):
    source = ROOT / "clients" / "python"
    copy = tmp_path / "python"
    files = ("pyproject.toml", "README.md", "LICENSE", "svc_client/py.typed")
    for file in (*(source / name for name in files), *source.glob("svc_client/*.py")):
        (copy / file.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
        (copy / file.relative_to(source)).write_bytes(file.read_bytes())
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(tmp_path), str(copy)]
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *build], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE")]
        assert archive.read(name) == LICENSE
        assert {"svc_client/py.typed", "svc_client/testing.py"} < set(archive.namelist())
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        described = message_from_bytes(archive.read(name))
    assert described["Keywords"] == "visitor identification,fraud detection,self-hosted"
    assert described["License-Expression"] == "Apache-2.0"
    assert "Typing :: Typed" in described.get_all("Classifier", [])
    assert described.get_payload() == (source / "README.md").read_text()
    assert described.get_all("Project-URL") is described["Home-page"] is None


def install(folder: Path, *packages: Path) -> set[str]:
    """What npm installs of these files, without any registry."""
    node = find_node()
    assert node is not None
    folder.mkdir()
    (folder / "package.json").write_text('{"name": "app", "private": true}')
    command = [*node.npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--offline", *map(str, packages)]
    done = subprocess.run(command, cwd=folder, env=node.environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lock = json.loads((folder / "package-lock.json").read_text())["packages"]
    return {name.removeprefix("node_modules/") for name in lock if name}


@pytest.mark.slow(5)
def test_npm_asks_no_registry_for_a_package_of_ours(tmp_path: Path):
    """A stranger who registers the name of the SDK must not come into a page: a peer that npm installs would. With
    both files in one command, as documented, both are there.
    """
    node = find_node()
    if node is None:
        pytest.skip("there is no npm")
    for folder in (WEB / "sdk", WEB / "react", WEB / "node_modules" / "react"):
        command = [*node.npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", str(tmp_path)]
        subprocess.run(command, cwd=folder, env=node.environment, check=True, capture_output=True)
    (react,) = tmp_path.glob("react-*.tgz")
    (sdk,) = tmp_path.glob("svc-web-*.tgz")
    (wrapper,) = tmp_path.glob("svc-react-*.tgz")
    assert install(tmp_path / "alone", react, wrapper) == {"react", "@svc/react"}
    assert install(tmp_path / "both", react, sdk, wrapper) == {"react", "@svc/web", "@svc/react"}


@pytest.mark.slow(5)
@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_an_npm_package_carries_the_license_and_its_readme(folder: Path):
    node = find_node()
    if node is None:
        pytest.skip("there is no npm")
    command = [*node.npm, "pack", "--dry-run", "--json", "--ignore-scripts"]
    done = subprocess.run(command, cwd=folder, env=node.environment, check=True, capture_output=True)
    (packed,) = json.loads(done.stdout)
    assert {"LICENSE", "README.md"} < {file["path"] for file in packed["files"]}
