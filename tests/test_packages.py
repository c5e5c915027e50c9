"""The packages for developers: each has the name that was decided, carries the text of the license, and reads alone."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.test_docs import MARKDOWN
from tools import packages
from tools.node_client import PACKAGES

ROOT = Path(__file__).parents[1]
LICENSE = (ROOT / "LICENSE").read_bytes()
FOLDERS = (ROOT / "clients" / "python", ROOT / "clients" / "go", ROOT / "clients" / "java", *PACKAGES)


POM = "{http://maven.apache.org/POM/4.0.0}"
PARENT = {
    f"{packages.MAVEN_GROUP}:svc-android{part}": f"{packages.MAVEN_GROUP}:svc-android-{module}"
    for part, module in {"": "parent", "-okhttp": "ktx", "-testing": "ktx"}.items()
}
"""Packages that a tool makes of other modules than their name says, and the module that their sources are in."""


def described_name(package: packages.Package) -> str:
    """The name in the package's own description."""
    folder = ROOT / package.folder
    if package.registry == "npm":
        return json.loads((folder / "package.json").read_text())["name"]
    if package.registry == "pypi":
        return tomllib.loads((folder / "pyproject.toml").read_text())["project"]["name"]
    if package.registry == "go":
        return (folder / "go.mod").read_text().split()[1]
    pom = ET.parse(folder / "pom.xml").getroot()
    group = pom.findtext(f"{POM}groupId") or pom.findtext(f"{POM}parent/{POM}groupId")
    return f"{group}:{pom.findtext(f'{POM}artifactId')}"


@pytest.mark.parametrize("package", packages.PACKAGES, ids=lambda package: package.name)
def test_a_package_has_the_name_that_was_decided(package: packages.Package):
    assert described_name(package) == PARENT.get(package.name, package.name)
    prefix = {
        "npm": f"{packages.NPM_SCOPE}/",
        "go": f"{packages.GO_HOST}/",
        "maven": packages.MAVEN_GROUP,
        "pypi": "svc-",
    }
    assert package.name.startswith(prefix[package.registry])


def test_every_package_is_in_the_table():
    """But for what nobody installs: private ones, parts of the Android SDK, and programs of the examples."""
    found = {
        path.parent.relative_to(ROOT).as_posix()
        for place in ("clients/*", "web/*")
        for name in ("package.json", "pyproject.toml", "go.mod", "pom.xml")
        for path in ROOT.glob(f"{place}/{name}")
        if name != "package.json" or not json.loads(path.read_text()).get("private")
    }
    assert found == {one.folder for one in packages.PACKAGES if one.folder not in (".", "clients/android/ktx")}


def test_no_text_installs_a_package_of_ours_by_its_name():
    """A registry may have a package of that name, of a stranger: only files and folders are installed. Go's names are
    addresses that no stranger has.
    """
    names = {one.name for one in packages.PACKAGES if one.registry in ("npm", "pypi")}
    command = re.compile(r"(?:pip|pipx|npm|pnpm|yarn|uv) (?:install|add|i)\b([^`\n#]*)")
    faults = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in MARKDOWN
        for found in command.finditer(path.read_text())
        if names & {re.split(r"\[|@(?!svc)|[=<>~]", word.strip("'\""))[0] for word in found[1].split()}
    ]
    assert faults == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_a_package_has_the_license_and_a_page_without_links_to_files_elsewhere(folder: Path):
    """A package is unpacked where nothing of this repository is."""
    assert (folder / "LICENSE").read_bytes() == LICENSE
    links = re.findall(r"\]\((?!https?:|#)([^)]*)\)", (folder / "README.md").read_text())
    assert [link for link in links if not (folder / link).resolve().is_relative_to(folder)] == []


def test_a_package_for_npm_describes_itself_and_names_no_address():
    """Where a package is published, and where its sources are, is said by whoever publishes it."""
    for folder in PACKAGES:
        text = (folder / "package.json").read_text()
        described = json.loads(text)
        said = ("description", "license", "keywords", "files", "version")
        assert [name for name in said if not described.get(name)] == [], folder
        assert described["sideEffects"] is False, folder
        assert "types" in text, folder
        assert "http" not in text, folder
        assert {"repository", "homepage", "bugs", "publishConfig"} & set(described) == set(), folder


@pytest.mark.parametrize("folder", [ROOT, ROOT / "clients" / "python"], ids=["service", "client"])
def test_a_package_for_python_describes_itself_and_names_no_address(folder: Path):
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    said = ("description", "license", "license-files", "keywords", "classifiers", "requires-python")
    assert [name for name in said if not project.get(name)] == []
    assert "readme" in project or "readme" in project["dynamic"]
    assert "urls" not in project


def test_the_library_for_java_describes_itself_and_names_no_address():
    pom = ET.parse(ROOT / "clients" / "java" / "pom.xml").getroot()
    for path in ("name", "description", f"licenses/{POM}license/{POM}name"):
        assert pom.findtext(f"{POM}{path}"), path
    for path in ("url", "scm", "distributionManagement", "repositories"):
        assert pom.find(f"{POM}{path}") is None, path
