"""Archives of packages that are equal byte by byte, whenever and wherever they are made."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path

from tools.packages import MAVEN_GROUP

ROOT = Path(__file__).parents[1]
TIME = (2026, 1, 1, 0, 0, 0)


def archive(files: Iterable[tuple[str, bytes]]) -> bytes:
    """A zip with names in order and one time for all."""
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for name, content in sorted(files):
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            out.writestr(entry, content)
    return made.getvalue()


def below(*folders: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (path in its folder, content) of every file in and below the folders."""
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                yield path.relative_to(folder).as_posix(), path.read_bytes()


def of_maven(artifact: str, version: str, end: str, content: bytes) -> dict[str, bytes]:
    """A file of an artifact in a Maven repository and its sums, by path. Maven reads the SHA-1 alone, and from version
    4 on no file without.
    """
    path = f"{MAVEN_GROUP.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}{end}"
    sums = {"sha1": hashlib.sha1(content, usedforsecurity=False), "sha256": hashlib.sha256(content)}
    return {path: content, **{f"{path}.{name}": made.hexdigest().encode() for name, made in sums.items()}}


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their paths below a folder, which is made."""
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def built_at_s() -> int:
    """The time of the commit that is built, Unix seconds; `SOURCE_DATE_EPOCH` where the sources are no checkout."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=ROOT, text=True))


def rezipped(content: bytes) -> bytes:
    """A wheel again, whose files have two modes: those of setuptools follow the umask of the builder."""
    made = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for entry in old.infolist():
            entry.external_attr = (0o100755 if entry.external_attr >> 16 & 0o100 else 0o100644) << 16
            new.writestr(entry, old.read(entry))
    return made.getvalue()


def wheel(project: Path, folder: Path, at_s: int) -> Path:
    """Build the wheel of a project into a folder, without network, and return it."""
    for left in (*project.glob("build/lib"), *project.glob("build/bdist.*"), *project.glob("*.egg-info")):
        if left.name != "svc_visitor_id.egg-info":  # of the editable installation
            shutil.rmtree(left)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(at_s), "PYTHONHASHSEED": "0"}
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(
            [*pip, "--no-build-isolation", "--no-index", "-w", place, "."], cwd=project, env=environment, check=True
        )
        (made,) = Path(place).iterdir()
        (folder / made.name).write_bytes(rezipped(made.read_bytes()))
    return folder / made.name
