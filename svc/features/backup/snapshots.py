"""Snapshots: one state of a store in a folder of its own, verified before it gets its name.

A snapshot is made beside its place and renamed when it is whole and on disk, so that what has a name can be restored.
The manifest says what it holds and to which batch of which timeline the operation log continues it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from svc.features.backup import copied_up_to, segments
from svc.features.checks.verification import Verification, faults
from svc.kernel.store import operations
from svc.kernel.store.files import durable_files as files
from svc.kernel.store.installation import NewerStoreError, former_pepper_marks
from svc.kernel.store.reading import read_only
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.table import installed
from svc.kernel.store.steps import Steps
from svc.kernel.store.tables import META
from svc.kernel.values.errors import DirectoryError

FORMAT = 1
_NAME = re.compile(r"snapshot-\d{8}T\d{6}\.\d{3}Z")
_PARTIAL = ".snapshot.partial"
_REMOVED = ".snapshot.removed"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`manifest.json`. Fields are added with defaults; a changed meaning is a new `format`."""

    format: int = FORMAT
    program: str
    """The version of the program that made it."""
    store_version: int
    store: int
    """The store's mark of its pepper: the same for all copies of one store, until the pepper is replaced."""
    former: tuple[int, ...] = ()
    """Marks of the peppers that it had before."""
    taken_at_ms: int
    """Every commit in it was made by then, and none that is not in it before."""
    timeline: str | None
    """Of the operation log that continues it, hexadecimal; `None` = nobody followed."""
    sequence: int | None
    """The latest batch that it holds."""
    bytes: int
    """Of `data.mdb`, as is `blake3`."""
    blake3: str
    pepper: bool
    """Whether the pepper was put in, too."""
    rows: dict[str, int]
    """Per table."""
    verified: Verification = Verification.FULL
    """How, before it got its name."""
    number: int = 0
    """Of those in its folder, in the order in which they were taken; 0 = taken by a program that did not count."""


@dataclass(frozen=True)
class BackupSnapshot:
    """A complete snapshot, in a folder under its final name."""

    path: Path
    manifest: Manifest

    @property
    def file(self) -> Path:
        """Return the path of the store's file within the folder."""
        return self.path / "data.mdb"


class Taking(NamedTuple):
    """What a snapshot is made with."""

    program: str
    """The version of this program."""
    now_ms: Callable[[], int]
    pepper: Path | None
    """Put in if it is given."""
    verification: Verification


def take(data: Path, folder: Path, taking: Taking, steps: Steps) -> BackupSnapshot:
    """Copy the store of a data directory while a service may be writing to it, and verify the copy.

    Raises `DirectoryError`, also where the copy does not pass.
    """
    files.make_folder(folder)
    with files.exclusive(folder / ".lock", f"another backup is being made in {folder}"):
        for name in (_PARTIAL, _REMOVED):
            shutil.rmtree(folder / name, ignore_errors=True)
        partial = folder / _PARTIAL
        if partial.is_symlink():
            raise DirectoryError(
                f"{partial} is a symbolic link, which no backup makes: remove it, and see who can write to {folder}"
            )
        try:
            with files.reporting("cannot write", folder):
                return _take(data, folder, partial, taking, steps)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _take(data: Path, folder: Path, partial: Path, taking: Taking, steps: Steps) -> BackupSnapshot:
    partial.mkdir(mode=0o700)
    with read_only(data / "store", live=True) as store:
        file, taken_at_ms = copied(store.copy, partial, taking.now_ms)
    steps.stage("reading back", file.stat().st_size)
    digest = files.copy(file, None, steps.step)
    manifest = _verified(file, taken_at_ms, digest, taking, steps)
    refuse_other_store(folder, manifest)
    if taking.pepper is not None:
        files.write(partial / "pepper", taking.pepper.read_bytes())
    folder_path = folder / _name(taken_at_ms)
    if folder_path.exists():
        raise DirectoryError(f"{folder_path} is there already")
    number = 1 + max((other.manifest.number for other in listed(folder)), default=0)
    manifest = msgspec.structs.replace(manifest, number=number)
    keep(partial, folder_path, manifest)
    return BackupSnapshot(folder_path, manifest)


def copied(copy: Callable[[Path, Callable[[], int]], int], folder: Path, now_ms: Callable[[], int]) -> tuple[Path, int]:
    """Copy one state of a store into an empty folder by `ReadOnlyFile.copy` or the engine's: the file, durable and with
    mode 0600, and the time that `copy` returns. Raises what that raises, and `OSError`.
    """
    taken_at_ms = copy(folder, now_ms)
    file = folder / "data.mdb"
    file.chmod(0o600)
    files.sync(file)
    return file, taken_at_ms


def keep(partial: Path, folder_path: Path, manifest: Manifest) -> None:
    """Give a folder with a copy its manifest and then its name, `folder_path` beside it; all of it is durable on
    return. Raises `OSError`.
    """
    files.write(partial / "manifest.json", msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    files.sync(partial)
    files.rename(partial, folder_path)


def _verified(file: Path, taken_at_ms: int, digest: str, taking: Taking, steps: Steps) -> Manifest:
    with read_only(file, live=False) as store, store.read() as snapshot:
        broken = next(faults(store, snapshot, taking.verification, steps), None)
        if broken is not None:
            raise DirectoryError(
                f"the copy does not pass its verification, so no snapshot was kept: {broken}; `svc check` lists what "
                "is broken"
            )
        position = operations.position(snapshot)
        return Manifest(
            program=taking.program,
            store_version=snapshot.get(META, "version") or 0,
            store=snapshot.get(META, "pepper_mark") or 0,
            former=former_pepper_marks(snapshot),
            taken_at_ms=taken_at_ms,
            timeline=None if position is None else position.timeline.hex(),
            sequence=None if position is None else position.sequence,
            bytes=file.stat().st_size,
            blake3=digest,
            pepper=taking.pepper is not None,
            rows={table.name: snapshot.count(table) for table in installed().tables},
            verified=taking.verification,
        )


def check_file(snapshot: BackupSnapshot, steps: Steps) -> None:
    """Compare a snapshot's file with its manifest. Raises `CorruptionError`, `DirectoryError` if unreadable."""
    steps.stage("comparing the file", snapshot.manifest.bytes)
    with files.reporting("cannot read", snapshot.file):
        digest = files.copy(snapshot.file, None, steps.step)
    if digest != snapshot.manifest.blake3:
        raise CorruptionError(f"{snapshot.file} is not what its manifest says")


def refuse_other_store(folder: Path, manifest: Manifest) -> None:
    """Raise `DirectoryError` if the folder has another store's snapshots: one could be restored for the other."""
    own = {manifest.store, *manifest.former}
    for other in listed(folder):
        if own.isdisjoint((other.manifest.store, *other.manifest.former)):
            raise DirectoryError(f"{folder} holds backups of another store; name another folder")


def listed(folder: Path) -> list[BackupSnapshot]:
    """Return the snapshots of a folder, oldest first. Raises `DirectoryError` and `NewerStoreError` like `read`.

    One that was taken before another comes before it, whatever the clock showed then: what is dated later was dated by
    a clock that ran ahead.
    """
    with files.reporting("cannot read", folder):
        paths = sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name) and path.is_dir())
    try:
        found = [read(path) for path in paths]
    except DirectoryError as error:  # no place is known for it: not the newest is taken for that
        raise DirectoryError(
            f"{error}: move that snapshot out of {folder}; `svc restore` takes another one if it is named itself"
        ) from error
    found.sort(key=lambda snapshot: (snapshot.manifest.number, snapshot.manifest.taken_at_ms))
    times_ms: dict[Path, int] = {}
    next_ms = found[-1].manifest.taken_at_ms if found else 0
    for snapshot in reversed(found):
        if snapshot.manifest.number:
            next_ms = times_ms[snapshot.path] = min(next_ms, snapshot.manifest.taken_at_ms)
    return sorted(found, key=lambda snapshot: times_ms.get(snapshot.path, snapshot.manifest.taken_at_ms))


def is_snapshot(path: Path) -> bool:
    """Return whether the folder has a manifest, which is written last."""
    return (path / "manifest.json").is_file()


def read(path: Path) -> BackupSnapshot:
    """Return the snapshot in a folder of its own. Raises `DirectoryError` for a manifest that cannot be read,
    `NewerStoreError` for one of a later form.
    """
    file = path / "manifest.json"
    with files.reporting("cannot read", file):
        content = file.read_bytes()
    try:
        raw = msgspec.json.decode(content, type=dict[str, Any])
        form = raw.get("format")
        if isinstance(form, int) and form > FORMAT:
            raise NewerStoreError(f"{file} has the form {form} and this program knows {FORMAT}: use a newer one")
        manifest = msgspec.convert(raw, Manifest)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise DirectoryError(f"{file} is not a manifest: {error}") from error
    return BackupSnapshot(path, manifest)


def prune(folder: Path, keep: int, following: bytes | None) -> list[Path]:
    """Remove all snapshots but the newest `keep`, and the segments and records of progress that continue none of these;
    returns the paths removed.

    `following` is the timeline that is being followed, if any. Raises `DirectoryError`.
    """
    with files.exclusive(folder / ".lock", f"another backup is being made in {folder}"):
        found = listed(folder)
        old, kept = found[:-keep], found[-keep:]
        for snapshot in old:
            removed = folder / _REMOVED
            shutil.rmtree(removed, ignore_errors=True)
            snapshot.path.rename(removed)  # in one step: half a snapshot is never one
            shutil.rmtree(removed)
        needed: dict[bytes, int] = {}
        for manifest in (snapshot.manifest for snapshot in kept):
            if manifest.timeline is not None and manifest.sequence is not None:
                timeline = bytes.fromhex(manifest.timeline)
                needed[timeline] = min(needed.get(timeline, manifest.sequence), manifest.sequence)
        timelines = {timeline.hex() for timeline in (*needed, *([] if following is None else [following]))}
        gone = segments.prune(folder, needed, following) + copied_up_to.prune(folder, timelines)
        return [snapshot.path for snapshot in old] + gone


def _name(at_ms: int) -> str:
    seconds, milliseconds = divmod(at_ms, 1000)
    return f"snapshot-{datetime.fromtimestamp(seconds, UTC):%Y%m%dT%H%M%S}.{milliseconds:03}Z"
