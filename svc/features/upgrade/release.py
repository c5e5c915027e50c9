"""A downloaded release: `SHA256SUMS` and the files that it names, as far as they were downloaded beside it.

Nothing of a release is executed or unpacked here. A name in the sums is that of a file in the same folder, neither a
path nor a symbolic link, so that no list of sums can make this program read or run something else.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from svc.features.upgrade.migrations import OLDEST
from svc.kernel.store.files import durable_files as files
from svc.kernel.store.schema.table import installed
from svc.kernel.values.errors import OperatorError

SUMS = "SHA256SUMS"
MAX_SUMS_BYTES = 1 << 20
_LINE = re.compile(r"([0-9A-Fa-f]{64}) [ *]([A-Za-z0-9][A-Za-z0-9._+~-]*)")
"""As `sha256sum` writes it: text or binary, and a name without a folder, spaces or escapes."""
_WHEEL = re.compile(r"svc_visitor_id-(\d[^-]*)-py3-none-any\.whl")
VERSIONS_FILE = "store_versions.json"
"""In this package, for who reads a wheel without running it: `StoreVersions`, written by `tests/store/release.py`."""
_IN_WHEEL = f"svc/features/upgrade/{VERSIONS_FILE}"
_MAX_VERSIONS_BYTES = 4096


class ReleaseError(OperatorError):
    """The files are not those of a release that can be tried; the message says what to do."""


class StoreVersions(msgspec.Struct, frozen=True):
    """The versions of the store that a program can serve: its own, and those from the oldest on after an upgrade."""

    store_version: int
    oldest_store_version: int

    def refusal(self, version: int, program: str) -> str | None:
        """Return why a store of this version cannot be served by the `program`, a version; `None` if it can."""
        if version > self.store_version:
            return (
                f"the store has version {version} and {program} knows {self.store_version}: it is older than the "
                "program that wrote the store. Restore a backup that it can read, or keep the program"
            )
        if version < self.oldest_store_version:
            return (
                f"the store has version {version} and {program} upgrades from version {self.oldest_store_version} on: "
                "upgrade to a release between them first"
            )
        return None


def own_versions() -> StoreVersions:
    """Return the versions of the store that this program can serve."""
    return StoreVersions(installed().version, OLDEST)


class Program(NamedTuple):
    """A file of a release that has the service: an executable, or a wheel that is only read."""

    file: str
    version: str
    is_executable: bool


class Release(NamedTuple):
    """The folder of a download, and the SHA-256 of each file by its name, in hexadecimal."""

    folder: Path
    sums: dict[str, str]


class Downloaded(NamedTuple):
    """The names in the sums: files that are there and have their sum, and files that are not there."""

    verified: tuple[str, ...]
    missing: tuple[str, ...]


def read_release(path: Path) -> Release:
    """Read the sums of a release, from the file or from the folder with it. Raises `ReleaseError`."""
    file = path / SUMS if path.is_dir() else path
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_SUMS_BYTES + 1)
    except OSError as error:
        raise ReleaseError(f"cannot read {file}: {error.strerror}; name the {SUMS} of a downloaded release") from error
    if len(content) > MAX_SUMS_BYTES:
        raise ReleaseError(f"{file} is too large for a list of sums; name the {SUMS} of a release")
    sums: dict[str, str] = {}
    for number, line in enumerate(content.decode(errors="replace").splitlines(), start=1):
        found = _LINE.fullmatch(line)
        if found is None:
            raise ReleaseError(f"{file}, line {number}: not a SHA-256 and the name of a file in the same folder")
        digest, name = found[1].lower(), found[2]
        if sums.setdefault(name, digest) != digest:
            raise ReleaseError(f"{file}, line {number}: {name} has two sums")
    if not sums:
        raise ReleaseError(f"{file} names no file")
    return Release(file.parent, sums)


def verify(release: Release) -> Downloaded:
    """Compare each file that is there with its sum. Raises `ReleaseError` if one differs or is not a regular file, or
    if none is there.
    """
    verified: list[str] = []
    missing: list[str] = []
    for name in release.sums:
        try:
            copy_verified(release, name, None)
        except FileNotFoundError:
            missing.append(name)
        else:
            verified.append(name)
    if not verified:
        raise ReleaseError(f"{release.folder} has none of the files that {SUMS} names: download them into it")
    return Downloaded(tuple(verified), tuple(missing))


def copy_verified(release: Release, name: str, target: Path | None) -> None:
    """Compare a file with its sum; with a `target`, copy it there meanwhile as a new executable file, which then has
    exactly the bytes that were compared. Raises `ReleaseError`, `FileNotFoundError`, and `OSError` of the target.
    """
    digest = hashlib.sha256()
    with _opened(release.folder / name) as source:
        descriptor = -1 if target is None else os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
        try:
            while block := source.read(files.BLOCK_BYTES):
                digest.update(block)
                if descriptor >= 0:
                    files.write_all(descriptor, block)
        finally:
            if descriptor >= 0:
                os.close(descriptor)
    if digest.hexdigest() != release.sums[name]:
        raise ReleaseError(
            f"{release.folder / name} does not have the sum in {SUMS}: download it again, and do not install it"
        )


@contextmanager
def _opened(path: Path) -> Generator[BinaryIO]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        because = "it is a symbolic link: put the file there" if error.errno == errno.ELOOP else str(error.strerror)
        raise ReleaseError(f"cannot verify {path}: {because}") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ReleaseError(f"cannot verify {path}: it is not a regular file")
        yield file


def program_for(machine: str, release: Release, downloaded: Downloaded) -> Program:
    """Return the program to ask among the verified files: the executable for this kind of machine (`x86_64`), or else
    the wheel. Raises `ReleaseError` if neither is there, or several are.
    """
    executable = re.compile(rf"svc-(\d[^-]*)-linux-{re.escape(machine)}")
    for pattern in (executable, _WHEEL):
        programs = [
            Program(name, found[1], is_executable=pattern is executable)
            for name in downloaded.verified
            if (found := pattern.fullmatch(name)) is not None
        ]
        if len(programs) > 1:
            names = ", ".join(program.file for program in programs)
            raise ReleaseError(f"{release.folder / SUMS} names programs of several releases: {names}")
        if programs:
            return programs[0]
    raise ReleaseError(
        f"{release.folder} has no program that this machine ({machine}) can ask: download svc-VERSION-linux-{machine}, "
        "or the wheel svc_visitor_id-VERSION-py3-none-any.whl, as well"
    )


def versions_in_wheel(release: Release, wheel: Program) -> StoreVersions:
    """Return which stores the program in a wheel serves, by a file in it; nothing of it is executed. Raises
    `ReleaseError`.
    """
    path = release.folder / wheel.file
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(_IN_WHEEL).file_size > _MAX_VERSIONS_BYTES:
                raise ReleaseError(f"{path} is not a wheel of this service: {_IN_WHEEL} is too large")
            return msgspec.json.decode(archive.read(_IN_WHEEL), type=StoreVersions)
    except KeyError:
        raise ReleaseError(
            f"{path} does not say which stores it serves: it is of a release before `svc upgrade`"
        ) from None
    except (OSError, zipfile.BadZipFile, msgspec.DecodeError) as error:
        raise ReleaseError(f"{path} cannot be read as a wheel of this service: {error}") from error
