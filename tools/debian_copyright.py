"""The file `copyright` of the Debian package: what of others is inside, and the texts of its licenses.

What may live here: where these are found. Libraries of Python say it in what is installed of them, bundled scripts in
the `LICENSES.txt` beside them, and libraries of the system in the file of their own package.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageMetadata, distributions
from pathlib import Path
from typing import NamedTuple, TypedDict

from tools import packages

OWN = "svc-visitor-id"
DOCUMENTS = Path("/usr/share/doc")
"""Where Debian's packages have their file `copyright`."""
_LICENSE_FILE = re.compile(r"(licen[cs]e|copying|notice)[^/]*$", re.IGNORECASE)
_RULE = "=" * 78
_AS_SAID = "as its text says"


class UnknownLicenseError(Exception):
    """Something is inside whose license is not on this machine."""


class Part(NamedTuple):
    """A work of others in the package."""

    name: str
    """With its version where that is known."""
    license: str
    text: str
    """Empty where it is a license whose text another part has."""


def page(tree: Path) -> str:
    """The whole file. Raises `UnknownLicenseError`."""
    found = list(parts(tree))
    texts: dict[str, list[str]] = {}
    for part in found:
        if part.text:
            texts.setdefault(part.text, []).append(part.name)
    listed = [f"  {part.name}: {part.license}" for part in found]
    bodies = [f"{_RULE}\n{', '.join(names)}\n{_RULE}\n\n{text}" for text, names in texts.items()]
    return "\n\n".join([_HEAD, "\n".join(listed), *bodies]) + "\n"


class Python(TypedDict):
    """The interpreter inside."""

    version: str
    package: str
    """`source=version` of the Debian package that it was taken from, or empty."""


class Inventory(TypedDict):
    """Of `inventory.json`, which the executable's folder has, what is read here."""

    python: Python
    shared: dict[str, str]
    """Shared library of the system -> `source=version` of its Debian package."""


def parts(tree: Path) -> Iterator[Part]:
    """What the tree contains beside the program."""
    inventory: Inventory = json.loads((tree / "inventory.json").read_text())
    yield _interpreter(inventory["python"])
    (modules,) = (tree / "lib").glob("python3.*")
    installed = [one for one in distributions(path=[str(modules)]) if one.name != OWN]
    yield from (_library(one) for one in sorted(installed, key=lambda one: one.name.lower()))
    for file in sorted(tree.rglob("LICENSES.txt")):
        yield Part(f"scripts in {file.parent.relative_to(modules)}", "as listed there", _read(file))
    sources: dict[str, list[str]] = {}
    for library, source in sorted(inventory["shared"].items()):
        sources.setdefault(source.replace("=", " "), []).append(library)
    for source, names in sources.items():
        yield Part(f"{source} ({', '.join(names)})", _AS_SAID, _of_system(names[0]))


def _interpreter(python: Python) -> Part:
    """Python and its standard library. Debian has the text elsewhere than python.org."""
    package, _, version = python["package"].partition("=")
    files = [Path(sysconfig.get_path("stdlib")) / "LICENSE.txt", DOCUMENTS / "python3" / "copyright"]
    files.insert(0, DOCUMENTS / (package or "python") / "copyright")
    for file in files:
        if file.is_file():
            return Part(f"Python {version or python['version']}", "PSF-2.0", _read(file))
    raise UnknownLicenseError(f"the license of Python is not in {' or '.join(map(str, files))}")


def _library(installed: Distribution) -> Part:
    files = sorted(file for file in installed.files or () if _LICENSE_FILE.search(str(file)) and file.suffix != ".py")
    texts = [_read(Path(str(file.locate()))) for file in files]
    said = license_said(installed.metadata) or _AS_SAID
    return Part(f"{installed.name} {installed.version}", said, "\n\n".join(dict.fromkeys(texts)))


def license_said(metadata: PackageMetadata) -> str | None:
    """The license that an installed library names, best first: as an SPDX expression, in words, as a classifier."""
    classified = [name.rpartition(":: ")[2] for name in metadata.get_all("Classifier") or () if "License ::" in name]
    said = [metadata[key] for key in ("License-Expression", "License") if key in metadata]
    return next(iter([text for text in said if "\n" not in text] + classified), None)


def _of_system(library: str) -> str:
    """What the package of Debian says that has a shared library."""
    query = shutil.which("dpkg-query")
    command = [query or "", "--search", f"*/{library}"]
    told = subprocess.run(command, check=False, capture_output=True, text=True).stdout if query else ""
    files = [DOCUMENTS / name / "copyright" for name in sorted({line.partition(":")[0] for line in told.splitlines()})]
    for file in files:
        if file.is_file():
            return _read(file)
    raise UnknownLicenseError(f"no package of this machine says under which license {library} is")


def _read(file: Path) -> str:
    return file.read_text(errors="replace").strip()


_HEAD = f"""\
svc, from {packages.HOMEPAGE}

Copyright: the contributors of svc
License: Apache-2.0

On Debian systems, the text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.

The program contains these libraries of others, whose texts follow:"""
