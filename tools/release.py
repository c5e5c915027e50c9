"""Everything that a release is made of, from one version: `python -m tools.release FOLDER [TAG]` (`make release`).

What may live here: which files there are, and what makes them equal byte by byte whenever they are built: the time of
the commit in every archive, names in order, no owner. The packages themselves are built where they are described.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from tools import android, chart, debian, executable, go_library, java_library, node_client
from tools.archives import archive, built_at_s, wheel
from tools.debian_copyright import license_said
from tools.docs import OF_PYTHON
from tools.versions import differing, section_of, version

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "clients" / "python"
SUMS = "SHA256SUMS"
_BUNDLED = re.compile(r"^(@?[a-z0-9._/-]+) ([0-9][\w.-]*) \(([^)]+)\)$", re.MULTILINE)


def repacked(content: bytes, at_s: int) -> bytes:
    """A `.tar` or `.tar.gz` again, compressed: its entries in order, at one time, of nobody."""
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(content)) as old,
        gzip.GzipFile(filename="", mode="wb", fileobj=made, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for entry in sorted(old.getmembers(), key=lambda entry: entry.name):
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = at_s, 0, 0, "", ""
            entry.mode, entry.pax_headers = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644, {}
            new.addfile(entry, old.extractfile(entry) if entry.isreg() else None)
    return made.getvalue()


def python_packages(project: Path, folder: Path, at_s: int) -> None:
    """The wheel and the sdist of a project into a folder, without network."""
    wheel(project, folder, at_s)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(at_s), "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryDirectory() as place:
        build = f"from setuptools import build_meta; build_meta.build_sdist({place!r})"
        subprocess.run(
            [sys.executable, "-c", build], cwd=project, env=environment, check=True, stdout=subprocess.DEVNULL
        )
        (made,) = Path(place).iterdir()
        (folder / made.name).write_bytes(repacked(made.read_bytes(), at_s))


def bill_of_materials(wheel: Path, lock: str, wanted: str, at_s: int, system: Mapping[str, str]) -> bytes:
    """CycloneDX 1.6: the service, every library that its lock pins with what its makers say that it contains, what of
    other packages its wheel does, and what of a system the executable does: file -> `package=version`.
    """
    name = f"svc-visitor-id-{wanted}"
    found: dict[str, dict[str, object]] = {}
    for pinned, number in executable.PINNED.findall(lock):
        found |= _described("pypi", pinned.lower(), number, _license_of(pinned)) | _inside(pinned)
    with zipfile.ZipFile(wheel) as files:
        for path in files.namelist():
            if path.endswith("/LICENSES.txt"):
                for package, number, license_id in _BUNDLED.findall(files.read(path).decode()):
                    registry = "pypi" if package in OF_PYTHON else "npm"
                    found |= _described(registry, package, number, {"license": {"id": license_id}})
    for package in filter(None, set(system.values())):
        source, _, number = package.partition("=")
        found |= _described("deb/debian", source, number, None)
    components = [found[purl] for purl in sorted(found)]
    own = {"type": "application", "bom-ref": "svc", "name": "svc-visitor-id", "version": wanted}
    made_at = datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, name + hashlib.sha256(lock.encode()).hexdigest())}",
        "version": 1,
        "metadata": {"timestamp": made_at, "component": {**own, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": components,
        "dependencies": [{"ref": "svc", "dependsOn": [each["bom-ref"] for each in components]}],
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def _described(registry: str, name: str, number: str, license_of: object) -> dict[str, dict[str, object]]:
    """A component by its package URL. Its license is left out where it is not known."""
    purl = f"pkg:{registry}/{quote(name)}@{quote(number, safe='')}"
    described: dict[str, object] = {"type": "library", "bom-ref": purl, "name": name, "version": number, "purl": purl}
    return {purl: described | ({"licenses": [license_of]} if license_of else {})}


def _license_of(name: str) -> dict[str, object] | None:
    """What a library says of itself: an SPDX expression, or in words."""
    metadata = distribution(name).metadata
    said = license_said(metadata)
    if "License-Expression" in metadata:
        return {"expression": said}
    return None if said is None else {"license": {"name": said}}


def _inside(name: str) -> dict[str, dict[str, object]]:
    """What the makers of an installed library say that they have built into it (PEP 770), such as OpenSSL: by package
    URL, but for parts of their own.
    """
    found: dict[str, dict[str, object]] = {}
    for file in distribution(name).files or ():
        if ".dist-info/sboms/" in str(file):
            for one in json.loads(file.read_text()).get("components", ()):
                purl = one.get("purl", "pkg:pypi/")
                if not purl.startswith("pkg:pypi/") and "=file:" not in purl:
                    kept = {key: one[key] for key in ("name", "version", "purl", "licenses") if key in one}
                    found[purl] = {"type": "library", "bom-ref": purl, **kept}
    return found


def sums(folder: Path) -> str:
    """What `sha256sum -c` checks: every file of the folder but the sums."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def programs(folder: Path, made: Path) -> dict[str, str]:
    """Build the executable, what an image is built of, and the Debian package, or say why they are left out. Returns
    what of the system is in the executable: file -> `package=version` of Debian, or nothing where that is not known.
    """
    reason = executable.missing()
    if reason is not None:
        print(f"The executable is left out: {reason}.")
        return {}
    executable.build(folder / executable.file_name(), made)
    shutil.copy(ROOT / "ops" / "Containerfile", folder / f"svc-{version()}.Containerfile")
    reason = debian.missing()
    if reason is None:
        debian.build(executable.TREE, folder, built_at_s())
    else:
        print(f"The Debian package is left out: {reason}.")
    inventory = json.loads((executable.TREE / executable.INVENTORY).read_text())
    return {**inventory["shared"], "python": inventory["python"]["package"]}


def android_packages() -> dict[str, bytes] | str:
    """The Maven repository, or why there is none."""
    reason = android.missing() or android.build(offline=True, everything=False)
    if reason is None:
        return android.published()
    return "its libraries were not fetched yet: make android" if android.is_unresolved(reason) else reason


def build(folder: Path) -> None:
    """Write the release into a folder, which is emptied first, and say what was left out."""
    wanted, at_s = version(), built_at_s()
    section = section_of((ROOT / "CHANGELOG.md").read_text(), wanted)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for project in (ROOT, LIBRARY):
        python_packages(project, folder, at_s)
    node_client.main(str(folder))
    for path in folder.glob("*.tgz"):  # npm keeps the modes of files, which follow the umask of the builder
        path.write_bytes(repacked(path.read_bytes(), at_s))
    (folder / f"svc-chart-{wanted}.tgz").write_bytes(repacked(chart.packaged(), at_s))
    (folder / f"svc-go-{wanted}.zip").write_bytes(archive(go_library.published().items()))
    reason = java_library.missing()
    if reason is None:
        (folder / f"svc-java-{wanted}.zip").write_bytes(archive(java_library.published().items()))
    else:
        print(f"The client library for Java is left out: {reason}.")
    repository = android_packages()
    if isinstance(repository, str):
        print(f"The Android SDK is left out: {repository}.")
    else:
        (folder / f"svc-android-{wanted}.zip").write_bytes(archive(repository.items()))
    (folder / f"CHANGES-{wanted}.md").write_text(section)
    (made,) = folder.glob("svc_visitor_id-*.whl")
    system = programs(folder, made)
    (folder / f"svc-{wanted}.cdx.json").write_bytes(
        bill_of_materials(made, executable.LOCK.read_text(), wanted, at_s, system)
    )
    (folder / SUMS).write_text(sums(folder))


def main(folder: str, tag: str | None = None) -> int:
    """Build, or say why the tag is not that of this version."""
    if tag is not None and tag != f"v{version()}":
        print(f"the tag {tag} is not v{version()}, the version in pyproject.toml", file=sys.stderr)
        return 1
    if lines := differing(version()):
        print("\n".join(lines), f"make version V={version()} writes it where it may", sep="\n", file=sys.stderr)
        return 1
    build(Path(folder))
    print((Path(folder) / SUMS).read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
