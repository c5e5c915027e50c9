"""Upgrading a data directory: an older store is copied first, and then brought to this version in one transaction.

DATA/before-upgrade/version-N/    the store as it was, for `svc restore` of the older program

The copy is a snapshot like those of `svc backup`, but for one thing: the invariants are those of this program, and are
not asked of a store that it does not know yet. It is of the data directory's own disk, so it is the way back from an
upgrade and no backup, and it holds what was erased since. The next upgrade replaces it.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import lmdb
import msgspec

from svc.store.backup import files
from svc.store.backup.snapshots import Manifest
from svc.store.directory import Unusable
from svc.store.migrations import MIGRATIONS, Migration, refuse_newer
from svc.store.snapshot import Snapshot
from svc.store.store import MAX_TABLES, Store, version_of
from svc.store.tables import META
from svc.world import RunSync

FOLDER = "before-upgrade"
_PARTIAL = ".partial"


@dataclass(frozen=True)
class Upgraded:
    """What was done."""

    before: int
    after: int
    copy: Path | None
    """Of the store before; `None` where none was wanted."""


def upgrade(
    directory: Path,
    run_sync: RunSync,
    *,
    map_bytes: int,
    program: str,
    now_ms: Callable[[], int],
    copy: bool = True,
    migrations: Sequence[Migration] = MIGRATIONS,
) -> Upgraded | None:
    """Upgrade the store of a data directory; `None` where there is none, or none that is older.

    Raises `Unusable`, `migrations.NewerStore` and `StoreFull`, and then the store is as it was.
    """
    path = directory / "store"
    if not (path / "data.mdb").exists():
        return None
    with _as_it_is(path) as environment:
        before = version_of(environment)
    refuse_newer(before, len(migrations))
    if before in (0, len(migrations)):
        return None
    _refuse_in_use(path)
    try:
        kept = _keep(path, directory / FOLDER, program, now_ms) if copy else None
        Store.open(path, run_sync, map_bytes=map_bytes, migrations=migrations, now_ms=now_ms).close()
        _forget_others(directory / FOLDER, kept)
    except OSError as error:
        raise Unusable(f"cannot upgrade {directory}: {error.filename or path}: {error.strerror}") from error
    return Upgraded(before, len(migrations), kept)


@contextmanager
def _as_it_is(path: Path) -> Generator[lmdb.Environment]:
    """The store, to be read whatever its version is."""
    try:
        environment = lmdb.open(str(path), readonly=True, create=False, max_dbs=MAX_TABLES, map_size=0)
    except lmdb.Error as error:
        raise Unusable(f"{path} cannot be read as a store: {error}") from error
    try:
        yield environment
    finally:
        environment.close()


def _refuse_in_use(path: Path) -> None:
    """An older program that runs would write its own rows among the new ones, and after the copy was made.

    LMDB keeps a shared lock on the first byte of its lock file while a process has the store open. This process must
    not have it open itself: closing a file gives up all its locks on it (POSIX, fcntl).
    """
    lock = path / "lock.mdb"
    if not lock.exists():
        return
    with lock.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        except BlockingIOError:
            raise Unusable(
                f"{path} is older than this program and another process is using it: stop that first, and start this "
                "again to upgrade it"
            ) from None


def _keep(path: Path, folder: Path, program: str, now_ms: Callable[[], int]) -> Path:
    """Copy the store, read it back, and give the copy its name when it is whole and on disk."""
    files.make_folder(folder)
    partial = folder / _PARTIAL
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700)
    try:
        with _as_it_is(path) as environment:
            _refuse_no_room(environment, folder)
            manifest = _copied(environment, partial, program, now_ms)
        files.write(partial / "manifest.json", msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
        files.sync(partial)
        place = folder / f"version-{manifest.store_version}"
        shutil.rmtree(place, ignore_errors=True)  # of an upgrade that got no further, or was gone back on
        partial.rename(place)
        files.sync(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return place


def _refuse_no_room(environment: lmdb.Environment, folder: Path) -> None:
    needed = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Unusable(
            f"{folder} has {free >> 20} MiB left and the copy that is kept before an upgrade may take "
            f"{-(-needed >> 20)}: make room, or have a backup and start `svc serve --no-snapshot` once"
        )


def _copied(environment: lmdb.Environment, target: Path, program: str, now_ms: Callable[[], int]) -> Manifest:
    file = target / "data.mdb"
    environment.copy(str(target), compact=True)
    file.chmod(0o600)
    files.sync(file)
    with environment.begin() as handle:
        names = [name.decode() for name in handle.cursor().iternext(values=False)]
    tables = {name: environment.open_db(name.encode(), create=False) for name in names}
    with environment.begin() as handle:
        snapshot = Snapshot(handle, tables)
        return Manifest(
            program=program,
            store_version=version_of(environment),
            store=snapshot.get(META, "pepper_mark") or 0,
            taken_at_ms=now_ms(),
            timeline=None,
            sequence=None,
            bytes=file.stat().st_size,
            blake3=files.copy(file, None, lambda _: None),
            pepper=False,
            rows={name: handle.stat(table)["entries"] for name, table in tables.items()},
        )


def _forget_others(folder: Path, kept: Path | None) -> None:
    """Whoever goes back does so by one step; the copies of earlier upgrades hold what was erased since."""
    for place in folder.glob("version-*"):
        if place != kept:
            shutil.rmtree(place)
